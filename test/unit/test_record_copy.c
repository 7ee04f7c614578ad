/* A record is copied while it is written, and known again when it comes back. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"
#include "test/support/record_claim.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NOW RECORD_NOW
#define CAP ((int64_t)1 << 28)

struct place {
	char *dir;
	char *from;
	char *to;
	struct record *rec;
};

static struct record *
open_at(const char *dir)
{
	struct record *r = NULL;
	char *why = NULL;

	assert_int_equal(record_open(dir, CAP, &r, &why), 0);
	return r;
}

static int
setup(void **state)
{
	struct place *p = mem_calloc(1, sizeof(*p));

	assert_non_null(p);
	p->dir = scratch_new();
	p->from = mem_format("%s/from", p->dir);
	p->to = mem_format("%s/to", p->dir);
	assert_int_equal(mkdir(p->from, 0700), 0);
	assert_int_equal(mkdir(p->to, 0700), 0);
	p->rec = open_at(p->from);
	assert_int_equal(record_claim(p->rec, &record_claim_of_a_push, NOW), 0);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	record_free(p->rec);
	scratch_free(p->dir);
	free(p->from);
	free(p->to);
	free(p);
	return 0;
}

static void
write_lines(struct record *r, int n)
{
	char text[200];

	for (int i = 0; i < n; i++) {
		struct record_row row = {
			.stream = LOG_STREAM_STDOUT, .chunk = text, .created_at_ms = NOW
		};

		row.n = (size_t)snprintf(text, sizeof(text), "line %d %0100d\n", i, i * 7919);
		assert_int_equal(record_append(r, &row, 1), 0);
	}
}

static void
read_all(struct record *r, struct buf *out)
{
	struct record_text at = { 0 };

	do {
		int64_t from = at.next_byte;

		assert_int_equal(record_text_get(r, from, SIZE_MAX / 4, out, &at), 0);
		if (at.next_byte == from)
			break;
	} while (at.next_seq == 0);
	assert_non_null(buf_cstr(out));
}

static void
finish(struct record *r)
{
	const struct record_outcome passed = { .status = RUN_STATUS_PASSED };

	assert_int_equal(record_begin(r, NOW), 0);
	assert_int_equal(record_finish(r, &passed, NOW), 0);
}

static int
copy(const struct place *p, struct record_copied *ret)
{
	CLEANUP_FREE char *why = NULL;

	return record_copy(p->from, p->to, NULL, NULL, ret, &why);
}

static int
has(const char *dir, const char *name)
{
	CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);

	return access(path, F_OK) == 0;
}

static void
a_copy_of_a_run_that_goes_on_has_its_log_to_the_last_line(void **state)
{
	struct place *p = *state;
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct record_copied done;
	struct record *copied;

	write_lines(p->rec, 300);
	assert_int_equal(record_flush(p->rec), 0);
	write_lines(p->rec, 50);
	read_all(p->rec, &before);
	assert_int_equal(copy(p, &done), 0);
	assert_true(done.log_bytes > 0);
	assert_true(done.version > 0);
	/* It goes on, in a frame that the copy does not have. */
	write_lines(p->rec, 50);
	assert_int_equal(record_flush(p->rec), 0);
	assert_false(has(p->to, "run.db-wal"));
	copied = open_at(p->to);
	assert_int_equal(copied->restored, 1);
	read_all(copied, &after);
	record_free(copied);
	assert_string_equal(buf_cstr(&after), buf_cstr(&before));
}

static void
nothing_is_left_beside_a_store_that_nobody_has_open(void **state)
{
	struct place *p = *state;
	struct record_copied done;

	write_lines(p->rec, 10);
	p->rec = record_free(p->rec);
	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(done.log_bytes, 0); /* no frame yet, and so no file */
	assert_false(has(p->to, "log.zst"));
	assert_false(has(p->from, "run.db-wal"));
	assert_false(has(p->from, "run.db-shm"));
}

static void
an_archive_that_power_loss_has_cut_is_copied_as_far_as_it_goes(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *archive = mem_format("%s/log.zst", p->from);
	struct record_copied done;

	write_lines(p->rec, 300);
	assert_int_equal(record_flush(p->rec), 0);
	assert_int_equal(truncate(archive, 100), 0);
	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(done.log_bytes, 100);
}

static void
a_record_that_has_lost_its_archive_alone_is_no_record_that_is_gone(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *archive = mem_format("%s/log.zst", p->from);
	struct record_copied done;

	write_lines(p->rec, 300);
	assert_int_equal(record_flush(p->rec), 0);
	assert_int_equal(unlink(archive), 0);
	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(done.log_bytes, 0);
	assert_true(record_exists(p->to));
	assert_false(has(p->to, "log.zst"));
}

static void
a_record_that_is_not_there_or_was_copied_already_is_told(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *nowhere = mem_format("%s/nowhere", p->dir);
	CLEANUP_FREE char *why = NULL;
	struct record_copied done;

	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(copy(p, &done), E_EXISTS);
	assert_int_equal(record_copy(nowhere, p->to, NULL, NULL, &done, &why), E_NOENT);
	assert_non_null(strstr(why, "nowhere"));
}

