#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"

#define NOW 1700000000000
#define CAP ((int64_t)1 << 28)

static char dir[64];
static struct record *rec;
static struct arena *arena;

static const struct record_claim first_claim = {
	.run_id = "run_0123456789abcdefghijAB",
	.project_id = "prj_0123456789abcdefghijAB",
	.owner_slug = "ada",
	.project_slug = "engine",
	.trigger_type = TRIGGER_TYPE_MANUAL,
	.triggered_by_user_id = "usr_0123456789abcdefghijAB",
	.branch = "main",
	.queued_at_ms = NOW - 1000,
	.epoch = 1,
	.spawn_id = "00112233445566778899aabbccddeeff",
	.sandbox = "bwrap",
};
static const struct record_plan_step two_steps[] = { { "build", "make" },
	{ "test", "make check" } };
static const struct record_exit exit_0 = { { 1, 0 }, 0 };

static void
reopen(void)
{
	char *why = NULL;

	rec = record_free(rec);
	if (record_open(dir, CAP, &rec, &why) < 0)
		fail_msg("%s", why);
}

static int
make_record(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/anvil-record-XXXXXX");
	arena = arena_new();
	if (mkdtemp(dir) == NULL || arena == NULL)
		return -1;
	reopen();
	return 0;
}

static int
remove_record(void **state)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "log.zst" };
	char path[96];

	(void)state;
	rec = record_free(rec);
	arena = arena_free(arena);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	return rmdir(dir);
}

static struct record_run
run(void)
{
	struct record_run r;

	assert_int_equal(record_run_get(rec, arena, &r), 0);
	return r;
}

static struct record_step
step(size_t i)
{
	struct record_step *steps;
	size_t n;

	assert_int_equal(record_steps_get(rec, arena, &steps, &n), 0);
	assert_true(i < n);
	return steps[i];
}

static int
finish(enum run_status status, enum failure_code code)
{
	const struct record_outcome o = { .status = status,
		.exit_code = 1,
		.failure_code = code,
		.error_message = "It failed." };

	return record_finish(rec, &o, NOW + 9);
}

/* Legal moves to ${status}; two planned steps, both over where the run has passed. */
static void
lead_to(enum run_status status)
{
	int64_t next = 0;

	assert_int_equal(record_claim(rec, &first_claim, NOW), 0);
	assert_int_equal(record_plan(rec, two_steps, 2, 720), 0);
	if (status == RUN_STATUS_STARTING)
		return;
	if (status != RUN_STATUS_FAILED)
		assert_int_equal(record_begin(rec, NOW + 1), 0);
	if (status == RUN_STATUS_PASSED)
		for (int64_t at = 1; at <= 2; at++)
			assert_int_equal(
			    record_end_step(rec, at, 1, exit_0, NOW + 2, &next), 0);
	if (status == RUN_STATUS_CANCEL_REQUESTED || status == RUN_STATUS_CANCELING ||
	    status == RUN_STATUS_CANCELED)
		assert_int_equal(record_request_cancel(rec, NOW + 3), 0);
	if (status == RUN_STATUS_CANCELING || status == RUN_STATUS_CANCELED)
		assert_int_equal(record_begin_canceling(rec), 0);
	if (record_is_terminal(status))
		assert_int_equal(finish(status, FAILURE_CODE_INTERNAL_UNEXPECTED), 0);
	assert_int_equal(run().status, status);
}

/* ---- the state matrix, by the store alone ---- */

/* Spec run 3, spelled again. */
static int
is_legal(enum run_status from, enum run_status to, enum failure_code code)
{
	int lost = code == FAILURE_CODE_RUNNER_LOST;
	int unclean = code == FAILURE_CODE_CANCEL_CLEANUP_FAILED;
	int of_step = code == FAILURE_CODE_STEP_FAILED || code == FAILURE_CODE_OUT_OF_MEMORY;

	if (record_is_terminal(from) || to == RUN_STATUS_QUEUED)
		return 0;
	if (from == to)
		return 1;
	switch (from) {
	case RUN_STATUS_STARTING:
		return to == RUN_STATUS_RUNNING || to == RUN_STATUS_CANCEL_REQUESTED ||
		    (to == RUN_STATUS_FAILED && !of_step && !unclean);
	case RUN_STATUS_RUNNING:
		return to == RUN_STATUS_PASSED || to == RUN_STATUS_CANCEL_REQUESTED ||
		    (to == RUN_STATUS_FAILED && !unclean);
	case RUN_STATUS_CANCEL_REQUESTED:
		return to == RUN_STATUS_CANCELING || (to == RUN_STATUS_FAILED && lost);
	case RUN_STATUS_CANCELING:
		return to == RUN_STATUS_CANCELED ||
		    (to == RUN_STATUS_FAILED && (lost || unclean));
	default: return 0;
	}
}

