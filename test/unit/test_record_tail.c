#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"

#define NOW   1700000000000
#define BIG   ((int64_t)1 << 40)
#define CHUNK ((size_t)CHUNK_MAX_BYTES)

static char dir[64];
static struct record *rec;
static struct arena *arena;
static struct buf model; /* All text that was appended. */

static const struct record_claim claim = {
	.run_id = "run_0123456789abcdefghijAB",
	.project_id = "prj_0123456789abcdefghijAB",
	.owner_slug = "ada",
	.project_slug = "engine",
	.trigger_type = TRIGGER_TYPE_WEBHOOK,
	.branch = "main",
	.queued_at_ms = NOW,
	.epoch = 1,
	.spawn_id = "00112233445566778899aabbccddeeff",
	.sandbox = "none",
};

static void
reopen(int64_t cap)
{
	char *why = NULL;

	rec = record_free(rec);
	if (record_open(dir, cap, &rec, &why) < 0)
		fail_msg("%s", why);
	assert_int_equal(record_claim(rec, &claim, NOW), 0);
}

static int
make_record(void **state)
{
	(void)state;
	buf_reset(&model);
	(void)snprintf(dir, sizeof(dir), "/tmp/anvil-tail-XXXXXX");
	arena = arena_new();
	if (mkdtemp(dir) == NULL || arena == NULL)
		return -1;
	reopen(BIG);
	return 0;
}

static int
remove_record(void **state)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "log.zst" };
	char path[96];

	(void)state;
	rec = record_free(rec);
	arena = arena_free(arena);
	buf_done(&model);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	return rmdir(dir);
}

static struct record_log
counts(void)
{
	struct record_log log;

	assert_int_equal(record_log_get(rec, &log), 0);
	return log;
}

/* One batch of ${n} chunks of ${size} bytes, different everywhere. */
static int
try_append(size_t n, size_t size)
{
	struct record_row rows[64];
	size_t base = model.len;
	int64_t seq = counts().next_seq;
	int err;

	assert_true(n <= ARRAY_LEN(rows));
	for (size_t i = 0; i < n * size; i++)
		assert_int_equal(buf_add_byte(&model,
				     (uint8_t)("0123456789abcdef\n"[(base + i) * 7 / 5 % 17])),
		    0);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct record_row) { 0,
			i % 2 != 0 ? LOG_STREAM_STDERR : LOG_STREAM_STDOUT, 1,
			(const char *)model.data + base + i * size, size, NOW + (int64_t)i };
	err = record_append(rec, rows, n);
	if (err < 0)
		model.len = base;
	for (size_t i = 0; err == 0 && i < n; i++)
		assert_int_equal(rows[i].seq, seq + (int64_t)i);
	return err;
}

static void
append(size_t n, size_t size)
{
	assert_int_equal(try_append(n, size), 0);
}

/* Reads the whole log from ${from} on in steps of ${max}. */
static void
read_all(int64_t from, size_t max, struct buf *out, struct record_text *t)
{
	*t = (struct record_text) { from, 0, 0 };
	while (t->next_seq == 0) {
		int64_t before = t->next_byte;

		assert_int_equal(record_text_get(rec, before, max, out, t), 0);
		assert_true(t->next_seq != 0 || t->next_byte > before);
	}
	assert_int_equal(t->next_seq, counts().next_seq);
}

static void
expect_model(int64_t from, size_t max)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text t;

	read_all(from, max, &out, &t);
	assert_int_equal(t.next_byte, model.len);
	assert_int_equal(out.len, model.len - (size_t)from);
	if (out.len != 0)
		assert_memory_equal(out.data, model.data + from, out.len);
}

