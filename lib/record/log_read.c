#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/inside.h"
#include "lib/record/pack.h"

#define FRAMES_AT_ONCE 64  /* As FRAME_FROM asks. */
#define ROW_JSON_BYTES 160 /* What the members around a chunk take in JSON, at most. */

enum log_stream
record_stream_of(const char *name)
{
	enum log_stream stream = LOG_STREAM_COUNT;

	must(name != NULL && log_stream_parse(name, &stream) == 0); /* By a CHECK. */
	return stream;
}

/* ---- rows ---- */

/* A growing list of rows whose texts live in an arena. */
struct row_list {
	struct arena *a;
	struct record_row *rows; /* In the arena as well. */
	size_t n, cap;
	size_t bytes, max_bytes;
	int64_t next; /* Seq of the row that comes next. */
	int full;
};

static int
grow(struct row_list *l)
{
	size_t cap = l->cap != 0 ? 2 * l->cap : 16;
	struct record_row *rows = arena_calloc(l->a, cap, sizeof(*rows));

	if (rows == NULL)
		return E_NOMEM;
	if (l->n != 0)
		memcpy(rows, l->rows, l->n * sizeof(*rows));
	l->rows = rows;
	l->cap = cap;
	return 0;
}

/* Adds a row with room for its text, which goes to *ret; NULL there: the list is full. */
static int
add_row(struct row_list *l, const struct record_row *row, char **ret)
{
	*ret = NULL;
	l->full = l->n != 0 && l->bytes + row->n > l->max_bytes;
	if (l->full)
		return 0;
	if (l->n == l->cap && grow(l) < 0)
		return E_NOMEM;
	*ret = arena_alloc(l->a, row->n + 1);
	if (*ret == NULL)
		return E_NOMEM;
	l->rows[l->n] = *row;
	l->rows[l->n++].chunk = *ret;
	l->bytes += row->n;
	l->next = row->seq + 1;
	return 0;
}

/* Rows of run_logs up to ${end}. */
static int
add_stored(struct record *r, struct row_list *l, int64_t end)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_FROM);
	int more = 0, err = stmt_bind(st, "i", l->next);

	while (err == 0 && !l->full && (more = stmt_step(st)) > 0 && stmt_int(st, 0) < end) {
		struct record_row row = { .seq = stmt_int(st, 0),
			.stream = record_stream_of(stmt_text(st, 1)),
			.step = stmt_int(st, 2),
			.created_at_ms = stmt_int(st, 4) };
		const char *chunk = stmt_blob(st, 3, &row.n);
		char *copy;

		err = add_row(l, &row, &copy);
		if (copy != NULL)
			memcpy(copy, chunk, row.n);
	}
	return err < 0 ? err : more < 0 ? more : 0;
}

static int
frame_at(struct record *r, int64_t byte, struct archive_frame *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_FRAME_AT);
	int err = stmt_bind(st, "i", byte);

	if (err == 0)
		err = stmt_step(st);
	if (err > 0)
		*ret = (struct archive_frame) { stmt_int(st, 0), stmt_int(st, 1),
			stmt_int(st, 2), stmt_int(st, 3) };
	return err < 0 ? err : err == 0 ? E_CORRUPT : 0;
}

/* Reads one chunk from the archive.  ${f} is the frame of the one before, or has no text.  One
 * that power loss has damaged reads as a line that says so: its row and seq are there. */
static int
read_chunk(struct record *r, struct archive_frame *f, int64_t byte, struct arena *a,
    struct record_row *row, char *text)
{
	int err = 0;

	if (byte < f->first_byte || byte >= f->first_byte + f->text_size)
		err = frame_at(r, byte, f);
	if (err == 0 && r->reader == NULL)
		err = archive_reader_open(r->dirfd, RECORD_ARCHIVE, &r->reader);
	if (err == 0)
		err = archive_read_exact(r->reader, f, byte, text, row->n);
	if (err != E_CORRUPT)
		return err;
	row->chunk = arena_format(a, ARCHIVE_HOLE_LINE, (long long)row->n);
	if (row->chunk == NULL)
		return E_NOMEM;
	row->n = strlen(row->chunk);
	return 0;
}

static int
add_packed(struct record *r, struct row_list *l, const struct pack *p)
{
	struct archive_frame f = { 0 };
	int64_t byte = p->first_byte;
	int err = 0;

	for (int64_t seq = p->first_seq; seq < l->next; seq++)
		byte += pack_size(p, seq);
	while (err == 0 && !l->full && l->next <= p->last_seq) {
		int64_t n = pack_size(p, l->next);
		const struct record_row row = { l->next, p->stream, p->step, NULL, (size_t)n,
			p->created_at_ms };
		char *text;

		err = add_row(l, &row, &text);
		if (text != NULL)
			err = read_chunk(r, &f, byte, l->a, &l->rows[l->n - 1], text);
		byte += n;
	}
	return err;
}

