/* A copy of a store in use: whole, marked and checked, or not there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

struct place {
	char *dir;
	char *from;
	char *to;
	char *part;
	char *out_dir;
};

static int
setup(void **state)
{
	struct place *p = mem_calloc(1, sizeof(*p));

	assert_non_null(p);
	p->dir = scratch_new();
	p->from = tiny_path(p->dir, "tiny.db");
	p->out_dir = tiny_path(p->dir, "out");
	assert_int_equal(mkdir(p->out_dir, 0700), 0);
	p->to = tiny_path(p->out_dir, "tiny.db");
	p->part = tiny_path(p->out_dir, "tiny.db.part");
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	store_fault_arm(STORE_FAULT_NONE, 0);
	scratch_free(p->dir);
	free(p->from);
	free(p->to);
	free(p->part);
	free(p->out_dir);
	free(p);
	return 0;
}

static int
is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static int
copy(const struct place *p, store_go_on_fn *go_on, void *arg)
{
	CLEANUP_FREE char *why = NULL;
	struct store_copied done = { 0 };
	const struct store_copy_ops ops = { .go_on = go_on };
	int r = store_copy(&tiny_store, p->from, p->to, &ops, arg, &done, &why);

	mem_fault_arm(-1); /* what follows needs memory */
	assert_int_equal(done.version, r == 0 ? 2 : 0);
	if (r == 0)
		assert_int_equal(done.bytes, tiny_file_size(p->out_dir, "tiny.db"));
	else if (r != E_NOMEM)
		assert_non_null(why);
	return r;
}

/* One file and nothing beside it. */
static void
nothing_is_beside(const struct place *p)
{
	static const char *const names[] = { "tiny.db.part", "tiny.db.part-wal",
		"tiny.db.part-shm", "tiny.db.part-journal", "tiny.db-wal", "tiny.db-shm" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP_FREE char *path = tiny_path(p->out_dir, names[i]);

		assert_false(is_there(path));
	}
}

static int64_t
rows_of_the_copy(const struct place *p)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->out_dir);
	int restored = -1;

	assert_int_equal(store_is_restored(s, &restored), 0);
	assert_int_equal(restored, 1);
	return tiny_count(s);
}

static void
fill(struct store *s, int64_t first, int64_t n)
{
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(tiny_fill(s, first, n, 500), 0);
	assert_int_equal(store_commit(s), 0);
}

