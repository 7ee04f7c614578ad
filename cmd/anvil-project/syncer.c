#include "cmd/anvil-project/syncer.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/shard.h"
#include "gen/ingress.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define DEADLINE_MS 10000

/* A row that was sent: which truth the answer will confirm. */
struct sent_row {
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
	int64_t rev;
};

struct sent_runs {
	uint32_t magic;
#define SENT_MAGIC 0x40e7b5d3
	struct syncer *owner; /* NULL: the shard has gone */
	size_t n;
	struct sent_row rows[LEDGER_SYNC_ROWS];
};

struct sent_project {
	struct syncer *owner;
	char project_id[ID_SIZE];
	int64_t rev;
};

struct syncer {
	struct shard *shard;
	struct sent_runs *runs;       /* in flight, or NULL */
	struct sent_project *project; /* in flight, or NULL */
	/* A failure was logged and nothing has worked since. */
	int runs_fail, projects_fail;
	/* So many rows go out one by one: together they were refused, and one of them is to blame. */
	size_t singly;
};

struct syncer *
syncer_new(struct shard *s)
{
	struct syncer *y = mem_calloc(1, sizeof(*y));

	if (y != NULL)
		y->shard = s;
	return y;
}

struct syncer *
syncer_free(struct syncer *y)
{
	if (y == NULL)
		return NULL;
	if (y->runs != NULL)
		y->runs->owner = NULL;
	if (y->project != NULL)
		y->project->owner = NULL;
	free(y);
	return NULL;
}

int
syncer_busy(const struct syncer *y, const char *project_id)
{
	if (y->project != NULL && strcmp(y->project->project_id, project_id) == 0)
		return 1;
	for (size_t i = 0; y->runs != NULL && i < y->runs->n; i++)
		if (strcmp(y->runs->rows[i].project_id, project_id) == 0)
			return 1;
	return 0;
}

static struct rpc_peer *
ingress(const struct syncer *y)
{
	return link_peer(y->shard->ingress);
}

/* One line when it begins to fail, one when it works again. */
static void
note_outage(int *outage, const char *what, int failed, int64_t attempt)
{
	if (failed && !*outage)
		log_event(LOG_LEVEL_WARN, "index_sync_failed", LOG_STR("rows", what),
		    LOG_INT("attempt", attempt));
	else if (!failed && *outage)
		log_event(LOG_LEVEL_INFO, "index_sync_restored", LOG_STR("rows", what));
	*outage = failed;
}

/* ---- runs: the answer ---- */

struct runs_answer {
	struct sent_runs *sent;
	const struct index_upsert_runs_ok *ok; /* NULL: the call failed as a whole */
	int failed;
	int64_t attempt;
};

static enum upsert_kind
kind_of(const struct runs_answer *a, size_t i)
{
	return a->ok != NULL && i < a->ok->nresults ? a->ok->results[i].kind
						    : UPSERT_KIND_FAILED;
}

static int
runs_turn(void *arg, struct turn *t)
{
	struct runs_answer *a = arg;
	struct sent_runs *sent = a->sent;

	for (size_t i = 0; i < sent->n; i++) {
		const struct sent_row *row = &sent->rows[i];
		enum upsert_kind kind = kind_of(a, i);
		int done, r;

		if (kind == UPSERT_KIND_APPLIED) {
			r = ledger_sync_applied(
			    t->store, t->arena, row->run_id, row->rev, t->now_ms, &done);
		} else {
			a->failed = 1;
			r = ledger_sync_failed(t->store, t->arena, row->run_id,
			    kind == UPSERT_KIND_UNKNOWN_PROJECT, t->now_ms, &a->attempt);
		}
		/* What the row does not allow, since it is broken or its project is moving, is
		 * no matter of the others. */
		if (r < 0 && r != E_CORRUPT && r != E_CONSTRAINT && r != E_ILLEGAL)
			return r;
	}
	return shard_wake_after(sent->owner->shard, t);
}

