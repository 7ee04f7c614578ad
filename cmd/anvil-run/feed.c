#include "cmd/anvil-run/feed.h"

#include <stdlib.h>

#include "cmd/anvil-run/recorder.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define GROUP_BYTES ((size_t)896 << 10) /* Of one transaction, and at most a read more. */

struct feed {
	struct job job;
	struct block_list blocks; /* Those that are used up are in the result. */
	int flush;
	struct feed_result result;
	void (*fn)(void *arg, struct feed_result *res);
	void *arg;
};

/* ---- on the thread ---- */

static int
add_row(struct desk *d, const struct record_row *row)
{
	if (d->nrows == d->rows_cap) {
		size_t cap = d->rows_cap == 0 ? 32 : d->rows_cap * 2;
		struct record_row *more = mem_realloc(d->rows, cap * sizeof(*more));

		if (more == NULL)
			return E_NOMEM;
		d->rows = more;
		d->rows_cap = cap;
	}
	d->rows[d->nrows++] = *row;
	return 0;
}

/* Room first: a chunk that was taken out cannot be put back. */
static int
make_room(struct desk *d)
{
	static const struct record_row none = { 0 };
	int r = add_row(d, &none);

	if (r == 0)
		d->nrows--;
	return r;
}

/* Chunks that are ready become rows, which lend from the stream until it is fed again. */
static int
cut(struct desk *d, enum log_stream stream, int all)
{
	const char *chunk;
	size_t n;
	int r;

	while ((r = make_room(d)) == 0 &&
	    (n = record_stream_next(&d->streams[stream], all, &chunk)) != 0)
		d->rows[d->nrows++] = (struct record_row) { .stream = stream,
			.step = d->steps[stream],
			.chunk = chunk,
			.n = n,
			.created_at_ms = d->first_ms[stream] };
	return r;
}

static int
store_rows(struct desk *d)
{
	int r = d->nrows != 0 ? record_append(d->record, d->rows, d->nrows) : 0;

	/* After the run's end, or with a damaged store, there is no place for them. */
	if (r == 0 || r == E_ILLEGAL || r == E_CORRUPT)
		d->nrows = 0;
	return r;
}

static void
drop_block(struct feed *f, struct block *b)
{
	STAILQ_REMOVE_HEAD(&f->blocks, entry);
	f->result.bytes[b->stream] += b->n;
	STAILQ_INSERT_TAIL(&f->result.blocks, b, entry);
}

/* A stream that ran out of memory is void and begins anew. */
static void
restart_stream(struct desk *d, enum log_stream stream)
{
	record_stream_done(&d->streams[stream]);
	record_stream_init(&d->streams[stream]);
}

/* Feeds neighbouring blocks of one stream; ends with chunks in d->rows. */
static int
feed_group(struct feed *f, struct desk *d)
{
	enum log_stream stream = STAILQ_FIRST(&f->blocks)->stream;
	struct record_stream *s = &d->streams[stream];
	struct block *b;
	size_t n = 0;
	int ended = 0, r = 0;

	while (!ended && n < GROUP_BYTES && (b = STAILQ_FIRST(&f->blocks)) != NULL &&
	    b->stream == stream) {
		if (record_stream_pending(s) == 0)
			d->first_ms[stream] = b->now_ms;
		d->steps[stream] = b->step;
		ended = b->end;
		r = ended ? record_stream_end(s, d->redactor)
			  : record_stream_feed(s, d->redactor, b->data, b->n);
		if (r < 0) {
			restart_stream(d, stream);
			return r;
		}
		n += b->n;
		drop_block(f, b);
	}
	return cut(d, stream, ended);
}

static int
work(struct job *j, struct desk *d)
{
	struct feed *f = (struct feed *)j;
	int r;

	/* The claim comes first in the queue; without it there is no run to have a log. */
	if (d->record == NULL)
		return 0;
	record_set_hurry(d->record, f->job.bytes >= FEED_BURST_BYTES);
	r = store_rows(d);
	while (r == 0 && !STAILQ_EMPTY(&f->blocks)) {
		r = feed_group(f, d);
		if (r == 0)
			r = store_rows(d);
	}
	for (size_t i = 0; r == 0 && f->flush && i < LOG_STREAM_COUNT; i++)
		r = cut(d, (enum log_stream)i, 1);
	if (r == 0)
		r = store_rows(d);
	f->result.capped = r == 0 && record_is_capped(d->record);
	return r;
}

/* ---- on the loop ---- */

static void
done(struct job *j, int err)
{
	struct feed *f = (struct feed *)j;

	while (!STAILQ_EMPTY(&f->blocks)) /* of a try that was given up */
		drop_block(f, STAILQ_FIRST(&f->blocks));
	f->result.err = err;
	f->fn(f->arg, &f->result);
	feed_free(f);
}

struct feed *
feed_new(void (*fn)(void *arg, struct feed_result *res), void *arg)
{
	struct feed *f = mem_calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->job = (struct job) { .kind = JOB_LOG, .work = work, .done = done };
	STAILQ_INIT(&f->blocks);
	STAILQ_INIT(&f->result.blocks);
	f->fn = fn;
	f->arg = arg;
	return f;
}

void
feed_free(struct feed *f)
{
	if (f == NULL)
		return;
	block_list_free(&f->blocks);
	block_list_free(&f->result.blocks);
	free(f);
}

void
block_list_free(struct block_list *l)
{
	struct block *b;

	while ((b = STAILQ_FIRST(l)) != NULL) {
		STAILQ_REMOVE_HEAD(l, entry);
		free(b);
	}
}

struct block *
block_new(size_t size)
{
	struct block *b = mem_alloc(sizeof(*b) + size);

	if (b != NULL)
		*b = (struct block) { .size = size };
	return b;
}

void
feed_add_take(struct feed *f, struct block *b)
{
	/* Most reads of most steps are small. */
	struct block *less = b->n < b->size / 2 ? mem_realloc(b, sizeof(*b) + b->n) : NULL;

	if (less != NULL) {
		b = less;
		b->size = b->n;
	}
	STAILQ_INSERT_TAIL(&f->blocks, b, entry);
	f->job.bytes += b->n;
}

size_t
feed_bytes(const struct feed *f)
{
	return f->job.bytes;
}

void
feed_set_flush(struct feed *f)
{
	f->flush = 1;
}

void
feed_post(struct feed *f, struct recorder *rec)
{
	recorder_post(rec, &f->job);
}

/* ---- frames by time ---- */

static int
archive_work(struct job *j, struct desk *d)
{
	(void)j;
	return d->record != NULL ? record_flush(d->record) : 0;
}

static void
archive_done(struct job *j, int err)
{
	(void)err;
	free(j);
}

int
feed_post_archive(struct recorder *rec)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return E_NOMEM;
	*j = (struct job) { .kind = JOB_LOG, .work = archive_work, .done = archive_done };
	recorder_post(rec, j);
	return 0;
}
