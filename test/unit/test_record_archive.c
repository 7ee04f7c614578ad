#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/archive.h"

#define NAME       "log.zst"
#define FRAMES_MAX 64

static char dir[64];
static int dirfd_;

/* What a caller keeps as rows of log_frames. */
static struct archive_frame rows[FRAMES_MAX];
static size_t nrows;
static const struct archive_gap no_gap;

static int
make_dir(void **state)
{
	(void)state;
	nrows = 0;
	(void)snprintf(dir, sizeof(dir), "/tmp/anvil-archive-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_ < 0 ? -1 : 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	(void)unlinkat(dirfd_, NAME, 0);
	io_close(&dirfd_);
	return rmdir(dir);
}

static struct archive *
opened(int64_t next_byte)
{
	struct archive *a = NULL;

	assert_int_equal(
	    archive_open(dirfd_, NAME, nrows != 0 ? &rows[nrows - 1] : NULL, next_byte, &a), 0);
	return a;
}

static void
note(int r, const struct archive_frame *f)
{
	assert_true(r >= 0);
	if (r == 1)
		rows[nrows++] = *f;
}

static void
append(struct archive *a, const char *text, size_t n)
{
	struct archive_frame f;

	note(archive_append(a, text, n, &f), &f);
}

static void
close_frame(struct archive *a)
{
	struct archive_frame f;

	note(archive_close_frame(a, &f), &f);
}

/* Text of ${n} bytes that differs from place to place. */
static char *
make_text(size_t n)
{
	char *text = mem_alloc(n + 32);

	assert_non_null(text);
	for (size_t at = 0; at < n; at += 13)
		(void)snprintf(text + at, 32, "line %07zx\n", at);
	text[n] = '\0';
	return text;
}

static void
expect_read(int64_t end, struct archive_gap gap, int64_t from, size_t max, const char *want,
    int64_t next)
{
	const struct archive_range range = { rows, nrows, end, gap };
	CLEANUP(archive_reader_freep) struct archive_reader *r = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int64_t got_next = -1;

	assert_int_equal(archive_reader_open(dirfd_, NAME, &r), 0);
	assert_int_equal(archive_read(r, &range, from, max, &out, &got_next), 0);
	assert_string_equal(buf_cstr(&out), want);
	assert_int_equal(got_next, next);
}

static void
text_reads_back_from_every_place(void **state)
{
	size_t n = 3 * ARCHIVE_FRAME_BYTES + 5000;
	CLEANUP_FREE char *text = make_text(n);
	CLEANUP(archive_freep) struct archive *a = opened(0);
	CLEANUP(archive_reader_freep) struct archive_reader *r = NULL;
	struct archive_range all = { rows, 0, (int64_t)n, no_gap };

	(void)state;
	for (size_t at = 0; at < n; at += 10000)
		append(a, text + at, min_size(10000, n - at));
	assert_int_equal(archive_next_byte(a), n);
	close_frame(a);
	assert_int_equal(archive_waiting(a), 0);
	assert_int_equal(archive_sync(a), 0);
	assert_int_equal(nrows, 4);
	for (size_t i = 0; i < nrows; i++) {
		assert_true(rows[i].text_size <= (int64_t)ARCHIVE_FRAME_BYTES);
		assert_int_equal(rows[i].first_byte,
		    i == 0 ? 0 : rows[i - 1].first_byte + rows[i - 1].text_size);
	}
	all.nframes = nrows;
	assert_int_equal(archive_reader_open(dirfd_, NAME, &r), 0);
	for (size_t max = 1000; max <= 4 * ARCHIVE_FRAME_BYTES; max *= 7) {
		int64_t at = 0;

		while (at < (int64_t)n) {
			CLEANUP(buf_done) struct buf out = BUF_INIT;
			int64_t next = 0;

			assert_int_equal(archive_read(r, &all, at, max, &out, &next), 0);
			assert_int_equal(next - at, min_size(max, n - (size_t)at));
			assert_int_equal(out.len, next - at);
			assert_memory_equal(out.data, text + at, out.len);
			at = max > 20000 ? next : next + 300000;
		}
	}
}

static void
reads_end_between_characters(void **state)
{
	CLEANUP(archive_freep) struct archive *a = opened(0);

	(void)state;
	append(a,
	    "a\xe2\x82\xac\xe2\x82\xac"
	    "b",
	    8);
	close_frame(a);
	expect_read(8, no_gap, 0, 3, "a", 1);
	expect_read(8, no_gap, 0, 4, "a\xe2\x82\xac", 4);
	expect_read(8, no_gap, 1, 1, "\xe2\x82\xac", 4);
	expect_read(8, no_gap, 2, 9,
	    "\xe2\x82\xac"
	    "b",
	    8);
	expect_read(8, no_gap, 8, 9, "", 8);
}

static void
a_frame_closes_before_text_that_does_not_fit(void **state)
{
	CLEANUP_FREE char *text = make_text(ARCHIVE_FRAME_BYTES);
	CLEANUP(archive_freep) struct archive *a = opened(0);
	struct archive_frame f;

	(void)state;
	assert_int_equal(archive_append(a, text, ARCHIVE_FRAME_BYTES - 10, &f), 0);
	assert_int_equal(archive_append(a, "0123456789", 10, &f), 0);
	assert_int_equal(archive_append(a, "x", 1, &f), 1);
	assert_int_equal(f.text_size, ARCHIVE_FRAME_BYTES);
	assert_int_equal(archive_waiting(a), 1);
	assert_int_equal(archive_close_frame(a, &f), 1);
	assert_int_equal(archive_close_frame(a, &f), 0);
}

static void
an_unrecorded_tail_is_cut_on_open(void **state)
{
	CLEANUP(archive_freep) struct archive *a = opened(0);
	struct archive_frame lost;
	struct stat st;

	(void)state;
	append(a, "first\n", 6);
	close_frame(a);
	append(a, "second\n", 7);
	assert_int_equal(archive_close_frame(a, &lost), 1); /* Killed before the row. */
	a = archive_free(a);
	a = opened(6);
	assert_int_equal(fstatat(dirfd_, NAME, &st, 0), 0);
	assert_int_equal(st.st_size, lost.file_offset);
	append(a, "second\n", 7);
	close_frame(a);
	expect_read(13, no_gap, 0, 100, "first\nsecond\n", 13);
}

static void
three_small_frames(void)
{
	CLEANUP(archive_freep) struct archive *a = opened(0);

	for (int i = 0; i < 3; i++) {
		char line[16];

		append(a, line, (size_t)snprintf(line, sizeof(line), "frame %d\n", i));
		close_frame(a);
	}
}

#define DAMAGED(n) "[anvil: " n " bytes of the log are damaged or missing and left out]\n"

static void
a_damaged_frame_is_left_out_and_named(void **state)
{
	int fd;

	(void)state;
	three_small_frames();
	fd = openat(dirfd_, NAME, O_RDWR | O_CLOEXEC);
	for (int64_t i = 0; i < rows[1].file_size; i++) {
		uint8_t was, is;

		assert_int_equal(pread(fd, &was, 1, rows[1].file_offset + i), 1);
		is = was ^ 0x40;
		assert_int_equal(pwrite(fd, &is, 1, rows[1].file_offset + i), 1);
		expect_read(24, no_gap, 0, 1000, "frame 0\n" DAMAGED("8") "frame 2\n", 24);
		assert_int_equal(pwrite(fd, &was, 1, rows[1].file_offset + i), 1);
	}
	expect_read(24, no_gap, 0, 1000, "frame 0\nframe 1\nframe 2\n", 24);
	io_close(&fd);
}

static void
neighbouring_holes_are_named_in_one_line(void **state)
{
	(void)state;
	three_small_frames();
	assert_int_equal(truncate((snprintf(dir + strlen(dir), 16, "/%s", NAME), dir),
			     rows[1].file_offset + 3),
	    0);
	*strrchr(dir, '/') = '\0';
	expect_read(24, no_gap, 0, 1000, "frame 0\n" DAMAGED("16"), 24);
	expect_read(24, no_gap, 4, 1000, "e 0\n" DAMAGED("16"), 24);
	expect_read(24, no_gap, 10, 1000, DAMAGED("14"), 24);
	expect_read(24, no_gap, 0, 7, "frame 0", 7);
	assert_int_equal(unlinkat(dirfd_, NAME, 0), 0);
	expect_read(24, no_gap, 0, 1000, DAMAGED("24"), 24);
}

static void
a_row_that_makes_no_sense_is_a_hole(void **state)
{
	(void)state;
	three_small_frames();
	rows[0].text_size = 7;
	rows[2].file_size = (int64_t)1 << 40;
	expect_read(24, no_gap, 0, 1000, DAMAGED("8") "frame 1\n" DAMAGED("8"), 24);
	rows[1].file_offset = -5;
	expect_read(24, no_gap, 0, 1000, DAMAGED("24"), 24);
}

static void
a_missing_row_is_a_hole(void **state)
{
	(void)state;
	three_small_frames();
	rows[1] = rows[2];
	nrows = 2;
	expect_read(24, no_gap, 0, 1000, "frame 0\n" DAMAGED("8") "frame 2\n", 24);
	nrows = 1;
	expect_read(24, no_gap, 0, 1000, "frame 0\n" DAMAGED("16"), 24);
	nrows = 0;
	expect_read(24, no_gap, 3, 1000, DAMAGED("21"), 24);
}

static void
what_the_cap_left_out_is_one_line_between_head_and_tail(void **state)
{
	const struct archive_gap gap = { 4, 1000 };
	CLEANUP(archive_freep) struct archive *a = opened(0);
	CLEANUP_FREE char *cmd = NULL;
	FILE *zstdcat;
	char all[100] = "";

	(void)state;
	append(a, "head", 4);
	close_frame(a);
	assert_int_equal(archive_omit(a, 1000), 0);
	append(a, "tail\n", 5);
	close_frame(a);
	assert_int_equal(archive_next_byte(a), 1009);
	expect_read(1009, gap, 0, 100, "head\n[anvil: 1000 bytes omitted]\ntail\n", 1009);
	expect_read(1009, gap, 2, 100, "ad\n[anvil: 1000 bytes omitted]\ntail\n", 1009);
	expect_read(1009, gap, 500, 100, "[anvil: 1000 bytes omitted]\ntail\n", 1009);
	expect_read(1009, gap, 1004, 100, "tail\n", 1009);
	expect_read(1009, gap, 0, 3, "hea", 3);
	/* The file alone tells the same, to anybody who unpacks it. */
	cmd = mem_format("zstd -dc %s/%s 2>/dev/null", dir, NAME);
	zstdcat = popen(cmd, "r");
	assert_non_null(zstdcat);
	(void)!fread(all, 1, sizeof(all) - 1, zstdcat);
	if (pclose(zstdcat) == 0)
		assert_string_equal(all, "head\n[anvil: 1000 bytes omitted]\ntail\n");
}

/* Until the run ends, the gap lies between the head and the rows that are still hot. */
static void
a_gap_at_the_end_is_named_too(void **state)
{
	CLEANUP(archive_freep) struct archive *a = opened(0);

	(void)state;
	append(a, "head\n", 5);
	close_frame(a);
	expect_read(105, (struct archive_gap) { 5, 100 }, 0, 100,
	    "head\n[anvil: 100 bytes omitted]\n", 105);
}

static void
a_full_disk_changes_nothing_and_the_call_can_be_repeated(void **state)
{
	struct rlimit was, tight = { 40, 40 };
	CLEANUP_FREE char *text = make_text(200000);
	CLEANUP(archive_freep) struct archive *a = opened(0);
	struct archive_frame f;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	tight.rlim_max = was.rlim_max;
	append(a, text, 200000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_true(archive_close_frame(a, &f) < 0);
	assert_int_equal(archive_waiting(a), 200000);
	assert_true(archive_append(a, text, ARCHIVE_FRAME_BYTES - 100, &f) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(archive_waiting(a), 200000);
	close_frame(a);
	expect_read(200000, no_gap, 0, 200000, text, 200000);
}

static void
every_failed_allocation_changes_nothing(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct archive *a = NULL;
		struct archive_reader *r = NULL;
		struct archive_frame f = { 0 };
		int64_t next = 0;
		int err, hit;

		mem_fault_arm(n);
		err = archive_open(dirfd_, NAME, NULL, 0, &a);
		if (err == 0)
			err = archive_append(a, "text", 4, &f);
		if (err == 0)
			err = archive_close_frame(a, &f);
		if (err == 1)
			err = archive_reader_open(dirfd_, NAME, &r);
		if (err == 0)
			err = archive_read(r, &(struct archive_range) { &f, 1, 4, no_gap }, 0,
			    100, &out, &next);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(err, hit ? E_NOMEM : 0);
		archive_free(a);
		archive_reader_free(r);
		if (!hit)
			break;
	}
	assert_int_equal(n, 7);
}

#define WITH_DIR(t) cmocka_unit_test_setup_teardown(t, make_dir, remove_dir)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(text_reads_back_from_every_place),
		WITH_DIR(reads_end_between_characters),
		WITH_DIR(a_frame_closes_before_text_that_does_not_fit),
		WITH_DIR(an_unrecorded_tail_is_cut_on_open),
		WITH_DIR(a_damaged_frame_is_left_out_and_named),
		WITH_DIR(neighbouring_holes_are_named_in_one_line),
		WITH_DIR(a_row_that_makes_no_sense_is_a_hole),
		WITH_DIR(a_missing_row_is_a_hole),
		WITH_DIR(what_the_cap_left_out_is_one_line_between_head_and_tail),
		WITH_DIR(a_gap_at_the_end_is_named_too),
		WITH_DIR(a_full_disk_changes_nothing_and_the_call_can_be_repeated),
		WITH_DIR(every_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
