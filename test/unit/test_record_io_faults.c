/* The record of a run, with each call of the kernel for its archive failing in turn. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"
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
	int64_t stored; /* notes, or bytes, that were said to be */
	struct record *record;
	int printing;
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
	store_fault_arm(STORE_FAULT_NONE, 0);
	scratch_free(rig->base);
	free(rig->dir);
	free(rig);
	return 0;
}

static int
make_dir(struct rig *rig)
{
	free(rig->dir);
	rig->dir = mem_format("%s/%d", rig->base, rig->passes++);
	rig->stored = 0;
	must(rig->dir != NULL);
	return mkdir(rig->dir, 0700) < 0 ? E_SYS : 0;
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

	err = make_dir(rig);
	if (err == 0)
		err = record_reserve_make(rig->dir);
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

/* ---- what a run prints ---- */

#define CHUNKS    8 /* of the largest size: enough for a batch whose text the archive has alone */
#define BATCHES   5
#define SMALL_CAP ((int64_t)300 << 10)

/* A byte of the text, which a compressor cannot make small. */
static char
text_at(int64_t at)
{
	uint64_t x = (uint64_t)at * 0x9e3779b97f4a7c15u;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (char)('0' + (x >> 32) % 64);
}

/* As the recorder does: what could not be done is done again. */
static int
may_repeat(int err)
{
	return err == E_FULL || err == E_NOMEM || err == E_STORAGE;
}

/* Batch ${n}: in a hurry, as chunks that lie apart, as chunks in one piece, or as rows. */
static int
print_batch(struct rig *rig, struct record *r, int n)
{
	size_t size = CHUNK_MAX_BYTES, step = n == 1 ? size + 1 : size;
	CLEANUP_FREE char *text = mem_alloc(CHUNKS * step);
	struct record_row rows[CHUNKS];
	int err;

	for (size_t i = 0; i < CHUNKS; i++) {
		rows[i] = (struct record_row) { 0, LOG_STREAM_STDOUT, 1, text + i * step, size,
			NOW };
		for (size_t k = 0; k < size; k++)
			text[i * step + k] = text_at(rig->stored + (int64_t)(i * size + k));
	}
	record_set_hurry(r, n < 3);
	while (may_repeat(err = record_append(r, rows, CHUNKS)))
		;
	rig->stored += err == 0 ? (int64_t)(CHUNKS * size) : 0;
	return err;
}

static int
print_all(struct rig *rig, struct record *r)
{
	int err = 0;

	for (int n = 0; err == 0 && n < BATCHES; n++) {
		err = print_batch(rig, r, n);
		if (n % 2 == 0)
			while (err == 0 && may_repeat(err = record_flush(r)))
				err = 0;
	}
	while (err == 0 && may_repeat(err = record_finish_log(r)))
		err = 0;
	return err;
}

static int
print(void *arg)
{
	struct rig *rig = arg;
	CLEANUP_FREE char *why = NULL;
	int err;

	err = make_dir(rig);
	if (err == 0)
		err = record_open(rig->dir, SMALL_CAP, &rig->record, &why);
	if (err == 0)
		err = record_claim(rig->record, &record_claim_of_a_push, NOW);
	rig->printing = err == 0;
	return err == 0 ? print_all(rig, rig->record) : err;
}

static int64_t
size_of_archive(const struct rig *rig)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_ARCHIVE, rig->dir);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (int64_t)st.st_size;
}

static int64_t
end_of_frames(struct record *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_FRAME_LAST);

	assert_int_equal(stmt_step(st), 1);
	return stmt_int(st, 2) + stmt_int(st, 3);
}

/* Once it prints, no single failure is more than a delay. */
static void
all_is_printed(void *arg, int err)
{
	struct rig *rig = arg;
	CLEANUP(record_freep) struct record *r = TAKE_PTR(rig->record);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text t = { 0, 0, 0 };
	struct record_log log;

	if (!rig->printing)
		return;
	assert_int_equal(err, 0);
	assert_int_equal(rig->stored, BATCHES * CHUNKS * CHUNK_MAX_BYTES);
	assert_int_equal(record_log_get(r, &log), 0);
	assert_int_equal(log.total_bytes, rig->stored);
	assert_int_equal(log.next_seq, BATCHES * CHUNKS + 1);
	assert_int_equal(log.archived_seq, log.next_seq - 1);
	while (t.next_seq == 0)
		assert_int_equal(record_text_get(r, t.next_byte, (size_t)1 << 20, &out, &t), 0);
	assert_int_equal(out.len, rig->stored);
	for (size_t i = 0; i < out.len; i++)
		assert_int_equal(((char *)out.data)[i], text_at((int64_t)i));
	/* Nothing of what failed is left behind the frames. */
	assert_int_equal(size_of_archive(rig), end_of_frames(r));
}

static void
no_failed_call_costs_a_byte_of_what_a_run_prints(void **state)
{
	int fds = scratch_open_fds();

	assert_true(io_starve(print, *state, 1, all_is_printed) > 10);
	assert_int_equal(scratch_open_fds(), fds);
}

/* ---- a sync that fails ---- */

/* Calls of the kernel until a sync has succeeded, each of which fails once before. */
static int
ncalls_of_a_sync(struct archive *a)
{
	int r = E_STORAGE, n;

	for (n = 0; r < 0; n++) {
		io_fault_arm(n, EIO);
		r = archive_sync(a);
		assert_int_equal(r, io_fault_hit() ? E_STORAGE : 0);
		io_fault_arm(-1, 0);
	}
	return n - 1;
}

