/* Each invariant of a ledger is broken on purpose, named, and mended where that is safe. */
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/ledger_rig.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

/* A hand that heeds neither triggers nor checks. */
static void
take_guards_away(const struct ledger_rig *rig)
{
	static const char *const names[] = { "project_state_grows", "project_runs_begin",
		"project_runs_status", "project_runs_dispatch_status",
		"project_runs_index_sync", "project_runs_constant", "project_runs_commit",
		"project_runs_grows", "project_runs_terminal_stays", "project_webhooks_grows",
		"project_webhook_deliveries_stays", "project_state_phases" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(rig_exec(rig, "DROP TRIGGER IF EXISTS %s", names[i]), 0);
	assert_int_equal(rig_exec(rig, "DROP INDEX project_runs_head"), 0);
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = ON"), 0);
}

/* Project 1: run 1 passed, 2 failed, 3 canceled, 4 active, 5 and 6 wait.  Project 2: run 7 is
 * executable.  Project 3: run 8 is being canceled. */
static void
fill(struct ledger_rig *rig)
{
	for (int p = 1; p <= 3; p++)
		rig_project(rig, p);
	for (int n = 1; n <= 6; n++)
		rig_accept(rig, 1, n);
	(void)rig_claim(rig, 1);
	(void)rig_settle(rig, 1, LEDGER_PASSED);
	(void)rig_claim(rig, 2);
	(void)rig_settle(rig, 2, LEDGER_FAILED);
	(void)rig_claim(rig, 3);
	rig_cancel(rig, 3);
	(void)rig_settle(rig, 3, LEDGER_CANCELED);
	(void)rig_claim(rig, 4);
	rig_accept(rig, 2, 7);
	rig_accept(rig, 3, 8);
	(void)rig_claim(rig, 8);
	rig_cancel(rig, 8);
}

static struct store_problems
look(const struct ledger_rig *rig)
{
	struct store_problems found = { .arena = rig->a };

	assert_int_equal(ledger_find_problems(rig->s, rig->now, &found), 0);
	return found;
}

static const struct store_problem *
find(const struct store_problems *found, const char *code)
{
	for (size_t i = 0; i < found->n; i++)
		if (strcmp(found->rows[i].code, code) == 0)
			return &found->rows[i];
	return NULL;
}

#define RUN(n)       "run_000000000000000000000" #n
#define PRJ(n)       "prj_000000000000000000000" #n
#define SET(n, what) "UPDATE project_runs SET " what " WHERE run_id = '" RUN(n) "'"

static const struct {
	const char *code, *subject, *sql;
} breaches[] = {
	{ "project_row", PRJ(1),
	    "UPDATE project_state SET phase = 'gone' WHERE project_id = '" PRJ(1) "'" },
	{ "project_row", PRJ(2),
	    "UPDATE project_state SET move_to = 3 WHERE project_id = '" PRJ(2) "'" },
	{ "project_row", PRJ(2),
	    "UPDATE project_state SET index_rev = 0 WHERE project_id = '" PRJ(2) "'" },
	{ "project_config_missing", PRJ(2),
	    "DELETE FROM project_config WHERE project_id = '" PRJ(2) "'" },
	{ "project_moved_rows", PRJ(2),
	    "UPDATE project_state SET phase = 'moved' WHERE project_id = '" PRJ(2) "'" },
	{ "project_config_row", PRJ(2),
	    "UPDATE project_config SET name = '' WHERE project_id = '" PRJ(2) "'" },
	{ "project_config_row", PRJ(2),
	    "UPDATE project_config SET repo_token_nonce = NULL WHERE project_id = '" PRJ(
		2) "'" },
	{ "project_next_seq", PRJ(1),
	    "UPDATE project_state SET next_seq = 6 WHERE project_id = '" PRJ(1) "'" },
	{ "run_row", RUN(4), SET(4, "status = 'lost'") },
	{ "run_row", RUN(4), SET(4, "public_status = 'canceling'") },
	{ "run_row", RUN(1), SET(1, "public_status = 'failed'") },
	{ "run_row", RUN(7), SET(7, "dispatch_status = 'blocked'") },
	{ "run_row", RUN(5), SET(5, "dispatch_status = 'queued'") },
	{ "run_row", RUN(7), SET(7, "dispatch_attempts = 7") },
	{ "run_row", RUN(4), SET(4, "dispatch_retry_at = 5") },
	{ "run_row", RUN(4), SET(4, "index_sync = 'done'") },
	{ "run_row", RUN(1), SET(1, "index_sync = 'current'") },
	{ "run_row", RUN(1), SET(1, "done_at = 7") },
	{ "run_row", RUN(4), SET(4, "index_rev = 0") },
	{ "run_row", RUN(5), SET(5, "position = NULL") },
	{ "run_row", RUN(5), SET(5, "position = 17") },
	{ "run_row", RUN(4), SET(4, "position = accept_seq") },
	{ "run_row", RUN(1), SET(1, "exit_code = 1") },
	{ "run_row", RUN(2), SET(2, "failure_code = NULL") },
	{ "run_row", RUN(3), SET(3, "error_message = 'why'") },
	{ "run_row", RUN(4), SET(4, "finished_at = 9") },
	{ "run_row", RUN(1), SET(1, "finished_at = NULL") },
	{ "run_row", RUN(4), SET(4, "lease_id = NULL") },
	{ "run_row", RUN(8), SET(8, "spawn_id = NULL") },
	{ "run_row", RUN(7), SET(7, "lease_id = '00000000000000000000000000000000'") },
	{ "run_row", RUN(4), SET(4, "lease_epoch = 0") },
	{ "run_row", RUN(8), SET(8, "cancel_requested_at = NULL") },
	{ "run_row", RUN(3), SET(3, "cancel_by = NULL") },
	{ "run_row", RUN(5), SET(5, "trigger_type = 'webhook'") },
	{ "run_row", RUN(5), SET(5, "provider = 'github'") },
	{ "two_heads", PRJ(1), SET(5, "status = 'executable', dispatch_status = 'pending'") },
	{ "no_head", PRJ(1), "DELETE FROM project_runs WHERE run_id = '" RUN(4) "'" },
	{ "head_order", RUN(5), SET(4, "accept_seq = 40") },
	{ "history_missing", RUN(5),
	    "DELETE FROM project_run_events WHERE run_id = '" RUN(5) "'" },
	{ "history_row", RUN(5),
	    "UPDATE project_run_events SET detail = '{oh}' WHERE run_id = '" RUN(5) "'" },
	{ "history_long", RUN(5),
	    "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < 66) INSERT INTO project_run_events SELECT '" RUN(
		5) "', i, 1, 'promoted', '{}' FROM n" },
	{ "queue_over", PRJ(2),
	    "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < 24) INSERT INTO project_runs (run_id, project_id, accept_seq, position, status,"
	    " public_status, dispatch_status, dispatch_attempts, trigger_type, triggered_by_user_id, branch,"
	    " repo_url, config_path, queued_at, lease_epoch, index_sync, index_rev, index_since,"
	    " index_attempt) SELECT 'run_' || (i + 1000), project_id, i, i, 'pending', 'queued', 'blocked',"
	    " 0, trigger_type, triggered_by_user_id, branch, repo_url, config_path, 1, 0, 'needs_create', 1,"
	    " 1, 0 FROM project_runs, n WHERE run_id = '" RUN(7) "'" },
	{ "delivery_row", "d1",
	    "INSERT INTO project_webhook_deliveries (project_id, provider, delivery_id,"
	    " event_kind, event_name, outcome, reason, repository_url, body_sha256, body_bytes, received_at)"
	    " VALUES ('" PRJ(
		1) "', 'github', 'd1', 'push', 'push', 'accepted', 'x', 'x', zeroblob(32), 1, 1)" },
	{ "delivery_run_missing", "d2",
	    "INSERT INTO project_webhook_deliveries (project_id, provider,"
	    " delivery_id, event_kind, event_name, outcome, reason, repository_url, body_sha256, body_bytes,"
	    " run_id, received_at) VALUES ('" PRJ(
		1) "', 'github', 'd2', 'push', 'push', 'accepted', 'x', 'x',"
		   " zeroblob(32), 1, 'run_none', 1700000000000)" },
	{ "refusals_over", "whk_1",
	    "INSERT INTO project_webhooks VALUES ('whk_1', '" PRJ(
		1) "', 'github', 1,"
		   " NULL, 'c', 'n', 1, 1, 1); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
		   " i < 21) INSERT INTO project_webhook_refusals SELECT 'whk_1', i, 1, 'bad_json', NULL, NULL, NULL,"
		   " NULL, 'x', 1 FROM n" },
};

static void
each_breach_is_named_by_its_code_and_its_subject(void **state)
{
	struct ledger_rig *rig = *state;

	fill(rig);
	rig_sound(rig);
	take_guards_away(rig);
	for (size_t i = 0; i < ARRAY_LEN(breaches); i++) {
		const struct store_problem *p;
		struct store_problems found;

		assert_int_equal(rig_exec(rig, "SAVEPOINT hand"), 0);
		if (rig_exec(rig, "%s", breaches[i].sql) != 0)
			fail_msg("%s: %s", breaches[i].sql, store_error(rig->s));
		found = look(rig);
		p = find(&found, breaches[i].code);
		if (p == NULL || strcmp(p->subject, breaches[i].subject) != 0)
			fail_msg("%s was not found by %s", breaches[i].code, breaches[i].sql);
		assert_int_equal(rig_exec(rig, "ROLLBACK TO hand"), 0);
		assert_int_equal(rig_exec(rig, "RELEASE hand"), 0);
	}
	rig_sound(rig);
}

static void
a_run_of_a_delivery_that_is_kept_no_longer_may_be_gone(void **state)
{
	struct ledger_rig *rig = *state;
	struct store_problems found;

	fill(rig);
	assert_int_equal(
	    rig_exec(rig,
		"INSERT INTO project_webhook_deliveries (project_id, provider,"
		" delivery_id, event_kind, event_name, outcome, reason,"
		" repository_url, branch, commit_sha, body_sha256, body_bytes, run_id,"
		" received_at) VALUES ('" PRJ(
		    1) "', 'github', 'old', 'push', 'push',"
		       " 'accepted', 'x', 'x', 'main', 'abcdef0', zeroblob(32), 1, '%s', %lld)",
		rig_run(rig, 99), (long long)(rig->now - LEDGER_DELIVERY_KEPT_MS)),
	    0);
	found = look(rig);
	assert_int_equal(found.n, 0);
}

static void
many_rows_of_a_kind_are_counted_and_not_all_told(void **state)
{
	struct ledger_rig *rig = *state;
	struct store_problems found;

	rig_project(rig, 1);
	take_guards_away(rig);
	for (int n = 1; n <= 20; n++)
		rig_accept(rig, 1, n);
	for (int p = 2; p <= 5; p++) {
		rig_project(rig, p);
		for (int n = 1; n <= 20; n++)
			rig_accept(rig, p, 100 * p + n);
	}
	assert_int_equal(rig_exec(rig, "UPDATE project_runs SET index_rev = 0"), 0);
	found = look(rig);
	assert_int_equal(found.n, STORE_RULE_ROWS);
	assert_int_equal(found.left_out, 100 - STORE_RULE_ROWS);
}

/* ---- mending ---- */

static int
mend(struct ledger_rig *rig, const char *code, const char *subject)
{
	const struct ledger_at at = rig_at(rig);
	struct ledger_promoted promoted;
	int mended;

	assert_int_equal(ledger_mend(&at, code, subject, &mended, &promoted), 0);
	return mended;
}

/* Everything that a schema has is there again. */
static void
give_checks_back(const struct ledger_rig *rig)
{
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = OFF"), 0);
}

static void
a_queue_without_a_head_gets_one(void **state)
{
	struct ledger_rig *rig = *state;

	fill(rig);
	assert_int_equal(mend(rig, "no_head", rig_prj(rig, 1)), 0);
	assert_int_equal(
	    rig_exec(rig, "DELETE FROM project_runs WHERE run_id = '%s'", rig_run(rig, 4)), 0);
	assert_int_equal(mend(rig, "no_head", rig_prj(rig, 1)), 1);
	assert_int_equal(rig_row(rig, 5).state, LEDGER_EXECUTABLE);
	rig_sound(rig);
	assert_int_equal(mend(rig, "no_head", rig_prj(rig, 1)), 0);
}

static void
no_acceptance_number_is_given_again(void **state)
{
	struct ledger_rig *rig = *state;

	fill(rig);
	assert_int_equal(mend(rig, "project_next_seq", rig_prj(rig, 1)), 0);
	assert_int_equal(rig_exec(rig, "DROP TRIGGER project_state_grows"), 0);
	assert_int_equal(rig_exec(rig, "UPDATE project_state SET next_seq = 2"), 0);
	assert_int_equal(mend(rig, "project_next_seq", rig_prj(rig, 1)), 1);
	rig_accept(rig, 1, 50);
	assert_int_equal(rig_row(rig, 50).accept_seq, 7);
}

static void
columns_that_follow_from_a_status_are_made_to(void **state)
{
	static const char *const straight[] = { SET(5, "position = NULL"),
		SET(5, "position = 17, dispatch_retry_at = 5"), SET(4, "position = accept_seq"),
		SET(4, "lease_id = NULL, lease_expires_at = NULL"), SET(8, "spawn_id = NULL"),
		SET(8, "cancel_by = NULL"), SET(4, "finished_at = 9, exit_code = 1"),
		SET(4, "public_status = 'queued', lease_epoch = 0, claimed_at = NULL") };
	struct ledger_rig *rig = *state;

	fill(rig);
	for (size_t i = 0; i < ARRAY_LEN(straight); i++) {
		struct store_problems found;

		assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = ON"), 0);
		if (rig_exec(rig, "%s", straight[i]) != 0) {
			assert_int_equal(rig_exec(rig, "DROP TRIGGER project_runs_grows"), 0);
			assert_int_equal(rig_exec(rig, "%s", straight[i]), 0);
		}
		give_checks_back(rig);
		found = look(rig);
		assert_int_not_equal(found.n, 0);
		assert_int_equal(mend(rig, "run_row", found.rows[0].subject), 1);
		rig_sound(rig);
	}
	assert_true(rig_holds(rig, "NOT EXISTS (SELECT 1 FROM set_aside)"));
}

static void
a_row_that_cannot_be_mended_is_set_aside_and_its_run_ends(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run run;

	fill(rig);
	/* Waits in vain behind one that is executed; ended, and its exit code is none. */
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = ON"), 0);
	assert_int_equal(rig_exec(rig, "DROP TRIGGER project_runs_index_sync"), 0);
	assert_int_equal(rig_exec(rig, SET(7, "index_sync = 'done'")), 0);
	assert_int_equal(rig_exec(rig, SET(6, "index_sync = 'done'")), 0);
	assert_int_equal(rig_exec(rig, "DROP TRIGGER project_runs_terminal_stays"), 0);
	assert_int_equal(rig_exec(rig, SET(1, "exit_code = 3")), 0);
	give_checks_back(rig);
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 6)), 1);
	run = rig_row(rig, 6);
	assert_int_equal(run.state, LEDGER_CANCELED);
	assert_int_equal(run.accept_seq, 6);
	assert_string_equal(run.cancel_by, "operator");
	/* Nothing else is at the head. */
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 7)), 1);
	run = rig_row(rig, 7);
	assert_int_equal(run.state, LEDGER_FAILED);
	assert_string_equal(run.failure_code, "internal_unexpected");
	/* One that has passed has passed, when it can be written so. */
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 1)), 0);
	rig_cancel(rig, 5);
	(void)rig_settle(rig, 4, LEDGER_FAILED);
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 1)), 1);
	run = rig_row(rig, 1);
	assert_int_equal(run.state, LEDGER_PASSED);
	assert_int_equal(run.exit_code, 0);
	assert_int_equal(run.accept_seq, 1);
	rig_sound(rig);
	assert_true(rig_holds(rig, "(SELECT count(*) FROM set_aside) = 3"));
	assert_true(rig_holds(rig,
	    "(SELECT json_extract(content, '$.index_sync') FROM set_aside WHERE subject = '%s')"
	    " = '''done'''",
	    rig_run(rig, 7)));
}

