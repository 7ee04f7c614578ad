/* A copy that was put into the place of a store by hand, beside the log of that store. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/fault.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/io_fault.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

#define COPIED 100 /* rows of the copy                                        */
#define LATER  7   /* rows that the store has got since, all of them in its log */

struct place {
	char *base;
	char *live; /* folder of the store that was copied, as a kill has left it */
	char *out;  /* folder of the copy */
	char *db, *log, *index, *journal;
};

static void
make_copy(const struct store_desc *d, const char *from_dir, const char *to_dir)
{
	CLEANUP_FREE char *from = tiny_path(from_dir, "tiny.db");
	CLEANUP_FREE char *to = tiny_path(to_dir, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store_copied done;

	assert_int_equal(store_copy(d, from, to, NULL, NULL, &done, &why), 0);
}

static void
make_live(struct place *p, const struct store_desc *d)
{
	CLEANUP_FREE char *used = tiny_path(p->base, "used");
	CLEANUP(store_closep) struct store *s = NULL;

	assert_int_equal(mkdir(used, 0700), 0);
	s = tiny_open(d, used);
	assert_int_equal(tiny_fill(s, 1, COPIED, 300), 0);
	make_copy(d, used, p->out);
	/* The log has rows of the copy as well, and is whole. */
	assert_int_equal(tiny_fill(s, COPIED + 1, LATER, 300), 0);
	tiny_copy(used, p->live);
	assert_true(tiny_file_size(p->live, "tiny.db-wal") > 0);
}

/* The log of the other, beside the copy. */
static void
put_log(const struct place *p)
{
	CLEANUP_FREE char *log = tiny_path(p->live, "tiny.db-wal");

	assert_int_equal(tiny_copy_file(log, p->log), 1);
}

static int
setup(void **state)
{
	struct place *p = mem_calloc(1, sizeof(*p));

	assert_non_null(p);
	p->base = scratch_new();
	p->live = tiny_path(p->base, "live");
	p->out = tiny_path(p->base, "a copy, 100%? #1");
	assert_int_equal(mkdir(p->live, 0700), 0);
	assert_int_equal(mkdir(p->out, 0700), 0);
	p->db = tiny_path(p->out, "tiny.db");
	p->log = tiny_path(p->out, "tiny.db-wal");
	p->index = tiny_path(p->out, "tiny.db-shm");
	p->journal = tiny_path(p->out, "tiny.db-journal");
	make_live(p, &tiny_store);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	store_fault_arm(STORE_FAULT_NONE, 0);
	scratch_free(p->base);
	free(p->live);
	free(p->out);
	free(p->db);
	free(p->log);
	free(p->index);
	free(p->journal);
	free(p);
	return 0;
}

static uint32_t
mark_of(const char *path)
{
	CLEANUP(io_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t b[4];

	assert_int_equal(pread(fd, b, sizeof(b), 68), sizeof(b));
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void
set_mark(const char *path, uint32_t mark)
{
	const uint8_t b[4] = { (uint8_t)(mark >> 24), (uint8_t)(mark >> 16),
		(uint8_t)(mark >> 8), (uint8_t)mark };
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, b, sizeof(b), 68), sizeof(b));
	assert_int_equal(close(fd), 0);
}

static void
are_the_same(const char *a, const char *b)
{
	CLEANUP(buf_done) struct buf x = BUF_INIT, y = BUF_INIT;

	assert_int_equal(io_read_file(AT_FDCWD, a, SIZE_MAX / 2, &x), 0);
	assert_int_equal(io_read_file(AT_FDCWD, b, SIZE_MAX / 2, &y), 0);
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
}

static void
the_log_beside_a_copy_is_put_aside_as_it_is(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *log = tiny_path(p->live, "tiny.db-wal");
	CLEANUP(store_closep) struct store *s = NULL;
	int restored = -1;

	assert_int_equal(mark_of(p->db), STORE_COPY_MARK);
	put_log(p);
	assert_int_equal(tiny_copy_file(log, p->index), 1);
	s = tiny_open(&tiny_store, p->out);
	assert_int_equal(tiny_count(s), COPIED);
	assert_non_null(store_set_aside(s));
	are_the_same(store_set_aside(s), log);
	assert_ptr_equal(strstr(store_set_aside(s), p->log), store_set_aside(s));
	assert_int_equal(mark_of(p->db), STORE_RESTORED_MARK);
	assert_int_equal(store_is_restored(s, &restored), 0);
	assert_int_equal(restored, 1);
}

static void
a_copy_that_was_opened_keeps_its_own_log(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *killed = tiny_path(p->base, "killed");
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->out);
	CLEANUP(store_closep) struct store *again = NULL;

	assert_null(store_set_aside(s));
	assert_int_equal(mark_of(p->db), STORE_RESTORED_MARK);
	assert_int_equal(tiny_fill(s, 1000, 5, 300), 0);
	assert_int_equal(mkdir(killed, 0700), 0);
	tiny_copy(p->out, killed);
	again = tiny_open(&tiny_store, killed);
	assert_null(store_set_aside(again));
	assert_int_equal(tiny_count(again), COPIED + 5);
}

