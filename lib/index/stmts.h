/*
 * lib/index/stmts.h -- the statements of ingress.db, by name (private).
 */
#ifndef LIB_INDEX_STMTS_H
#define LIB_INDEX_STMTS_H

#include "lib/base/arena.h"
#include "lib/store/store.h"

enum index_stmt {
#define STMT(name, nparams, sql) IX_##name,
#include "schema/ingress.stmt.def"
#undef STMT
	IX_STMT_COUNT
};

/* Text of a column in the arena.  NULL: the column is null, or (then *err) out of memory. */
const char *index_text(struct stmt *st, int col, struct arena *a, int *err);

/* Binds and runs a statement that changes rows; E_NOENT when it hit none and ${must_hit}. */
#define INDEX_ANY  0
#define INDEX_ROWS 1
int index_run_stmt(struct store *s, struct stmt *st, int bound, int must_hit);

/* Doubles the room for a list that grows row by row.  0 or E_NOMEM. */
int index_list_grow(struct arena *a, void **rows, size_t n, size_t *cap, size_t row_size);

#endif
