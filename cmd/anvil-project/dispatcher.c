#include "cmd/anvil-project/dispatcher.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/shard.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define DEADLINE_MS 5000
#define KILL_MS     60000 /* parked until the process has been reaped */
#define ROWS        100   /* of one look */
/* A process that lives and has not claimed within this, and was met so often, hangs: nothing but
 * its end brings the run on, since it has no lease that could run out. */
#define UNCLAIMED_MS    60000
#define UNCLAIMED_MEETS 3

struct dispatcher {
	struct shard *shard;
	struct map *in_flight; /* run id -> struct spawn, owned by their calls */
	/* Runs that were released by a process which has still to end: not asked for until then,
	 * or until the next re-check. */
	struct map *held;
	struct map *unclaimed; /* run id -> struct unclaimed, owned */
	/* Asking again goes through the rows by pages; the last run that was asked for. */
	int asking;
	char asked[ID_SIZE];
};

/* A process that was there when its run was asked for. */
struct unclaimed {
	char spawn_id[ID_HEX32_SIZE];
	struct mono_time since;
	int meets;
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
	d->unclaimed = map_new();
	return d->in_flight != NULL && d->held != NULL && d->unclaimed != NULL
	    ? d
	    : dispatcher_free(d);
}

static void
forget_unclaimed(struct dispatcher *d, const char *run_id)
{
	free(map_remove(d->unclaimed, run_id));
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
	if (d->unclaimed != NULL)
		for (size_t at = 0; map_next(d->unclaimed, &at, NULL, &each);)
			free(each);
	map_free(d->in_flight);
	map_free(d->held);
	map_free(d->unclaimed);
	free(d);
	return NULL;
}

size_t
dispatcher_in_flight(const struct dispatcher *d)
{
	return map_count(d->in_flight);
}

int
dispatcher_busy(const struct dispatcher *d, const char *project_id)
{
	void *each;

	for (size_t at = 0; map_next(d->in_flight, &at, NULL, &each);)
		if (strcmp(((const struct spawn *)each)->project_id, project_id) == 0)
			return 1;
	return 0;
}

static void
spawn_free(struct spawn *sp)
{
	if (sp->owner != NULL)
		(void)map_remove(sp->owner->in_flight, sp->run_id);
	sp->magic = 0;
	free(sp);
}

/* ---- a process that does not claim ---- */

/* 1: it has been met for so long that it hangs. */
static int
meet(struct dispatcher *d, const char *run_id, const char *spawn_id)
{
	struct unclaimed *u = map_get(d->unclaimed, run_id);

	if (u == NULL) {
		u = mem_calloc(1, sizeof(*u));
		if (u == NULL || map_set(d->unclaimed, run_id, u) < 0) {
			free(u);
			return 0; /* it will be met again */
		}
	}
	if (strcmp(u->spawn_id, spawn_id) != 0) {
		*u = (struct unclaimed) { .since = clock_mono() };
		(void)snprintf(u->spawn_id, sizeof(u->spawn_id), "%s", spawn_id);
	}
	u->meets++;
	return u->meets >= UNCLAIMED_MEETS &&
	    mono_diff_ms(u->since, clock_mono()) >= UNCLAIMED_MS;
}

/* Its end comes as runnerExited, and counts as a failed start. */
static void
on_killed(void *arg, int err, const struct supervisor_kill_run_result *res)
{
	(void)arg;
	(void)err;
	(void)res;
}

static void
kill_hung(struct dispatcher *d, const struct spawn *sp, const char *spawn_id)
{
	static const struct rpc_call_opts opts = { .deadline_ms = KILL_MS };
	struct rpc_peer *p = shard_supervisor(d->shard);
	struct supervisor_kill_run_params params = { sp->run_id, spawn_id };

	log_event(LOG_LEVEL_WARN, "runner_never_claimed", LOG_STR("runId", sp->run_id),
	    LOG_STR("projectId", sp->project_id), LOG_STR("spawnId", spawn_id));
	forget_unclaimed(d, sp->run_id);
	if (p != NULL)
		(void)supervisor_kill_run_call(p, &opts, &params, on_killed, NULL);
}

/* ---- the answer ---- */

struct answer {
	struct spawn *spawn;
	const struct supervisor_spawn_run_result *res;
	struct ledger_failure failure;
	int hangs; /* The process that lives, without a claim. */
};

/* A process of the run lives. */
static int
answer_live(struct answer *a, struct turn *t)
{
	const char *run_id = a->spawn->run_id, *spawn_id = a->res->u.live.spawn_id;
	struct dispatcher *d = a->spawn->owner;
	struct ledger_run run;
	int r = ledger_dispatch_queued(t->store, t->arena, run_id, spawn_id, "live", t->now_ms);

	if (r == 0)
		r = ledger_run_get(t->store, t->arena, run_id, &run);
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	a->hangs = run.state == LEDGER_EXECUTABLE && meet(d, run_id, spawn_id);
	/* Without memory it is asked for over and over, which does no harm. */
	(void)map_set(d->held, run_id, d);
	return 0;
}

static int
answer_turn(void *arg, struct turn *t)
{
	struct answer *a = arg;
	const struct supervisor_spawn_run_result *res = a->res;
	const char *run_id = a->spawn->run_id;
	struct ledger_move here;
	int r = ledger_move_get(t->store, a->spawn->project_id, &here);

	/* Who has the run by then asks for it. */
	if (r < 0 || !ledger_may_change(&here))
		return r;
	switch (res->kind) {
	case SUPERVISOR_SPAWN_RUN_SPAWNED:
		r = ledger_dispatch_queued(
		    t->store, t->arena, run_id, NULL, "spawned", t->now_ms);
		break;
	case SUPERVISOR_SPAWN_RUN_LIVE: r = answer_live(a, t); break;
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
	CRASH_POINT("dispatch_answered");
	/* A supervisor that did not answer is asked again at the re-check, or when its link
	 * is back: that is no failure of the run. */
	if (sp->owner != NULL && err == 0 &&
	    actor_turn(sp->owner->shard->actor, 1, answer_turn, &a) == 0) {
		log_answer(&a);
		if (a.hangs)
			kill_hung(sp->owner, sp, res->u.live.spawn_id);
	}
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
	CRASH_POINT("dispatch_sent");
	if (r < 0)
		spawn_free(sp);
	return r;
}

/* What could not be sent stays due.  How many were gone through. */
static size_t
send_all(struct dispatcher *d, struct rpc_peer *p, const struct ledger_run *runs, size_t n)
{
	size_t i = 0;

	for (; i < n && map_count(d->in_flight) < DISPATCH_IN_FLIGHT; i++) {
		if (!convert_fits_run(&runs[i]))
			broken_tell(d->shard->broken, runs[i].run_id, runs[i].project_id);
		else if (send_spawn(d, p, &runs[i]) < 0)
			break;
	}
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
	forget_unclaimed(d, run_id);
}
