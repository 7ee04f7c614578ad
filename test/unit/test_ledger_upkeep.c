/* Deadlines, repairs, retention, history, invariants. */
#include <stdio.h>
#include <string.h>

#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define DAY_MS INT64_C(86400000)

static int64_t
deadline(const struct ledger_rig *rig)
{
	int64_t at;

	assert_int_equal(ledger_next_deadline(rig->s, &at), 0);
	return at;
}

static void
fail_dispatch(const struct ledger_rig *rig, int n)
{
	struct ledger_failure f;

	assert_int_equal(
	    ledger_dispatch_failed(rig->s, rig->a, rig_run(rig, n), "error", rig->now, &f), 0);
}

static void
fail_sync(const struct ledger_rig *rig, int n)
{
	int64_t attempt;

	assert_int_equal(
	    ledger_sync_failed(rig->s, rig->a, rig_run(rig, n), 0, rig->now, &attempt), 0);
}

/* Run ${n} ended and known to the index. */
static void
done(struct ledger_rig *rig, int project, int n)
{
	int is_done;

	rig_accept(rig, project, n);
	(void)rig_claim(rig, n);
	(void)rig_settle(rig, n, LEDGER_PASSED);
	assert_int_equal(ledger_sync_applied(rig->s, rig->a, rig_run(rig, n),
			     rig_row(rig, n).index_rev, rig->now, &is_done),
	    0);
	assert_true(is_done);
}

static void
the_next_deadline_is_the_earliest_of_all_kinds(void **state)
{
	struct ledger_rig *rig = *state;
	int64_t start = rig->now;

	assert_true(deadline(rig) == INT64_MAX);
	for (int n = 1; n <= 3; n++) {
		rig_project(rig, n);
		rig_accept(rig, n, n);
	}
	assert_true(deadline(rig) == INT64_MAX);
	rig->now = start + 9000;
	assert_int_equal(ledger_project_sync_failed(rig->s, rig_prj(rig, 1), rig->now), 0);
	assert_int_equal(deadline(rig), start + 14000);
	rig->now = start + 6000;
	fail_sync(rig, 2);
	assert_int_equal(deadline(rig), start + 11000);
	rig->now = start + 3000;
	fail_dispatch(rig, 3);
	assert_int_equal(deadline(rig), start + 8000);
	/* One that is met is none any more. */
	(void)rig_claim(rig, 3);
	assert_int_equal(deadline(rig), start + 11000);
	rig_cancel(rig, 2);
	assert_int_equal(deadline(rig), start + 14000);
}

static void
a_clock_that_was_set_back_makes_nobody_wait_longer_than_the_longest_wait(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 2, 2);
	fail_dispatch(rig, 1);
	fail_sync(rig, 2);
	assert_int_equal(ledger_project_sync_failed(rig->s, rig_prj(rig, 1), rig->now), 0);
	/* In order: nothing is cut. */
	assert_int_equal(ledger_clamp_deadlines(rig->s, rig->now), 0);
	assert_int_equal(rig_row(rig, 1).dispatch_retry_at, rig->now + 5000);
	assert_int_equal(rig_row(rig, 2).index_retry_at, rig->now + 5000);
	rig->now -= 3600 * 1000;
	assert_int_equal(ledger_clamp_deadlines(rig->s, rig->now), 0);
	assert_int_equal(rig_row(rig, 1).dispatch_retry_at, rig->now + 120 * 1000);
	assert_int_equal(rig_row(rig, 2).index_retry_at, rig->now + 300 * 1000);
	assert_int_equal(deadline(rig), rig->now + 120 * 1000);
	(void)rig_claim(rig, 1);
	rig_cancel(rig, 2);
	assert_int_equal(deadline(rig), rig->now + 300 * 1000); /* the project's */
}

/* ---- repairs ---- */

