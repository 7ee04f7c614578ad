#include "lib/record/pack.h"

#include "lib/base/err.h"
#include "lib/record/inside.h"

static int
unpack_sizes(struct pack *p, const uint8_t *sizes, size_t n)
{
	size_t nchunks = (size_t)(p->last_seq - p->first_seq + 1);

	if (nchunks > PACK_CHUNKS_MAX || n != 2 * nchunks)
		return E_CORRUPT;
	for (size_t i = 0; i < nchunks; i++)
		p->sizes[i] = (uint16_t)(sizes[2 * i] << 8 | sizes[2 * i + 1]);
	return 0;
}

int
pack_at(struct record *r, int64_t seq, struct pack *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(r->store, STMT_PACK_AT);
	int err = stmt_bind(st, "i", seq);
	const uint8_t *sizes;
	size_t n;

	if (err == 0)
		err = stmt_step(st);
	if (err <= 0)
		return err;
	ret->first_seq = stmt_int(st, 0);
	ret->last_seq = stmt_int(st, 1);
	ret->first_byte = stmt_int(st, 2);
	ret->stream = record_stream_of(stmt_text(st, 3));
	ret->step = stmt_int(st, 4);
	ret->created_at_ms = stmt_int(st, 5);
	sizes = stmt_blob(st, 6, &n);
	err = unpack_sizes(ret, sizes, n);
	return err < 0 ? err : 1;
}

/* How many of ${rows} may share a pack with the first. */
static size_t
run_length(const struct record_row *rows, size_t n)
{
	size_t same = 1;

	while (same < n && same < PACK_CHUNKS_MAX && rows[same].stream == rows[0].stream &&
	    rows[same].step == rows[0].step &&
	    rows[same].created_at_ms == rows[0].created_at_ms)
		same++;
	return same;
}

static int
put_pack(struct record *r, const struct record_row *rows, size_t n, int64_t first_seq,
    int64_t byte, int64_t text_size)
{
	uint8_t sizes[2 * PACK_CHUNKS_MAX];

	for (size_t i = 0; i < n; i++) {
		sizes[2 * i] = (uint8_t)(rows[i].n >> 8);
		sizes[2 * i + 1] = (uint8_t)rows[i].n;
	}
	return RECORD_RUN(r, STMT_PACK_ADD, "iiiisIib", first_seq, first_seq + (int64_t)n - 1,
	    byte, text_size, log_stream_name(rows[0].stream),
	    rows[0].step != 0 ? &rows[0].step : NULL, rows[0].created_at_ms, sizes, 2 * n);
}

int
pack_put_rows(
    struct record *r, struct record_row *rows, size_t n, int64_t byte, struct record_log *log)
{
	int err = 0;

	while (err == 0 && n != 0) {
		size_t same = run_length(rows, n);
		int64_t first_seq = log->next_seq, text_size = 0;

		for (size_t i = 0; i < same; i++) {
			rows[i].seq = log->next_seq++;
			text_size += (int64_t)rows[i].n;
		}
		err = put_pack(r, rows, same, first_seq, byte, text_size);
		log->hot_bytes += text_size;
		log->total_bytes += text_size;
		byte += text_size;
		rows += same;
		n -= same;
	}
	return err;
}

int
pack_drop(struct record *r, const struct pack *p)
{
	return RECORD_RUN(r, STMT_PACK_DROP, "i", p->last_seq);
}
