#include "lib/record/states.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"

#define CHECKPOINT_IDLE_MS 1000

static const int64_t *
int_or_null(const struct record_int *i)
{
	return i->set ? &i->v : NULL;
}

static const int64_t *
signal_or_null(const struct record_exit *how)
{
	return how->signal != 0 ? &how->signal : NULL;
}

/* Where the store stands, for a decision inside a transaction. */
struct standing {
	enum run_status status;
	int64_t epoch;
};

/* 1: there is a run; 0: there is none. */
static int
standing_get(struct record *r, struct standing *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_META_GET);
	int err = stmt_step(st);

	if (err <= 0)
		return err;
	ret->status = record_status_of(stmt_text(st, 9));
	ret->epoch = stmt_int(st, 17);
	return 1;
}

/* ---- claim ---- */

static int
claim_again(struct record *r, const struct record_claim *c, int64_t now_ms)
{
	int err = RECORD_RUN(r, STMT_STEP_CLEAR, "");

	return err < 0 ? err
		       : RECORD_HIT(r, STMT_META_CLAIM_AGAIN, "iisss", now_ms, c->epoch,
			     c->spawn_id, c->sandbox, c->commit_sha);
}

static int
claim_first(struct record *r, const struct record_claim *c, int64_t now_ms)
{
	return RECORD_RUN(r, STMT_META_ADD, "ssssssssiiiss", c->run_id, c->project_id,
	    c->owner_slug, c->project_slug, trigger_type_name(c->trigger_type),
	    c->triggered_by_user_id, c->branch, c->commit_sha, c->queued_at_ms, now_ms,
	    c->epoch, c->spawn_id, c->sandbox);
}

static int
claim_in_txn(struct record *r, const struct record_claim *c, int64_t now_ms, int *ret_ended)
{
	struct standing at = { RUN_STATUS_STARTING, 0 };
	int found = standing_get(r, &at);

	if (found < 0)
		return found;
	if (found == 0)
		return claim_first(r, c, now_ms);
	if (record_is_terminal(at.status)) {
		*ret_ended = 1;
		return 0;
	}
	if (at.epoch > c->epoch)
		return E_STALE;
	if (at.status != RUN_STATUS_STARTING)
		return E_ILLEGAL;
	return at.epoch == c->epoch ? 0 : claim_again(r, c, now_ms);
}

int
record_claim(struct record *r, const struct record_claim *c, int64_t now_ms)
{
	int ended = 0, err;

	OBJ_CHECK(r, RECORD_MAGIC);
	if (r->checkpointer == NULL &&
	    (err = checkpointer_start(r->store, CHECKPOINT_IDLE_MS, &r->checkpointer)) < 0)
		return err;
	err = record_txn_begin(r, STORE_SYNC_FULL);
	if (err < 0)
		return err;
	err = record_txn_end(r, claim_in_txn(r, c, now_ms, &ended));
	if (err == 0)
		r->epoch = c->epoch;
	return err < 0 ? err : ended;
}

int
record_set_commit(struct record *r, const char *commit_sha)
{
	int err = record_txn_begin(r, STORE_SYNC_FULL);

	if (err < 0)
		return err;
	return record_txn_end(r, RECORD_HIT(r, STMT_META_COMMIT, "is", r->epoch, commit_sha));
}

/* ---- steps ---- */

static int
add_step(struct record *r, int64_t position, const struct record_plan_step *s)
{
	CLEANUP_FREE char *name = record_clean_text(r, s->name, SIZE_MAX);
	CLEANUP_FREE char *command = record_clean_text(r, s->command, SIZE_MAX);

	if (name == NULL || command == NULL)
		return E_NOMEM;
	return RECORD_RUN(r, STMT_STEP_ADD, "iss", position, name, command);
}

int
record_plan(struct record *r, const struct record_plan_step *steps, size_t nsteps,
    int64_t timeout_seconds)
{
	int err = record_txn_begin(r, STORE_SYNC_FULL);

	if (err < 0)
		return err;
	err = RECORD_HIT(r, STMT_META_TIMEOUT, "ii", r->epoch, timeout_seconds);
	for (size_t i = 0; err == 0 && i < nsteps; i++)
		err = add_step(r, (int64_t)i + 1, &steps[i]);
	return record_txn_end(r, err);
}

static int
count_steps(struct record *r, int64_t *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_STEP_COUNT);
	int err = stmt_step(st);

	if (err > 0)
		*ret = stmt_int(st, 0);
	return err > 0 ? 0 : err;
}

