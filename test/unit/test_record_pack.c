/*
 * test/unit/test_record_pack.c -- output that comes faster than rows can be written: its text
 * is in the archive alone, and reads back as if it had rows, whatever happens to the writer.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"
#include "lib/record/pack.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NOW   1700000000000
#define BIG   ((int64_t)1 << 40)
#define CHUNK ((size_t)CHUNK_MAX_BYTES)
#define LINE  64 /* The model's text is of lines that tell where they are. */

extern const struct store_migration schema_run[];

static char *dir;
static struct record *rec;
static struct arena *arena;
static int64_t total; /* Bytes that were stored. */

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
	total = 0;
	dir = scratch_new();
	arena = arena_new();
	reopen(BIG);
	return 0;
}

static int
remove_record(void **state)
{
	(void)state;
	rec = record_free(rec);
	arena = arena_free(arena);
	scratch_free(dir);
	return 0;
}

static struct record_log
counts(void)
{
	struct record_log log;

	assert_int_equal(record_log_get(rec, &log), 0);
	return log;
}

static int64_t
nrows(void)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rec->store, STMT_LOG_FROM);
	int64_t n = 0;

	assert_int_equal(stmt_bind(st, "i", (int64_t)0), 0);
	while (stmt_step(st) > 0)
		n++;
	return n;
}

static int64_t
npacks(void)
{
	struct pack p;
	int64_t n = 0;

	for (int64_t seq = 0; pack_at(rec, seq, &p) > 0; seq = p.last_seq + 1)
		n++;
	return n;
}

/* The model's text from ${from} on. */
static void
fill_model(char *p, int64_t from, size_t n)
{
	char line[LINE + 1];

	for (size_t i = 0; i < n; i++) {
		int64_t at = from + (int64_t)i;

		if (i == 0 || at % LINE == 0)
			(void)snprintf(line, sizeof(line), "%-*lld\n", LINE - 1,
			    (long long)(at / LINE * 2654435761u % 1000000007));
		p[i] = line[at % LINE];
	}
}

static void
expect_text(const char *p, int64_t from, size_t n)
{
	CLEANUP_FREE char *want = mem_alloc(n + 1);

	fill_model(want, from, n);
	assert_memory_equal(p, want, n);
}

/* One batch of the model's next text; ${scattered}: its chunks are not neighbours. */
static int
try_append(size_t n, size_t size, int scattered)
{
	CLEANUP_FREE char *text = mem_alloc(2 * n * size + 1);
	CLEANUP_FREE struct record_row *rows = mem_calloc(n, sizeof(*rows));
	size_t step = scattered ? 2 * size : size;
	int64_t seq = rec->log.next_seq;
	int err;

	for (size_t i = 0; i < n; i++) {
		fill_model(text + i * step, total + (int64_t)(i * size), size);
		rows[i] = (struct record_row) { 0, LOG_STREAM_STDOUT, 1, text + i * step, size,
			NOW };
	}
	err = record_append(rec, rows, n);
	for (size_t i = 0; err == 0 && i < n; i++)
		assert_int_equal(rows[i].seq, seq + (int64_t)i);
	total += err == 0 ? (int64_t)(n * size) : 0;
	return err;
}

static void
append(size_t n, size_t size)
{
	assert_int_equal(try_append(n, size, 0), 0);
}

static void
expect_whole_text(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text t = { 0, 0, 0 };

	while (t.next_seq == 0)
		assert_int_equal(
		    record_text_get(rec, t.next_byte, (size_t)1 << 20, &out, &t), 0);
	assert_int_equal(out.len, total);
	expect_text((const char *)out.data, 0, out.len);
}

/* All hot rows: in one piece, of the model, contiguous; also when asked for in small steps. */
static void
expect_hot_rows(size_t max)
{
	struct record_log log = counts();
	int64_t seq = log.first_seq, byte = log.dropped_bytes;

	while (seq < log.next_seq) {
		struct record_row *rows;
		size_t n = 0;

		arena_reset(arena);
		assert_int_equal(
		    record_rows_get(rec, arena, seq == log.first_seq ? 1 : seq, max, &rows, &n),
		    0);
		assert_true(n > 0);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(rows[i].seq, seq++);
			expect_text(rows[i].chunk, byte, rows[i].n);
			byte += (int64_t)rows[i].n;
		}
	}
	assert_int_equal(byte, log.total_bytes);
	assert_int_equal(log.total_bytes, total);
	assert_true(log.hot_bytes <= RECORD_HOT_BYTES);
}

