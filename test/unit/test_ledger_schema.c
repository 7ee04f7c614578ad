/* The state machines hold in the schema too, whoever writes the code: every pair is tried. */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/ledger_rig.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NSTATES   7
#define NDISPATCH 5
#define NSYNCS    5

/* ---- statements ---- */

static void
every_statement_prepares_with_the_parameters_it_declares(void **state)
{
	struct ledger_rig *rig = *state;

	assert_true(ledger_store.nstmts > 30);
	for (unsigned i = 0; i < ledger_store.nstmts; i++) {
		const struct store_stmt_row *row = &ledger_store.stmts[i];
		char types[64] = { 0 };

		assert_in_range(row->nparams, 0, (int)sizeof(types) - 2);
		memset(types, 'n', (size_t)row->nparams);
		if (stmt_bind(store_stmt(rig->s, i), types) != 0)
			fail_msg("%s: %s", row->name, store_error(rig->s));
		types[row->nparams] = 'n';
		if (stmt_bind(store_stmt(rig->s, i), types) != E_RANGE)
			fail_msg("%s has more parameters than it declares", row->name);
		(void)stmt_reset(store_stmt(rig->s, i));
	}
}

/* The cost of a run or delivery must not depend on how many others there are: nothing walks a
 * table of them from its beginning, and what is asked at every turn does not sort either. */
static void
no_statement_walks_the_ledger(void **state)
{
	struct ledger_rig *rig = *state;
	size_t nstmts = ledger_store.nstmts;
	struct store_stmt_row *rows = mem_calloc(nstmts, sizeof(*rows));
	struct store_desc desc = ledger_store;
	CLEANUP_FREE char *path = mem_format("%s/plans.db", rig->dir);
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	for (size_t i = 0; i < nstmts; i++) {
		rows[i] = ledger_store.stmts[i];
		rows[i].sql = mem_format("EXPLAIN QUERY PLAN %s", rows[i].sql);
		assert_non_null(rows[i].sql);
	}
	desc.stmts = rows;
	assert_int_equal(store_open(&desc, path, &s, &why), 0);
	for (unsigned i = 0; i < nstmts; i++) {
		struct stmt *st = store_stmt(s, i);
		int hot = strncmp(rows[i].name, "CHECK_", 6) != 0;

		while (stmt_step(st) == 1) {
			const char *plan = stmt_text(st, 3);

			if (hot && strncmp(plan, "SCAN", 4) == 0 &&
			    (strstr(plan, "project_run") != NULL ||
				strstr(plan, "project_webhook") != NULL) &&
			    strstr(plan, "INDEX") == NULL)
				fail_msg("%s: %s", rows[i].name, plan);
			if (hot && strstr(plan, "TEMP B-TREE") != NULL)
				fail_msg("%s: %s", rows[i].name, plan);
		}
	}
	(void)store_close(s);
	for (size_t i = 0; i < nstmts; i++)
		mem_free((char *)(uintptr_t)rows[i].sql);
	free(rows);
}

/* ---- rows in each state ---- */

static const char *const status_names[NSTATES] = { "pending", "executable", "active",
	"cancel_requested", "passed", "failed", "canceled" };

/* All columns that go with a status; dispatch and index as in the tables. */
static const char *const status_columns[NSTATES] = {
	"public_status = 'queued', dispatch_status = 'blocked', position = accept_seq,"
	" lease_id = NULL, lease_expires_at = NULL",
	"public_status = 'queued', dispatch_status = 'pending', position = accept_seq,"
	" lease_id = NULL, lease_expires_at = NULL",
	"public_status = 'queued', dispatch_status = 'started', position = NULL,"
	" lease_id = '0123456789abcdef0123456789abcdef', lease_expires_at = 1",
	"public_status = 'cancel_requested', dispatch_status = 'started', position = NULL,"
	" lease_id = '0123456789abcdef0123456789abcdef', lease_expires_at = 1,"
	" cancel_requested_at = 1, cancel_by = 'operator'",
	"public_status = 'passed', dispatch_status = 'terminal', position = NULL,"
	" lease_expires_at = NULL, finished_at = 2, exit_code = 0,"
	" index_sync = 'needs_terminal_update'",
	"public_status = 'failed', dispatch_status = 'terminal', position = NULL,"
	" lease_expires_at = NULL, finished_at = 2, exit_code = 1, failure_code = 'step_failed',"
	" error_message = 'x', index_sync = 'needs_terminal_update'",
	"public_status = 'canceled', dispatch_status = 'terminal', position = NULL,"
	" lease_expires_at = NULL, finished_at = 2, failure_code = 'runtime_cancelled',"
	" cancel_requested_at = 1, cancel_by = 'operator', index_sync = 'needs_terminal_update'",
};