/* The run says `running` before the step does, which the store checks. */
static int
begin_in_txn(struct record *r, int64_t now_ms)
{
	int64_t nsteps = 0, first = 1;
	int err = count_steps(r, &nsteps);

	if (err == 0)
		err = RECORD_HIT(
		    r, STMT_META_RUNNING, "iI", r->epoch, nsteps > 0 ? &first : NULL);
	if (err == 0 && nsteps > 0)
		err = RECORD_HIT(r, STMT_STEP_RUN, "ii", first, now_ms);
	return err;
}

int
record_begin(struct record *r, int64_t now_ms)
{
	int err = record_txn_begin(r, STORE_SYNC_FULL);

	return err < 0 ? err : record_txn_end(r, begin_in_txn(r, now_ms));
}

static int
end_step_in_txn(struct record *r, int64_t position, int passed, struct record_exit how,
    int64_t now_ms, int64_t *ret_next)
{
	const char *status = step_status_name(passed ? STEP_STATUS_PASSED : STEP_STATUS_FAILED);
	int64_t nsteps = 0, next = position + 1;
	struct standing at;
	int err = standing_get(r, &at);

	if (err <= 0)
		return err < 0 ? err : E_STALE;
	if (at.epoch != r->epoch)
		return E_STALE;
	err = RECORD_HIT(r, STMT_STEP_END, "isiII", position, status, now_ms,
	    int_or_null(&how.code), signal_or_null(&how));
	if (err == 0)
		err = count_steps(r, &nsteps);
	if (err < 0 || !passed || next > nsteps || at.status != RUN_STATUS_RUNNING)
		return err;
	err = RECORD_HIT(r, STMT_META_STEP, "ii", r->epoch, next);
	if (err == 0)
		err = RECORD_HIT(r, STMT_STEP_RUN, "ii", next, now_ms);
	if (err == 0)
		*ret_next = next;
	return err;
}

int
record_end_step(struct record *r, int64_t position, int passed, struct record_exit how,
    int64_t now_ms, int64_t *ret_next)
{
	int64_t next = 0;
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	record_sync_log(r);
	err = record_txn_begin(r, STORE_SYNC_FULL);
	if (err < 0)
		return err;
	err = record_txn_end(r, end_step_in_txn(r, position, passed, how, now_ms, &next));
	if (err == 0)
		*ret_next = next;
	return err;
}

/* ---- cancel ---- */

static int
cancel_in_txn(struct record *r, int64_t requested_at_ms, int *ret_ended)
{
	struct standing at;
	int err = standing_get(r, &at);

	if (err <= 0)
		return err < 0 ? err : E_STALE;
	if (record_is_terminal(at.status)) {
		*ret_ended = 1;
		return 0;
	}
	if (at.epoch != r->epoch)
		return E_STALE;
	if (at.status == RUN_STATUS_CANCEL_REQUESTED || at.status == RUN_STATUS_CANCELING)
		return 0;
	return RECORD_HIT(r, STMT_META_CANCEL, "ii", r->epoch, requested_at_ms);
}

int
record_request_cancel(struct record *r, int64_t requested_at_ms)
{
	int ended = 0;
	int err = record_txn_begin(r, STORE_SYNC_FULL);

	if (err < 0)
		return err;
	err = record_txn_end(r, cancel_in_txn(r, requested_at_ms, &ended));
	return err < 0 ? err : ended;
}

int
record_begin_canceling(struct record *r)
{
	int err = record_txn_begin(r, STORE_SYNC_FULL);

	if (err < 0)
		return err;
	return record_txn_end(r, RECORD_HIT(r, STMT_META_CANCELING, "i", r->epoch));
}

/* ---- the end ---- */

/* A step that still runs fails: with its own exit code, else the run's. */
static int
fail_running_step(
    struct record *r, struct record_exit how, const int64_t *run_code, int64_t now_ms)
{
	return RECORD_RUN(r, STMT_STEP_FAIL_RUNNING, "iII", now_ms,
	    how.code.set ? &how.code.v : run_code, signal_or_null(&how));
}

/* What the columns of an ended run say. */
struct columns {
	const int64_t *exit_code;
	const char *failure_code, *message;
};

static struct columns
columns_of(const struct record_outcome *o, const char *message)
{
	static const int64_t zero;

	switch (o->status) {
	case RUN_STATUS_PASSED: return (struct columns) { &zero, NULL, NULL };
	case RUN_STATUS_CANCELED:
		return (struct columns) { NULL,
			failure_code_name(FAILURE_CODE_RUNTIME_CANCELLED), NULL };
	default:
		return (struct columns) { &o->exit_code, failure_code_name(o->failure_code),
			message };
	}
}

