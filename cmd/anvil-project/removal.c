#include "cmd/anvil-project/removal.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/shard.h"
#include "gen/ingress.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define FILES_MS     60000 /* for the supervisor: there may be much to remove */
#define AGAIN_MS     1000  /* when something did not work, doubling to ...    */
#define AGAIN_MS_MAX 30000

struct removals {
	struct shard *shard;
	struct removal *now;       /* in flight, or NULL                               */
	char newest[ID_SIZE];      /* tried last: the next one behind it has its turn  */
	struct actor_timer *again; /* until then nothing is tried                      */
	int64_t again_ms;
};

/* The index forgets it, then the supervisor its files, then its rows go, some at a time. */
struct removal {
	struct removals *owner; /* NULL: the shard has gone */
	char project_id[ID_SIZE];
	int left; /* There are more rows. */
};

static void delete_some(struct removal *rm);

static void
on_again(void *arg)
{
	const struct removals *m = arg;

	shard_wake(m->shard);
}

struct removals *
removals_new(struct shard *s)
{
	struct removals *m = mem_calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->shard = s;
	m->again = actor_timer_new(s->actor, on_again, m);
	return m->again != NULL ? m : removals_free(m);
}

struct removals *
removals_free(struct removals *m)
{
	if (m == NULL)
		return NULL;
	if (m->now != NULL)
		m->now->owner = NULL;
	actor_timer_free(m->again);
	free(m);
	return NULL;
}

/* The next one begins at once, or, when this one has to begin again, later. */
static void
removal_over(struct removal *rm, int done)
{
	struct removals *m = rm->owner;

	if (m != NULL) {
		m->now = NULL;
		m->again_ms = done ? 0
				   : max_i64(AGAIN_MS, min_i64(2 * m->again_ms, AGAIN_MS_MAX));
		(void)actor_timer_set(m->again, m->again_ms);
	}
	free(rm);
}

static void
is_deleted(void *arg)
{
	struct removal *rm = arg;

	if (rm->left) {
		delete_some(rm);
		return;
	}
	log_event(LOG_LEVEL_INFO, "project_removed", LOG_STR("projectId", rm->project_id));
	removal_over(rm, 1);
}

static void
is_not_deleted(void *arg)
{
	removal_over(arg, 0);
}

struct deletion {
	struct removal *rm;
	int promised; /* An effect frees it. */
};

static int
delete_turn(void *arg, struct turn *t)
{
	struct deletion *d = arg;
	struct removal *rm = d->rm;
	int r = ledger_empty_some(t->store, rm->project_id, LEDGER_EMPTY_ROWS, &rm->left);

	if (r == 0 && !rm->left)
		r = ledger_project_delete(t->store, rm->project_id);
	if (r == 0 && !rm->left)
		r = shard_clean_after(rm->owner->shard, t);
	if (r == 0)
		r = turn_after_commit(t, is_deleted, rm, is_not_deleted);
	d->promised = r == 0;
	return r;
}

static void
delete_some(struct removal *rm)
{
	struct deletion d = { .rm = rm };

	if (rm->owner != NULL)
		(void)actor_turn(rm->owner->shard->actor, 1, delete_turn, &d);
	if (!d.promised)
		removal_over(rm, 0);
}

static void
on_files(void *arg, int err, const struct supervisor_remove_project_result *res)
{
	struct removal *rm = arg;

	(void)res;
	CRASH_POINT("removal_files_gone");
	if (err == 0)
		delete_some(rm);
	else
		removal_over(rm, 0);
}

static void
on_index(void *arg, int err, const struct index_remove_project_result *res)
{
	static const struct rpc_call_opts opts = { .deadline_ms = FILES_MS };
	struct removal *rm = arg;
	struct supervisor_remove_project_params params = { .project_id = rm->project_id };
	struct rpc_peer *p = rm->owner != NULL ? shard_supervisor(rm->owner->shard) : NULL;

	(void)res;
	CRASH_POINT("removal_out_of_index");
	if (err < 0 || p == NULL ||
	    supervisor_remove_project_call(p, &opts, &params, on_files, rm) < 0)
		removal_over(rm, 0);
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
	(void)snprintf(m->newest, sizeof(m->newest), "%s", project_id);
	rm->owner = m;
	m->now = rm;
	r = index_remove_project_call(p, NULL, &params, on_index, rm);
	if (r < 0)
		removal_over(rm, 0);
	return r;
}

/* 1: no run of it is left.  Queued ones were canceled when its removal began: a head is all that
 * there can be. */
static int
is_ready(struct turn *t, const char *project_id)
{
	struct ledger_run head;
	int r = ledger_run_head(t->store, t->arena, project_id, &head);

	return r == E_NOENT ? 1 : r == E_CORRUPT ? 0 : r;
}

/* In the order of their ids behind the newest: one that cannot be brought to its end keeps no
 * other one waiting. */
static int
comes_before(const struct removals *m, const char *a, const char *b)
{
	int a_behind = strcmp(a, m->newest) > 0, b_behind = strcmp(b, m->newest) > 0;

	return a_behind != b_behind ? a_behind : strcmp(a, b) < 0;
}

int
removals_pump(struct removals *m, struct turn *t)
{
	const char **ids, *next = NULL;
	size_t n;
	int r;

	if (m->now != NULL || actor_timer_is_set(m->again))
		return 0;
	r = ledger_project_removing(t->store, t->arena, &ids, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = is_ready(t, ids[i]);
		if (r == 1 && (next == NULL || comes_before(m, ids[i], next)))
			next = ids[i];
	}
	return r < 0 ? r : next != NULL ? begin(m, next) : 0;
}