static void
a_copy_holds_what_is_only_in_the_log_of_a_store_in_use(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	int restored = -1;
	struct stat st;

	fill(s, 1, 1000);
	assert_true(tiny_file_size(p->dir, "tiny.db-wal") > 400 * 1000);
	assert_int_equal(copy(p, NULL, NULL), 0);
	nothing_is_beside(p);
	assert_int_equal(stat(p->to, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(rows_of_the_copy(p), 1000);
	/* The source is as it was, and has no mark. */
	assert_int_equal(store_is_restored(s, &restored), 0);
	assert_int_equal(restored, 0);
	fill(s, 2000, 1);
}

struct writing {
	struct store *s;
	int64_t next;
	int nasked;
};

static int
write_on(void *arg)
{
	struct writing *w = arg;

	w->nasked++;
	if (w->next < 10000)
		fill(w->s, w->next, 10);
	w->next += 10;
	return 0;
}

static void
the_copy_is_of_one_moment_while_its_source_is_written_between_every_two_steps(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	struct checkpointer *c = NULL;
	struct writing w = { .s = s, .next = 6001 };
	int64_t n;

	assert_int_equal(checkpointer_start(s, 1, &c), 0);
	fill(s, 1, 6000);
	checkpointer_poke(c);
	assert_int_equal(copy(p, write_on, &w), 0);
	c = checkpointer_stop(c);
	assert_true(w.nasked > 3); /* it was more than one step */
	n = rows_of_the_copy(p);
	/* What was there when it began, and nothing of what came after the first read. */
	assert_int_equal(n, 6000);
	assert_true(tiny_count(s) > 6000);
}

static int
stop_after(void *arg)
{
	int *left = arg;

	return (*left)-- > 0 ? 0 : E_CANCELED;
}

static void
a_copy_is_stopped_between_any_two_steps_and_leaves_nothing(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	int r = E_CANCELED, n;

	fill(s, 1, 3000);
	for (n = 0; r == E_CANCELED; n++) {
		int left = n;

		r = copy(p, stop_after, &left);
		assert_true(r == 0 || r == E_CANCELED);
		assert_int_equal(is_there(p->to), r == 0);
		nothing_is_beside(p);
	}
	assert_true(n > 3);
	assert_int_equal(rows_of_the_copy(p), 3000);
}

static void
a_file_that_is_there_is_never_touched(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);

	fill(s, 1, 1);
	assert_int_equal(io_write_file(AT_FDCWD, p->to, "mine", 4, 0600), 0);
	assert_int_equal(copy(p, NULL, NULL), E_EXISTS);
	assert_int_equal(tiny_file_size(p->out_dir, "tiny.db"), 4);
	nothing_is_beside(p);
}

static void
two_copies_to_one_name_are_not_made_at_once(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	CLEANUP(io_closep) int fd = -1;

	fill(s, 1, 1);
	assert_int_equal(io_lock_file(AT_FDCWD, p->part, &fd), 0);
	assert_int_equal(copy(p, NULL, NULL), E_LOCKED);
	assert_true(is_there(p->part)); /* it is the other's */
	io_close(&fd);
	/* One that was left by a crash is taken over, with what lies beside it. */
	{
		CLEANUP_FREE char *journal = tiny_path(p->out_dir, "tiny.db.part-journal");

		assert_int_equal(io_write_file(AT_FDCWD, p->part, "half", 4, 0600), 0);
		assert_int_equal(io_write_file(AT_FDCWD, journal, "half", 4, 0600), 0);
	}
	assert_int_equal(copy(p, NULL, NULL), 0);
	nothing_is_beside(p);
	assert_int_equal(rows_of_the_copy(p), 1);
}

static void
what_cannot_be_copied_says_why(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *nowhere = tiny_path(p->dir, "absent/tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store_copied done;
	int r;

	{
		CLEANUP(store_closep) struct store *s = tiny_open(&tiny_new_store, p->dir);

		fill(s, 1, 1);
	}
	assert_int_equal(copy(p, NULL, NULL), E_NEWER);
	r = store_copy(&tiny_new_store, p->from, nowhere, NULL, NULL, &done, &why);
	assert_int_equal(r, E_NOENT);
	assert_non_null(why);
	assert_int_equal(unlink(p->from), 0);
	assert_int_equal(copy(p, NULL, NULL), E_STORAGE);
	assert_false(is_there(p->from));
	nothing_is_beside(p);
}

static void
a_damaged_page_is_found_in_the_copy(void **state)
{
	const struct place *p = *state;
	CLEANUP(io_closep) int fd = -1;
	char junk[512];

	{
		CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);

		fill(s, 1, 1000);
	}
	memset(junk, 0x5a, sizeof(junk));
	fd = open(p->from, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, junk, sizeof(junk), (off_t)40 * 4096), sizeof(junk));
	assert_int_equal(copy(p, NULL, NULL), E_CORRUPT);
	assert_false(is_there(p->to));
	nothing_is_beside(p);
}

static void
the_mark_stays_until_it_is_cleared_and_goes_with_a_transaction(void **state)
{
	const struct place *p = *state;
	struct store *s = tiny_open(&tiny_normal_store, p->dir);
	int restored = -1;

	fill(s, 1, 10);
	assert_int_equal(copy(p, NULL, NULL), 0);
	s = store_close(s);
	s = tiny_open(&tiny_normal_store, p->out_dir);
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(store_clear_restored(s), 0);
	store_rollback(s);
	assert_int_equal(store_is_restored(s, &restored), 0);
	assert_int_equal(restored, 1);
	assert_int_equal(store_clear_restored(s), 0);
	assert_int_equal(tiny_number(s, TINY_SYNCHRONOUS), 1); /* as the store has it */
	{
		CLEANUP_FREE char *killed = tiny_path(p->dir, "killed");
		CLEANUP(store_closep) struct store *again = NULL;

		assert_int_equal(mkdir(killed, 0700), 0);
		tiny_copy(p->out_dir, killed);
		again = tiny_open(&tiny_store, killed);
		assert_int_equal(store_is_restored(again, &restored), 0);
		assert_int_equal(restored, 0);
		assert_int_equal(tiny_count(again), 10);
	}
	s = store_close(s);
}

