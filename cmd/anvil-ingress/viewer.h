/*
 * cmd/anvil-ingress/viewer.h -- somebody who watches a run, whatever the transport (http-api 8).
 *
 * A viewer has a place in the log of its run and takes what comes next at its own pace: no more
 * than VIEWER_UNSENT_BYTES are handed to its connection, the rest stays in the hub, shared by
 * all.  Once it has caught up, it may fall behind by VIEWER_BEHIND_BYTES, for a moment by more.
 */
#ifndef CMD_ANVIL_INGRESS_VIEWER_H
#define CMD_ANVIL_INGRESS_VIEWER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cmd/anvil-ingress/message.h"
#include "cmd/anvil-ingress/run_find.h"

#define VIEWER_UNSENT_BYTES ((size_t)512 << 10)
#define VIEWER_BEHIND_BYTES ((size_t)1 << 20)
#define VIEWER_GRACE_MS     250

struct hub;
struct replay;
struct viewer;

enum viewer_end {
	VIEWER_RUN_FINISHED,
	VIEWER_RESTARTING,
	VIEWER_USER_DISABLED,
	VIEWER_INTERNAL_ERROR,
	VIEWER_SLOW_CONSUMER,
};

/* "run_finished"... */
const char *viewer_end_word(enum viewer_end why);

/* What a transport does.  None of it may call a viewer_*() function, but for
 * viewer_end_word(). */
struct viewer_ops {
	enum message_format format;
	/* 0, or an error: it is gone, and its transport tells. */
	int (*send)(struct viewer *v, struct http_blob *b);
	size_t (*unsent)(const struct viewer *v);
	/* viewer_on_room() once no more than ${low} bytes are unsent, from the loop. */
	void (*want)(struct viewer *v, size_t low);
	/* It has left its hub: the connection is to be ended. */
	void (*end)(struct viewer *v, enum viewer_end why);
	/* Of MESSAGE_TEXT: what it needs next is not here; viewer_move() when it is. */
	void (*behind)(struct viewer *v);
};

enum viewer_place {
	VIEWER_AWAY,   /* Its hub does not know yet where to begin, or it reads elsewhere. */
	VIEWER_TAIL,   /* In the tail, at `index`.                                         */
	VIEWER_BEHIND, /* Before the tail.                                                 */
	VIEWER_REPLAY, /* ... and has asked the run for what is missing.                   */
};

/* Embedded in what a transport keeps. */
struct viewer {
	/* Set by the transport. */
	const struct viewer_ops *ops;
	struct exchange *x; /* Whose request it is. */
	/* Private. */
	struct hub *hub; /* NULL: in none. */
	TAILQ_ENTRY(viewer) entry;
	enum viewer_place place;
	int64_t from; /* As asked; 0: whatever is hot.             */
	int64_t next; /* Line that comes next; 0: not known.       */
	uint64_t index;
	int64_t replay_end;          /* Line behind those that were there.   */
	int replayed;                /* It has been told a state behind them. */
	int caught_up;               /* It has had all that there was, once.  */
	int dead;                    /* A send has failed.                    */
	int wanting;                 /* It waits for room.                    */
	uint64_t told;               /* Version of the state that it has; 0: none. */
	struct mono_time over_since; /* Too far behind; 0: it is not.     */
	struct mono_time last;       /* Newest message.                   */
	struct actor_timer *timer;   /* Owned: for a sign of life.        */
	struct replay *replay;       /* Of VIEWER_REPLAY.                 */
	TAILQ_ENTRY(viewer) replay_entry;
};

/* Begins to watch the run of ${k} at the line ${from}, or at the oldest that is hot (0).  A
 * viewer of text is `behind` until it is moved.  0 or E_NOMEM. */
int viewer_join(struct viewer *v, struct ingress *in, const struct run_known *k, int64_t from);
/* Its connection has gone.  Fine for one that is in no hub. */
void viewer_leave(struct viewer *v);
/* Leaves, and ends the connection. */
void viewer_end(struct viewer *v, enum viewer_end why);
/* As its transport promised. */
void viewer_on_room(struct viewer *v);
/* Of MESSAGE_TEXT: it goes on at the line ${seq}.  0; E_NOENT: that one is not here. */
int viewer_move(struct viewer *v, int64_t seq);

/* All viewers of that user, of all runs. */
void viewers_expel(struct ingress *in, const char *user_id);
/* The same, as if this process began anew: who may see a run still comes back to it. */
void viewers_ask_again(struct ingress *in, const char *user_id);

/* ---- for the hub ---- */

/* The hub knows where its log begins and ends: finds the viewer's place in it. */
void viewer_anchor(struct viewer *v);
/* Sends what there is for it, as far as it has room. */
void viewer_fill(struct viewer *v);
/* The tail has been cut. */
void viewer_on_trim(struct viewer *v);
/* A replay has brought it to v->next, or nowhere. */
void viewer_on_replayed(struct viewer *v);
/* Bytes that it has not taken, in the tail and on its connection; SIZE_MAX: it is not in the
 * tail. */
size_t viewer_backlog(const struct viewer *v);
/* Of who is too far behind, ends it when that has lasted too long, or tells the hub to ask for
 * another judgement. */
void viewer_judge(struct viewer *v);

#endif
