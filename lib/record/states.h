/*
 * lib/record/states.h -- state of a run and of its steps (spec run 2, 3, 12).
 *
 * The moves are checked here and again by triggers of the store: E_ILLEGAL is a bug of the
 * caller.  E_STALE: the store belongs to another claim by now, as `lost` from the shard.
 */
#ifndef LIB_RECORD_STATES_H
#define LIB_RECORD_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "lib/base/arena.h"

#define RECORD_STEPS_MAX     20
#define RECORD_MESSAGE_BYTES 4096

struct record;

/* 1 for passed, failed and canceled.  A store never says queued. */
static inline int
record_is_terminal(enum run_status s)
{
	return s >= RUN_STATUS_PASSED;
}

/* A number that may be absent. */
struct record_int {
	int set;
	int64_t v;
};

/* What a claim brings: the snapshot of the shard. */
struct record_claim {
	const char *run_id, *project_id, *owner_slug, *project_slug;
	enum trigger_type trigger_type;
	const char *triggered_by_user_id; /* NULL unless manual. */
	const char *branch;
	const char *commit_sha; /* NULL: head of the branch. */
	int64_t queued_at_ms;
	int64_t epoch; /* lease_epoch of the claim, >= 1 */
	const char *spawn_id;
	const char *sandbox; /* "bwrap" or "none" */
};

/* Makes the run `starting`, also again after a release: then the steps of the earlier claim
 * go and its log stays.  0; 1: it had ended before and is left alone (record_run_get());
 * E_STALE, E_ILLEGAL (a claim before has got further). */
int record_claim(struct record *r, const struct record_claim *c, int64_t now_ms);

/* The commit was recorded with the shard.  0, E_STALE, E_ILLEGAL. */
int record_set_commit(struct record *r, const char *commit_sha);

struct record_plan_step {
	const char *name, *command;
};
/* The steps, all queued, and the timeout; while `starting`. */
int record_plan(struct record *r, const struct record_plan_step *steps, size_t nsteps,
    int64_t timeout_seconds);
/* `running`, and the first step with it, before its process exists. */
int record_begin(struct record *r, int64_t now_ms);

/* How the process of a step ended.  signal 0: none. */
struct record_exit {
	struct record_int code; /* Not set: it never ran, or nobody knows. */
	int64_t signal;
};
/* The step at ${position} has ended; all of its output is stored.  When it passed and the
 * run is `running`, the next step is made `running` with it: *ret_next is its position, else
 * 0. */
int record_end_step(struct record *r, int64_t position, int passed, struct record_exit how,
    int64_t now_ms, int64_t *ret_next);

/* The first request counts.  0, also when it was there before; 1: the run has ended. */
int record_request_cancel(struct record *r, int64_t requested_at_ms);
/* The processes have been told. */
int record_begin_canceling(struct record *r);

struct record_outcome {
	enum run_status status; /* A terminal one. */
	/* Of a failed run; the message is redacted and cut here. */
	int64_t exit_code;
	enum failure_code failure_code;
	const char *error_message;
	struct record_exit last_step; /* Of a step that still runs: it becomes failed. */
};
/* The end.  From its return on the outcome is fixed.  An unset exit code of the running
 * step becomes the run's. */
int record_finish(struct record *r, const struct record_outcome *o, int64_t now_ms);
/* The lease is lost: failed / runner_lost with a system line, unless it has ended.
 * 0; 1: it had ended. */
int record_lose(struct record *r, const char *message, int64_t now_ms);

enum record_conclusion { RECORD_CONCLUDED, RECORD_NEWER_EPOCH };
/* run.conclude in the serve form: RECORD_CONCLUDED also when the run had ended before.
 * 0, E_NOENT (no run in the store). */
int record_conclude(struct record *r, int64_t lease_epoch, enum failure_code failure_code,
    const char *message, int64_t now_ms, enum record_conclusion *ret);

/* ---- reading ---- */

struct record_run {
	const char *run_id, *project_id, *owner_slug, *project_slug;
	enum trigger_type trigger_type;
	const char *triggered_by_user_id;
	const char *branch, *commit_sha;
	int64_t queued_at_ms;
	enum run_status status;
	struct record_int current_step, started_at_ms, finished_at_ms, exit_code;
	int has_failure_code;
	enum failure_code failure_code;
	const char *error_message;
	struct record_int cancel_requested_at_ms;
	int64_t epoch;
	const char *spawn_id, *sandbox;
	struct record_int timeout_seconds;
};

struct record_step {
	int64_t position;
	const char *name, *command;
	enum step_status status;
	struct record_int started_at_ms, finished_at_ms, exit_code, signal;
};

/* Texts live in ${a}; absent ones are NULL.  0, E_NOENT (nothing was claimed yet). */
int record_run_get(struct record *r, struct arena *a, struct record_run *ret);
int
record_steps_get(struct record *r, struct arena *a, struct record_step **ret, size_t *ret_n);

#endif
