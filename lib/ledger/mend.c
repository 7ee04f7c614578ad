#include "lib/ledger/mend.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"
#include "lib/ledger/lease.h"

#define DAMAGED "Internal error: the ledger's row of this run was damaged and is set aside"

/* What the schema refuses is not mended this way; everything else is an error. */
static int
is_refusal(int r)
{
	return r == E_CONSTRAINT || r == E_ILLEGAL;
}

/* Runs a statement that names ${subject}; *ret_hit: it changed a row. */
static int
change(const struct ledger_at *at, enum ledger_stmt which, const char *subject, int *ret_hit)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, (unsigned)which);
	int r = ledger_run_stmt(st, stmt_bind(st, "s", subject));

	*ret_hit = r == 0 && store_changes(at->store) > 0;
	return r;
}

/* ---- a row ---- */

/* What of a row stays as it was when it is written anew. */
struct identity {
	const char *run_id, *project_id, *status, *trigger_type, *user_id, *provider,
	    *delivery_id, *branch, *repo_url, *config_path, *commit_sha, *failure_code,
	    *error_message;
	int64_t accept_seq, queued_at, index_rev, started_at, finished_at, exit_code;
};

static int
identity_get(const struct ledger_at *at, const char *run_id, struct identity *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_MEND_GET);
	struct arena *a = at->arena;
	int err = 0, r = stmt_first(st, stmt_bind(st, "s", run_id));

	if (r < 0)
		return r;
	*ret = (struct identity) { .run_id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err),
		.accept_seq = stmt_int(st, 2),
		.status = stmt_text_dup(st, 3, a, &err),
		.trigger_type = stmt_text_dup(st, 4, a, &err),
		.user_id = stmt_text_dup(st, 5, a, &err),
		.provider = stmt_text_dup(st, 6, a, &err),
		.delivery_id = stmt_text_dup(st, 7, a, &err),
		.branch = stmt_text_dup(st, 8, a, &err),
		.repo_url = stmt_text_dup(st, 9, a, &err),
		.config_path = stmt_text_dup(st, 10, a, &err),
		.commit_sha = stmt_text_dup(st, 11, a, &err),
		.queued_at = stmt_int(st, 12),
		.index_rev = stmt_int(st, 13),
		.started_at = stmt_int(st, 14),
		.finished_at = stmt_int(st, 15),
		.exit_code = stmt_int(st, 16),
		.failure_code = stmt_text_dup(st, 17, a, &err),
		.error_message = stmt_text_dup(st, 18, a, &err) };
	return err;
}

/* Columns that follow from others.  A claimed row gets a lease that nobody holds: it runs out,
 * and what its process left is taken over. */
static int
straighten(const struct ledger_at *at, const char *run_id, int *ret_done)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_MEND_STRAIGHTEN);
	char lease_id[ID_HEX32_SIZE];
	int r;

	id_hex32(lease_id);
	r = ledger_run_stmt(st, stmt_bind(st, "ssi", run_id, lease_id, at->now_ms));
	*ret_done = r == 0 && store_changes(at->store) > 0;
	return is_refusal(r) ? 0 : r;
}

static int
put_anew(const struct ledger_at *at, const struct identity *id, int head)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_RUN_ADD);
	int bound = stmt_bind(st, "ssiisssissssssssiii", id->run_id, id->project_id,
	    id->accept_seq, id->accept_seq,
	    ledger_state_name(head ? LEDGER_PENDING : LEDGER_EXECUTABLE),
	    ledger_public_name(LEDGER_PUBLIC_QUEUED),
	    ledger_dispatch_name(head ? LEDGER_DISPATCH_BLOCKED : LEDGER_DISPATCH_PENDING),
	    (int64_t)0, id->trigger_type, id->user_id, id->provider, id->delivery_id,
	    id->branch, id->repo_url, id->config_path, id->commit_sha, id->queued_at,
	    max_i64(id->index_rev, 1), at->now_ms);

	return ledger_run_stmt(st, bound);
}

/* As it had ended, where that can be told; else nobody knows any more what ran. */
static struct ledger_end
end_of(const struct ledger_at *at, const struct identity *id)
{
	int passed = strcmp(id->status, "passed") == 0;
	int failed = strcmp(id->status, "failed") == 0;
	const char *code = failed && id->failure_code != NULL ? id->failure_code
							      : "internal_unexpected";

	return (struct ledger_end) { .state = passed ? LEDGER_PASSED : LEDGER_FAILED,
		.started_at = id->started_at,
		.finished_at = id->finished_at != 0 ? id->finished_at : at->now_ms,
		.has_exit_code = 1,
		.exit_code = passed                ? 0
		    : failed && id->exit_code != 0 ? id->exit_code
						   : 1,
		.failure_code = passed ? NULL : code,
		.error_message = passed                   ? NULL
		    : failed && id->error_message != NULL ? id->error_message
							  : DAMAGED };
}

