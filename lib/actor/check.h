/*
 * lib/actor/check.h -- actor.check: an actor looks at its own store, and mends what is safe.
 *
 * Reading is a worker's, by a connection of its own and as of one moment, so that the loop
 * never waits for it.  What memory knows, and what is mended, comes in a turn afterwards.
 */
#ifndef LIB_ACTOR_CHECK_H
#define LIB_ACTOR_CHECK_H

#include <stdint.h>

#include "lib/actor/turn.h"
#include "lib/store/check.h"

/* Each may be NULL. */
struct actor_check {
	/* On a worker: adds what is wrong in the store (or, see below, in what ${place} names).
	 * 0 or E_NOMEM. */
	int (*look)(const char *place, int64_t now_ms, struct store_problems *ret);
	/* What look() is given; NULL: the path of the actor's store.  Copied. */
	const char *(*place)(void *ctx);
	/* On the loop, in a turn: adds what rows and memory say differently.  0 or an error. */
	int (*compare)(void *ctx, struct turn *t, struct store_problems *ret);
	/* In a write turn, for each that is mendable: looks again, and when it still is so, mends it
	 * and sets `mended`; both are events of the log.  0 or an error. */
	int (*mend)(void *ctx, struct turn *t, struct store_problem *p);
};

#endif
