/* supervisor.db: its schema and its statements. */
#include "cmd/anvild/supervisor.h"
#include "lib/base/base.h"
#include "lib/store/store.h"

extern const struct store_migration schema_supervisor[];
extern const size_t schema_supervisor_count;

static const struct store_stmt_row supervisor_stmts[] = {
#define STMT(name, nparams, sql) { #name, nparams, sql },
#include "schema/supervisor.stmt.def"
#undef STMT
};

const struct store_desc supervisor_store = { .name = "supervisor",
	.migrations = schema_supervisor,
	.nmigrations = &schema_supervisor_count,
	.stmts = supervisor_stmts,
	.nstmts = ARRAY_LEN(supervisor_stmts),
	.sync = STORE_SYNC_FULL };

struct stmt *
sup_stmt(struct turn *t, enum supervisor_stmt which)
{
	return store_stmt(t->store, (unsigned)which);
}