static void
a_copy_of_the_time_before_keeps_the_log_beside_it(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->out);
	CLEANUP_FREE char *killed = tiny_path(p->base, "killed");
	CLEANUP_FREE char *db = tiny_path(killed, "tiny.db");

	assert_int_equal(tiny_fill(s, 1000, 5, 300), 0);
	assert_int_equal(mkdir(killed, 0700), 0);
	tiny_copy(p->out, killed);
	(void)store_close(s);
	set_mark(db, STORE_RESTORED_MARK);
	s = tiny_open(&tiny_store, killed);
	assert_int_equal(tiny_count(s), COPIED + 5);
}

static void
a_store_that_never_was_a_copy_keeps_its_log(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->live);

	assert_null(store_set_aside(s));
	assert_int_equal(tiny_count(s), COPIED + LATER);
}

static void
a_copy_that_is_put_back_a_second_time_is_a_copy_again(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *kept = tiny_path(p->base, "kept");
	CLEANUP_FREE char *first = NULL;
	struct store *s;

	assert_int_equal(tiny_copy_file(p->db, kept), 1);
	for (int round = 0; round < 2; round++) {
		put_log(p);
		assert_int_equal(tiny_copy_file(kept, p->db), 1);
		s = tiny_open(&tiny_store, p->out);
		assert_int_equal(tiny_count(s), COPIED);
		assert_non_null(store_set_aside(s));
		/* None takes the place of the other. */
		if (first != NULL)
			assert_string_not_equal(store_set_aside(s), first);
		free(first);
		first = mem_strdup(store_set_aside(s));
		assert_int_equal(tiny_fill(s, 1000, 5, 300), 0);
		(void)store_close(s);
	}
}

static void
a_journal_beside_a_copy_is_put_aside_and_an_empty_log_is_removed(void **state)
{
	const struct place *p = *state;
	CLEANUP(store_closep) struct store *s = NULL;

	assert_int_equal(io_write_file(AT_FDCWD, p->journal, "rolls back", 10, 0600), 0);
	assert_int_equal(io_write_file(AT_FDCWD, p->log, "", 0, 0600), 0);
	s = tiny_open(&tiny_store, p->out);
	assert_int_equal(tiny_count(s), COPIED);
	assert_non_null(store_set_aside(s));
	assert_ptr_equal(strstr(store_set_aside(s), p->journal), store_set_aside(s));
	assert_int_equal(access(p->journal, F_OK), -1);
}

static void
a_copy_of_a_newer_release_is_left_with_what_lies_beside_it(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *newer = tiny_path(p->base, "newer");
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	free(p->out);
	p->out = TAKE_PTR(newer);
	assert_int_equal(mkdir(p->out, 0700), 0);
	scratch_free(tiny_path(p->base, "used"));
	make_live(p, &tiny_new_store);
	free(p->db);
	free(p->log);
	p->db = tiny_path(p->out, "tiny.db");
	p->log = tiny_path(p->out, "tiny.db-wal");
	put_log(p);
	assert_int_equal(store_open(&tiny_store, p->db, &s, &why), E_NEWER);
	assert_non_null(strstr(why, "schema 3"));
	assert_int_equal(mark_of(p->db), STORE_COPY_MARK);
	assert_int_equal(access(p->log, F_OK), 0);
}

/* ---- who only looks ---- */

/* Copy and log are as they were, and there is nothing else. */
static void
nothing_was_touched(const struct place *p, const char *copy)
{
	CLEANUP_FREE char *log = tiny_path(p->live, "tiny.db-wal");

	are_the_same(p->db, copy);
	are_the_same(p->log, log);
	assert_int_equal(access(p->index, F_OK), -1);
}

