#include "lib/ledger/run.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"

extern const struct store_migration schema_project[];
extern const size_t schema_project_count;

static const struct store_stmt_row ledger_stmts[] = {
#define STMT(name, nparams, sql) { #name, nparams, sql },
#include "schema/project.stmt.def"
#undef STMT
};

const struct store_desc ledger_store = { .name = "project",
	.migrations = schema_project,
	.nmigrations = &schema_project_count,
	.stmts = ledger_stmts,
	.nstmts = ARRAY_LEN(ledger_stmts),
	.sync = STORE_SYNC_FULL };

/* ---- words ---- */

static const char *const states[] = { "pending", "executable", "active", "cancel_requested",
	"passed", "failed", "canceled" };
static const char *const publics[] = { "queued", "starting", "running", "cancel_requested",
	"canceling", "passed", "failed", "canceled" };
static const char *const dispatches[] = { "blocked", "pending", "queued", "started",
	"terminal" };
static const char *const syncs[] = { "needs_create", "current", "needs_update",
	"needs_terminal_update", "done" };

const char *
ledger_state_name(enum ledger_state s)
{
	return states[s];
}

const char *
ledger_public_name(enum ledger_public s)
{
	return publics[s];
}

const char *
ledger_dispatch_name(enum ledger_dispatch s)
{
	return dispatches[s];
}

const char *
ledger_sync_name(enum ledger_sync s)
{
	return syncs[s];
}

/* Index of ${word}; -1 when it is none of them. */
static int
word_index(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; word != NULL && i < n; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

int
ledger_public_parse(const char *word, enum ledger_public *ret)
{
	int i = word_index(publics, ARRAY_LEN(publics), word);

	if (i < 0)
		return E_INVAL;
	*ret = (enum ledger_public)i;
	return 0;
}

/* ---- reading ---- */

int
ledger_run_stmt(struct stmt *st, int bound)
{
	return bound < 0 ? bound : stmt_run(st);
}

/* Columns in the order of LEDGER_RUN_COLUMNS. */
static int
run_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_run *r = row;
	int err = 0, state, public_state, dispatch, sync;

	state = word_index(states, ARRAY_LEN(states), stmt_text(st, 4));
	public_state = word_index(publics, ARRAY_LEN(publics), stmt_text(st, 5));
	dispatch = word_index(dispatches, ARRAY_LEN(dispatches), stmt_text(st, 6));
	sync = word_index(syncs, ARRAY_LEN(syncs), stmt_text(st, 31));
	if (state < 0 || public_state < 0 || dispatch < 0 || sync < 0)
		return E_CORRUPT;
	*r = (struct ledger_run) { .run_id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err),
		.accept_seq = stmt_int(st, 2),
		.position = stmt_int(st, 3),
		.state = (enum ledger_state)state,
		.public_state = (enum ledger_public)public_state,
		.dispatch = (enum ledger_dispatch)dispatch,
		.dispatch_attempts = stmt_int(st, 7),
		.dispatch_retry_at = stmt_int(st, 8),
		.last_error = stmt_text_dup(st, 9, a, &err),
		.trigger_type = stmt_text_dup(st, 10, a, &err),
		.triggered_by_user_id = stmt_text_dup(st, 11, a, &err),
		.provider = stmt_text_dup(st, 12, a, &err),
		.delivery_id = stmt_text_dup(st, 13, a, &err),
		.branch = stmt_text_dup(st, 14, a, &err),
		.repo_url = stmt_text_dup(st, 15, a, &err),
		.config_path = stmt_text_dup(st, 16, a, &err),
		.commit_sha = stmt_text_dup(st, 17, a, &err),
		.queued_at = stmt_int(st, 18),
		.claimed_at = stmt_int(st, 19),
		.started_at = stmt_int(st, 20),
		.finished_at = stmt_int(st, 21),
		.has_exit_code = !stmt_is_null(st, 22),
		.exit_code = stmt_int(st, 22),
		.failure_code = stmt_text_dup(st, 23, a, &err),
		.error_message = stmt_text_dup(st, 24, a, &err),
		.spawn_id = stmt_text_dup(st, 25, a, &err),
		.lease_epoch = stmt_int(st, 26),
		.lease_id = stmt_text_dup(st, 27, a, &err),
		.lease_expires_at = stmt_int(st, 28),
		.cancel_requested_at = stmt_int(st, 29),
		.cancel_by = stmt_text_dup(st, 30, a, &err),
		.sync = (enum ledger_sync)sync,
		.index_rev = stmt_int(st, 32),
		.index_since = stmt_int(st, 33),
		.index_attempt = stmt_int(st, 34),
		.index_retry_at = stmt_int(st, 35),
		.done_at = stmt_int(st, 36) };
	return err;
}