int
record_finish(struct record *r, const struct record_outcome *o, int64_t now_ms)
{
	CLEANUP_FREE char *message = NULL;
	struct columns c;
	int err;

	must(record_is_terminal(o->status));
	if (o->status == RUN_STATUS_FAILED &&
	    (message = record_clean_text(r, o->error_message, RECORD_MESSAGE_BYTES)) == NULL)
		return E_NOMEM;
	err = record_txn_begin(r, STORE_SYNC_FULL);
	if (err < 0)
		return err;
	c = columns_of(o, message);
	err = fail_running_step(r, o->last_step, c.exit_code, now_ms);
	if (err == 0)
		err = RECORD_HIT(r, STMT_META_FINISH, "isiIss", r->epoch,
		    run_status_name(o->status), now_ms, c.exit_code, c.failure_code, c.message);
	return record_txn_end(r, err);
}

/* What record_lose() and record_conclude() share: line, step, run. */
struct ending {
	enum failure_code failure_code;
	const char *message;
	int64_t now_ms;
	int64_t old_epoch, new_epoch;
	int forget_start;
};

static int
end_in_txn(struct record *r, const struct ending *e, struct record_log *log)
{
	const struct record_exit unknown = { { 0, 0 }, 0 };
	const int64_t one = 1;
	int err = record_put_note(r, 0, e->message, e->now_ms, log);

	if (err == 0)
		err = record_put_log(r, log);
	if (err == 0)
		err = e->forget_start ? RECORD_RUN(r, STMT_STEP_CLEAR, "")
				      : fail_running_step(r, unknown, &one, e->now_ms);
	if (err == 0)
		err = RECORD_HIT(r, STMT_META_CONCLUDE, "iissii", e->old_epoch, e->now_ms,
		    failure_code_name(e->failure_code), e->message, e->new_epoch,
		    (int64_t)e->forget_start);
	return err;
}

static int
lose_in_txn(struct record *r, const struct ending *e, struct record_log *log, int *ret_ended)
{
	struct standing at;
	int err = standing_get(r, &at);

	if (err <= 0)
		return err < 0 ? err : E_STALE;
	if (record_is_terminal(at.status)) {
		*ret_ended = 1;
		return 0;
	}
	return at.epoch != r->epoch ? E_STALE : end_in_txn(r, e, log);
}

int
record_lose(struct record *r, const char *text, int64_t now_ms)
{
	CLEANUP_FREE char *message = record_clean_text(r, text, RECORD_MESSAGE_BYTES);
	const struct ending e = { FAILURE_CODE_RUNNER_LOST, message, now_ms, r->epoch, r->epoch,
		0 };
	struct record_log log;
	int err, ended = 0;

	if (message == NULL)
		return E_NOMEM;
	err = record_txn_begin(r, STORE_SYNC_FULL);
	if (err < 0)
		return err;
	log = r->log;
	err = record_txn_end(r, lose_in_txn(r, &e, &log, &ended));
	if (err == 0)
		r->log = log;
	return err < 0 ? err : ended;
}

static int
conclude_in_txn(struct record *r, int64_t lease_epoch, struct ending *e, struct record_log *log,
    enum record_conclusion *ret)
{
	struct standing at;
	int err = standing_get(r, &at);

	if (err <= 0)
		return err < 0 ? err : E_NOENT;
	*ret = RECORD_CONCLUDED;
	if (record_is_terminal(at.status))
		return 0;
	/* In a backup the ledger is older than the store: whoever claimed later is not there. */
	if (at.epoch > lease_epoch && !r->restored) {
		*ret = RECORD_NEWER_EPOCH;
		return 0;
	}
	e->old_epoch = at.epoch;
	e->new_epoch = max_i64(at.epoch, lease_epoch) + 1;
	/* Released before: what it says of steps and start is of an earlier claim. */
	e->forget_start = at.epoch < lease_epoch;
	return end_in_txn(r, e, log);
}

int
record_conclude(struct record *r, int64_t lease_epoch, enum failure_code failure_code,
    const char *text, int64_t now_ms, enum record_conclusion *ret)
{
	CLEANUP_FREE char *message = record_clean_text(r, text, RECORD_MESSAGE_BYTES);
	struct ending e = {
		.failure_code = failure_code, .message = message, .now_ms = now_ms
	};
	enum record_conclusion c = RECORD_CONCLUDED;
	struct record_log log;
	int err;

	if (message == NULL)
		return E_NOMEM;
	err = record_txn_begin(r, STORE_SYNC_FULL);
	if (err < 0)
		return err;
	log = r->log;
	err = record_txn_end(r, conclude_in_txn(r, lease_epoch, &e, &log, &c));
	if (err < 0)
		return err;
	r->log = log;
	*ret = c;
	return 0;
}
