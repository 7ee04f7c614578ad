/* index.*: what shards tell the index (project 13). */
#include "cmd/anvil-ingress/hub_row.h"
#include "cmd/anvil-ingress/ingress.h"
#include "cmd/anvil-ingress/reseal.h"
#include "cmd/anvil-ingress/rows.h"
#include "gen/ingress.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* A project lives elsewhere now. */
struct shard_set {
	struct ingress *in;
	int64_t shard;
};

static enum upsert_kind
upsert_one(struct turn *t, const struct run_row *row, int *ret_err)
{
	struct index_run r = rows_index_run(row);
	int err = index_run_upsert(t->store, &r);

	*ret_err = 0;
	if (err == 0)
		return UPSERT_KIND_APPLIED;
	if (err == E_NOENT)
		return UPSERT_KIND_UNKNOWN_PROJECT;
	/* What this row alone is guilty of stays with it; the rest concerns the whole call. */
	if (err != E_CONSTRAINT && err != E_ILLEGAL)
		*ret_err = err;
	log_event(LOG_LEVEL_ERROR, "index_row_refused", LOG_STR("runId", row->run_id),
	    LOG_STR("projectId", row->project_id), LOG_STR("errorCode", err_symbol(err)));
	return UPSERT_KIND_FAILED;
}

int
index_upsert_runs(struct ingress *in, struct turn *t, const struct index_upsert_runs_params *p,
    struct index_upsert_runs_result *ret)
{
	struct upsert_result *results = arena_calloc(t->arena, p->nrows, sizeof(*results));
	int r;

	if (results == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < p->nrows; i++) {
		results[i].run_id = p->rows[i].run_id;
		results[i].kind = upsert_one(t, &p->rows[i], &r);
		if (r < 0)
			return r;
		hub_row_changes(in, t, p->rows[i].run_id);
	}
	ret->kind = INDEX_UPSERT_RUNS_OK;
	ret->u.ok.results = results;
	ret->u.ok.nresults = p->nrows;
	return 0;
}

int
index_upsert_project(struct ingress *in, struct turn *t,
    const struct index_upsert_project_params *p, struct index_upsert_project_result *ret)
{
	struct index_project row = rows_index_project(&p->project, p->shard);
	int r;

	(void)in;
	row.rev = p->rev;
	r = index_project_upsert(t->store, &row);
	if (r < 0 && r != E_EXISTS)
		return r;
	ret->kind = r == 0 ? INDEX_UPSERT_PROJECT_APPLIED : INDEX_UPSERT_PROJECT_SLUG_CONFLICT;
	if (r == E_EXISTS)
		log_event(LOG_LEVEL_ERROR, "project_slug_conflict",
		    LOG_STR("projectId", p->project.project_id));
	return 0;
}

static void
shard_is_set(void *arg)
{
	struct shard_set *c = arg;

	CRASH_POINT("index_shard_set");
	c->in->moves++;
	/* Walks that were under way may have come here too early, and there too late. */
	reseal_kick(c->in->reseal, c->shard);
	mem_free(c);
}

static void
shard_is_not_set(void *arg)
{
	mem_free(arg);
}

int
index_set_shard(struct ingress *in, struct turn *t, const struct index_set_shard_params *p,
    struct index_set_shard_result *ret)
{
	struct shard_set *c = mem_calloc(1, sizeof(*c));
	int r = c != NULL ? index_project_confirm(t->store, p->project_id, p->shard) : E_NOMEM;

	ret->kind = r == E_NOENT ? INDEX_SET_SHARD_UNKNOWN_PROJECT : INDEX_SET_SHARD_APPLIED;
	if (r == 0) {
		*c = (struct shard_set) { in, p->shard };
		r = turn_after_commit(t, shard_is_set, c, shard_is_not_set);
		if (r == 0)
			return 0;
	}
	mem_free(c);
	return r == E_NOENT ? 0 : r;
}

int
index_remove_project(struct ingress *in, struct turn *t,
    const struct index_remove_project_params *p, struct index_remove_project_result *ret)
{
	(void)in;
	ret->kind = INDEX_REMOVE_PROJECT_REMOVED;
	return index_project_remove(t->store, p->project_id);
}