static void
a_burst_needs_no_rows_and_reads_back_as_if_it_had(void **state)
{
	struct record_row *rows;
	size_t n;

	(void)state;
	append(60, CHUNK);
	assert_int_equal(nrows(), 0);
	assert_int_equal(npacks(), 1);
	assert_int_equal(counts().archived_seq, 60);
	assert_int_equal(counts().first_seq, 1);
	assert_int_equal(record_rows_get(rec, arena, 7, 2 * CHUNK, &rows, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].seq, 7);
	assert_int_equal(rows[0].stream, LOG_STREAM_STDOUT);
	assert_int_equal(rows[0].step, 1);
	assert_int_equal(rows[0].created_at_ms, NOW);
	assert_int_equal(rows[0].n, CHUNK);
	expect_text(rows[0].chunk, 6 * (int64_t)CHUNK, CHUNK);
	expect_hot_rows(100000);
	expect_whole_text();
}

static void
the_oldest_chunks_of_a_pack_go_one_by_one(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++) {
		append(60, CHUNK);
		if (i >= 2)
			assert_in_range(
			    counts().hot_bytes, RECORD_HOT_BYTES - CHUNK + 1, RECORD_HOT_BYTES);
		expect_hot_rows(1 << 20);
	}
	assert_int_equal(npacks(), 3);
	expect_whole_text();
}

static void
rows_and_packs_follow_one_another_in_any_order(void **state)
{
	unsigned seed = 5;
	struct record_row *rows;
	size_t n;

	(void)state;
	for (int i = 0; i < 60; i++) {
		switch (rand_r(&seed) % 8) {
		case 0: reopen(BIG); break;
		case 1: assert_int_equal(record_flush(rec), 0); break;
		case 2: assert_int_equal(record_finish_log(rec), 0); break;
		case 3: assert_int_equal(try_append(48, 16000, 1), 0); break;
		case 4: append(33 + (size_t)rand_r(&seed) % 30, CHUNK); break;
		default:
			append(
			    1 + (size_t)rand_r(&seed) % 20, 1 + (size_t)rand_r(&seed) % 4000);
		}
		expect_hot_rows((size_t)rand_r(&seed) % 300000);
	}
	expect_whole_text();
	for (size_t max = 0; max < 3000000; max += 123456) {
		arena_reset(arena);
		assert_int_equal(record_rows_newest(rec, arena, max, &rows, &n), 0);
		for (size_t i = n, bytes = 0; i > 0; i--) {
			assert_int_equal(
			    rows[i - 1].seq, counts().next_seq - (int64_t)(n - i) - 1);
			bytes += rows[i - 1].n;
			assert_true(bytes <= max);
			expect_text(rows[i - 1].chunk, total - (int64_t)bytes, rows[i - 1].n);
		}
		assert_true(n > 0 || max < CHUNK);
	}
}

/* Hurry is what the caller says, and small batches have rows all the same. */
static void
a_little_text_gets_rows_even_in_a_hurry(void **state)
{
	(void)state;
	record_set_hurry(rec, 1);
	append(1, 1000);
	append(7, CHUNK);
	assert_int_equal(nrows(), 8);
	append(20, CHUNK);
	assert_int_equal(nrows(), 8);
	assert_int_equal(npacks(), 1);
	record_set_hurry(rec, 0);
	append(20, CHUNK);
	assert_int_equal(nrows(), 28);
	expect_hot_rows(1 << 20);
	expect_whole_text();
}

static void
streams_steps_and_times_stay_apart(void **state)
{
	CLEANUP_FREE char *text = mem_calloc(1, 50 * CHUNK);
	struct record_row in[50], *rows;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		memset(text + i * CHUNK, 'a' + (int)i % 26, CHUNK - i);
		in[i] = (struct record_row) { 0,
			i % 7 < 3 ? LOG_STREAM_STDERR : LOG_STREAM_SYSTEM, (int64_t)(i / 20),
			text + i * CHUNK, CHUNK - i, NOW + (int64_t)(i / 11) };
	}
	assert_int_equal(record_append(rec, in, ARRAY_LEN(in)), 0);
	assert_true(npacks() > 14);
	assert_int_equal(record_rows_get(rec, arena, 1, 1 << 20, &rows, &n), 0);
	assert_int_equal(n, ARRAY_LEN(in));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].seq, i + 1);
		assert_int_equal(rows[i].stream, in[i].stream);
		assert_int_equal(rows[i].step, in[i].step);
		assert_int_equal(rows[i].created_at_ms, in[i].created_at_ms);
		assert_int_equal(rows[i].n, in[i].n);
		assert_memory_equal(rows[i].chunk, in[i].chunk, in[i].n);
	}
}