static int
set_status(const struct ledger_rig *rig, enum ledger_state to)
{
	return rig_exec(rig, "UPDATE project_runs SET status = '%s', %s WHERE run_id = '%s'",
	    status_names[to], status_columns[to], rig_run(rig, 1));
}

static int
set(const struct ledger_rig *rig, const char *columns)
{
	return rig_exec(
	    rig, "UPDATE project_runs SET %s WHERE run_id = '%s'", columns, rig_run(rig, 1));
}

/* Run 1 in that status, over legal moves alone. */
static void
make(struct ledger_rig *rig, enum ledger_state to)
{
	assert_int_equal(rig_exec(rig, "DELETE FROM project_state"), 0);
	rig_project(rig, 1);
	/* With a head before it the run begins pending. */
	rig_accept(rig, 1, 2);
	rig_accept(rig, 1, 1);
	rig_cancel(rig, 2);
	if (to == LEDGER_PENDING) {
		assert_int_equal(rig_exec(rig, "DELETE FROM project_runs"), 0);
		rig_accept(rig, 1, 2);
		rig_accept(rig, 1, 1);
		/* The head goes without promoting. */
		assert_int_equal(rig_exec(rig, "DELETE FROM project_runs WHERE run_id = '%s'",
				     rig_run(rig, 2)),
		    0);
	}
	if (to <= LEDGER_EXECUTABLE)
		return;
	assert_int_equal(set_status(rig, LEDGER_ACTIVE), 0);
	if (to == LEDGER_CANCEL_REQUESTED || to == LEDGER_CANCELED)
		assert_int_equal(set_status(rig, LEDGER_CANCEL_REQUESTED), 0);
	if (to >= LEDGER_PASSED)
		assert_int_equal(set_status(rig, to), 0);
}

static void
every_pair_of_statuses_is_legal_by_the_table_or_refused(void **state)
{
	/* From, to: pending executable active cancel_requested passed failed canceled. */
	static const char legal[NSTATES][NSTATES + 1] = {
		"=x....x", /* pending          */
		".=x..xx", /* executable       */
		".x=xxx.", /* active           */
		"...=xxx", /* cancel_requested */
		"....=..", /* passed           */
		".....=.", /* failed           */
		"......=", /* canceled         */
	};
	struct ledger_rig *rig = *state;
	int ntried = 0;

	for (int from = 0; from < NSTATES; from++) {
		for (int to = 0; to < NSTATES; to++) {
			int r;

			if (from == to)
				continue;
			make(rig, (enum ledger_state)from);
			assert_int_equal(rig_row(rig, 1).state, from);
			r = set_status(rig, (enum ledger_state)to);
			if (r != (legal[from][to] == 'x' ? 0 : E_ILLEGAL))
				fail_msg("%s to %s: %s (%s)", status_names[from],
				    status_names[to], err_symbol(r), store_error(rig->s));
			ntried++;
		}
	}
	assert_int_equal(ntried, NSTATES * (NSTATES - 1));
}

/* ---- dispatch ---- */

static const char *const dispatch_names[NDISPATCH] = { "blocked", "pending", "queued",
	"started", "terminal" };
static const enum ledger_state dispatch_status[NDISPATCH] = { LEDGER_PENDING, LEDGER_EXECUTABLE,
	LEDGER_EXECUTABLE, LEDGER_ACTIVE, LEDGER_FAILED };

static void
make_dispatch(struct ledger_rig *rig, enum ledger_dispatch d)
{
	make(rig, dispatch_status[d]);
	if (d == LEDGER_DISPATCH_QUEUED)
		assert_int_equal(set(rig, "dispatch_status = 'queued'"), 0);
	assert_int_equal(rig_row(rig, 1).dispatch, d);
}

