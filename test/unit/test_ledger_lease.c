/* Claim, heartbeat, commit and release, row by row of the specification. */
#include <string.h>

#include "lib/base/id.h"
#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

/* ---- claim ---- */

static struct ledger_claim
claim(const struct ledger_rig *rig, int n, const char *spawn_id)
{
	struct ledger_claim c;

	assert_int_equal(
	    ledger_claim_run(rig->s, rig->a, rig_run(rig, n), spawn_id, rig->now, &c), 0);
	return c;
}

static void
is_stale(const struct ledger_rig *rig, int n, int spawn, enum ledger_stale reason)
{
	struct ledger_claim c = claim(rig, n, rig_hex(rig, spawn));

	assert_false(c.claimed);
	assert_string_equal(ledger_stale_name(c.stale), ledger_stale_name(reason));
}

static void
an_executable_run_becomes_active_with_a_lease(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig->now += 40;
	assert_true(claim(rig, 1, rig_hex(rig, 77)).claimed);
	r = rig_row(rig, 1);
	assert_int_equal(r.state, LEDGER_ACTIVE);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_QUEUED);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_STARTED);
	assert_true(id_hex32_check(r.lease_id));
	assert_int_equal(r.lease_epoch, 1);
	assert_int_equal(r.lease_expires_at, rig->now + 30000);
	assert_string_equal(r.spawn_id, rig_hex(rig, 77));
	assert_int_equal(r.claimed_at, rig->now);
	assert_int_equal(r.position, 0);
	/* Users see a queued run until it reports. */
	assert_int_equal(r.index_rev, 1);
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_CREATE);
	assert_string_equal(rig_last_event(rig, 1), "claimed");
}

static void
a_claim_may_come_before_and_after_the_answer_of_the_supervisor(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure failure;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 2, 2);
	/* dispatch queued */
	assert_int_equal(
	    ledger_dispatch_queued(rig->s, rig->a, rig_run(rig, 1), NULL, "spawned", rig->now),
	    0);
	assert_true(claim(rig, 1, rig_hex(rig, 1)).claimed);
	/* dispatch pending, even on the ladder */
	assert_int_equal(
	    ledger_dispatch_failed(rig->s, rig->a, rig_run(rig, 2), "slow", rig->now, &failure),
	    0);
	assert_true(claim(rig, 2, rig_hex(rig, 2)).claimed);
	assert_int_equal(rig_row(rig, 2).dispatch_retry_at, 0);
	assert_int_equal(rig_row(rig, 2).dispatch_attempts, 1);
}

static void
the_same_process_gets_its_lease_again(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_claim c;
	struct ledger_run before;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	before = rig_row(rig, 1);
	rig->now += 100;
	c = claim(rig, 1, rig_hex(rig, 1));
	assert_true(c.claimed);
	assert_true(c.again);
	assert_string_equal(c.run.lease_id, before.lease_id);
	assert_int_equal(c.run.lease_epoch, 1);
	assert_int_equal(c.run.cancel_requested_at, 0);
	rig_unchanged(rig, &before);
	rig_cancel(rig, 1);
	c = claim(rig, 1, rig_hex(rig, 1));
	assert_true(c.again);
	assert_string_equal(c.run.lease_id, before.lease_id);
	assert_int_equal(c.run.cancel_requested_at, rig->now);
}

static void
every_other_claim_is_stale_with_its_reason_and_changes_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;

	is_stale(rig, 9, 9, LEDGER_STALE_RUN_MISSING);
	rig_project(rig, 1);
	for (int n = 1; n <= 6; n++)
		rig_accept(rig, 1, n);
	/* Another run is the head. */
	is_stale(rig, 2, 9, LEDGER_STALE_SUPERSEDED);
	/* Active, another process. */
	(void)rig_claim(rig, 1);
	before = rig_row(rig, 1);
	is_stale(rig, 1, 9, LEDGER_STALE_RUN_ACTIVE);
	rig_cancel(rig, 1);
	is_stale(rig, 1, 9, LEDGER_STALE_RUN_ACTIVE);
	is_stale(rig, 2, 9, LEDGER_STALE_SUPERSEDED);
	(void)rig_settle(rig, 1, LEDGER_CANCELED);
	/* Terminal, also for the process that had it. */
	is_stale(rig, 1, 1, LEDGER_STALE_CANCELED);
	(void)rig_claim(rig, 2);
	(void)rig_settle(rig, 2, LEDGER_PASSED);
	is_stale(rig, 2, 2, LEDGER_STALE_ALREADY_TERMINAL);
	(void)rig_claim(rig, 3);
	(void)rig_settle(rig, 3, LEDGER_FAILED);
	is_stale(rig, 3, 9, LEDGER_STALE_ALREADY_TERMINAL);
	rig_cancel(rig, 6);
	is_stale(rig, 6, 9, LEDGER_STALE_CANCELED);
	/* Pending without a head: a breach that the re-check repairs. */
	assert_int_equal(
	    rig_exec(rig, "DELETE FROM project_runs WHERE run_id = '%s'", rig_run(rig, 4)), 0);
	before = rig_row(rig, 5);
	is_stale(rig, 5, 9, LEDGER_STALE_NOT_CURRENTLY_EXECUTABLE);
	rig_unchanged(rig, &before);
}

