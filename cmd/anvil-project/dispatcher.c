#include "cmd/anvil-project/dispatcher.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/shard.h"
#include "gen/supervisor.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define DEADLINE_MS 5000
#define ROWS        100 /* of one look */

struct dispatcher {
	struct shard *shard;
	struct map *in_flight; /* run id -> struct spawn, owned by their calls */
	/* Runs that were released by a process which has still to end: not asked for until then,
	 * or until the next re-check. */
	struct map *held;
	/* Asking again goes through the rows by pages; the last run that was asked for. */
	int asking;
	char asked[ID_SIZE];
};

/* One supervisor.spawnRun, from the look that found it due to the answer. */
struct spawn {
	uint32_t magic;
#define SPAWN_MAGIC 0x77c1d09e
	struct dispatcher *owner; /* NULL: the shard has gone */
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
};

struct dispatcher *
dispatcher_new(struct shard *s)
{
	struct dispatcher *d = mem_calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->shard = s;
	d->in_flight = map_new();
	d->held = map_new();
	return d->in_flight != NULL && d->held != NULL ? d : dispatcher_free(d);
}

struct dispatcher *
dispatcher_free(struct dispatcher *d)
{
	void *each;

	if (d == NULL)
		return NULL;
	if (d->in_flight != NULL)
		for (size_t at = 0; map_next(d->in_flight, &at, NULL, &each);)
			((struct spawn *)each)->owner = NULL;
	map_free(d->in_flight);
	map_free(d->held);
	free(d);
	return NULL;
}

size_t
dispatcher_in_flight(const struct dispatcher *d)
{
	return map_count(d->in_flight);
}

static void
spawn_free(struct spawn *sp)
{
	if (sp->owner != NULL)
		(void)map_remove(sp->owner->in_flight, sp->run_id);
	sp->magic = 0;
	free(sp);
}

/* ---- the answer ---- */

struct answer {
	struct spawn *spawn;
	const struct supervisor_spawn_run_result *res;
	struct ledger_failure failure;
};

static int
answer_turn(void *arg, struct turn *t)
{
	struct answer *a = arg;
	const struct supervisor_spawn_run_result *res = a->res;
	const char *run_id = a->spawn->run_id;
	int r = 0;

	switch (res->kind) {
	case SUPERVISOR_SPAWN_RUN_SPAWNED:
		r = ledger_dispatch_queued(
		    t->store, t->arena, run_id, NULL, "spawned", t->now_ms);
		break;
	case SUPERVISOR_SPAWN_RUN_LIVE:
		r = ledger_dispatch_queued(
		    t->store, t->arena, run_id, res->u.live.spawn_id, "live", t->now_ms);
		/* Without memory it is asked for over and over, which does no harm. */
		(void)map_set(a->spawn->owner->held, run_id, a->spawn->owner);
		break;
	case SUPERVISOR_SPAWN_RUN_QUEUED:
		r = ledger_dispatch_queued(t->store, t->arena, run_id, NULL,
		    queue_reason_name(res->u.queued.reason), t->now_ms);
		break;
	case SUPERVISOR_SPAWN_RUN_FAILED:
		r = ledger_dispatch_failed(
		    t->store, t->arena, run_id, res->u.failed.error, t->now_ms, &a->failure);
		break;
	}
	return r < 0 ? r : shard_wake_after(a->spawn->owner->shard, t);
}

static void
log_answer(const struct answer *a)
{
	const struct spawn *sp = a->spawn;

	if (a->res->kind == SUPERVISOR_SPAWN_RUN_SPAWNED)
		log_event(LOG_LEVEL_INFO, "run_dispatched", LOG_STR("runId", sp->run_id),
		    LOG_STR("projectId", sp->project_id),
		    LOG_STR("spawnId", a->res->u.spawned.spawn_id));
	else if (a->failure.counted) {
		log_event(LOG_LEVEL_WARN, "run_dispatch_failed", LOG_STR("runId", sp->run_id),
		    LOG_STR("projectId", sp->project_id),
		    LOG_INT("attempt", a->failure.attempt),
		    LOG_STR("reason", a->res->u.failed.error));
		shard_note_promoted(&a->failure.promoted);
	}
}

