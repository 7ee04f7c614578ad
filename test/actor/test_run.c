/*
 * test/actor/test_run.c -- a real anvil-run from claim to exit, against a shard that the test
 * plays.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/run_rig.h"
#include "test/support/unit.h"

#define STEP(name, command) "    - name: " name "\n      run: " command "\n"
#define CONFIG(steps)       "version: 1\nrun:\n  steps:\n" steps

static int
setup(void **state)
{
	struct run_rig *g = malloc(sizeof(*g));

	run_rig_init(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct run_rig *g = *state;

	run_rig_done(g);
	free(g);
	return 0;
}

static void
assert_run(struct run_rig *g, int status)
{
	int got = run_rig_run(g);

	if (got != status) {
		CLEANUP_FREE char *events = run_rig_events(g);

		(void)fputs(events, stderr);
	}
	assert_int_equal(got, status);
}

static void
a_run_whose_steps_pass_is_passed(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "cat sub/file") STEP("two", "\"true\"")));
	assert_run(g, 0);
	assert_int_equal(g->nfinals, 1);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_int_equal(g->end.exit_code, 0);
	assert_true(run_rig_said(g, "Step 1/2: one\ntext\nStep 2/2: two\n"));
}

/* ---- steps ---- */

static void
a_failing_step_ends_the_run_with_its_code(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct record_step *steps;
	size_t n;

	run_rig_commit(g, CONFIG(STEP("one", "exit 3") STEP("two", "echo never")));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_FAILED);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_STEP_FAILED);
	assert_int_equal(g->end.exit_code, 3);
	assert_string_equal(g->message, "Step \"one\" failed with exit code 3.");
	r = run_rig_record(g);
	assert_int_equal(record_steps_get(r, a, &steps, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(steps[0].status, STEP_STATUS_FAILED);
	assert_int_equal(steps[0].exit_code.v, 3);
	assert_int_equal(steps[1].status, STEP_STATUS_QUEUED);
}

static void
a_step_that_a_signal_ends_says_which(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "kill -SEGV $$")));
	assert_run(g, 0);
	assert_int_equal(g->end.exit_code, 139);
	assert_string_equal(
	    g->message, "Step \"one\" failed with exit code 139 (signal 11, SIGSEGV).");
}

static void
a_run_without_steps_is_passed(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, "version: 1\nrun:\n  steps: []\n");
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
steps_see_their_environment_and_nothing_else(void **state)
{
	struct run_rig *g = *state;
	char line[256];

	run_rig_commit(g, CONFIG(STEP("env", "env | sort")));
	(void)setenv("ANVIL_TEST_LEAK", "leaked", 1);
	assert_run(g, 0);
	(void)unsetenv("ANVIL_TEST_LEAK");
	(void)snprintf(line, sizeof(line), "ANVIL_RUN_ID=%s\n", g->run_id);
	assert_true(run_rig_said(g, line));
	(void)snprintf(line, sizeof(line), "ANVIL_COMMIT_SHA=%s\n", g->sha);
	assert_true(run_rig_said(g, line));
	assert_true(run_rig_said(g, "ANVIL_STEP_POSITION=1\n"));
	assert_true(run_rig_said(g, "ANVIL_PROJECT=owner/project\n"));
	assert_false(run_rig_said(g, "leaked"));
}

static void
what_a_step_leaves_running_is_killed_and_named(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g,
	    CONFIG(STEP("one",
		"setsid sleep 1000 >/dev/null 2>&1 & echo $! > $HOME/pid; while ! pgrep -x sleep -s $! > /dev/null; do sleep 0.01; done")
		    STEP("two", "if kill -0 $(cat $HOME/pid); then exit 1; fi")));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "Killed 1 process left by step \"one\": sleep ("));
}

static void
a_pipe_that_a_leftover_holds_does_not_hold_the_run(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "echo seen; sleep 1000 &")));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "seen\n"));
}