static void
every_pair_of_dispatch_states_is_legal_by_the_table_or_refused(void **state)
{
	/* From, to: blocked pending queued started terminal. */
	static const char legal[NDISPATCH][NDISPATCH + 1] = {
		"=x..x", /* blocked: terminal by way of canceled */
		".=xxx", /* pending                              */
		".x=xx", /* queued                               */
		".x.=x", /* started                              */
		"....=", /* terminal                             */
	};
	struct ledger_rig *rig = *state;

	for (int from = 0; from < NDISPATCH; from++) {
		for (int to = 0; to < NDISPATCH; to++) {
			enum ledger_state status = dispatch_status[to];
			int r;

			if (from == to)
				continue;
			if (from == LEDGER_DISPATCH_BLOCKED && to == LEDGER_DISPATCH_TERMINAL)
				status = LEDGER_CANCELED;
			make_dispatch(rig, (enum ledger_dispatch)from);
			r = rig_exec(rig,
			    "UPDATE project_runs SET status = '%s', %s, dispatch_status = '%s'"
			    " WHERE run_id = '%s'",
			    status_names[status], status_columns[status], dispatch_names[to],
			    rig_run(rig, 1));
			if (r != (legal[from][to] == 'x' ? 0 : E_ILLEGAL))
				fail_msg("%s to %s: %s (%s)", dispatch_names[from],
				    dispatch_names[to], err_symbol(r), store_error(rig->s));
		}
	}
}

static void
dispatch_and_status_go_together(void **state)
{
	struct ledger_rig *rig = *state;

	for (int status = 0; status < NSTATES; status++) {
		for (int d = 0; d < NDISPATCH; d++) {
			char columns[64];
			int r, fits;

			make(rig, (enum ledger_state)status);
			if ((int)rig_row(rig, 1).dispatch == d)
				continue;
			fits = status == LEDGER_EXECUTABLE && d == LEDGER_DISPATCH_QUEUED;
			(void)snprintf(columns, sizeof(columns), "dispatch_status = '%s'",
			    dispatch_names[d]);
			r = set(rig, columns);
			if (fits)
				assert_int_equal(r, 0);
			else
				assert_true(r == E_ILLEGAL || r == E_CONSTRAINT);
		}
	}
}

/* ---- index ---- */

static const char *const sync_names[NSYNCS] = { "needs_create", "current", "needs_update",
	"needs_terminal_update", "done" };

static void
make_sync(struct ledger_rig *rig, enum ledger_sync sync)
{
	make(rig, sync >= LEDGER_SYNC_NEEDS_TERMINAL_UPDATE ? LEDGER_FAILED : LEDGER_ACTIVE);
	if (sync == LEDGER_SYNC_CURRENT || sync == LEDGER_SYNC_NEEDS_UPDATE)
		assert_int_equal(set(rig, "index_sync = 'current'"), 0);
	if (sync == LEDGER_SYNC_NEEDS_UPDATE)
		assert_int_equal(set(rig, "index_sync = 'needs_update'"), 0);
	if (sync == LEDGER_SYNC_DONE)
		assert_int_equal(set(rig, "index_sync = 'done', done_at = 3"), 0);
	assert_int_equal(rig_row(rig, 1).sync, sync);
}

