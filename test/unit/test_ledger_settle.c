/* Settlement by the lease holder and takeover, row by row of the specification. */
#include <string.h>

#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static struct ledger_settlement
finalize(const struct ledger_rig *rig, int n, const char *lease, enum ledger_state to)
{
	struct ledger_end e = rig_end(rig, to);
	struct ledger_settlement s;

	assert_int_equal(
	    ledger_finalize_run(rig->s, rig->a, rig_run(rig, n), lease, &e, rig->now, &s), 0);
	return s;
}

/* Run 1 claimed, run 2 behind it. */
static const char *
claimed(struct ledger_rig *rig)
{
	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	return rig_claim(rig, 1);
}

static void
anew(void **state)
{
	(void)rig_teardown(state);
	(void)rig_setup(state);
}

static void
a_settlement_ends_the_run_and_promotes_the_next(void **state)
{
	static const enum ledger_state ends[] = { LEDGER_PASSED, LEDGER_FAILED,
		LEDGER_CANCELED };
	static const enum ledger_public publics[] = { LEDGER_PUBLIC_PASSED,
		LEDGER_PUBLIC_FAILED, LEDGER_PUBLIC_CANCELED };

	/* From active, then from cancel_requested. */
	for (size_t i = 0; i < 2 * ARRAY_LEN(ends); i++) {
		enum ledger_state end = ends[i % ARRAY_LEN(ends)];
		int asked = i >= ARRAY_LEN(ends);
		struct ledger_settlement s;
		struct ledger_rig *rig;
		struct ledger_run r;
		struct ledger_end e;
		const char *lease;

		if (!asked && end == LEDGER_CANCELED)
			continue;
		anew(state);
		rig = *state;
		lease = claimed(rig);
		if (asked)
			rig_cancel(rig, 1);
		rig->now += 5000;
		e = rig_end(rig, end);
		s = finalize(rig, 1, lease, end);
		assert_int_equal(s.kind, LEDGER_SETTLED);
		assert_false(s.again);
		assert_string_equal(s.promoted.run_id, rig_run(rig, 2));
		r = rig_row(rig, 1);
		assert_int_equal(r.state, end);
		assert_int_equal(r.public_state, publics[i % ARRAY_LEN(ends)]);
		assert_int_equal(r.dispatch, LEDGER_DISPATCH_TERMINAL);
		assert_int_equal(r.started_at, e.started_at);
		assert_int_equal(r.finished_at, e.finished_at);
		assert_int_equal(r.has_exit_code, e.has_exit_code);
		assert_int_equal(r.exit_code, e.exit_code);
		if (e.failure_code != NULL)
			assert_string_equal(r.failure_code, e.failure_code);
		else
			assert_null(r.failure_code);
		if (e.error_message != NULL)
			assert_string_equal(r.error_message, e.error_message);
		else
			assert_null(r.error_message);
		assert_string_equal(r.lease_id, lease); /* stays, for repeats */
		assert_int_equal(r.lease_expires_at, 0);
		assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_TERMINAL_UPDATE);
		assert_int_equal(r.index_since, rig->now);
		assert_int_equal(r.cancel_requested_at != 0, asked);
		assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
		assert_string_equal(rig_last_event(rig, 1), "settled");
		rig_sound(rig);
	}
}

static void
a_repeat_is_settled_again_and_changes_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	const char *lease = claimed(rig);
	struct ledger_settlement s;
	struct ledger_run one, two;

	(void)finalize(rig, 1, lease, LEDGER_PASSED);
	one = rig_row(rig, 1);
	two = rig_row(rig, 2);
	rig->now += 100;
	s = finalize(rig, 1, lease, LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLED);
	assert_true(s.again);
	assert_string_equal(s.promoted.run_id, "");
	rig_unchanged(rig, &one);
	rig_unchanged(rig, &two);
}

