#include "cmd/anvil-project/takeover.h"

#include <string.h>

#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/shard.h"
#include "gen/run.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define TRIES        3
#define TRY_MS       2000 /* for one call of a try           */
#define AGAIN_MS     1000 /* between two tries               */
#define KILL_MS      5000 /* for the supervisor to reap it   */
#define MESSAGE_SIZE 256

/* One takeover.  Each step can be repeated; a step that ends calls the next. */
struct takeover {
	uint32_t magic;
#define TAKEOVER_MAGIC 0x29f6d80b
	struct takeovers *owner;
	char run_id[ID_SIZE];
	char project_id[ID_SIZE]; /* "" until its row was read. */
	char lease_id[ID_HEX32_SIZE];
	char spawn_id[ID_HEX32_SIZE]; /* That holds it. */
	int64_t lease_epoch;
	char how[TAKEOVER_HOW_SIZE];
	char message[MESSAGE_SIZE];
	int failed_tries, last_err;
	int heard;     /* The supervisor has answered since the tries began. */
	int in_flight; /* a call that will come back to us             */
	int writing;   /* ... or what was concluded: on disk, or lost  */
	int ended;     /* ... and finds that it is over                */
	/* What was concluded. */
	int done; /* It made a difference. */
	enum ledger_state state;
	const char *failure_code; /* Static; NULL: none. */
	struct ledger_promoted promoted;
	struct link *link; /* to the serving process; NULL: none           */
	struct actor_timer *again;
};

struct takeovers {
	struct shard *shard;
	struct map *by_run; /* run id -> struct takeover, owned */
};

static void step_serve(struct takeover *k);
static void step_kill(struct takeover *k, const char *spawn_id);

struct takeovers *
takeovers_new(struct shard *s)
{
	struct takeovers *k = mem_calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->shard = s;
	k->by_run = map_new();
	return k->by_run != NULL ? k : takeovers_free(k);
}

static void
takeover_free(struct takeover *k)
{
	k->again = actor_timer_free(k->again);
	k->link = actor_unlink(k->owner->shard->actor, k->link);
	if (k->in_flight || k->writing) {
		k->ended = 1; /* the callback frees it */
		return;
	}
	k->magic = 0;
	free(k);
}

struct takeovers *
takeovers_free(struct takeovers *k)
{
	void *each;

	if (k == NULL)
		return NULL;
	if (k->by_run != NULL)
		for (size_t at = 0; map_next(k->by_run, &at, NULL, &each);)
			takeover_free(each);
	map_free(k->by_run);
	free(k);
	return NULL;
}

int
takeovers_has(const struct takeovers *k, const char *run_id)
{
	return map_get(k->by_run, run_id) != NULL;
}

size_t
takeovers_count(const struct takeovers *k)
{
	return map_count(k->by_run);
}

int
takeovers_busy(const struct takeovers *k, const char *project_id)
{
	void *each;

	for (size_t at = 0; map_next(k->by_run, &at, NULL, &each);)
		if (strcmp(((const struct takeover *)each)->project_id, project_id) == 0)
			return 1;
	return 0;
}

static void
finish(struct takeover *k)
{
	CRASH_POINT("takeover_over");
	(void)map_remove(k->owner->by_run, k->run_id);
	takeover_free(k);
}

/* A callback: 1 when the takeover has ended meanwhile and is freed now. */
static int
came_back(struct takeover *k)
{
	OBJ_CHECK(k, TAKEOVER_MAGIC);
	k->in_flight = k->writing = 0;
	if (!k->ended)
		return 0;
	k->magic = 0;
	free(k);
	return 1;
}

static void
again(struct takeover *k)
{
	k->link = actor_unlink(k->owner->shard->actor, k->link);
	(void)actor_timer_set(k->again, AGAIN_MS);
}

/* ---- the ledger's part ---- */

struct conclusion {
	struct takeover *k;
	struct ledger_end end;
	int have_end; /* else the ledger alone knows what there is */
};

