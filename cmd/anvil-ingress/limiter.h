/*
 * cmd/anvil-ingress/limiter.h -- how often something may be tried in 60 s (http-api 1.2, 14).
 *
 * In memory, on the monotonic clock.  The window of a key begins with its first attempt; every
 * attempt counts, refused ones too.
 */
#ifndef CMD_ANVIL_INGRESS_LIMITER_H
#define CMD_ANVIL_INGRESS_LIMITER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"

#define LIMITER_WINDOW_MS 60000
#define LIMITER_KEYS_MAX  100000

struct limiter;

/* ${max} attempts of a key in its window are let through (0: no limit), ${max_keys} keys are
 * remembered; beyond that the window that began first is forgotten. */
struct limiter *limiter_new(int64_t max, size_t max_keys);
/* What counts from now on; windows that have begun go on. */
void limiter_set_max(struct limiter *l, int64_t max);
struct limiter *limiter_free(struct limiter *l);
DEFINE_CLEANUP(struct limiter *, limiter_free)

/* Counts one attempt: 1 it may go on, 0 it is one too many, E_NOMEM. */
int limiter_try(struct limiter *l, const char *key, struct mono_time now);
/* 1 when the newest attempt of ${key} was the first one too many of its window: what is worth
 * a line in the log, which a flood must not fill. */
int limiter_just_full(const struct limiter *l, const char *key);
size_t limiter_nkeys(const struct limiter *l);

#endif
