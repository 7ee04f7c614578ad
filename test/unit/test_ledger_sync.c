/* What the index does not know yet: phases, ladders, confirmations by number. */

#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const int64_t ladder_s[] = { 5, 15, 30, 60, 300, 300, 300 };

static int
applied(const struct ledger_rig *rig, int n, int64_t rev)
{
	int done;

	assert_int_equal(
	    ledger_sync_applied(rig->s, rig->a, rig_run(rig, n), rev, rig->now, &done), 0);
	return done;
}

static int64_t
failed(const struct ledger_rig *rig, int n, int unknown_project)
{
	int64_t attempt;

	assert_int_equal(ledger_sync_failed(rig->s, rig->a, rig_run(rig, n), unknown_project,
			     rig->now, &attempt),
	    0);
	return attempt;
}

static size_t
due(const struct ledger_rig *rig, struct ledger_run **ret)
{
	size_t n;

	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, ret, &n), 0);
	return n;
}

static void
a_run_goes_through_its_phases(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_NEEDS_CREATE);
	rig->now += 1;
	assert_false(applied(rig, 1, 1));
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_CURRENT);
	assert_int_equal(rig_row(rig, 1).index_since, rig->now);
	(void)rig_claim(rig, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_int_equal(rig_row(rig, 1).index_rev, 3);
	assert_false(applied(rig, 1, 3));
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_CURRENT);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_NEEDS_TERMINAL_UPDATE);
	rig->now += 9;
	assert_true(applied(rig, 1, 4));
	r = rig_row(rig, 1);
	assert_int_equal(r.sync, LEDGER_SYNC_DONE);
	assert_int_equal(r.done_at, rig->now);
	assert_string_equal(rig_last_event(rig, 1), "index_done");
	/* Absorbing. */
	assert_false(applied(rig, 1, 4));
	assert_int_equal(failed(rig, 1, 0), 0);
	rig_unchanged(rig, &r);
}

static void
a_confirmation_of_an_older_truth_leaves_the_row_due(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before, *runs;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now); /* while rev 1 was on its way */
	before = rig_row(rig, 1);
	assert_int_equal(before.sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_false(applied(rig, 1, 1));
	rig_unchanged(rig, &before);
	assert_int_equal(due(rig, &runs), 1);
	(void)rig_settle(rig, 1, LEDGER_FAILED); /* while rev 2 was on its way */
	before = rig_row(rig, 1);
	assert_false(applied(rig, 1, 2));
	rig_unchanged(rig, &before);
	assert_true(applied(rig, 1, 3));
}

static void
the_longest_waiting_come_first_a_hundred_at_a_time(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs;
	int n = 0;

	for (int p = 1; p <= 8; p++) {
		rig_project(rig, p);
		for (int i = 0; i < 15; i++) {
			rig->now += 1;
			rig_accept(rig, p, ++n);
		}
	}
	assert_int_equal(due(rig, &runs), LEDGER_SYNC_ROWS);
	for (size_t i = 0; i < LEDGER_SYNC_ROWS; i++)
		assert_string_equal(runs[i].run_id, rig_run(rig, (int)i + 1));
	for (int i = 1; i <= 100; i++)
		(void)applied(rig, i, 1);
	assert_int_equal(due(rig, &runs), 20);
	assert_string_equal(runs[0].run_id, rig_run(rig, 101));
}

static void
a_row_on_its_ladder_delays_no_other(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs, r;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	for (size_t i = 0; i < ARRAY_LEN(ladder_s); i++) {
		int64_t wait = ladder_s[i] * 1000;

		assert_int_equal(failed(rig, 1, 0), i + 1);
		r = rig_row(rig, 1);
		assert_int_equal(r.index_attempt, i + 1);
		assert_int_equal(r.index_retry_at, rig->now + wait);
		assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_CREATE);
		assert_int_equal(due(rig, &runs), 1);
		assert_string_equal(runs[0].run_id, rig_run(rig, 2));
		rig->now += wait - 1;
		assert_int_equal(due(rig, &runs), 1);
		rig->now += 1;
		assert_int_equal(due(rig, &runs), 2);
	}
	assert_false(applied(rig, 1, 1));
	r = rig_row(rig, 1);
	assert_int_equal(r.index_attempt, 0);
	assert_int_equal(r.index_retry_at, 0);
}

