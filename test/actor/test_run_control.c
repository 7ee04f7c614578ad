/*
 * test/actor/test_run_control.c -- a real anvil-run and those who have power over it: the clock,
 * a cancel, the shard, the supervisor; and what is left of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/run_rig.h"
#include "test/support/unit.h"

/* ---- time and cancel ---- */

static void
a_run_that_takes_too_long_is_ended(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g,
	    "version: 1\nrun:\n  timeoutSeconds: 1\n  steps:\n" RIG_STEP("one", "sleep 1000"));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_FAILED);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_RUN_TIMEOUT);
	assert_int_equal(g->end.exit_code, 1);
	assert_string_equal(g->message, "Run exceeded its timeout of 1 s.");
}

static int
starts(struct run_rig *g)
{
	return g->nbeats > 0;
}

static int
runs(struct run_rig *g)
{
	return g->nbeats > 0 && g->beats[g->nbeats - 1] == RUN_STATUS_RUNNING;
}

static void
on_cancel_answer(void *arg, int err, const struct run_cancel_result *res)
{
	enum run_cancel_kind *kind = arg;

	assert_int_equal(err, 0);
	*kind = res->kind;
}

static void
a_pushed_cancel_needs_the_lease(void **state)
{
	struct run_rig *g = *state;
	enum run_cancel_kind wrong = 0, right = 0;
	struct run_cancel_params p = { "00000000000000000000000000000000", clock_wall_ms() };

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "sleep 1000")));
	run_rig_start(g);
	run_rig_until(g, runs);
	assert_int_equal(run_cancel_call(g->channel, NULL, &p, on_cancel_answer, &wrong), 0);
	p.lease_id = g->lease_id;
	assert_int_equal(run_cancel_call(g->channel, NULL, &p, on_cancel_answer, &right), 0);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(wrong, RUN_CANCEL_NOT_CURRENT);
	assert_int_equal(right, RUN_CANCEL_OK);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
}

static void
a_cancel_ends_the_step_and_the_run(void **state)
{
	struct run_rig *g = *state;

	g->heartbeat_ms = 50;
	run_rig_commit(
	    g, RIG_CONFIG(RIG_STEP("one", "sleep 1000") RIG_STEP("two", "echo never")));
	run_rig_start(g);
	run_rig_until(g, runs);
	g->cancel_at = clock_wall_ms();
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_false(g->end.has_exit_code);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_RUNTIME_CANCELLED);
	assert_null(g->end.error_message);
	assert_true(run_rig_said(g, "Cancellation requested. Sending SIGTERM.\n"));
	assert_false(run_rig_said(g, "never"));
}

static void
a_cancel_before_the_start_runs_nothing(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	g->cancel_at = clock_wall_ms();
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_int_equal(g->ncommits, 0);
	/* Nobody is there to be told; that it was a cancel is in the log all the same. */
	assert_true(run_rig_said(g, "Cancellation requested. Sending SIGTERM.\n"));
	assert_false(run_rig_said(g, "never"));
}

/* ---- the shard ---- */

static void
a_stale_claim_leaves_nothing(void **state)
{
	struct run_rig *g = *state;
	char path[256];

	g->stale = 1;
	run_rig_expect(g, 0);
	(void)snprintf(path, sizeof(path), "%s/runs/%s", g->data, g->run_id);
	assert_int_equal(access(path, F_OK), -1);
}

static void
claims_are_tried_five_times(void **state)
{
	struct run_rig *g = *state;

	g->fail_claims = 100;
	g->claim_error = E_NOMEM;
	run_rig_expect(g, 75);
	assert_int_equal(g->nclaims, 5);
}

/* The ledger may have it, and would call the run lost. */
static void
a_claim_that_may_have_come_true_is_not_given_up(void **state)
{
	struct run_rig *g = *state;

	g->fail_claims = 5;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	run_rig_expect(g, 0);
	assert_int_equal(g->nclaims, 6);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
a_settlement_is_repeated_until_it_is_answered(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	g->fail_finals = 2;
	run_rig_expect(g, 0);
	assert_int_equal(g->nfinals, 3);
}

static void
a_conflict_at_settlement_is_left_to_the_takeover(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	g->conflict = 1;
	run_rig_expect(g, 4);
}

static void
a_lost_lease_ends_everything_at_once(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct record_run run;

	g->heartbeat_ms = 50;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "trap '' TERM; sleep 1000")));
	run_rig_start(g);
	run_rig_until(g, runs);
	g->lost = 1;
	assert_int_equal(run_rig_wait(g), 3);
	assert_int_equal(g->nfinals, 0);
	r = run_rig_record(g);
	assert_int_equal(record_run_get(r, a, &run), 0);
	assert_int_equal(run.status, RUN_STATUS_FAILED);
	assert_int_equal(run.failure_code, FAILURE_CODE_RUNNER_LOST);
}

