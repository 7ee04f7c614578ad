/* Accept, cancel and promotion, row by row of the specification. */

#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static struct ledger_accept
manual(const struct ledger_rig *rig, int project, int n)
{
	return (struct ledger_accept) { .project_id = rig_prj(rig, project),
		.run_id = rig_run(rig, n),
		.user_id = rig_usr(rig, 1) };
}

static enum ledger_accepted
accept(const struct ledger_rig *rig, const struct ledger_accept *q, struct ledger_run *ret)
{
	enum ledger_accepted kind;

	assert_int_equal(ledger_accept_run(rig->s, rig->a, q, rig->now, &kind, ret), 0);
	return kind;
}

/* ---- accept ---- */

static void
the_first_run_is_executable_and_takes_a_snapshot(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	struct ledger_run r;

	rig_project(rig, 1);
	q = manual(rig, 1, 1);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_int_equal(r.state, LEDGER_EXECUTABLE);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_QUEUED);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
	assert_int_equal(r.dispatch_attempts, 0);
	assert_int_equal(r.accept_seq, 1);
	assert_int_equal(r.position, 1);
	assert_string_equal(r.trigger_type, "manual");
	assert_string_equal(r.triggered_by_user_id, rig_usr(rig, 1));
	assert_string_equal(r.branch, "main");
	assert_string_equal(r.repo_url, "https://git.example/acme/app.git");
	assert_string_equal(r.config_path, ".anvil.yml");
	assert_null(r.commit_sha);
	assert_int_equal(r.queued_at, rig->now);
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_CREATE);
	assert_int_equal(r.index_rev, 1);
	assert_int_equal(r.index_since, rig->now);
	assert_string_equal(rig_last_event(rig, 1), "accepted");
}

static void
a_run_behind_a_head_waits(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run r;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	r = rig_row(rig, 2);
	assert_int_equal(r.state, LEDGER_PENDING);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_BLOCKED);
	assert_int_equal(r.position, 2);
	(void)rig_claim(rig, 1);
	rig_accept(rig, 1, 3);
	assert_int_equal(rig_row(rig, 3).state, LEDGER_PENDING);
	/* Another project has a head of its own. */
	rig_project(rig, 2);
	rig_accept(rig, 2, 4);
	assert_int_equal(rig_row(rig, 4).state, LEDGER_EXECUTABLE);
	assert_int_equal(rig_row(rig, 4).accept_seq, 1);
	rig_sound(rig);
}

static void
a_snapshot_does_not_follow_the_configuration(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_change c = { .repo_url = "https://git.example/other.git",
		.default_branch = "trunk",
		.config_path = "ci/anvil.yml" };
	struct ledger_project p;
	int stale;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	assert_int_equal(
	    ledger_project_update(rig->s, rig->a, rig_prj(rig, 1), &c, rig->now, &p, &stale),
	    0);
	rig_accept(rig, 1, 2);
	assert_string_equal(rig_row(rig, 1).branch, "main");
	assert_string_equal(rig_row(rig, 1).config_path, ".anvil.yml");
	assert_string_equal(rig_row(rig, 2).branch, "trunk");
	assert_string_equal(rig_row(rig, 2).repo_url, "https://git.example/other.git");
	assert_string_equal(rig_row(rig, 2).config_path, "ci/anvil.yml");
}

static void
a_webhook_pins_the_commit_of_its_event(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	struct ledger_run r;

	rig_project(rig, 1);
	q = manual(rig, 1, 1);
	q.user_id = NULL;
	q.provider = "gitea";
	q.delivery_id = "d-1";
	q.branch = "feature/x";
	q.commit_sha = "0123456789abcdef0123456789abcdef01234567";
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_string_equal(r.trigger_type, "webhook");
	assert_null(r.triggered_by_user_id);
	assert_string_equal(r.delivery_id, "d-1");
	assert_string_equal(r.commit_sha, q.commit_sha);
	/* The same delivery is the same run; another one is not. */
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	q.delivery_id = "d-2";
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPT_CONFLICT);
}

static void
a_repeat_is_accepted_again_with_the_stored_row(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	struct ledger_run first, r;

	rig_project(rig, 1);
	q = manual(rig, 1, 1);
	q.branch = "topic";
	assert_int_equal(accept(rig, &q, &first), LEDGER_ACCEPTED);
	rig->now += 5000;
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_int_equal(r.queued_at, first.queued_at);
	rig_unchanged(rig, &first);
	/* Even when the run has moved on meanwhile. */
	(void)rig_claim(rig, 1);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_int_equal(r.state, LEDGER_ACTIVE);
	/* No second number was taken. */
	rig_accept(rig, 1, 2);
	assert_int_equal(rig_row(rig, 2).accept_seq, 2);
}