int
record_rows_get(struct record *r, struct arena *a, int64_t from_seq, size_t max_bytes,
    struct record_row **ret, size_t *ret_n)
{
	struct row_list l = { .a = a, .max_bytes = max_bytes };
	struct pack p;
	int err, found;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	l.next = max_i64(from_seq, r->log.first_seq);
	while (err == 0 && !l.full && l.next < r->log.next_seq) {
		int64_t before = l.next;

		found = pack_at(r, l.next, &p);
		if (found < 0)
			err = found;
		else if (found > 0 && pack_holds(&p, l.next))
			err = add_packed(r, &l, &p);
		else
			err = add_stored(r, &l, found > 0 ? p.first_seq : INT64_MAX);
		if (l.next == before)
			break;
	}
	if (err < 0)
		return err;
	*ret = l.rows;
	*ret_n = l.n;
	return 0;
}

/* Bytes of a chunk as a JSON string, at most. */
static size_t
json_bytes(const char *chunk, size_t n)
{
	const uint8_t *p = (const uint8_t *)chunk;
	size_t bytes = n;

	for (size_t i = 0; i < n; i++) {
		if (p[i] < 0x20)
			bytes += p[i] == '\n' || p[i] == '\r' || p[i] == '\t' ? 1 : 5;
		else if (p[i] == '"' || p[i] == '\\')
			bytes++;
		else if (p[i] == 0x7f)
			bytes += 5;
	}
	return bytes;
}

/* Going down from the newest chunk, as far as ${room} lasts. */
struct descent {
	int64_t seq; /* Oldest chunk that fits. */
	int64_t room;
	int full;
};

static void
take(struct descent *d, int64_t n)
{
	d->full = n > d->room;
	if (d->full)
		return;
	d->room -= n;
	d->seq--;
}

/* Rows of run_logs down to the next pack. */
static int
take_stored(struct record *r, struct descent *d)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_SIZES_DOWN);
	int more = 0, err = stmt_bind(st, "i", d->seq - 1);

	while (
	    err == 0 && !d->full && (more = stmt_step(st)) > 0 && stmt_int(st, 0) == d->seq - 1)
		take(d, stmt_int(st, 1));
	return err < 0 ? err : more < 0 ? more : 0;
}

/* First seq of the newest chunks that have at most ${max_bytes}; next_seq for none. */
static int
find_newest(struct record *r, size_t max_bytes, int64_t *ret_seq)
{
	struct descent d = { r->log.next_seq, (int64_t)max_bytes, 0 };
	struct pack p;
	int found, err = 0;

	while (err == 0 && !d.full && d.seq > r->log.first_seq) {
		int64_t before = d.seq;

		found = pack_at(r, d.seq - 1, &p);
		if (found < 0)
			err = found;
		else if (found > 0 && pack_holds(&p, d.seq - 1))
			while (!d.full && d.seq > max_i64(p.first_seq, r->log.first_seq))
				take(&d, pack_size(&p, d.seq - 1));
		else
			err = take_stored(r, &d);
		if (d.seq == before)
			break;
	}
	*ret_seq = d.seq;
	return err;
}

int
record_rows_newest(
    struct record *r, struct arena *a, size_t log_bytes, struct record_row **ret, size_t *ret_n)
{
	struct record_row *rows = NULL;
	size_t n = 0, from, encoded = 0;
	int64_t seq = 0;
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0)
		err = find_newest(r, log_bytes, &seq);
	if (err == 0)
		err = record_rows_get(r, a, seq, log_bytes, &rows, &n);
	if (err < 0)
		return err;
	for (from = n; from > 0; from--) {
		encoded += json_bytes(rows[from - 1].chunk, rows[from - 1].n) + ROW_JSON_BYTES;
		if (encoded > RECORD_DETAIL_BYTES)
			break;
	}
	*ret = n != 0 ? rows + from : NULL;
	*ret_n = n - from;
	return 0;
}

/* ---- the full log ---- */

/* Where the text that no frame covers begins: behind the archive, or, when the cap has let
 * rows go, with the oldest row. */
static int
behind_archive(struct record *r, int64_t *ret_seq, int64_t *ret_byte)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_FRAME_LAST);
	int err = stmt_step(st);

	if (err < 0)
		return err;
	*ret_seq = r->log.archived_seq + 1;
	*ret_byte = err > 0 ? stmt_int(st, 0) + stmt_int(st, 1) : 0;
	if (*ret_seq < r->log.first_seq) {
		*ret_seq = r->log.first_seq;
		*ret_byte = r->log.dropped_bytes;
	}
	return 0;
}

/* The range that the cap left out begins where the head of the archive ends. */
static int
find_gap(struct record *r, struct archive_gap *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	int err;

	*ret = (struct archive_gap) { 0, r->log.omitted_bytes };
	if (ret->n == 0)
		return 0;
	st = store_stmt(r->store, STMT_FRAME_HEAD_END);
	err = stmt_step(st);
	if (err > 0)
		ret->first_byte = stmt_int(st, 0);
	return err < 0 ? err : 0;
}