static void
an_empty_log_reads_as_nothing(void **state)
{
	struct record_row *rows;
	size_t n = 9;

	(void)state;
	expect_model(0, 100);
	assert_int_equal(record_flush(rec), 0);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(record_rows_get(rec, arena, 0, 100, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(record_rows_newest(rec, arena, 100, &rows, &n), 0);
	assert_int_equal(n, 0);
}

static void
rows_keep_what_they_were_given(void **state)
{
	struct record_row in[] = {
		{ 0, LOG_STREAM_STDOUT, 2, "a\0b", 3, NOW + 1 },
		{ 0, LOG_STREAM_STDERR, 0, "\xe2\x82\xac", 3, NOW + 2 },
	};
	struct record_row *rows;
	size_t n;

	(void)state;
	assert_int_equal(record_append(rec, in, 2), 0);
	assert_int_equal(record_rows_get(rec, arena, 1, 100, &rows, &n), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].seq, i + 1);
		assert_int_equal(rows[i].stream, in[i].stream);
		assert_int_equal(rows[i].step, in[i].step);
		assert_int_equal(rows[i].created_at_ms, in[i].created_at_ms);
		assert_int_equal(rows[i].n, in[i].n);
		assert_memory_equal(rows[i].chunk, in[i].chunk, in[i].n);
	}
	assert_int_equal(record_rows_get(rec, arena, 2, 1, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].seq, 2);
	assert_int_equal(record_rows_get(rec, arena, 1, 5, &rows, &n), 0);
	assert_int_equal(n, 1);
}

static void
seq_goes_on_after_a_restart(void **state)
{
	(void)state;
	append(3, 10);
	reopen(BIG);
	append(2, 10);
	assert_int_equal(counts().next_seq, 6);
	expect_model(0, 7);
}

static void
the_hot_tail_keeps_two_mebibytes(void **state)
{
	struct record_log log;
	struct record_row *rows;
	size_t n;

	(void)state;
	for (int i = 0; i < 10; i++)
		append(64, CHUNK);
	log = counts();
	assert_int_equal(log.total_bytes, 10 << 20);
	assert_true(log.hot_bytes <= RECORD_HOT_BYTES);
	assert_true(log.hot_bytes > RECORD_HOT_BYTES - (int64_t)CHUNK);
	assert_int_equal(log.first_seq, log.dropped_bytes / (int64_t)CHUNK + 1);
	assert_true(log.archived_seq + 1 >= log.first_seq);
	assert_int_equal(record_rows_get(rec, arena, 1, 1, &rows, &n), 0);
	assert_int_equal(rows[0].seq, log.first_seq);
	expect_model(0, 1 << 20);
	expect_model(3333333, 1 << 18);
}

static void
small_pieces_read_back_at_any_step(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		append(5, 11 + (size_t)i);
		if (i % 3 == 0)
			assert_int_equal(record_flush(rec), 0);
	}
	for (size_t max = 1; max < 40; max++)
		expect_model(0, max);
	for (int64_t from = 0; from <= (int64_t)model.len; from += 13)
		expect_model(from, 1000);
}

/* More frames than one query of the reader gives, and than one transaction takes. */
static void
many_frames_read_back(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		append(1, 100);
		assert_int_equal(record_flush(rec), 0);
	}
	assert_int_equal(counts().archived_seq, 200);
	expect_model(0, 1 << 20);
	expect_model(50, 3000);
}

static void
a_killed_run_loses_no_stored_line(void **state)
{
	struct archive_frame unrecorded;

	(void)state;
	append(10, 1000);
	assert_int_equal(record_flush(rec), 0);
	append(10, 1000);
	/* As if killed between the frame and its row. */
	assert_int_equal(archive_close_frame(rec->archive, &unrecorded), 1);
	reopen(BIG);
	expect_model(0, 5000);
	append(10, 1000);
	assert_int_equal(record_finish_log(rec), 0);
	expect_model(0, 5000);
	assert_int_equal(counts().archived_seq, 30);
	assert_int_equal(counts().archived_bytes, 30000);
}

static void
a_finished_log_is_all_in_the_archive_and_takes_more_lines(void **state)
{
	(void)state;
	append(10, 1000);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(counts().archived_seq, 10);
	append(1, 100);
	expect_model(0, 100000);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(counts().archived_seq, 11);
	expect_model(0, 100000);
}

/* ---- the cap ---- */

