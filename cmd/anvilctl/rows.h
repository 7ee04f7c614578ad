/*
 * cmd/anvilctl/rows.h -- a run's log as JSON, an object a line.
 */
#ifndef CMD_ANVILCTL_ROWS_H
#define CMD_ANVILCTL_ROWS_H

#include <stdint.h>

#include "gen/types.h"
#include "lib/base/buf.h"

/* What the lines before have told. */
struct rows {
	int64_t step; /* that they belong to; 0: none has begun */
};

/* 1 for a header that the run writes itself: `Step 2/3: name`. */
int rows_is_header(const char *p, size_t n);

/* Adds an object for each line of ${row}: seq, time, step (null before the first), stream, text.
 * The text ends with its newline, unless the line goes on in a later row of its stream.
 * 0 or E_NOMEM. */
int rows_add(struct rows *r, const struct log_row *row, struct buf *out);
/* Lines that are kept as text alone: {"gap": {"fromSeq", "toSeq"}}.  0 or E_NOMEM. */
int rows_add_gap(int64_t from_seq, int64_t to_seq, struct buf *out);

#endif
