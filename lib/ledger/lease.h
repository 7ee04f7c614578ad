/*
 * lib/ledger/lease.h -- what the process of a run may do with its row (spec project 6, 7, 9,
 * 11).
 *
 * Every function but the claim takes the lease and answers `lost` when it is not current.
 */
#ifndef LIB_LEDGER_LEASE_H
#define LIB_LEDGER_LEASE_H

#include "lib/ledger/queue.h"
#include "lib/ledger/run.h"

#define LEDGER_LEASE_MS     30000
#define LEDGER_HEARTBEAT_MS 5000

enum ledger_stale {
	LEDGER_STALE_RUN_MISSING,
	LEDGER_STALE_CANCELED,
	LEDGER_STALE_RUN_ACTIVE,
	LEDGER_STALE_ALREADY_TERMINAL,
	LEDGER_STALE_SUPERSEDED,
	LEDGER_STALE_NOT_CURRENTLY_EXECUTABLE,
};
const char *ledger_stale_name(enum ledger_stale r);

enum ledger_lost {
	LEDGER_LOST_RUN_MISSING,
	LEDGER_LOST_TAKEN_OVER,
	LEDGER_LOST_RELEASED,
	LEDGER_LOST_TERMINAL,
};
const char *ledger_lost_name(enum ledger_lost r);

struct ledger_claim {
	int claimed; /* else stale                        */
	int again;   /* the same process, its reply lost  */
	enum ledger_stale stale;
	struct ledger_run run; /* claimed: the row after it         */
};
int ledger_claim_run(struct store *s, struct arena *a, const char *run_id, const char *spawn_id,
    int64_t now_ms, struct ledger_claim *ret);

/* How a call that names a lease ended. */
struct ledger_held {
	int lost;
	enum ledger_lost reason;
	struct ledger_run run; /* not lost: the row after it */
};

/* A report that brings nothing new writes nothing: the expiry that counts is in memory, the
 * stored one goes along with other changes. */
int ledger_heartbeat(const struct ledger_at *at, const char *run_id, const char *lease_id,
    enum ledger_public status, int64_t started_at, struct ledger_held *ret);
/* Whether the lease is current; reads only. */
int ledger_check_lease(struct store *s, struct arena *a, const char *run_id,
    const char *lease_id, struct ledger_held *ret);

/* *ret_conflict: another commit is recorded, nothing was changed. */
int ledger_record_commit(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const char *commit_sha, struct ledger_held *ret, int *ret_conflict);

enum ledger_released {
	LEDGER_RELEASED,
	LEDGER_REFUSED_CANCEL_REQUESTED,
	LEDGER_REFUSED_STARTED,
	LEDGER_RELEASE_LOST,
};
int ledger_release_run(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const char *reason, enum ledger_released *ret, enum ledger_lost *ret_lost);

/* The end of a run as its own store has it. */
struct ledger_end {
	enum ledger_state state; /* a terminal one */
	int64_t started_at;      /* 0: null        */
	int64_t finished_at;
	int has_exit_code;
	int64_t exit_code;
	const char *failure_code, *error_message;
};

/* 1 when the values are what a row of that state has (spec project 1): `passed` 0 alone, `failed`
 * a code of each kind and a message, `canceled` only its failure code. */
int ledger_end_is_whole(const struct ledger_end *e);

enum ledger_settled {
	LEDGER_SETTLED, /* now, or before with the same lease and state */
	LEDGER_SETTLE_CONFLICT,
	LEDGER_SETTLE_LOST,
};
struct ledger_settlement {
	enum ledger_settled kind;
	int again; /* a repeat */
	enum ledger_lost lost;
	struct ledger_run run;
	struct ledger_promoted promoted;
};
int
ledger_finalize_run(struct store *s, struct arena *a, const char *run_id, const char *lease_id,
    const struct ledger_end *e, int64_t now_ms, struct ledger_settlement *ret);

/* The runner's process is gone: ${e} (from its store, or made up) becomes the row's end.
 * *ret_done 0: the lease is not ${lease_id} any more, nothing was changed. */
int ledger_take_over(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const struct ledger_end *e, const char *how, int *ret_done,
    struct ledger_promoted *ret_promoted);

#endif
