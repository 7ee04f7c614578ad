/*
 * test/unit/test_anvil-run_stepenv.c -- what a step is given, and how its end reads.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-run/stepenv.h"
#include "lib/base/err.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const struct record_claim claim = { .run_id = "run_1",
	.project_id = "prj_1",
	.owner_slug = "ada",
	.project_slug = "engine",
	.trigger_type = TRIGGER_TYPE_WEBHOOK,
	.branch = "feature/x y" };
static const struct stepenv step = { .claim = &claim,
	.commit_sha = "abc",
	.name = "say \"hi\"",
	.position = 2,
	.home = "/home/anvil",
	.tmp = "/tmp" };

/* ---- environment ---- */

static void
the_environment_is_the_contract_and_no_more(void **state)
{
	static const char *const expected[] = { "CI=true", "ANVIL=true", "ANVIL_RUN_ID=run_1",
		"ANVIL_PROJECT_ID=prj_1", "ANVIL_PROJECT=ada/engine",
		"ANVIL_BRANCH=feature/x y", "ANVIL_COMMIT_SHA=abc", "ANVIL_TRIGGER=webhook",
		"ANVIL_STEP_NAME=say \"hi\"", "ANVIL_STEP_POSITION=2", "HOME=/home/anvil",
		"USER=anvil",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8", "TMPDIR=/tmp" };
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *env[STEPENV_MAX];

	(void)state;
	assert_int_equal(stepenv_make(a, &step, env), 0);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(env[i], expected[i]);
	assert_null(env[ARRAY_LEN(expected)]);
}

static int
make_env(void *arg)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *env[STEPENV_MAX];

	(void)arg;
	return a == NULL ? E_NOMEM : stepenv_make(a, &step, env);
}

static void
an_environment_without_memory_is_none(void **state)
{
	(void)state;
	assert_true(starve(make_env, NULL) > 0);
}

/* ---- ends ---- */

static struct step_end last; /* Of judge(). */

static int
forget_last(void **state)
{
	(void)state;
	step_end_done(&last);
	return 0;
}

static struct step_end
judge(enum sandbox_end end, int code, int oom)
{
	struct sandbox_result res = { .end = end, .code = code, .oom = oom };

	(void)snprintf(res.problem.reason, sizeof(res.problem.reason), "no room");
	(void)snprintf(res.problem.remedy, sizeof(res.problem.remedy), "Make some.");
	step_end_done(&last);
	step_end_judge(&res, "test", "sub/dir", 4096, &last);
	return last;
}

static void
status_0_passes_and_any_other_fails(void **state)
{
	struct step_end e = judge(SANDBOX_EXITED, 0, 0);

	(void)state;
	assert_true(e.passed);
	assert_int_equal(e.exit.code.v, 0);
	assert_null(e.message);
	e = judge(SANDBOX_EXITED, 255, 0);
	assert_false(e.passed);
	assert_int_equal(e.exit.code.v, 255);
	assert_int_equal(e.exit.signal, 0);
	assert_string_equal(e.message, "Step \"test\" failed with exit code 255.");
}

static void
a_signal_is_named_and_counts_from_128(void **state)
{
	struct step_end e = judge(SANDBOX_SIGNALED, SIGTERM, 0);

	(void)state;
	assert_int_equal(e.exit.code.v, 143);
	assert_int_equal(e.exit.signal, SIGTERM);
	assert_string_equal(
	    e.message, "Step \"test\" failed with exit code 143 (signal 15, SIGTERM).");
	e = judge(SANDBOX_SIGNALED, SIGRTMIN + 1, 0);
	assert_non_null(strstr(e.message, "unknown)."));
}

static void
a_step_that_could_not_start_says_why(void **state)
{
	struct step_end e = judge(SANDBOX_NO_DIRECTORY, 0, 0);

	(void)state;
	assert_int_equal(e.code, FAILURE_CODE_STEP_FAILED);
	assert_int_equal(e.exit.code.v, 1);
	assert_string_equal(
	    e.message, "Step \"test\" could not start: working directory sub/dir is gone.");
	e = judge(SANDBOX_BROKEN, 0, 0);
	assert_int_equal(e.code, FAILURE_CODE_SANDBOX_FAILED);
	assert_string_equal(e.message, "Sandbox could not start: no room. Make some.");
}

static void
memory_counts_only_for_a_step_that_failed(void **state)
{
	struct step_end e = judge(SANDBOX_SIGNALED, SIGKILL, 1);

	(void)state;
	assert_int_equal(e.code, FAILURE_CODE_OUT_OF_MEMORY);
	assert_int_equal(e.exit.code.v, 137);
	assert_string_equal(e.message, "Step \"test\" ran out of memory (limit 4096).");
	assert_true(judge(SANDBOX_EXITED, 0, 1).passed);
}

/* A part of a secret that is left at a cut could not be told from other text. */
static void
a_long_directory_is_told_whole(void **state)
{
	struct sandbox_result res = { .end = SANDBOX_NO_DIRECTORY };
	char dir[8192];

	(void)state;
	memset(dir, 'd', sizeof(dir) - 1);
	dir[sizeof(dir) - 1] = '\0';
	step_end_done(&last);
	step_end_judge(&res, "test", dir, 0, &last);
	assert_non_null(strstr(last.message, dir));
	assert_non_null(strstr(last.message, "d is gone."));
}

/* ---- leftovers ---- */

static void
leftovers_are_counted_and_ten_are_named(void **state)
{
	struct sandbox_result res = { .nleft = 2,
		.left = { { 413, "node" }, { 420, "sleep" } } };
	char line[1024];

	(void)state;
	step_left_line(&res, "test", line, sizeof(line));
	assert_string_equal(
	    line, "Killed 2 processes left by step \"test\": node (413), sleep (420)");
	res.nleft = 1;
	step_left_line(&res, "test", line, sizeof(line));
	assert_string_equal(line, "Killed 1 process left by step \"test\": node (413)");
	res.left[0] = (struct sandbox_left) { 413, "a\n\033[31m\tb\177\303\266" };
	step_left_line(&res, "test", line, sizeof(line));
	assert_string_equal(
	    line, "Killed 1 process left by step \"test\": a??[31m?b?\303\266 (413)");
	res.nleft = 4000;
	for (size_t i = 0; i < SANDBOX_LEFT_MAX; i++)
		res.left[i] = (struct sandbox_left) { 7, "x" };
	step_left_line(&res, "test", line, sizeof(line));
	assert_string_equal(line,
	    "Killed 4000 processes left by step \"test\": x (7), x (7), x (7), x (7), x (7), "
	    "x (7), x (7), x (7), x (7), x (7)");
	step_left_line(&res, "test", line, 40);
	assert_int_equal(strlen(line), 39);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_is_the_contract_and_no_more),
		cmocka_unit_test(an_environment_without_memory_is_none),
		cmocka_unit_test_teardown(status_0_passes_and_any_other_fails, forget_last),
		cmocka_unit_test_teardown(a_signal_is_named_and_counts_from_128, forget_last),
		cmocka_unit_test_teardown(a_step_that_could_not_start_says_why, forget_last),
		cmocka_unit_test_teardown(
		    memory_counts_only_for_a_step_that_failed, forget_last),
		cmocka_unit_test_teardown(a_long_directory_is_told_whole, forget_last),
		cmocka_unit_test(leftovers_are_counted_and_ten_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
