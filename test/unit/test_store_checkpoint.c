#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

#define NEVER_IDLE_MS (3600 * 1000)
#define PATIENCE_MS   20000
#define CHUNK_ROWS    64 /* a quarter of a MiB in rows of 4 KiB */
#define ROW_BYTES     4000

struct rig {
	char *dir;
	struct store *s;
	struct checkpointer *c;
	int64_t next_id;
};

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));

	rig->dir = scratch_new();
	rig->s = tiny_open(&tiny_normal_store, rig->dir);
	rig->next_id = 1;
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	(void)checkpointer_stop(rig->c);
	(void)store_close(rig->s);
	scratch_free(rig->dir);
	free(rig);
	return 0;
}

static void
start(struct rig *rig, int64_t idle_ms)
{
	assert_int_equal(checkpointer_start(rig->s, idle_ms, &rig->c), 0);
}

/* A commit of a quarter of a MiB. */
static void
write_chunk(struct rig *rig)
{
	assert_int_equal(tiny_fill(rig->s, rig->next_id, CHUNK_ROWS, ROW_BYTES), 0);
	rig->next_id += CHUNK_ROWS;
	checkpointer_poke(rig->c);
}

/* Rows in the file itself, without its log. */
static int64_t
rows_written_back(struct rig *rig)
{
	CLEANUP_FREE char *to = tiny_path(rig->dir, "copy");
	CLEANUP_FREE char *wal = tiny_path(rig->dir, "copy/tiny.db-wal");
	CLEANUP(store_closep) struct store *s = NULL;

	(void)mkdir(to, 0700);
	tiny_copy(rig->dir, to);
	(void)unlink(wal);
	s = tiny_open(&tiny_store, to);
	return tiny_count(s);
}

/* Until ${fn} is true, with a limit. */
static int
comes_true(int (*fn)(struct rig *), struct rig *rig)
{
	struct mono_time until = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (!fn(rig)) {
		if (clock_mono().us > until.us)
			return 0;
		(void)sched_yield();
	}
	return 1;
}

static int
file_has_grown(struct rig *rig)
{
	return tiny_file_size(rig->dir, "tiny.db") > STORE_WAL_PASSIVE_BYTES / 2;
}

static int
log_is_empty(struct rig *rig)
{
	return tiny_file_size(rig->dir, "tiny.db-wal") == 0;
}

static void
nothing_is_written_back_by_commits_alone(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 40; i++) {
		assert_int_equal(tiny_fill(rig->s, rig->next_id, CHUNK_ROWS, ROW_BYTES), 0);
		rig->next_id += CHUNK_ROWS;
	}
	assert_true(tiny_file_size(rig->dir, "tiny.db") < STORE_WAL_PASSIVE_BYTES);
	assert_true(tiny_file_size(rig->dir, "tiny.db-wal") > 2 * STORE_WAL_PASSIVE_BYTES);
}

static void
commits_are_written_back_when_it_is_quiet(void **state)
{
	struct rig *rig = *state;

	start(rig, 1);
	for (int i = 0; i < 10; i++)
		write_chunk(rig);
	assert_true(comes_true(file_has_grown, rig));
	checkpointer_settle(rig->c);
	assert_int_equal(rows_written_back(rig), 10 * CHUNK_ROWS);
}

static void
a_long_log_is_written_back_though_it_is_never_quiet(void **state)
{
	struct rig *rig = *state;

	start(rig, NEVER_IDLE_MS);
	while (tiny_file_size(rig->dir, "tiny.db-wal") < STORE_WAL_PASSIVE_BYTES + (1 << 20))
		write_chunk(rig);
	assert_true(comes_true(file_has_grown, rig));
}

/* The file of the log stays as long as it was once; what counts is what is in use of it. */
static void
a_log_that_is_written_back_is_used_again_and_left_alone_until_it_is_long_again(void **state)
{
	struct rig *rig = *state;
	int64_t file, wal;

	start(rig, NEVER_IDLE_MS);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 20; i++)
			write_chunk(rig);
		checkpointer_settle(rig->c);
	}
	store_sizes(rig->s, &file, &wal);
	assert_true(wal > STORE_WAL_PASSIVE_BYTES);
	assert_true(wal < 4 * STORE_WAL_PASSIVE_BYTES);
	assert_int_equal(rows_written_back(rig), 6 * 20 * CHUNK_ROWS);
	/* Small commits on top of it are no reason to write. */
	for (int i = 0; i < 50; i++) {
		assert_int_equal(tiny_add(rig->s, rig->next_id++, "small"), 0);
		checkpointer_poke(rig->c);
	}
	assert_int_equal(rows_written_back(rig), 6 * 20 * CHUNK_ROWS);
}