static void
output_of_any_bytes_becomes_text(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	run_rig_commit(g,
	    CONFIG(
		STEP("one", "printf 'a\\0b\\377c\\342\\202'; sleep 0.1; printf '\\254\\n'")));
	assert_run(g, 0);
	run_rig_text(g, &text);
	assert_non_null(memmem(text.data, text.len,
	    "a\0b\xef\xbf\xbd"
	    "c\xe2\x82\xac\n",
	    11));
}

static void
both_streams_come_through_whole(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	size_t out = 0, err = 0;

	run_rig_commit(g,
	    CONFIG(STEP("one",
		"head -c 3000000 /dev/zero | tr '\\0' o & head -c 3000000 /dev/zero | tr "
		"'\\0' e >&2; wait")));
	assert_run(g, 0);
	run_rig_text(g, &text);
	for (size_t i = 0; i < text.len; i++) {
		out += text.data[i] == 'o';
		err += text.data[i] == 'e';
	}
	assert_true(out >= 3000000 && out < 3000100);
	assert_true(err >= 3000000 && err < 3000100);
}

static void
a_gone_working_directory_fails_the_step(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g,
	    "version: 1\nrun:\n  workingDirectory: sub\n  steps:\n" STEP("one", "rm -rf ../sub")
		STEP("two", "echo never"));
	assert_run(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_STEP_FAILED);
	assert_int_equal(g->end.exit_code, 1);
	assert_string_equal(
	    g->message, "Step \"two\" could not start: working directory sub is gone.");
}

/* ---- config and checkout ---- */

static void
assert_config_error(
    struct run_rig *g, const char *config, enum failure_code code, const char *first_line)
{
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct record_step *steps;
	size_t n;

	run_rig_commit(g, config);
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_FAILED);
	assert_int_equal(g->end.failure_code, code);
	assert_int_equal(g->end.exit_code, 1);
	if (strncmp(g->message, first_line, strlen(first_line)) != 0)
		(void)fprintf(stderr, "%s\n", g->message);
	assert_int_equal(strncmp(g->message, first_line, strlen(first_line)), 0);
	assert_true(run_rig_said(g, first_line));
	r = run_rig_record(g);
	assert_int_equal(record_steps_get(r, a, &steps, &n), 0);
	assert_int_equal(n, 0);
}

static void
a_missing_config_is_not_found(void **state)
{
	assert_config_error(*state, NULL, FAILURE_CODE_CONFIG_NOT_FOUND,
	    "Repository config not found: .anvil.yml");
}

static void
a_config_that_is_no_yaml_says_where(void **state)
{
	assert_config_error(*state, "version: 1\n\trun: x\n", FAILURE_CODE_CONFIG_INVALID,
	    "Repository config is not valid YAML\n.anvil.yml:2:");
}

static void
a_config_with_a_wrong_value_says_which(void **state)
{
	assert_config_error(*state, "version: 2\nrun:\n  steps: []\n",
	    FAILURE_CODE_CONFIG_INVALID,
	    "Repository config failed validation\n.anvil.yml:1:10: version: ");
}

static void
a_config_that_is_too_big_is_not_read(void **state)
{
	char *big = malloc(70001);

	memset(big, '#', 70000);
	big[70000] = '\0';
	assert_config_error(*state, big, FAILURE_CODE_CONFIG_INVALID,
	    "Repository config failed size validation\n.anvil.yml: 70000 bytes, 65536 are allowed");
	free(big);
}

static void
a_working_directory_that_is_a_file_is_invalid(void **state)
{
	assert_config_error(*state,
	    "version: 1\nrun:\n  workingDirectory: sub/file\n  steps: []\n",
	    FAILURE_CODE_CONFIG_INVALID,
	    "Repository config failed validation\n.anvil.yml:3:21: run.workingDirectory: ");
}

static void
a_missing_branch_fails_the_checkout(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
	(void)snprintf(g->branch, sizeof(g->branch), "nowhere");
	assert_run(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_CHECKOUT_FAILED);
	assert_string_equal(g->message, "Checkout failed: branch \"nowhere\" does not exist");
	assert_int_equal(g->ncommits, 0);
}

