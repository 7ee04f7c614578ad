#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

static char home[] = "/tmp/anvil-io-XXXXXX";
static int dirfd_home = -1;

static int
make_home(void **state)
{
	(void)state;
	if (mkdtemp(home) == NULL)
		return -1;
	dirfd_home = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_home < 0 ? -1 : 0;
}

static int
remove_home(void **state)
{
	static const char *const files[] = { "f", "lock", "a/b/f" };
	static const char *const dirs[] = { "a/b/c", "a/b", "a" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlinkat(dirfd_home, files[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		(void)unlinkat(dirfd_home, dirs[i], AT_REMOVEDIR);
	io_close(&dirfd_home);
	/* Nothing else was left behind. */
	return rmdir(home);
}

static void
a_file_is_written_whole_and_read_back(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	static char big[200000];
	struct stat st;

	(void)state;
	memset(big, 'b', sizeof(big));
	assert_int_equal(io_write_file(dirfd_home, "f", "one", 3, 0600), 0);
	assert_int_equal(io_read_file(dirfd_home, "f", 3, &out), 0);
	assert_string_equal(buf_cstr(&out), "one");
	assert_int_equal(io_write_file(dirfd_home, "f", big, sizeof(big), 0600), 0);
	buf_reset(&out);
	assert_int_equal(io_read_file(dirfd_home, "f", sizeof(big), &out), 0);
	assert_int_equal(out.len, sizeof(big));
	assert_int_equal(fstatat(dirfd_home, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(io_write_file(dirfd_home, "f", NULL, 0, 0600), 0);
	buf_reset(&out);
	assert_int_equal(io_read_file(dirfd_home, "f", 10, &out), 0);
	assert_int_equal(out.len, 0);
}

static void
a_file_over_the_limit_is_not_read(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(io_write_file(dirfd_home, "f", "four", 4, 0600), 0);
	assert_int_equal(io_read_file(dirfd_home, "f", 3, &out), E_TOO_BIG);
	assert_int_equal(io_read_file(dirfd_home, "none", 3, &out), E_NOENT);
	assert_int_equal(io_read_file(dirfd_home, ".", 3, &out), E_SYS);
}

static void
a_file_that_cannot_be_written_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(io_write_file(dirfd_home, "none/f", "x", 1, 0600), E_NOENT);
	assert_int_equal(mkdirat(dirfd_home, "a", 0700), 0);
	/* A file cannot replace a folder. */
	assert_int_equal(io_write_file(dirfd_home, "a", "x", 1, 0600), E_SYS);
	assert_int_equal(unlinkat(dirfd_home, "a", AT_REMOVEDIR), 0);
}

static void
folders_are_made_with_those_above(void **state)
{
	CLEANUP_FREE char *path = mem_format("%s/a/b/c", home);
	CLEANUP_FREE char *below = mem_format("%s/a/b/f/x", home);
	struct stat st;

	(void)state;
	assert_int_equal(io_mkdirs(path, 0700), 0);
	assert_int_equal(io_mkdirs(path, 0700), 0);
	assert_int_equal(fstatat(dirfd_home, "a/b/c", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(io_mkdirs("", 0700), E_INVAL);
	assert_int_equal(io_write_file(dirfd_home, "a/b/f", "x", 1, 0600), 0);
	assert_int_equal(io_mkdirs(below, 0700), E_SYS);
}

static void
a_link_to_a_folder_is_no_folder(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dirfd_home, "folder", 0700), 0);
	assert_int_equal(symlinkat("folder", dirfd_home, "link"), 0);
	assert_int_equal(io_write_file(dirfd_home, "file", "x", 1, 0600), 0);
	assert_true(io_is_dir(dirfd_home, "folder"));
	assert_false(io_is_dir(dirfd_home, "link"));
	assert_false(io_is_dir(dirfd_home, "file"));
	assert_false(io_is_dir(dirfd_home, "nothing"));
	assert_int_equal(unlinkat(dirfd_home, "file", 0), 0);
	assert_int_equal(unlinkat(dirfd_home, "link", 0), 0);
	assert_int_equal(unlinkat(dirfd_home, "folder", AT_REMOVEDIR), 0);
}

static void
a_lock_is_held_until_its_descriptor_is_closed(void **state)
{
	CLEANUP(io_closep) int first = -1;
	CLEANUP(io_closep) int second = -1;
	struct stat st;

	(void)state;
	assert_int_equal(io_lock_file(dirfd_home, "lock", &first), 0);
	assert_int_equal(io_lock_file(dirfd_home, "lock", &second), E_LOCKED);
	assert_int_equal(second, -1);
	assert_int_equal(fstat(first, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	io_close(&first);
	assert_int_equal(first, -1);
	assert_int_equal(io_lock_file(dirfd_home, "lock", &second), 0);
	assert_int_equal(io_lock_file(dirfd_home, "none/lock", &first), E_NOENT);
}

static void
closing_keeps_errno_and_forgets(void **state)
{
	int fd = dup(dirfd_home);

	(void)state;
	errno = ENOENT;
	io_close(&fd);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fd, -1);
	io_close(&fd);
	assert_int_equal(errno, ENOENT);
}

static void
flags_of_descriptors_can_be_set(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(io_set_nonblocking(fds[0]), 0);
	assert_true((fcntl(fds[0], F_GETFL) & O_NONBLOCK) != 0);
	assert_int_equal(io_set_cloexec(fds[0], 1), 0);
	assert_true((fcntl(fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(io_set_cloexec(fds[0], 0), 0);
	assert_true((fcntl(fds[0], F_GETFD) & FD_CLOEXEC) == 0);
	io_close(&fds[0]);
	io_close(&fds[1]);
	assert_int_equal(io_set_nonblocking(-1), E_SYS);
	assert_int_equal(io_set_cloexec(-1, 1), E_SYS);
}

static void
a_process_is_known_by_start_time_and_signalled_by_pidfd(void **state)
{
	CLEANUP(io_closep) int fd = -1;
	uint64_t mine = 0, ticks = 0;
	struct pollfd p = { .events = POLLIN };
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(io_proc_start_time(getpid(), &mine), 0);
	assert_int_equal(io_proc_start_time(pid, &ticks), 0);
	assert_true(ticks >= mine && mine > 0);
	fd = io_pidfd_open(pid);
	assert_true(fd >= 0);
	assert_int_equal(io_pidfd_signal(fd, SIGKILL), 0);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(io_proc_start_time(pid, &ticks), E_NOENT);
	assert_int_equal(io_pidfd_signal(fd, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void
a_child_is_killed_and_nobody_else(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	assert_int_equal(io_kill_child(pid), 0);
	/* Dead and not waited for, it still has its pid. */
	assert_int_equal(io_kill_child(pid), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(io_kill_child(pid), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(io_kill_child(getpid()), -1);
	assert_int_equal(errno, ECHILD);
}

/* "It cannot be told" must not look like "it is gone". */
static void
a_process_that_cannot_be_looked_at_is_not_gone(void **state)
{
	struct rlimit was, none;
	uint64_t ticks = 77;
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit) { 0, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = io_proc_start_time(getpid(), &ticks);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(r, E_SYS);
	assert_int_equal(ticks, 77);
	assert_int_equal(io_proc_start_time(getpid(), &ticks), 0);
}

static void
the_boot_id_stays_the_same(void **state)
{
	char a[37], b[37];

	(void)state;
	assert_int_equal(io_boot_id(a), 0);
	assert_int_equal(io_boot_id(b), 0);
	assert_int_equal(strlen(a), 36);
	assert_string_equal(a, b);
}

static void
every_failed_allocation_is_told(void **state)
{
	long n;

	(void)state;
	assert_int_equal(io_write_file(dirfd_home, "f", "text", 4, 0600), 0);
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		int r;

		mem_fault_arm(n);
		r = io_read_file(dirfd_home, "f", 100, &out);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_written_whole_and_read_back),
		cmocka_unit_test(a_file_over_the_limit_is_not_read),
		cmocka_unit_test(a_file_that_cannot_be_written_leaves_nothing),
		cmocka_unit_test(folders_are_made_with_those_above),
		cmocka_unit_test(a_link_to_a_folder_is_no_folder),
		cmocka_unit_test(a_lock_is_held_until_its_descriptor_is_closed),
		cmocka_unit_test(closing_keeps_errno_and_forgets),
		cmocka_unit_test(flags_of_descriptors_can_be_set),
		cmocka_unit_test(a_process_is_known_by_start_time_and_signalled_by_pidfd),
		cmocka_unit_test(a_child_is_killed_and_nobody_else),
		cmocka_unit_test(a_process_that_cannot_be_looked_at_is_not_gone),
		cmocka_unit_test(the_boot_id_stays_the_same),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
