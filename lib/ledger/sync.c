#include "lib/ledger/sync.h"

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"

/* Waits after failures; the last is repeated for ever. */
static const int64_t ladder_ms[] = { 5000, 15000, 30000, 60000, 300000 };

static int64_t
ladder(int64_t attempt)
{
	return ladder_ms[min_i64(attempt, (int64_t)ARRAY_LEN(ladder_ms)) - 1];
}

int
ledger_sync_due(
    struct store *s, struct arena *a, int64_t now_ms, struct ledger_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_SYNC_DUE);

	return ledger_run_rows(
	    st, stmt_bind(st, "ii", now_ms, (int64_t)LEDGER_SYNC_ROWS), a, ret, ret_n);
}

int
ledger_project_sync_due(struct store *s, struct arena *a, int64_t now_ms, size_t limit,
    struct ledger_project **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_SYNC_DUE);

	return ledger_project_rows(
	    st, stmt_bind(st, "ii", now_ms, (int64_t)limit), a, ret, ret_n);
}

static int
sync_save(struct store *s, const struct ledger_run *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_SYNC);

	return ledger_run_stmt(st,
	    stmt_bind(st, "ssiiII", r->run_id, ledger_sync_name(r->sync), r->index_since,
		r->index_attempt, ledger_null0(&r->index_retry_at), ledger_null0(&r->done_at)));
}

static int
is_due(enum ledger_sync sync)
{
	return sync != LEDGER_SYNC_CURRENT && sync != LEDGER_SYNC_DONE;
}

int
ledger_sync_applied(struct store *s, struct arena *a, const char *run_id, int64_t rev,
    int64_t now_ms, int *ret_done)
{
	struct ledger_move here;
	struct ledger_run run;
	int r = ledger_run_get(s, a, run_id, &run);

	*ret_done = 0;
	if (r == E_NOENT)
		return 0;
	if (r < 0 || !is_due(run.sync) || run.index_rev != rev)
		return r;
	/* Who has it by then asks the index again. */
	r = ledger_move_get(s, run.project_id, &here);
	if (r < 0 || !ledger_may_change(&here))
		return r;
	*ret_done = run.sync == LEDGER_SYNC_NEEDS_TERMINAL_UPDATE;
	run.sync = *ret_done ? LEDGER_SYNC_DONE : LEDGER_SYNC_CURRENT;
	run.index_since = now_ms;
	run.index_attempt = 0;
	run.index_retry_at = 0;
	run.done_at = *ret_done ? now_ms : 0;
	r = sync_save(s, &run);
	return r < 0 || !*ret_done ? r
				   : ledger_event_add(s, run_id, now_ms, "index_done", "{}");
}

int
ledger_sync_failed(struct store *s, struct arena *a, const char *run_id, int unknown_project,
    int64_t now_ms, int64_t *ret_attempt)
{
	struct ledger_move here;
	struct ledger_run run;
	int r = ledger_run_get(s, a, run_id, &run);

	*ret_attempt = 0;
	if (r == E_NOENT)
		return 0;
	if (r < 0 || !is_due(run.sync))
		return r;
	r = ledger_move_get(s, run.project_id, &here);
	if (r < 0 || !ledger_may_change(&here))
		return r;
	run.index_attempt++;
	run.index_retry_at = now_ms + ladder(run.index_attempt);
	*ret_attempt = run.index_attempt;
	r = sync_save(s, &run);
	if (r == 0 && unknown_project) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_UNKNOWN);

		r = ledger_run_stmt(st, stmt_bind(st, "s", run.project_id));
	}
	return r;
}

int
ledger_sync_defer(struct store *s, const char *run_id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_SYNC_DEFER);

	return ledger_run_stmt(
	    st, stmt_bind(st, "si", run_id, now_ms + ladder(ARRAY_LEN(ladder_ms))));
}

int
ledger_project_synced(struct store *s, const char *project_id, int64_t rev)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_SYNCED);

	return ledger_run_stmt(st, stmt_bind(st, "si", project_id, rev));
}

static int
state_attempt(struct store *s, const char *project_id, int64_t *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_ATTEMPT);
	int r = stmt_bind(st, "s", project_id);

	if (r == 0)
		r = stmt_step(st);
	if (r == 1)
		*ret = stmt_int(st, 0);
	return r == 0 ? E_NOENT : r < 0 ? r : 0;
}

int
ledger_project_sync_failed(struct store *s, const char *project_id, int64_t now_ms)
{
	int64_t attempt = 0, retry_at;
	int r = state_attempt(s, project_id, &attempt);

	if (r < 0)
		return r == E_NOENT ? 0 : r;
	retry_at = now_ms + ladder(attempt + 1);
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_SYNC_FAILED);

		return ledger_run_stmt(
		    st, stmt_bind(st, "sii", project_id, attempt + 1, retry_at));
	}
}
