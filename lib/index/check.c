#include "lib/index/check.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/index/index.h"
#include "lib/index/stmts.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/ingress.rules.def"
#undef RULE
};

int
index_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret)
{
	return store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);
}

static int
find(void *arg, struct store *s, int64_t now_ms, struct store_problems *ret)
{
	(void)arg;
	return index_find_problems(s, now_ms, ret);
}

int
index_inspect(const char *path, int64_t now_ms, struct store_problems *ret)
{
	return store_inspect(&index_store, path, find, NULL, now_ms, ret);
}

/* ---- mending ---- */

#define LOST "Internal error: no ledger knows this run any more"

static int
change(struct store *s, enum index_stmt which, const char *subject, int *mended)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);
	int r = index_run_stmt(s, st, stmt_bind(st, "s", subject), INDEX_ANY);

	if (r == 0 && store_changes(s) > 0)
		*mended = 1;
	return r;
}

/* A row that is kept answers for its project meanwhile, so that nobody hears that there is none.
 * One that cannot be kept, or is of no project, goes. */
static int
doubt_project(struct store *s, const char *project_id, int *mended)
{
	int r = change(s, IX_MEND_PROJECT, project_id, mended);

	return r == E_CONSTRAINT || (r == 0 && !*mended)
	    ? change(s, IX_MEND_PROJECT_AWAY, project_id, mended)
	    : r;
}

int
index_mend(struct store *s, const char *code, const char *subject, int *ret_mended)
{
	static const struct {
		const char *code;
		enum index_stmt which;
	} ways[] = { { "session_row", IX_MEND_SESSIONS },
		{ "session_orphan", IX_MEND_SESSIONS }, { "session_orphan", IX_MEND_TICKETS },
		{ "session_orphan", IX_MEND_CREDENTIALS }, { "index_run_orphan", IX_MEND_RUN },
		{ "index_run_row", IX_MEND_RUN } };
	int r = 0;

	*ret_mended = 0;
	if (strcmp(code, "index_project_row") == 0)
		return doubt_project(s, subject, ret_mended);
	for (size_t i = 0; i < ARRAY_LEN(ways) && r == 0; i++)
		if (strcmp(ways[i].code, code) == 0)
			r = change(s, ways[i].which, subject, ret_mended);
	return r;
}

int
index_forget_run(struct store *s, const char *run_id)
{
	int any = 0;

	return change(s, IX_MEND_RUN, run_id, &any);
}

int
index_doubt_project(struct store *s, const char *project_id)
{
	int any = 0;

	return doubt_project(s, project_id, &any);
}

int
index_end_lost_run(struct store *s, const char *run_id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_MEND_END_RUN);

	return index_run_stmt(s, st, stmt_bind(st, "sis", run_id, now_ms, LOST), INDEX_ANY);
}
