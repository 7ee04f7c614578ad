/* What a store promises when writes and syncs fail, at each of them in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

#ifndef ANVIL_FAULTS

static void
faults_need_a_build_with_them(void **state)
{
	(void)state;
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(store_fault_count(), 0);
	skip();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(faults_need_a_build_with_them) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#define SLOW_SYNC_US 300
#define ROUNDS_MAX   200

static int
setup(void **state)
{
	*state = scratch_new();
	return 0;
}

static int
teardown(void **state)
{
	store_fault_arm(STORE_FAULT_NONE, 0);
	scratch_free(*state);
	return 0;
}

static void
is_sound(const char *dir)
{
	CLEANUP_FREE char *path = tiny_path(dir, "tiny.db");
	CLEANUP_FREE char *why = NULL;

	assert_int_equal(store_check(&tiny_store, path, &why), 0);
}

/* Commits rows until one fails; returns the id of that one. */
static int64_t
add_until_it_fails(struct store *s, int64_t id, int *ret_err)
{
	for (;; id++) {
		int r = store_begin(s);

		if (r == 0)
			r = tiny_add(s, id, "a row");
		if (r == 0)
			r = store_commit(s);
		else
			store_rollback(s);
		if (r < 0) {
			*ret_err = r;
			return id;
		}
	}
}

static void
all_are_there(struct store *s, int64_t up_to)
{
	for (int64_t id = 1; id < up_to; id++)
		assert_true(tiny_has(s, id));
}

/* A process that is killed leaves what the kernel has: a copy of the files. */
static void
what_was_acknowledged_outlives_a_kill(const char *dir, int64_t up_to)
{
	CLEANUP_FREE char *to = tiny_path(dir, "killed");
	CLEANUP(store_closep) struct store *s = NULL;

	(void)mkdir(to, 0700);
	tiny_copy(dir, to);
	s = tiny_open(&tiny_store, to);
	all_are_there(s, up_to);
	s = store_close(s);
	is_sound(to);
}

static void
a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	int64_t id = 1;

	for (long n = 0; n < 12; n++) {
		int err = 0;

		store_fault_arm(STORE_FAULT_FULL, n);
		id = add_until_it_fails(s, id, &err);
		assert_true(err == E_FULL || err == E_STORAGE);
		assert_true(store_fault_count() > 0);
		assert_false(store_in_txn(s));
		store_fault_arm(STORE_FAULT_NONE, 0);
		assert_false(tiny_has(s, id)); /* refused means: not there */
		all_are_there(s, id);
		what_was_acknowledged_outlives_a_kill(*state, id);
	}
	assert_int_equal(tiny_add(s, id, "room again"), 0);
}

/* The row that failed may be there or not; those before it are. */
static void
an_input_output_error_loses_nothing_that_was_acknowledged(void **state)
{
	int64_t id = 1;

	for (long n = 0; n < 12; n++) {
		CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
		int err = 0;

		store_fault_arm(n % 2 == 0 ? STORE_FAULT_IO : STORE_FAULT_SYNC, n / 2);
		if (tiny_has(s, id))
			id++;
		id = add_until_it_fails(s, id, &err);
		assert_int_equal(err, E_STORAGE);
		store_fault_arm(STORE_FAULT_NONE, 0);
		what_was_acknowledged_outlives_a_kill(*state, id);
	}
	is_sound(*state);
}

/* Opening makes a file, a log and two migrations: each write and sync of that fails once. */
static void
opening_fails_cleanly_at_each_write_and_can_be_repeated(void **state)
{
	long n;

	for (n = 0; n < ROUNDS_MAX; n++) {
		CLEANUP_FREE char *dir = mem_format("%s/%ld", (char *)*state, n);
		CLEANUP_FREE char *path = NULL;
		CLEANUP_FREE char *why = NULL;
		CLEANUP(store_closep) struct store *s = NULL;
		int r;

		assert_int_equal(mkdir(dir, 0700), 0);
		path = tiny_path(dir, "tiny.db");
		store_fault_arm(n % 2 == 0 ? STORE_FAULT_FULL : STORE_FAULT_IO, n / 2);
		r = store_open(&tiny_store, path, &s, &why);
		if (store_fault_count() == 0 && r == 0)
			break;
		store_fault_arm(STORE_FAULT_NONE, 0);
		if (r == 0)
			continue; /* only the last, optional work failed */
		assert_true(r == E_FULL || r == E_STORAGE);
		assert_non_null(why);
		assert_null(s);
		s = tiny_open(&tiny_store, dir);
		assert_int_equal(store_version(s), 2);
		assert_int_equal(tiny_add(s, 1, "works"), 0);
	}
	assert_in_range(n, 8, ROUNDS_MAX - 1);
}

/* The log cannot be written back: the store works on, and its log is written back later. */
static void
a_checkpoint_that_fails_harms_nothing(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	struct checkpointer *c = NULL;

	assert_int_equal(checkpointer_start(s, 60000, &c), 0);
	for (long n = 0; n < 6; n++) {
		assert_int_equal(tiny_add(s, n + 1, "a row"), 0);
		store_fault_arm(n % 2 == 0 ? STORE_FAULT_FULL : STORE_FAULT_IO, n / 2);
		checkpointer_poke(c);
		checkpointer_settle(c);
		assert_true(store_fault_count() > 0 || n > 3);
		store_fault_arm(STORE_FAULT_NONE, 0);
		all_are_there(s, n + 2);
		what_was_acknowledged_outlives_a_kill(*state, n + 2);
	}
	checkpointer_truncate(c);
	checkpointer_settle(c);
	assert_int_equal(tiny_file_size(*state, "tiny.db-wal"), 0);
	(void)checkpointer_stop(c);
	what_was_acknowledged_outlives_a_kill(*state, 7);
}

static void
a_slow_disk_takes_its_time_at_every_commit(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	struct mono_time from = clock_mono();

	for (int64_t id = 1; id <= 10; id++)
		assert_int_equal(tiny_add(s, id, "a row"), 0);
	/* That is the least it can be, however fast the machine. */
	assert_true(mono_diff_us(from, clock_mono()) >= INT64_C(10) * SLOW_SYNC_US);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room),
		TEST(an_input_output_error_loses_nothing_that_was_acknowledged),
		TEST(opening_fails_cleanly_at_each_write_and_can_be_repeated),
		TEST(a_checkpoint_that_fails_harms_nothing),
		TEST(a_slow_disk_takes_its_time_at_every_commit),
	};
	char us[24];

	(void)snprintf(us, sizeof(us), "%d", SLOW_SYNC_US);
	(void)setenv("ANVIL_FAULT_FSYNC_US", us, 1); /* read at the first open */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