static void
every_pair_of_index_states_is_legal_by_the_table_or_refused(void **state)
{
	/* From, to: needs_create current needs_update needs_terminal_update done. */
	static const char legal[NSYNCS][NSYNCS + 1] = {
		"=xxx.", /* needs_create          */
		".=xx.", /* current               */
		".x=x.", /* needs_update          */
		"...=x", /* needs_terminal_update */
		"....=", /* done                  */
	};
	struct ledger_rig *rig = *state;

	for (int from = 0; from < NSYNCS; from++) {
		for (int to = 0; to < NSYNCS; to++) {
			int ends = from < LEDGER_SYNC_NEEDS_TERMINAL_UPDATE &&
			    to >= LEDGER_SYNC_NEEDS_TERMINAL_UPDATE;
			int r;

			if (from == to)
				continue;
			make_sync(rig, (enum ledger_sync)from);
			r = rig_exec(rig,
			    "UPDATE project_runs SET index_sync = '%s', done_at = %s%s%s"
			    " WHERE run_id = '%s'",
			    sync_names[to], to == LEDGER_SYNC_DONE ? "3" : "NULL",
			    ends ? ", status = 'failed', public_status = 'failed',"
				   " dispatch_status = 'terminal', lease_expires_at = NULL,"
				   " finished_at = 2, exit_code = 1, error_message = 'x'"
				 : "",
			    ends ? ", failure_code = 'step_failed'" : "", rig_run(rig, 1));
			if (r != (legal[from][to] == 'x' ? 0 : E_ILLEGAL))
				fail_msg("%s to %s: %s (%s)", sync_names[from], sync_names[to],
				    err_symbol(r), store_error(rig->s));
		}
	}
}

/* ---- inserts ---- */

static int
insert(const struct ledger_rig *rig, const char *status, const char *dispatch, const char *sync)
{
	int terminal = strcmp(dispatch, "terminal") == 0;

	return rig_exec(rig,
	    "INSERT INTO project_runs (run_id, project_id, accept_seq, position, status,"
	    " public_status, dispatch_status, dispatch_attempts, trigger_type,"
	    " triggered_by_user_id, branch, repo_url, config_path, queued_at, lease_epoch,"
	    " index_sync, index_rev, index_since, index_attempt, finished_at, exit_code)"
	    " VALUES ('%s', '%s', 7, %s, '%s', '%s', '%s', 0, 'manual', '%s', 'main', 'u', 'c',"
	    " 1, 0, '%s', 1, 1, 0, %s, %s)",
	    rig_run(rig, 5), rig_prj(rig, 1), terminal ? "NULL" : "7", status,
	    terminal ? status : "queued", dispatch, rig_usr(rig, 1), sync,
	    terminal ? "2" : "NULL", terminal ? "0" : "NULL");
}

static void
a_run_begins_in_the_first_rows_of_the_tables_alone(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	assert_int_equal(insert(rig, "executable", "queued", "needs_create"), E_ILLEGAL);
	assert_int_equal(insert(rig, "executable", "blocked", "needs_create"), E_ILLEGAL);
	assert_int_equal(insert(rig, "executable", "pending", "current"), E_ILLEGAL);
	assert_int_equal(insert(rig, "executable", "pending", "needs_update"), E_ILLEGAL);
	assert_int_equal(insert(rig, "pending", "pending", "needs_create"), E_ILLEGAL);
	assert_int_equal(insert(rig, "active", "started", "needs_create"), E_ILLEGAL);
	assert_int_equal(insert(rig, "passed", "terminal", "needs_terminal_update"), E_ILLEGAL);
	assert_int_equal(insert(rig, "pending", "blocked", "needs_create"), 0);
	assert_int_equal(rig_exec(rig, "DELETE FROM project_runs"), 0);
	assert_int_equal(insert(rig, "executable", "pending", "needs_create"), 0);
}

static void
a_project_has_one_head_and_each_number_once(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_runs SET status = 'executable',"
			     " dispatch_status = 'pending' WHERE run_id = '%s'",
			     rig_run(rig, 2)),
	    E_CONSTRAINT);
	assert_int_equal(insert(rig, "executable", "pending", "needs_create"), E_CONSTRAINT);
	assert_int_equal(
	    rig_exec(rig, "UPDATE project_runs SET position = 9 WHERE position = 2"),
	    E_CONSTRAINT);
	assert_int_equal(
	    rig_exec(rig, "INSERT INTO project_runs SELECT * FROM project_runs"), E_CONSTRAINT);
}

/* ---- what never changes ---- */

static void
what_a_run_was_accepted_with_never_changes(void **state)
{
	static const char *const changes[] = { "run_id = 'run_9999999999999999999999'",
		"project_id = 'prj_0000000000000000000002'", "accept_seq = 99, position = 99",
		"trigger_type = 'webhook'", "triggered_by_user_id = NULL",
		"triggered_by_user_id = 'usr_0000000000000000000002'", "provider = 'github'",
		"delivery_id = 'x'", "branch = 'other'", "repo_url = 'other'",
		"config_path = 'other'", "queued_at = queued_at + 1" };
	struct ledger_rig *rig = *state;

	make(rig, LEDGER_EXECUTABLE);
	rig_project(rig, 2);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		if (set(rig, changes[i]) != E_ILLEGAL)
			fail_msg("%s: %s", changes[i], store_error(rig->s));
}

