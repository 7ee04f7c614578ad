#include "lib/record/log.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"
#include "lib/record/pack.h"

#define PACK_MIN_BYTES ((int64_t)128 << 10) /* Less is not worth a frame of its own. */

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

/* Rows of the frames that are in the file by now. */
static int
put_frames(struct record *r, struct record_log *log)
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

/* Drops the oldest chunks that are over the limit and no longer needed here: they are in a
 * recorded frame, or the archive will never take them. */
static int
prune(struct record *r, struct record_log *log)
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

/* ---- the archive ---- */

static int
last_frame(struct record *r, struct archive_frame *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_FRAME_LAST);
	int err = stmt_step(st);

	if (err > 0)
		*ret = (struct archive_frame) { stmt_int(st, 0), stmt_int(st, 1),
			stmt_int(st, 2), stmt_int(st, 3) };
	return err;
}

/* Opens the archive behind the newest recorded frame. */
static int
open_archive(struct record *r)
{
	struct archive_frame last;
	int found, err;

	if (r->archive != NULL)
		return 0;
	found = last_frame(r, &last);
	if (found < 0)
		return found;
	err = archive_open(r->dirfd, RECORD_ARCHIVE, found ? &last : NULL,
	    found ? last.first_byte + last.text_size : 0, &r->archive);
	if (err < 0)
		return err;
	r->fed_seq = r->log.archived_seq;
	/* Rows that went under the cap: so does everything behind the frames.  Once the tail of
	 * a capped log is archived, the frames end where the rows begin. */
	r->capped = r->log.archived_seq + 1 < r->log.first_seq;
	r->tail_begun = r->log.omitted_bytes > 0 && !r->capped;
	return 0;
}

static void
note_frame(struct record *r, int closed, const struct archive_frame *f)
{
	if (closed <= 0)
		return;
	must(r->nframes < RECORD_FRAMES_MAX);
	r->frames[r->nframes++] = (struct record_frame) { *f, r->fed_seq };
}

static int
close_frame(struct record *r)
{
	struct archive_frame f;
	int closed = archive_close_frame(r->archive, &f);

	note_frame(r, closed, &f);
	return closed < 0 ? closed : 0;
}

/* Gives one stored chunk to the archive.  0, E_FULL, E_NOMEM, E_SYS: it was not taken and
 * will be read from its row again. */
static int
feed(struct record *r, int64_t seq, const char *chunk, size_t n)
{
	struct archive_frame f;
	int closed;

	if (r->capped)
		return 0;
	must(seq == r->fed_seq + 1);
	if (!r->tail_begun && archive_next_byte(r->archive) + (int64_t)n > r->max_log_bytes) {
		int err = close_frame(r);

		r->capped = err == 0;
		return err;
	}
	closed = archive_append(r->archive, chunk, n, &f);
	note_frame(r, closed, &f);
	if (closed < 0)
		return closed;
	r->fed_seq = seq;
	return 0;
}

/* Records the frames that wait for it, in a transaction of their own. */
static int
record_frames(struct record *r, enum store_sync sync)
{
	struct record_log log;
	int err = record_txn_begin(r, sync);

	if (err < 0)
		return err;
	log = r->log;
	err = put_frames(r, &log);
	if (err == 0)
		err = prune(r, &log);
	if (err == 0)
		err = record_put_log(r, &log);
	err = record_txn_end(r, err);
	if (err < 0)
		return err;
	r->log = log;
	r->nframes = 0;
	return 0;
}

/* 1 while one more chunk may be fed: it closes two frames at most. */
static int
have_room(const struct record *r)
{
	return r->nframes + 2 <= RECORD_FRAMES_MAX;
}

/* Feeds stored rows until there are none, or no room for their frames. */
static int
feed_rows(struct record *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_FROM);
	int more, err = stmt_bind(st, "i", r->fed_seq + 1);

	while (err == 0 && !r->capped && have_room(r)) {
		const char *chunk;
		size_t n;

		more = stmt_step(st);
		if (more <= 0)
			return more;
		chunk = stmt_blob(st, 3, &n);
		err = feed(r, stmt_int(st, 0), chunk, n);
	}
	return err;
}

/* Gives the archive what it has not got: rows of a claim before, or of an append after which
 * it failed. */
static int
feed_backlog(struct record *r)
{
	int err = open_archive(r);

	while (err == 0 && !r->capped && r->fed_seq + 1 < r->log.next_seq) {
		err = feed_rows(r);
		if (err == 0 && !have_room(r))
			err = record_frames(r, STORE_SYNC_NORMAL);
	}
	return err;
}

/* ---- appending ---- */

/* A batch of one record_append(). */
struct log_batch {
	struct record_row *rows;
	size_t n;
	int64_t bytes;
	int in_hurry;
};

static int
put_batch(struct record *r, const struct log_batch *b, int64_t byte, struct record_log *log)
{
	int err = put_frames(r, log);

	if (err == 0 && byte >= 0)
		err = pack_put_rows(r, b->rows, b->n, byte, log);
	else if (err == 0)
		err = record_put_rows(r, b->rows, b->n, log);
	if (err == 0)
		err = prune(r, log);
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
	for (size_t i = 0; i < b->n && have_room(r); i++)
		if (feed(r, b->rows[i].seq, b->rows[i].chunk, b->rows[i].n) < 0)
			break; /* It gets the rest from the rows, later. */
	return 0;
}

