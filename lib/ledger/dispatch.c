#include "lib/ledger/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "lib/ledger/inside.h"

#define ERROR_MAX_BYTES   1024
#define MESSAGE_MAX_BYTES 1200

/* Waits after failures 1..5; the sixth ends the run. */
static const int64_t ladder_ms[LEDGER_DISPATCH_TRIES - 1] = { 5000, 15000, 30000, 60000,
	120000 };

int
ledger_dispatch_due(struct store *s, struct arena *a, int64_t now_ms, size_t limit,
    struct ledger_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_DISPATCH_DUE);

	return ledger_run_rows(st, stmt_bind(st, "ii", now_ms, (int64_t)limit), a, ret, ret_n);
}

int
ledger_dispatched(struct store *s, struct arena *a, enum ledger_dispatch which,
    const char *after, size_t limit, struct ledger_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_DISPATCHED);

	return ledger_run_rows(st,
	    stmt_bind(st, "ssi", ledger_dispatch_name(which), after, (int64_t)limit), a, ret,
	    ret_n);
}

int
ledger_dispatch_queued(struct store *s, struct arena *a, const char *run_id,
    const char *live_spawn_id, const char *how, int64_t now_ms)
{
	struct ledger_run run;
	int r = ledger_run_get(s, a, run_id, &run);

	if (r == E_NOENT)
		return 0;
	if (r < 0 || run.state != LEDGER_EXECUTABLE || run.dispatch != LEDGER_DISPATCH_PENDING)
		return r;
	/* The process that released it has not gone yet: its end comes first. */
	if (live_spawn_id != NULL && run.spawn_id != NULL &&
	    strcmp(run.spawn_id, live_spawn_id) == 0)
		return 0;
	run.dispatch = LEDGER_DISPATCH_QUEUED;
	run.dispatch_retry_at = 0;
	run.last_error = NULL;
	r = ledger_run_save(s, &run);
	return r < 0 ? r : ledger_event_text(s, run_id, now_ms, "dispatch_queued", "how", how);
}

static int
last_failure(struct store *s, struct arena *a, struct ledger_run *run, int64_t now_ms,
    struct ledger_failure *ret)
{
	struct ledger_end e = { .state = LEDGER_FAILED,
		.finished_at = now_ms,
		.has_exit_code = 1,
		.exit_code = 1,
		.failure_code = "dispatch_failed" };
	int r;

	e.error_message = arena_format(a, "The run could not be started in %d attempts: %s",
	    LEDGER_DISPATCH_TRIES, run->last_error);
	if (e.error_message == NULL)
		return E_NOMEM;
	ret->failed = 1;
	ledger_end_row(run, &e, now_ms);
	r = ledger_run_save(s, run);
	return r < 0 ? r : ledger_promote(s, a, run->project_id, now_ms, &ret->promoted);
}

/* One failure more. */
static int
count_failure(struct store *s, struct arena *a, struct ledger_run *run, const char *error,
    int64_t now_ms, struct ledger_failure *ret)
{
	int r;

	run->last_error = arena_strndup(
	    a, error, utf8_cut(error, strlen(error), ERROR_MAX_BYTES));
	if (run->last_error == NULL)
		return E_NOMEM;
	run->dispatch_attempts++;
	ret->counted = 1;
	ret->attempt = run->dispatch_attempts;
	r = ledger_event_text(
	    s, run->run_id, now_ms, "dispatch_failed", "error", run->last_error);
	if (r < 0)
		return r;
	if (run->dispatch_attempts >= LEDGER_DISPATCH_TRIES)
		return last_failure(s, a, run, now_ms, ret);
	run->dispatch = LEDGER_DISPATCH_PENDING;
	run->dispatch_retry_at = now_ms + ladder_ms[run->dispatch_attempts - 1];
	return ledger_run_save(s, run);
}

int
ledger_dispatch_failed(struct store *s, struct arena *a, const char *run_id, const char *error,
    int64_t now_ms, struct ledger_failure *ret)
{
	struct ledger_run run;
	int r = ledger_run_get(s, a, run_id, &run);

	*ret = (struct ledger_failure) { 0 };
	if (r == E_NOENT)
		return 0;
	if (r < 0 || run.state != LEDGER_EXECUTABLE)
		return r;
	return count_failure(s, a, &run, error, now_ms, ret);
}

static int
dispatch_again(struct store *s, struct ledger_run *run, struct ledger_failure *ret)
{
	ret->dispatch = 1;
	run->dispatch = LEDGER_DISPATCH_PENDING;
	run->dispatch_retry_at = 0;
	return ledger_run_save(s, run);
}

int
ledger_runner_exited(struct store *s, struct arena *a, const struct ledger_exit *e,
    int64_t now_ms, struct ledger_failure *ret)
{
	struct ledger_run run;
	int own, r = ledger_run_get(s, a, e->run_id, &run);

	*ret = (struct ledger_failure) { 0 };
	if (r == E_NOENT)
		return 0;
	if (r < 0 || run.state != LEDGER_EXECUTABLE)
		return r;
	own = run.spawn_id != NULL && strcmp(run.spawn_id, e->spawn_id) == 0;
	/* It released the run and has ended now; or the machine went down before a claim. */
	if (own || e->rebooted)
		return dispatch_again(s, &run, ret);
	if (run.dispatch != LEDGER_DISPATCH_QUEUED || run.dispatch_attempts != e->attempt)
		return 0;
	return count_failure(s, a, &run, e->how, now_ms, ret);
}