static void
numbers_that_grow_do_not_shrink(void **state)
{
	struct ledger_rig *rig = *state;

	make(rig, LEDGER_EXECUTABLE);
	assert_int_equal(set(rig, "index_rev = 5, lease_epoch = 5"), 0);
	assert_int_equal(set(rig, "index_rev = 4"), E_ILLEGAL);
	assert_int_equal(set(rig, "lease_epoch = 4"), E_ILLEGAL);
	assert_int_equal(rig_exec(rig, "UPDATE project_state SET next_seq = 2"), E_ILLEGAL);
	assert_int_equal(rig_exec(rig, "UPDATE project_state SET index_rev = 0"), E_ILLEGAL);
	assert_int_equal(rig_exec(rig, "UPDATE project_state SET next_seq = 9"), 0);
}

static void
a_commit_is_recorded_once_and_only_completed_after_that(void **state)
{
	struct ledger_rig *rig = *state;

	make(rig, LEDGER_ACTIVE);
	assert_int_equal(set(rig, "commit_sha = '0123456'"), 0);
	assert_int_equal(set(rig, "commit_sha = NULL"), E_ILLEGAL);
	assert_int_equal(set(rig, "commit_sha = '0123457'"), E_ILLEGAL);
	assert_int_equal(set(rig, "commit_sha = '1234567890'"), E_ILLEGAL);
	assert_int_equal(
	    set(rig, "commit_sha = '0123456789abcdef0123456789abcdef01234567'"), 0);
	assert_int_equal(set(rig, "commit_sha = '0123456'"), E_ILLEGAL);
	assert_int_equal(set(rig, "commit_sha = 'abc'"), E_ILLEGAL);
}

static void
a_terminal_row_changes_in_what_the_index_needs_alone(void **state)
{
	static const char *const changes[] = { "dispatch_attempts = 3", "dispatch_retry_at = 1",
		"last_error = 'x'", "commit_sha = '0123456789abcdef'", "claimed_at = 9",
		"started_at = 9", "finished_at = 9", "exit_code = 9",
		"failure_code = 'run_timeout'", "error_message = 'y'",
		"spawn_id = '00000000000000000000000000000009'", "lease_epoch = 9",
		"lease_id = NULL", "cancel_requested_at = 9, cancel_by = 'shutdown'",
		"public_status = 'passed'", "position = accept_seq" };
	struct ledger_rig *rig = *state;

	make(rig, LEDGER_FAILED);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		if (set(rig, changes[i]) != E_ILLEGAL)
			fail_msg("%s: %s", changes[i], store_error(rig->s));
	assert_int_equal(set(rig, "index_rev = 9, index_attempt = 2, index_retry_at = 7"), 0);
	assert_int_equal(
	    set(rig,
		"index_sync = 'done', done_at = 9, index_since = 9, index_retry_at = NULL"),
	    0);
}

/* ---- checks ---- */

