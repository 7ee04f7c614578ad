/*
 * cmd/anvil-ingress/runlink.h -- connections to run actors, woken when they sleep (design 5).
 *
 * A connection is kept for a while after its last use.  It has no reconnect of its own: when a
 * run ends, its process goes, and the next who asks makes the supervisor start another.
 */
#ifndef CMD_ANVIL_INGRESS_RUNLINK_H
#define CMD_ANVIL_INGRESS_RUNLINK_H

#include <sys/queue.h>

#include "cmd/anvil-ingress/ingress.h"

enum runlink_verdict {
	RUNLINK_UP,
	RUNLINK_ABSENT, /* There is no store of this run.        */
	RUNLINK_SILENT, /* Nobody answered in time, or no room. */
};

/* One who waits for a connection; embedded in what it is for. */
struct runlink_want {
	struct ingress *in;
	const char *run_id;
	const char *request_id;
	int64_t deadline_ms;
	/* Runs once, and may run from inside runlink_get().  ${peer}: of RUNLINK_UP; calls go
	 * out at once. */
	void (*done)(struct runlink_want *w, enum runlink_verdict v, struct rpc_peer *peer);
	/* Private. */
	LIST_ENTRY(runlink_want) entry;
	struct actor_timer *timer;
};

void runlink_get(struct runlink_want *w);
/* The actor ends: everybody who waits hears RUNLINK_SILENT. */
void runlink_free_all(struct ingress *in);

#endif
