#include "cmd/anvil-run/fetch.h"

#include <stdlib.h>

#include "cmd/anvil-run/recorder.h"
#include "cmd/anvil-run/rows.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define READ_BYTES ((size_t)128 << 10) /* Of chunks, at a time. */

struct fetch {
	struct job job;
	const char *run_id;
	int want_state;
	int64_t cut_at;
	struct fetch_point points[FETCH_POINTS];
	size_t npoints;
	struct fetch_result result;
	void (*fn)(void *arg, struct fetch *f, int err);
	void *arg;
};

/* ---- on the thread: messages ---- */

static void
begin_text(struct buf *text)
{
	(void)buf_add_str(text, "{\"items\":[");
}

static void
end_text(struct buf *text)
{
	(void)buf_add_str(text, "],\"subscription\":");
}

static struct fetch_batch *
begin_batch(struct fetch_point *p, int64_t first)
{
	struct fetch_batch *b = mem_calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->first = b->next = first;
	/* Room for all of it at once: what grows to this size is copied, and mapped anew. */
	(void)buf_reserve(&b->text, FETCH_BATCH_BYTES + 1024);
	begin_text(&b->text);
	STAILQ_INSERT_TAIL(&p->batches, b, entry);
	return b;
}

/* One point's messages in the making. */
struct writer {
	struct fetch_point *point;
	struct fetch_batch *batch; /* The last one; NULL: the next item begins one. */
	size_t spent;
};

/* Makes the item at ${at}, the last of the batch, the first of a new one. */
static int
move_item(struct writer *w, size_t at, int64_t first)
{
	struct fetch_batch *from = w->batch, *to = begin_batch(w->point, first);

	if (to == NULL)
		return E_NOMEM;
	(void)buf_add(&to->text, from->text.data + at, from->text.len - at);
	from->text.len = at - 1; /* with the comma */
	w->batch = to;
	return 0;
}

/* Adds what stands for the lines [first, next).  1; 0: the budget does not allow it. */
static int
put_item(struct writer *w, const struct run_item *item, int64_t first, int64_t next)
{
	struct buf *text;
	size_t at, n;
	int err = 0;

	if (w->batch == NULL && (w->batch = begin_batch(w->point, first)) == NULL)
		return E_NOMEM;
	text = &w->batch->text;
	if (w->batch->bytes != 0)
		(void)buf_add_byte(text, ',');
	at = text->len;
	if (run_item_encode(text, item) < 0)
		return E_NOMEM;
	n = text->len - at;
	if (w->spent != 0 && w->spent + n > w->point->budget) {
		text->len = w->batch->bytes != 0 ? at - 1 : at;
		return 0;
	}
	if (w->batch->bytes != 0 && w->batch->bytes + n > FETCH_BATCH_BYTES)
		err = move_item(w, at, first);
	if (err < 0)
		return err;
	w->batch->bytes += n;
	w->batch->next = next;
	w->spent += n;
	return w->batch->text.failed ? E_NOMEM : 1;
}

static int
put_gap(struct writer *w, int64_t from, int64_t to)
{
	const struct run_item item = { .type = RUN_ITEM_TYPE_GAP,
		.has_from_seq = 1,
		.from_seq = from,
		.has_to_seq = 1,
		.to_seq = to };

	return put_item(w, &item, from, to + 1);
}

static int
put_line(struct fetch *f, struct writer *w, const struct record_row *line)
{
	char id[ROWS_ID_SIZE];
	const struct log_row row = rows_line(f->run_id, line, id);
	const struct run_item item = { .type = RUN_ITEM_TYPE_LOG, .event = &row };

	if (line->seq == f->cut_at)
		w->batch = NULL;
	return put_item(w, &item, line->seq, line->seq + 1);
}

/* ---- on the thread: reading ---- */

/* A batch that got nothing is none. */
static void
finish_batches(struct fetch_point *p)
{
	struct fetch_batch *b, *empty = NULL;

	STAILQ_FOREACH (b, &p->batches, entry) {
		end_text(&b->text);
		if (b->bytes == 0)
			empty = b;
	}
	if (empty == NULL)
		return;
	STAILQ_REMOVE(&p->batches, empty, fetch_batch, entry);
	buf_done(&empty->text);
	free(empty);
}

/* Bytes of chunks to read next; one that turns out to be too many is read again, later. */
static size_t
how_much(const struct writer *w)
{
	size_t left = w->point->budget > w->spent ? w->point->budget - w->spent : 1;

	return min_size(left, READ_BYTES);
}

static int
read_point(struct fetch *f, struct desk *d, struct fetch_point *p)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct writer w = { .point = p };
	int64_t seq = p->from;
	int r = a != NULL ? 1 : E_NOMEM;

	if (r > 0 && seq < f->result.log.first_seq) {
		r = put_gap(&w, seq, f->result.log.first_seq - 1);
		seq = f->result.log.first_seq;
	}
	while (r > 0 && seq < f->result.log.next_seq) {
		struct record_row *rows = NULL;
		size_t n = 0;
		int err;

		arena_reset(a);
		err = record_rows_get(d->record, a, seq, how_much(&w), &rows, &n);
		if (err < 0 || n == 0)
			r = err < 0 ? err : E_CORRUPT;
		for (size_t i = 0; r > 0 && i < n; i++) {
			r = put_line(f, &w, &rows[i]);
			seq = rows[i].seq + 1;
		}
	}
	if (r < 0)
		return r;
	finish_batches(p);
	return 0;
}