static void
every_phase_has_a_ladder_of_its_own(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)failed(rig, 1, 0);
	(void)failed(rig, 1, 0);
	(void)rig_claim(rig, 1);
	assert_int_equal(rig_row(rig, 1).index_attempt, 2); /* no change of the truth */
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now);
	r = rig_row(rig, 1);
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_int_equal(r.index_attempt, 0);
	assert_int_equal(r.index_retry_at, 0);
	(void)failed(rig, 1, 0);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, 0); /* the same phase goes on waiting */
	assert_int_equal(rig_row(rig, 1).index_attempt, 1);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	assert_int_equal(rig_row(rig, 1).index_attempt, 0);
	assert_int_equal(rig_row(rig, 1).index_retry_at, 0);
}

/* ---- the project's copy ---- */

static size_t
projects_due(const struct ledger_rig *rig)
{
	struct ledger_project *projects;
	size_t n;

	assert_int_equal(
	    ledger_project_sync_due(rig->s, rig->a, rig->now, 100, &projects, &n), 0);
	return n;
}

static struct ledger_project
project(const struct ledger_rig *rig)
{
	struct ledger_project p;

	assert_int_equal(ledger_project_get(rig->s, rig->a, rig_prj(rig, 1), &p), 0);
	return p;
}

static void
a_project_is_sent_until_its_newest_is_confirmed(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_change c = { .name = "Another name" };
	struct ledger_project p;
	int64_t rev;
	int stale;

	rig_project(rig, 1);
	p = project(rig);
	assert_false(p.index_current);
	assert_int_equal(projects_due(rig), 1);
	rev = p.index_rev;
	assert_int_equal(
	    ledger_project_update(rig->s, rig->a, rig_prj(rig, 1), &c, rig->now, &p, &stale),
	    0);
	assert_true(p.index_rev > rev);
	assert_int_equal(ledger_project_synced(rig->s, rig_prj(rig, 1), rev), 0);
	assert_false(project(rig).index_current);
	assert_int_equal(ledger_project_synced(rig->s, rig_prj(rig, 1), p.index_rev), 0);
	assert_true(project(rig).index_current);
	assert_int_equal(projects_due(rig), 0);
}

static void
a_project_has_the_same_ladder(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	for (size_t i = 0; i < ARRAY_LEN(ladder_s); i++) {
		int64_t at;

		assert_int_equal(
		    ledger_project_sync_failed(rig->s, rig_prj(rig, 1), rig->now), 0);
		assert_int_equal(projects_due(rig), 0);
		assert_int_equal(ledger_next_deadline(rig->s, &at), 0);
		assert_int_equal(at, rig->now + ladder_s[i] * 1000);
		rig->now = at;
		assert_int_equal(projects_due(rig), 1);
	}
	assert_int_equal(ledger_project_sync_failed(rig->s, rig_prj(rig, 9), rig->now), 0);
}

static void
an_unknown_project_is_sent_again_and_its_run_waits(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	assert_int_equal(
	    ledger_project_synced(rig->s, rig_prj(rig, 1), project(rig).index_rev), 0);
	assert_int_equal(projects_due(rig), 0);
	assert_int_equal(failed(rig, 1, 1), 1);
	assert_int_equal(projects_due(rig), 1);
	assert_int_equal(rig_row(rig, 1).index_retry_at, rig->now + 5000);
}

static void
rows_that_are_gone_are_no_error(void **state)
{
	struct ledger_rig *rig = *state;

	assert_false(applied(rig, 9, 1));
	assert_int_equal(failed(rig, 9, 1), 0);
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_run *runs;
	int64_t attempt;
	size_t n;
	int r, done;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	r = ledger_sync_due(rig.s, rig.a, rig.now, &runs, &n);
	if (r == 0)
		r = ledger_sync_failed(rig.s, rig.a, runs[0].run_id, 1, rig.now, &attempt);
	if (r == 0)
		r = ledger_sync_applied(
		    rig.s, rig.a, runs[0].run_id, runs[0].index_rev, rig.now, &done);
	assert_int_equal(store_exec(rig.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig.s, "RELEASE hungry"), 0);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	for (int n = 1; n <= 20; n++)
		rig_accept(rig, 1, n);
	assert_true(starve(hungry, rig) >= 5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_goes_through_its_phases),
		TEST(a_confirmation_of_an_older_truth_leaves_the_row_due),
		TEST(the_longest_waiting_come_first_a_hundred_at_a_time),
		TEST(a_row_on_its_ladder_delays_no_other),
		TEST(every_phase_has_a_ladder_of_its_own),
		TEST(a_project_is_sent_until_its_newest_is_confirmed),
		TEST(a_project_has_the_same_ladder),
		TEST(an_unknown_project_is_sent_again_and_its_run_waits),
		TEST(rows_that_are_gone_are_no_error),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
