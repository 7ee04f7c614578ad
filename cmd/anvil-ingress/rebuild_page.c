#include "cmd/anvil-ingress/rebuild_page.h"

#include "cmd/anvil-ingress/hub_row.h"
#include "cmd/anvil-ingress/rows.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

/* What this row alone is guilty of; the rest concerns the whole page. */
static int
is_of_row(int err)
{
	return err == E_CONSTRAINT || err == E_ILLEGAL || err == E_EXISTS;
}

static int
add_project(struct turn *t, int64_t shard, const struct exported_project *e,
    struct rebuild_counts *counts)
{
	struct index_project row = rows_index_project(&e->project, shard);
	int r;

	row.rev = e->rev;
	r = index_project_exported(t->store, &row, e->phase != PROJECT_PHASE_INCOMING);
	if (r == 0)
		counts->projects++;
	if (!is_of_row(r))
		return r;
	counts->refused++;
	log_event(LOG_LEVEL_WARN, "index_project_refused",
	    LOG_STR("projectId", e->project.project_id), LOG_INT("shard", shard),
	    LOG_STR("errorCode", err_symbol(r)));
	return 0;
}

static int
add_run(
    struct ingress *in, struct turn *t, const struct run_row *e, struct rebuild_counts *counts)
{
	struct index_run row = rows_index_run(e);
	int r = index_run_upsert(t->store, &row);

	if (r == E_NOENT)
		return 0; /* Its project was removed meanwhile, or refused. */
	if (is_of_row(r)) {
		log_event(LOG_LEVEL_ERROR, "index_row_refused", LOG_STR("runId", e->run_id),
		    LOG_STR("projectId", e->project_id), LOG_STR("errorCode", err_symbol(r)));
		return 0;
	}
	if (r < 0)
		return r;
	counts->runs++;
	hub_row_changes(in, t, e->run_id);
	return 0;
}

int
rebuild_page(struct ingress *in, struct turn *t, int64_t shard,
    const struct project_export_index_page *page, struct rebuild_counts *counts)
{
	int r = 0;

	for (size_t i = 0; i < page->nprojects && r == 0; i++)
		r = add_project(t, shard, &page->projects[i], counts);
	for (size_t i = 0; i < page->nbroken && r == 0; i++)
		r = index_project_met(t->store, page->broken[i]);
	for (size_t i = 0; i < page->nruns && r == 0; i++)
		r = add_run(in, t, &page->runs[i], counts);
	return r;
}