static void
a_known_id_for_something_else_is_a_conflict(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	struct ledger_run before, r;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_accept(rig, 1, 1);
	before = rig_row(rig, 1);
	q = manual(rig, 2, 1);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPT_CONFLICT); /* project */
	q = manual(rig, 1, 1);
	q.user_id = rig_usr(rig, 2);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPT_CONFLICT); /* user */
	q = manual(rig, 1, 1);
	q.branch = "other";
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPT_CONFLICT); /* branch */
	q = manual(rig, 1, 1);
	q.user_id = NULL;
	q.provider = "github";
	q.delivery_id = "d";
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPT_CONFLICT); /* trigger */
	rig_unchanged(rig, &before);
}

static void
twenty_wait_and_the_next_is_refused(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q;
	struct ledger_run r;
	int n;

	rig_project(rig, 1);
	for (n = 1; n <= LEDGER_QUEUE_MAX; n++)
		rig_accept(rig, 1, n);
	q = manual(rig, 1, n);
	assert_int_equal(accept(rig, &q, &r), LEDGER_QUEUE_FULL);
	/* The claimed run does not count. */
	(void)rig_claim(rig, 1);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_int_equal(r.accept_seq, n);
	q = manual(rig, 1, n + 1);
	assert_int_equal(accept(rig, &q, &r), LEDGER_QUEUE_FULL);
	/* A repeat of one that waits is no new run. */
	q = manual(rig, 1, 20);
	assert_int_equal(accept(rig, &q, &r), LEDGER_ACCEPTED);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, n + 1), &r), E_NOENT);
}

static void
nothing_is_accepted_without_a_live_project(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_accept q = manual(rig, 1, 1);
	enum ledger_accepted kind;
	struct ledger_run r;

	assert_int_equal(ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &r), E_NOENT);
	rig_project(rig, 1);
	assert_int_equal(ledger_project_begin_removal(rig->s, rig_prj(rig, 1), rig->now), 0);
	assert_int_equal(ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &r), E_NOENT);
}

/* ---- cancel ---- */

struct cancel_row {
	const char *what;
	enum ledger_state before, after;
	int push;
	int promotes; /* run 2 */
};

/* Brings run 1, with run 2 behind it, to the state. */
static void
bring_to(struct ledger_rig *rig, enum ledger_state to)
{
	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 1, 2);
	if (to == LEDGER_EXECUTABLE)
		return;
	if (to == LEDGER_PENDING) {
		/* Run 2 waits; the rows of the table are about run 1. */
		return;
	}
	(void)rig_claim(rig, 1);
	if (to == LEDGER_CANCEL_REQUESTED || to == LEDGER_CANCELED)
		rig_cancel(rig, 1);
	if (ledger_is_terminal(to))
		(void)rig_settle(rig, 1, to);
}

static void
cancel_does_what_the_state_calls_for(void **state)
{
	static const struct cancel_row rows[] = {
		{ "executable", LEDGER_EXECUTABLE, LEDGER_CANCELED, 0, 1 },
		{ "active", LEDGER_ACTIVE, LEDGER_CANCEL_REQUESTED, 1, 0 },
		{ "asked before", LEDGER_CANCEL_REQUESTED, LEDGER_CANCEL_REQUESTED, 1, 0 },
		{ "passed", LEDGER_PASSED, LEDGER_PASSED, 0, 0 },
		{ "failed", LEDGER_FAILED, LEDGER_FAILED, 0, 0 },
		{ "canceled", LEDGER_CANCELED, LEDGER_CANCELED, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ledger_promoted promoted;
		struct ledger_rig *rig;
		struct ledger_run before, r;
		struct ledger_at at;
		int push = -1;

		if (i != 0) {
			(void)rig_teardown(state);
			(void)rig_setup(state);
		}
		rig = *state;
		bring_to(rig, rows[i].before);
		before = rig_row(rig, 1);
		rig->now += 1000;
		at = rig_at(rig);
		assert_int_equal(ledger_cancel_run(
				     &at, before.run_id, rig_usr(rig, 9), &r, &push, &promoted),
		    0);
		assert_int_equal(r.state, rows[i].after);
		assert_int_equal(push, rows[i].push);
		assert_string_equal(promoted.run_id, rows[i].promotes ? rig_run(rig, 2) : "");
		rig_unchanged(rig, &r);
		if (rows[i].before == rows[i].after)
			rig_unchanged(rig, &before);
		rig_sound(rig);
	}
}

static void
a_queued_run_is_canceled_at_once(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_failure failure;
	struct ledger_run r;

	bring_to(rig, LEDGER_EXECUTABLE);
	assert_int_equal(ledger_dispatch_failed(
			     rig->s, rig->a, rig_run(rig, 1), "no fork", rig->now, &failure),
	    0);
	rig->now += 10;
	rig_cancel(rig, 1);
	r = rig_row(rig, 1);
	assert_int_equal(r.state, LEDGER_CANCELED);
	assert_int_equal(r.public_state, LEDGER_PUBLIC_CANCELED);
	assert_int_equal(r.position, 0);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_TERMINAL);
	assert_int_equal(r.dispatch_retry_at, 0);
	assert_null(r.last_error);
	assert_int_equal(r.finished_at, rig->now);
	assert_int_equal(r.started_at, 0);
	assert_false(r.has_exit_code);
	assert_string_equal(r.failure_code, "runtime_cancelled");
	assert_null(r.error_message);
	assert_int_equal(r.cancel_requested_at, rig->now);
	assert_string_equal(r.cancel_by, "operator");
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_TERMINAL_UPDATE);
	assert_int_equal(r.index_rev, 2);
	assert_null(r.lease_id);
	assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
}

