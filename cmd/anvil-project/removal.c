#include "cmd/anvil-project/removal.h"

#include <stdio.h>

#include "cmd/anvil-project/shard.h"
#include "gen/ingress.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct removals {
	struct shard *shard;
	struct removal *now; /* in flight, or NULL */
};

/* The index forgets it, then the supervisor its files, then its rows go. */
struct removal {
	struct removals *owner; /* NULL: the shard has gone */
	char project_id[ID_SIZE];
};

struct removals *
removals_new(struct shard *s)
{
	struct removals *m = mem_calloc(1, sizeof(*m));

	if (m != NULL)
		m->shard = s;
	return m;
}

struct removals *
removals_free(struct removals *m)
{
	if (m != NULL && m->now != NULL)
		m->now->owner = NULL;
	free(m);
	return NULL;
}

static void
removal_free(struct removal *rm)
{
	if (rm->owner != NULL)
		rm->owner->now = NULL;
	free(rm);
}

static void
is_deleted(void *arg)
{
	struct removal *rm = arg;

	log_event(LOG_LEVEL_INFO, "project_removed", LOG_STR("projectId", rm->project_id));
	if (rm->owner != NULL)
		shard_wake(rm->owner->shard);
	removal_free(rm);
}

static void
is_not_deleted(void *arg)
{
	removal_free(arg); /* the re-check begins again */
}

struct deletion {
	struct removal *rm;
	int promised; /* An effect frees it. */
};

static int
delete_turn(void *arg, struct turn *t)
{
	struct deletion *d = arg;
	int r = ledger_project_delete(t->store, d->rm->project_id);

	if (r == 0)
		r = shard_clean_after(d->rm->owner->shard, t);
	if (r == 0)
		r = turn_after_commit(t, is_deleted, d->rm, is_not_deleted);
	d->promised = r == 0;
	return r;
}

static void
on_files(void *arg, int err, const struct supervisor_remove_project_result *res)
{
	struct removal *rm = arg;
	struct deletion d = { .rm = rm };

	(void)res;
	CRASH_POINT("removal_files_gone");
	if (rm->owner != NULL && err == 0)
		(void)actor_turn(rm->owner->shard->actor, 1, delete_turn, &d);
	if (!d.promised)
		removal_free(rm); /* the re-check begins again */
}

static void
on_index(void *arg, int err, const struct index_remove_project_result *res)
{
	struct removal *rm = arg;
	struct supervisor_remove_project_params params = { .project_id = rm->project_id };
	struct rpc_peer *p = rm->owner != NULL ? shard_supervisor(rm->owner->shard) : NULL;

	(void)res;
	CRASH_POINT("removal_out_of_index");
	if (err < 0 || p == NULL ||
	    supervisor_remove_project_call(p, NULL, &params, on_files, rm) < 0)
		removal_free(rm);
}

static int
begin(struct removals *m, const char *project_id)
{
	struct index_remove_project_params params = { .project_id = project_id };
	struct rpc_peer *p = link_peer(m->shard->ingress);
	struct removal *rm;
	int r;

	if (p == NULL)
		return 0;
	rm = mem_calloc(1, sizeof(*rm));
	if (rm == NULL)
		return E_NOMEM;
	(void)snprintf(rm->project_id, sizeof(rm->project_id), "%s", project_id);
	rm->owner = m;
	m->now = rm;
	r = index_remove_project_call(p, NULL, &params, on_index, rm);
	if (r < 0)
		removal_free(rm);
	return r;
}

int
removals_pump(struct removals *m, struct turn *t)
{
	const char **ids;
	size_t n;
	int r;

	if (m->now != NULL)
		return 0;
	r = ledger_project_removing(t->store, t->arena, &ids, &n);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct ledger_run head;

		/* Queued runs were canceled when it began: a head is all that can be left. */
		r = ledger_run_head(t->store, t->arena, ids[i], &head);
		if (r == E_NOENT)
			return begin(m, ids[i]);
	}
	return r;
}