static void
is_concluded(void *arg)
{
	struct takeover *k = arg;

	if (came_back(k))
		return;
	if (k->done) {
		log_event(LOG_LEVEL_WARN, "watchdog_recovered", LOG_STR("runId", k->run_id),
		    LOG_STR("how", k->how), LOG_STR("status", ledger_state_name(k->state)),
		    LOG_STR("errorCode", k->failure_code));
		shard_note_promoted(&k->promoted);
	}
	leases_drop(k->owner->shard->leases, k->run_id, k->lease_id);
	finish(k);
}

static void
is_not_concluded(void *arg)
{
	struct takeover *k = arg;

	if (!came_back(k))
		again(k);
}

/* E_BUSY: the project is on its way to another shard, which takes the run over itself unless the
 * project stays. */
static int
wait_for_move(struct turn *t, const char *project_id)
{
	struct ledger_move here;
	int r = ledger_move_get(t->store, project_id, &here);

	return r == 0 && !ledger_may_change(&here) ? E_BUSY : r;
}

static int
take_over_turn(void *arg, struct turn *t)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct conclusion *c = arg;
	struct takeover *k = c->k;
	struct ledger_held held;
	int r = ledger_check_lease(t->store, t->arena, k->run_id, k->lease_id, &held);

	k->done = 0;
	if (r == 0 && !held.lost)
		r = wait_for_move(t, held.run.project_id);
	if (r < 0)
		return r;
	if (held.lost)
		return turn_after_commit(t, is_concluded, k, is_not_concluded);
	if (!c->have_end)
		c->end = (struct ledger_end) { .state = LEDGER_FAILED,
			.started_at = held.run.started_at,
			.finished_at = t->now_ms,
			.has_exit_code = 1,
			.exit_code = 1,
			.failure_code = "runner_lost",
			.error_message = k->message };
	k->state = c->end.state;
	k->failure_code = c->end.failure_code;
	r = ledger_take_over(
	    &at, k->run_id, k->lease_id, &c->end, k->how, &k->done, &k->promoted);
	if (r == 0)
		r = shard_wake_after(k->owner->shard, t);
	return r < 0 ? r : turn_after_commit(t, is_concluded, k, is_not_concluded);
}

static void
conclude(struct takeover *k, const struct ledger_end *end)
{
	struct shard *s = k->owner->shard;
	struct conclusion c = { .k = k, .have_end = end != NULL };

	CRASH_POINT("takeover_concluding");
	if (end != NULL)
		c.end = *end;
	k->link = actor_unlink(s->actor, k->link);
	k->writing = 1;
	if (actor_turn(s->actor, 1, take_over_turn, &c) < 0 && k->writing)
		is_not_concluded(k);
}

/* ---- the store's part ---- */

static void
on_status(void *arg, int err, const struct supervisor_run_status_result *res)
{
	struct takeover *k = arg;

	if (came_back(k))
		return;
	if (err < 0) {
		k->heard = 0;
		again(k);
	} else if (res->kind == SUPERVISOR_RUN_STATUS_LIVE) {
		step_kill(k, k->spawn_id);
	} else if (!k->heard) {
		k->heard = 1; /* it may have slept through the tries: the last one counts */
		again(k);
	} else {
		log_event(LOG_LEVEL_ERROR, "takeover_store_unreadable",
		    LOG_STR("runId", k->run_id), LOG_STR("errorCode", err_symbol(k->last_err)));
		conclude(k, NULL);
	}
}

/* Nothing is decided without the supervisor, neither that the store cannot be asked: tries fail
 * as well when it is the one that is silent. */