static int
load_frames(struct record *r, int64_t from, struct archive_frame *frames, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_FRAME_FROM);
	int more = 0, err = stmt_bind(st, "i", from);
	size_t n = 0;

	while (err == 0 && n < FRAMES_AT_ONCE && (more = stmt_step(st)) > 0)
		frames[n++] = (struct archive_frame) { stmt_int(st, 0), stmt_int(st, 1),
			stmt_int(st, 2), stmt_int(st, 3) };
	*ret_n = n;
	return err < 0 ? err : more < 0 ? more : 0;
}

/* One round over as many frames as one query gives. */
static int
read_some_frames(struct record *r, struct archive_gap gap, int64_t end, size_t max,
    struct buf *out, int64_t *at)
{
	struct archive_frame frames[FRAMES_AT_ONCE];
	struct archive_range range = { frames, 0, end, gap };
	int err = load_frames(r, *at, frames, &range.nframes);

	if (err < 0)
		return err;
	if (range.nframes == FRAMES_AT_ONCE)
		range.end = frames[FRAMES_AT_ONCE - 1].first_byte +
		    frames[FRAMES_AT_ONCE - 1].text_size;
	return archive_read(r->reader, &range, *at, max, out, at);
}

static int
read_archive(struct record *r, int64_t end, size_t max, struct buf *out, int64_t *at)
{
	size_t base = out->len;
	struct archive_gap gap;
	int err = find_gap(r, &gap);

	if (err == 0 && r->reader == NULL)
		err = archive_reader_open(r->dirfd, RECORD_ARCHIVE, &r->reader);
	while (err == 0 && *at < end && out->len - base < max) {
		int64_t before = *at;

		err = read_some_frames(r, gap, end, max - (out->len - base), out, at);
		if (*at == before)
			break;
	}
	/* The file may not have been there yet. */
	if (r->log.archived_bytes == 0)
		r->reader = archive_reader_free(r->reader);
	return err;
}

/* The part of one row from ${skip} on, as far as there is ${room} for it.  Returns how much
 * of the row is behind us now. */
static size_t
copy_row(const char *chunk, size_t n, size_t skip, size_t room, int first, struct buf *out)
{
	size_t take;

	/* A caller may begin anywhere, also inside a character. */
	while (skip < n && ((uint8_t)chunk[skip] & 0xc0) == 0x80)
		skip++;
	take = utf8_cut(chunk + skip, n - skip, room);
	if (take == 0 && skip < n && first)
		take = utf8_len(chunk + skip, n - skip);
	(void)buf_add(out, chunk + skip, take);
	return skip + take;
}

/* An answer in the making: ${base} is where it begins in ${out}. */
struct answer {
	struct buf *out;
	size_t base, max;
	int64_t at; /* Position in the log. */
};

/* Rows from ${seq}, which lies at ${byte} of the log.  *ret_all: none is left. */
static int
read_rows(struct record *r, int64_t seq, int64_t byte, struct answer *a, int *ret_all)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_FROM);
	int more = 0, err = stmt_bind(st, "i", seq);

	while (err == 0 && (more = stmt_step(st)) > 0) {
		size_t n, used = a->out->len - a->base, done;
		size_t room = used < a->max ? a->max - used : 0;
		const char *chunk = stmt_blob(st, 3, &n);

		if (a->at < byte + (int64_t)n) {
			done = copy_row(chunk, n, (size_t)max_i64(0, a->at - byte), room,
			    used == 0, a->out);
			a->at = byte + (int64_t)done;
			if (done < n)
				return a->out->failed ? E_NOMEM : 0;
		}
		byte += (int64_t)n;
	}
	if (err < 0 || more < 0)
		return err < 0 ? err : more;
	*ret_all = 1;
	return a->out->failed ? E_NOMEM : 0;
}

static int
has_ended(struct record *r, int *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_META_GET);
	int err = stmt_step(st);

	*ret = err > 0 && !stmt_is_null(st, 12);
	return err < 0 ? err : 0;
}

int
record_text_get(struct record *r, int64_t from_byte, size_t max_bytes, struct buf *out,
    struct record_text *ret)
{
	struct answer a = { out, out->len, max_bytes, 0 };
	int64_t seq = 0, byte = 0;
	int all = 0, ended = 0, err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->log_unknown ? record_load_log(r) : 0;
	if (err == 0)
		err = behind_archive(r, &seq, &byte);
	if (err == 0)
		err = has_ended(r, &ended);
	a.at = min_i64(max_i64(from_byte, 0), r->log.total_bytes);
	if (err == 0 && a.at < byte)
		err = read_archive(r, byte, max_bytes, out, &a.at);
	if (err == 0 && a.at >= byte)
		err = read_rows(r, seq, byte, &a, &all);
	if (err < 0)
		return err;
	*ret = (struct record_text) { a.at, all ? r->log.next_seq : 0, all && ended };
	return 0;
}
