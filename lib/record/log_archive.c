#include "lib/record/log_archive.h"

#include "lib/base/crash.h"
#include "lib/base/err.h"

#define PACK_MIN_BYTES ((int64_t)128 << 10) /* Less is not worth a frame of its own. */

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
	int64_t next_byte;
	int found, err;

	if (r->archive != NULL && !r->archive_ahead)
		return 0;
	found = last_frame(r, &last);
	if (found < 0)
		return found;
	next_byte = found ? last.first_byte + last.text_size : 0;
	err = r->archive != NULL ? archive_go_back(r->archive, found ? &last : NULL, next_byte)
				 : archive_open(r->dirfd, RECORD_ARCHIVE, found ? &last : NULL,
				       next_byte, &r->archive);
	if (err < 0)
		return err;
	r->archive_ahead = 0;
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

int
record_feed(struct record *r, int64_t seq, const char *chunk, size_t n)
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
	err = record_put_frames(r, &log);
	if (err == 0)
		err = record_prune(r, &log);
	if (err == 0)
		err = record_put_log(r, &log);
	err = record_txn_end(r, err);
	if (err < 0)
		return err;
	r->log = log;
	r->nframes = 0;
	return 0;
}

int
record_has_room(const struct record *r)
{
	return r->nframes + 2 <= RECORD_FRAMES_MAX;
}

/* Feeds stored rows until there are none, or no room for their frames. */
static int
feed_rows(struct record *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_FROM);
	int more, err = stmt_bind(st, "i", r->fed_seq + 1);

	while (err == 0 && !r->capped && record_has_room(r)) {
		const char *chunk;
		size_t n;

		more = stmt_step(st);
		if (more <= 0)
			return more;
		chunk = stmt_blob(st, 3, &n);
		err = record_feed(r, stmt_int(st, 0), chunk, n);
	}
	return err;
}

int
record_feed_backlog(struct record *r)
{
	int err = open_archive(r);

	while (err == 0 && !r->capped && r->fed_seq + 1 < r->log.next_seq) {
		err = feed_rows(r);
		if (err == 0 && !record_has_room(r))
			err = record_frames(r, STORE_SYNC_NORMAL);
	}
	return err;
}

int
record_may_pack(const struct record *r, const struct log_batch *b)
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

int
record_feed_first(struct record *r, const struct log_batch *b)
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
		err = record_feed(
		    r, r->log.next_seq + (int64_t)i, b->rows[i].chunk, b->rows[i].n);
	return err < 0 ? err : close_frame(r);
}

void
record_forget_fed(struct record *r)
{
	r->archive_ahead = 1;
	r->nframes = 0;
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
		err = record_feed_backlog(r);
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
		err = record_feed_backlog(r);
	/* The head is recorded first, so that its frames name their last chunk. */
	if (err == 0 && r->capped && r->nframes != 0)
		err = record_frames(r, STORE_SYNC_NORMAL);
	if (err == 0 && r->capped)
		err = begin_tail(r);
	if (err == 0)
		err = record_feed_backlog(r);
	if (err == 0)
		err = close_frame(r);
	if (err == 0)
		err = archive_sync(r->archive);
	if (err < 0)
		return err;
	CRASH_POINT("log_archive_synced");
	r->unsynced = 0;
	return record_frames(r, STORE_SYNC_FULL);
}

void
record_sync_log(struct record *r)
{
	if (r->unsynced && r->archive != NULL)
		r->unsynced = archive_sync(r->archive) < 0;
}
