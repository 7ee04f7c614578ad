/*
 * test/bench/crowd.h -- many who watch one run over WebSockets, in one loop.
 *
 * They share the machine with what is measured and cost it as little as they can: of each
 * message only the beginning is read, the rest is thrown away by the kernel.  One that counts
 * text reads everything.
 */
#ifndef TEST_BENCH_CROWD_H
#define TEST_BENCH_CROWD_H

#include <stddef.h>
#include <stdint.h>

#include "test/bench/web.h"

#define CROWD_STEP_US 100
#define CROWD_STEPS   200000

enum crowd_kind {
	CROWD_GLANCES, /* Takes in everything, reads the beginnings.       */
	CROWD_READS,   /* Counts the text of the log, too.                 */
	CROWD_STALLS,  /* Takes in nothing at all, and has little room.    */
};

struct crowd_viewer {
	int fd; /* -1: it has been closed. */
	enum crowd_kind kind;
	uint8_t *in; /* Owned; not yet understood. */
	size_t n, cap;
	int up;         /* The head of the answer has gone by.     */
	uint64_t left;  /* Of the message that is under way, ...   */
	int in_log;     /* ... which is a line; ...                */
	double said_us; /* ... the first time in it; 0: none.      */
	/* What came. */
	long logs, states, gaps;
	int64_t next;             /* Line that comes next; 0: none yet.       */
	int64_t gap_lines;        /* That gaps stood for.                     */
	int64_t text_bytes;       /* Of CROWD_READS.                          */
	double first_us, last_us; /* When the first and the last line came.   */
	double lag_us;            /* The oldest that a message was when all of it was here. */
	int code;                 /* Of the close frame; 0: none.             */
};

struct crowd {
	int ep;
	int port;
	size_t n, nopen, max;
	struct crowd_viewer *viewers; /* Owned. */
	unsigned long
	    lags[CROWD_STEPS]; /* Messages, by lag in steps; the last has all above. */
	unsigned long nlags;
};

/* Room for ${max} of them. */
void crowd_init(struct crowd *c, size_t max);
/* One more, of the run; ${w} is used for its ticket.  ${from} 0: from whatever there is. */
void crowd_join(struct crowd *c, struct web *w, const char *session, const char *run,
    enum crowd_kind kind, int64_t from);
/* Takes in what comes within ${ms}; how many there are still, but for those that stall. */
size_t crowd_watch(struct crowd *c, int ms);
/* All from ${first} on stall from now on; none does any more. */
void crowd_stall(struct crowd *c, size_t first);
void crowd_wake(struct crowd *c);
void crowd_done(struct crowd *c);
/* Milliseconds within which ${share} (0..1) of the messages came. */
double crowd_lag_ms(const struct crowd *c, double share);

#endif