static void
a_waiting_run_is_canceled_without_touching_the_head(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run head;

	bring_to(rig, LEDGER_EXECUTABLE);
	rig_accept(rig, 1, 3);
	head = rig_row(rig, 1);
	rig_cancel(rig, 2);
	assert_int_equal(rig_row(rig, 2).state, LEDGER_CANCELED);
	rig_unchanged(rig, &head);
	/* A gap in the positions is normal. */
	rig_cancel(rig, 1);
	assert_int_equal(rig_row(rig, 3).state, LEDGER_EXECUTABLE);
	assert_int_equal(rig_row(rig, 3).position, 3);
	rig_sound(rig);
}

static void
the_first_request_stays(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_promoted promoted;
	int64_t first = rig->now + 5;
	struct ledger_at at;
	struct ledger_run r;
	int push;

	bring_to(rig, LEDGER_ACTIVE);
	rig->now = first;
	at = rig_at(rig);
	assert_int_equal(
	    ledger_cancel_run(&at, rig_run(rig, 1), rig_usr(rig, 3), &r, &push, &promoted), 0);
	at.now_ms += 60000;
	assert_int_equal(
	    ledger_cancel_run(&at, rig_run(rig, 1), "shutdown", &r, &push, &promoted), 0);
	r = rig_row(rig, 1);
	assert_int_equal(r.cancel_requested_at, first);
	assert_string_equal(r.cancel_by, rig_usr(rig, 3));
	assert_int_equal(r.public_state, LEDGER_PUBLIC_CANCEL_REQUESTED);
	assert_int_equal(r.sync, LEDGER_SYNC_NEEDS_UPDATE);
	assert_int_equal(r.index_rev, 2);
	/* It goes on holding its lease. */
	assert_non_null(r.lease_id);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_STARTED);
}

static void
a_run_that_is_not_here_cannot_be_canceled(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_at at = rig_at(rig);
	struct ledger_promoted promoted;
	struct ledger_run r;
	int push;

	assert_int_equal(
	    ledger_cancel_run(&at, rig_run(rig, 1), "operator", &r, &push, &promoted), E_NOENT);
}

/* ---- promotion and listing ---- */

static void
promotion_takes_the_lowest_position_and_only_without_a_head(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_promoted promoted;
	struct ledger_run r;

	rig_project(rig, 1);
	for (int n = 1; n <= 3; n++)
		rig_accept(rig, 1, n);
	assert_int_equal(
	    ledger_promote(rig->s, rig->a, rig_prj(rig, 1), rig->now, &promoted), 0);
	assert_string_equal(promoted.run_id, "");
	(void)rig_claim(rig, 1);
	assert_string_equal(rig_settle(rig, 1, LEDGER_PASSED), rig_run(rig, 2));
	r = rig_row(rig, 2);
	assert_int_equal(r.state, LEDGER_EXECUTABLE);
	assert_int_equal(r.dispatch, LEDGER_DISPATCH_PENDING);
	assert_int_equal(r.position, 2);
	assert_int_equal(r.index_rev, 1); /* users see no difference */
	assert_string_equal(rig_last_event(rig, 2), "promoted");
	assert_int_equal(rig_row(rig, 3).state, LEDGER_PENDING);
}

