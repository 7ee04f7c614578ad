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
#include "lib/store/store.h"

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

/* The form --check of a program: looks at the store in ${path} while nobody has it, which
 * ${lock_path} says, and prints one JSON object, {"store", "version", "ok", "problems": [{code,
 * subject, text, mendable}]}, with ${more} (",\"projects\":[...]", or "") behind it; what is wrong
 * goes to standard error as well, a line each that begins with ${program}.  The exit status: 0, 1
 * when something is wrong, 75 when an actor has it open. */
struct actor_store_check {
	const char *program, *store, *path, *lock_path, *more;
	int (*look)(const char *place, int64_t now_ms, struct store_problems *ret);
};
int actor_check_store(const struct actor_store_check *what);

#endif
