#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

struct rig {
	char *dir;
	struct store *s;
	struct batch *b;
};

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));

	rig->dir = scratch_new();
	rig->s = tiny_open(&tiny_store, rig->dir);
	rig->b = batch_new(rig->s);
	assert_non_null(rig->b);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	store_fault_arm(STORE_FAULT_NONE, 0);
	(void)batch_free(rig->b);
	(void)store_close(rig->s);
	scratch_free(rig->dir);
	free(rig);
	return 0;
}

/* One turn that adds a row. */
static int
turn(struct rig *rig, int64_t id, int keep)
{
	int r = batch_turn_begin(rig->b);

	if (r < 0)
		return r;
	assert_int_equal(tiny_add(rig->s, id, "turn"), 0);
	return batch_turn_end(rig->b, keep);
}

/* What a kill would leave now has the row. */
static int
is_on_disk(struct rig *rig, int64_t id)
{
	CLEANUP_FREE char *to = tiny_path(rig->dir, "copy");
	CLEANUP(store_closep) struct store *s = NULL;

	(void)mkdir(to, 0700);
	tiny_copy(rig->dir, to);
	s = tiny_open(&tiny_store, to);
	return tiny_has(s, id);
}

static void
turns_are_on_disk_after_the_one_commit_and_not_before(void **state)
{
	struct rig *rig = *state;

	assert_false(batch_is_open(rig->b));
	for (int64_t id = 1; id <= 10; id++)
		assert_int_equal(turn(rig, id, 1), 0);
	assert_true(batch_is_open(rig->b));
	assert_int_equal(batch_nturns(rig->b), 10);
	assert_true(store_in_txn(rig->s));
	assert_false(is_on_disk(rig, 10));
	assert_int_equal(batch_commit(rig->b), 0);
	assert_false(batch_is_open(rig->b));
	assert_int_equal(batch_nturns(rig->b), 0);
	assert_false(store_in_txn(rig->s));
	assert_true(is_on_disk(rig, 1));
	assert_true(is_on_disk(rig, 10));
}

static void
a_turn_that_fails_is_undone_alone(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	assert_int_equal(turn(rig, 2, 0), 0);
	assert_int_equal(turn(rig, 3, 1), 0);
	assert_int_equal(turn(rig, 2, 0), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_true(tiny_has(rig->s, 1));
	assert_false(tiny_has(rig->s, 2));
	assert_true(tiny_has(rig->s, 3));
}

static void
a_constraint_that_refuses_a_row_leaves_the_batch_alone(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	assert_int_equal(batch_turn_begin(rig->b), 0);
	assert_int_equal(tiny_add(rig->s, 1, "again"), E_CONSTRAINT);
	assert_int_equal(batch_turn_end(rig->b, 0), 0);
	assert_false(batch_is_lost(rig->b));
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(tiny_count(rig->s), 1);
}

static void
a_batch_in_which_every_turn_failed_commits_nothing(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 0), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(tiny_count(rig->s), 0);
	assert_int_equal(batch_commit(rig->b), 0); /* nothing is open: nothing happens */
}

static void
freeing_an_open_batch_undoes_it(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	rig->b = batch_free(rig->b);
	assert_false(store_in_txn(rig->s));
	assert_int_equal(tiny_count(rig->s), 0);
}

/* SQLite gives up a whole transaction inside a statement now and then (a full disk, an I/O
 * error, no memory); all that shows it is autocommit.  A rollback by hand looks the same. */