/* Only from a claim a run may pass. */
static int
end_anew(
    const struct ledger_at *at, const struct identity *id, struct ledger_promoted *ret_promoted)
{
	const struct ledger_end e = end_of(at, id);
	struct ledger_settlement settled;
	struct ledger_claim claim;
	char spawn_id[ID_HEX32_SIZE];
	int r;

	id_hex32(spawn_id);
	r = ledger_claim_run(at->store, at->arena, id->run_id, spawn_id, at->now_ms, &claim);
	if (r == 0 && !claim.claimed)
		r = E_CONSTRAINT;
	if (r == 0)
		r = ledger_finalize_run(at->store, at->arena, id->run_id, claim.run.lease_id,
		    &e, at->now_ms, &settled);
	if (r == 0 && settled.kind != LEDGER_SETTLED)
		r = E_CONSTRAINT;
	if (r == 0)
		*ret_promoted = settled.promoted;
	return r;
}

/* While another run is at the head nothing but a cancel ends one that waits. */
static int
stand_in(
    const struct ledger_at *at, const struct identity *id, struct ledger_promoted *ret_promoted)
{
	int canceled = strcmp(id->status, "canceled") == 0, push;
	int ended = strcmp(id->status, "passed") == 0 || strcmp(id->status, "failed") == 0;
	struct ledger_run head;
	int r = ledger_run_head(at->store, at->arena, id->project_id, &head);
	int taken = r == 0 || r == E_CORRUPT;

	if (r < 0 && r != E_NOENT && r != E_CORRUPT)
		return r;
	if (taken && ended)
		return E_CONSTRAINT; /* later, when there is none */
	r = put_anew(at, id, taken);
	if (r < 0)
		return r;
	return taken || canceled
	    ? ledger_cancel_run(at, id->run_id, "operator", &head, &push, ret_promoted)
	    : end_anew(at, id, ret_promoted);
}

/* 1: a process may stand behind it. */
static int
may_be_claimed(const struct identity *id)
{
	return id->status == NULL || strcmp(id->status, "active") == 0 ||
	    strcmp(id->status, "cancel_requested") == 0;
}

static int
set_aside(const struct ledger_at *at, const char *run_id, int *ret_done,
    struct ledger_promoted *ret_promoted)
{
	struct identity id;
	int hit, r = identity_get(at, run_id, &id);

	*ret_done = 0;
	if (r < 0 || may_be_claimed(&id))
		return r == E_NOENT ? 0 : r;
	r = store_exec(at->store, "SAVEPOINT mend");
	if (r < 0)
		return r;
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_MEND_KEEP);

		r = ledger_run_stmt(st, stmt_bind(st, "si", run_id, at->now_ms));
	}
	if (r == 0)
		r = change(at, LG_MEND_REMOVE, run_id, &hit);
	if (r == 0)
		r = stand_in(at, &id, ret_promoted);
	*ret_done = r == 0;
	/* A row whose identity is damaged too has no stand-in: it is left where it is. */
	if (r < 0 && store_in_txn(at->store))
		(void)store_exec(at->store, "ROLLBACK TO mend");
	if (store_in_txn(at->store) && store_exec(at->store, "RELEASE mend") < 0)
		return E_STORAGE;
	return is_refusal(r) || r == E_CORRUPT ? 0 : r;
}

static int
mend_row(const struct ledger_at *at, const char *run_id, int *ret_done,
    struct ledger_promoted *ret_promoted)
{
	int r = straighten(at, run_id, ret_done);

	CRASH_POINT("ledger_mends_row");
	return r < 0 || *ret_done ? r : set_aside(at, run_id, ret_done, ret_promoted);
}

/* ---- all of them ---- */

static int
mend_head(const struct ledger_at *at, const char *project_id, int *ret_done,
    struct ledger_promoted *ret_promoted)
{
	int r = ledger_promote(at->store, at->arena, project_id, at->now_ms, ret_promoted);

	*ret_done = r == 0 && ret_promoted->run_id[0] != '\0';
	return is_refusal(r) || r == E_CORRUPT ? 0 : r;
}

int
ledger_mend(const struct ledger_at *at, const char *code, const char *subject, int *ret_mended,
    struct ledger_promoted *ret_promoted)
{
	*ret_mended = 0;
	ret_promoted->run_id[0] = '\0';
	if (strcmp(code, "no_head") == 0)
		return mend_head(at, subject, ret_mended, ret_promoted);
	if (strcmp(code, "project_next_seq") == 0)
		return change(at, LG_MEND_NEXT_SEQ, subject, ret_mended);
	if (strcmp(code, "run_row") == 0)
		return mend_row(at, subject, ret_mended, ret_promoted);
	return 0;
}
