/* index.rebuild and index.status, for anvilctl. */
#include <stdio.h>

#include "cmd/anvil-ingress/rebuild.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

/* A job that is on its way to the disk. */
struct begun {
	struct ingress *in;
	char job_id[ID_HEX32_SIZE];
};

static void
on_begun(void *arg)
{
	CLEANUP_FREE struct begun *b = arg;

	rebuild_start(b->in->rebuild, b->job_id);
}

int
index_rebuild(struct ingress *in, struct turn *t, const struct index_rebuild_params *p,
    struct index_rebuild_result *ret)
{
	struct begun *b;
	struct index_job job;
	int r = index_job_get(t->store, t->arena, &job);

	(void)p;
	if (r < 0)
		return r;
	if (job.job_id != NULL && job.finished_at == 0) {
		ret->kind = INDEX_REBUILD_RUNNING;
		ret->u.running.job_id = job.job_id;
		return 0;
	}
	b = mem_calloc(1, sizeof(*b));
	if (b == NULL)
		return E_NOMEM;
	b->in = in;
	id_hex32(b->job_id);
	ret->kind = INDEX_REBUILD_STARTED;
	ret->u.started.job_id = arena_strdup(t->arena, b->job_id);
	r = ret->u.started.job_id == NULL
	    ? E_NOMEM
	    : index_job_begin(t->store, b->job_id, "asked", t->now_ms);
	if (r == 0)
		r = turn_after_commit(t, on_begun, b, free);
	if (r < 0)
		free(b);
	return r;
}

int
index_status(struct ingress *in, struct turn *t, const struct index_status_params *p,
    struct index_status_result *ret)
{
	struct index_status_state *s = &ret->u.state;
	int64_t *waiting = arena_calloc(t->arena, SHARDS_MAX, sizeof(*waiting));
	struct rebuild_view view;
	struct index_job job;
	int64_t ownerless;
	int r = waiting != NULL ? index_job_get(t->store, t->arena, &job) : E_NOMEM;

	(void)p;
	if (r == 0)
		r = index_count_ownerless(t->store, &ownerless);
	if (r < 0)
		return r;
	rebuild_look(in->rebuild, &view);
	ret->kind = INDEX_STATUS_STATE;
	*s = (struct index_status_state) { .complete = job.complete,
		.running = job.job_id != NULL && job.finished_at == 0,
		.job_id = job.job_id,
		.has_started_at = job.started_at != 0,
		.started_at = job.started_at,
		.has_finished_at = job.finished_at != 0,
		.finished_at = job.finished_at,
		.shards = (int64_t)in->nshards,
		.shards_read = (int64_t)view.nread,
		.waiting_for = waiting,
		.nwaiting_for = view.nwaiting,
		.projects = job.projects,
		.runs = job.runs,
		.removed = job.removed,
		.owners_missing = ownerless };
	for (size_t i = 0; i < view.nwaiting; i++)
		waiting[i] = view.waiting[i];
	if (job.reason != NULL)
		s->has_reason = rebuild_reason_parse(job.reason, &s->reason) == 0;
	return 0;
}
