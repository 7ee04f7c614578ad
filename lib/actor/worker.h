/*
 * lib/actor/worker.h -- slow work off the loop: hashing, compression, long reads.
 */
#ifndef LIB_ACTOR_WORKER_H
#define LIB_ACTOR_WORKER_H

#include <stddef.h>

#define WORKER_QUEUE_MAX   64 /* Waiting jobs; more are E_OVERLOADED.    */
#define WORKER_THREADS_MAX 4
#define WORKER_STACK_BYTES (128 * 1024) /* Jobs keep big things on the heap. */

struct actor;

/* ${work}(arg) runs on a thread and touches nothing but ${arg}; then ${done}(arg, 0) runs on
 * the loop.  Jobs start in order.  When the actor ends first, ${done}(arg, E_CANCELED) runs
 * for jobs that have not started.  0, then ${done} runs exactly once and later; or
 * E_OVERLOADED, E_DRAINING, E_NOMEM, E_SYS, and neither runs.  The request id of the log goes
 * along. */
int actor_work(
    struct actor *a, void (*work)(void *arg), void (*done)(void *arg, int err), void *arg);
/* The same on a thread of its own, for what takes minutes: such jobs run one after the other,
 * and those of actor_work() go on meanwhile. */
int actor_work_aside(
    struct actor *a, void (*work)(void *arg), void (*done)(void *arg, int err), void *arg);
/* Jobs waiting or running, of both kinds. */
size_t actor_nwork(const struct actor *a);

#endif
