#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static int
takes_two(void *arg)
{
	CLEANUP_FREE char *a = mem_strdup("a");
	CLEANUP_FREE char *b = mem_strdup("b");

	(*(int *)arg)++;
	return a != NULL && b != NULL ? 0 : E_NOMEM;
}

static int
does_not_mind(void *arg)
{
	CLEANUP_FREE char *cached = mem_strdup("a");

	if (cached != NULL)
		cached[0] = 'b';
	(*(int *)arg)++;
	return 0;
}

static void
starving_fails_each_allocation_once(void **state)
{
	int calls = 0;

	(void)state;
	assert_int_equal(starve(takes_two, &calls), 2);
	assert_int_equal(calls, 3);
	calls = 0;
	assert_int_equal(starve_lenient(does_not_mind, &calls), 1);
	assert_int_equal(calls, 2);
}

static void
a_scratch_directory_goes_with_all_that_is_in_it(void **state)
{
	char *path = scratch_new();
	CLEANUP_FREE char *again = mem_strdup(path);
	CLEANUP_FREE char *inner = mem_format("%s/a", path);
	CLEANUP_FREE char *deep = mem_format("%s/a/b", path);

	(void)state;
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(mkdir(deep, 0), 0);
	assert_int_equal(chmod(inner, 0500), 0);
	scratch_free(path);
	assert_int_equal(access(again, F_OK), -1);
	scratch_free(NULL);
}

static void
open_descriptors_are_counted(void **state)
{
	int before = scratch_open_fds(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(scratch_open_fds(), before + 1);
	close(fd);
	assert_int_equal(scratch_open_fds(), before);
}

static void
programs_are_found_in_the_build_of_the_test(void **state)
{
	const char *set = getenv("ANVIL_BUILD");
	CLEANUP_FREE char *kept = set != NULL ? mem_strdup(set) : NULL;
	CLEANUP_FREE char *here = NULL;
	CLEANUP_FREE char *there = NULL;

	(void)state;
	unsetenv("ANVIL_BUILD");
	here = scratch_program("test/unit/test_support_helpers");
	assert_int_equal(access(here, X_OK), 0);
	setenv("ANVIL_BUILD", "/elsewhere", 1);
	there = scratch_program("anvild");
	assert_string_equal(there, "/elsewhere/anvild");
	if (kept != NULL)
		setenv("ANVIL_BUILD", kept, 1);
	else
		unsetenv("ANVIL_BUILD");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starving_fails_each_allocation_once),
		cmocka_unit_test(a_scratch_directory_goes_with_all_that_is_in_it),
		cmocka_unit_test(open_descriptors_are_counted),
		cmocka_unit_test(programs_are_found_in_the_build_of_the_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