static void
a_released_run_is_claimed_under_a_new_lease(void **state)
{
	struct ledger_rig *rig = *state;
	const char *first, *second;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	first = rig_claim(rig, 1);
	rig_release(rig, 1);
	second = claim(rig, 1, rig_hex(rig, 2)).run.lease_id;
	assert_string_not_equal(first, second);
	assert_int_equal(rig_row(rig, 1).lease_epoch, 2);
	assert_string_equal(rig_row(rig, 1).spawn_id, rig_hex(rig, 2));
	/* The process that gave it back is another one now. */
	is_stale(rig, 1, 1, LEDGER_STALE_RUN_ACTIVE);
}

/* ---- who still holds it ---- */

static enum ledger_lost
lost(const struct ledger_rig *rig, int n, const char *lease)
{
	struct ledger_at at = rig_at(rig);
	struct ledger_held held;
	int conflict;

	/* Every call that names a lease gives the same answer, and writes nothing. */
	assert_int_equal(ledger_heartbeat(&at, rig_run(rig, n), lease, LEDGER_PUBLIC_RUNNING,
			     rig->now, &held),
	    0);
	assert_true(held.lost);
	assert_int_equal(
	    ledger_record_commit(&at, rig_run(rig, n), lease, "0123456789", &held, &conflict),
	    0);
	assert_true(held.lost);
	assert_int_equal(ledger_check_lease(rig->s, rig->a, rig_run(rig, n), lease, &held), 0);
	assert_true(held.lost);
	return held.reason;
}

static void
a_lease_that_is_not_current_is_told_how_it_was_lost(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;
	const char *lease;

	assert_int_equal(lost(rig, 9, rig_hex(rig, 5)), LEDGER_LOST_RUN_MISSING);
	rig_project(rig, 1);
	for (int n = 1; n <= 4; n++)
		rig_accept(rig, 1, n);
	/* Given back: executable, then claimed by another process, then at its end. */
	lease = rig_claim(rig, 1);
	rig_release(rig, 1);
	before = rig_row(rig, 1);
	assert_int_equal(lost(rig, 1, lease), LEDGER_LOST_RELEASED);
	rig_unchanged(rig, &before);
	(void)claim(rig, 1, rig_hex(rig, 50));
	assert_int_equal(lost(rig, 1, lease), LEDGER_LOST_RELEASED);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	assert_int_equal(lost(rig, 1, lease), LEDGER_LOST_RELEASED);
	/* Given back and canceled then. */
	lease = rig_claim(rig, 2);
	rig_release(rig, 2);
	rig_cancel(rig, 2);
	assert_int_equal(lost(rig, 2, lease), LEDGER_LOST_RELEASED);
	/* Settled by its holder. */
	lease = rig_claim(rig, 3);
	(void)rig_settle(rig, 3, LEDGER_FAILED);
	before = rig_row(rig, 3);
	assert_int_equal(lost(rig, 3, lease), LEDGER_LOST_TERMINAL);
	/* Taken over. */
	lease = rig_claim(rig, 4);
	rig_take_over(rig, 4, LEDGER_FAILED);
	assert_int_equal(lost(rig, 4, lease), LEDGER_LOST_TAKEN_OVER);
	rig_unchanged(rig, &before);
}