static void
a_copy_without_memory_is_not_there(void **state)
{
	struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	int r = E_NOMEM;
	long n;

	fill(s, 1, 100);
	for (n = 0; r == E_NOMEM; n++) {
		mem_fault_arm(n);
		r = copy(p, NULL, NULL);
		assert_true(r == 0 || r == E_NOMEM);
		assert_int_equal(is_there(p->to), r == 0);
		nothing_is_beside(p);
	}
	assert_true(n > 3);
	assert_int_equal(rows_of_the_copy(p), 100);
}

#ifdef ANVIL_FAULTS

static void
no_fault_of_the_disk_leaves_a_copy_that_is_not_whole(void **state)
{
	static const enum store_fault faults[] = { STORE_FAULT_FULL, STORE_FAULT_IO,
		STORE_FAULT_SYNC };
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);

	fill(s, 1, 200);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		int r = -1;
		long n;

		for (n = 0; r < 0; n++) {
			store_fault_arm(faults[i], n);
			r = copy(p, NULL, NULL);
			if (r < 0)
				assert_true(r == E_FULL || r == E_STORAGE);
			else
				assert_int_equal(store_fault_count(), 0);
			store_fault_arm(STORE_FAULT_NONE, 0);
			assert_int_equal(is_there(p->to), r == 0);
			nothing_is_beside(p);
		}
		assert_true(n > 1);
		assert_int_equal(rows_of_the_copy(p), 200);
		assert_int_equal(unlink(p->to), 0);
	}
	fill(s, 1000, 1); /* the source goes on */
}

static void
a_copier_that_is_killed_leaves_no_copy_and_the_next_one_makes_it(void **state)
{
	static const char *const points[] = { "copy_pages_written", "copy_synced" };
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	const char *order = getenv("ANVIL_CRASH_FILE");

	fill(s, 1, 100);
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		int status = 0;
		pid_t pid;

		assert_int_equal(
		    io_write_file(AT_FDCWD, order, points[i], strlen(points[i]), 0600), 0);
		pid = fork();
		if (pid == 0) {
			CLEANUP_FREE char *why = NULL;
			struct store_copied done;

			(void)store_copy(&tiny_store, p->from, p->to, NULL, NULL, &done, &why);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_false(is_there(p->to));
		assert_true(is_there(p->part));
		assert_int_equal(copy(p, NULL, NULL), 0);
		nothing_is_beside(p);
		assert_int_equal(rows_of_the_copy(p), 100);
		assert_int_equal(unlink(p->to), 0);
	}
}

#endif

/* A process reads the variable once, at the first point that it comes to. */
static int
set_up_orders(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *order = tiny_path(dir, "order");

	*state = dir;
	return setenv("ANVIL_CRASH_FILE", order, 1);
}

static int
remove_orders(void **state)
{
	scratch_free(*state);
	return 0;
}

int
main(void)
{
#define IN_A_PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		IN_A_PLACE(a_copy_holds_what_is_only_in_the_log_of_a_store_in_use),
		IN_A_PLACE(
		    the_copy_is_of_one_moment_while_its_source_is_written_between_every_two_steps),
		IN_A_PLACE(a_copy_is_stopped_between_any_two_steps_and_leaves_nothing),
		IN_A_PLACE(a_file_that_is_there_is_never_touched),
		IN_A_PLACE(two_copies_to_one_name_are_not_made_at_once),
		IN_A_PLACE(what_cannot_be_copied_says_why),
		IN_A_PLACE(a_damaged_page_is_found_in_the_copy),
		IN_A_PLACE(the_mark_stays_until_it_is_cleared_and_goes_with_a_transaction),
		IN_A_PLACE(a_copy_without_memory_is_not_there),
#ifdef ANVIL_FAULTS
		IN_A_PLACE(no_fault_of_the_disk_leaves_a_copy_that_is_not_whole),
		IN_A_PLACE(a_copier_that_is_killed_leaves_no_copy_and_the_next_one_makes_it),
#endif
	};

	return cmocka_run_group_tests(tests, set_up_orders, remove_orders);
}
