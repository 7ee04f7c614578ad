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

/* Binds and runs a statement that changes rows; E_NOENT when it hit none and ${must_hit}. */
#define INDEX_ANY  0
#define INDEX_ROWS 1
int index_run_stmt(struct store *s, struct stmt *st, int bound, int must_hit);

#endif