/* The batch that would cross the cap has rows, and so have all behind it. */
static void
the_cap_is_kept(void **state)
{
	const int64_t cap = 2500000, head = cap / (int64_t)CHUNK * (int64_t)CHUNK;
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text t;
	struct record_log log;

	(void)state;
	reopen(cap);
	for (int i = 0; i < 7; i++) {
		append(60, CHUNK);
		expect_hot_rows(1 << 20);
		if (i == 3)
			reopen(cap);
	}
	assert_int_equal(record_finish_log(rec), 0);
	log = counts();
	assert_int_equal(log.archived_bytes, head + RECORD_TAIL_BYTES);
	assert_int_equal(log.omitted_bytes, total - head - RECORD_TAIL_BYTES);
	expect_hot_rows(1 << 20);
	assert_int_equal(record_text_get(rec, 0, (size_t)head, &out, &t), 0);
	expect_text((const char *)out.data, 0, (size_t)head);
	buf_reset(&out);
	assert_int_equal(record_text_get(rec, head + log.omitted_bytes, 2 << 20, &out, &t), 0);
	assert_int_equal(out.len, RECORD_TAIL_BYTES);
	expect_text((const char *)out.data, head + log.omitted_bytes, out.len);
}

static int64_t
archive_size(void)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_ARCHIVE, dir);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (int64_t)st.st_size;
}

/* Where the newest recorded frame ends. */
static int64_t
recorded_size(void)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rec->store, STMT_FRAME_LAST);

	return stmt_step(st) > 0 ? stmt_int(st, 2) + stmt_int(st, 3) : 0;
}

/* Power loss may take the file's end from under the rows that describe it. */
static void
what_power_loss_takes_is_named_in_its_place(void **state)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_ARCHIVE, dir);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_row *rows;
	struct record_text t;
	int64_t first;
	size_t n;

	(void)state;
	append(40, CHUNK);
	first = archive_size();
	append(40, CHUNK);
	rec = record_free(rec);
	assert_int_equal(truncate(path, first + 100), 0);
	reopen(BIG);
	assert_int_equal(record_rows_get(rec, arena, 1, 2 << 20, &rows, &n), 0);
	assert_int_equal(n, 80);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].seq, i + 1);
		if (i < 40)
			expect_text(rows[i].chunk, (int64_t)(i * CHUNK), CHUNK);
		else
			assert_memory_equal(rows[i].chunk,
			    "[anvil: 16384 bytes of the log are damaged or missing", 53);
	}
	assert_int_equal(record_rows_newest(rec, arena, 2 << 20, &rows, &n), 0);
	assert_int_equal(n, 80);
	append(1, 100);
	append(40, CHUNK);
	assert_int_equal(record_text_get(rec, 0, 4 << 20, &out, &t), 0);
	assert_int_equal(t.next_seq, counts().next_seq);
	expect_text((const char *)out.data + out.len - 40 * CHUNK, total - 40 * (int64_t)CHUNK,
	    40 * CHUNK);
}

