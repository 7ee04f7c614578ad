/* supervisor.* for shards: spawning, watching, killing and serving runs. */
#include "cmd/anvild/methods.h"

#include <string.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/exits.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/reload.h"
#include "cmd/anvild/removal.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/log.h"

int
supervisor_ready(struct supervisor *s, struct turn *t, const struct supervisor_ready_params *p,
    struct supervisor_ready_result *ret)
{
	ret->kind = SUPERVISOR_READY_OK;
	/* Nobody is ready on behalf of another. */
	if (strcmp(t->from, p->address) != 0)
		return turn_fail(t, E_DENIED, "%s is not %s", t->from, p->address);
	if (strncmp(p->address, "run/", 4) == 0) {
		serves_ready(s->serves, p->address + 4, rpc_peer_pid(t->peer));
		return 0;
	}
	for (size_t i = 0; i < s->nresidents; i++)
		if (strcmp(child_address(s->residents[i]), p->address) == 0)
			child_says_ready(s->residents[i], rpc_peer_pid(t->peer), p->outage);
	if (strcmp(p->address, "ingress") == 0)
		reload_tell(s, t->peer);
	return 0;
}

int
supervisor_store_full(struct supervisor *s, struct turn *t,
    const struct supervisor_store_full_params *p, struct supervisor_store_full_result *ret)
{
	ret->kind = SUPERVISOR_STORE_FULL_OK;
	if (strcmp(t->from, p->address) != 0)
		return turn_fail(t, E_DENIED, "%s is not %s", t->from, p->address);
	for (size_t i = 0; i < s->nresidents; i++)
		if (strcmp(child_address(s->residents[i]), p->address) == 0)
			child_says_full(s->residents[i], p->why);
	return 0;
}

/* A run whose process cannot be recorded waits, and nothing is counted against it. */
int
methods_without_store(void *ctx, struct turn *t, const void *params, void *result)
{
	if (strcmp(t->method->name, "supervisor.spawnRun") == 0)
		return supervisor_spawn_run(ctx, t, params, result);
	return E_STORAGE;
}

