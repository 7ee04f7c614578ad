#include "lib/record/log.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/log_archive.h"
#include "lib/record/pack.h"

/* A commit whose outcome was unknown may have come true, and recorded some of them. */
static void
drop_recorded_frames(struct record *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nframes; i++)
		if (r->frames[i].last_seq > r->log.archived_seq)
			r->frames[kept++] = r->frames[i];
	r->nframes = kept;
}

int
record_load_log(struct record *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_STATE_GET);
	int err = stmt_step(st);

	if (err <= 0)
		return err < 0 ? err : E_CORRUPT;
	r->log = (struct record_log) {
		.next_seq = stmt_int(st, 0),
		.first_seq = stmt_int(st, 1),
		.hot_bytes = stmt_int(st, 2),
		.dropped_bytes = stmt_int(st, 3),
		.total_bytes = stmt_int(st, 4),
		.archived_seq = stmt_int(st, 5),
		.archived_bytes = stmt_int(st, 6),
		.omitted_bytes = stmt_int(st, 7),
	};
	r->log_unknown = 0;
	drop_recorded_frames(r);
	return 0;
}

int
record_log_get(struct record *r, struct record_log *ret)
{
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0)
		*ret = r->log;
	return err;
}

int
record_is_capped(const struct record *r)
{
	return r->capped || r->tail_begun || r->log.omitted_bytes > 0;
}

void
record_set_hurry(struct record *r, int hurry)
{
	OBJ_CHECK(r, RECORD_MAGIC);
	r->hurry = hurry;
}

/* ---- rows, inside a transaction ---- */

int
record_put_log(struct record *r, const struct record_log *log)
{
	return RECORD_HIT(r, STMT_STATE_SET, "iiiiiiii", log->next_seq, log->first_seq,
	    log->hot_bytes, log->dropped_bytes, log->total_bytes, log->archived_seq,
	    log->archived_bytes, log->omitted_bytes);
}

int
record_put_rows(struct record *r, struct record_row *rows, size_t n, struct record_log *log)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < n; i++) {
		struct record_row *row = &rows[i];

		row->seq = log->next_seq++;
		err = RECORD_RUN(r, STMT_LOG_ADD, "isIbi", row->seq,
		    log_stream_name(row->stream), row->step != 0 ? &row->step : NULL,
		    row->chunk, row->n, row->created_at_ms);
		log->hot_bytes += (int64_t)row->n;
		log->total_bytes += (int64_t)row->n;
	}
	return err;
}

int
record_put_frames(struct record *r, struct record_log *log)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < r->nframes; i++) {
		const struct archive_frame *f = &r->frames[i].frame;

		err = RECORD_RUN(r, STMT_FRAME_ADD, "iiii", f->first_byte, f->text_size,
		    f->file_offset, f->file_size);
		log->archived_bytes += f->text_size;
		log->archived_seq = r->frames[i].last_seq;
	}
	if (r->tail_begun)
		log->omitted_bytes = max_i64(log->omitted_bytes, r->omitted);
	return err;
}

/* Removes the oldest row; its size goes to ${ret_n}. */
static int
drop_row(struct record *r, int64_t seq, int64_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_DROP);
	int err = stmt_bind(st, "i", seq);

	if (err == 0)
		err = stmt_step(st);
	if (err <= 0)
		return err < 0 ? err : E_CORRUPT;
	*ret_n = stmt_int(st, 0);
	while ((err = stmt_step(st)) > 0)
		;
	return err;
}

/* Removes the oldest chunk.  ${p} is the pack that holds it or comes next; a pack goes with
 * its last chunk. */
static int
drop_oldest(struct record *r, int64_t seq, struct pack *p, int64_t *ret_n)
{
	int found;

	if (p->last_seq < seq) {
		found = pack_at(r, seq, p);
		if (found < 0)
			return found;
		if (found == 0)
			p->first_seq = p->last_seq = INT64_MAX;
	}
	if (!pack_holds(p, seq))
		return drop_row(r, seq, ret_n);
	*ret_n = pack_size(p, seq);
	return seq == p->last_seq ? pack_drop(r, p) : 0;
}

int
record_prune(struct record *r, struct record_log *log)
{
	struct pack p = { .last_seq = 0 };

	while (log->hot_bytes > RECORD_HOT_BYTES) {
		int under_cap = log->first_seq > log->archived_seq, err;
		int64_t n = 0;

		if (under_cap && (!r->capped || log->archived_seq != r->fed_seq))
			return 0;
		err = drop_oldest(r, log->first_seq, &p, &n);
		if (err < 0)
			return err;
		log->first_seq++;
		log->hot_bytes -= n;
		log->dropped_bytes += n;
		log->omitted_bytes += under_cap ? n : 0;
	}
	return 0;
}

