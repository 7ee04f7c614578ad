/*
 * lib/actor/timer.h -- timers and descriptors on an actor's loop.
 *
 * Callbacks run from the loop, outside of any turn: a change of the store is an actor_turn().
 * Freeing one inside its own callback is fine.
 */
#ifndef LIB_ACTOR_TIMER_H
#define LIB_ACTOR_TIMER_H

#include <stdint.h>

#include "lib/base/base.h"

struct actor;
struct actor_timer;
struct actor_watch;

/* Not running yet.  NULL: no memory. */
struct actor_timer *actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg);
/* NULL is fine; always NULL back. */
struct actor_timer *actor_timer_free(struct actor_timer *t);
DEFINE_CLEANUP(struct actor_timer *, actor_timer_free)
/* Fires once, ${ms} from now; an earlier setting is forgotten.  0 or E_NOMEM. */
int actor_timer_set(struct actor_timer *t, int64_t ms);
void actor_timer_stop(struct actor_timer *t);
int actor_timer_is_set(const struct actor_timer *t);

enum watch_what { WATCH_READ = 1, WATCH_WRITE = 2 };

/* Calls ${fn} whenever ${fd} is ready, as long as it is; ${fd} stays the caller's, who frees
 * the watch before closing it.  Pipes, sockets, pidfds.  NULL: no memory. */
struct actor_watch *actor_watch_new(struct actor *a, int fd, enum watch_what what,
    void (*fn)(void *arg, int fd, enum watch_what what), void *arg);
struct actor_watch *actor_watch_free(struct actor_watch *w);
DEFINE_CLEANUP(struct actor_watch *, actor_watch_free)
/* Without being freed: off and on again. */
void actor_watch_pause(struct actor_watch *w);
int actor_watch_resume(struct actor_watch *w);

#endif