static void
failed_try(struct takeover *k, int err)
{
	static const struct rpc_call_opts opts = { .deadline_ms = TRY_MS };
	struct rpc_peer *p = shard_supervisor(k->owner->shard);
	struct supervisor_run_status_params params = { k->run_id, k->spawn_id };

	k->link = actor_unlink(k->owner->shard->actor, k->link);
	k->last_err = err;
	k->failed_tries++;
	if (k->failed_tries < TRIES - 1 || p == NULL ||
	    supervisor_run_status_call(p, &opts, &params, on_status, k) < 0)
		again(k);
	else
		k->in_flight = 1;
}

static int
end_of(const struct run_conclude_terminal *t, struct ledger_end *end)
{
	*end = (struct ledger_end) { .started_at = t->has_started_at ? t->started_at : 0,
		.finished_at = t->finished_at,
		.has_exit_code = t->has_exit_code,
		.exit_code = t->exit_code,
		.failure_code = t->has_failure_code ? failure_code_name(t->failure_code) : NULL,
		.error_message = t->error_message };
	switch (t->status) {
	case RUN_STATUS_PASSED: end->state = LEDGER_PASSED; break;
	case RUN_STATUS_FAILED: end->state = LEDGER_FAILED; break;
	case RUN_STATUS_CANCELED: end->state = LEDGER_CANCELED; break;
	default: return E_INVAL;
	}
	return ledger_end_is_whole(end) ? 0 : E_INVAL;
}

static void
on_concluded(void *arg, int err, const struct run_conclude_result *res)
{
	struct takeover *k = arg;
	struct ledger_end end;

	if (came_back(k))
		return;
	if (err == E_FULL || (err == 0 && res->kind == RUN_CONCLUDE_LIVE)) {
		again(k); /* neither is a failed try */
		return;
	}
	if (err == E_NOENT) {
		conclude(k, NULL); /* the store was made, and nothing written into it */
		return;
	}
	if (err < 0 || res->kind != RUN_CONCLUDE_TERMINAL || end_of(&res->u.terminal, &end) < 0)
		failed_try(k, err < 0 ? err : E_INVAL);
	else
		conclude(k, &end);
}

static void
on_up(void *arg, struct link *l, struct rpc_peer *p)
{
	static const struct rpc_call_opts opts = { .deadline_ms = TRY_MS };
	struct takeover *k = arg;
	struct run_conclude_params params = { .lease_epoch = k->lease_epoch,
		.failure_code = FAILURE_CODE_RUNNER_LOST,
		.message = k->message };

	(void)l;
	OBJ_CHECK(k, TAKEOVER_MAGIC);
	CRASH_POINT("takeover_linked");
	if (run_conclude_call(p, &opts, &params, on_concluded, k) < 0)
		failed_try(k, E_LINK);
	else
		k->in_flight = 1;
}

static void
on_down(void *arg, struct link *l, int err)
{
	struct takeover *k = arg;

	(void)l;
	if (!k->in_flight) /* else the call's callback tells */
		failed_try(k, err);
}

static void
connect_to_run(struct takeover *k)
{
	static const struct link_ops ops = { .on_up = on_up, .on_down = on_down };
	char address[ID_SIZE + 4];

	(void)snprintf(address, sizeof(address), "run/%s", k->run_id);
	k->link = actor_link(k->owner->shard->actor, address, &ops, k);
	if (k->link == NULL)
		failed_try(k, E_NOMEM);
}

static void
on_killed(void *arg, int err, const struct supervisor_kill_run_result *res)
{
	struct takeover *k = arg;

	(void)res;
	if (came_back(k))
		return;
	CRASH_POINT("takeover_killed");
	if (err < 0) {
		again(k);
		return;
	}
	k->failed_tries = k->heard = 0; /* of a store that was held */
	step_serve(k);
}

/* A process still holds the store: it is fenced before anything is concluded. */
static void
step_kill(struct takeover *k, const char *spawn_id)
{
	static const struct rpc_call_opts opts = { .deadline_ms = KILL_MS };
	struct rpc_peer *p = shard_supervisor(k->owner->shard);
	struct supervisor_kill_run_params params = { k->run_id, spawn_id };

	if (p == NULL || supervisor_kill_run_call(p, &opts, &params, on_killed, k) < 0)
		again(k);
	else
		k->in_flight = 1;
}