static void
a_second_claim_of_an_ended_run_settles_what_is_stored(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "exit 7")));
	g->conflict = 1;
	run_rig_expect(g, 4);
	g->conflict = 0;
	g->epoch = 2;
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_FAILED);
	assert_int_equal(g->end.exit_code, 7);
}

static void
files_of_the_run_are_gone_afterwards(void **state)
{
	struct run_rig *g = *state;
	static const char *const names[] = { "ws", "tmp", "home", "reserve" };
	char path[256];

	run_rig_commit(g,
	    RIG_CONFIG(RIG_STEP(
		"one", "mkdir -p a/b && touch a/b/c && chmod 0 a/b && touch $HOME/x")));
	run_rig_expect(g, 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(
		    path, sizeof(path), "%s/runs/%s/%s", g->data, g->run_id, names[i]);
		assert_int_equal(access(path, F_OK), -1);
	}
}

static int
has_claimed(struct run_rig *g)
{
	return g->nclaims > 0;
}

static void
a_run_before_its_first_step_can_be_given_back(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	/* A mirror that somebody else holds: the checkout waits. */
	run_rig_hold_mirror(g);
	run_rig_start(g);
	run_rig_until(g, has_claimed);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->nfinals, 0);
	run_rig_free_mirror(g);
	g->epoch = 2;
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
in_bwrap_the_same_run_passes(void **state)
{
	struct run_rig *g = *state;

	if (!run_rig_has_bwrap())
		skip();
	g->sandbox = "bwrap";
	run_rig_commit(g,
	    RIG_CONFIG(RIG_STEP("one", "pwd; cat sub/file")
		    RIG_STEP("two", "git log -1 --format=%s")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "/workspace\ntext\n"));
}

static void
a_killed_run_takes_its_steps_with_it_and_can_be_concluded(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo here; sleep 1000")));
	run_rig_start(g);
	run_rig_until(g, runs);
	assert_int_equal(kill(g->pid, SIGKILL), 0);
	assert_int_equal(run_rig_wait(g), 256 + SIGKILL);
	run_rig_serve(g);
	run_rig_conclude(g);
	assert_int_equal(g->concluded.status, RUN_STATUS_FAILED);
	assert_int_equal(g->concluded.failure_code, FAILURE_CODE_RUNNER_LOST);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(run_rig_wait(g), 0);
}

/* ---- afterwards, and side by side ---- */

static void
an_ended_run_is_served(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct run_get_detail_detail d = { 0 };

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo kept")));
	run_rig_expect(g, 0);
	run_rig_serve(g);
	run_rig_ask(g, &d, &text);
	assert_int_equal(d.run.status, RUN_STATUS_PASSED);
	assert_int_equal(d.nsteps, 1);
	assert_int_equal(d.first_seq, 1);
	assert_int_equal(d.log_bytes, text.len);
	assert_non_null(memmem(text.data, text.len, "kept\n", 5));
	assert_int_equal(g->nready, 1);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(run_rig_wait(g), 0);
}

static int
is_connected(struct run_rig *g)
{
	return g->channel != NULL;
}

static void
a_shard_that_was_away_hears_of_the_end(void **state)
{
	struct run_rig *g = *state;
	CLEANUP_FREE char *events = NULL;

	g->heartbeat_ms = 50;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", RIG_WAITS)));
	run_rig_start(g);
	run_rig_until(g, runs);
	run_rig_restart_shard(g);
	run_rig_until(g, is_connected);
	run_rig_let_go(g);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_int_equal(g->nclaims, 1);
	events = run_rig_events(g);
	assert_non_null(strstr(events, "heartbeat_restored"));
}

static void
a_cancel_wins_until_the_end_is_stored(void **state)
{
	struct run_rig *g = *state;

	/* starting, running, and then the last one. */
	g->cancel_after = 2;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
}