/* ---- appending ---- */

static int
put_batch(struct record *r, const struct log_batch *b, int64_t byte, struct record_log *log)
{
	int err = record_put_frames(r, log);

	if (err == 0 && byte >= 0)
		err = pack_put_rows(r, b->rows, b->n, byte, log);
	else if (err == 0)
		err = record_put_rows(r, b->rows, b->n, log);
	if (err == 0)
		err = record_prune(r, log);
	return err < 0 ? err : record_put_log(r, log);
}

/* Stores the batch with the frames that wait.  ${byte}: where its text begins in the archive,
 * which has it already; -1: it goes into rows. */
static int
store_batch(struct record *r, const struct log_batch *b, int64_t byte)
{
	struct record_log log;
	int err = record_txn_begin(r, STORE_SYNC_NORMAL);

	if (err < 0)
		return err;
	log = r->log;
	err = record_txn_end(r, put_batch(r, b, byte, &log));
	if (err < 0)
		return err;
	r->log = log;
	r->nframes = 0;
	return 0;
}

/* Rows first: the archive gets a copy when they are stored. */
static int
append_rows(struct record *r, const struct log_batch *b)
{
	int err = store_batch(r, b, -1);

	if (err < 0)
		return err;
	archive_set_hurry(r->archive, b->in_hurry);
	for (size_t i = 0; i < b->n && record_has_room(r); i++)
		if (record_feed(r, b->rows[i].seq, b->rows[i].chunk, b->rows[i].n) < 0)
			break; /* It gets the rest from the rows, later. */
	return 0;
}

/* The archive first: a batch that is not stored must leave it again. */
static int
append_packed(struct record *r, const struct log_batch *b)
{
	int64_t byte = archive_next_byte(r->archive);
	int err = record_feed_first(r, b);

	if (err == 0)
		err = store_batch(r, b, byte);
	if (err < 0)
		record_forget_fed(r);
	else
		r->unsynced = 1;
	return err;
}

int
record_append(struct record *r, struct record_row *rows, size_t n)
{
	struct log_batch b = { rows, n, 0, 0 };
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		b.bytes += (int64_t)rows[i].n;
	b.in_hurry = r->hurry || b.bytes > RECORD_BATCH_BYTES / 2;
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0)
		err = record_feed_backlog(r);
	if (err < 0)
		return err;
	return record_may_pack(r, &b) ? append_packed(r, &b) : append_rows(r, &b);
}

/* Room for a message of 4 KiB many times over; what is longer is cut. */
#define NOTE_ROWS_MAX 8

/* The rows of one system line; they lend from ${lines}. */
static size_t
note_rows(
    struct chunker *lines, int64_t step, int64_t now_ms, struct record_row rows[NOTE_ROWS_MAX])
{
	const char *p;
	size_t n, nrows = 0;

	while (nrows < NOTE_ROWS_MAX && (n = chunker_next(lines, 1, &p)) != 0)
		rows[nrows++] = (struct record_row) { 0, LOG_STREAM_SYSTEM, step, p, n,
			now_ms };
	return nrows;
}

static int
note_text(const struct record *r, const char *text, struct chunker *ret)
{
	CLEANUP_FREE char *clean = record_clean_text(
	    r, text, NOTE_ROWS_MAX * (CHUNK_MAX_BYTES - 4));
	struct buf *out = chunker_input(ret);
	size_t n;

	if (clean == NULL)
		return E_NOMEM;
	n = strlen(clean);
	(void)buf_add(out, clean, n);
	if (n == 0 || clean[n - 1] != '\n')
		(void)buf_add_byte(out, '\n');
	return out->failed ? E_NOMEM : 0;
}

int
record_note(struct record *r, int64_t step, const char *text, int64_t now_ms)
{
	CLEANUP(chunker_done) struct chunker lines = { BUF_INIT, 0 };
	struct record_row rows[NOTE_ROWS_MAX];
	int err = note_text(r, text, &lines);

	return err < 0 ? err : record_append(r, rows, note_rows(&lines, step, now_ms, rows));
}

int
record_put_note(
    struct record *r, int64_t step, const char *text, int64_t now_ms, struct record_log *log)
{
	CLEANUP(chunker_done) struct chunker lines = { BUF_INIT, 0 };
	struct record_row rows[NOTE_ROWS_MAX];
	int err = note_text(r, text, &lines);

	return err < 0 ? err
		       : record_put_rows(r, rows, note_rows(&lines, step, now_ms, rows), log);
}