/* An UPDATE that breaks no rule but that of the move. */
static int
force(enum run_status to, enum failure_code code)
{
	static const char *const exit_codes[RUN_STATUS_COUNT] = {
		[RUN_STATUS_PASSED] = "0",
		[RUN_STATUS_FAILED] = "1",
	};
	int needs_cancel = to == RUN_STATUS_CANCEL_REQUESTED || to == RUN_STATUS_CANCELING ||
	    to == RUN_STATUS_CANCELED;
	CLEANUP_FREE char *failure = mem_format("'%s'",
	    failure_code_name(to == RUN_STATUS_FAILED ? code : FAILURE_CODE_RUNTIME_CANCELLED));
	CLEANUP_FREE char *sql = mem_format(
	    "UPDATE run_meta SET status = '%s', finished_at = %s, exit_code = %s,"
	    " failure_code = %s, error_message = %s, current_step = NULL,"
	    " cancel_requested_at = coalesce(cancel_requested_at, %s)",
	    run_status_name(to), record_is_terminal(to) ? "5" : "NULL",
	    exit_codes[to] != NULL ? exit_codes[to] : "NULL",
	    to == RUN_STATUS_FAILED || to == RUN_STATUS_CANCELED ? failure : "NULL",
	    to == RUN_STATUS_FAILED ? "'m'" : "NULL", needs_cancel ? "4" : "NULL");

	return store_exec(rec->store, sql);
}

static void
try_move(enum run_status from, enum run_status to, enum failure_code code)
{
	int legal = is_legal(from, to, code), r;

	assert_int_equal(store_begin(rec->store), 0);
	/* A step that runs would stand in the way of every end. */
	if (!record_is_terminal(from) && record_is_terminal(to))
		assert_int_equal(store_exec(rec->store, "DELETE FROM run_steps"), 0);
	r = force(to, code);
	if (to == RUN_STATUS_QUEUED ? r != E_CONSTRAINT && r != E_ILLEGAL
				    : r != (legal ? 0 : E_ILLEGAL))
		fail_msg("%s -> %s (%s): %s", run_status_name(from), run_status_name(to),
		    failure_code_name(code), err_text(r));
	store_rollback(rec->store);
}

static void
the_store_refuses_every_move_that_is_not_in_the_table(void **state)
{
	int tried = 0;

	for (int from = RUN_STATUS_STARTING; from < RUN_STATUS_COUNT; from++) {
		assert_int_equal(make_record(state), 0);
		lead_to((enum run_status)from);
		for (int to = 0; to < RUN_STATUS_COUNT; to++) {
			int ncodes = to == RUN_STATUS_FAILED ? FAILURE_CODE_COUNT : 1;

			for (int code = 0; code < ncodes; code++) {
				if (code == FAILURE_CODE_DISPATCH_FAILED ||
				    code == FAILURE_CODE_RUNTIME_CANCELLED)
					continue; /* No run fails with these: by a CHECK. */
				try_move((enum run_status)from, (enum run_status)to,
				    (enum failure_code)code);
				tried++;
			}
		}
		assert_int_equal(remove_record(state), 0);
	}
	assert_int_equal(
	    tried, (RUN_STATUS_COUNT - 1) * (RUN_STATUS_COUNT - 1 + FAILURE_CODE_COUNT - 2));
}

/* ---- the same matrix, by the functions ---- */

enum call {
	CLAIM_AGAIN,
	BEGIN,
	REQUEST_CANCEL,
	BEGIN_CANCELING,
	PASS,
	FAIL,
	CANCEL,
	LOSE,
	CALLS
};

static int
do_call(enum call c)
{
	struct record_claim again = first_claim;

	again.epoch = 2;
	switch (c) {
	case CLAIM_AGAIN: return record_claim(rec, &again, NOW + 5);
	case BEGIN: return record_begin(rec, NOW + 5);
	case REQUEST_CANCEL: return record_request_cancel(rec, NOW + 5);
	case BEGIN_CANCELING: return record_begin_canceling(rec);
	case PASS: return finish(RUN_STATUS_PASSED, 0);
	case FAIL: return finish(RUN_STATUS_FAILED, FAILURE_CODE_RUN_TIMEOUT);
	case CANCEL: return finish(RUN_STATUS_CANCELED, 0);
	case LOSE: return record_lose(rec, "The lease was lost.", NOW + 5);
	default: return 0;
	}
}