static void
who_only_looks_sees_the_copy_alone_and_changes_nothing(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *kept = tiny_path(p->base, "kept");
	CLEANUP_FREE char *second = tiny_path(p->base, "second");
	CLEANUP_FREE char *why = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct store_problems found = { .arena = a };
	struct store *s = NULL;

	assert_int_equal(tiny_copy_file(p->db, kept), 1);
	put_log(p);
	assert_int_equal(store_check(&tiny_store, p->db, &why), 0);
	nothing_was_touched(p, kept);
	assert_int_equal(store_inspect(&tiny_store, p->db, NULL, NULL, 1, &found), 0);
	assert_int_equal(found.n, 0);
	nothing_was_touched(p, kept);
	assert_int_equal(store_open_reader(&tiny_store, p->db, 0, &s), 0);
	assert_int_equal(tiny_count(s), COPIED);
	s = store_close(s);
	nothing_was_touched(p, kept);
	/* A copy of it is a copy that nobody has opened, and so is one of a store that was. */
	assert_int_equal(mkdir(second, 0700), 0);
	make_copy(&tiny_store, p->out, second);
	nothing_was_touched(p, kept);
	for (int opened = 0; opened < 2; opened++) {
		CLEANUP_FREE char *db = tiny_path(second, "tiny.db");

		assert_int_equal(mark_of(db), STORE_COPY_MARK);
		s = tiny_open(&tiny_store, second);
		assert_int_equal(tiny_count(s), COPIED);
		s = store_close(s);
		assert_int_equal(mark_of(db), STORE_RESTORED_MARK);
		assert_int_equal(unlink(kept), 0);
		assert_int_equal(rename(db, kept), 0);
		assert_int_equal(store_copy(&tiny_store, kept, db, NULL, NULL,
				     &(struct store_copied) { 0 }, &why),
		    0);
	}
}

static void
what_is_wrong_with_the_log_of_another_store_is_not_wrong_with_the_copy(void **state)
{
	const struct place *p = *state;
	CLEANUP_FREE char *why = NULL;
	char junk[5000];

	memset(junk, 0xa5, sizeof(junk));
	assert_int_equal(io_write_file(AT_FDCWD, p->log, junk, sizeof(junk), 0600), 0);
	assert_int_equal(store_look_at_log(p->db, &why), 0);
	assert_null(why);
	set_mark(p->db, 0);
	assert_int_equal(store_look_at_log(p->db, &why), E_CORRUPT);
}

/* ---- failures ---- */

static int
open_with_log(const struct place *p)
{
	CLEANUP_FREE char *why = NULL;
	CLEANUP(store_closep) struct store *s = NULL;
	int r = store_open(&tiny_store, p->db, &s, &why);

	mem_fault_arm(-1);
	if (r == 0)
		assert_int_equal(tiny_count(s), COPIED);
	return r;
}

static void
a_copy_without_memory_is_opened_the_next_time(void **state)
{
	const struct place *p = *state;
	int r = E_NOMEM;
	long n;

	for (n = 0; r < 0; n++) {
		set_mark(p->db, STORE_COPY_MARK);
		put_log(p);
		mem_fault_arm(n);
		r = open_with_log(p);
		assert_true(r == 0 || r == E_NOMEM);
		assert_int_equal(open_with_log(p), 0);
	}
	assert_true(n > 4);
}

/* ---- calls of the kernel that are not SQLite's ---- */

static int
open_only(void *arg)
{
	const struct place *p = arg;
	CLEANUP_FREE char *why = NULL;
	CLEANUP(store_closep) struct store *s = NULL;

	return store_open(&tiny_store, p->db, &s, &why);
}

static void
is_opened_the_next_time(void *arg, int r)
{
	const struct place *p = arg;

	assert_true(r == 0 || r == E_FULL || r == E_STORAGE);
	assert_int_equal(open_with_log(p), 0);
	set_mark(p->db, STORE_COPY_MARK);
	put_log(p);
}

static void
a_copy_is_marked_behind_a_folder_that_is_on_disk(void **state)
{
	struct place *p = *state;

	put_log(p);
	assert_true(io_starve(open_only, p, 1, is_opened_the_next_time) >= 2);
}

#ifdef ANVIL_FAULTS

static void
a_file_that_cannot_be_written_is_not_taken_into_use(void **state)
{
	static const char text[] = "tiny readonly\n";
	const struct place *p = *state;
	const char *rules = getenv("ANVIL_FAULT_FILE");
	CLEANUP_FREE char *why = NULL;
	CLEANUP(store_closep) struct store *s = NULL;

	put_log(p);
	assert_int_equal(io_write_file(AT_FDCWD, rules, text, sizeof(text) - 1, 0600), 0);
	while (fault_rule_of("tiny").what == 0)
		;
	assert_int_equal(store_open(&tiny_store, p->db, &s, &why), E_STORAGE);
	assert_non_null(strstr(why, p->db));
	/* What happened is not lost with the failure. */
	assert_non_null(strstr(why, "-wal.stale-"));
	assert_int_equal(io_write_file(AT_FDCWD, rules, "", 0, 0600), 0);
	while (fault_rule_of("tiny").what != 0)
		;
	assert_int_equal(mark_of(p->db), STORE_COPY_MARK);
	s = tiny_open(&tiny_store, p->out);
	assert_int_equal(tiny_count(s), COPIED);
}

