/*
 * cmd/anvil-ingress/links.h -- connections to shards and supervisor, and calls over them.
 *
 * A call to a shard follows a project that has moved, waits while it is being moved, and says
 * in the words of the HTTP API why it could not be answered (http-api 2.7).
 */
#ifndef CMD_ANVIL_INGRESS_LINKS_H
#define CMD_ANVIL_INGRESS_LINKS_H

#include <sys/queue.h>

#include "cmd/anvil-ingress/ingress.h"
#include "gen/http.h"

/* Opens links until there are ${nshards} of them to shards.  0 or E_NOMEM. */
int links_open(struct ingress *in, size_t nshards);
/* Borrowed; NULL: it is not there now. */
struct rpc_peer *links_shard(const struct ingress *in, int64_t shard);
struct rpc_peer *links_supervisor(const struct ingress *in);

/* One call to the shard of a project, embedded in what it is made for.  The owner fills the
 * first part, starts it, and hears either through the callback of the call that `send` makes
 * or through `failed`; the latter may run from inside any of these functions. */
struct shard_call {
	struct ingress *in;
	int64_t shard;
	int64_t deadline_ms;
	int repeats;            /* 1: an unanswered call is made anew, after 50 and 250 ms. */
	const char *request_id; /* Borrowed for as long as the call is under way. */
	/* Sends it: what the generated function returns. */
	int (*send)(
	    struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts);
	/* It has no answer.  ${sent}: it may have had its effect. */
	void (*failed)(struct shard_call *c, enum http_code why, int sent);
	/* Private. */
	LIST_ENTRY(shard_call) entry;
	struct actor_timer *timer;
	struct mono_time until, moving_until;
	int attempts, hops;
	int sent;
	int under_way;
};

void shard_call_start(struct shard_call *c);
/* In that callback.  `done`: it was answered. */
void shard_call_done(struct shard_call *c);
/* Its error: repeats the call, or fails it. */
void shard_call_error(struct shard_call *c, int err);
void shard_call_moved(struct shard_call *c, int64_t shard);
void shard_call_moving(struct shard_call *c, int64_t retry_ms);
/* The actor ends: calls that wait for a timer fail now. */
void links_fail_all(struct ingress *in);

#endif
