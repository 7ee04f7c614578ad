/*
 * test/soak/chaos.h -- carries out a plan, and undoes what lasts.
 */
#ifndef TEST_SOAK_CHAOS_H
#define TEST_SOAK_CHAOS_H

#include <jansson.h>

#include "test/soak/plan.h"

struct chaos_counts {
	long kills[NPROCS], stops[NPROCS], acts[NACTIONS];
	long missed; /* There was nobody of that role just then. */
};

/* Does all of it, in this thread, and returns when its last window is shut. */
void chaos_run(struct soak *s, const struct plan *p, struct chaos_counts *n);

/* One call to an actor in the role ctl, with ${params} as text; the result is the caller's.
 * NULL: none came within ${ms}. */
json_t *chaos_call(
    const struct soak *s, const char *address, const char *method, const char *params, int ms);

#endif
