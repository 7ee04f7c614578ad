/* Files and folders, with each call of the kernel failing in turn. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/io_fault.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define OLD "what was there before\n"
#define NEW "what is to be there, all of it\n"

static int
setup(void **state)
{
	*state = scratch_new();
	return 0;
}

static int
teardown(void **state)
{
	io_fault_arm(-1, 0);
	scratch_free(*state);
	return 0;
}

static char *
path_of(const char *dir, const char *name)
{
	char *path = mem_format("%s/%s", dir, name);

	assert_non_null(path);
	return path;
}

static int
write_file(void *arg)
{
	CLEANUP_FREE char *path = path_of(arg, "file");

	return io_write_file(AT_FDCWD, path, NEW, strlen(NEW), 0600);
}

/* Old or new, whole, nothing beside it and no descriptor left; 0 means new. */
static void
is_whole(void *arg, int r)
{
	CLEANUP_FREE char *path = path_of(arg, "file");
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	assert_int_equal(io_read_file(AT_FDCWD, path, 1024, &b), 0);
	assert_non_null(buf_cstr(&b));
	if (r == 0 || strcmp((const char *)b.data, OLD) != 0)
		assert_string_equal(b.data, NEW);
	assert_int_equal(io_write_file(AT_FDCWD, path, OLD, strlen(OLD), 0600), 0);
}

static size_t
entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

static void
a_file_is_written_whole_or_not_at_all(void **state)
{
	int fds = scratch_open_fds();

	assert_int_equal(write_file(*state), 0);
	/* Folder, file, write, two syncs, rename. */
	assert_true(io_starve(write_file, *state, 0, is_whole) >= 6);
	assert_int_equal(scratch_open_fds(), fds);
	assert_int_equal(entries(*state), 1);
}

static int
read_file(void *arg)
{
	CLEANUP_FREE char *path = path_of(arg, "file");
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	return io_read_file(AT_FDCWD, path, 1024, &b);
}

static void
a_file_that_cannot_be_read_is_an_error(void **state)
{
	int fds = scratch_open_fds();

	assert_int_equal(write_file(*state), 0);
	assert_true(io_starve(read_file, *state, 0, NULL) >= 3);
	assert_int_equal(scratch_open_fds(), fds);
}

static int
make_folders(void *arg)
{
	CLEANUP_FREE char *path = path_of(arg, "a/b/c");

	return io_mkdirs(path, 0700);
}

static void
remove_folders(void *arg, int r)
{
	static const char *const names[] = { "a/b/c", "a/b", "a" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP_FREE char *path = path_of(arg, names[i]);

		if (rmdir(path) < 0)
			assert_true(r < 0);
	}
}

static void
folders_are_made_and_synced_or_it_is_said(void **state)
{
	assert_true(io_starve(make_folders, *state, 0, remove_folders) >= 9);
}

static int
lock(void *arg)
{
	CLEANUP(io_closep) int fd = -1;
	CLEANUP_FREE char *path = path_of(arg, "lock");

	return io_lock_file(AT_FDCWD, path, &fd);
}

static void
a_lock_that_cannot_be_had_is_not_held(void **state)
{
	int fds = scratch_open_fds();

	assert_true(io_starve(lock, *state, 0, NULL) >= 2);
	assert_int_equal(scratch_open_fds(), fds);
}

static int
look_at_process(void *arg)
{
	uint64_t ticks;
	char id[37];
	int r = io_proc_start_time(getpid(), &ticks);

	(void)arg;
	return r < 0 ? r : io_boot_id(id);
}

static void
a_process_that_cannot_be_looked_at_is_not_gone(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		uint64_t ticks;
		int r;

		io_fault_arm(n, EIO);
		r = io_proc_start_time(getpid(), &ticks);
		if (!io_fault_hit())
			break;
		assert_int_equal(r, E_SYS);
	}
	(void)io_starve(look_at_process, NULL, 0, NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_written_whole_or_not_at_all),
		TEST(a_file_that_cannot_be_read_is_an_error),
		TEST(folders_are_made_and_synced_or_it_is_said),
		TEST(a_lock_that_cannot_be_had_is_not_held),
		TEST(a_process_that_cannot_be_looked_at_is_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