static void
on_served(void *arg, int err, const struct supervisor_serve_run_result *res)
{
	struct takeover *k = arg;

	if (came_back(k))
		return;
	CRASH_POINT("takeover_served");
	/* Of the supervisor's own store or link: nothing was learnt about the run's. */
	if (err == E_STORAGE || err == E_FULL || err == E_LINK) {
		again(k);
		return;
	}
	if (err < 0) {
		failed_try(k, err);
		return;
	}
	switch (res->kind) {
	case SUPERVISOR_SERVE_RUN_SERVING: connect_to_run(k); break;
	case SUPERVISOR_SERVE_RUN_ABSENT: conclude(k, NULL); break;
	case SUPERVISOR_SERVE_RUN_LIVE: step_kill(k, res->u.live.spawn_id); break;
	case SUPERVISOR_SERVE_RUN_BUSY: again(k); break;
	}
}

/* The supervisor cannot be reached: nothing is decided without it. */
static void
step_serve(struct takeover *k)
{
	static const struct rpc_call_opts opts = { .deadline_ms = TRY_MS };
	struct rpc_peer *p = shard_supervisor(k->owner->shard);
	struct supervisor_serve_run_params params = { .run_id = k->run_id };

	if (p == NULL || supervisor_serve_run_call(p, &opts, &params, on_served, k) < 0)
		again(k);
	else
		k->in_flight = 1;
}

/* ---- beginning ---- */

static int
check_turn(void *arg, struct turn *t)
{
	struct takeover *k = arg;
	struct ledger_held held;
	int r = ledger_check_lease(t->store, t->arena, k->run_id, k->lease_id, &held);

	k->lease_epoch = held.lost ? 0 : held.run.lease_epoch;
	if (r < 0 || held.lost)
		return r;
	(void)snprintf(k->spawn_id, sizeof(k->spawn_id), "%s", held.run.spawn_id);
	(void)snprintf(k->project_id, sizeof(k->project_id), "%s", held.run.project_id);
	return wait_for_move(t, k->project_id);
}

static void
on_again(void *arg)
{
	struct takeover *k = arg;
	int r;

	OBJ_CHECK(k, TAKEOVER_MAGIC);
	/* What an open batch says of it may yet be lost. */
	if (actor_in_batch(k->owner->shard->actor)) {
		(void)actor_timer_set(k->again, 0);
		return;
	}
	r = actor_turn(k->owner->shard->actor, 0, check_turn, k);
	if (r < 0) {
		again(k);
	} else if (k->lease_epoch == 0) {
		leases_drop(k->owner->shard->leases, k->run_id, k->lease_id);
		finish(k); /* it has ended by itself */
	} else {
		step_serve(k);
	}
}

void
takeover_begin(
    struct takeovers *owner, const char *run_id, const char *lease_id, const char *how)
{
	struct takeover *k;

	if (map_get(owner->by_run, run_id) != NULL)
		return;
	CRASH_POINT("takeover_begins");
	k = mem_calloc(1, sizeof(*k));
	if (k == NULL)
		return; /* the re-check comes back to it */
	k->magic = TAKEOVER_MAGIC;
	k->owner = owner;
	(void)snprintf(k->run_id, sizeof(k->run_id), "%s", run_id);
	(void)snprintf(k->lease_id, sizeof(k->lease_id), "%s", lease_id);
	(void)snprintf(k->how, sizeof(k->how), "%s", how);
	(void)snprintf(k->message, sizeof(k->message),
	    "The process that executed this run ended unexpectedly (%s).", how);
	k->again = actor_timer_new(owner->shard->actor, on_again, k);
	if (k->again == NULL || map_set(owner->by_run, run_id, k) < 0) {
		takeover_free(k);
		return;
	}
	(void)actor_timer_set(k->again, 0);
}