#define NO E_ILLEGAL
/* Cancel and loss of an ended run are no mistakes: they come too late, and say 1. */
static const int wanted[RUN_STATUS_COUNT][CALLS] = {
	/* claim again, begin, cancel, canceling, pass, fail, canceled, lose */
	[RUN_STATUS_STARTING] = { 0, 0, 0, NO, NO, 0, NO, 0 },
	[RUN_STATUS_RUNNING] = { NO, NO, 0, NO, NO, 0, NO, 0 },
	[RUN_STATUS_CANCEL_REQUESTED] = { NO, NO, 0, 0, NO, NO, NO, 0 },
	[RUN_STATUS_CANCELING] = { NO, NO, 0, 0, NO, NO, 0, 0 },
	[RUN_STATUS_PASSED] = { 1, NO, 1, NO, NO, NO, NO, 1 },
	[RUN_STATUS_FAILED] = { 1, NO, 1, NO, NO, NO, NO, 1 },
	[RUN_STATUS_CANCELED] = { 1, NO, 1, NO, NO, NO, NO, 1 },
};
#undef NO

static void
every_function_moves_only_from_where_it_may(void **state)
{
	for (int from = RUN_STATUS_STARTING; from < RUN_STATUS_COUNT; from++) {
		for (int c = 0; c < CALLS; c++) {
			int r;

			assert_int_equal(make_record(state), 0);
			lead_to((enum run_status)from);
			r = do_call((enum call)c);
			if (r != wanted[from][c])
				fail_msg("%s, call %d: %d, expected %d",
				    run_status_name((enum run_status)from), c, r,
				    wanted[from][c]);
			if (r != 0)
				assert_int_equal(run().status, from);
			assert_int_equal(remove_record(state), 0);
		}
	}
}

/* ---- steps ---- */

static void
the_store_refuses_every_move_of_a_step_that_is_not_in_the_table(void **state)
{
	static const int legal[STEP_STATUS_COUNT][STEP_STATUS_COUNT] = {
		[STEP_STATUS_QUEUED] = { 1, 1, 0, 0 },
		[STEP_STATUS_RUNNING] = { 0, 1, 1, 1 },
	};
	static const char *const into[] = {
		"UPDATE run_steps SET status = 'queued', started_at = NULL WHERE position = 2",
		"UPDATE run_steps SET status = 'running', started_at = 5 WHERE position = 2",
		"UPDATE run_steps SET status = 'passed', started_at = 5, finished_at = 6,"
		" exit_code = 0 WHERE position = 2",
		"UPDATE run_steps SET status = 'failed', started_at = 5, finished_at = 6,"
		" exit_code = 3 WHERE position = 2",
	};

	(void)state;
	lead_to(RUN_STATUS_RUNNING);
	for (int from = 0; from < STEP_STATUS_COUNT; from++) {
		for (int to = 0; to < STEP_STATUS_COUNT; to++) {
			assert_int_equal(store_begin(rec->store), 0);
			if (from != STEP_STATUS_QUEUED)
				assert_int_equal(store_exec(rec->store, into[1]), 0);
			if (from > STEP_STATUS_RUNNING)
				assert_int_equal(store_exec(rec->store, into[from]), 0);
			assert_int_equal(
			    store_exec(rec->store, into[to]), legal[from][to] ? 0 : E_ILLEGAL);
			store_rollback(rec->store);
		}
	}
}

static void
a_step_runs_only_while_the_run_does(void **state)
{
	(void)state;
	lead_to(RUN_STATUS_STARTING);
	assert_int_equal(store_exec(rec->store,
			     "UPDATE run_steps SET status = 'running',"
			     " started_at = 1 WHERE position = 1"),
	    E_ILLEGAL);
}

static void
no_run_ends_before_its_running_step(void **state)
{
	(void)state;
	lead_to(RUN_STATUS_RUNNING);
	assert_int_equal(force(RUN_STATUS_FAILED, FAILURE_CODE_RUN_TIMEOUT), E_ILLEGAL);
	assert_int_equal(force(RUN_STATUS_PASSED, 0), E_ILLEGAL);
}