static void
reasons_have_the_words_of_the_contract(void **state)
{
	(void)state;
	assert_string_equal(ledger_lost_name(LEDGER_LOST_RUN_MISSING), "run_missing");
	assert_string_equal(ledger_lost_name(LEDGER_LOST_TAKEN_OVER), "taken_over");
	assert_string_equal(ledger_lost_name(LEDGER_LOST_RELEASED), "released");
	assert_string_equal(ledger_lost_name(LEDGER_LOST_TERMINAL), "terminal");
	assert_string_equal(ledger_stale_name(LEDGER_STALE_RUN_MISSING), "run_missing");
	assert_string_equal(ledger_stale_name(LEDGER_STALE_CANCELED), "canceled");
	assert_string_equal(ledger_stale_name(LEDGER_STALE_RUN_ACTIVE), "run_active");
	assert_string_equal(
	    ledger_stale_name(LEDGER_STALE_ALREADY_TERMINAL), "already_terminal");
	assert_string_equal(ledger_stale_name(LEDGER_STALE_SUPERSEDED), "superseded");
	assert_string_equal(ledger_stale_name(LEDGER_STALE_NOT_CURRENTLY_EXECUTABLE),
	    "not_currently_executable");
}

/* ---- heartbeat ---- */

/* Run 1, active under its lease and known to the index. */
static void
active(struct ledger_rig *rig)
{
	int done;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	assert_int_equal(
	    ledger_sync_applied(rig->s, rig->a, rig_run(rig, 1), 1, rig->now, &done), 0);
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_CURRENT);
}

static void
a_report_moves_what_users_see_forward(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	active(rig);
	rig->now += 1000;
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now - 10);
	r = rig_row(rig, 1);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_STARTING);
	assert_int_equal(r.started_at, rig->now - 10);
	assert_int_equal(r.index_rev, 2);
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_int_equal(r.index_since, rig->now);
	assert_int_equal(r.lease_expires_at, rig->now + 30000);
	rig->now += 1000;
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	r = rig_row(rig, 1);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_RUNNING);
	assert_int_equal(r.started_at, rig->now - 1010); /* the first stays */
	assert_int_equal(r.index_rev, 3);
	assert_int_equal(r.index_since, rig->now - 1000); /* only the number grew */
}

