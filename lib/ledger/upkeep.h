/*
 * lib/ledger/upkeep.h -- deadlines, repairs, retention, history (spec project 15, 16).
 */
#ifndef LIB_LEDGER_UPKEEP_H
#define LIB_LEDGER_UPKEEP_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;

#define LEDGER_KEPT_MS    (7 * INT64_C(86400000)) /* a run's row, after it is done */
#define LEDGER_PRUNE_ROWS 100

/* The earliest stored retry, of dispatch or index; INT64_MAX: none. */
int ledger_next_deadline(struct store *s, int64_t *ret_at);
/* Cuts deadlines that lie further ahead than the longest delay of their kind: the clock was
 * set back. */
int ledger_clamp_deadlines(struct store *s, int64_t now_ms);

/* Live projects with queued runs and no head: a breach, to be promoted. */
int ledger_headless(
    struct store *s, struct arena *a, size_t limit, const char ***ret, size_t *ret_n);
/* Removes rows long done; *ret_n of them. */
int ledger_prune(struct store *s, int64_t now_ms, int64_t *ret_n);

struct ledger_event {
	int64_t seq; /* grows by 1 with each event of the run */
	int64_t at;
	const char *event;
	const char *detail; /* JSON */
};
#define LEDGER_EVENTS_KEPT 64
/* ${detail}: a JSON object of at most 1,024 bytes. */
int ledger_event_add(
    struct store *s, const char *run_id, int64_t at, const char *event, const char *detail);
/* The same whose detail is one member with a text, cut to what fits. */
int ledger_event_text(struct store *s, const char *run_id, int64_t at, const char *event,
    const char *name, const char *value);
int ledger_events(struct store *s, struct arena *a, const char *run_id,
    struct ledger_event **ret, size_t *ret_n);

#endif
