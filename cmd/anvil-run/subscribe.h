/*
 * cmd/anvil-run/subscribe.h -- who watches this run, and what each has been sent
 * (spec run 14, Subscription).
 *
 * A subscriber gets, over the connection on which it asked: the state; the lines from where it
 * began, a gap first for those that are no longer hot; the state again behind the replay; then
 * lines as they are stored, and each new state behind the lines that were stored before it;
 * the end behind a terminal state.  All of it is read back from the store by the recorder's
 * thread (fetch.h): nothing is queued for one that does not take it.  States that follow each
 * other while a subscriber is behind are told as one, the newest.
 *
 * Sending stops at WINDOW_BYTES that are not acknowledged, and while the connection has
 * SUBSCRIBE_QUEUE_BYTES that the socket does not take.
 */
#ifndef CMD_ANVIL_RUN_SUBSCRIBE_H
#define CMD_ANVIL_RUN_SUBSCRIBE_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvil-run/recorder.h"
#include "lib/base/base.h"

#define SUBSCRIBERS_MAX       256
#define SUBSCRIBE_QUEUE_BYTES ((size_t)4 << 20)

struct rpc_peer;
struct run_actor;
struct subscribers;
struct turn;

/* NULL: no memory. */
struct subscribers *subscribers_new(struct run_actor *r);
/* After the recorder: jobs of it point here. */
struct subscribers *subscribers_free(struct subscribers *s);

/* The caller of ${t} wants lines from ${from_seq} on; 0: all that are hot.  TURN_PARKED, then
 * it is answered from the store; E_OVERLOADED, E_NOMEM. */
int subscribers_add(struct subscribers *s, struct turn *t, int64_t from_seq);
/* Of ${p}'s own subscriptions; numbers that are none of these are ignored. */
void subscribers_ack(struct subscribers *s, const struct rpc_peer *p, int64_t id, int64_t seq);
void subscribers_remove(struct subscribers *s, const struct rpc_peer *p, int64_t id);
/* The connection has gone, and all of its subscriptions with it. */
void subscribers_forget(struct subscribers *s, const struct rpc_peer *p);

/* Something has been stored: lines perhaps, with JOB_STATE a state. */
void subscribers_stored(struct subscribers *s, enum job_kind kind);

size_t subscribers_count(const struct subscribers *s);
/* 1 when everybody has what there is, as far as this side can tell. */
int subscribers_are_served(const struct subscribers *s);

#endif