static int
encode_state(
    struct fetch *f, const struct run_live *live, const struct step_row *steps, size_t n)
{
	const struct run_item item = { .type = RUN_ITEM_TYPE_STATE,
		.run = live,
		.has_steps = 1,
		.steps = steps,
		.nsteps = n };
	struct buf *text = &f->result.state;

	f->result.terminal = record_is_terminal(live->status);
	begin_text(text);
	(void)run_item_encode(text, &item);
	end_text(text);
	return text->failed ? E_NOMEM : 0;
}

static int
read_state(struct fetch *f, struct desk *d, struct arena *a)
{
	struct record_run run = { 0 };
	struct record_step *steps = NULL;
	const struct step_row *rows;
	struct run_live live;
	size_t n = 0;
	int err = record_run_get(d->record, a, &run);

	if (err == 0)
		err = record_steps_get(d->record, a, &steps, &n);
	if (err < 0)
		return err;
	rows = rows_steps(a, f->run_id, steps, n);
	live = rows_live(&run);
	return rows != NULL ? encode_state(f, &live, rows, n) : E_NOMEM;
}

/* A run that no claim has made yet. */
static int
say_absent(struct fetch *f)
{
	static const struct run_live queued = { .status = RUN_STATUS_QUEUED };

	f->result.absent = 1;
	f->result.log = (struct record_log) { .first_seq = 1, .next_seq = 1 };
	return f->want_state ? encode_state(f, &queued, NULL, 0) : 0;
}

static int
work(struct job *j, struct desk *d)
{
	struct fetch *f = (struct fetch *)j;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	int err = a == NULL ? E_NOMEM : d->record == NULL ? E_NOENT : 0;

	if (err == 0 && f->want_state)
		err = read_state(f, d, a);
	if (err == E_NOENT)
		return say_absent(f);
	if (err == 0)
		err = record_log_get(d->record, &f->result.log);
	for (size_t i = 0; err == 0 && i < f->npoints; i++)
		err = read_point(f, d, &f->points[i]);
	return err;
}

/* ---- on the loop ---- */

static void
fetch_free(struct fetch *f)
{
	struct fetch_batch *b;

	for (size_t i = 0; i < f->npoints; i++)
		while ((b = STAILQ_FIRST(&f->points[i].batches)) != NULL) {
			STAILQ_REMOVE_HEAD(&f->points[i].batches, entry);
			buf_done(&b->text);
			free(b);
		}
	buf_done(&f->result.state);
	free(f);
}

static void
done(struct job *j, int err)
{
	struct fetch *f = (struct fetch *)j;

	f->fn(f->arg, f, err);
	fetch_free(f);
}

struct fetch *
fetch_new(const char *run_id, void (*fn)(void *arg, struct fetch *f, int err), void *arg)
{
	struct fetch *f = mem_calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->job = (struct job) { .kind = JOB_READ, .work = work, .done = done };
	f->run_id = run_id;
	f->fn = fn;
	f->arg = arg;
	return f;
}

void
fetch_want_state(struct fetch *f)
{
	f->want_state = 1;
}

void
fetch_cut_at(struct fetch *f, int64_t seq)
{
	f->cut_at = seq;
}

void
fetch_add(struct fetch *f, int64_t from, size_t budget)
{
	struct fetch_point *p;

	for (size_t i = 0; i < f->npoints; i++) {
		p = &f->points[i];
		if (p->from != from)
			continue;
		if (p->budget < budget)
			p->budget = budget;
		return;
	}
	if (f->npoints == FETCH_POINTS)
		return;
	p = &f->points[f->npoints++];
	p->from = from;
	p->budget = budget;
	STAILQ_INIT(&p->batches);
}

void
fetch_post(struct fetch *f, struct recorder *rec)
{
	/* Together they take about as long as one that is far behind. */
	for (size_t i = 0; i < f->npoints; i++)
		f->points[i].budget = min_size(f->points[i].budget, FETCH_BYTES / f->npoints);
	recorder_post(rec, &f->job);
}

const struct fetch_result *
fetch_result(const struct fetch *f)
{
	return &f->result;
}

struct buf
fetch_take_state(struct fetch *f)
{
	struct buf text = f->result.state;

	buf_init(&f->result.state);
	return text;
}

struct fetch_batch *
fetch_find(struct fetch *f, int64_t from)
{
	struct fetch_batch *b;

	for (size_t i = 0; i < f->npoints; i++)
		STAILQ_FOREACH (b, &f->points[i].batches, entry)
			if (b->first == from)
				return b;
	return NULL;
}
