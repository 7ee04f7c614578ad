#include "lib/index/stmts.h"

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/index/index.h"

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

int
index_run_stmt(struct store *s, struct stmt *st, int bound, int must_hit)
{
	int r = bound < 0 ? bound : stmt_run(st);

	if (r == 0 && must_hit == INDEX_ROWS && store_changes(s) == 0)
		r = E_NOENT;
	return r;
}
