/* What a run leaves is removed, with each call of the kernel failing in turn. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"
#include "test/support/io_fault.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

static void
make_tree(const char *dir)
{
	static const char *const folders[] = { "t", "t/a", "t/a/b", "t/c" };
	static const char *const files[] = { "t/one", "t/a/two", "t/a/b/three" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		CLEANUP_FREE char *path = mem_format("%s/%s", dir, folders[i]);

		(void)mkdir(path, 0700);
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP_FREE char *path = mem_format("%s/%s", dir, files[i]);

		assert_int_equal(io_write_file(AT_FDCWD, path, "x", 1, 0600), 0);
	}
}

static int
remove_it(void *arg)
{
	CLEANUP_FREE char *path = mem_format("%s/t", (char *)arg);

	return sandbox_remove_tree(AT_FDCWD, path);
}

static void
is_gone_after_all(void *arg, int r)
{
	CLEANUP_FREE char *path = mem_format("%s/t", (char *)arg);

	if (r == 0)
		assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(remove_it(arg), 0);
	assert_int_equal(access(path, F_OK), -1);
	make_tree(arg);
}

static void
a_tree_is_gone_or_it_is_said_and_the_next_try_removes_it(void **state)
{
	char *dir = scratch_new();
	int fds = scratch_open_fds();

	(void)state;
	make_tree(dir);
	assert_true(io_starve(remove_it, dir, 1, is_gone_after_all) >= 4);
	assert_int_equal(scratch_open_fds(), fds);
	scratch_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_gone_or_it_is_said_and_the_next_try_removes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