static void
a_pinned_commit_that_is_gone_is_unreachable(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
	(void)snprintf(
	    g->commit, sizeof(g->commit), "0123456789012345678901234567890123456789");
	assert_run(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_COMMIT_UNREACHABLE);
}

static void
another_commit_in_the_ledger_is_no_commit_to_run(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "echo never")));
	g->commit_conflict = 1;
	assert_run(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_INTERNAL_UNEXPECTED);
	assert_false(run_rig_said(g, "never"));
}

/* ---- time and cancel ---- */

static void
a_run_that_takes_too_long_is_ended(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(
	    g, "version: 1\nrun:\n  timeoutSeconds: 1\n  steps:\n" STEP("one", "sleep 1000"));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_FAILED);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_RUN_TIMEOUT);
	assert_int_equal(g->end.exit_code, 1);
	assert_string_equal(g->message, "Run exceeded its timeout of 1 s.");
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

	run_rig_commit(g, CONFIG(STEP("one", "sleep 1000")));
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
	run_rig_commit(g, CONFIG(STEP("one", "sleep 1000") STEP("two", "echo never")));
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

	run_rig_commit(g, CONFIG(STEP("one", "echo never")));
	g->cancel_at = clock_wall_ms();
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
	assert_int_equal(g->ncommits, 0);
	assert_false(run_rig_said(g, "never"));
}

/* ---- the shard ---- */

static void
a_stale_claim_leaves_nothing(void **state)
{
	struct run_rig *g = *state;
	char path[256];

	g->stale = 1;
	assert_run(g, 0);
	(void)snprintf(path, sizeof(path), "%s/runs/%s", g->data, g->run_id);
	assert_int_equal(access(path, F_OK), -1);
}

static void
claims_are_tried_five_times(void **state)
{
	struct run_rig *g = *state;

	g->fail_claims = 100;
	assert_run(g, 75);
	assert_int_equal(g->nclaims, 5);
}

static void
a_settlement_is_repeated_until_it_is_answered(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
	g->fail_finals = 2;
	assert_run(g, 0);
	assert_int_equal(g->nfinals, 3);
}

static void
a_conflict_at_settlement_is_left_to_the_takeover(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
	g->conflict = 1;
	assert_run(g, 4);
}

static void
a_lost_lease_ends_everything_at_once(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct record_run run;

	g->heartbeat_ms = 50;
	run_rig_commit(g, CONFIG(STEP("one", "trap '' TERM; sleep 1000")));
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

	run_rig_commit(g, CONFIG(STEP("one", "exit 7")));
	g->conflict = 1;
	assert_run(g, 4);
	g->conflict = 0;
	g->epoch = 2;
	assert_run(g, 0);
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
	    CONFIG(STEP("one", "mkdir -p a/b && touch a/b/c && chmod 0 a/b && touch $HOME/x")));
	assert_run(g, 0);
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

	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
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
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
in_bwrap_the_same_run_passes(void **state)
{
	struct run_rig *g = *state;

	if (!run_rig_has_bwrap())
		skip();
	g->sandbox = "bwrap";
	run_rig_commit(
	    g, CONFIG(STEP("one", "pwd; cat sub/file") STEP("two", "git log -1 --format=%s")));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "/workspace\ntext\n"));
}

static void
a_killed_run_takes_its_steps_with_it_and_can_be_concluded(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, CONFIG(STEP("one", "echo here; sleep 1000")));
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

/* ---- secrets ---- */

static void
the_token_shows_nowhere(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 1);
	run_rig_commit(g,
	    CONFIG(STEP("one", "printf 'a s3cret-tok'; sleep 0.2; echo 'en-of-the-test b'")
		    STEP("s3cret-token-of-the-test", "exit 9")));
	assert_run(g, 0);
	assert_true(run_rig_said(g, "a [REDACTED] b\n"));
	assert_false(run_rig_said(g, "s3cret"));
	assert_string_equal(g->message, "Step \"[REDACTED]\" failed with exit code 9.");
}