static void
sent_runs_free(struct sent_runs *sent)
{
	if (sent->owner != NULL)
		sent->owner->runs = NULL;
	sent->magic = 0;
	free(sent);
}

static void
on_runs(void *arg, int err, const struct index_upsert_runs_result *res)
{
	struct sent_runs *sent = arg;
	struct runs_answer a = { .sent = sent, .ok = err == 0 ? &res->u.ok : NULL };
	struct syncer *y = sent->owner;

	OBJ_CHECK(sent, SENT_MAGIC);
	if (y != NULL && err == E_PARAMS && sent->n > 1) {
		y->singly = sent->n;
		sent_runs_free(sent);
		shard_wake(y->shard);
		return;
	}
	CRASH_POINT("sync_runs_answered");
	/* A link that ended counts for no row: they are sent again when it is back. */
	if (y != NULL && err != E_LINK && err != E_DRAINING) {
		if (actor_turn(y->shard->actor, 1, runs_turn, &a) == 0)
			note_outage(&y->runs_fail, "runs", a.failed, a.attempt);
	}
	sent_runs_free(sent);
}

/* ---- runs: those that cannot be told ---- */

struct unfit {
	struct syncer *owner;
	size_t n;
	char run_ids[LEDGER_SYNC_ROWS][ID_SIZE];
};

static int
unfit_turn(void *arg, struct turn *t)
{
	const struct unfit *u = arg;
	int r = 0;

	for (size_t i = 0; i < u->n; i++) {
		int each = ledger_sync_defer(t->store, u->run_ids[i], t->now_ms);

		/* A row may be too broken even for that; it is passed over all the same. */
		if (each < 0 && each != E_CONSTRAINT && each != E_ILLEGAL)
			r = each;
	}
	return r < 0 ? r : shard_wake_after(u->owner->shard, t);
}

static void
defer_unfit(void *arg)
{
	CLEANUP_FREE struct unfit *u = arg;

	(void)actor_turn(u->owner->shard->actor, 1, unfit_turn, u);
}

/* Leaves the rows that fit in ${runs}; the others go to the end of their ladder, so that none
 * stands before what waits behind it. */
static int
sort_out(struct syncer *y, struct turn *t, struct ledger_run *runs, size_t *n)
{
	struct unfit *u = NULL;
	size_t fit = 0;
	int r = 0;

	for (size_t i = 0; i < *n; i++) {
		if (convert_fits_run(&runs[i])) {
			runs[fit++] = runs[i];
			continue;
		}
		broken_tell(y->shard->broken, runs[i].run_id, runs[i].project_id);
		if (u == NULL && (u = mem_calloc(1, sizeof(*u))) == NULL)
			return E_NOMEM;
		(void)snprintf(u->run_ids[u->n++], ID_SIZE, "%s", runs[i].run_id);
	}
	*n = fit;
	if (u == NULL)
		return 0;
	u->owner = y;
	r = turn_after_commit(t, defer_unfit, u, free);
	if (r < 0)
		free(u);
	return r;
}

/* ---- runs: sending ---- */

static int
send_runs(struct syncer *y, struct arena *a, const struct ledger_run *runs, size_t n)
{
	static const struct rpc_call_opts opts = { .deadline_ms = DEADLINE_MS };
	struct run_row *rows = arena_calloc(a, n, sizeof(*rows));
	struct index_upsert_runs_params params = { rows, n };
	struct sent_runs *sent = mem_calloc(1, sizeof(*sent));
	int r = rows != NULL && sent != NULL ? 0 : E_NOMEM;

	for (size_t i = 0; i < n && r == 0; i++) {
		(void)snprintf(
		    sent->rows[i].run_id, sizeof(sent->rows[i].run_id), "%s", runs[i].run_id);
		(void)snprintf(sent->rows[i].project_id, sizeof(sent->rows[i].project_id), "%s",
		    runs[i].project_id);
		sent->rows[i].rev = runs[i].index_rev;
		r = convert_run(&runs[i], &rows[i]);
		rows[i].has_position = 0; /* a matter of the queue, not of the index */
	}
	if (r == 0) {
		sent->magic = SENT_MAGIC;
		sent->n = n;
		sent->owner = y;
		r = index_upsert_runs_call(ingress(y), &opts, &params, on_runs, sent);
	}
	if (r < 0)
		free(sent);
	else
		y->runs = sent;
	return r;
}

