/*
 * cmd/anvil-run/fetch.h -- a job of the recorder that reads what subscribers get next, and
 * writes it as the params of run.events, once for all who are at the same point.
 *
 * One fetch sees the store between two changes: what it says of state and log belongs
 * together.
 */
#ifndef CMD_ANVIL_RUN_FETCH_H
#define CMD_ANVIL_RUN_FETCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/buf.h"
#include "lib/record/record.h"

#define FETCH_BATCH_BYTES ((size_t)64 << 10)  /* Of items in one message, or one item.   */
#define FETCH_ITEM_BYTES  ((size_t)128 << 10) /* More than the largest line takes.       */
#define FETCH_BYTES       ((size_t)1 << 20)   /* What one job writes for all its points. */
#define FETCH_POINTS      8                   /* Each with room for an item.             */

struct recorder;

/* One message: text that lacks the number of the subscription and the last brace. */
struct fetch_batch {
	STAILQ_ENTRY(fetch_batch) entry;
	int64_t first,
	    next;        /* Lines [first, next) are in it, or in the gap that it begins with. */
	size_t bytes;    /* Of its items. */
	struct buf text; /* Owned. */
};

/* Where subscribers stand. */
struct fetch_point {
	int64_t from;  /* The line that comes next. */
	size_t budget; /* Bytes of items that somebody there may be sent. */
	STAILQ_HEAD(, fetch_batch) batches;
};

struct fetch;

/* What it found; the batches are in its points. */
struct fetch_result {
	int absent; /* There is no run in the store, or no store. */
	struct record_log log;
	struct buf state; /* As a batch's text; empty unless asked for. */
	int terminal;     /* Only with `state`. */
};

/* ${fn} runs on the loop when it is through, and may look at it until it returns.  ${run_id} is
 * borrowed for good.  NULL: no memory. */
struct fetch *
fetch_new(const char *run_id, void (*fn)(void *arg, struct fetch *f, int err), void *arg);

/* Asks for the state, too. */
void fetch_want_state(struct fetch *f);
/* No message goes across the line ${seq}: the newest state comes before it. */
void fetch_cut_at(struct fetch *f, int64_t seq);
/* One more point, or a larger budget at one; no more than FETCH_POINTS: others wait. */
void fetch_add(struct fetch *f, int64_t from, size_t budget);

/* Takes ${f}. */
void fetch_post(struct fetch *f, struct recorder *rec);

const struct fetch_result *fetch_result(const struct fetch *f);
/* The state's text is the caller's now. */
struct buf fetch_take_state(struct fetch *f);
/* The message that begins with the line ${from}; NULL: none. */
struct fetch_batch *fetch_find(struct fetch *f, int64_t from);

#endif