static void
a_queue_without_a_head_is_found_and_repaired(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_promoted promoted;
	const char **ids, *broken;
	size_t n;

	for (int p = 1; p <= 3; p++) {
		rig_project(rig, p);
		rig_accept(rig, p, 10 * p);
		rig_accept(rig, p, 10 * p + 1);
		rig_accept(rig, p, 10 * p + 2);
	}
	rig_sound(rig);
	assert_int_equal(ledger_headless(rig->s, rig->a, 100, &ids, &n), 0);
	assert_int_equal(n, 0);
	/* Somebody's hand has been in the store. */
	assert_int_equal(rig_exec(rig, "DELETE FROM project_runs WHERE run_id IN ('%s', '%s')",
			     rig_run(rig, 10), rig_run(rig, 30)),
	    0);
	assert_int_equal(ledger_check(rig->s, rig->a, &broken), 0);
	assert_non_null(strstr(broken, "no head"));
	assert_int_equal(ledger_headless(rig->s, rig->a, 100, &ids, &n), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
		    ledger_promote(rig->s, rig->a, ids[i], rig->now, &promoted), 0);
	assert_int_equal(rig_row(rig, 11).state, LEDGER_EXECUTABLE);
	assert_int_equal(rig_row(rig, 31).state, LEDGER_EXECUTABLE);
	assert_int_equal(rig_row(rig, 12).state, LEDGER_PENDING);
	rig_sound(rig);
	/* A limit is kept. */
	assert_int_equal(
	    rig_exec(rig, "DELETE FROM project_runs WHERE status = 'executable'"), 0);
	assert_int_equal(ledger_headless(rig->s, rig->a, 2, &ids, &n), 0);
	assert_int_equal(n, 2);
}

static void
a_head_that_was_accepted_after_one_that_waits_breaks_an_invariant(void **state)
{
	struct ledger_rig *rig = *state;
	const char *broken;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	rig_accept(rig, 1, 3);
	assert_int_equal(rig_exec(rig, "DELETE FROM project_runs WHERE accept_seq = 1"), 0);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_runs SET status = 'executable',"
			     " dispatch_status = 'pending' WHERE accept_seq = 3"),
	    0);
	assert_int_equal(ledger_check(rig->s, rig->a, &broken), 0);
	assert_non_null(strstr(broken, rig_run(rig, 2)));
}

/* ---- retention ---- */