/* The kernel tells of it once, and takes the pages for written: the same call alone would succeed,
 * and be a lie. */
static void
what_a_sync_could_not_bring_to_disk_is_written_anew(void **state)
{
	const struct rig *rig = *state;
	CLEANUP(io_closep) int dir = open(rig->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(archive_freep) struct archive *a = NULL;
	struct archive_frame first, second;

	assert_int_equal(archive_open(dir, "log", NULL, 0, &a), 0);
	assert_int_equal(archive_put_frame(a, "on disk", 7, &first), 0);
	assert_int_equal(archive_sync(a), 0);
	assert_int_equal(archive_put_frame(a, "in doubt", 8, &second), 0);
	/* Itself; then reading, writing, and itself. */
	assert_int_equal(ncalls_of_a_sync(a), 3);
	io_fault_arm(0, EIO);
	assert_int_equal(archive_sync(a), E_STORAGE);
	io_fault_arm(-1, 0);
	/* Also when the archive goes back, in which case there is nothing left to be read. */
	assert_int_equal(archive_go_back(a, &first, 7), 0);
	assert_int_equal(archive_sync(a), 0);
	assert_int_equal(archive_put_frame(a, "again", 5, &second), 0);
	assert_int_equal(second.file_offset, first.file_offset + first.file_size);
	assert_int_equal(second.first_byte, 7);
	assert_int_equal(archive_sync(a), 0);
}

#ifdef ANVIL_FAULTS

static int64_t
log_bytes(struct record *r)
{
	int64_t db, log;

	store_sizes(r->store, &db, &log);
	return log;
}

static void
on_alarm(int sig)
{
	(void)sig;
}

/* A signal ends the wait for another connection, which would take seconds. */
static void
set_alarms(int on)
{
	struct sigaction act = { .sa_handler = on ? on_alarm : SIG_IGN };
	struct itimerval each = { { 0, on * 10000 }, { 0, on * 10000 } };

	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
}

/* A record that is read meanwhile, as a backup does: its log cannot begin anew. */
static int
note_beside_a_reader(struct record *r, const char *dir)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_DB, dir);
	CLEANUP(store_closep) struct store *reader = NULL;
	int err;

	assert_non_null(path);
	assert_int_equal(store_open_reader(&record_store_desc, path, 0, &reader), 0);
	assert_int_equal(store_begin(reader), 0);
	assert_int_equal(store_exec(reader, "PRAGMA user_version"), 0);
	set_alarms(1);
	err = record_note(r, 0, "and one more", NOW);
	set_alarms(0);
	return err;
}

/* The same of run.db, whose log goes on behind what the kernel may have lost of it. */
static void
after_a_failed_commit_the_log_of_the_store_begins_anew(void **state)
{
	const struct rig *rig = *state;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP_FREE char *why = NULL;
	struct record_log log;
	int64_t before;

	assert_int_equal(record_open(rig->base, CAP, &r, &why), 0);
	assert_int_equal(record_claim(r, &record_claim_of_a_push, NOW), 0);
	assert_int_equal(record_note(r, 0, "may not be on disk", NOW), 0);
	before = log_bytes(r);
	store_fault_arm(STORE_FAULT_SYNC, 0);
	assert_int_equal(record_begin(r, NOW), E_STORAGE);
	/* Nor is anything stored until that is made sure of. */
	assert_int_equal(record_note(r, 0, "and one more", NOW), E_STORAGE);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(note_beside_a_reader(r, rig->base), E_STORAGE);
	assert_int_equal(record_note(r, 0, "and one more", NOW), 0);
	assert_true(log_bytes(r) < before);
	before = log_bytes(r);
	assert_int_equal(record_begin(r, NOW), 0);
	assert_true(log_bytes(r) > before);
	assert_int_equal(record_log_get(r, &log), 0);
	assert_int_equal(log.next_seq, 3);
}

/* In a process that ends as one that is killed does. */
static void
leave_a_log(const char *dir)
{
	struct record *r = NULL;
	CLEANUP_FREE char *why = NULL;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(record_open(dir, CAP, &r, &why) < 0 ||
		    record_claim(r, &record_claim_of_a_push, NOW) < 0 ||
		    record_note(r, 0, "may not be on disk", NOW) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
on_a_log_that_another_process_has_left_nothing_rests(void **state)
{
	const struct rig *rig = *state;
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP_FREE char *why = NULL;
	struct record_log log;
	int64_t before;

	leave_a_log(rig->base);
	assert_int_equal(record_open(rig->base, CAP, &r, &why), 0);
	before = log_bytes(r);
	assert_true(before > 0);
	assert_int_equal(record_note(r, 0, "and one more", NOW), 0);
	assert_true(log_bytes(r) < before);
	assert_int_equal(record_log_get(r, &log), 0);
	assert_int_equal(log.next_seq, 3);
}

#endif

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_outlives_every_failed_call),
		TEST(what_a_sync_could_not_bring_to_disk_is_written_anew),
#ifdef ANVIL_FAULTS
		TEST(after_a_failed_commit_the_log_of_the_store_begins_anew),
		TEST(on_a_log_that_another_process_has_left_nothing_rests),
#endif
		TEST(no_failed_call_costs_a_byte_of_what_a_run_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
