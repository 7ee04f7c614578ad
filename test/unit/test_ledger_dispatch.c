/* From executable to a process, with the ladder of failures. */
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const int64_t ladder_s[] = { 5, 15, 30, 60, 120 };

/* Run 1 is the head, run 2 waits. */
static void
head(struct ledger_rig *rig)
{
	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
}

static void
queued(const struct ledger_rig *rig, int n, const char *live_spawn_id)
{
	assert_int_equal(ledger_dispatch_queued(rig->s, rig->a, rig_run(rig, n), live_spawn_id,
			     "queued: no_slot", rig->now),
	    0);
}

static struct ledger_failure
failed(const struct ledger_rig *rig, int n, const char *error)
{
	struct ledger_failure f;

	assert_int_equal(
	    ledger_dispatch_failed(rig->s, rig->a, rig_run(rig, n), error, rig->now, &f), 0);
	return f;
}

static struct ledger_failure
exited(const struct ledger_rig *rig, int n, int spawn, int64_t attempt, int rebooted)
{
	struct ledger_exit e = { .run_id = rig_run(rig, n),
		.spawn_id = rig_hex(rig, spawn),
		.attempt = attempt,
		.rebooted = rebooted,
		.how = rebooted ? "machine restarted" : "exit status 75" };
	struct ledger_failure f;

	assert_int_equal(ledger_runner_exited(rig->s, rig->a, &e, rig->now, &f), 0);
	return f;
}

static void
is_nothing(const struct ledger_failure *f)
{
	assert_false(f->counted);
	assert_false(f->dispatch);
	assert_false(f->failed);
	assert_string_equal(f->promoted.run_id, "");
}

/* ---- due ---- */

static size_t
due(const struct ledger_rig *rig, struct ledger_run **ret)
{
	size_t n;

	assert_int_equal(ledger_dispatch_due(rig->s, rig->a, rig->now, 100, ret, &n), 0);
	return n;
}

static void
heads_that_the_supervisor_does_not_have_are_due_oldest_first(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs;

	assert_int_equal(due(rig, &runs), 0);
	for (int n = 1; n <= 5; n++) {
		rig_project(rig, n);
		rig->now += 1;
		rig_accept(rig, n, 100 - n);
		rig_accept(rig, n, 200 - n);
	}
	assert_int_equal(due(rig, &runs), 5);
	for (int n = 1; n <= 5; n++)
		assert_string_equal(runs[n - 1].run_id, rig_run(rig, 100 - n));
	queued(rig, 99, NULL);
	(void)rig_claim(rig, 98);
	(void)failed(rig, 97, "not now");
	assert_int_equal(due(rig, &runs), 2);
	assert_string_equal(runs[0].run_id, rig_run(rig, 96));
	rig->now += 4999;
	assert_int_equal(due(rig, &runs), 2);
	rig->now += 1;
	assert_int_equal(due(rig, &runs), 3);
}