static void
an_order_cuts_the_log_to_nothing(void **state)
{
	struct rig *rig = *state;

	start(rig, NEVER_IDLE_MS);
	write_chunk(rig);
	assert_false(log_is_empty(rig));
	checkpointer_truncate(rig->c);
	checkpointer_settle(rig->c);
	assert_true(log_is_empty(rig));
	assert_int_equal(rows_written_back(rig), CHUNK_ROWS);
	/* And the store goes on. */
	write_chunk(rig);
	assert_int_equal(tiny_count(rig->s), 2 * CHUNK_ROWS);
}

static void
a_very_long_log_is_cut_without_an_order(void **state)
{
	struct rig *rig = *state;
	CLEANUP_FREE char *path = tiny_path(rig->dir, "tiny.db");
	CLEANUP(store_closep) struct store *reader = NULL;

	start(rig, NEVER_IDLE_MS);
	assert_int_equal(store_open_reader(&tiny_store, path, 0, &reader), 0);
	assert_int_equal(store_begin(reader), 0);
	assert_int_equal(tiny_count(reader), 0);
	/* The reader keeps the log from beginning anew. */
	while (tiny_file_size(rig->dir, "tiny.db-wal") < STORE_WAL_TRUNCATE_BYTES + (1 << 20))
		write_chunk(rig);
	assert_int_equal(store_commit(reader), 0);
	/* Each commit is its occasion, and between two of them nobody is in its way. */
	while (!log_is_empty(rig) && rig->next_id < 64000) {
		write_chunk(rig);
		checkpointer_settle(rig->c);
	}
	assert_true(tiny_file_size(rig->dir, "tiny.db-wal") < STORE_WAL_TRUNCATE_BYTES);
}

static void
a_reader_delays_the_cut_and_never_the_writer(void **state)
{
	struct rig *rig = *state;
	CLEANUP_FREE char *path = tiny_path(rig->dir, "tiny.db");
	CLEANUP(store_closep) struct store *reader = NULL;

	start(rig, NEVER_IDLE_MS);
	write_chunk(rig);
	assert_int_equal(store_open_reader(&tiny_store, path, 0, &reader), 0);
	assert_int_equal(store_begin(reader), 0);
	assert_int_equal(tiny_count(reader), CHUNK_ROWS);
	checkpointer_truncate(rig->c);
	checkpointer_settle(rig->c);
	for (int i = 0; i < 10; i++)
		write_chunk(rig);
	assert_false(log_is_empty(rig));
	assert_int_equal(tiny_count(reader), CHUNK_ROWS);
	assert_int_equal(store_commit(reader), 0);
	/* It is tried again by itself. */
	assert_true(comes_true(log_is_empty, rig));
	assert_int_equal(rows_written_back(rig), 11 * CHUNK_ROWS);
}

/* For the thread sanitizer, and for commits that meet every kind of checkpoint. */
static void
commits_and_checkpoints_go_side_by_side(void **state)
{
	struct rig *rig = *state;

	start(rig, 0);
	for (int i = 0; i < 400; i++) {
		assert_int_equal(store_begin(rig->s), 0);
		assert_int_equal(tiny_fill(rig->s, rig->next_id, 16, 1000), 0);
		assert_int_equal(store_commit(rig->s), 0);
		rig->next_id += 16;
		checkpointer_poke(rig->c);
		if (i % 7 == 0)
			checkpointer_truncate(rig->c);
	}
	assert_int_equal(tiny_count(rig->s), 400 * 16);
	checkpointer_truncate(rig->c);
	checkpointer_settle(rig->c);
	assert_true(log_is_empty(rig));
	assert_int_equal(rows_written_back(rig), 400 * 16);
}

static void
it_stops_whatever_it_is_about_to_do(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 20; i++) {
		start(rig, i % 3);
		if (i % 2 == 0)
			write_chunk(rig);
		if (i % 5 == 0)
			checkpointer_truncate(rig->c);
		rig->c = checkpointer_stop(rig->c);
		assert_null(rig->c);
	}
	assert_null(checkpointer_stop(NULL));
	assert_int_equal(tiny_count(rig->s), 10 * CHUNK_ROWS);
}

static int
start_and_stop(void *arg)
{
	struct rig *rig = arg;
	int r = checkpointer_start(rig->s, NEVER_IDLE_MS, &rig->c);

	if (r == 0)
		rig->c = checkpointer_stop(rig->c);
	return r;
}

static void
starting_survives_every_failed_allocation(void **state)
{
	assert_true(starve(start_and_stop, *state) >= 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_written_back_by_commits_alone),
		TEST(commits_are_written_back_when_it_is_quiet),
		TEST(a_long_log_is_written_back_though_it_is_never_quiet),
		TEST(
		    a_log_that_is_written_back_is_used_again_and_left_alone_until_it_is_long_again),
		TEST(an_order_cuts_the_log_to_nothing),
		TEST(a_very_long_log_is_cut_without_an_order),
		TEST(a_reader_delays_the_cut_and_never_the_writer),
		TEST(commits_and_checkpoints_go_side_by_side),
		TEST(it_stops_whatever_it_is_about_to_do),
		TEST(starting_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
