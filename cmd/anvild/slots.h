/*
 * cmd/anvild/slots.h -- run slots: who may be forked now, who waits, and why.
 *
 * Pure bookkeeping without processes or clocks of its own.  The queue is a hint: a shard
 * asks again for whatever it still wants (spec project 12, 18).
 */
#ifndef CMD_ANVILD_SLOTS_H
#define CMD_ANVILD_SLOTS_H

#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"

/* A pool is unhealthy after this many failed spawns or claims in a row. */
#define SLOTS_UNHEALTHY_AFTER 5
#define SLOTS_TRY_MAX_MS      30000

enum slot_wait {
	SLOT_FREE, /* fork now */
	SLOT_NONE_FREE,
	SLOT_DRAINING,
	SLOT_LOW_DISK,
	SLOT_UNHEALTHY,
	SLOT_STORAGE,
};

struct slot_request {
	TAILQ_ENTRY(slot_request) entry;
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
	int64_t shard;
	int64_t attempt;
	int64_t queued_at_ms; /* order of the queue, from the shard */
};

TAILQ_HEAD(slot_queue, slot_request);

struct slots {
	int64_t max;             /* runs.max_concurrent                            */
	int64_t live;            /* runners that exist                             */
	struct slot_queue queue; /* ascending queued_at_ms, one entry per run      */
	size_t nqueued;
	int draining;              /* `anvilctl drain`                               */
	int low_disk;              /* less than runs.min_free_bytes                  */
	int failures;              /* failed spawns and claims in a row              */
	struct mono_time next_try; /* while unhealthy: when one may be tried again  */
	int trying;                /* while unhealthy: one is being tried           */
};

void slots_init(struct slots *s, int64_t max);
void slots_done(struct slots *s);

/* Whether a runner may be forked now. */
enum slot_wait slots_check(const struct slots *s, struct mono_time now);

/* Queues a copy of ${req}, or brings the entry of the same run up to date.
 * *ret_ahead: how many stand before it.  0 or E_NOMEM. */
int slots_wait(struct slots *s, const struct slot_request *req, int64_t *ret_ahead);

/* Takes ${run_id} out of the queue; 1 when it was there. */
int slots_drop(struct slots *s, const char *run_id);

/* First of the queue when it may run now, taken out, the caller frees; else NULL. */
struct slot_request *slots_take(struct slots *s, struct mono_time now);

/* A runner was forked: 1 when it is the one that an unhealthy pool tries; until it is over
 * there is no other. */
int slots_begin_trial(struct slots *s);
void slots_trial_over(struct slots *s);
/* A runner was forked and has claimed: the pool is well. */
void slots_note_success(struct slots *s);
/* A fork failed or a runner ended without a claim.  1 when the pool just became unhealthy. */
int slots_note_failure(struct slots *s, struct mono_time now);
int slots_unhealthy(const struct slots *s);

/* Word of the contract for a reason to wait: no_slot, draining, low_disk, … */
const char *slot_wait_name(enum slot_wait why);

#endif