static void
words_and_shapes_that_are_not_listed_are_refused(void **state)
{
	static const struct {
		enum ledger_state in;
		const char *change;
	} rows[] = {
		{ LEDGER_ACTIVE, "public_status = 'passed'" },
		{ LEDGER_ACTIVE, "public_status = 'sleeping'" },
		{ LEDGER_EXECUTABLE, "public_status = 'running'" },
		{ LEDGER_ACTIVE, "commit_sha = '012345'" },
		{ LEDGER_ACTIVE, "commit_sha = '0123456789ABCDEF'" },
		{ LEDGER_ACTIVE, "spawn_id = 'short'" },
		{ LEDGER_ACTIVE, "lease_id = NULL" },
		{ LEDGER_ACTIVE, "lease_expires_at = NULL" },
		{ LEDGER_ACTIVE, "lease_id = '0123456789ABCDEF0123456789ABCDEF'" },
		{ LEDGER_EXECUTABLE, "lease_id = '0123456789abcdef0123456789abcdef'" },
		{ LEDGER_EXECUTABLE, "lease_expires_at = 1" },
		{ LEDGER_EXECUTABLE, "dispatch_attempts = 7" },
		{ LEDGER_EXECUTABLE, "dispatch_attempts = -1" },
		{ LEDGER_EXECUTABLE, "position = NULL" },
		{ LEDGER_ACTIVE, "position = accept_seq" },
		{ LEDGER_ACTIVE, "exit_code = 0" },
		{ LEDGER_ACTIVE, "failure_code = 'step_failed'" },
		{ LEDGER_ACTIVE, "error_message = 'x'" },
		{ LEDGER_ACTIVE, "finished_at = 1" },
		{ LEDGER_ACTIVE, "cancel_by = 'operator'" },
		{ LEDGER_ACTIVE, "cancel_requested_at = 1" },
		{ LEDGER_ACTIVE, "cancel_requested_at = 1, cancel_by = 'somebody'" },
		{ LEDGER_ACTIVE, "done_at = 1" },
		{ LEDGER_ACTIVE, "index_attempt = -1" },
		{ LEDGER_ACTIVE, "dispatch_retry_at = 1" },
		{ LEDGER_ACTIVE, "index_sync = 'current', index_retry_at = 1" },
		{ LEDGER_FAILED, "done_at = 1" },
	};
	struct ledger_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r;

		make(rig, rows[i].in);
		r = set(rig, rows[i].change);
		if (r != E_CONSTRAINT)
			fail_msg("%s: %s", rows[i].change, err_symbol(r));
	}
}

static void
texts_are_bounded_in_bytes(void **state)
{
	struct ledger_rig *rig = *state;

	make(rig, LEDGER_EXECUTABLE);
	assert_int_equal(set(rig, "last_error = printf('%.*c', 1024, 'x')"), 0);
	assert_int_equal(set(rig, "last_error = printf('%.*c', 1025, 'x')"), E_CONSTRAINT);
	assert_int_equal(
	    set(rig, "last_error = replace(printf('%.*c', 600, 'x'), 'x', char(233))"),
	    E_CONSTRAINT);
	make(rig, LEDGER_ACTIVE);
	assert_int_equal(
	    rig_exec(rig,
		"UPDATE project_runs SET status = 'failed', %s, "
		"error_message = printf('%%.*c', 4097, 'x') WHERE run_id = '%s'",
		"public_status = 'failed', dispatch_status = 'terminal', lease_expires_at = NULL,"
		" finished_at = 2, exit_code = 1, failure_code = 'step_failed',"
		" index_sync = 'needs_terminal_update'",
		rig_run(rig, 1)),
	    E_CONSTRAINT);
}

/* What a status says of exit code, failure code and message. */
static void
ends_carry_the_values_of_their_status(void **state)
{
	static const struct {
		const char *status, *values;
		int ok;
	} rows[] = {
		{ "passed", "exit_code = 0", 1 },
		{ "passed", "exit_code = 1", 0 },
		{ "passed", "exit_code = NULL", 0 },
		{ "passed", "exit_code = 0, failure_code = 'step_failed'", 0 },
		{ "passed", "exit_code = 0, error_message = 'x'", 0 },
		{ "failed", "exit_code = 1, failure_code = 'runner_lost', error_message = 'x'",
		    1 },
		{ "failed", "exit_code = 0, failure_code = 'step_failed', error_message = 'x'",
		    1 },
		{ "failed", "failure_code = 'runner_lost', error_message = 'x'", 0 },
		{ "failed", "exit_code = 1, error_message = 'x'", 0 },
		{ "failed", "exit_code = 1, failure_code = 'runner_lost'", 0 },
		{ "failed", "exit_code = 1, failure_code = 'bad_luck', error_message = 'x'",
		    0 },
		{ "failed",
		    "exit_code = 1, failure_code = 'runtime_cancelled', error_message = 'x'",
		    0 },
		{ "canceled", "failure_code = 'runtime_cancelled'", 1 },
		{ "canceled", "failure_code = 'step_failed'", 0 },
		{ "canceled", "failure_code = NULL", 0 },
		{ "canceled", "failure_code = 'runtime_cancelled', exit_code = 1", 0 },
		{ "canceled", "failure_code = 'runtime_cancelled', error_message = 'x'", 0 },
	};
	struct ledger_rig *rig = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r;

		make(rig, LEDGER_CANCEL_REQUESTED);
		r = rig_exec(rig,
		    "UPDATE project_runs SET status = '%s', public_status = '%s',"
		    " dispatch_status = 'terminal', lease_expires_at = NULL, finished_at = 2,"
		    " index_sync = 'needs_terminal_update', %s WHERE run_id = '%s'",
		    rows[i].status, rows[i].status, rows[i].values, rig_run(rig, 1));
		if (r != (rows[i].ok ? 0 : E_CONSTRAINT))
			fail_msg("%s, %s: %s", rows[i].status, rows[i].values, err_symbol(r));
	}
}