/* A store that knew no packs goes on as it is. */
static void
an_older_store_keeps_its_rows(void **state)
{
	static const size_t one = 1;
	static const char *const sql[] = {
		"INSERT INTO run_meta (one, run_id, project_id, owner_slug, project_slug,"
		" trigger_type, branch, queued_at, status, started_at, epoch, spawn_id, sandbox)"
		" VALUES (1, 'run_0123456789abcdefghijAB', 'prj_0123456789abcdefghijAB', 'ada',"
		" 'engine', 'webhook', 'main', 1, 'starting', 1, 1,"
		" '00112233445566778899aabbccddeeff', 'none')",
		"INSERT INTO run_logs VALUES (1, 'stdout', 1, x'6161', 1)",
		"INSERT INTO run_logs VALUES (2, 'stdout', 1, x'6262', 1)",
		"UPDATE log_state SET next_seq = 3, hot_bytes = 4, total_bytes = 4",
	};
	CLEANUP_FREE char *path = mem_format("%s/old.db", dir);
	CLEANUP_FREE char *to = mem_format("%s/" RECORD_DB, dir);
	const struct store_desc old = { .name = "run",
		.migrations = schema_run,
		.nmigrations = &one,
		.sync = STORE_SYNC_NORMAL };
	struct store *s = NULL;
	struct record_row *rows;
	char *why = NULL;
	size_t n;

	(void)state;
	rec = record_free(rec);
	assert_int_equal(store_open(&old, path, &s, &why), 0);
	for (size_t i = 0; i < ARRAY_LEN(sql); i++)
		assert_int_equal(store_exec(s, sql[i]), 0);
	store_close(s);
	assert_int_equal(rename(path, to), 0);
	reopen(BIG);
	append(60, CHUNK);
	assert_int_equal(record_rows_get(rec, arena, 1, 4 + CHUNK, &rows, &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(rows[1].chunk, "bb", 2);
	expect_text(rows[2].chunk, 0, CHUNK);
}

static void
packs_obey_the_store(void **state)
{
	static const char *const refused[] = {
		/* A gap, text that no frame has, a change, the newest first. */
		"INSERT INTO log_packs VALUES (130, 130, 0, 1, 'stdout', 1, 1, x'0001')",
		"INSERT INTO log_packs VALUES (121, 121, 1966080, 1, 'stdout', 1, 1, x'0001')",
		"UPDATE log_packs SET first_byte = 0",
		"DELETE FROM log_packs WHERE last_seq = 120",
		"INSERT INTO run_logs VALUES (61, 'stdout', NULL, x'41', 1)",
		/* Sizes that do not fit the chunks, an unknown stream. */
		"INSERT INTO log_packs VALUES (122, 121, 0, 1, 'stdout', 1, 1, x'0001')",
		"INSERT INTO log_packs VALUES (121, 121, 0, 1, 'stdin', 1, 1, x'0001')",
	};

	(void)state;
	append(60, CHUNK);
	append(60, CHUNK);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		int err = store_exec(rec->store, refused[i]);

		if (err != E_ILLEGAL && err != E_CONSTRAINT)
			fail_msg("%s: %s", refused[i], err_text(err));
	}
	expect_whole_text();
}

/* ---- memory, disk, death ---- */

/* After a batch that was refused the archive has nothing of it, and the next one follows what
 * was stored. */
static void
no_allocation_that_fails_stores_half_a_batch(void **state)
{
	int hits = 0, hit = 1;

	(void)state;
	for (long n = 0; hit; n++) {
		const struct record_log before = counts();
		int err;

		append(1, 300);       /* Has a row, and waits in the open frame. */
		mem_fault_arm(n + 2); /* Two are of the test. */
		err = try_append(33, CHUNK, (int)n % 2);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		hits += hit;
		assert_true(err == 0 || (hit && err == E_NOMEM));
		assert_int_equal(counts().next_seq, before.next_seq + (err == 0 ? 34 : 1));
		expect_hot_rows(1 << 20);
		reopen(BIG);
	}
	assert_true(hits > 3);
	expect_whole_text();
}

static void
no_allocation_that_fails_spoils_a_read(void **state)
{
	struct record_row *rows;
	int hits = 0, hit = 1;
	size_t n;

	(void)state;
	append(33, CHUNK);
	append(2, 100);
	for (long i = 0; hit; i++) {
		int err;

		arena = arena_free(arena);
		arena = arena_new();
		reopen(BIG);
		mem_fault_arm(i);
		err = record_rows_newest(rec, arena, 1 << 20, &rows, &n);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		hits += hit;
		assert_true(err == (hit ? E_NOMEM : 0));
		expect_hot_rows(1 << 20);
	}
	assert_true(hits > 3);
	assert_int_equal(n, 35);
}

/* Part of a frame is in the file when the disk is full; the limit of files stands for it. */
static void
an_archive_that_is_full_takes_nothing(void **state)
{
	struct rlimit all, less;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	append(33, CHUNK);
	append(1, 100);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	less = all;
	less.rlim_cur = (rlim_t)archive_size() + 3000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(try_append(33, CHUNK, 0) < 0);
		assert_int_equal(counts().next_seq, 35);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	expect_hot_rows(1 << 20);
	append(33, CHUNK);
	assert_int_equal(archive_size(), recorded_size());
	expect_hot_rows(1 << 20);
	expect_whole_text();
}

#ifdef ANVIL_FAULTS

static void
a_full_disk_takes_the_whole_batch_or_nothing(void **state)
{
	long failed = 0;

	(void)state;
	for (long n = 0; n < 30; n++) {
		const struct record_log before = counts();
		int err;

		store_fault_arm(STORE_FAULT_FULL, n / 2);
		err = try_append(33, CHUNK, 0);
		failed += err == E_FULL;
		assert_true(err == 0 || err == E_FULL);
		store_fault_arm(STORE_FAULT_NONE, 0);
		assert_int_equal(counts().next_seq, before.next_seq + (err == 0 ? 33 : 0));
		if (n % 3 == 0)
			append(1, 10);
		if (n % 4 == 0)
			assert_int_equal(record_flush(rec), 0);
		expect_hot_rows(1 << 20);
	}
	assert_true(failed > 5);
	assert_int_equal(record_finish_log(rec), 0);
	expect_whole_text();
}

static void
an_io_error_leaves_a_burst_whole_or_absent(void **state)
{
	long failed = 0;

	(void)state;
	for (long n = 0; n < 16; n++) {
		int64_t before;
		int err;

		append(1, 10);
		before = counts().next_seq;
		store_fault_arm(STORE_FAULT_IO, n / 2);
		err = try_append(33, CHUNK, 0);
		store_fault_arm(STORE_FAULT_NONE, 0);
		assert_true(err == 0 || err == E_STORAGE);
		failed += err < 0;
		if (n % 2 == 0)
			reopen(BIG);
		if (err < 0 && counts().next_seq == before + 33)
			total += 33 * (int64_t)CHUNK;
		expect_hot_rows(1 << 20);
		expect_whole_text();
	}
	assert_true(failed > 3);
}

#endif

/* The child's part: batches of all kinds, and a byte to the parent for each that is stored. */
static void
write_until_killed(unsigned seed, int fd)
{
	reopen(BIG);
	total = counts().total_bytes;
	for (;;) {
		int err = rand_r(&seed) % 3 == 0
		    ? try_append(1 + (size_t)rand_r(&seed) % 5, 700, 0)
		    : try_append(9 + (size_t)rand_r(&seed) % 50, CHUNK, rand_r(&seed) % 4 == 0);

		if (err == 0 && rand_r(&seed) % 6 == 0)
			err = record_flush(rec);
		if (err < 0 || write(fd, &total, sizeof(total)) != (ssize_t)sizeof(total))
			_exit(1);
	}
}

/* Kills a writer at some moment after ${nacks} batches; returns what was said to be stored. */
static int64_t
kill_a_writer(unsigned seed, int nacks)
{
	int fds[2], status;
	int64_t acked = 0, more;
	volatile unsigned spin = seed % 50021 * 40;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(fds[0]);
		write_until_killed(seed, fds[1]);
	}
	(void)close(fds[1]);
	for (int i = 0; i < nacks; i++)
		assert_int_equal(read(fds[0], &acked, sizeof(acked)), sizeof(acked));
	while (spin > 0)
		spin--;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (read(fds[0], &more, sizeof(more)) == (ssize_t)sizeof(more))
		acked = more;
	(void)close(fds[0]);
	return acked;
}