/* What a reader of a capped log gets, also when it asks in pieces. */
static void
expect_capped(int64_t head, int64_t omitted)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT, want = BUF_INIT;
	struct record_text t;
	size_t tail = (size_t)(head + omitted);

	read_all(0, (size_t)64 << 20, &out, &t);
	(void)buf_add(&want, model.data, (size_t)head);
	if (want.len != 0 && want.data[want.len - 1] != '\n')
		(void)buf_add_byte(&want, '\n');
	(void)buf_printf(&want, "[anvil: %lld bytes omitted]\n", (long long)omitted);
	(void)buf_add(&want, model.data + tail, model.len - tail);
	assert_int_equal(out.len, want.len);
	assert_memory_equal(out.data, want.data, want.len);
	assert_int_equal(t.next_byte, model.len);
	buf_reset(&out);
	read_all((int64_t)tail, 100000, &out, &t);
	assert_int_equal(out.len, model.len - tail);
	assert_memory_equal(out.data, model.data + tail, out.len);
}

static void
a_capped_log_keeps_its_head_and_its_last_mebibyte(void **state)
{
	const int64_t head = 300000 / (int64_t)CHUNK * (int64_t)CHUNK;
	struct record_log log;

	(void)state;
	reopen(300000);
	for (int i = 0; i < 8; i++) {
		append(64, CHUNK);
		assert_true(counts().hot_bytes <= RECORD_HOT_BYTES + RECORD_BATCH_BYTES);
	}
	assert_true(record_is_capped(rec));
	log = counts();
	assert_int_equal(log.archived_bytes, head);
	/* While it goes on, the rows that are still hot follow the head. */
	assert_int_equal(log.omitted_bytes, log.dropped_bytes - head);
	expect_capped(head, log.omitted_bytes);
	assert_int_equal(record_finish_log(rec), 0);
	log = counts();
	assert_int_equal(log.omitted_bytes, log.total_bytes - RECORD_TAIL_BYTES - head);
	assert_int_equal(log.archived_bytes, head + RECORD_TAIL_BYTES);
	expect_capped(head, log.omitted_bytes);
	append(1, 100);
	assert_int_equal(record_finish_log(rec), 0);
	expect_capped(head, log.omitted_bytes);
	reopen(300000);
	expect_capped(head, log.omitted_bytes);
	append(1, 100);
	assert_int_equal(record_finish_log(rec), 0);
	expect_capped(head, log.omitted_bytes);
}

static void
a_capped_log_stays_capped_after_a_restart(void **state)
{
	(void)state;
	reopen(300000);
	for (int i = 0; i < 4; i++)
		append(64, CHUNK);
	reopen(300000);
	append(1, 10); /* Would fit behind the head. */
	assert_true(record_is_capped(rec));
	expect_capped(300000 / (int64_t)CHUNK * (int64_t)CHUNK, counts().omitted_bytes);
	assert_int_equal(record_finish_log(rec), 0);
	expect_capped(300000 / (int64_t)CHUNK * (int64_t)CHUNK, counts().omitted_bytes);
}

static void
a_log_a_little_over_the_cap_loses_nothing(void **state)
{
	(void)state;
	reopen(100000);
	append(20, 10000);
	assert_true(record_is_capped(rec));
	expect_model(0, 1 << 20);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(counts().omitted_bytes, 0);
	assert_int_equal(counts().archived_bytes, 200000);
	expect_model(0, 1 << 20);
}

static void
a_cap_below_the_first_chunk_keeps_the_tail_alone(void **state)
{
	(void)state;
	reopen(10);
	for (int i = 0; i < 4; i++)
		append(64, CHUNK);
	assert_int_equal(counts().archived_bytes, 0);
	expect_capped(0, counts().omitted_bytes);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(counts().omitted_bytes, 3 << 20);
	expect_capped(0, 3 << 20);
}

/* ---- run detail ---- */

