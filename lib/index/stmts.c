#include "lib/index/stmts.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/index/index.h"

#define LIST_FIRST 16

extern const struct store_migration schema_ingress[];
extern const size_t schema_ingress_count;

static const struct store_stmt_row index_stmts[] = {
#define STMT(name, nparams, sql) { #name, nparams, sql },
#include "schema/ingress.stmt.def"
#undef STMT
};

const struct store_desc index_store = {
	.name = "ingress",
	.migrations = schema_ingress,
	.nmigrations = &schema_ingress_count,
	.stmts = index_stmts,
	.nstmts = ARRAY_LEN(index_stmts),
	.sync = STORE_SYNC_FULL,
};

const char *
index_text(struct stmt *st, int col, struct arena *a, int *err)
{
	const char *text = stmt_text(st, col);
	char *copy;

	if (text == NULL)
		return NULL;
	copy = arena_strdup(a, text);
	if (copy == NULL)
		*err = E_NOMEM;
	return copy;
}

int
index_run_stmt(struct store *s, struct stmt *st, int bound, int must_hit)
{
	int r = bound < 0 ? bound : stmt_run(st);

	if (r == 0 && must_hit == INDEX_ROWS && store_changes(s) == 0)
		r = E_NOENT;
	return r;
}

int
index_list_grow(struct arena *a, void **rows, size_t n, size_t *cap, size_t row_size)
{
	void *more;

	if (n < *cap)
		return 0;
	*cap = *cap == 0 ? LIST_FIRST : *cap * 2;
	more = arena_calloc(a, *cap, row_size);
	if (more == NULL)
		return E_NOMEM;
	if (n != 0)
		memcpy(more, *rows, n * row_size);
	*rows = more;
	return 0;
}
