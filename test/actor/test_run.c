/*
 * test/actor/test_run.c -- a real anvil-run from claim to exit, against a shard that the test
 * plays.
 */
#include "test/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/run_rig.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_run_whose_steps_pass_is_passed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
