/* A log that lies on disk: torn at its end is nothing, damaged before its end is said. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

#define COMMITS     6
#define HEAD_BYTES  32
#define FRAME_BYTES (24 + 4096)

/* A copy of a store as a kill leaves it: its log has some commits. */
struct rig {
	char *dir, *killed;
	char *path, *log; /* of the copy */
	int64_t log_bytes;
};

static void
make_copy(struct rig *rig)
{
	tiny_copy(rig->dir, rig->killed);
	rig->log_bytes = tiny_file_size(rig->killed, "tiny.db-wal");
}

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));
	CLEANUP(store_closep) struct store *s = NULL;

	rig->dir = scratch_new();
	rig->killed = tiny_path(rig->dir, "killed");
	rig->path = tiny_path(rig->killed, "tiny.db");
	rig->log = tiny_path(rig->killed, "tiny.db-wal");
	assert_int_equal(mkdir(rig->killed, 0700), 0);
	store_close(tiny_open(&tiny_store, rig->dir)); /* the schema is not in the log */
	s = tiny_open(&tiny_store, rig->dir);
	for (int64_t id = 1; id <= COMMITS; id++)
		assert_int_equal(tiny_add(s, id, "a row"), 0);
	make_copy(rig);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	scratch_free(rig->dir);
	free(rig->killed);
	free(rig->path);
	free(rig->log);
	free(rig);
	return 0;
}

static int
look(const struct rig *rig)
{
	CLEANUP_FREE char *why = NULL;
	int r = store_look_at_log(rig->path, &why);

	assert_int_equal(r == E_CORRUPT, why != NULL);
	return r;
}

static void
flip(const struct rig *rig, int64_t at)
{
	CLEANUP(io_closep) int fd = open(rig->log, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void
a_whole_log_and_none_are_fine(void **state)
{
	const struct rig *rig = *state;

	assert_true(rig->log_bytes >= HEAD_BYTES + COMMITS * FRAME_BYTES);
	assert_int_equal(look(rig), 0);
	assert_int_equal(unlink(rig->log), 0);
	assert_int_equal(look(rig), 0);
}

static void
a_log_that_was_torn_at_any_byte_is_fine(void **state)
{
	const struct rig *rig = *state;

	for (int64_t n = rig->log_bytes; n >= 0; n -= 509) {
		assert_int_equal(truncate(rig->log, n), 0);
		assert_int_equal(look(rig), 0);
	}
}

/* What a power cut leaves of the last transaction cannot be told from damage. */
static void
damage_in_the_last_commit_is_taken_for_torn(void **state)
{
	const struct rig *rig = *state;

	flip(rig, rig->log_bytes - 100);
	assert_int_equal(look(rig), 0);
}

static void
damage_before_the_last_commit_is_found_wherever_it_is(void **state)
{
	const struct rig *rig = *state;

	/* The sum itself of the last commit but one is the one that nothing can be hung on. */
	for (int64_t at = HEAD_BYTES; at < rig->log_bytes - 2 * FRAME_BYTES; at += 173) {
		flip(rig, at);
		if (look(rig) != E_CORRUPT)
			fail_msg("byte %lld of %lld", (long long)at, (long long)rig->log_bytes);
		flip(rig, at);
	}
	assert_int_equal(look(rig), 0);
}

static void
a_damaged_head_is_found(void **state)
{
	const struct rig *rig = *state;

	for (int64_t at = 0; at < HEAD_BYTES; at++) {
		flip(rig, at);
		assert_int_equal(look(rig), E_CORRUPT);
		flip(rig, at);
	}
}

static void
what_is_no_log_is_found(void **state)
{
	const struct rig *rig = *state;
	CLEANUP(io_closep) int fd = open(rig->log, O_WRONLY | O_TRUNC | O_CLOEXEC);
	char text[] = "this is a text of more than thirty-two bytes and surely not a log";

	assert_int_equal(io_write_all(fd, text, sizeof(text)), 0);
	assert_int_equal(look(rig), E_CORRUPT);
}

/* A log that begins anew overwrites an older one, of which the rest is still there. */
static void
the_rest_of_an_older_log_is_no_damage(void **state)
{
	struct rig *rig = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, rig->dir);
	struct checkpointer *c = NULL;

	assert_int_equal(checkpointer_start(s, 3600000, &c), 0);
	for (int round = 0; round < 4; round++) {
		assert_int_equal(tiny_fill(s, 1000 + round * 100, 20, 3000), 0);
		checkpointer_poke(c);
		checkpointer_settle(c);
		for (int i = 0; i <= round; i++)
			assert_int_equal(tiny_add(s, 100 + round * 10 + i, "short"), 0);
		make_copy(rig);
		assert_int_equal(look(rig), 0);
	}
	(void)checkpointer_stop(c);
}

#ifdef ANVIL_FAULTS
/* Transactions that fail leave frames behind, which later ones overwrite in part. */
static void
what_failed_transactions_leave_is_no_damage(void **state)
{
	struct rig *rig = *state;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, rig->dir);

	for (long n = 0; n < 60; n++) {
		store_fault_arm(STORE_FAULT_FULL, n);
		(void)tiny_fill(s, 1000 + n * 100, 20, 3000);
		store_fault_arm(STORE_FAULT_FULL, n % 3);
		(void)tiny_add(s, 100 + n, "short");
		make_copy(rig);
		assert_int_equal(look(rig), 0);
		store_fault_arm(STORE_FAULT_NONE, 0);
		if (n % 4 == 0)
			assert_int_equal(tiny_add(s, 500 + n, "short"), 0);
		make_copy(rig);
		assert_int_equal(look(rig), 0);
	}
}
#endif

static int
look_again(void *arg)
{
	CLEANUP_FREE char *why = NULL;

	return store_look_at_log(((const struct rig *)arg)->path, &why);
}

static void
looking_survives_every_failed_allocation(void **state)
{
	(void)starve(look_again, *state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_whole_log_and_none_are_fine),
		TEST(a_log_that_was_torn_at_any_byte_is_fine),
		TEST(damage_in_the_last_commit_is_taken_for_torn),
		TEST(damage_before_the_last_commit_is_found_wherever_it_is),
		TEST(a_damaged_head_is_found),
		TEST(what_is_no_log_is_found),
		TEST(the_rest_of_an_older_log_is_no_damage),
#ifdef ANVIL_FAULTS
		TEST(what_failed_transactions_leave_is_no_damage),
#endif
		TEST(looking_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