int
supervisor_spawn_run(struct supervisor *s, struct turn *t,
    const struct supervisor_spawn_run_params *p, struct supervisor_spawn_run_result *ret)
{
	struct slot_request req = {
		.shard = p->shard, .attempt = p->attempt, .queued_at_ms = p->queued_at
	};
	struct spawn_answer a;
	char *spawn_id;
	int r;

	(void)snprintf(req.run_id, sizeof(req.run_id), "%s", p->run_id);
	(void)snprintf(req.project_id, sizeof(req.project_id), "%s", p->project_id);
	if (s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	r = runners_spawn(s->runners, t, &req, &a);
	if (r < 0)
		return r;
	spawn_id = arena_strdup(t->arena, a.spawn_id);
	if (spawn_id == NULL)
		return E_NOMEM;
	switch (a.verdict) {
	case SPAWN_SPAWNED:
		ret->kind = SUPERVISOR_SPAWN_RUN_SPAWNED;
		ret->u.spawned.spawn_id = spawn_id;
		break;
	case SPAWN_LIVE:
		ret->kind = SUPERVISOR_SPAWN_RUN_LIVE;
		ret->u.live.spawn_id = spawn_id;
		break;
	case SPAWN_QUEUED:
		ret->kind = SUPERVISOR_SPAWN_RUN_QUEUED;
		ret->u.queued.ahead = a.ahead;
		return queue_reason_parse(slot_wait_name(a.why), &ret->u.queued.reason);
	case SPAWN_FAILED:
		ret->kind = SUPERVISOR_SPAWN_RUN_FAILED;
		ret->u.failed.error = a.error;
		break;
	}
	return 0;
}

int
supervisor_drop_run(struct supervisor *s, struct turn *t,
    const struct supervisor_drop_run_params *p, struct supervisor_drop_run_result *ret)
{
	(void)t;
	ret->kind = SUPERVISOR_DROP_RUN_OK;
	(void)slots_drop(&s->slots, p->run_id);
	return 0;
}

int
supervisor_run_status(struct supervisor *s, struct turn *t,
    const struct supervisor_run_status_params *p, struct supervisor_run_status_result *ret)
{
	const struct process *live;
	int r = runners_look(s->runners, p->run_id, &live);

	(void)t;
	if (r < 0 && r != E_LOCKED)
		return r; /* whoever has it may be the one that is meant */
	if (live != NULL && strcmp(process_id(live)->spawn_id, p->spawn_id) == 0) {
		ret->kind = SUPERVISOR_RUN_STATUS_LIVE;
		return 0;
	}
	ret->kind = SUPERVISOR_RUN_STATUS_GONE;
	methods_set_how(&ret->u.gone.how, exits_find(s->exits, p->spawn_id));
	return 0;
}

int
supervisor_kill_run(struct supervisor *s, struct turn *t,
    const struct supervisor_kill_run_params *p, struct supervisor_kill_run_result *ret)
{
	const struct process *live;
	struct parked *waiter;
	int r = runners_look(s->runners, p->run_id, &live);

	if (r < 0 && r != E_LOCKED)
		return r;
	if (live == NULL) {
		ret->kind = SUPERVISOR_KILL_RUN_GONE;
		methods_set_how(&ret->u.gone.how, exits_find(s->exits, p->spawn_id));
		return 0;
	}
	waiter = turn_park(t);
	if (waiter == NULL)
		return E_NOMEM;
	r = runners_kill(s->runners, p->run_id, p->spawn_id, waiter);
	if (r == E_NOENT)
		methods_answer_gone(waiter, exits_find(s->exits, p->spawn_id));
	else if (r < 0)
		parked_error(waiter, r, NULL);
	return TURN_PARKED;
}

void
methods_answer_gone(struct parked *waiter, const struct process_end *end)
{
	struct supervisor_kill_run_result res = { .kind = SUPERVISOR_KILL_RUN_GONE };

	methods_set_how(&res.u.gone.how, end);
	parked_reply(waiter, &res);
}

static enum supervisor_serve_run_kind
serve_kind(enum serve_verdict v)
{
	switch (v) {
	case SERVE_LIVE: return SUPERVISOR_SERVE_RUN_LIVE;
	case SERVE_SERVING: return SUPERVISOR_SERVE_RUN_SERVING;
	case SERVE_ABSENT: return SUPERVISOR_SERVE_RUN_ABSENT;
	case SERVE_BUSY:
	case SERVE_FAILED:
	case SERVE_WAIT: break;
	}
	return SUPERVISOR_SERVE_RUN_BUSY;
}

void
methods_answer_serve(struct parked *waiter, enum serve_verdict verdict)
{
	struct supervisor_serve_run_result res = { .kind = serve_kind(verdict) };

	if (verdict == SERVE_FAILED)
		parked_error(
		    waiter, E_INTERNAL, "the process that was to serve the run has ended");
	else
		parked_reply(waiter, &res);
}

int
supervisor_serve_run(struct supervisor *s, struct turn *t,
    const struct supervisor_serve_run_params *p, struct supervisor_serve_run_result *ret)
{
	const struct process *live;
	enum serve_verdict verdict;
	struct parked *waiter;
	int r = serves_ask(s->serves, t, p->run_id, t->from_role == ROLE_PROJECT, &verdict);

	if (r < 0)
		return r;
	live = runners_find(s->runners, p->run_id);
	if (verdict != SERVE_WAIT) {
		ret->kind = serve_kind(verdict);
		if (live != NULL)
			ret->u.live.spawn_id = process_id(live)->spawn_id;
		return 0;
	}
	waiter = turn_park(t);
	if (waiter == NULL)
		return E_NOMEM;
	r = serves_wait(s->serves, p->run_id, waiter);
	if (r < 0)
		parked_error(waiter, r, NULL);
	return TURN_PARKED;
}

int
supervisor_remove_project(struct supervisor *s, struct turn *t,
    const struct supervisor_remove_project_params *p,
    struct supervisor_remove_project_result *ret)
{
	struct parked *waiter;
	int r;

	(void)ret;
	if (s->stopping)
		return turn_fail(t, E_DRAINING, "the supervisor is stopping");
	waiter = turn_park(t);
	if (waiter == NULL)
		return E_NOMEM;
	r = removals_ask(s->removals, p->project_id, t->deadline_ms, waiter);
	if (r < 0)
		parked_error(waiter, r, NULL);
	return TURN_PARKED;
}

void
methods_answer_removed(struct parked *waiter)
{
	static const struct supervisor_remove_project_result ok = {
		.kind = SUPERVISOR_REMOVE_PROJECT_OK
	};

	parked_reply(waiter, &ok);
}