static void
steps_follow_one_another_until_one_fails(void **state)
{
	const struct record_exit killed = { { 1, 137 }, 9 };
	int64_t next = 77;

	(void)state;
	lead_to(RUN_STATUS_RUNNING);
	assert_int_equal(run().current_step.v, 1);
	assert_int_equal(step(0).status, STEP_STATUS_RUNNING);
	assert_int_equal(step(0).started_at_ms.v, NOW + 1);
	assert_int_equal(step(1).status, STEP_STATUS_QUEUED);
	assert_int_equal(record_end_step(rec, 1, 1, exit_0, NOW + 2, &next), 0);
	assert_int_equal(next, 2);
	assert_int_equal(run().current_step.v, 2);
	assert_int_equal(step(0).status, STEP_STATUS_PASSED);
	assert_int_equal(step(0).exit_code.v, 0);
	assert_int_equal(step(1).status, STEP_STATUS_RUNNING);
	assert_int_equal(record_end_step(rec, 2, 0, killed, NOW + 3, &next), 0);
	assert_int_equal(next, 0);
	assert_int_equal(step(1).status, STEP_STATUS_FAILED);
	assert_int_equal(step(1).exit_code.v, 137);
	assert_int_equal(step(1).signal.v, 9);
	assert_int_equal(step(1).finished_at_ms.v, NOW + 3);
	assert_int_equal(finish(RUN_STATUS_PASSED, 0), E_ILLEGAL);
	assert_int_equal(finish(RUN_STATUS_FAILED, FAILURE_CODE_STEP_FAILED), 0);
	assert_false(run().current_step.set);
}

static void
nothing_starts_once_a_cancel_was_seen(void **state)
{
	int64_t next = 77;

	(void)state;
	lead_to(RUN_STATUS_CANCEL_REQUESTED);
	assert_int_equal(record_end_step(rec, 1, 1, exit_0, NOW + 4, &next), 0);
	assert_int_equal(next, 0);
	assert_int_equal(step(0).status, STEP_STATUS_PASSED);
	assert_int_equal(step(1).status, STEP_STATUS_QUEUED);
	assert_int_equal(record_begin_canceling(rec), 0);
	assert_int_equal(finish(RUN_STATUS_CANCELED, 0), 0);
	assert_int_equal(step(1).status, STEP_STATUS_QUEUED);
}

static void
a_run_without_steps_passes(void **state)
{
	(void)state;
	assert_int_equal(record_claim(rec, &first_claim, NOW), 0);
	assert_int_equal(record_plan(rec, NULL, 0, 60), 0);
	assert_int_equal(record_begin(rec, NOW), 0);
	assert_false(run().current_step.set);
	assert_int_equal(finish(RUN_STATUS_PASSED, 0), 0);
	assert_int_equal(run().exit_code.v, 0);
}

