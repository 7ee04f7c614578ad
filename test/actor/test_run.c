/*
 * test/actor/test_run.c -- a real anvil-run from claim to exit, against a shard that the test
 * plays: steps, checkout, config, secrets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "test/support/run_rig.h"
#include "test/support/unit.h"

static void
a_run_whose_steps_pass_is_passed(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(
	    g, RIG_CONFIG(RIG_STEP("one", "cat sub/file") RIG_STEP("two", "\"true\"")));
	run_rig_expect(g, 0);
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

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "exit 3") RIG_STEP("two", "echo never")));
	run_rig_expect(g, 0);
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

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "kill -SEGV $$")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.exit_code, 139);
	assert_string_equal(
	    g->message, "Step \"one\" failed with exit code 139 (signal 11, SIGSEGV).");
}

static void
a_run_without_steps_is_passed(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, "version: 1\nrun:\n  steps: []\n");
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
}

static void
steps_see_their_environment_and_nothing_else(void **state)
{
	struct run_rig *g = *state;
	char line[256];

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("env", "env | sort")));
	(void)setenv("ANVIL_TEST_LEAK", "leaked", 1);
	run_rig_expect(g, 0);
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
	    RIG_CONFIG(RIG_STEP("one",
		"setsid sleep 1000 >/dev/null 2>&1 & echo $! > $HOME/pid; while ! pgrep -x sleep -s $! > /dev/null; do sleep 0.01; done")
		    RIG_STEP("two", "if kill -0 $(cat $HOME/pid); then exit 1; fi")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "Killed 1 process left by step \"one\": sleep ("));
}

static void
a_pipe_that_a_leftover_holds_does_not_hold_the_run(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo seen; sleep 1000 &")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.status, RUN_STATUS_PASSED);
	assert_true(run_rig_said(g, "seen\n"));
}

static void
output_of_any_bytes_becomes_text(void **state)
{
	struct run_rig *g = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	run_rig_commit(g,
	    RIG_CONFIG(RIG_STEP(
		"one", "printf 'a\\0b\\377c\\342\\202'; sleep 0.1; printf '\\254\\n'")));
	run_rig_expect(g, 0);
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
	    RIG_CONFIG(RIG_STEP("one",
		"head -c 3000000 /dev/zero | tr '\\0' o & head -c 3000000 /dev/zero | tr "
		"'\\0' e >&2; wait")));
	run_rig_expect(g, 0);
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
	    "version: 1\nrun:\n  workingDirectory: sub\n  steps:\n" RIG_STEP(
		"one", "rm -rf ../sub") RIG_STEP("two", "echo never"));
	run_rig_expect(g, 0);
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
	run_rig_expect(g, 0);
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

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	(void)snprintf(g->branch, sizeof(g->branch), "nowhere");
	run_rig_expect(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_CHECKOUT_FAILED);
	assert_string_equal(g->message, "Checkout failed: branch \"nowhere\" does not exist");
	assert_int_equal(g->ncommits, 0);
}

static void
a_pinned_commit_that_is_gone_is_unreachable(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "\"true\"")));
	(void)snprintf(
	    g->commit, sizeof(g->commit), "0123456789012345678901234567890123456789");
	run_rig_expect(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_COMMIT_UNREACHABLE);
}

static void
another_commit_in_the_ledger_is_no_commit_to_run(void **state)
{
	struct run_rig *g = *state;

	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	g->commit_conflict = 1;
	run_rig_expect(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_INTERNAL_UNEXPECTED);
	assert_false(run_rig_said(g, "never"));
}

/* ---- secrets ---- */

static void
the_token_shows_nowhere(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 1);
	run_rig_commit(g,
	    RIG_CONFIG(
		RIG_STEP("one", "printf 'a s3cret-tok'; sleep 0.2; echo 'en-of-the-test b'")
		    RIG_STEP("s3cret-token-of-the-test", "exit 9")));
	run_rig_expect(g, 0);
	assert_true(run_rig_said(g, "a [REDACTED] b\n"));
	assert_false(run_rig_said(g, "s3cret"));
	assert_string_equal(g->message, "Step \"[REDACTED]\" failed with exit code 9.");
}

static void
a_run_without_the_key_is_given_back_once(void **state)
{
	struct run_rig *g = *state;

	run_rig_seal(g, "joe:s3cret-token-of-the-test", 2);
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	run_rig_expect(g, 0);
	assert_int_equal(g->nreleases, 1);
	assert_int_equal(g->release_reason, RELEASE_REASON_KEY_VERSION);
	assert_int_equal(g->nfinals, 0);
	g->epoch = 2;
	run_rig_expect(g, 0);
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
	run_rig_commit(g, RIG_CONFIG(RIG_STEP("one", "echo never")));
	run_rig_expect(g, 0);
	assert_int_equal(g->end.failure_code, FAILURE_CODE_INTERNAL_UNEXPECTED);
	assert_non_null(strstr(g->message, "another key under that number"));
	assert_non_null(strstr(g->message, "anvilctl keys status"));
	assert_non_null(strstr(g->message, "(event "));
	assert_int_equal(g->ncommits, 0);
}

/* One test alone, by its name or a pattern. */
int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_run_whose_steps_pass_is_passed, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_failing_step_ends_the_run_with_its_code, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_step_that_a_signal_ends_says_which, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_without_steps_is_passed, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(steps_see_their_environment_and_nothing_else,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(what_a_step_leaves_running_is_killed_and_named,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_pipe_that_a_leftover_holds_does_not_hold_the_run, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    output_of_any_bytes_becomes_text, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    both_streams_come_through_whole, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_gone_working_directory_fails_the_step, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_missing_config_is_not_found, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_that_is_no_yaml_says_where, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_with_a_wrong_value_says_which, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_config_that_is_too_big_is_not_read, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_working_directory_that_is_a_file_is_invalid,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_missing_branch_fails_the_checkout, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(a_pinned_commit_that_is_gone_is_unreachable,
		    run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    another_commit_in_the_ledger_is_no_commit_to_run, run_rig_setup,
		    run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    the_token_shows_nowhere, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_run_without_the_key_is_given_back_once, run_rig_setup, run_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    a_seal_of_another_project_does_not_open, run_rig_setup, run_rig_teardown),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
