/*
 * test/support/run_viewer.h -- somebody who watches the run of a rig.
 *
 * It connects when there is somebody to connect to, and again after a connection was lost; it
 * checks that lines come in order, without a repeat, and with a gap only where one is named.
 */
#ifndef TEST_SUPPORT_RUN_VIEWER_H
#define TEST_SUPPORT_RUN_VIEWER_H

#include "lib/base/buf.h"
#include "test/support/run_rig.h"

struct run_viewer {
	struct run_rig *g;
	struct actor *actor; /* Owned. */
	struct link *link;
	struct rpc_peer *peer; /* While the link is up. */

	/* Set before run_viewer_join(), or whenever. */
	int64_t from;   /* Of the first subscription; 0: null. */
	int silent;     /* Never acknowledges.                 */
	size_t ack_lag; /* Acknowledges when it has so many bytes of chunks more; 0: at once. */

	/* The newest subscription. */
	int64_t subscription; /* 0: not answered. */
	struct run_subscribe_ok answer;
	int err;        /* Of the call. */
	size_t unacked; /* Bytes of chunks. */

	/* What came, over all of them. */
	int64_t first, next; /* Lines [first, next); next 0: nothing yet. */
	struct buf text;     /* All chunks. */
	int nmessages, nsubscriptions, nrefused, nunsubscribed, nstates, ngaps, ended;
	int64_t gap_from, gap_to;    /* The newest. */
	size_t at_first_gap, at_gap; /* Of `text`, that came before them. */
	enum run_status status;      /* Of the newest state. */
	int64_t current_step;        /* The same; 0: null. */
	size_t at_step[21];          /* Of `text`, before a state first named that step. */
	struct buf trail;  /* s, l, g, e: what came, lines that follow each other as one. */
	int64_t waited_ms; /* From the newest line's createdAt until it came. */
};

struct run_viewer *run_viewer_new(struct run_rig *g);
struct run_viewer *run_viewer_free(struct run_viewer *v);

/* Connects, and subscribes as soon as it is connected. */
void run_viewer_join(struct run_viewer *v);
/* Leaves, without a word. */
void run_viewer_leave(struct run_viewer *v);
/* One more subscription over the same connection; events of the earlier ones are passed over
 * from its answer on. */
void run_viewer_subscribe(struct run_viewer *v);
void run_viewer_unsubscribe(struct run_viewer *v);
void run_viewer_ack(struct run_viewer *v);
/* Serves what is ready. */
void run_viewer_step(struct run_viewer *v);

/* 1 when its text is the end of ${all}, or all of it when ${whole}. */
int run_viewer_has(const struct run_viewer *v, const struct buf *all, int whole);

#endif
