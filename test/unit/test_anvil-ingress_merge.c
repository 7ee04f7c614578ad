/*
 * test/unit/test_anvil-ingress_merge.c -- whose word counts in the picture of a run.
 */
#include "cmd/anvil-ingress/merge.h"
#include "lib/base/base.h"
#include "test/support/unit.h"

#define NOW INT64_C(1700000000000)
#define SHA "0123456789abcdef0123456789abcdef01234567"

static struct run_row
row(enum run_status status, int64_t rev)
{
	struct run_row r = { .run_id = "run_0123456789abcdefghijAB",
		.project_id = "prj_0123456789abcdefghijAB",
		.rev = rev,
		.trigger_type = TRIGGER_TYPE_MANUAL,
		.triggered_by_user_id = "usr_0123456789abcdefghijAB",
		.branch = "main",
		.status = status,
		.queued_at = NOW };

	if (status != RUN_STATUS_QUEUED) {
		r.has_started_at = 1;
		r.started_at = NOW + 10;
	}
	if (merge_is_terminal(status)) {
		r.has_finished_at = r.has_exit_code = 1;
		r.finished_at = NOW + 20;
		r.exit_code = 0;
	}
	if (status == RUN_STATUS_FAILED) {
		r.exit_code = 1;
		r.has_failure_code = 1;
		r.failure_code = FAILURE_CODE_RUNNER_LOST;
		r.error_message = "The process ended.";
	}
	return r;
}

/* A store in that state, with one step and one line. */
static struct run_get_detail_detail
store(enum run_status status)
{
	static const struct step_row step = { .id = "run_0123456789abcdefghijAB:step:1",
		.run_id = "run_0123456789abcdefghijAB",
		.position = 1,
		.name = "one",
		.command = "true",
		.status = STEP_STATUS_RUNNING };
	static const struct log_row line = { .id = "run_0123456789abcdefghijAB:log:4",
		.run_id = "run_0123456789abcdefghijAB",
		.seq = 4,
		.stream = LOG_STREAM_STDOUT,
		.chunk = { "hi\n", 3 },
		.created_at = NOW + 15 };
	struct run_get_detail_detail d = { .run = { .status = status,
					       .commit_sha = SHA,
					       .has_started_at = status != RUN_STATUS_QUEUED,
					       .started_at = NOW + 11 },
		.has_current_step = !merge_is_terminal(status),
		.current_step = 1,
		.steps = &step,
		.nsteps = 1,
		.recent_logs = &line,
		.nrecent_logs = 1,
		.first_seq = 4,
		.next_seq = 5,
		.dropped_bytes = 30,
		.log_bytes = 33 };

	if (merge_is_terminal(status)) {
		d.run.has_finished_at = d.run.has_exit_code = 1;
		d.run.finished_at = NOW + 21;
	}
	if (status == RUN_STATUS_FAILED) {
		d.run.exit_code = 2;
		d.run.has_failure_code = d.has_failure_code = 1;
		d.run.failure_code = d.failure_code = FAILURE_CODE_STEP_FAILED;
		d.error_message = "Step 1 failed.";
	}
	return d;
}

static struct http_run_detail
merged(const struct run_row *r, const struct run_get_detail_detail *d)
{
	static struct http_run_step steps[1];
	static struct http_log_event events[1];

	return merge_detail(r, RUNLINK_UP, d, steps, events);
}

static void
the_end_of_a_run_is_newer_than_everything_else(void **state)
{
	struct run_row a = row(RUN_STATUS_PASSED, 3), b = row(RUN_STATUS_RUNNING, 9),
		       c = row(RUN_STATUS_STARTING, 8);

	(void)state;
	assert_ptr_equal(merge_newer(&a, &b), &a);
	assert_ptr_equal(merge_newer(&b, &a), &a);
	assert_ptr_equal(merge_newer(&b, &c), &b);
	assert_ptr_equal(merge_newer(&c, &b), &b);
}

static void
the_store_is_ahead_of_ledger_and_index_while_the_run_goes(void **state)
{
	static const enum run_status ahead[] = { RUN_STATUS_STARTING, RUN_STATUS_RUNNING,
		RUN_STATUS_CANCELING, RUN_STATUS_PASSED, RUN_STATUS_FAILED };
	struct run_row r = row(RUN_STATUS_STARTING, 2);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ahead); i++) {
		struct run_get_detail_detail d = store(ahead[i]);
		struct http_run_detail m = merged(&r, &d);

		assert_int_equal(m.run.status, ahead[i]);
		assert_int_equal(m.run.started_at, NOW + 11);
		assert_int_equal(m.run.has_finished_at, merge_is_terminal(ahead[i]));
		assert_int_equal(m.has_current_step, !merge_is_terminal(ahead[i]));
		assert_int_equal(m.has_failure_code, ahead[i] == RUN_STATUS_FAILED);
		assert_string_equal(m.run.commit_sha, SHA);
		assert_true(m.detail_available);
		assert_int_equal(m.nsteps, 1);
		assert_int_equal(m.nrecent_logs, 1);
		assert_int_equal(m.first_seq, 4);
		assert_int_equal(m.dropped_bytes, 30);
		assert_int_equal(m.log_bytes, 33);
	}
}