static void
a_killed_writer_leaves_a_beginning_of_its_text(void **state)
{
	unsigned seed = 11;

	(void)state;
	for (int round = 0; round < 25; round++) {
		int64_t acked;

		rec = record_free(rec);
		acked = kill_a_writer(seed + (unsigned)round * 7919, rand_r(&seed) % 5);
		reopen(BIG);
		total = counts().total_bytes;
		assert_true(total >= acked);
		expect_hot_rows(1 << 20);
		expect_whole_text();
		append(1, 100);
		append(40, CHUNK);
		/* Nothing of what was not recorded is left in the file. */
		assert_int_equal(archive_size(), recorded_size());
		if (total > 40 << 20) {
			assert_int_equal(remove_record(state), 0);
			assert_int_equal(make_record(state), 0);
		}
	}
	assert_int_equal(record_finish_log(rec), 0);
	assert_int_equal(counts().archived_bytes, total);
	expect_whole_text();
}

#define WITH_RECORD(t) cmocka_unit_test_setup_teardown(t, make_record, remove_record)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RECORD(a_burst_needs_no_rows_and_reads_back_as_if_it_had),
		WITH_RECORD(the_oldest_chunks_of_a_pack_go_one_by_one),
		WITH_RECORD(rows_and_packs_follow_one_another_in_any_order),
		WITH_RECORD(a_little_text_gets_rows_even_in_a_hurry),
		WITH_RECORD(streams_steps_and_times_stay_apart),
		WITH_RECORD(the_cap_is_kept),
		WITH_RECORD(what_power_loss_takes_is_named_in_its_place),
		WITH_RECORD(an_older_store_keeps_its_rows),
		WITH_RECORD(packs_obey_the_store),
		WITH_RECORD(no_allocation_that_fails_stores_half_a_batch),
		WITH_RECORD(no_allocation_that_fails_spoils_a_read),
		WITH_RECORD(an_archive_that_is_full_takes_nothing),
#ifdef ANVIL_FAULTS
		WITH_RECORD(a_full_disk_takes_the_whole_batch_or_nothing),
		WITH_RECORD(an_io_error_leaves_a_burst_whole_or_absent),
#endif
		WITH_RECORD(a_killed_writer_leaves_a_beginning_of_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