static void
a_run_that_the_backup_cut_short_begins_anew(void **state)
{
	struct place *p = *state;
	struct record_copied done;
	struct record *again;
	CLEANUP_FREE char *log = NULL;
	char *aside = NULL;
	int forgotten = -1;

	write_lines(p->rec, 300);
	assert_int_equal(record_flush(p->rec), 0);
	assert_int_equal(record_begin(p->rec, NOW), 0);
	assert_int_equal(copy(p, &done), 0);
	/* The record itself is nobody's copy. */
	p->rec = record_free(p->rec);
	assert_int_equal(record_forget_restored(p->from, &forgotten, &aside), 0);
	assert_int_equal(forgotten, 0);
	assert_true(record_exists(p->from));
	/* Beside the log of another one as well. */
	log = mem_format("%s/" RECORD_DB "-wal", p->to);
	assert_int_equal(io_write_file(AT_FDCWD, log, "another's", 9, 0600), 0);
	assert_int_equal(record_forget_restored(p->to, &forgotten, &aside), 0);
	assert_int_equal(forgotten, 1);
	assert_non_null(aside);
	assert_int_equal(access(aside, F_OK), 0);
	free(aside);
	assert_false(record_exists(p->to));
	assert_false(has(p->to, "log.zst"));
	assert_int_equal(record_forget_restored(p->to, &forgotten, &aside), 0);
	assert_int_equal(forgotten, 0);
	again = open_at(p->to);
	assert_int_equal(record_claim(again, &record_claim_of_a_push, NOW), 0);
	record_free(again);
}

static void
a_run_that_had_ended_in_the_backup_keeps_its_end(void **state)
{
	struct place *p = *state;
	struct record_copied done;
	struct record *again;
	char *aside = NULL;
	int forgotten = -1;

	finish(p->rec);
	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(record_forget_restored(p->to, &forgotten, &aside), 0);
	assert_int_equal(forgotten, 0);
	assert_null(aside);
	again = open_at(p->to);
	assert_int_equal(record_claim(again, &record_claim_of_a_push, NOW), 1);
	record_free(again);
}

static void
an_older_ledger_ends_a_restored_run_and_no_other(void **state)
{
	struct place *p = *state;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	enum record_conclusion how;
	struct record_copied done;
	struct record_run run;
	struct record *again;

	assert_int_equal(copy(p, &done), 0);
	assert_int_equal(record_conclude(p->rec, record_claim_of_a_push.epoch - 1,
			     FAILURE_CODE_RUNNER_LOST, "gone", NOW, &how),
	    0);
	assert_int_equal(how, RECORD_NEWER_EPOCH);
	again = open_at(p->to);
	assert_int_equal(record_conclude(again, record_claim_of_a_push.epoch - 1,
			     FAILURE_CODE_RUNNER_LOST, "gone", NOW, &how),
	    0);
	assert_int_equal(how, RECORD_CONCLUDED);
	assert_int_equal(record_run_get(again, a, &run), 0);
	assert_int_equal(run.status, RUN_STATUS_FAILED);
	assert_int_equal(run.failure_code, FAILURE_CODE_RUNNER_LOST);
	record_free(again);
}

static void
a_copy_without_memory_says_so(void **state)
{
	struct place *p = *state;
	int r = E_NOMEM;
	long n;

	write_lines(p->rec, 100);
	assert_int_equal(record_flush(p->rec), 0);
	for (n = 0; r == E_NOMEM; n++) {
		struct record_copied done;

		mem_fault_arm(n);
		r = copy(p, &done);
		mem_fault_arm(-1);
		assert_true(r == 0 || r == E_NOMEM);
		if (r == E_NOMEM && has(p->to, "run.db")) {
			CLEANUP_FREE char *path = mem_format("%s/run.db", p->to);

			assert_false(has(p->to, "log.zst"));
			assert_int_equal(unlink(path), 0);
		}
	}
	assert_true(n > 5);
	assert_true(has(p->to, "log.zst"));
}

int
main(void)
{
#define OF_A_RUN(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		OF_A_RUN(a_copy_of_a_run_that_goes_on_has_its_log_to_the_last_line),
		OF_A_RUN(nothing_is_left_beside_a_store_that_nobody_has_open),
		OF_A_RUN(an_archive_that_power_loss_has_cut_is_copied_as_far_as_it_goes),
		OF_A_RUN(a_record_that_has_lost_its_archive_alone_is_no_record_that_is_gone),
		OF_A_RUN(a_record_that_is_not_there_or_was_copied_already_is_told),
		OF_A_RUN(a_run_that_the_backup_cut_short_begins_anew),
		OF_A_RUN(a_run_that_had_ended_in_the_backup_keeps_its_end),
		OF_A_RUN(an_older_ledger_ends_a_restored_run_and_no_other),
		OF_A_RUN(a_copy_without_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
