/*
 * test/unit/test_anvil-run_place.c -- the directory of a run: made, locked, cleared.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/anvil-run/place.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

static const char run_id[] = "run_0123456789abcdefghijAB";

struct fix {
	char *dir;
	struct place p;
};

static int
setup(void **state)
{
	struct fix *f = calloc(1, sizeof(*f));

	f->dir = scratch_new();
	assert_int_equal(place_init(&f->p, f->dir, run_id, "prj_x"), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	place_done(&f->p);
	scratch_free(f->dir);
	free(f);
	return 0;
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void
the_directory_is_its_owners_alone(void **state)
{
	struct fix *f = *state;

	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(mode_of(f->p.dir), 0700);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(mode_of(f->p.ws), 0700);
	assert_int_equal(mode_of(f->p.tmp), 0700);
	assert_int_equal(mode_of(f->p.home), 0700);
}

static void
the_lock_says_who_holds_it(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *path = mem_format("%s/lock", f->p.dir);
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char expected[64];

	assert_int_equal(place_lock(&f->p, "spawn"), E_NOENT);
	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_lock(&f->p, "a longer word than the next"), 0);
	io_close(&f->p.lock_fd);
	assert_int_equal(place_lock(&f->p, "spawn"), 0);
	assert_int_equal(io_read_file(AT_FDCWD, path, 100, &b), 0);
	(void)snprintf(expected, sizeof(expected), "%d spawn\n", (int)getpid());
	assert_string_equal(buf_cstr(&b), expected);
}

static void
who_only_looks_waits_for_nobody(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *path = mem_format("%s/lock", f->p.dir);
	CLEANUP(io_closep) int fd = -1, second = -1;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	assert_int_equal(place_lock_ended(f->p.dir, "copy", &fd), E_NOENT);
	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_lock_ended(f->p.dir, "copy", &fd), 0);
	assert_int_equal(io_read_file(AT_FDCWD, path, 256, &text), 0);
	assert_non_null(strstr(buf_cstr(&text), " copy\n"));
	assert_int_equal(place_lock_ended(f->p.dir, "check", &second), E_LOCKED);
	assert_int_equal(second, -1);
}

static void
trees_are_empty_when_a_claim_begins(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *file = mem_format("%s/left", f->p.ws);

	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(io_write_file(AT_FDCWD, file, "x", 1, 0600), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(access(f->p.home, F_OK), 0);
}

static void
trees_go_and_the_rest_stays(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *db = mem_format("%s/run.db", f->p.dir);

	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(io_write_file(AT_FDCWD, db, "x", 1, 0600), 0);
	assert_int_equal(chmod(f->p.ws, 0), 0);
	assert_int_equal(place_remove_trees(&f->p), 0);
	assert_int_equal(access(f->p.ws, F_OK), -1);
	assert_int_equal(access(f->p.tmp, F_OK), -1);
	assert_int_equal(access(db, F_OK), 0);
	assert_int_equal(place_remove(&f->p), 0);
	assert_int_equal(access(f->p.dir, F_OK), -1);
	assert_int_equal(access(f->p.runs, F_OK), 0);
}

static void
put_file(int at, const char *name)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* All that a step may think of, in one of the trees. */
static void
make_hostile(const char *tree, const char *outside)
{
	CLEANUP(io_closep) int at = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(io_closep) int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	assert_int_equal(mkdirat(at, "read\nonly", 0755), 0);
	assert_int_equal(mkdirat(at, "read\nonly/deeper", 0755), 0);
	put_file(at, "read\nonly/deeper/\xff\n.txt");
	put_file(at, "-rf *");
	put_file(at, " ");
	assert_int_equal(symlinkat(outside, at, "read\nonly/out"), 0);
	assert_int_equal(symlinkat("../../../..", at, "up"), 0);
	assert_int_equal(mkfifoat(at, "fifo", 0), 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/socket", at);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(fchmodat(at, "read\nonly/deeper", 0, 0), 0);
	assert_int_equal(fchmodat(at, "read\nonly", 0555, 0), 0);
	for (int i = 0; i < 400; i++) {
		int next;

		assert_int_equal(mkdirat(at, "a directory with a long name", 0700), 0);
		next = openat(at, "a directory with a long name", O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)fchmod(at, 0500);
		(void)close(at);
		at = next;
	}
}

static void
what_a_step_leaves_goes_and_what_it_points_at_stays(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *outside = mem_format("%s/outside", f->dir);
	CLEANUP_FREE char *kept = mem_format("%s/outside/kept", f->dir);

	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(mkdir(outside, 0755), 0);
	put_file(AT_FDCWD, kept);
	make_hostile(f->p.ws, outside);
	make_hostile(f->p.tmp, outside);
	/* Not the directory any more, but a way to another. */
	assert_int_equal(rmdir(f->p.home), 0);
	assert_int_equal(symlink(outside, f->p.home), 0);
	assert_int_equal(place_remove_trees(&f->p), 0);
	assert_int_equal(faccessat(AT_FDCWD, f->p.ws, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(faccessat(AT_FDCWD, f->p.tmp, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(faccessat(AT_FDCWD, f->p.home, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(mode_of(outside), 0755);
	assert_int_equal(access(kept, F_OK), 0);
}

static void
a_claim_begins_in_trees_of_its_own(void **state)
{
	struct fix *f = *state;
	CLEANUP_FREE char *outside = mem_format("%s/outside", f->dir);
	struct stat st;

	assert_int_equal(place_make(&f->p), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(mkdir(outside, 0755), 0);
	make_hostile(f->p.home, outside);
	assert_int_equal(rmdir(f->p.ws), 0);
	assert_int_equal(symlink(outside, f->p.ws), 0);
	assert_int_equal(place_make_trees(&f->p), 0);
	assert_int_equal(lstat(f->p.ws, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(rmdir(f->p.home), 0); /* It is empty. */
}

static void
a_missing_key_is_remembered_until_a_claim_has_it(void **state)
{
	struct fix *f = *state;

	assert_int_equal(place_make(&f->p), 0);
	assert_false(place_was_keyless(&f->p));
	assert_int_equal(place_note_keyless(&f->p), 0);
	assert_true(place_was_keyless(&f->p));
	place_forget_keyless(&f->p);
	assert_false(place_was_keyless(&f->p));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    the_directory_is_its_owners_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(the_lock_says_who_holds_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    who_only_looks_waits_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    trees_are_empty_when_a_claim_begins, setup, teardown),
		cmocka_unit_test_setup_teardown(trees_go_and_the_rest_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_a_step_leaves_goes_and_what_it_points_at_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_claim_begins_in_trees_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_missing_key_is_remembered_until_a_claim_has_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
