/*
 * test/unit/test_anvil-run_output.c -- from a pipe to the store: bursts, what trickles in
 * behind them, two streams at once.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvil-run/output.h"
#include "cmd/anvil-run/recorder.h"
#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 30000
#define LINE        32

static const size_t no_methods = 0;
static const struct actor_desc desc = { .role = ROLE_RUN, .nmethods = &no_methods };

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

/* A stream of numbered lines into a pipe. */
struct source {
	int fd; /* -1: closed. */
	char name;
	size_t written, size;
};

struct fix {
	char *dir;
	struct actor *a;
	struct recorder *rec;
	struct output *out;
	struct redactor *redactor;
	int drained;
	/* What a read of the log has brought. */
	int reading;
	struct buf text;
};

struct errand {
	struct job job;
	struct fix *f;
};

static void
on_lost(void *arg, int err)
{
	(void)arg;
	fail_msg("lost: %s", err_text(err));
}

static void
errand_done(struct job *j, int err)
{
	struct errand *e = (struct errand *)j;

	assert_true(err == 0 || err == E_CANCELED);
	e->f->reading = 0;
	free(e);
}

static int
claim_work(struct job *j, struct desk *d)
{
	d->redactor = ((struct errand *)j)->f->redactor;
	assert_int_equal(desk_open(d), 0);
	return record_claim(d->record, &claim, 1);
}

static int
read_work(struct job *j, struct desk *d)
{
	struct fix *f = ((struct errand *)j)->f;
	struct record_text t = { 0, 0, 0 };
	int err = 0;

	buf_reset(&f->text);
	while (err == 0 && t.next_seq == 0)
		err = record_text_get(d->record, t.next_byte, 1 << 20, &f->text, &t);
	return err;
}

static void
post(struct fix *f, enum job_kind kind, int (*work)(struct job *j, struct desk *d))
{
	struct errand *e = calloc(1, sizeof(*e));

	*e = (struct errand) { { .kind = kind, .work = work, .done = errand_done }, f };
	f->reading = 1;
	recorder_post(f->rec, &e->job);
}

static int
setup(void **state)
{
	static const struct recorder_ops none = { .on_trouble = NULL };
	static const struct output_ops ops = { .on_lost = on_lost };
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "run/run_0000000000000000000001" };
	char *why = NULL;

	f->dir = scratch_new();
	place.runtime_dir = f->dir;
	assert_int_equal(actor_new(&desc, &place, &f->a, &why), 0);
	f->rec = recorder_new(f->a, f->dir, (int64_t)1 << 40, &none, f);
	assert_non_null(f->rec);
	f->out = output_new(f->a, f->rec, &ops, f);
	assert_non_null(f->out);
	assert_int_equal(redactor_new("o 0000000-token", 15, &f->redactor), 0);
	post(f, JOB_STATE, claim_work);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	output_free(f->out);
	recorder_free(f->rec);
	redactor_free(f->redactor);
	actor_free(f->a);
	scratch_free(f->dir);
	buf_done(&f->text);
	free(f);
	return 0;
}

static struct source
open_source(struct fix *f, enum log_stream stream, size_t size)
{
	struct source s = { -1, stream == LOG_STREAM_STDERR ? 'e' : 'o', 0, size };

	assert_int_equal(output_open(f->out, stream, 1, &s.fd), 0);
	assert_int_equal(io_set_nonblocking(s.fd), 0);
	return s;
}

/* Writes what the pipe takes; the end of the text closes it. */
static void
pour(struct source *s)
{
	char text[64 * LINE];
	size_t at = s->written / LINE * LINE, skip = s->written - at, n;
	ssize_t done;

	if (s->fd < 0)
		return;
	for (size_t i = 0; i < 64; i++)
		(void)snprintf(text + i * LINE, LINE, "%c %029zu", s->name, at / LINE + i);
	for (size_t i = LINE - 1; i < sizeof(text); i += LINE)
		text[i] = '\n';
	n = min_size(sizeof(text) - skip, s->size - s->written);
	done = write(s->fd, text + skip, n);
	assert_true(done > 0 || errno == EAGAIN);
	s->written += done > 0 ? (size_t)done : 0;
	if (s->written == s->size)
		io_close(&s->fd);
}

static void
turn(struct fix *f, struct mono_time limit)
{
	assert_true(mono_diff_us(clock_mono(), limit) > 0);
	actor_step(f->a);
}

static void
on_drained(void *arg)
{
	struct fix *f = arg;

	f->drained = 1;
}

/* Lines of ${s} in the log: all that it has written, in order. */
static void
expect_lines(const struct fix *f, const struct source *s)
{
	const char *p = (const char *)f->text.data, *end = p + f->text.len;
	size_t n = 0;

	for (; p < end; p += LINE) {
		char want[LINE + 1];

		(void)snprintf(want, sizeof(want), "%c %029zu\n", s->name, n);
		n += memcmp(p, want, LINE) == 0;
	}
	assert_int_equal(n * LINE, s->written);
}

static void
drain_and_read(struct fix *f)
{
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	output_drain(f->out, on_drained, f);
	while (!f->drained)
		turn(f, limit);
	post(f, JOB_LOG, read_work);
	while (f->reading)
		turn(f, limit);
}

static void
a_burst_is_stored_whole(void **state)
{
	struct fix *f = *state;
	struct source s = open_source(f, LOG_STREAM_STDOUT, 6 << 20);
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (s.fd >= 0) {
		for (int i = 0; i < 200; i++)
			pour(&s);
		turn(f, limit);
	}
	drain_and_read(f);
	assert_int_equal(f->text.len, s.size);
	expect_lines(f, &s);
}

/* Whole lines in each write, and chunks of whole lines, keep the two apart in the log. */
static void
two_streams_at_once_lose_nothing(void **state)
{
	struct fix *f = *state;
	struct source out = open_source(f, LOG_STREAM_STDOUT, 3 << 20);
	struct source err = open_source(f, LOG_STREAM_STDERR, 3 << 20);
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (out.fd >= 0 || err.fd >= 0) {
		for (int i = 0; i < 200; i++) {
			pour(&out);
			pour(&err);
		}
		turn(f, limit);
	}
	drain_and_read(f);
	assert_int_equal(f->text.len, out.size + err.size);
	expect_lines(f, &out);
	expect_lines(f, &err);
}

/* What comes last is less than a burst waits for, and nothing pushes it but its time. */
static void
a_little_text_behind_a_burst_does_not_wait_for_more(void **state)
{
	struct fix *f = *state;
	struct source s = open_source(f, LOG_STREAM_STDOUT, SIZE_MAX);
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	for (int round = 0; round < 3; round++) {
		size_t until = s.written + ((size_t)2 << 20) + 5 * LINE;

		while (s.written < until) {
			for (int i = 0; i < 100 && s.written < until; i++)
				pour(&s);
			turn(f, limit);
		}
		do {
			post(f, JOB_LOG, read_work);
			while (f->reading)
				turn(f, limit);
			(void)poll(NULL, 0, 1);
		} while (f->text.len < s.written);
		assert_int_equal(f->text.len, s.written);
		expect_lines(f, &s);
	}
	io_close(&s.fd);
	drain_and_read(f);
}

#define WITH_OUTPUT(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_OUTPUT(a_burst_is_stored_whole),
		WITH_OUTPUT(two_streams_at_once_lose_nothing),
		WITH_OUTPUT(a_little_text_behind_a_burst_does_not_wait_for_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
