/*
 * test/bench/web.h -- HTTP as a client: one request after the other, and a flood over many
 * connections at once.
 */
#ifndef TEST_BENCH_WEB_H
#define TEST_BENCH_WEB_H

#include <stddef.h>

#include "lib/base/buf.h"

#define WEB_STEP_US 20
#define WEB_STEPS   10000

struct web {
	int fd;
	int port;
	struct buf in;
	struct buf body; /* Of the newest answer; a NUL follows it. */
};

/* -1: nobody listens. */
int web_open(struct web *w, int port);
void web_close(struct web *w);
/* Status of the answer, or -1 when the connection broke (it is closed then).  ${session} may be
 * NULL, ${json} too. */
int web_call(
    struct web *w, const char *method, const char *path, const char *session, const char *json);
/* The text of member ${name}, wherever it stands first in the newest body; 0 or -1. */
int web_member(const struct web *w, const char *name, char *out, size_t size);

/* A request of a flood as text, whole; NULL ends the flood. */
typedef const char *web_next_fn(void *arg, size_t *ret_n);

struct web_flood {
	int port;
	int nconns;
	web_next_fn *next;
	void *arg;
	int wanted; /* Status. */
	/* What came of it. */
	long done, refused;
	double us;
	int odd; /* The newest status that was not wanted. */
	/* From a request's last byte to its answer's, in steps of WEB_STEP_US; the last one has
	 * all that took longer. */
	unsigned long slow[WEB_STEPS];
};

/* Microseconds within which ${share} (0..1) of the answers came. */
double web_latency_us(const struct web_flood *f, double share);

/* Sends until there is no next and all answers have come.  0, or -1 when a connection broke. */
int web_flood(struct web_flood *f);

#endif