static void
a_claimed_run_is_never_set_aside(void **state)
{
	struct ledger_rig *rig = *state;

	fill(rig);
	take_guards_away(rig);
	assert_int_equal(rig_exec(rig, SET(4, "index_sync = 'done'")), 0);
	give_checks_back(rig);
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 4)), 0);
	assert_int_equal(rig_row(rig, 4).state, LEDGER_ACTIVE);
	assert_int_equal(mend(rig, "run_row", rig_run(rig, 77)), 0);
	assert_int_equal(mend(rig, "head_order", rig_run(rig, 5)), 0);
}

static void
looking_and_mending_survive_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;
	long n = 0;

	fill(rig);
	take_guards_away(rig);
	assert_int_equal(rig_exec(rig, SET(5, "exit_code = 7")), 0);
	assert_int_equal(rig_exec(rig, SET(7, "index_sync = 'done'")), 0);
	for (int hit = 1; hit; n++) {
		struct ledger_rig own = { .s = rig->s, .now = rig->now };
		struct ledger_promoted promoted;
		struct store_problems found;
		struct ledger_at at;
		int mended, r;

		assert_int_equal(rig_exec(rig, "SAVEPOINT hand"), 0);
		own.a = arena_new();
		found = (struct store_problems) { .arena = own.a };
		at = (struct ledger_at) { rig->s, own.a, rig->now };
		mem_fault_arm(n);
		r = ledger_find_problems(rig->s, rig->now, &found);
		if (r == 0)
			r = ledger_mend(&at, "run_row", RUN(7), &mended, &promoted);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		(void)arena_free(own.a);
		if (store_in_txn(rig->s))
			assert_int_equal(rig_exec(rig, "ROLLBACK TO hand; RELEASE hand"), 0);
	}
	assert_true(n > 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_breach_is_named_by_its_code_and_its_subject),
		TEST(a_run_of_a_delivery_that_is_kept_no_longer_may_be_gone),
		TEST(many_rows_of_a_kind_are_counted_and_not_all_told),
		TEST(a_queue_without_a_head_gets_one),
		TEST(no_acceptance_number_is_given_again),
		TEST(columns_that_follow_from_a_status_are_made_to),
		TEST(a_row_that_cannot_be_mended_is_set_aside_and_its_run_ends),
		TEST(a_claimed_run_is_never_set_aside),
		TEST(looking_and_mending_survive_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