/* One of many. */
static int
run_read_listed(struct stmt *st, struct arena *a, void *row)
{
	int err = 0, r = run_read(st, a, row);

	if (r != E_CORRUPT)
		return r;
	*(struct ledger_run *)row = (struct ledger_run) { .broken = 1,
		.run_id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err) };
	return err;
}

int
ledger_run_rows(
    struct stmt *st, int bound, struct arena *a, struct ledger_run **ret, size_t *ret_n)
{
	void *rows;
	int r = stmt_rows(st, bound, a, run_read_listed, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
ledger_run_one(struct store *s, struct arena *a, enum ledger_stmt by, const char *key,
    struct ledger_run *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)by);
	int r = stmt_first(st, stmt_bind(st, "s", key));

	return r < 0 ? r : run_read(st, a, ret);
}

int
ledger_run_get(struct store *s, struct arena *a, const char *run_id, struct ledger_run *ret)
{
	return ledger_run_one(s, a, LG_RUN_GET, run_id, ret);
}

int
ledger_run_head(
    struct store *s, struct arena *a, const char *project_id, struct ledger_run *ret)
{
	return ledger_run_one(s, a, LG_RUN_HEAD, project_id, ret);
}

/* ---- writing ---- */

int
ledger_run_save(struct store *s, const struct ledger_run *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_SAVE);
	int bound = stmt_bind(st, "sIsssiIssIIIIsssisIIssiiiI", r->run_id,
	    ledger_null0(&r->position), states[r->state], publics[r->public_state],
	    dispatches[r->dispatch], r->dispatch_attempts, ledger_null0(&r->dispatch_retry_at),
	    r->last_error, r->commit_sha, ledger_null0(&r->claimed_at),
	    ledger_null0(&r->started_at), ledger_null0(&r->finished_at),
	    r->has_exit_code ? &r->exit_code : NULL, r->failure_code, r->error_message,
	    r->spawn_id, r->lease_epoch, r->lease_id, ledger_null0(&r->lease_expires_at),
	    ledger_null0(&r->cancel_requested_at), r->cancel_by, syncs[r->sync], r->index_rev,
	    r->index_since, r->index_attempt, ledger_null0(&r->index_retry_at));

	return ledger_run_stmt(st, bound);
}

/* Each phase of the index has its own ladder: a change of index_sync begins a new one. */
static void
set_sync(struct ledger_run *r, enum ledger_sync sync, int64_t now_ms)
{
	if (r->sync == sync)
		return;
	r->sync = sync;
	r->index_since = now_ms;
	r->index_attempt = 0;
	r->index_retry_at = 0;
}

void
ledger_touch(struct ledger_run *r, int64_t now_ms)
{
	r->index_rev++;
	set_sync(r,
	    ledger_is_terminal(r->state) ? LEDGER_SYNC_NEEDS_TERMINAL_UPDATE
					 : LEDGER_SYNC_NEEDS_UPDATE,
	    now_ms);
}

void
ledger_end_row(struct ledger_run *r, const struct ledger_end *e, int64_t now_ms)
{
	r->state = e->state;
	r->public_state = (enum ledger_public)(
	    LEDGER_PUBLIC_PASSED + ((int)e->state - (int)LEDGER_PASSED));
	r->position = 0;
	r->dispatch = LEDGER_DISPATCH_TERMINAL;
	r->dispatch_retry_at = 0;
	r->started_at = e->started_at;
	r->finished_at = e->finished_at;
	r->has_exit_code = e->has_exit_code;
	r->exit_code = e->exit_code;
	r->failure_code = e->failure_code;
	r->error_message = e->error_message;
	r->lease_expires_at = 0;
	ledger_touch(r, now_ms);
}