static void
projects_are_checked_too(void **state)
{
	static const char *const bad[] = { "UPDATE project_state SET phase = 'asleep'",
		"UPDATE project_state SET phase = 'frozen'",
		"UPDATE project_state SET move_id = '0123456789abcdef0123456789abcdef'",
		"UPDATE project_state SET phase = 'incoming', move_to = 1,"
		" move_id = '0123456789abcdef0123456789abcdef'",
		"UPDATE project_state SET index_sync = 'done'",
		"UPDATE project_config SET owner_slug = 'a b'",
		"UPDATE project_config SET project_slug = ''",
		"UPDATE project_config SET name = ''",
		"UPDATE project_config SET name = printf('%.*c', 65, 'x')",
		"UPDATE project_config SET owner_user_id = 'usr_1'",
		"UPDATE project_config SET default_branch = ''",
		"UPDATE project_config SET repo_token_nonce = NULL",
		"UPDATE project_config SET repo_token_key_version = NULL",
		"INSERT INTO project_run_events VALUES ('run_0000000000000000000009', 1, 1,"
		" 'accepted', '{}')" };
	static const char *const good[] = {
		"UPDATE project_state SET phase = 'frozen', move_to = 1, move_step = 1,"
		" move_id = '0123456789abcdef0123456789abcdef'",
		"UPDATE project_state SET phase = 'live', move_to = NULL, move_step = NULL,"
		" move_id = NULL",
		"UPDATE project_state SET phase = 'removing'"
	};
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int r = store_exec(rig->s, bad[i]);

		if (r != E_CONSTRAINT && r != E_ILLEGAL)
			fail_msg("%s", bad[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (store_exec(rig->s, good[i]) != 0)
			fail_msg("%s: %s", good[i], store_error(rig->s));
}

static void
a_project_takes_its_rows_along(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_event *events;
	struct ledger_run run;
	size_t n;

	make(rig, LEDGER_PASSED);
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 1)), 0);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, 1), &run), E_NOENT);
	assert_int_equal(ledger_events(rig->s, rig->a, rig_run(rig, 1), &events, &n), 0);
	assert_int_equal(n, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_statement_prepares_with_the_parameters_it_declares),
		TEST(no_statement_walks_the_ledger),
		TEST(every_pair_of_statuses_is_legal_by_the_table_or_refused),
		TEST(every_pair_of_dispatch_states_is_legal_by_the_table_or_refused),
		TEST(dispatch_and_status_go_together),
		TEST(every_pair_of_index_states_is_legal_by_the_table_or_refused),
		TEST(a_run_begins_in_the_first_rows_of_the_tables_alone),
		TEST(a_project_has_one_head_and_each_number_once),
		TEST(what_a_run_was_accepted_with_never_changes),
		TEST(numbers_that_grow_do_not_shrink),
		TEST(a_commit_is_recorded_once_and_only_completed_after_that),
		TEST(a_terminal_row_changes_in_what_the_index_needs_alone),
		TEST(words_and_shapes_that_are_not_listed_are_refused),
		TEST(texts_are_bounded_in_bytes),
		TEST(ends_carry_the_values_of_their_status),
		TEST(projects_are_checked_too),
		TEST(a_project_takes_its_rows_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