static void
a_copy_that_could_not_be_marked_is_marked_the_next_time(void **state)
{
	static const enum store_fault faults[] = { STORE_FAULT_FULL, STORE_FAULT_IO,
		STORE_FAULT_SYNC };
	const struct place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		int r = -1;
		long n;

		for (n = 0; r < 0; n++) {
			set_mark(p->db, STORE_COPY_MARK);
			put_log(p);
			store_fault_arm(faults[i], n);
			r = open_with_log(p);
			store_fault_arm(STORE_FAULT_NONE, 0);
			assert_true(r == 0 || r == E_FULL || r == E_STORAGE);
			if (r == 0)
				continue;
			/* What was read before is not to be relied on: it is marked anew. */
			if (mark_of(p->db) == STORE_COPY_MARK)
				put_log(p);
			assert_int_equal(open_with_log(p), 0);
		}
		assert_true(n > 1);
	}
}

/* Opens the copy and stores one row; the order says where it dies. */
static void
die_at(const struct place *p, const char *point)
{
	const char *order = getenv("ANVIL_CRASH_FILE");
	int status = 0;
	pid_t pid;

	assert_int_equal(io_write_file(AT_FDCWD, order, point, strlen(point), 0600), 0);
	pid = fork();
	if (pid == 0) {
		CLEANUP_FREE char *why = NULL;
		struct store *s = NULL;

		if (store_open(&tiny_store, p->db, &s, &why) == 0 && store_begin(s) == 0) {
			(void)tiny_add(s, 5000, "stored");
			(void)store_commit(s);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
whoever_dies_while_opening_a_copy_leaves_no_log_of_another_store(void **state)
{
	static const struct {
		const char *point;
		int64_t nstored;
	} deaths[] = { { "copy_log_put_aside", 0 }, { "copy_log_put_aside 1", 0 },
		{ "copy_alone", 0 }, { "copy_taken_over", 0 }, { "tiny_before_commit", 0 },
		{ "tiny_after_commit", 1 } };
	const struct place *p = *state;
	CLEANUP_FREE char *kept = tiny_path(p->base, "kept");

	assert_int_equal(tiny_copy_file(p->db, kept), 1);
	for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
		CLEANUP(store_closep) struct store *s = NULL;

		(void)unlink(p->log);
		assert_int_equal(tiny_copy_file(kept, p->db), 1);
		put_log(p);
		die_at(p, deaths[i].point);
		s = tiny_open(&tiny_store, p->out);
		assert_null(store_set_aside(s));
		assert_int_equal(tiny_count(s), COPIED + deaths[i].nstored);
	}
}

#endif

/* A process reads the variables once. */
static int
set_up_orders(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *order = tiny_path(dir, "order");
	CLEANUP_FREE char *rules = tiny_path(dir, "rules");

	*state = dir;
	/* It is there, so that nobody looks for it again and again. */
	if (io_write_file(AT_FDCWD, rules, "", 0, 0600) < 0)
		return -1;
	return setenv("ANVIL_CRASH_FILE", order, 1) | setenv("ANVIL_FAULT_FILE", rules, 1);
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
		IN_A_PLACE(the_log_beside_a_copy_is_put_aside_as_it_is),
		IN_A_PLACE(a_copy_that_was_opened_keeps_its_own_log),
		IN_A_PLACE(a_copy_of_the_time_before_keeps_the_log_beside_it),
		IN_A_PLACE(a_store_that_never_was_a_copy_keeps_its_log),
		IN_A_PLACE(a_copy_that_is_put_back_a_second_time_is_a_copy_again),
		IN_A_PLACE(a_journal_beside_a_copy_is_put_aside_and_an_empty_log_is_removed),
		IN_A_PLACE(a_copy_of_a_newer_release_is_left_with_what_lies_beside_it),
		IN_A_PLACE(who_only_looks_sees_the_copy_alone_and_changes_nothing),
		IN_A_PLACE(
		    what_is_wrong_with_the_log_of_another_store_is_not_wrong_with_the_copy),
		IN_A_PLACE(a_copy_without_memory_is_opened_the_next_time),
		IN_A_PLACE(a_copy_is_marked_behind_a_folder_that_is_on_disk),
#ifdef ANVIL_FAULTS
		IN_A_PLACE(a_file_that_cannot_be_written_is_not_taken_into_use),
		IN_A_PLACE(a_copy_that_could_not_be_marked_is_marked_the_next_time),
		IN_A_PLACE(whoever_dies_while_opening_a_copy_leaves_no_log_of_another_store),
#endif
	};

	return cmocka_run_group_tests(tests, set_up_orders, remove_orders);
}