static void
a_run_has_one_process(void **state)
{
	struct run_rig *g = *state;
	pid_t first;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "sleep 1000")));
	run_rig_start(g);
	run_rig_until(g, runs);
	first = g->pid;
	run_rig_expect(g, 75);
	assert_int_equal(g->nclaims, 1);
	g->pid = first;
}

/* Its step has got so far that it does not hear what it is sent. */
static int
is_deaf(struct run_rig *g)
{
	CLEANUP_FREE char *path = mem_format("%s/runs/%s/home/deaf", g->data, g->run_id);

	return path != NULL && access(path, F_OK) == 0;
}

static void
a_step_that_ignores_a_cancel_is_killed(void **state)
{
	struct run_rig *g = *state;

	g->heartbeat_ms = 50;
	run_rig_commit(g,
	    RIG_CONFIG(RIG_STEP(
		"one", "trap '' TERM; touch $HOME/deaf; while true; do sleep 0.1; done")));
	run_rig_start(g);
	run_rig_until(g, is_deaf);
	/* The grace counts from the request: only what TERM is due is left of it. */
	g->cancel_at = clock_wall_ms() - 60000;
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_true(run_rig_said(g, "Cancellation grace window expired. Sending SIGKILL.\n"));
}

static void
a_cancel_ends_a_checkout_that_waits(void **state)
{
	struct run_rig *g = *state;

	g->heartbeat_ms = 50;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	run_rig_hold_mirror(g);
	run_rig_start(g);
	run_rig_until(g, starts);
	g->cancel_at = clock_wall_ms();
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_int_equal(g->ncommits, 0);
}

static void
a_release_that_a_cancel_forbids_ends_canceled(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	run_rig_hold_mirror(g);
	g->refuse_release = 1;
	run_rig_start(g);
	run_rig_until(g, starts);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
}

static int
asks(struct run_rig *g)
{
	return g->nclaims > 0;
}

/* Nothing of it was stored by then: it gets a store to be canceled in. */
static void
a_refused_release_before_the_store_ends_canceled(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	g->refuse_release = 1;
	g->fail_claims = 2;
	run_rig_start(g);
	run_rig_until(g, asks);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_false(run_rig_said(g, "never"));
}

static void
a_refused_release_for_want_of_a_key_ends_canceled(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 2);
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	g->refuse_release = 1;
	run_rig_expect(g, 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
}

static void
a_run_that_has_begun_a_step_is_not_given_back(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", RIG_WAITS)));
	run_rig_start(g);
	run_rig_until(g, runs);
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	run_rig_let_go(g);
	assert_int_equal(run_rig_wait(g), 0);
	assert_int_equal(g->nreleases, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
a_checkout_that_waits_too_long_is_a_timeout(void **state)
{
	struct run_rig *g = *state;

	g->max_timeout_s = 1;
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	run_rig_hold_mirror(g);
	run_rig_expect(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_RUN_TIMEOUT);
}

/* One test alone, by its name or a pattern. */
int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_run_that_takes_too_long_is_ended, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_pushed_cancel_needs_the_lease, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_ends_the_step_and_the_run, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_before_the_start_runs_nothing, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_stale_claim_leaves_nothing, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    claims_are_tried_five_times, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_claim_that_may_have_come_true_is_not_given_up,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_settlement_is_repeated_until_it_is_answered,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_conflict_at_settlement_is_left_to_the_takeover, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_lost_lease_ends_everything_at_once, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_second_claim_of_an_ended_run_settles_what_is_stored, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    files_of_the_run_are_gone_afterwards, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_run_before_its_first_step_can_be_given_back,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    in_bwrap_the_same_run_passes, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_killed_run_takes_its_steps_with_it_and_can_be_concluded, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    an_ended_run_is_served, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_shard_that_was_away_hears_of_the_end, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_wins_until_the_end_is_stored, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_has_one_process, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_step_that_ignores_a_cancel_is_killed, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_ends_a_checkout_that_waits, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_release_that_a_cancel_forbids_ends_canceled,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_refused_release_before_the_store_ends_canceled, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_refused_release_for_want_of_a_key_ends_canceled, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_run_that_has_begun_a_step_is_not_given_back,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_checkout_that_waits_too_long_is_a_timeout,
		    run_rig_setup, run_rig_teardown),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
