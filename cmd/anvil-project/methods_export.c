/* project.exportIndex: all that the index is told, page by page (spec project 18). */
#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/shard.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"

static int
add_projects(struct shard *s, struct turn *t, const struct ledger_export *e,
    struct project_export_index_page *page)
{
	struct exported_project *rows = arena_calloc(t->arena, e->nprojects, sizeof(*rows));
	const char **broken = arena_calloc(t->arena, e->nprojects, sizeof(*broken));

	if (rows == NULL || broken == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < e->nprojects; i++) {
		const struct ledger_project *p = &e->projects[i];
		struct exported_project *row = &rows[page->nprojects];

		if (!convert_fits_project(p, t->arena) ||
		    project_phase_parse(p->phase, &row->phase) < 0) {
			broken_tell(s->broken, p->project_id, p->project_id);
			if (id_check(ID_PROJECT, p->project_id))
				broken[page->nbroken++] = p->project_id;
			continue;
		}
		row->rev = p->index_rev;
		convert_project(p, &row->project);
		page->nprojects++;
	}
	page->projects = rows;
	page->broken = broken;
	return 0;
}

static int
add_runs(struct shard *s, struct turn *t, const struct ledger_export *e,
    struct project_export_index_page *page)
{
	struct run_row *rows = arena_calloc(t->arena, e->nruns, sizeof(*rows));

	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < e->nruns; i++) {
		const struct ledger_run *run = &e->runs[i];
		struct run_row *row = &rows[page->nruns];

		if (convert_run(run, row) < 0) {
			broken_tell(s->broken, run->run_id, run->project_id);
			continue;
		}
		row->has_position = 0; /* a matter of the queue, not of the index */
		page->nruns++;
	}
	page->runs = rows;
	return 0;
}

int
project_export_index(struct shard *s, struct turn *t,
    const struct project_export_index_params *p, struct project_export_index_result *ret)
{
	struct project_export_index_page *page = &ret->u.page;
	struct ledger_export e;
	int r = ledger_export(
	    t->store, t->arena, p->cursor != NULL ? p->cursor : "", (size_t)p->limit, &e);

	if (r == E_INVAL)
		return turn_fail(t, E_INVAL, "not a cursor that was given here");
	ret->kind = PROJECT_EXPORT_INDEX_PAGE;
	if (r == 0)
		r = add_projects(s, t, &e, page);
	if (r == 0)
		r = add_runs(s, t, &e, page);
	if (r < 0)
		return r;
	CRASH_POINT("index_page_read");
	page->next = e.next;
	page->moves = e.moves;
	return 0;
}