static void
a_transaction_that_went_away_in_a_turn_takes_the_batch_along(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	assert_int_equal(batch_turn_begin(rig->b), 0);
	store_rollback(rig->s);
	assert_int_equal(batch_turn_end(rig->b, 1), E_STORAGE);
	assert_true(batch_is_lost(rig->b));
	assert_true(batch_is_open(rig->b));
	/* No turn runs outside a transaction. */
	assert_int_equal(turn(rig, 2, 1), E_STORAGE);
	assert_int_equal(batch_commit(rig->b), E_STORAGE);
	assert_false(batch_must_restart(rig->b));
	assert_int_equal(tiny_count(rig->s), 0);
	/* Answered for: the next one works. */
	assert_int_equal(turn(rig, 3, 1), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_true(tiny_has(rig->s, 3));
}

#ifdef ANVIL_FAULTS

/* More than the cache holds is written to the log before the commit. */
static void
a_disk_that_fills_up_in_a_turn_loses_the_batch_and_nothing_else(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(turn(rig, 2, 1), 0);
	assert_int_equal(batch_turn_begin(rig->b), 0);
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(tiny_fill(rig->s, 1000, 500, 4000), E_FULL);
	assert_int_equal(batch_turn_end(rig->b, 0), E_STORAGE);
	assert_true(store_fault_count() > 0);
	assert_true(batch_is_lost(rig->b));
	assert_int_equal(batch_commit(rig->b), E_STORAGE);
	assert_false(batch_must_restart(rig->b));
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_true(tiny_has(rig->s, 1));
	assert_false(tiny_has(rig->s, 2));
	assert_int_equal(turn(rig, 3, 1), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(tiny_count(rig->s), 2);
}

static void
a_disk_that_is_full_at_the_commit_undoes_the_batch_and_goes_on(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(batch_commit(rig->b), E_FULL);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_false(batch_must_restart(rig->b));
	assert_false(batch_is_open(rig->b));
	assert_false(store_in_txn(rig->s));
	assert_int_equal(tiny_count(rig->s), 0);
	assert_false(is_on_disk(rig, 1));
	assert_int_equal(turn(rig, 2, 1), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_true(is_on_disk(rig, 2));
}

static void
an_input_output_error_at_the_commit_ends_all_writing(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	store_fault_arm(STORE_FAULT_IO, 0);
	assert_int_equal(batch_commit(rig->b), E_STORAGE);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_true(batch_must_restart(rig->b));
	assert_int_equal(turn(rig, 2, 1), E_STORAGE);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(tiny_count(rig->s), 0);
}

/* "Outcome unknown" is meant: all of the frames are in the log, and only their sync failed. */
static void
a_commit_whose_sync_failed_may_come_true_after_a_restart(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(turn(rig, 1, 1), 0);
	assert_int_equal(batch_commit(rig->b), 0);
	assert_int_equal(turn(rig, 2, 1), 0);
	store_fault_arm(STORE_FAULT_SYNC, 0);
	assert_int_equal(batch_commit(rig->b), E_STORAGE);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_true(batch_must_restart(rig->b));
	assert_false(tiny_has(rig->s, 2));
	assert_true(is_on_disk(rig, 1));
	assert_true(is_on_disk(rig, 2));
}

#endif

static int
one_batch(void *arg)
{
	struct rig *rig = arg;
	struct batch *b = batch_new(rig->s);
	int r;

	if (b == NULL)
		return E_NOMEM;
	r = batch_turn_begin(b);
	if (r == 0)
		r = batch_turn_end(b, 1);
	(void)batch_free(b);
	return r;
}

static void
making_a_batch_survives_every_failed_allocation(void **state)
{
	assert_true(starve(one_batch, *state) >= 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(turns_are_on_disk_after_the_one_commit_and_not_before),
		TEST(a_turn_that_fails_is_undone_alone),
		TEST(a_constraint_that_refuses_a_row_leaves_the_batch_alone),
		TEST(a_batch_in_which_every_turn_failed_commits_nothing),
		TEST(freeing_an_open_batch_undoes_it),
		TEST(a_transaction_that_went_away_in_a_turn_takes_the_batch_along),
#ifdef ANVIL_FAULTS
		TEST(a_disk_that_fills_up_in_a_turn_loses_the_batch_and_nothing_else),
		TEST(a_disk_that_is_full_at_the_commit_undoes_the_batch_and_goes_on),
		TEST(an_input_output_error_at_the_commit_ends_all_writing),
		TEST(a_commit_whose_sync_failed_may_come_true_after_a_restart),
#endif
		TEST(making_a_batch_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
