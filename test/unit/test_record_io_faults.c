/* The record of a run, with each call of the kernel for its archive failing in turn. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/record.h"
#include "test/support/io_fault.h"
#include "test/support/record_claim.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NOW   RECORD_NOW
#define CAP   ((int64_t)1 << 28)
#define NOTES 8

struct rig {
	char *base, *dir; /* a new dir for each pass */
	int passes;
	int64_t stored; /* notes that were said to be */
};

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));

	rig->base = scratch_new();
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	io_fault_arm(-1, 0);
	scratch_free(rig->base);
	free(rig->dir);
	free(rig);
	return 0;
}

static int
note(struct rig *rig, struct record *r, int n)
{
	char text[64];
	int err;

	(void)snprintf(text, sizeof(text), "note number %d", n);
	err = record_note(r, 0, text, NOW + n);
	rig->stored += err == 0;
	return err;
}

static int
live(void *arg)
{
	struct rig *rig = arg;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP_FREE char *why = NULL;
	int err;

	free(rig->dir);
	rig->dir = mem_format("%s/%d", rig->base, rig->passes++);
	rig->stored = 0;
	must(rig->dir != NULL);
	err = mkdir(rig->dir, 0700) < 0 ? E_SYS : record_reserve_make(rig->dir);
	if (err == 0)
		err = record_open(rig->dir, CAP, &r, &why);
	if (err == 0)
		err = record_claim(r, &record_claim_of_a_push, NOW);
	for (int n = 0; err == 0 && n < NOTES; n++) {
		err = note(rig, r, n);
		if (err == 0 && n == NOTES / 2)
			err = record_flush(r);
	}
	if (err == 0)
		err = record_finish_log(r);
	return err == 0 ? record_reserve_drop(rig->dir) : err;
}

static void
nothing_stored_is_lost(void *arg, int err)
{
	struct rig *rig = arg;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP_FREE char *why = NULL;
	struct record_log log;

	if (rig->stored == 0)
		return;
	assert_int_equal(record_open(rig->dir, CAP, &r, &why), 0);
	assert_int_equal(record_log_get(r, &log), 0);
	assert_true(log.next_seq > rig->stored);
	/* What failed can be made good by the same calls. */
	assert_int_equal(record_note(r, 0, "and one more", NOW + NOTES), 0);
	assert_int_equal(record_finish_log(r), 0);
	assert_int_equal(record_log_get(r, &log), 0);
	assert_int_equal(log.archived_seq, log.next_seq - 1);
	if (err == 0)
		assert_int_equal(rig->stored, NOTES);
}

/* SQLite passes over some calls by itself, such as syncs of the folder that we have synced. */
static void
a_record_outlives_every_failed_call(void **state)
{
	int fds = scratch_open_fds();

	assert_true(io_starve(live, *state, 1, nothing_stored_is_lost) >= 4);
	assert_int_equal(scratch_open_fds(), fds);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_outlives_every_failed_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