static void
another_end_of_the_same_lease_is_a_conflict(void **state)
{
	struct ledger_rig *rig = *state;
	const char *lease = claimed(rig);
	struct ledger_settlement s;
	struct ledger_run before;

	/* Canceled, and nobody has asked for it. */
	before = rig_row(rig, 1);
	s = finalize(rig, 1, lease, LEDGER_CANCELED);
	assert_int_equal(s.kind, LEDGER_SETTLE_CONFLICT);
	assert_int_equal(s.run.state, LEDGER_ACTIVE);
	assert_string_equal(s.promoted.run_id, "");
	rig_unchanged(rig, &before);
	(void)finalize(rig, 1, lease, LEDGER_FAILED);
	before = rig_row(rig, 1);
	s = finalize(rig, 1, lease, LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLE_CONFLICT);
	assert_int_equal(s.run.state, LEDGER_FAILED);
	assert_int_equal(finalize(rig, 1, lease, LEDGER_CANCELED).kind, LEDGER_SETTLE_CONFLICT);
	rig_unchanged(rig, &before);
}

static void
who_does_not_hold_the_lease_settles_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	const char *lease = claimed(rig);
	struct ledger_settlement s;
	struct ledger_run before;

	/* Unknown run. */
	s = finalize(rig, 9, lease, LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLE_LOST);
	assert_int_equal(s.lost, LEDGER_LOST_RUN_MISSING);
	/* Another lease. */
	before = rig_row(rig, 1);
	s = finalize(rig, 1, rig_hex(rig, 99), LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLE_LOST);
	rig_unchanged(rig, &before);
	/* Given back, then canceled. */
	rig_release(rig, 1);
	s = finalize(rig, 1, lease, LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLE_LOST);
	assert_int_equal(s.lost, LEDGER_LOST_RELEASED);
	rig_cancel(rig, 1);
	s = finalize(rig, 1, lease, LEDGER_PASSED);
	assert_int_equal(s.kind, LEDGER_SETTLE_LOST);
	/* Taken over. */
	lease = rig_claim(rig, 2);
	rig_take_over(rig, 2, LEDGER_FAILED);
	before = rig_row(rig, 2);
	s = finalize(rig, 2, lease, LEDGER_FAILED);
	assert_int_equal(s.kind, LEDGER_SETTLE_LOST);
	assert_int_equal(s.lost, LEDGER_LOST_TAKEN_OVER);
	rig_unchanged(rig, &before);
}

static void
values_that_do_not_fit_the_status_are_refused_whole(void **state)
{
	struct ledger_rig *rig = *state;
	const char *lease = claimed(rig);
	struct ledger_run before = rig_row(rig, 1);
	struct ledger_end e = rig_end(rig, LEDGER_PASSED);
	struct ledger_settlement s;

	e.exit_code = 1;
	assert_int_equal(store_exec(rig->s, "SAVEPOINT turn"), 0);
	assert_int_equal(
	    ledger_finalize_run(rig->s, rig->a, rig_run(rig, 1), lease, &e, rig->now, &s),
	    E_CONSTRAINT);
	assert_int_equal(store_exec(rig->s, "ROLLBACK TO turn"), 0);
	assert_int_equal(store_exec(rig->s, "RELEASE turn"), 0);
	rig_unchanged(rig, &before);
}

/* ---- takeover ---- */

static int
take_over(const struct ledger_rig *rig, int n, const char *lease, const struct ledger_end *e,
    struct ledger_promoted *ret_promoted)
{
	struct ledger_at at = rig_at(rig);
	int done;

	assert_int_equal(ledger_take_over(&at, rig_run(rig, n), lease, e, "signal 9 (SIGKILL)",
			     &done, ret_promoted),
	    0);
	return done;
}

