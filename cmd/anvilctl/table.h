/*
 * cmd/anvilctl/table.h -- plain tables with aligned columns.
 */
#ifndef CMD_ANVILCTL_TABLE_H
#define CMD_ANVILCTL_TABLE_H

#include <stddef.h>

#include "cmd/anvilctl/text.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"

struct table;

/* ${heads} are the titles, borrowed; one that begins with '>' has its column to the right.
 * NULL: no memory. */
struct table *table_new(const char *const *heads, size_t ncolumns);
struct table *table_free(struct table *t);
DEFINE_CLEANUP(struct table *, table_free)

/* The next cell, row by row.  Control characters are replaced.  Without memory the table is
 * void, which table_render() tells. */
void table_add(struct table *t, enum tone tone, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A word of the contract in its tone. */
void table_add_word(struct table *t, const char *word);
/* Duration, size and time; negative: "-". */
void table_add_duration(struct table *t, int64_t ms);
void table_add_bytes(struct table *t, int64_t n);
void table_add_time(struct table *t, int64_t wall_ms);

size_t table_nrows(const struct table *t);
/* Adds titles and rows, a line each, without blanks at their ends; nothing when there are no
 * rows.  0 or E_NOMEM. */
int table_render(const struct table *t, int color, struct buf *out);

#endif
