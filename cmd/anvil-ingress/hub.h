/*
 * cmd/anvil-ingress/hub.h -- one run that is being watched: one subscription for all of its
 * viewers, each message framed once for each transport (http-api 8).
 *
 * The newest lines are kept for each transport that has viewers.  What the run has sent is not
 * acknowledged while even the fastest viewer is far behind, so that the run waits with the rest
 * instead of this process.
 */
#ifndef CMD_ANVIL_INGRESS_HUB_H
#define CMD_ANVIL_INGRESS_HUB_H

#include "cmd/anvil-ingress/source.h"
#include "cmd/anvil-ingress/sub.h"
#include "cmd/anvil-ingress/tail.h"
#include "cmd/anvil-ingress/viewer.h"
#include "lib/base/id.h"

#define HUB_TAIL_BYTES     ((size_t)3 << 20)  /* Of one transport, ...                  */
#define HUB_TAIL_MIN_BYTES ((size_t)2 << 20)  /* ... when many runs are being watched ... */
#define HUB_TAILS_BYTES    ((size_t)32 << 20) /* ... for which this is shared out.      */
#define HUB_HOLD_BYTES     ((size_t)512 << 10)
#define HUB_SETTLE_MS      10000 /* From the ledger's last word to that of the run. */
#define HUB_AGAIN_MS       200   /* After a subscription that came to nothing.      */

struct run_row;

/* Viewers of one transport. */
struct channel {
	struct tail *tail; /* Owned; NULL: nobody watches by it, or there is no log yet. */
	int from_start;    /* The tail began with the oldest line that was hot.          */
	TAILQ_HEAD(, viewer) viewers;
	struct http_blob *state; /* Owned: the frame of version `framed`. */
	uint64_t framed;
};

struct hub {
	uint32_t magic;
#define HUB_MAGIC 0x6b8f02d5
	struct ingress *in;
	char run_id[ID_SIZE];
	struct source *source; /* Owned. */
	struct sub live;
	struct channel channels[MESSAGE_FORMATS];
	size_t nviewers;
	TAILQ_HEAD(, replay) replays;
	/* The log, as far as it has come. */
	int anchored;    /* It is known where it begins.                      */
	int64_t from;    /* Where its first viewers want to begin; 0: at what is hot. */
	int64_t asked;   /* Where the subscription has begun; the same.      */
	int64_t next;    /* Line that comes next.                             */
	int64_t end_seq; /* Line behind all that are known to be there.       */
	int64_t acked;
	/* The newest state. */
	struct buf state; /* Text of its message. */
	uint64_t version; /* 0: none yet.         */
	int64_t state_at; /* Lines before this one come before it. */
	int ended;        /* It is the last one.                   */
	int gone;         /* There is no log.                      */
	/* The row of ledger or index, for a run that cannot speak for itself. */
	struct arena *arena; /* Owned. */
	struct run_row row;
	int of_ledger;          /* It may not be in the index yet.        */
	struct mono_time heard; /* When something came from the run last. */
	/* Timers, owned. */
	struct actor_timer *reaper; /* Nobody watches any more.            */
	struct actor_timer *judge;  /* Somebody is too far behind.         */
	struct actor_timer *settle; /* The run has ended and does not say. */
	struct actor_timer *again;  /* Replays that failed are tried anew. */
};

/* The hub of a run that somebody begins to watch.  NULL: out of memory. */
struct hub *hub_get(struct ingress *in, const struct run_known *k);
/* ${v} has been put among the viewers of its channel, or taken from them. */
void hub_on_join(struct hub *h, struct viewer *v);
void hub_on_leave(struct hub *h, struct viewer *v);
/* Somebody has taken something: the run may go on. */
void hub_on_progress(struct hub *h);
/* Somebody is too far behind. */
void hub_on_lag(struct hub *h);
/* Frame of the newest state in that format, borrowed; NULL: out of memory. */
struct http_blob *hub_state_frame(struct hub *h, enum message_format f);
/* Everybody is sent away. */
void hub_end_all(struct hub *h, enum viewer_end why);

void hub_free_all(struct ingress *in);
size_t hub_count_viewers(const struct ingress *in);

#endif
