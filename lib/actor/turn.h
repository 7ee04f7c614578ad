/*
 * lib/actor/turn.h -- one message, one savepoint, one scratch lifetime (design 3).
 *
 * All turns of one round of the loop share a write transaction; what they promise to others
 * (replies, effects) leaves after its one commit, in the order of the turns.  A handler never
 * commits, never writes to a socket, and keeps nothing of its request.
 */
#ifndef LIB_ACTOR_TURN_H
#define LIB_ACTOR_TURN_H

#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/store/store.h"
#include "lib/wire/wire.h"

#define TURN_PARKED       1    /* A handler's way to say: the reply comes later.   */
#define TURN_MESSAGE_SIZE 200  /* Of an error, for people.                         */
#define ACTOR_BATCH_TURNS 256  /* A batch commits at the end of the loop's round, ... */
#define ACTOR_BATCH_US    4000 /* ... or when it holds so many turns or lasts so long. */

struct actor;
struct method_entry;
struct parked;

/* What a handler may use; all of it is gone when the handler returns. */
struct turn {
	struct actor *actor;
	struct store *store;             /* NULL: the actor has none.            */
	struct arena *arena;             /* Results may point into it.           */
	int64_t now_ms;                  /* Wall clock, the same for the turn.   */
	const char *request_id;          /* "" when none.                        */
	const char *from;                /* Address of the caller, "" inside.    */
	uint32_t from_role;              /* ROLE_*; 0: an internal turn.         */
	struct rpc_peer *peer;           /* The caller; NULL: an internal turn.  */
	const struct rpc_method *method; /* NULL: an internal turn.              */
	int64_t deadline_ms;             /* What is left to the caller; 0: none. */
	/* Not for handlers. */
	struct rpc_request *request; /* NULL once it is parked. */
	struct method_entry *entry;
	char message[TURN_MESSAGE_SIZE];
};

/* Returns ${err} and sets the text that goes with it:  return turn_fail(t, E_ILLEGAL, "..."); */
int turn_fail(struct turn *t, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* An effect: ${fn}(arg) runs when this turn's writes are on disk, in order with the others
 * and with the replies.  When they are lost or the handler fails, ${drop}(arg) runs instead
 * (NULL: nothing to release).  Without an open transaction it runs when the handler is
 * through.  0, or E_NOMEM: then neither runs, ${arg} is still the caller's. */
int
turn_after_commit(struct turn *t, void (*fn)(void *arg), void *arg, void (*drop)(void *arg));

/* Keeps the caller waiting; the handler then returns TURN_PARKED.  NULL: out of memory.
 * The handle stays valid until exactly one of the three below is called, whatever happens
 * to the connection or the batch.  They may be called inside a turn (the reply then shares
 * its fate: an error of the turn or of the batch goes out instead) or outside. */
struct parked *turn_park(struct turn *t) WARN_UNUSED;
/* ${result} is the method's result struct, encoded before this returns. */
void parked_reply(struct parked *p, const void *result);
/* ${message} NULL: err_text(err). */
void parked_error(struct parked *p, int err, const char *message);
/* E_CANCELED to a caller who is still waiting. */
static inline void
parked_drop(struct parked *p)
{
	parked_error(p, E_CANCELED, NULL);
}
/* 1 while somebody is there to receive the answer. */
int parked_is_wanted(const struct parked *p);

/* An internal turn: of a timer, of the answer to a call, of a worker's result.  ${fn} returns
 * 0, or an error: its writes are undone.  Returns what ${fn} returned, or E_STORAGE; what has
 * to wait for the disk is an effect.  Never from inside another turn. */
int actor_turn(struct actor *a, int write, int (*fn)(void *arg, struct turn *t), void *arg);
/* The same for the sake of ${request_id}, which stands in the log lines meanwhile. */
int actor_turn_for(struct actor *a, int write, const char *request_id,
    int (*fn)(void *arg, struct turn *t), void *arg);

#endif
