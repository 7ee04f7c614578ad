/*
 * lib/record/pack.h -- chunks whose text is in log.zst alone: rows of log_packs.
 *
 * When a run prints faster than rows can be written, its text goes to the archive first, and
 * of its chunks only seq, stream, step, time and place are stored.  They are part of the hot
 * tail as any row is (spec run 10), and read back from the archive.
 */
#ifndef LIB_RECORD_PACK_H
#define LIB_RECORD_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "lib/record/log.h"

#define PACK_CHUNKS_MAX 128

/* Neighbouring chunks of one stream, step and time. */
struct pack {
	int64_t first_seq, last_seq;
	int64_t first_byte; /* Where the first begins in the log. */
	enum log_stream stream;
	int64_t step; /* 0: none */
	int64_t created_at_ms;
	uint16_t sizes[PACK_CHUNKS_MAX];
};

static inline int
pack_holds(const struct pack *p, int64_t seq)
{
	return p->first_seq <= seq && seq <= p->last_seq;
}

/* Bytes of the chunk ${seq}, which it holds. */
static inline int64_t
pack_size(const struct pack *p, int64_t seq)
{
	return p->sizes[seq - p->first_seq];
}

/* The pack that holds ${seq}, or else the next one behind.  1; 0: there is none; an error. */
int pack_at(struct record *r, int64_t seq, struct pack *ret);

/* Inside a transaction, each: stores rows, whose text begins at ${byte} of the log and is in
 * frames that are recorded by now, gives them their seqs and moves ${log} on. */
int pack_put_rows(
    struct record *r, struct record_row *rows, size_t n, int64_t byte, struct record_log *log);
int pack_drop(struct record *r, const struct pack *p);

#endif