static void
an_empty_queue_promotes_nothing(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	assert_string_equal(rig_settle(rig, 1, LEDGER_FAILED), "");
	rig_accept(rig, 1, 2);
	assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
}

static void
the_queue_is_listed_in_the_order_in_which_it_will_run(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs, head;
	size_t n;

	rig_project(rig, 1);
	for (int i = 1; i <= 5; i++)
		rig_accept(rig, 1, 10 - i); /* ids fall, numbers rise */
	(void)rig_claim(rig, 9);
	rig_cancel(rig, 7);
	assert_int_equal(ledger_queue_list(rig->s, rig->a, rig_prj(rig, 1), &runs, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(runs[0].run_id, rig_run(rig, 8));
	assert_string_equal(runs[1].run_id, rig_run(rig, 6));
	assert_string_equal(runs[2].run_id, rig_run(rig, 5));
	assert_int_equal(ledger_run_head(rig->s, rig->a, rig_prj(rig, 1), &head), 0);
	assert_string_equal(head.run_id, rig_run(rig, 9));
	assert_int_equal(ledger_queue_list(rig->s, rig->a, rig_prj(rig, 2), &runs, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ledger_run_head(rig->s, rig->a, rig_prj(rig, 2), &head), E_NOENT);
}

/* ---- without memory ---- */

/* In an arena of its own; what it wrote is undone, so that each try meets the same rows. */
static int
starving(struct ledger_rig *rig, int (*fn)(struct ledger_rig *rig))
{
	struct ledger_rig hungry = *rig;
	int r;

	hungry.a = arena_new();
	if (hungry.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig->s, "SAVEPOINT hungry"), 0);
	r = fn(&hungry);
	assert_int_equal(store_exec(rig->s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig->s, "RELEASE hungry"), 0);
	(void)arena_free(hungry.a);
	return r;
}

static const char first_run[] = "run_0000000000000000000001";
static const char third_run[] = "run_0000000000000000000003";
static const char project[] = "prj_0000000000000000000001";

static int
accept_hungry(struct ledger_rig *rig)
{
	struct ledger_accept q = { .project_id = project,
		.run_id = third_run,
		.user_id = "usr_0000000000000000000001" };
	enum ledger_accepted kind;
	struct ledger_run r;

	return ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &r);
}

static int
cancel_hungry(struct ledger_rig *rig)
{
	struct ledger_at at = rig_at(rig);
	struct ledger_promoted promoted;
	struct ledger_run r;
	int push;

	return ledger_cancel_run(&at, first_run, "operator", &r, &push, &promoted);
}

static int
list_hungry(struct ledger_rig *rig)
{
	struct ledger_run *runs;
	size_t n;

	return ledger_queue_list(rig->s, rig->a, project, &runs, &n);
}

static int
starve_accept(void *rig)
{
	return starving(rig, accept_hungry);
}

static int
starve_cancel(void *rig)
{
	return starving(rig, cancel_hungry);
}

static int
starve_list(void *rig)
{
	return starving(rig, list_hungry);
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	bring_to(rig, LEDGER_EXECUTABLE);
	assert_true(starve(starve_accept, rig) >= 3);
	assert_true(starve(starve_cancel, rig) >= 3);
	assert_true(starve(starve_list, rig) >= 3);
	assert_int_equal(rig_row(rig, 1).state, LEDGER_EXECUTABLE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_run_is_executable_and_takes_a_snapshot),
		TEST(a_run_behind_a_head_waits),
		TEST(a_snapshot_does_not_follow_the_configuration),
		TEST(a_webhook_pins_the_commit_of_its_event),
		TEST(a_repeat_is_accepted_again_with_the_stored_row),
		TEST(a_known_id_for_something_else_is_a_conflict),
		TEST(twenty_wait_and_the_next_is_refused),
		TEST(nothing_is_accepted_without_a_live_project),
		TEST(cancel_does_what_the_state_calls_for),
		TEST(a_queued_run_is_canceled_at_once),
		TEST(a_waiting_run_is_canceled_without_touching_the_head),
		TEST(the_first_request_stays),
		TEST(a_run_that_is_not_here_cannot_be_canceled),
		TEST(promotion_takes_the_lowest_position_and_only_without_a_head),
		TEST(an_empty_queue_promotes_nothing),
		TEST(the_queue_is_listed_in_the_order_in_which_it_will_run),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