static void
rows_go_seven_days_after_they_are_done_with_their_events(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_event *events;
	int64_t start = rig->now, n;
	struct ledger_run run;
	size_t nevents;

	rig_project(rig, 1);
	done(rig, 1, 1);
	rig->now += 1000;
	done(rig, 1, 2);
	rig_accept(rig, 1, 3);
	(void)rig_claim(rig, 3);
	(void)rig_settle(rig, 3, LEDGER_FAILED); /* the index does not know it yet */
	rig_accept(rig, 1, 4);

	assert_int_equal(ledger_prune(rig->s, start + 7 * DAY_MS - 1, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ledger_prune(rig->s, start + 7 * DAY_MS, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, 1), &run), E_NOENT);
	assert_int_equal(ledger_events(rig->s, rig->a, rig_run(rig, 1), &events, &nevents), 0);
	assert_int_equal(nevents, 0);
	assert_int_equal(ledger_prune(rig->s, start + 700 * DAY_MS, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rig_row(rig, 3).state, LEDGER_FAILED);
	assert_int_equal(rig_row(rig, 4).state, LEDGER_EXECUTABLE);
	/* Numbers are not used again. */
	rig_accept(rig, 1, 5);
	assert_int_equal(rig_row(rig, 5).accept_seq, 5);
}

static void
a_hundred_rows_go_in_one_turn(void **state)
{
	struct ledger_rig *rig = *state;
	int64_t n;

	rig_project(rig, 1);
	for (int i = 1; i <= 130; i++)
		done(rig, 1, i);
	rig->now += 8 * DAY_MS;
	assert_int_equal(ledger_prune(rig->s, rig->now, &n), 0);
	assert_int_equal(n, LEDGER_PRUNE_ROWS);
	assert_int_equal(ledger_prune(rig->s, rig->now, &n), 0);
	assert_int_equal(n, 30);
}

/* ---- history ---- */

static void
the_newest_sixty_four_events_are_kept(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_event *events;
	char detail[32];
	size_t n;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	for (int i = 1; i <= 100; i++) {
		(void)snprintf(detail, sizeof(detail), "{\"n\":%d}", i);
		assert_int_equal(ledger_event_add(rig->s, rig_run(rig, 1), rig->now + i,
				     "runner_gone", detail),
		    0);
	}
	assert_int_equal(ledger_events(rig->s, rig->a, rig_run(rig, 1), &events, &n), 0);
	assert_int_equal(n, LEDGER_EVENTS_KEPT);
	assert_string_equal(events[0].detail, "{\"n\":37}");
	assert_int_equal(events[0].seq, 38); /* the first was `accepted` */
	assert_int_equal(events[n - 1].seq, 101);
	assert_string_equal(events[n - 1].detail, "{\"n\":100}");
	assert_int_equal(events[n - 1].at, rig->now + 100);
}

static void
an_event_has_a_known_name_and_a_bounded_object(void **state)
{
	struct ledger_rig *rig = *state;
	const char *run;
	char detail[1200];

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	run = rig_run(rig, 1);
	assert_int_equal(ledger_event_add(rig->s, run, rig->now, "danced", "{}"), E_CONSTRAINT);
	assert_int_equal(
	    ledger_event_add(rig->s, run, rig->now, "settled", "no object"), E_CONSTRAINT);
	memset(detail, ' ', sizeof(detail));
	detail[0] = '{';
	detail[1023] = '}';
	detail[1024] = '\0';
	assert_int_equal(ledger_event_add(rig->s, run, rig->now, "settled", detail), 0);
	detail[1023] = ' ';
	detail[1024] = '}';
	detail[1025] = '\0';
	assert_int_equal(
	    ledger_event_add(rig->s, run, rig->now, "settled", detail), E_CONSTRAINT);
}

/* A text that grows by being escaped still fits: less of it is kept. */
static void
details_made_of_hostile_texts_fit(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure f;
	struct ledger_event *events;
	char error[4000];
	size_t n;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	memset(error, 1, sizeof(error)); /* each becomes \u0001 */
	error[sizeof(error) - 1] = '\0';
	assert_int_equal(
	    ledger_dispatch_failed(rig->s, rig->a, rig_run(rig, 1), error, rig->now, &f), 0);
	assert_int_equal(ledger_events(rig->s, rig->a, rig_run(rig, 1), &events, &n), 0);
	assert_string_equal(events[n - 1].event, "dispatch_failed");
	assert_in_range(strlen(events[n - 1].detail), 100, 1024);
	assert_non_null(strstr(events[n - 1].detail, "{\"error\":\"\\u0001"));
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_event *events;
	const char **ids, *broken;
	size_t n;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	r = ledger_headless(rig.s, rig.a, 500, &ids, &n);
	if (r == 0)
		r = ledger_events(rig.s, rig.a, "run_0000000000000000000001", &events, &n);
	if (r == 0)
		r = ledger_check(rig.s, rig.a, &broken);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	assert_true(starve(hungry, rig) >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_next_deadline_is_the_earliest_of_all_kinds),
		TEST(a_clock_that_was_set_back_makes_nobody_wait_longer_than_the_longest_wait),
		TEST(a_queue_without_a_head_is_found_and_repaired),
		TEST(a_head_that_was_accepted_after_one_that_waits_breaks_an_invariant),
		TEST(rows_go_seven_days_after_they_are_done_with_their_events),
		TEST(a_hundred_rows_go_in_one_turn),
		TEST(the_newest_sixty_four_events_are_kept),
		TEST(an_event_has_a_known_name_and_a_bounded_object),
		TEST(details_made_of_hostile_texts_fit),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
