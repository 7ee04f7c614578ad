#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/inside.h"

#define FRAMES_AT_ONCE 64  /* As FRAME_FROM asks. */
#define ROW_JSON_BYTES 160 /* What the members around a chunk take in JSON, at most. */

static enum log_stream
stream_of(const char *name)
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

static int
add_row(struct row_list *l, struct stmt *st)
{
	size_t n;
	const char *chunk = stmt_blob(st, 3, &n);
	char *copy = arena_alloc(l->a, n + 1);

	if (copy == NULL || (l->n == l->cap && grow(l) < 0))
		return E_NOMEM;
	memcpy(copy, chunk, n);
	l->rows[l->n++] = (struct record_row) {
		.seq = stmt_int(st, 0),
		.stream = stream_of(stmt_text(st, 1)),
		.step = stmt_int(st, 2),
		.chunk = copy,
		.n = n,
		.created_at_ms = stmt_int(st, 4),
	};
	return 0;
}

int
record_rows_get(struct record *r, struct arena *a, int64_t from_seq, size_t max_bytes,
    struct record_row **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	struct row_list l = { a, NULL, 0, 0 };
	size_t bytes = 0;
	int err, more = 0;

	OBJ_CHECK(r, RECORD_MAGIC);
	st = store_stmt(r->store, STMT_LOG_FROM);
	err = stmt_bind(st, "i", from_seq);
	while (err == 0 && (more = stmt_step(st)) > 0) {
		size_t n;

		(void)stmt_blob(st, 3, &n);
		bytes += n;
		if (l.n != 0 && bytes > max_bytes)
			break;
		err = add_row(&l, st);
	}
	if (err < 0 || more < 0)
		return err < 0 ? err : more;
	*ret = l.rows;
	*ret_n = l.n;
	return 0;
}

/* Bytes of a chunk as a JSON string, at most. */
static size_t
json_bytes(const uint8_t *p, size_t n)
{
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

/* First seq of the newest rows that fit both limits. */
static int
find_newest(struct record *r, size_t log_bytes, int64_t *ret_seq)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_LOG_NEWEST);
	size_t bytes = 0, encoded = 0;
	int more;

	while ((more = stmt_step(st)) > 0) {
		size_t n;
		const uint8_t *chunk = stmt_blob(st, 1, &n);

		bytes += n;
		encoded += json_bytes(chunk, n) + ROW_JSON_BYTES;
		if (bytes > log_bytes || encoded > RECORD_DETAIL_BYTES)
			break;
		*ret_seq = stmt_int(st, 0);
	}
	return more < 0 ? more : 0;
}

int
record_rows_newest(
    struct record *r, struct arena *a, size_t log_bytes, struct record_row **ret, size_t *ret_n)
{
	int64_t from = INT64_MAX;
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = find_newest(r, log_bytes, &from);
	return err < 0 ? err : record_rows_get(r, a, from, log_bytes, ret, ret_n);
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