/* ---- projects ---- */

struct project_answer {
	struct sent_project *sent;
	int applied;
};

static int
project_turn(void *arg, struct turn *t)
{
	const struct project_answer *a = arg;
	const struct sent_project *sent = a->sent;
	int r = a->applied ? ledger_project_synced(t->store, sent->project_id, sent->rev)
			   : ledger_project_sync_failed(t->store, sent->project_id, t->now_ms);

	return r < 0 ? r : shard_wake_after(sent->owner->shard, t);
}

static void
on_project(void *arg, int err, const struct index_upsert_project_result *res)
{
	CLEANUP_FREE struct sent_project *sent = arg;
	struct project_answer a = { .sent = sent,
		.applied = err == 0 && res->kind == INDEX_UPSERT_PROJECT_APPLIED };
	struct syncer *y = sent->owner;

	if (y == NULL)
		return;
	CRASH_POINT("sync_project_answered");
	y->project = NULL;
	if (err == E_LINK || err == E_DRAINING)
		return;
	if (err == 0 && res->kind == INDEX_UPSERT_PROJECT_SLUG_CONFLICT)
		log_event(LOG_LEVEL_ERROR, "index_slug_conflict",
		    LOG_STR("projectId", sent->project_id));
	if (actor_turn(y->shard->actor, 1, project_turn, &a) == 0)
		note_outage(&y->projects_fail, "projects", !a.applied, 1);
}

static int
send_project(struct syncer *y, const struct ledger_project *p)
{
	static const struct rpc_call_opts opts = { .deadline_ms = DEADLINE_MS };
	struct index_upsert_project_params params = { .shard = y->shard->number,
		.rev = p->index_rev };
	struct sent_project *sent = mem_calloc(1, sizeof(*sent));
	int r;

	if (sent == NULL)
		return E_NOMEM;
	convert_project(p, &params.project);
	sent->owner = y;
	sent->rev = p->index_rev;
	(void)snprintf(sent->project_id, sizeof(sent->project_id), "%s", p->project_id);
	r = index_upsert_project_call(ingress(y), &opts, &params, on_project, sent);
	if (r < 0)
		free(sent);
	else
		y->project = sent;
	return r;
}

/* ---- what is due ---- */

static int
pump_projects(struct syncer *y, struct turn *t)
{
	struct ledger_project *p;
	size_t n;
	int r = ledger_project_sync_due(t->store, t->arena, t->now_ms, 1, &p, &n);

	if (r < 0 || n == 0)
		return r;
	/* It is sent all the same: once it is refused, its next try waits behind the others. */
	if (!convert_fits_project(p, t->arena))
		broken_tell(y->shard->broken, p->project_id, p->project_id);
	return send_project(y, p);
}

static int
pump_runs(struct syncer *y, struct turn *t)
{
	struct ledger_run *runs;
	size_t n;
	int r = ledger_sync_due(t->store, t->arena, t->now_ms, &runs, &n);

	if (r == 0)
		r = sort_out(y, t, runs, &n);
	if (r < 0 || n == 0)
		return r;
	if (y->singly == 0)
		return send_runs(y, t->arena, runs, n);
	y->singly--;
	return send_runs(y, t->arena, runs, 1);
}

int
syncer_pump(struct syncer *y, struct turn *t)
{
	int r = 0;

	if (ingress(y) == NULL)
		return 0;
	if (y->project == NULL)
		r = pump_projects(y, t);
	if (y->runs == NULL) {
		int runs = pump_runs(y, t);

		r = r < 0 ? r : runs;
	}
	return r;
}