static void
on_answer(void *arg, int err, const struct supervisor_spawn_run_result *res)
{
	struct spawn *sp = arg;
	struct answer a = { .spawn = sp, .res = res };

	OBJ_CHECK(sp, SPAWN_MAGIC);
	/* A supervisor that did not answer is asked again at the re-check, or when its link
	 * is back: that is no failure of the run. */
	if (sp->owner != NULL && err == 0 &&
	    actor_turn(sp->owner->shard->actor, 1, answer_turn, &a) == 0)
		log_answer(&a);
	spawn_free(sp);
}

/* ---- sending ---- */

static int
send_spawn(struct dispatcher *d, struct rpc_peer *p, const struct ledger_run *run)
{
	static const struct rpc_call_opts opts = { .deadline_ms = DEADLINE_MS };
	struct supervisor_spawn_run_params params = { .run_id = run->run_id,
		.project_id = run->project_id,
		.shard = d->shard->number,
		.attempt = run->dispatch_attempts,
		.queued_at = run->queued_at };
	struct spawn *sp;
	int r;

	if (map_get(d->in_flight, run->run_id) != NULL || map_get(d->held, run->run_id) != NULL)
		return 0;
	sp = mem_calloc(1, sizeof(*sp));
	if (sp == NULL)
		return E_NOMEM;
	sp->magic = SPAWN_MAGIC;
	(void)snprintf(sp->run_id, sizeof(sp->run_id), "%s", run->run_id);
	(void)snprintf(sp->project_id, sizeof(sp->project_id), "%s", run->project_id);
	r = map_set(d->in_flight, sp->run_id, sp);
	if (r < 0) {
		free(sp);
		return r;
	}
	sp->owner = d;
	r = supervisor_spawn_run_call(p, &opts, &params, on_answer, sp);
	if (r < 0)
		spawn_free(sp);
	return r;
}

/* What could not be sent stays due.  How many were gone through. */
static size_t
send_all(struct dispatcher *d, struct rpc_peer *p, const struct ledger_run *runs, size_t n)
{
	size_t i = 0;

	while (i < n && map_count(d->in_flight) < DISPATCH_IN_FLIGHT &&
	    send_spawn(d, p, &runs[i]) == 0)
		i++;
	return i;
}

static int
ask_page(struct dispatcher *d, struct turn *t, struct rpc_peer *p)
{
	struct ledger_run *runs;
	size_t n, sent;
	int r = ledger_dispatched(
	    t->store, t->arena, LEDGER_DISPATCH_QUEUED, d->asked, ROWS, &runs, &n);

	if (r < 0)
		return r;
	sent = send_all(d, p, runs, n);
	if (sent != 0)
		(void)snprintf(d->asked, sizeof(d->asked), "%s", runs[sent - 1].run_id);
	d->asking = sent < n || n == ROWS;
	return 0;
}

int
dispatcher_pump(struct dispatcher *d, struct turn *t)
{
	struct rpc_peer *p = shard_supervisor(d->shard);
	struct ledger_run *runs;
	size_t n;
	int r;

	if (p == NULL)
		return 0;
	r = ledger_dispatch_due(t->store, t->arena, t->now_ms, ROWS, &runs, &n);
	if (r == 0)
		(void)send_all(d, p, runs, n);
	return r == 0 && d->asking ? ask_page(d, t, p) : r;
}

void
dispatcher_ask_again(struct dispatcher *d)
{
	const char *run_id;
	void *each;

	for (size_t at = 0; map_next(d->held, &at, &run_id, &each);)
		(void)map_remove(d->held, run_id);
	d->asking = 1;
	d->asked[0] = '\0';
}

void
dispatcher_release(struct dispatcher *d, const char *run_id)
{
	(void)map_remove(d->held, run_id);
}
