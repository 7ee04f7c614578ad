#include "lib/ledger/export.h"

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/ledger/inside.h"

static int
moves(struct store *s, int64_t *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_EXPORT_MOVES);
	int r = stmt_first(st, 0);

	if (r == 0)
		*ret = stmt_int(st, 0);
	return r;
}

static int
runs_after(
    struct store *s, struct arena *a, const char *after, size_t limit, struct ledger_export *e)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_EXPORT_RUNS);

	return ledger_run_rows(
	    st, stmt_bind(st, "si", after, (int64_t)limit), a, &e->runs, &e->nruns);
}

int
ledger_export(struct store *s, struct arena *a, const char *cursor, size_t limit,
    struct ledger_export *ret)
{
	struct ledger_export e = { .projects = NULL };
	int in_runs = id_check(ID_RUN, cursor);
	int r = in_runs || cursor[0] == '\0' || id_check(ID_PROJECT, cursor) ? 0 : E_INVAL;

	if (r == 0)
		r = moves(s, &e.moves);
	if (r == 0 && !in_runs)
		r = ledger_project_list(s, a, cursor, limit, &e.projects, &e.nprojects);
	if (r == 0 && e.nprojects < limit)
		r = runs_after(s, a, in_runs ? cursor : "", limit - e.nprojects, &e);
	if (r < 0)
		return r;
	if (e.nruns > 0)
		e.next = e.runs[e.nruns - 1].run_id;
	else if (e.nprojects > 0)
		e.next = e.projects[e.nprojects - 1].project_id;
	if (e.nprojects + e.nruns < limit)
		e.next = NULL;
	*ret = e;
	return 0;
}
