/*
 * lib/ledger/run.h -- one accepted run, as its row has it (spec project 1).
 */
#ifndef LIB_LEDGER_RUN_H
#define LIB_LEDGER_RUN_H

#include <stdint.h>

struct arena;
struct store;

enum ledger_state {
	LEDGER_PENDING,
	LEDGER_EXECUTABLE,
	LEDGER_ACTIVE,
	LEDGER_CANCEL_REQUESTED,
	LEDGER_PASSED,
	LEDGER_FAILED,
	LEDGER_CANCELED,
};

/* What users see. */
enum ledger_public {
	LEDGER_PUBLIC_QUEUED,
	LEDGER_PUBLIC_STARTING,
	LEDGER_PUBLIC_RUNNING,
	LEDGER_PUBLIC_CANCEL_REQUESTED,
	LEDGER_PUBLIC_CANCELING,
	LEDGER_PUBLIC_PASSED,
	LEDGER_PUBLIC_FAILED,
	LEDGER_PUBLIC_CANCELED,
};

enum ledger_dispatch {
	LEDGER_DISPATCH_BLOCKED,
	LEDGER_DISPATCH_PENDING,
	LEDGER_DISPATCH_QUEUED,
	LEDGER_DISPATCH_STARTED,
	LEDGER_DISPATCH_TERMINAL,
};

enum ledger_sync {
	LEDGER_SYNC_NEEDS_CREATE,
	LEDGER_SYNC_CURRENT,
	LEDGER_SYNC_NEEDS_UPDATE,
	LEDGER_SYNC_NEEDS_TERMINAL_UPDATE,
	LEDGER_SYNC_DONE,
};

/* Times are wall-clock milliseconds, 0 for null; texts are NULL for null. */
struct ledger_run {
	const char *run_id, *project_id;
	/* Of a list only: the row holds a word that nobody knows, and nothing but the two ids is
	 * filled.  One row of that kind does not keep the others from being read. */
	int broken;
	int64_t accept_seq;
	int64_t position; /* 0: null */
	enum ledger_state state;
	enum ledger_public public_state;
	enum ledger_dispatch dispatch;
	int64_t dispatch_attempts, dispatch_retry_at;
	const char *last_error;
	const char *trigger_type, *triggered_by_user_id, *provider, *delivery_id;
	const char *branch, *repo_url, *config_path, *commit_sha;
	int64_t queued_at, claimed_at, started_at, finished_at;
	int has_exit_code;
	int64_t exit_code;
	const char *failure_code, *error_message;
	const char *spawn_id;
	int64_t lease_epoch;
	const char *lease_id;
	int64_t lease_expires_at;
	int64_t cancel_requested_at;
	const char *cancel_by;
	enum ledger_sync sync;
	int64_t index_rev, index_since, index_attempt, index_retry_at;
	int64_t done_at;
};

const char *ledger_state_name(enum ledger_state s);
const char *ledger_public_name(enum ledger_public s);
const char *ledger_dispatch_name(enum ledger_dispatch s);
const char *ledger_sync_name(enum ledger_sync s);
/* 0 or E_INVAL. */
int ledger_public_parse(const char *word, enum ledger_public *ret);

/* Where and when a decision is made: the store whose transaction is open, memory for what
 * comes back, the wall clock of the turn. */
struct ledger_at {
	struct store *store;
	struct arena *arena;
	int64_t now_ms;
};

static inline int
ledger_is_terminal(enum ledger_state s)
{
	return s >= LEDGER_PASSED;
}

/* A process has claimed it and not ended it. */
static inline int
ledger_is_claimed(enum ledger_state s)
{
	return s == LEDGER_ACTIVE || s == LEDGER_CANCEL_REQUESTED;
}

/* E_NOENT: no such run here.  E_CORRUPT: its row is broken, as above. */
int
ledger_run_get(struct store *s, struct arena *a, const char *run_id, struct ledger_run *ret);
/* The project's one executable or claimed run.  E_NOENT: there is none. */
int ledger_run_head(
    struct store *s, struct arena *a, const char *project_id, struct ledger_run *ret);

#endif
