/* bench_record_log [MEGABYTES [FILE]]: what the log path of a run costs for each stage, and in
 * total, on text like that of a build, or on that of a file over and over.  Next to the rate
 * by the clock stands the rate by the processor time of this thread, which neighbours do not
 * spoil; and the whole path by fifths, for the last byte is to cost what the first did. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/record/archive.h"
#include "lib/record/record.h"

#define READ_BYTES  ((size_t)1 << 20) /* What a store thread that is behind takes at once. */
#define BLOCK_BYTES ((size_t)8 << 20)

static struct redactor *redactor;
static struct record_stream stream;
static struct archive *archive;
static struct buf scratch;
static struct decoder decoder;
static struct redact_stream held;
static size_t archived;
static struct record *record;
static struct record_row rows[READ_BYTES / CHUNK_MAX_BYTES + 8]; /* Some are shorter. */
static size_t nrows;

static void
fill(char *block)
{
	size_t at = 0;
	unsigned seed = 1;

	while (at < BLOCK_BYTES - 128)
		at += (size_t)sprintf(block + at,
		    "[%3d%%] gcc -std=gnu17 -O2 -Wall -c -o build/%x/%x.o src/%x.c # %u ms\n",
		    rand_r(&seed) % 100, (unsigned)rand_r(&seed) % 4096,
		    (unsigned)rand_r(&seed), (unsigned)rand_r(&seed),
		    (unsigned)rand_r(&seed) % 10000);
	memset(block + at, '\n', BLOCK_BYTES - at);
}

static void
redact_only(const char *p, size_t n)
{
	buf_reset(&scratch);
	must(redact_feed(redactor, &held, p, n, &scratch) == 0);
}

static void
decode_only(const char *p, size_t n)
{
	buf_reset(&scratch);
	must(decode_feed(&decoder, p, n, &scratch) == 0);
}

static void
archive_only(const char *p, size_t n)
{
	struct archive_frame f;
	int r = archive_append(archive, p, n, &f);

	must(r >= 0);
	archived += r == 1 ? (size_t)f.file_size : 0;
}

static void
all_stages(const char *p, size_t n)
{
	const char *chunk;

	must(record_stream_feed(&stream, redactor, p, n) == 0);
	while ((n = record_stream_next(&stream, 0, &chunk)) != 0)
		archive_only(chunk, n);
}

/* As a run does it: a transaction for each megabyte or so. */
static void
stored(const char *p, size_t n)
{
	const char *chunk;

	must(record_stream_feed(&stream, redactor, p, n) == 0);
	nrows = 0;
	while ((n = record_stream_next(&stream, 0, &chunk)) != 0)
		rows[nrows++] = (struct record_row) { 0, LOG_STREAM_STDOUT, 1, chunk, n,
			clock_wall_ms() };
	must(record_append(record, rows, nrows) == 0);
}

static void
open_record(const char *dir)
{
	static const struct record_claim claim = {
		.run_id = "run_0123456789abcdefghijAB",
		.project_id = "prj_0123456789abcdefghijAB",
		.owner_slug = "ada",
		.project_slug = "engine",
		.trigger_type = TRIGGER_TYPE_WEBHOOK,
		.branch = "main",
		.epoch = 1,
		.spawn_id = "00112233445566778899aabbccddeeff",
		.sandbox = "none",
	};
	char *why = NULL;

	must(record_open(dir, (int64_t)1 << 40, &record, &why) == 0);
	must(record_claim(record, &claim, clock_wall_ms()) == 0);
}

static int64_t
cpu_us(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void
measure(const char *name, void (*stage)(const char *, size_t), const char *block, size_t mb)
{
	struct mono_time from = clock_mono();
	size_t total = mb * 1000000, done = 0;
	int64_t cpu = cpu_us();
	double us;

	archived = 0;
	while (done < total) {
		stage(block + done % BLOCK_BYTES, READ_BYTES);
		done += READ_BYTES;
	}
	us = (double)mono_diff_us(from, clock_mono());
	printf("%-22s %6.0f MB/s, %6.0f of its own time", name, (double)done / us,
	    (double)done / (double)(cpu_us() - cpu));
	if (archived != 0)
		printf("   1/%.1f of the size", (double)done / (double)archived);
	printf("\n");
}

static void
measure_fifths(size_t mb, const char *block)
{
	char name[32];

	for (int i = 1; i <= 5; i++) {
		(void)snprintf(name, sizeof(name), "stored, fifth %d", i);
		measure(name, stored, block, mb / 5 + 1);
	}
}

static void
fill_from(const char *path, char *block)
{
	FILE *f = fopen(path, "r");
	size_t n = f != NULL ? fread(block, 1, BLOCK_BYTES, f) : 0;

	must(n != 0);
	for (size_t at = n; at < BLOCK_BYTES; at++)
		block[at] = block[at - n];
	(void)fclose(f);
}

int
main(int argc, char *argv[])
{
	size_t mb = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	CLEANUP_FREE char *block = mem_alloc(BLOCK_BYTES);
	char dir[] = "/tmp/anvil-bench-XXXXXX";
	int dirfd;

	must(block != NULL && mkdtemp(dir) != NULL);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (argc > 2)
		fill_from(argv[2], block);
	else
		fill(block);
	must(redactor_new("ghp_0123456789abcdefghijklmnopqrstuvwxyz", 40, &redactor) == 0);
	must(archive_open(dirfd, "log.zst", NULL, 0, &archive) == 0);
	redact_stream_init(&held);
	record_stream_init(&stream);
	measure("redact", redact_only, block, mb);
	measure("decode", decode_only, block, mb);
	measure("archive", archive_only, block, mb);
	measure("all", all_stages, block, mb);
	archive_set_hurry(archive, 1);
	measure("archive in a hurry", archive_only, block, mb);
	measure("all in a hurry", all_stages, block, mb);
	archive_free(archive);
	(void)unlinkat(dirfd, "log.zst", 0);
	open_record(dir);
	measure_fifths(mb, block);
	record_free(record);
	redactor_free(redactor);
	redact_stream_done(&held);
	record_stream_done(&stream);
	buf_done(&scratch);
	(void)unlinkat(dirfd, "log.zst", 0);
	(void)unlinkat(dirfd, "run.db", 0);
	(void)close(dirfd);
	return rmdir(dir) == 0 ? 0 : 1;
}