static void
the_newest_rows_fit_the_bytes_asked_for(void **state)
{
	struct record_row *rows;
	size_t n;

	(void)state;
	append(10, 1000);
	assert_int_equal(record_rows_newest(rec, arena, 3500, &rows, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(rows[0].seq, 8);
	assert_int_equal(rows[2].seq, 10);
	assert_int_equal(record_rows_newest(rec, arena, 999, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(record_rows_newest(rec, arena, 0, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(record_rows_newest(rec, arena, 1 << 20, &rows, &n), 0);
	assert_int_equal(n, 10);
}

static void
escapes_count_as_they_are_encoded(void **state)
{
	static char controls[CHUNK_MAX_BYTES];
	struct record_row in[64];
	struct record_row *rows;
	size_t n;

	(void)state;
	memset(controls, 1, sizeof(controls));
	for (int batch = 0; batch < 2; batch++) {
		for (size_t i = 0; i < 64; i++)
			in[i] = (struct record_row) { 0, LOG_STREAM_STDOUT, 1, controls, CHUNK,
				NOW };
		assert_int_equal(record_append(rec, in, 64), 0);
	}
	assert_int_equal(record_rows_newest(rec, arena, 2 << 20, &rows, &n), 0);
	assert_in_range(n, 80, RECORD_DETAIL_BYTES / (6 * CHUNK));
}

static void
a_line_ends_with_a_newline_and_is_cut_into_chunks(void **state)
{
	CLEANUP_FREE char *text = mem_calloc(1, 40001);
	struct record_row *rows;
	size_t n;

	(void)state;
	memset(text, 'x', 40000);
	assert_int_equal(record_note(rec, 0, "done", NOW), 0);
	assert_int_equal(record_note(rec, 0, "", NOW), 0);
	assert_int_equal(record_note(rec, 3, text, NOW), 0);
	assert_int_equal(record_rows_get(rec, arena, 1, 1 << 20, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(rows[0].n, 5);
	assert_memory_equal(rows[0].chunk, "done\n", 5);
	assert_int_equal(rows[1].n, 1);
	assert_memory_equal(rows[1].chunk, "\n", 1);
	assert_int_equal(rows[2].n, CHUNK);
	assert_int_equal(rows[4].n, 40001 - 2 * CHUNK);
	assert_int_equal(rows[4].step, 3);
	assert_int_equal(rows[4].stream, LOG_STREAM_SYSTEM);
}

static void
complete_means_all_was_read_and_the_run_has_ended(void **state)
{
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_RUN_TIMEOUT,
		.error_message = "late" };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text t;

	(void)state;
	append(2, 10);
	assert_int_equal(record_text_get(rec, 0, 100, &out, &t), 0);
	assert_int_equal(t.next_seq, 3);
	assert_false(t.complete);
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(record_finish(rec, &o, NOW), 0);
	assert_int_equal(record_text_get(rec, 0, 5, &out, &t), 0);
	assert_int_equal(t.next_seq, 0);
	assert_false(t.complete);
	assert_int_equal(record_text_get(rec, t.next_byte, 100, &out, &t), 0);
	assert_true(t.complete);
	assert_int_equal(record_text_get(rec, 4711, 100, &out, &t), 0);
	assert_int_equal(t.next_byte, 20);
	assert_true(t.complete);
}

static void
any_sequence_of_appends_flushes_and_restarts_reads_back(void **state)
{
	unsigned seed = 3;

	for (int round = 0; round < 6; round++) {
		assert_int_equal(make_record(state), 0);
		for (int i = 0; i < 50; i++) {
			switch (rand_r(&seed) % 10) {
			case 0: assert_int_equal(record_flush(rec), 0); break;
			case 1: reopen(BIG); break;
			case 2: assert_int_equal(record_finish_log(rec), 0); break;
			case 3: append(60, CHUNK); break;
			default:
				append(1 + (size_t)rand_r(&seed) % 60,
				    1 + (size_t)rand_r(&seed) % 3000);
			}
		}
		expect_model(0, 1 << 20);
		expect_model(rand_r(&seed) % (int)model.len, 100000);
		assert_int_equal(record_finish_log(rec), 0);
		assert_int_equal(counts().archived_bytes, model.len);
		expect_model(0, 1 << 19);
		assert_int_equal(remove_record(state), 0);
	}
}

/* Failing allocations anywhere: what was told to be stored reads back, once and in order. */
static void
a_starved_log_is_whole_when_it_is_fed_again(void **state)
{
	int hits = 0;

	(void)state;
	for (long n = 0; n < 60; n++) {
		int err;

		assert_int_equal(buf_reserve(&model, 1000), 0);
		mem_fault_arm(n % 12);
		err = try_append(1, 17);
		if (err == 0 && n % 5 == 0)
			err = record_flush(rec);
		hits += mem_fault_hit();
		mem_fault_arm(-1);
		assert_true(err == 0 || err == E_NOMEM);
		expect_model(0, 100);
	}
	assert_true(hits > 0);
}

#ifdef ANVIL_FAULTS

static void
a_full_disk_stores_nothing_and_the_log_goes_on_when_there_is_room(void **state)
{
	long failed = 0;

	(void)state;
	for (long n = 0; n < 40; n++) {
		const struct record_log before = counts();
		int err;

		store_fault_arm(STORE_FAULT_FULL, n);
		err = try_append(20, 3000);
		failed += err == E_FULL;
		assert_true(err == 0 || err == E_FULL);
		store_fault_arm(STORE_FAULT_NONE, 0);
		assert_int_equal(counts().next_seq, before.next_seq + (err == 0 ? 20 : 0));
		append(1, 10);
		if (n % 4 == 0)
			assert_int_equal(record_flush(rec), 0);
	}
	assert_true(failed > 10);
	expect_model(0, 1 << 20);
	assert_int_equal(record_finish_log(rec), 0);
	expect_model(0, 1 << 20);
}

/* Whether the batch stands is unknown until the store is opened again; then it stands whole
 * or not at all. */
static void
an_io_error_leaves_a_batch_whole_or_absent(void **state)
{
	long failed = 0;

	(void)state;
	for (long n = 0; n < 12; n++) {
		const struct record_log before = counts();
		int err;

		append(1, 10);
		store_fault_arm(STORE_FAULT_IO, n);
		err = try_append(20, 3000);
		store_fault_arm(STORE_FAULT_NONE, 0);
		assert_true(err == 0 || err == E_STORAGE);
		failed += err < 0;
		reopen(BIG);
		if (err < 0 && counts().next_seq == before.next_seq + 21)
			model.len += 20 * 3000;
		expect_model(0, 1 << 20);
	}
	assert_true(failed > 3);
}

static void
an_end_that_met_a_full_disk_can_be_repeated(void **state)
{
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_DISK_FULL,
		.error_message = "The server's disk is full." };
	struct record_run run;

	(void)state;
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(record_finish(rec, &o, NOW + 1), E_FULL);
	assert_int_equal(record_run_get(rec, arena, &run), 0);
	assert_int_equal(run.status, RUN_STATUS_STARTING);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(record_finish(rec, &o, NOW + 2), 0);
	assert_int_equal(record_run_get(rec, arena, &run), 0);
	assert_int_equal(run.finished_at_ms.v, NOW + 2);
}

#endif

#define WITH_RECORD(t) cmocka_unit_test_setup_teardown(t, make_record, remove_record)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RECORD(an_empty_log_reads_as_nothing),
		WITH_RECORD(rows_keep_what_they_were_given),
		WITH_RECORD(seq_goes_on_after_a_restart),
		WITH_RECORD(the_hot_tail_keeps_two_mebibytes),
		WITH_RECORD(small_pieces_read_back_at_any_step),
		WITH_RECORD(many_frames_read_back),
		WITH_RECORD(a_killed_run_loses_no_stored_line),
		WITH_RECORD(a_finished_log_is_all_in_the_archive_and_takes_more_lines),
		WITH_RECORD(a_capped_log_keeps_its_head_and_its_last_mebibyte),
		WITH_RECORD(a_capped_log_stays_capped_after_a_restart),
		WITH_RECORD(a_log_a_little_over_the_cap_loses_nothing),
		WITH_RECORD(a_cap_below_the_first_chunk_keeps_the_tail_alone),
		WITH_RECORD(the_newest_rows_fit_the_bytes_asked_for),
		WITH_RECORD(escapes_count_as_they_are_encoded),
		WITH_RECORD(a_line_ends_with_a_newline_and_is_cut_into_chunks),
		WITH_RECORD(complete_means_all_was_read_and_the_run_has_ended),
		cmocka_unit_test(any_sequence_of_appends_flushes_and_restarts_reads_back),
		WITH_RECORD(a_starved_log_is_whole_when_it_is_fed_again),
#ifdef ANVIL_FAULTS
		WITH_RECORD(a_full_disk_stores_nothing_and_the_log_goes_on_when_there_is_room),
		WITH_RECORD(an_io_error_leaves_a_batch_whole_or_absent),
		WITH_RECORD(an_end_that_met_a_full_disk_can_be_repeated),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