/* The archive alone is to have the text: a batch for which frames are worth it, below the
 * cap. */
static int
may_pack(const struct record *r, const struct log_batch *b)
{
	size_t frames = (archive_waiting(r->archive) + (size_t)b->bytes) /
		(ARCHIVE_FRAME_BYTES - CHUNK_MAX_BYTES) +
	    2;

	return b->in_hurry && b->bytes >= PACK_MIN_BYTES && !r->capped && !r->tail_begun &&
	    archive_next_byte(r->archive) + b->bytes <= r->max_log_bytes &&
	    r->nframes + frames <= RECORD_FRAMES_MAX;
}

/* 1: its text lies in one piece that makes a frame by itself. */
static int
is_one_piece(const struct record *r, const struct log_batch *b)
{
	const char *end = b->rows[0].chunk;

	if (archive_waiting(r->archive) != 0 || b->bytes > (int64_t)ARCHIVE_FRAME_BYTES)
		return 0;
	for (size_t i = 0; i < b->n; i++) {
		if (b->rows[i].chunk != end)
			return 0;
		end += b->rows[i].n;
	}
	return 1;
}

/* Gives the archive a batch that is not stored, and closes its frame. */
static int
feed_first(struct record *r, const struct log_batch *b)
{
	struct archive_frame f;
	int err = 0;

	archive_set_hurry(r->archive, 1);
	if (is_one_piece(r, b)) {
		err = archive_put_frame(r->archive, b->rows[0].chunk, (size_t)b->bytes, &f);
		if (err < 0)
			return err;
		r->fed_seq += (int64_t)b->n;
		note_frame(r, 1, &f);
		return 0;
	}
	for (size_t i = 0; err == 0 && i < b->n; i++)
		err = feed(r, r->log.next_seq + (int64_t)i, b->rows[i].chunk, b->rows[i].n);
	return err < 0 ? err : close_frame(r);
}

/* The archive first.  What it has got of a batch that is not stored must leave it again:
 * opened anew, it is cut, and gets from rows what has some. */
static int
append_packed(struct record *r, const struct log_batch *b)
{
	int64_t byte = archive_next_byte(r->archive);
	int err = feed_first(r, b);

	if (err == 0)
		err = store_batch(r, b, byte);
	if (err < 0) {
		r->archive = archive_free(r->archive);
		r->nframes = 0;
		return err;
	}
	r->unsynced = 1;
	return 0;
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
		err = feed_backlog(r);
	if (err < 0)
		return err;
	return may_pack(r, &b) ? append_packed(r, &b) : append_rows(r, &b);
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

/* ---- frames by time, and the end ---- */

int
record_flush(struct record *r)
{
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0 && r->log.next_seq == 1)
		return 0;
	if (err == 0)
		err = feed_backlog(r);
	if (err == 0)
		err = close_frame(r);
	return err < 0 || r->nframes == 0 ? err : record_frames(r, STORE_SYNC_NORMAL);
}

/* First row of the last RECORD_TAIL_BYTES and its place in the log. */
static int
find_tail(struct record *r, int64_t *ret_seq, int64_t *ret_byte)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_SIZES_DOWN);
	int64_t seq = r->log.next_seq, bytes = 0;
	int more = 0, err = stmt_bind(st, "i", seq);

	while (err == 0 && (more = stmt_step(st)) > 0) {
		int64_t n = stmt_int(st, 1);

		if (stmt_int(st, 0) <= r->fed_seq || bytes + n > RECORD_TAIL_BYTES)
			break;
		seq = stmt_int(st, 0);
		bytes += n;
	}
	if (err < 0 || more < 0)
		return err < 0 ? err : more;
	*ret_seq = seq;
	*ret_byte = r->log.total_bytes - bytes;
	return 0;
}

/* Leaves out what lies between the head and the tail, so that feeding goes on with the
 * tail. */
static int
begin_tail(struct record *r)
{
	int64_t seq = 0, byte = 0, omitted;
	int err = find_tail(r, &seq, &byte);

	if (err < 0)
		return err;
	omitted = byte - archive_next_byte(r->archive);
	if (omitted > 0 && (err = archive_omit(r->archive, omitted)) < 0)
		return err;
	r->omitted = omitted;
	r->fed_seq = seq - 1;
	r->capped = 0;
	r->tail_begun = 1;
	return 0;
}

int
record_finish_log(struct record *r)
{
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0 && r->log.next_seq == 1)
		return 0;
	if (err == 0)
		err = feed_backlog(r);
	/* The head is recorded first, so that its frames name their last chunk. */
	if (err == 0 && r->capped && r->nframes != 0)
		err = record_frames(r, STORE_SYNC_NORMAL);
	if (err == 0 && r->capped)
		err = begin_tail(r);
	if (err == 0)
		err = feed_backlog(r);
	if (err == 0)
		err = close_frame(r);
	if (err == 0)
		err = archive_sync(r->archive);
	if (err < 0)
		return err;
	r->unsynced = 0;
	return record_frames(r, STORE_SYNC_FULL);
}

void
record_sync_log(struct record *r)
{
	if (r->unsynced && r->archive != NULL)
		r->unsynced = archive_sync(r->archive) < 0;
}
