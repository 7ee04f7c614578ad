/*
 * Removing trees whose shape somebody else has chosen.  As root once more as nobody, whom
 * permissions stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/sandbox/sandbox.h"

#define NOBODY 65534

struct place {
	char base[64];
	int fd;
};

static int
make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	must(p != NULL);
	(void)snprintf(p->base, sizeof(p->base), "/tmp/anvil-remove-XXXXXX");
	must(mkdtemp(p->base) != NULL);
	p->fd = open(p->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(p->fd >= 0 && mkdirat(p->fd, "t", 0755) == 0);
	*state = p;
	return 0;
}

static int
remove_place(void **state)
{
	struct place *p = *state;

	(void)close(p->fd);
	(void)sandbox_remove_tree(AT_FDCWD, p->base);
	free(p);
	return 0;
}

static void
make_file(int at, const char *path)
{
	int fd = openat(at, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void
expect_removed(const struct place *p)
{
	assert_int_equal(sandbox_remove_tree(p->fd, "t"), 0);
	assert_int_equal(faccessat(p->fd, "t", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(errno, ENOENT);
}

static void
nothing_to_remove_is_fine(void **state)
{
	const struct place *p = *state;

	expect_removed(p);
	expect_removed(p);
}

static void
file_and_symlink_are_removed_themselves(void **state)
{
	const struct place *p = *state;

	assert_int_equal(mkdirat(p->fd, "kept", 0755), 0);
	make_file(p->fd, "kept/f");
	assert_int_equal(unlinkat(p->fd, "t", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("kept", p->fd, "t"), 0);
	expect_removed(p);
	assert_int_equal(faccessat(p->fd, "kept/f", F_OK, 0), 0);
	make_file(p->fd, "t");
	expect_removed(p);
}

static void
symlinks_within_are_never_followed(void **state)
{
	const struct place *p = *state;

	assert_int_equal(mkdirat(p->fd, "kept", 0500), 0);
	assert_int_equal(mkdirat(p->fd, "t/d", 0755), 0);
	assert_int_equal(symlinkat("../../kept", p->fd, "t/d/up"), 0);
	assert_int_equal(symlinkat("/", p->fd, "t/root"), 0);
	assert_int_equal(symlinkat(".", p->fd, "t/self"), 0);
	assert_int_equal(symlinkat("nowhere", p->fd, "t/broken"), 0);
	expect_removed(p);
	{
		struct stat st;

		assert_int_equal(fstatat(p->fd, "kept", &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, 0500);
	}
}

static void
directories_without_permission_are_given_it(void **state)
{
	static const mode_t modes[] = { 0555, 0444, 0111, 0000 };
	const struct place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char dir[32], file[40];

		(void)snprintf(dir, sizeof(dir), "t/d%zu", i);
		(void)snprintf(file, sizeof(file), "%s/f", dir);
		assert_int_equal(mkdirat(p->fd, dir, 0755), 0);
		make_file(p->fd, file);
		assert_int_equal(fchmodat(p->fd, dir, modes[i], 0), 0);
	}
	assert_int_equal(fchmodat(p->fd, "t", 0, 0), 0);
	expect_removed(p);
}

static void
special_files_are_removed(void **state)
{
	const struct place *p = *state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifoat(p->fd, "t/fifo", 0600), 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/t/socket", p->base);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	make_file(p->fd, "t/-rf");
	make_file(p->fd, "t/a\nb\xff");
	expect_removed(p);
	(void)close(s);
}

/* Deeper than any path may be long, with few descriptors at hand. */
static void
deep_tree_costs_few_descriptors(void **state)
{
	const struct place *p = *state;
	struct rlimit was, few;
	int at = openat(p->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(at, "deep", 0755), 0);
		make_file(at, "f");
		next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(fchmod(at, i % 7 == 0 ? 0500 : 0700), 0);
		(void)close(at);
		at = next;
		assert_true(at >= 0);
	}
	(void)close(at);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	expect_removed(p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static void
wide_tree_is_removed(void **state)
{
	const struct place *p = *state;

	for (int i = 0; i < 2000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "t/%d", i);
		if (i % 3 == 0)
			assert_int_equal(mkdirat(p->fd, name, 0755), 0);
		else
			make_file(p->fd, name);
	}
	expect_removed(p);
}

static void
names_like_its_own_do_not_confuse_it(void **state)
{
	const struct place *p = *state;
	char path[1024] = "t";

	make_file(p->fd, "t/.anvil-0");
	assert_int_equal(mkdirat(p->fd, "t/.anvil-1", 0755), 0);
	make_file(p->fd, "t/.anvil-1/f");
	for (int i = 0; i < 60; i++) {
		(void)strcat(path, "/d");
		assert_int_equal(mkdirat(p->fd, path, 0755), 0);
	}
	expect_removed(p);
}

static int
run_all(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_place, remove_place)
	const struct CMUnitTest tests[] = {
		TEST(nothing_to_remove_is_fine),
		TEST(file_and_symlink_are_removed_themselves),
		TEST(symlinks_within_are_never_followed),
		TEST(directories_without_permission_are_given_it),
		TEST(special_files_are_removed),
		TEST(deep_tree_costs_few_descriptors),
		TEST(wide_tree_is_removed),
		TEST(names_like_its_own_do_not_confuse_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(void)
{
	int status = 0, failed = 0;
	pid_t pid;

	if (geteuid() == 0) {
		failed = run_all();
		pid = fork();
		if (pid != 0)
			return waitpid(pid, &status, 0) != pid || status != 0 || failed != 0;
		must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
		must(prctl(PR_SET_DUMPABLE, 1) == 0);
	}
	exit(run_all() != 0);
}