static void
a_cancel_that_the_run_has_not_seen_yet_shows(void **state)
{
	struct run_row r = row(RUN_STATUS_CANCEL_REQUESTED, 4);
	struct run_get_detail_detail d = store(RUN_STATUS_RUNNING);
	struct http_run_detail m = merged(&r, &d);

	(void)state;
	assert_int_equal(m.run.status, RUN_STATUS_CANCEL_REQUESTED);
	assert_int_equal(m.current_step, 1);
}

static void
a_released_run_shows_queued_with_its_steps(void **state)
{
	struct run_row r = row(RUN_STATUS_QUEUED, 4);
	struct run_get_detail_detail d = store(RUN_STATUS_STARTING);
	struct http_run_detail m = merged(&r, &d);

	(void)state;
	assert_int_equal(m.run.status, RUN_STATUS_QUEUED);
	assert_false(m.run.has_started_at);
	assert_false(m.has_current_step);
	assert_int_equal(m.nsteps, 1);
	assert_string_equal(m.run.commit_sha, SHA);
}

static void
an_end_in_the_ledger_wins_over_a_store_that_was_not_reached(void **state)
{
	struct run_row r = row(RUN_STATUS_FAILED, 4);
	struct run_get_detail_detail d = store(RUN_STATUS_RUNNING);
	struct http_run_detail m = merged(&r, &d);

	(void)state;
	assert_int_equal(m.run.status, RUN_STATUS_FAILED);
	assert_int_equal(m.run.started_at, NOW + 10);
	assert_int_equal(m.run.finished_at, NOW + 20);
	assert_int_equal(m.run.exit_code, 1);
	assert_int_equal(m.failure_code, FAILURE_CODE_RUNNER_LOST);
	assert_int_equal(m.run.failure_code, FAILURE_CODE_RUNNER_LOST);
	assert_string_equal(m.error_message, "The process ended.");
	assert_false(m.has_current_step);
}

static void
a_known_commit_is_kept_unless_the_store_has_more_of_it(void **state)
{
	static const struct {
		const char *known, *shown;
	} rows[] = { { NULL, SHA }, { "0123456", SHA }, { SHA, SHA },
		{ "fedcba9", "fedcba9" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run_row r = row(RUN_STATUS_RUNNING, 1);
		struct run_get_detail_detail d = store(RUN_STATUS_RUNNING);

		r.commit_sha = rows[i].known;
		assert_string_equal(merged(&r, &d).run.commit_sha, rows[i].shown);
	}
}

static void
without_a_store_a_run_that_never_began_is_complete(void **state)
{
	struct run_row queued = row(RUN_STATUS_QUEUED, 1), failed = row(RUN_STATUS_FAILED, 2);
	const struct run_row *const rows[] = { &queued, &failed };

	(void)state;
	failed.has_started_at = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_run_detail m = merge_detail(
		    rows[i], RUNLINK_ABSENT, NULL, NULL, NULL);

		assert_true(m.detail_available);
		assert_true(m.has_first_seq && m.has_dropped_bytes && m.has_log_bytes);
		assert_int_equal(m.first_seq, 1);
		assert_int_equal(m.dropped_bytes, 0);
		assert_int_equal(m.log_bytes, 0);
		assert_int_equal(m.nsteps, 0);
	}
}

static void
a_store_that_was_removed_leaves_what_the_index_has(void **state)
{
	struct run_row r = row(RUN_STATUS_FAILED, 4);
	struct http_run_detail m = merge_detail(&r, RUNLINK_ABSENT, NULL, NULL, NULL);

	(void)state;
	assert_false(m.detail_available);
	assert_false(m.has_first_seq || m.has_dropped_bytes || m.has_log_bytes);
	assert_int_equal(m.run.finished_at, NOW + 20);
	assert_string_equal(m.error_message, "The process ended.");
	assert_int_equal(m.failure_code, FAILURE_CODE_RUNNER_LOST);
}

static void
a_silent_run_leaves_what_the_ledger_has(void **state)
{
	struct run_row running = row(RUN_STATUS_RUNNING, 4), waits = row(RUN_STATUS_QUEUED, 1);
	struct http_run_detail m;

	(void)state;
	m = merge_detail(&running, RUNLINK_SILENT, NULL, NULL, NULL);
	assert_int_equal(m.run.status, RUN_STATUS_RUNNING);
	assert_false(m.detail_available);
	assert_false(m.has_log_bytes);
	/* In its queue it has no process that could be silent. */
	waits.has_position = 1;
	m = merge_detail(&waits, RUNLINK_SILENT, NULL, NULL, NULL);
	assert_true(m.detail_available);
	assert_int_equal(m.first_seq, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_run_is_newer_than_everything_else),
		cmocka_unit_test(the_store_is_ahead_of_ledger_and_index_while_the_run_goes),
		cmocka_unit_test(a_cancel_that_the_run_has_not_seen_yet_shows),
		cmocka_unit_test(a_released_run_shows_queued_with_its_steps),
		cmocka_unit_test(an_end_in_the_ledger_wins_over_a_store_that_was_not_reached),
		cmocka_unit_test(a_known_commit_is_kept_unless_the_store_has_more_of_it),
		cmocka_unit_test(without_a_store_a_run_that_never_began_is_complete),
		cmocka_unit_test(a_store_that_was_removed_leaves_what_the_index_has),
		cmocka_unit_test(a_silent_run_leaves_what_the_ledger_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