static void
a_report_that_is_no_news_writes_nothing(void **state)
{
	static const enum ledger_public none[] = { LEDGER_PUBLIC_QUEUED, LEDGER_PUBLIC_STARTING,
		LEDGER_PUBLIC_RUNNING, LEDGER_PUBLIC_CANCEL_REQUESTED, LEDGER_PUBLIC_CANCELING,
		LEDGER_PUBLIC_PASSED, LEDGER_PUBLIC_FAILED, LEDGER_PUBLIC_CANCELED };
	struct ledger_rig *rig = *state;
	struct ledger_run before;

	active(rig);
	rig_report(rig, 1, LEDGER_PUBLIC_QUEUED, 0);
	assert_int_equal(rig_row(rig, 1).index_rev, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	before = rig_row(rig, 1);
	rig->now += 4000;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		rig_report(rig, 1, none[i], rig->now);
	rig_unchanged(rig, &before);
}

static void
a_report_that_contradicts_a_cancel_request_only_renews(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;

	active(rig);
	rig_cancel(rig, 1);
	before = rig_row(rig, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	rig_unchanged(rig, &before);
	rig_report(rig, 1, LEDGER_PUBLIC_CANCEL_REQUESTED, 0);
	rig_unchanged(rig, &before);
	rig_report(rig, 1, LEDGER_PUBLIC_CANCELING, rig->now - 5);
	assert_int_equal(rig_row(rig, 1).public_state, LEDGER_PUBLIC_CANCELING);
	assert_int_equal(rig_row(rig, 1).started_at, rig->now - 5);
	assert_int_equal(rig_row(rig, 1).index_rev, before.index_rev + 1);
	before = rig_row(rig, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_CANCEL_REQUESTED, rig->now);
	rig_unchanged(rig, &before);
}

static void
the_answer_carries_the_state_and_the_request(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_at at;
	struct ledger_held held;
	const char *lease;

	active(rig);
	lease = rig_row(rig, 1).lease_id;
	at = rig_at(rig);
	assert_int_equal(ledger_heartbeat(&at, rig_run(rig, 1), lease, LEDGER_PUBLIC_STARTING,
			     rig->now, &held),
	    0);
	assert_int_equal(held.run.state, LEDGER_ACTIVE);
	assert_int_equal(held.run.cancel_requested_at, 0);
	rig_cancel(rig, 1);
	assert_int_equal(ledger_heartbeat(&at, rig_run(rig, 1), lease, LEDGER_PUBLIC_STARTING,
			     rig->now, &held),
	    0);
	assert_int_equal(held.run.state, LEDGER_CANCEL_REQUESTED);
	assert_int_equal(held.run.cancel_requested_at, rig->now);
}

/* ---- commit ---- */

#define SHA       "0123456789abcdef0123456789abcdef01234567"
#define SHA_OTHER "0123456789abcdef0123456789abcdef01234568"

static int
commit(const struct ledger_rig *rig, const char *sha)
{
	struct ledger_run r = rig_row(rig, 1);
	struct ledger_at at = rig_at(rig);
	struct ledger_held held;
	int conflict = -1;

	assert_int_equal(
	    ledger_record_commit(&at, r.run_id, r.lease_id, sha, &held, &conflict), 0);
	assert_false(held.lost);
	return conflict;
}

static void
a_commit_is_recorded_once(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;

	active(rig);
	assert_int_equal(commit(rig, SHA), 0);
	before = rig_row(rig, 1);
	assert_string_equal(before.commit_sha, SHA);
	assert_int_equal(before.index_rev, 2);
	assert_int_equal(before.sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_string_equal(rig_last_event(rig, 1), "commit_recorded");
	assert_int_equal(commit(rig, SHA), 0); /* a repeat */
	rig_unchanged(rig, &before);
	assert_int_equal(commit(rig, SHA_OTHER), 1);
	assert_int_equal(commit(rig, "0123456"), 1);
	rig_unchanged(rig, &before);
}

static void
an_abbreviation_becomes_the_whole_of_itself(void **state)
{
	struct ledger_rig *rig = *state;

	active(rig);
	assert_int_equal(commit(rig, "0123456"), 0);
	assert_int_equal(commit(rig, "1123456789"), 1);
	assert_int_equal(commit(rig, SHA), 0);
	assert_string_equal(rig_row(rig, 1).commit_sha, SHA);
	assert_int_equal(rig_row(rig, 1).index_rev, 3);
}

static void
a_pinned_commit_stays_the_one_of_its_event(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	enum ledger_accepted kind;
	struct ledger_run r;

	rig_project(rig, 1);
	q = (struct ledger_accept) { .project_id = rig_prj(rig, 1),
		.run_id = rig_run(rig, 1),
		.provider = "github",
		.delivery_id = "d",
		.branch = "main",
		.commit_sha = SHA };
	assert_int_equal(ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &r), 0);
	(void)rig_claim(rig, 1);
	assert_int_equal(commit(rig, SHA_OTHER), 1);
	assert_int_equal(commit(rig, SHA), 0);
	assert_int_equal(rig_row(rig, 1).index_rev, 1);
}

/* ---- release ---- */

static enum ledger_released
release(const struct ledger_rig *rig, const char *lease, enum ledger_lost *ret_lost)
{
	struct ledger_at at = rig_at(rig);
	enum ledger_released kind;

	assert_int_equal(
	    ledger_release_run(&at, rig_run(rig, 1), lease, "shutdown", &kind, ret_lost), 0);
	return kind;
}

static void
a_run_that_has_not_started_a_step_goes_back_to_its_place(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;
	enum ledger_lost why;
	const char *lease;

	active(rig);
	rig_accept(rig, 1, 2);
	rig_report(rig, 1, LEDGER_PUBLIC_STARTING, rig->now);
	assert_int_equal(commit(rig, SHA), 0);
	lease = rig_row(rig, 1).lease_id;
	rig->now += 50;
	assert_int_equal(release(rig, lease, &why), LEDGER_RELEASED);
	r = rig_row(rig, 1);
	assert_int_equal(r.state, LEDGER_EXECUTABLE);
	assert_int_equal(r.position, r.accept_seq);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
	assert_int_equal(r.dispatch_attempts, 0);
	assert_int_equal(r.dispatch_retry_at, 0);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_QUEUED);
	assert_null(r.lease_id);
	assert_int_equal(r.lease_expires_at, 0);
	assert_int_equal(r.claimed_at, 0);
	assert_int_equal(r.started_at, 0);
	assert_string_equal(r.commit_sha, SHA); /* the next claim executes it */
	assert_string_equal(r.spawn_id, rig_hex(rig, 1));
	assert_int_equal(r.lease_epoch, 1);
	assert_int_equal(r.index_rev, 4);
	assert_string_equal(rig_last_event(rig, 1), "released");
	assert_int_equal(rig_row(rig, 2).state, LEDGER_PENDING);
	/* A repeat. */
	assert_int_equal(release(rig, lease, &why), LEDGER_RELEASE_LOST);
	assert_int_equal(why, LEDGER_LOST_RELEASED);
	rig_unchanged(rig, &r);
}

static void
a_release_before_any_report_is_no_news_for_users(void **state)
{
	struct ledger_rig *rig = *state;
	enum ledger_lost why;

	active(rig);
	assert_int_equal(release(rig, rig_row(rig, 1).lease_id, &why), LEDGER_RELEASED);
	assert_int_equal(rig_row(rig, 1).index_rev, 1);
	assert_int_equal(rig_row(rig, 1).sync, LEDGER_SYNC_CURRENT);
}

static void
a_release_is_refused_after_a_step_or_a_cancel(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run before;
	enum ledger_lost why;

	active(rig);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	before = rig_row(rig, 1);
	assert_int_equal(release(rig, before.lease_id, &why), LEDGER_REFUSED_STARTED);
	rig_unchanged(rig, &before);
	rig_cancel(rig, 1);
	before = rig_row(rig, 1);
	assert_int_equal(release(rig, before.lease_id, &why), LEDGER_REFUSED_CANCEL_REQUESTED);
	rig_unchanged(rig, &before);
	(void)rig_settle(rig, 1, LEDGER_CANCELED);
	before = rig_row(rig, 1);
	assert_int_equal(release(rig, before.lease_id, &why), LEDGER_RELEASE_LOST);
	assert_int_equal(why, LEDGER_LOST_TERMINAL);
	rig_unchanged(rig, &before);
}

/* ---- without memory ---- */

static const char first_run[] = "run_0000000000000000000001";
static const char spawn[] = "0000000000000000000000000000000a";

static int
claim_and_commit(struct ledger_rig *rig)
{
	struct ledger_at at = rig_at(rig);
	struct ledger_claim c;
	struct ledger_held held;
	enum ledger_released kind;
	enum ledger_lost why;
	int conflict, r;

	r = ledger_claim_run(rig->s, rig->a, first_run, spawn, rig->now, &c);
	if (r == 0)
		r = ledger_heartbeat(
		    &at, first_run, c.run.lease_id, LEDGER_PUBLIC_STARTING, rig->now, &held);
	if (r == 0)
		r = ledger_record_commit(&at, first_run, c.run.lease_id, SHA, &held, &conflict);
	if (r == 0)
		r = ledger_release_run(&at, first_run, c.run.lease_id, "shutdown", &kind, &why);
	return r;
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	r = claim_and_commit(&rig);
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
	rig_accept(rig, 1, 1);
	assert_true(starve(hungry, rig) >= 5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_executable_run_becomes_active_with_a_lease),
		TEST(a_claim_may_come_before_and_after_the_answer_of_the_supervisor),
		TEST(the_same_process_gets_its_lease_again),
		TEST(every_other_claim_is_stale_with_its_reason_and_changes_nothing),
		TEST(a_released_run_is_claimed_under_a_new_lease),
		TEST(a_lease_that_is_not_current_is_told_how_it_was_lost),
		cmocka_unit_test(reasons_have_the_words_of_the_contract),
		TEST(a_report_moves_what_users_see_forward),
		TEST(a_report_that_is_no_news_writes_nothing),
		TEST(a_report_that_contradicts_a_cancel_request_only_renews),
		TEST(the_answer_carries_the_state_and_the_request),
		TEST(a_commit_is_recorded_once),
		TEST(an_abbreviation_becomes_the_whole_of_itself),
		TEST(a_pinned_commit_stays_the_one_of_its_event),
		TEST(a_run_that_has_not_started_a_step_goes_back_to_its_place),
		TEST(a_release_before_any_report_is_no_news_for_users),
		TEST(a_release_is_refused_after_a_step_or_a_cancel),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