static void
what_a_recheck_goes_through_comes_in_pages(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs;
	const char *after = "";
	size_t n;
	int seen = 0;

	for (int i = 1; i <= 7; i++) {
		rig_project(rig, i);
		rig_accept(rig, i, i);
		queued(rig, i, NULL);
	}
	(void)rig_claim(rig, 4);
	for (;;) {
		assert_int_equal(ledger_dispatched(rig->s, rig->a, LEDGER_DISPATCH_QUEUED,
				     after, 2, &runs, &n),
		    0);
		if (n == 0)
			break;
		assert_true(n <= 2);
		for (size_t i = 0; i < n; i++) {
			assert_true(strcmp(runs[i].run_id, after) > 0);
			assert_int_equal(runs[i].dispatch, LEDGER_DISPATCH_QUEUED);
			after = runs[i].run_id;
			seen++;
		}
	}
	assert_int_equal(seen, 6);
	assert_int_equal(
	    ledger_dispatched(rig->s, rig->a, LEDGER_DISPATCH_STARTED, "", 10, &runs, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(runs[0].run_id, rig_run(rig, 4));
}

/* ---- answers of the supervisor ---- */

static void
an_answer_makes_it_queued_and_clears_the_failures_before_it(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	head(rig);
	(void)failed(rig, 1, "no memory");
	queued(rig, 1, NULL);
	r = rig_row(rig, 1);
	assert_int_equal(r.state, LEDGER_EXECUTABLE);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_QUEUED);
	assert_int_equal(r.dispatch_retry_at, 0);
	assert_null(r.last_error);
	assert_int_equal(r.dispatch_attempts, 1); /* but not their number */
	assert_int_equal(r.index_rev, 1);
	assert_string_equal(rig_last_event(rig, 1), "dispatch_queued");
	queued(rig, 1, NULL);
	rig_unchanged(rig, &r);
}

static void
an_answer_that_comes_too_late_changes_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;

	queued(rig, 9, NULL); /* unknown */
	head(rig);
	before = rig_row(rig, 2); /* waits */
	queued(rig, 2, NULL);
	rig_unchanged(rig, &before);
	(void)rig_claim(rig, 1);
	before = rig_row(rig, 1);
	queued(rig, 1, NULL);
	rig_unchanged(rig, &before);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	before = rig_row(rig, 1);
	queued(rig, 1, NULL);
	rig_unchanged(rig, &before);
}

static void
a_releasing_process_keeps_the_run_pending_until_it_has_ended(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run before;

	head(rig);
	(void)rig_claim(rig, 1); /* by spawn 1 */
	rig_release(rig, 1);
	before = rig_row(rig, 1);
	queued(rig, 1, rig_hex(rig, 1));
	rig_unchanged(rig, &before);
	f = exited(rig, 1, 1, 0, 0);
	assert_false(f.counted);
	assert_true(f.dispatch);
	rig_unchanged(rig, &before);
	/* Another live process is one that will claim. */
	queued(rig, 1, rig_hex(rig, 2));
	assert_int_equal(rig_row(rig, 1).dispatch, LEDGER_DISPATCH_QUEUED);
}

/* ---- failures ---- */

static void
failures_climb_the_ladder_and_the_sixth_ends_the_run(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run r;

	head(rig);
	for (int i = 1; i <= 5; i++) {
		rig->now += 1000;
		f = failed(rig, 1, "fork: no memory");
		assert_true(f.counted);
		assert_int_equal(f.attempt, i);
		assert_false(f.failed);
		r = rig_row(rig, 1);
		assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
		assert_int_equal(r.dispatch_attempts, i);
		assert_int_equal(r.dispatch_retry_at, rig->now + ladder_s[i - 1] * 1000);
		assert_string_equal(r.last_error, "fork: no memory");
		assert_int_equal(r.index_rev, 1);
	}
	rig->now += 1000;
	f = failed(rig, 1, "exec: no such file");
	assert_true(f.failed);
	assert_int_equal(f.attempt, 6);
	assert_string_equal(f.promoted.run_id, rig_run(rig, 2));
	r = rig_row(rig, 1);
	assert_int_equal(r.state, LEDGER_FAILED);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_TERMINAL);
	assert_int_equal(r.dispatch_retry_at, 0);
	assert_int_equal(r.position, 0);
	assert_string_equal(r.failure_code, "dispatch_failed");
	assert_int_equal(r.exit_code, 1);
	assert_int_equal(r.started_at, 0);
	assert_int_equal(r.finished_at, rig->now);
	assert_string_equal(
	    r.error_message, "The run could not be started in 6 attempts: exec: no such file");
	assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
	assert_int_equal(rig_row(rig, 2).dispatch_attempts, 0);
	rig_sound(rig);
}

