/*
 * lib/record/log.h -- the log of a run: the hot tail in run.db, the whole in log.zst
 * (spec run 10, 14).
 *
 * Appending costs the same for the first and the last byte of a run.
 */
#ifndef LIB_RECORD_LOG_H
#define LIB_RECORD_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"

#define RECORD_HOT_BYTES    ((int64_t)2 << 20) /* What run_logs keeps.              */
#define RECORD_TAIL_BYTES   ((int64_t)1 << 20) /* Kept of the end of a capped log.  */
#define RECORD_BATCH_BYTES  ((int64_t)1 << 20) /* Of one record_append().           */
#define RECORD_DETAIL_BYTES ((size_t)8 << 20)  /* Of encoded lines in a run detail. */

struct record;

struct record_row {
	int64_t seq;
	enum log_stream stream;
	int64_t step;      /* 0: none */
	const char *chunk; /* UTF-8, may hold NUL. */
	size_t n;          /* 1..CHUNK_MAX_BYTES */
	int64_t created_at_ms;
};

/* Stores a batch in one transaction and gives each row its seq.  A large one says that the
 * run is ahead of us: its text is archived faster and less tightly, and has no other place
 * (pack.h), up to the cap.
 * 0, E_FULL, E_NOMEM, E_STORAGE: nothing was stored; E_ILLEGAL after the run's end. */
int record_append(struct record *r, struct record_row *rows, size_t n);
/* One system line: redacted, made UTF-8, ended by a newline, cut into chunks. */
int record_note(struct record *r, int64_t step, const char *text, int64_t now_ms);

/* The same for every batch from now on, or no longer. */
void record_set_hurry(struct record *r, int hurry);
/* Puts what waits into a frame of the archive: every 5 s. */
int record_flush(struct record *r);
/* Completes the archive, with the tail of a capped log, and brings it to disk.  Lines that
 * come later are followed by another call. */
int record_finish_log(struct record *r);

/* Row of log_state. */
struct record_log {
	int64_t next_seq, first_seq;
	int64_t hot_bytes, dropped_bytes, total_bytes;
	int64_t archived_seq, archived_bytes, omitted_bytes;
};
int record_log_get(struct record *r, struct record_log *ret);
/* 1 once the cap has been reached. */
int record_is_capped(const struct record *r);

/* Hot rows from ${from_seq} (or first_seq) on, while they fit ${max_bytes}, at least one,
 * without a gap.  They live in ${a}.  The chunk of one whose text power loss has taken says
 * so. */
int record_rows_get(struct record *r, struct arena *a, int64_t from_seq, size_t max_bytes,
    struct record_row **ret, size_t *ret_n);
/* The newest whole rows within ${log_bytes} of text and RECORD_DETAIL_BYTES of JSON,
 * ascending. */
int record_rows_newest(struct record *r, struct arena *a, size_t log_bytes,
    struct record_row **ret, size_t *ret_n);

struct record_text {
	int64_t next_byte;
	int64_t next_seq; /* 0: there is more text to read. */
	int complete;     /* All was read and the run has ended. */
};
/* Full log from position ${from_byte} on, about ${max_bytes} (>= 1) of it: the archive, then
 * the rows behind it.  Appends to ${out}. */
int record_text_get(struct record *r, int64_t from_byte, size_t max_bytes, struct buf *out,
    struct record_text *ret);

#endif
