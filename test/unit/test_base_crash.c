#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "test/support/unit.h"

#ifndef ANVIL_FAULTS

static void
without_faults_a_point_is_nothing(void **state)
{
	(void)state;
	CRASH_POINT("unit_alone");
	CRASH_POINT_OF("project/1", "unit_commit");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
	    without_faults_a_point_is_nothing) };

	return cmocka_run_group_tests_name("base_crash", tests, NULL, NULL);
}

#else

static char home[] = "/tmp/anvil-crash-XXXXXX";
static char order_file[64], hit_file[64], new_file[64];

static int
make_home(void **state)
{
	(void)state;
	if (mkdtemp(home) == NULL)
		return -1;
	(void)snprintf(order_file, sizeof(order_file), "%s/order", home);
	(void)snprintf(hit_file, sizeof(hit_file), "%s/order.hit", home);
	(void)snprintf(new_file, sizeof(new_file), "%s/order.new", home);
	return 0;
}

static int
remove_home(void **state)
{
	(void)state;
	(void)unlink(order_file);
	(void)unlink(hit_file);
	return rmdir(home);
}

static void
order(const char *text)
{
	FILE *f = fopen(new_file, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(new_file, order_file), 0);
	(void)unlink(hit_file);
}

/* Comes to the points of three places ${rounds} times; the exit status tells that it lived. */
static pid_t
start(int rounds)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	for (int i = 0; i < rounds; i++) {
		CRASH_POINT("unit_alone");
		CRASH_POINT_OF("project/1", "unit_commit");
		CRASH_POINT_OF("run", "unit_commit");
	}
	_exit(7);
}

/* 1: killed by SIGKILL, 0: came to its end. */
static int
was_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 7);
	else
		assert_int_equal(WTERMSIG(status), SIGKILL);
	return WIFSIGNALED(status);
}

/* The last line of what the order has become. */
static long
pid_in_hit_file(void)
{
	FILE *f = fopen(hit_file, "r");
	char line[64];
	long pid = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		pid = strtol(line, NULL, 10);
	assert_int_equal(fclose(f), 0);
	return pid;
}

static void
nothing_happens_without_the_variable(void **state)
{
	(void)state;
	order("unit_alone");
	assert_int_equal(unsetenv("ANVIL_CRASH_FILE"), 0);
	assert_false(was_killed(start(1)));
	assert_int_equal(access(order_file, F_OK), 0);
	assert_int_equal(setenv("ANVIL_CRASH_FILE", order_file, 1), 0);
}

static void
the_point_that_is_named_kills_once(void **state)
{
	static const char *const texts[] = { "unit_alone", "unit_alone\n", "unit_alone 0\n",
		"project_unit_commit", "run_unit_commit\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		pid_t pid;

		order(texts[i]);
		pid = start(1);
		assert_true(was_killed(pid));
		assert_int_equal(pid_in_hit_file(), pid);
		assert_int_not_equal(access(order_file, F_OK), 0);
		assert_false(was_killed(start(1)));
	}
}

static void
another_name_kills_nobody(void **state)
{
	static const char *const texts[] = { "unit", "unit_alone_too", "project_unit",
		"project_unit_commits", "unit_commit", "ingress_unit_commit",
		"projectunit_commit", "", " ", "\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		order(texts[i]);
		assert_false(was_killed(start(1)));
		assert_int_equal(access(order_file, F_OK), 0);
	}
}

static void
a_point_is_passed_as_often_as_ordered(void **state)
{
	(void)state;
	order("unit_alone 3");
	assert_false(was_killed(start(3)));
	assert_true(was_killed(start(4)));
}

static void
a_new_order_counts_from_its_own_start(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		order("unit_alone 2");
		CRASH_POINT("unit_alone");
		CRASH_POINT("unit_alone");
		order("unit_alone 2");
		CRASH_POINT("unit_alone");
		CRASH_POINT("unit_alone");
		_exit(7);
	}
	assert_false(was_killed(pid));
	assert_int_equal(access(order_file, F_OK), 0);
}

static void
of_several_processes_one_dies(void **state)
{
	pid_t pids[8];
	int nkilled = 0;

	(void)state;
	order("unit_alone");
	for (size_t i = 0; i < 8; i++)
		pids[i] = start(50);
	for (size_t i = 0; i < 8; i++)
		nkilled += was_killed(pids[i]);
	assert_int_equal(nkilled, 1);
}

int
main(void)
{
	/* The first sets the variable for the others: this process comes to no point itself. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happens_without_the_variable),
		cmocka_unit_test(the_point_that_is_named_kills_once),
		cmocka_unit_test(another_name_kills_nobody),
		cmocka_unit_test(a_point_is_passed_as_often_as_ordered),
		cmocka_unit_test(a_new_order_counts_from_its_own_start),
		cmocka_unit_test(of_several_processes_one_dies),
	};

	return cmocka_run_group_tests_name("base_crash", tests, make_home, remove_home);
}

#endif