static void
a_run_without_the_key_is_given_back_once(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 2);
	run_rig_commit(g, CONFIG(STEP("one", "echo never")));
	assert_run(g, 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->release_reason, RELEASE_REASON_KEY_VERSION);
	assert_int_equal(g->nfinals, 0);
	g->epoch = 2;
	assert_run(g, 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_INTERNAL_UNEXPECTED);
	assert_non_null(strstr(g->message, "key version 1"));
}

static void
a_seal_of_another_project_does_not_open(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 1);
	g->sealed_text[0] = g->sealed_text[0] == 'A' ? 'B' : 'A';
	run_rig_commit(g, CONFIG(STEP("one", "echo never")));
	assert_run(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_INTERNAL_UNEXPECTED);
	assert_int_equal(g->ncommits, 0);
}

/* ---- afterwards, and side by side ---- */

static void
an_ended_run_is_served(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct run_get_detail_detail d = { 0 };

	run_rig_commit(g, CONFIG(STEP("one", "echo kept")));
	assert_run(g, 0);
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

static void
a_shard_that_was_away_hears_of_the_end(void **state)
{
	struct run_rig *g = *state;
	CLEANUP_FREE char *events = NULL;

	g->heartbeat_ms = 50;
	run_rig_commit(g, CONFIG(STEP("one", "sleep 0.5")));
	run_rig_start(g);
	run_rig_until(g, runs);
	run_rig_restart_shard(g);
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
	run_rig_commit(g, CONFIG(STEP("one", "\"true\"")));
	assert_run(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_CANCELED);
}

static void
a_run_has_one_process(void **state)
{
	struct run_rig *g = *state;
	pid_t first;

	run_rig_commit(g, CONFIG(STEP("one", "sleep 1000")));
	run_rig_start(g);
	run_rig_until(g, runs);
	first = g->pid;
	assert_run(g, 75);
	assert_int_equal(g->nclaims, 1);
	g->pid = first;
}

/* One test alone, by its name or a pattern. */
int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_run_whose_steps_pass_is_passed, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_failing_step_ends_the_run_with_its_code, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_step_that_a_signal_ends_says_which, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_without_steps_is_passed, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    steps_see_their_environment_and_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_a_step_leaves_running_is_killed_and_named, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_pipe_that_a_leftover_holds_does_not_hold_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    output_of_any_bytes_becomes_text, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    both_streams_come_through_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_gone_working_directory_fails_the_step, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_config_is_not_found, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_that_is_no_yaml_says_where, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_with_a_wrong_value_says_which, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_that_is_too_big_is_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_working_directory_that_is_a_file_is_invalid, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_missing_branch_fails_the_checkout, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_pinned_commit_that_is_gone_is_unreachable, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    another_commit_in_the_ledger_is_no_commit_to_run, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_that_takes_too_long_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_pushed_cancel_needs_the_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_ends_the_step_and_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_before_the_start_runs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stale_claim_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(claims_are_tried_five_times, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_settlement_is_repeated_until_it_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_conflict_at_settlement_is_left_to_the_takeover, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_lost_lease_ends_everything_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_second_claim_of_an_ended_run_settles_what_is_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    files_of_the_run_are_gone_afterwards, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_before_its_first_step_can_be_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(in_bwrap_the_same_run_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_killed_run_takes_its_steps_with_it_and_can_be_concluded, setup, teardown),
		cmocka_unit_test_setup_teardown(the_token_shows_nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_without_the_key_is_given_back_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_seal_of_another_project_does_not_open, setup, teardown),
		cmocka_unit_test_setup_teardown(an_ended_run_is_served, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_shard_that_was_away_hears_of_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_cancel_wins_until_the_end_is_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_has_one_process, setup, teardown),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
