#include "cmd/anvil-ingress/check.h"

#include <string.h>

#include "cmd/anvil-ingress/hub_row.h"
#include "cmd/anvil-ingress/ingress.h"
#include "cmd/anvil-ingress/rows.h"
#include "gen/ingress.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"

/* ---- mending ---- */

static int
mend(void *ctx, struct turn *t, struct store_problem *p)
{
	(void)ctx;
	return index_mend(t->store, p->code, p->subject, &p->mended);
}

const struct actor_check ingress_checks = { .look = index_inspect, .mend = mend };

static void
note_mended(const char *code, const char *subject)
{
	log_event(LOG_LEVEL_WARN, "problem_mended", LOG_STR("code", code),
	    LOG_STR("subject", subject));
}

int
index_mend_copies(struct ingress *in, struct turn *t, const struct index_mend_copies_params *p,
    struct index_mend_copies_result *ret)
{
	int r = 0;

	for (size_t i = 0; i < p->nforget_runs && r == 0; i++) {
		r = index_forget_run(t->store, p->forget_runs[i]);
		note_mended("index_run_differs", p->forget_runs[i]);
	}
	for (size_t i = 0; i < p->ndoubt_projects && r == 0; i++) {
		r = index_doubt_project(t->store, p->doubt_projects[i]);
		note_mended("index_project_differs", p->doubt_projects[i]);
	}
	for (size_t i = 0; i < p->nend_runs && r == 0; i++) {
		r = index_end_lost_run(t->store, p->end_runs[i], t->now_ms);
		hub_row_changes(in, t, p->end_runs[i]);
		note_mended("index_run_unknown", p->end_runs[i]);
	}
	CRASH_POINT("index_mends_copies");
	ret->kind = INDEX_MEND_COPIES_OK;
	return r;
}

/* ---- index.list ---- */

/* A cursor is the id that a page ended with, of a project or a run; "run_" begins the runs. */
#define RUNS_BEGIN "run_"

/* What the contract would refuse is told by actor.check. */
static int
run_is_readable(const struct index_run *r)
{
	enum trigger_type trigger;
	enum failure_code code;
	enum run_status status;

	return id_check(ID_RUN, r->id) && id_check(ID_PROJECT, r->project_id) && r->rev >= 1 &&
	    r->branch != NULL && r->status != NULL && r->trigger_type != NULL &&
	    run_status_parse(r->status, &status) == 0 &&
	    trigger_type_parse(r->trigger_type, &trigger) == 0 &&
	    (r->failure_code == NULL || failure_code_parse(r->failure_code, &code) == 0);
}

static int
list_projects(struct turn *t, const char *after, size_t limit, struct index_list_result *ret)
{
	struct index_project_row *rows = arena_calloc(t->arena, limit, sizeof(*rows));
	struct index_project *found;
	size_t n;
	int r = rows != NULL
	    ? index_projects_after(t->store, t->arena, after, limit, &found, &n)
	    : E_NOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct index_project_row) { .config = rows_project_config(&found[i]),
			.shard = found[i].shard,
			.confirmed = found[i].confirmed,
			.rev = found[i].rev };
	ret->projects = rows;
	ret->nprojects = n;
	ret->next = n == limit ? found[n - 1].id : RUNS_BEGIN;
	return 0;
}

static int
list_runs(struct turn *t, const char *after, size_t limit, struct index_list_result *ret)
{
	struct run_row *rows = arena_calloc(t->arena, limit, sizeof(*rows));
	struct index_run *found;
	size_t n;
	int r = rows != NULL ? index_runs_after(t->store, t->arena, after, limit, &found, &n)
			     : E_NOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (run_is_readable(&found[i]))
			rows[ret->nruns++] = rows_run_row(&found[i]);
	ret->runs = rows;
	ret->next = n == limit ? found[n - 1].id : NULL;
	return 0;
}

int
index_list(struct ingress *in, struct turn *t, const struct index_list_params *p,
    struct index_list_result *ret)
{
	const char *cursor = p->cursor != NULL ? p->cursor : "";
	struct index_job job;
	int r = index_job_get(t->store, t->arena, &job);

	(void)in;
	if (r < 0)
		return r;
	ret->complete = job.complete;
	ret->rebuilding = job.job_id != NULL && job.finished_at == 0;
	return strncmp(cursor, RUNS_BEGIN, strlen(RUNS_BEGIN)) == 0
	    ? list_runs(t, cursor, (size_t)p->limit, ret)
	    : list_projects(t, cursor, (size_t)p->limit, ret);
}
