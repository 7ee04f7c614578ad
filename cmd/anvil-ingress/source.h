/*
 * cmd/anvil-ingress/source.h -- a connection to the actor of one run for as long as somebody
 * wants it: waited for while the run is queued, woken when it sleeps, made anew when it is lost.
 *
 * runlink.h is for single questions; this is for who stays.
 */
#ifndef CMD_ANVIL_INGRESS_SOURCE_H
#define CMD_ANVIL_INGRESS_SOURCE_H

#include "cmd/anvil-ingress/ingress.h"

struct source;

/* None of them runs from inside a function below. */
struct source_ops {
	/* Calls may be sent over ${peer}, until on_down. */
	void (*on_up)(void *arg, struct rpc_peer *peer);
	void (*on_down)(void *arg);
	/* There is no store of it.  1: look again, 0: that is the end of it. */
	int (*on_absent)(void *arg);
	/* Nobody has answered for SOURCE_PATIENCE_MS; it goes on looking. */
	void (*on_silent)(void *arg);
	/* Whether the run waits in its queue, as far as is known here. */
	int (*is_queued)(void *arg);
};

#define SOURCE_PATIENCE_MS 30000

/* NULL: out of memory.  ${run_id} is copied. */
struct source *
source_new(struct ingress *in, const char *run_id, const struct source_ops *ops, void *arg);
/* Closes; no callback follows.  NULL is fine; NULL back. */
struct source *source_free(struct source *s);

/* Begins to look, unless there is a connection or it looks already. */
void source_want(struct source *s);
/* A connection that gets lost is not made anew. */
void source_rest(struct source *s);
/* The connection is of no use: another one is made after a while.  No on_down follows. */
void source_drop(struct source *s);
/* Something about the run has changed: who looks or waits looks now. */
void source_kick(struct source *s);
/* The connection, borrowed; NULL: there is none now. */
struct rpc_peer *source_peer(const struct source *s);

#endif