/* What the running step's exit code becomes at the end, by the outcome. */
static void
a_running_step_fails_with_the_run(void **state)
{
	static const struct {
		enum run_status status;
		struct record_exit how;
		struct record_int want;
	} rows[] = {
		{ RUN_STATUS_FAILED, { { 1, 143 }, 15 }, { 1, 143 } },
		{ RUN_STATUS_FAILED, { { 0, 0 }, 0 }, { 1, 1 } },
		{ RUN_STATUS_CANCELED, { { 1, 0 }, 0 }, { 1, 0 } },
		{ RUN_STATUS_CANCELED, { { 0, 0 }, 0 }, { 0, 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct record_outcome o = { rows[i].status, 1, FAILURE_CODE_RUN_TIMEOUT,
			"late", rows[i].how };

		assert_int_equal(make_record(state), 0);
		lead_to(rows[i].status == RUN_STATUS_FAILED ? RUN_STATUS_RUNNING
							    : RUN_STATUS_CANCELING);
		assert_int_equal(record_finish(rec, &o, NOW + 9), 0);
		assert_int_equal(step(0).status, STEP_STATUS_FAILED);
		assert_int_equal(step(0).finished_at_ms.v, NOW + 9);
		assert_int_equal(step(0).exit_code.set, rows[i].want.set);
		assert_int_equal(step(0).exit_code.v, rows[i].want.v);
		assert_int_equal(step(1).status, STEP_STATUS_QUEUED);
		assert_int_equal(remove_record(state), 0);
	}
}

/* ---- claims ---- */

static void
a_released_run_is_claimed_again_from_the_start(void **state)
{
	struct record_claim again = first_claim;
	struct record_log log;

	(void)state;
	lead_to(RUN_STATUS_STARTING);
	assert_int_equal(record_set_commit(rec, "0123456789012345678901234567890123456789"), 0);
	assert_int_equal(record_note(rec, 0, "first try", NOW), 0);
	reopen();
	again.epoch = 2;
	again.spawn_id = "ffeeddccbbaa99887766554433221100";
	assert_int_equal(record_claim(rec, &again, NOW + 50), 0);
	assert_int_equal(run().started_at_ms.v, NOW + 50);
	assert_int_equal(run().epoch, 2);
	assert_string_equal(run().spawn_id, again.spawn_id);
	assert_null(run().commit_sha);
	assert_false(run().timeout_seconds.set);
	assert_int_equal(record_note(rec, 0, "second try", NOW), 0);
	assert_int_equal(record_log_get(rec, &log), 0);
	assert_int_equal(log.next_seq, 3);
	assert_int_equal(record_plan(rec, two_steps, 1, 60), 0);
	assert_int_equal(record_begin(rec, NOW + 51), 0);
}

static void
the_same_claim_twice_changes_nothing(void **state)
{
	(void)state;
	lead_to(RUN_STATUS_STARTING);
	assert_int_equal(record_claim(rec, &first_claim, NOW + 99), 0);
	assert_int_equal(run().started_at_ms.v, NOW);
	assert_int_equal(step(1).status, STEP_STATUS_QUEUED);
}

static void
an_older_claim_finds_the_store_taken(void **state)
{
	struct record_claim again = first_claim;
	struct record *newer = NULL;
	char *why = NULL;
	int64_t next = 0;

	(void)state;
	lead_to(RUN_STATUS_STARTING);
	assert_int_equal(record_open(dir, CAP, &newer, &why), 0);
	again.epoch = 2;
	assert_int_equal(record_claim(newer, &again, NOW + 5), 0);
	assert_int_equal(record_claim(rec, &first_claim, NOW + 6), E_STALE);
	assert_int_equal(record_set_commit(rec, "0123456"), E_STALE);
	assert_int_equal(record_plan(rec, two_steps, 2, 60), E_STALE);
	assert_int_equal(record_begin(rec, NOW + 6), E_STALE);
	assert_int_equal(record_end_step(rec, 1, 1, exit_0, NOW, &next), E_STALE);
	assert_int_equal(record_request_cancel(rec, NOW + 6), E_STALE);
	assert_int_equal(record_begin_canceling(rec), E_STALE);
	assert_int_equal(finish(RUN_STATUS_FAILED, FAILURE_CODE_DISK_FULL), E_STALE);
	assert_int_equal(record_lose(rec, "lost", NOW + 6), E_STALE);
	assert_int_equal(run().status, RUN_STATUS_STARTING);
	record_free(newer);
}

static void
the_first_cancel_counts(void **state)
{
	(void)state;
	lead_to(RUN_STATUS_RUNNING);
	assert_int_equal(record_request_cancel(rec, NOW + 10), 0);
	assert_int_equal(record_request_cancel(rec, NOW + 20), 0);
	assert_int_equal(run().cancel_requested_at_ms.v, NOW + 10);
	assert_int_equal(record_begin_canceling(rec), 0);
	assert_int_equal(record_request_cancel(rec, NOW + 30), 0);
	assert_int_equal(run().status, RUN_STATUS_CANCELING);
	assert_int_equal(
	    store_exec(rec->store, "UPDATE run_meta SET cancel_requested_at = 1"), E_ILLEGAL);
}

static void
a_lost_lease_ends_the_run_with_a_line_that_says_so(void **state)
{
	struct record_row *rows;
	size_t n;

	(void)state;
	lead_to(RUN_STATUS_RUNNING);
	assert_int_equal(record_lose(rec, "The lease was lost.", NOW + 7), 0);
	assert_int_equal(run().status, RUN_STATUS_FAILED);
	assert_int_equal(run().failure_code, FAILURE_CODE_RUNNER_LOST);
	assert_string_equal(run().error_message, "The lease was lost.");
	assert_int_equal(run().exit_code.v, 1);
	assert_int_equal(run().epoch, 1);
	assert_int_equal(step(0).status, STEP_STATUS_FAILED);
	assert_int_equal(record_rows_get(rec, arena, 1, 1000, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].n, 20);
	assert_memory_equal(rows[0].chunk, "The lease was lost.\n", 20);
}

/* ---- run.conclude ---- */

static enum record_conclusion
conclude(int64_t epoch)
{
	enum record_conclusion c = RECORD_NEWER_EPOCH;

	assert_int_equal(record_conclude(rec, epoch, FAILURE_CODE_RUNNER_LOST,
			     "It ended (signal 9).", NOW + 30, &c),
	    0);
	return c;
}

static void
a_conclusion_ends_what_had_not_ended(void **state)
{
	for (int from = RUN_STATUS_STARTING; from <= RUN_STATUS_CANCELING; from++) {
		assert_int_equal(make_record(state), 0);
		lead_to((enum run_status)from);
		reopen();
		assert_int_equal(conclude(1), RECORD_CONCLUDED);
		assert_int_equal(run().status, RUN_STATUS_FAILED);
		assert_int_equal(run().failure_code, FAILURE_CODE_RUNNER_LOST);
		assert_int_equal(run().epoch, 2);
		assert_int_equal(run().started_at_ms.v, NOW);
		assert_int_equal(run().finished_at_ms.v, NOW + 30);
		assert_int_equal(step(0).status,
		    from == RUN_STATUS_STARTING ? STEP_STATUS_QUEUED : STEP_STATUS_FAILED);
		if (from != RUN_STATUS_STARTING)
			assert_int_equal(step(0).exit_code.v, 1);
		/* Again, also after another restart: it stays as it is. */
		reopen();
		assert_int_equal(conclude(1), RECORD_CONCLUDED);
		assert_int_equal(run().epoch, 2);
		assert_int_equal(remove_record(state), 0);
	}
}

static void
a_conclusion_leaves_an_ended_run_alone(void **state)
{
	(void)state;
	lead_to(RUN_STATUS_PASSED);
	reopen();
	assert_int_equal(conclude(1), RECORD_CONCLUDED);
	assert_int_equal(run().status, RUN_STATUS_PASSED);
	assert_int_equal(run().epoch, 1);
}

static void
a_conclusion_of_an_older_lease_is_refused(void **state)
{
	struct record_claim later = first_claim;

	(void)state;
	later.epoch = 5;
	assert_int_equal(record_claim(rec, &later, NOW), 0);
	assert_int_equal(conclude(4), RECORD_NEWER_EPOCH);
	assert_int_equal(run().status, RUN_STATUS_STARTING);
}

static void
a_released_store_forgets_its_steps_and_start(void **state)
{
	struct record_step *steps;
	size_t n = 99;

	(void)state;
	lead_to(RUN_STATUS_STARTING);
	reopen();
	assert_int_equal(conclude(2), RECORD_CONCLUDED);
	assert_int_equal(run().status, RUN_STATUS_FAILED);
	assert_int_equal(run().epoch, 3);
	assert_false(run().started_at_ms.set);
	assert_int_equal(record_steps_get(rec, arena, &steps, &n), 0);
	assert_int_equal(n, 0);
}

static void
an_empty_store_has_nothing_to_conclude(void **state)
{
	enum record_conclusion c;

	(void)state;
	assert_int_equal(
	    record_conclude(rec, 1, FAILURE_CODE_RUNNER_LOST, "m", NOW, &c), E_NOENT);
}

#define WITH_RECORD(t) cmocka_unit_test_setup_teardown(t, make_record, remove_record)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_store_refuses_every_move_that_is_not_in_the_table),
		cmocka_unit_test(every_function_moves_only_from_where_it_may),
		WITH_RECORD(the_store_refuses_every_move_of_a_step_that_is_not_in_the_table),
		WITH_RECORD(a_step_runs_only_while_the_run_does),
		WITH_RECORD(no_run_ends_before_its_running_step),
		WITH_RECORD(steps_follow_one_another_until_one_fails),
		WITH_RECORD(nothing_starts_once_a_cancel_was_seen),
		WITH_RECORD(a_run_without_steps_passes),
		cmocka_unit_test(a_running_step_fails_with_the_run),
		WITH_RECORD(a_released_run_is_claimed_again_from_the_start),
		WITH_RECORD(the_same_claim_twice_changes_nothing),
		WITH_RECORD(an_older_claim_finds_the_store_taken),
		WITH_RECORD(the_first_cancel_counts),
		WITH_RECORD(a_lost_lease_ends_the_run_with_a_line_that_says_so),
		cmocka_unit_test(a_conclusion_ends_what_had_not_ended),
		WITH_RECORD(a_conclusion_leaves_an_ended_run_alone),
		WITH_RECORD(a_conclusion_of_an_older_lease_is_refused),
		WITH_RECORD(a_released_store_forgets_its_steps_and_start),
		WITH_RECORD(an_empty_store_has_nothing_to_conclude),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
