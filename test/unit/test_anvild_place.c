/* cmd/anvild/place.c: folders, the lock, whom to become. */
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/place.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

static struct place_user
me(void)
{
	return (struct place_user) { .uid = geteuid(), .gid = getegid(), .name = "me" };
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	return st.st_mode & 07777;
}

static void
folders_are_made_for_nobody_else_to_enter(void **state)
{
	static const char *const parts[] = { "", "/runs", "/cache", "/crash" };
	char *dir = scratch_new();
	CLEANUP_FREE char *data = mem_format("%s/a/b/data", dir);
	CLEANUP_FREE char *run = mem_format("%s/run", dir);
	CLEANUP_FREE char *above = mem_format("%s/a", dir);
	struct place_user u = me();
	char why[PLACE_WHY_SIZE];
	mode_t before = umask(022);

	(void)state;
	assert_int_equal(place_make_dirs(data, run, &u, why), 0);
	(void)umask(before);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		CLEANUP_FREE char *path = mem_format("%s%s", data, parts[i]);

		assert_int_equal(mode_of(path), 0700);
	}
	assert_int_equal(mode_of(run), 0700);
	/* Whoever the data is given to has to get there. */
	assert_int_equal(mode_of(above), 0755);
	/* Once more: all is there. */
	assert_int_equal(place_make_dirs(data, run, &u, why), 0);
	scratch_free(dir);
}

static void
a_folder_that_others_may_enter_is_refused_with_the_remedy(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *data = mem_format("%s/data", dir);
	CLEANUP_FREE char *want = mem_format("chmod 0700 %s", data);
	struct place_user u = me();
	char why[PLACE_WHY_SIZE];

	(void)state;
	assert_int_equal(mkdir(data, 0700), 0);
	assert_int_equal(chmod(data, 0710), 0);
	assert_int_equal(place_make_dirs(data, dir, &u, why), E_DENIED);
	assert_non_null(strstr(why, want));
	assert_non_null(strstr(why, "0710"));
	scratch_free(dir);
}

static void
a_folder_of_somebody_else_is_refused_with_the_remedy(void **state)
{
	char *dir = scratch_new();
	struct place_user u = { .uid = geteuid() + 1, .gid = getegid(), .name = "other" };
	char why[PLACE_WHY_SIZE];

	(void)state;
	assert_int_equal(place_make_dirs(dir, dir, &u, why), E_DENIED);
	assert_non_null(strstr(why, "chown other "));
	scratch_free(dir);
}

static void
a_file_where_a_folder_belongs_is_said(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *data = mem_format("%s/data", dir);
	CLEANUP_FREE char *below = mem_format("%s/data/more", dir);
	struct place_user u = me();
	char why[PLACE_WHY_SIZE];

	(void)state;
	assert_int_equal(io_write_file(AT_FDCWD, data, "x", 1, 0600), 0);
	assert_int_equal(place_make_dirs(data, dir, &u, why), E_SYS);
	assert_non_null(strstr(why, data));
	assert_int_equal(place_make_dirs(below, dir, &u, why), E_SYS);
	assert_non_null(strstr(why, below));
	scratch_free(dir);
}

static void
the_lock_has_one_holder_whose_pid_the_other_is_told(void **state)
{
	char *dir = scratch_new();
	struct place_user u = me();
	char why[PLACE_WHY_SIZE], want[64];
	int fd = -1, other = -1, pipe_fds[2], status;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0) {
		int r = place_lock(dir, &u, &fd, why);

		(void)io_write_all(pipe_fds[1], r == 0 ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(place_lock(dir, &u, &other, why), E_LOCKED);
	(void)snprintf(want, sizeof(want), "another supervisor (pid %d) uses ", (int)pid);
	assert_non_null(strstr(why, want));
	assert_non_null(strstr(why, dir));
	/* It goes with its holder, however that ends. */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(place_lock(dir, &u, &other, why), 0);
	io_close(&other);
	io_close(&pipe_fds[0]);
	io_close(&pipe_fds[1]);
	scratch_free(dir);
}

static void
without_its_folder_there_is_no_lock(void **state)
{
	struct place_user u = me();
	char why[PLACE_WHY_SIZE];
	int fd;

	(void)state;
	assert_int_equal(place_lock("/nowhere/at/all", &u, &fd, why), E_SYS);
	assert_non_null(strstr(why, "/nowhere/at/all"));
}

static void
without_a_name_it_is_the_caller_unless_that_is_root(void **state)
{
	struct place_user u;
	char why[PLACE_WHY_SIZE];

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(place_user_find("", &u, why), E_DENIED);
		assert_non_null(strstr(why, "without `user:`"));
	} else {
		assert_int_equal(place_user_find("", &u, why), 0);
		assert_int_equal(u.uid, geteuid());
		assert_int_equal(place_user_find(NULL, &u, why), 0);
		assert_int_equal(place_user_become(&u, why), 0);
	}
}

static void
an_account_that_is_not_there_is_said_with_how_to_make_it(void **state)
{
	struct place_user u;
	char why[PLACE_WHY_SIZE];

	(void)state;
	assert_int_equal(place_user_find("no-such-account", &u, why), E_NOENT);
	assert_non_null(strstr(why, "adduser --system --group no-such-account"));
}

static void
nobody_becomes_root(void **state)
{
	struct place_user u;
	char why[PLACE_WHY_SIZE];

	(void)state;
	assert_int_equal(place_user_find("root", &u, why), E_DENIED);
	assert_non_null(strstr(why, "does not run builds as root"));
}

static void
only_root_becomes_somebody_else(void **state)
{
	struct place_user u;
	char why[PLACE_WHY_SIZE];

	(void)state;
	if (geteuid() == 0 || getpwnam("nobody") == NULL ||
	    getpwnam("nobody")->pw_uid == geteuid())
		skip();
	assert_int_equal(place_user_find("nobody", &u, why), E_DENIED);
}

static void
root_becomes_the_user_for_good(void **state)
{
	struct place_user u;
	char why[PLACE_WHY_SIZE];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0 || place_user_find("nobody", &u, why) < 0)
		skip();
	pid = fork();
	if (pid == 0) {
		uid_t r, e, s;

		if (place_user_become(&u, why) < 0 || getresuid(&r, &e, &s) < 0)
			_exit(1);
		_exit(r == u.uid && e == u.uid && s == u.uid && getegid() == u.gid &&
			    seteuid(0) < 0
			? 0
			: 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_are_made_for_nobody_else_to_enter),
		cmocka_unit_test(a_folder_that_others_may_enter_is_refused_with_the_remedy),
		cmocka_unit_test(a_folder_of_somebody_else_is_refused_with_the_remedy),
		cmocka_unit_test(a_file_where_a_folder_belongs_is_said),
		cmocka_unit_test(the_lock_has_one_holder_whose_pid_the_other_is_told),
		cmocka_unit_test(without_its_folder_there_is_no_lock),
		cmocka_unit_test(without_a_name_it_is_the_caller_unless_that_is_root),
		cmocka_unit_test(an_account_that_is_not_there_is_said_with_how_to_make_it),
		cmocka_unit_test(nobody_becomes_root),
		cmocka_unit_test(only_root_becomes_somebody_else),
		cmocka_unit_test(root_becomes_the_user_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
