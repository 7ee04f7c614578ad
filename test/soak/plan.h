/*
 * test/soak/plan.h -- what is done to anvil and when: all of it comes from the seed alone.
 *
 * A line of the printed plan is MILLISECONDS ACTION TARGET LENGTH PICK: when after the start,
 * what, to whom, for how long in milliseconds (a step of the clock: by how much), and the number
 * that picks one of several.
 */
#ifndef TEST_SOAK_PLAN_H
#define TEST_SOAK_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "test/soak/procs.h"

enum action {
	ACT_KILL,
	ACT_STOP,  /* SIGSTOP, and SIGCONT later.                          */
	ACT_FULL,  /* Stores of the target have no room.                   */
	ACT_IO,    /* ... cannot be written.                               */
	ACT_SYNC,  /* ... cannot be synced.                                */
	ACT_SLOW,  /* ... take long to sync.                               */
	ACT_DISK,  /* The disk is full, for all.                           */
	ACT_CLOCK, /* The wall clock jumps.                                */
	ACT_HUP,
	ACT_DRAIN,
	ACT_RESTART,
	ACT_SHUT,  /* A stop that ends the runs.                           */
	ACT_POWER, /* Everything is killed at once.                        */
	/* What operators do meanwhile; after its length it is interrupted. */
	ACT_MOVE,
	ACT_REINDEX,
	ACT_BACKUP,
	ACT_MEND, /* anvilctl check --fix */
	NACTIONS
};

extern const char *const action_names[NACTIONS];

struct act {
	long at_ms;
	enum action action;
	enum proc_role target;
	long length;
	uint64_t pick;
};

struct plan {
	struct act *acts; /* Owned; in the order of time. */
	size_t n;
};

struct plan plan_make(uint64_t seed, long seconds);
void plan_print(const struct plan *p, FILE *f);
void plan_done(struct plan *p);

#endif