static void
a_takeover_ends_the_run_and_takes_the_lease_away(void **state)
{
	struct ledger_promoted promoted;
	struct ledger_rig *rig;
	struct ledger_end e;
	struct ledger_run r;

	/* From active, then from cancel_requested: the lost runner is failed in both. */
	for (int asked = 0; asked <= 1; asked++) {
		const char *lease;

		anew(state);
		rig = *state;
		lease = claimed(rig);
		rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
		if (asked)
			rig_cancel(rig, 1);
		rig->now += 700;
		e = rig_end(rig, LEDGER_FAILED);
		e.failure_code = "runner_lost";
		e.exit_code = 1;
		assert_true(take_over(rig, 1, lease, &e, &promoted));
		assert_string_equal(promoted.run_id, rig_run(rig, 2));
		r = rig_row(rig, 1);
		assert_int_equal(r.state, LEDGER_FAILED);
		assert_string_equal(r.failure_code, "runner_lost");
		assert_null(r.lease_id);
		assert_int_equal(r.lease_expires_at, 0);
		assert_int_equal(r.dispatch, LEDGER_DISPATCH_TERMINAL);
		assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_TERMINAL_UPDATE);
		assert_int_equal(r.cancel_requested_at != 0, asked);
		assert_string_equal(rig_last_event(rig, 1), "taken_over");
		rig_sound(rig);
		/* A repeat of it meets another lease. */
		assert_false(take_over(rig, 1, lease, &e, &promoted));
		assert_string_equal(promoted.run_id, "");
		rig_unchanged(rig, &r);
	}
}

static void
a_takeover_adopts_what_the_run_had_stored(void **state)
{
	static const enum ledger_state ends[] = { LEDGER_PASSED, LEDGER_FAILED,
		LEDGER_CANCELED };

	for (size_t i = 0; i < 2 * ARRAY_LEN(ends); i++) {
		enum ledger_state end = ends[i % ARRAY_LEN(ends)];
		int asked = i >= ARRAY_LEN(ends);
		struct ledger_promoted promoted;
		struct ledger_rig *rig;
		struct ledger_run r;
		struct ledger_end e;
		const char *lease;

		anew(state);
		rig = *state;
		lease = claimed(rig);
		if (asked)
			rig_cancel(rig, 1);
		rig->now += 10;
		e = rig_end(rig, end);
		assert_true(take_over(rig, 1, lease, &e, &promoted));
		r = rig_row(rig, 1);
		assert_int_equal(r.state, end);
		/* A canceled one has been asked, if only by the operator's own hand. */
		if (end == LEDGER_CANCELED)
			assert_string_equal(r.cancel_by, "operator");
		assert_int_equal(r.cancel_requested_at != 0, asked || end == LEDGER_CANCELED);
		assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
	}
}

static void
a_takeover_of_something_else_changes_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	const char *lease = claimed(rig);
	struct ledger_end e = rig_end(rig, LEDGER_FAILED);
	struct ledger_promoted promoted;
	struct ledger_run before = rig_row(rig, 1);

	assert_false(take_over(rig, 9, lease, &e, &promoted));
	assert_false(take_over(rig, 1, rig_hex(rig, 99), &e, &promoted));
	assert_false(take_over(rig, 2, lease, &e, &promoted));
	rig_unchanged(rig, &before);
	/* Settled while the takeover was on its way. */
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	before = rig_row(rig, 1);
	assert_false(take_over(rig, 1, lease, &e, &promoted));
	rig_unchanged(rig, &before);
}

/* ---- without memory ---- */

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_end e = rig_end(&rig, LEDGER_FAILED);
	struct ledger_settlement s;
	struct ledger_run r;
	int rc;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	rc = ledger_run_head(rig.s, rig.a, "prj_0000000000000000000001", &r);
	if (rc == 0)
		rc = ledger_finalize_run(rig.s, rig.a, r.run_id, r.lease_id, &e, rig.now, &s);
	assert_int_equal(store_exec(rig.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig.s, "RELEASE hungry"), 0);
	(void)arena_free(rig.a);
	return rc;
}

static void
a_settlement_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	(void)claimed(rig);
	assert_true(starve(hungry, rig) >= 3);
	assert_int_equal(rig_row(rig, 1).state, LEDGER_ACTIVE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_settlement_ends_the_run_and_promotes_the_next),
		TEST(a_repeat_is_settled_again_and_changes_nothing),
		TEST(another_end_of_the_same_lease_is_a_conflict),
		TEST(who_does_not_hold_the_lease_settles_nothing),
		TEST(values_that_do_not_fit_the_status_are_refused_whole),
		TEST(a_takeover_ends_the_run_and_takes_the_lease_away),
		TEST(a_takeover_adopts_what_the_run_had_stored),
		TEST(a_takeover_of_something_else_changes_nothing),
		TEST(a_settlement_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
