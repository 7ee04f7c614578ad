/*
 * cmd/anvil-ingress/replay.h -- lines that the tail of a hub does not have, read from the run for
 * those who are behind it.
 *
 * A replay is a subscription that is ended as soon as it has brought so much: slow viewers hold
 * no place at the run, and those at the same line share one.
 */
#ifndef CMD_ANVIL_INGRESS_REPLAY_H
#define CMD_ANVIL_INGRESS_REPLAY_H

#include "cmd/anvil-ingress/sub.h"
#include "cmd/anvil-ingress/viewer.h"

#define REPLAY_BYTES ((size_t)512 << 10) /* One brings that much, and a message more. */
#define REPLAY_MAX   8                   /* At one run at a time.                     */

struct hub;

struct replay {
	TAILQ_ENTRY(replay) entry;
	struct hub *hub;
	enum message_format format;
	int64_t next; /* 0: whatever is hot. */
	int64_t end;  /* Line behind those that were there. */
	size_t bytes;
	struct sub sub;
	TAILQ_HEAD(, viewer) viewers;
};

/* ${v} is VIEWER_BEHIND and has room.  0 or E_NOMEM. */
int replay_join(struct viewer *v);
void replay_leave(struct viewer *v);
/* The run can be asked: starts what waits. */
void replays_go_on(struct hub *h);
/* The connection has gone: they wait for another. */
void replays_stop(struct hub *h);
/* Events of a subscription: 1 when it is a replay's. */
int replays_take(struct hub *h, const struct rpc_peer *peer, int64_t id,
    const struct run_item *items, size_t n);

#endif