static void
a_process_that_ended_without_a_claim_is_a_failure_of_its_attempt(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run r;

	head(rig);
	queued(rig, 1, NULL);
	f = exited(rig, 1, 70, 0, 0);
	assert_true(f.counted);
	assert_int_equal(f.attempt, 1);
	r = rig_row(rig, 1);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
	assert_string_equal(r.last_error, "exit status 75");
	/* A repeat of it, and any other of that attempt, counts no more. */
	f = exited(rig, 1, 70, 0, 0);
	is_nothing(&f);
	rig_unchanged(rig, &r);
	queued(rig, 1, NULL);
	r = rig_row(rig, 1);
	f = exited(rig, 1, 70, 0, 0);
	is_nothing(&f);
	rig_unchanged(rig, &r);
	f = exited(rig, 1, 71, 1, 0);
	assert_int_equal(f.attempt, 2);
}

static void
ends_that_concern_nobody_change_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run before;

	f = exited(rig, 9, 9, 0, 0); /* unknown run */
	is_nothing(&f);
	head(rig);
	before = rig_row(rig, 1);
	f = exited(rig, 1, 9, 0, 0); /* not queued at the supervisor */
	is_nothing(&f);
	f = exited(rig, 2, 9, 0, 1); /* waits */
	is_nothing(&f);
	rig_unchanged(rig, &before);
	(void)rig_claim(rig, 1);
	before = rig_row(rig, 1);
	f = exited(rig, 1, 9, 0, 0); /* claimed by another process */
	is_nothing(&f);
	f = exited(rig, 1, 1, 0, 0); /* its own: that is a takeover's business */
	is_nothing(&f);
	rig_unchanged(rig, &before);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	before = rig_row(rig, 1);
	f = exited(rig, 1, 1, 0, 0);
	is_nothing(&f);
	rig_unchanged(rig, &before);
}

static void
a_restart_of_the_machine_is_no_failure(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run r;

	head(rig);
	queued(rig, 1, NULL);
	f = exited(rig, 1, 70, 0, 1);
	assert_false(f.counted);
	assert_true(f.dispatch);
	r = rig_row(rig, 1);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
	assert_int_equal(r.dispatch_attempts, 0);
	assert_int_equal(r.dispatch_retry_at, 0);
	assert_null(r.last_error);
}

static void
long_errors_are_cut_at_a_character(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_run r;
	char error[4001];

	head(rig);
	error[0] = 'a'; /* puts the limit into the middle of a character */
	for (size_t i = 1; i + 2 < sizeof(error); i += 2)
		memcpy(error + i, "\xc3\xa9", 2);
	error[sizeof(error) - 2] = '\0';
	for (int i = 0; i < 6; i++)
		f = failed(rig, 1, error);
	assert_true(f.failed);
	r = rig_row(rig, 1);
	assert_int_equal(strlen(r.last_error), 1023);
	assert_true(utf8_valid(r.last_error, strlen(r.last_error)));
	assert_true(strlen(r.error_message) <= 4096);
	assert_true(utf8_valid(r.error_message, strlen(r.error_message)));
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_failure f;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	r = ledger_dispatch_failed(
	    rig.s, rig.a, "run_0000000000000000000001", "error", rig.now, &f);
	assert_int_equal(store_exec(rig.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig.s, "RELEASE hungry"), 0);
	(void)arena_free(rig.a);
	return r;
}

static void
the_last_failure_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	head(rig);
	for (int i = 0; i < 5; i++)
		(void)failed(rig, 1, "error");
	assert_true(starve(hungry, rig) >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(heads_that_the_supervisor_does_not_have_are_due_oldest_first),
		TEST(what_a_recheck_goes_through_comes_in_pages),
		TEST(an_answer_makes_it_queued_and_clears_the_failures_before_it),
		TEST(an_answer_that_comes_too_late_changes_nothing),
		TEST(a_releasing_process_keeps_the_run_pending_until_it_has_ended),
		TEST(failures_climb_the_ladder_and_the_sixth_ends_the_run),
		TEST(a_process_that_ended_without_a_claim_is_a_failure_of_its_attempt),
		TEST(ends_that_concern_nobody_change_nothing),
		TEST(a_restart_of_the_machine_is_no_failure),
		TEST(long_errors_are_cut_at_a_character),
		TEST(the_last_failure_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
