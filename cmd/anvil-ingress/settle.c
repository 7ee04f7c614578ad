#include "cmd/anvil-ingress/settle.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* One project that nobody knows whether its shard has. */
struct question {
	char project_id[ID_SIZE];
	struct shard_call call;
	int exists;
};

static struct question *
question_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct question, call);
}

static int
settled_turn(void *arg, struct turn *t)
{
	const struct question *q = arg;

	if (!q->exists)
		return index_project_remove_unconfirmed(t->store, q->project_id);
	return index_project_confirm(t->store, q->project_id, q->call.shard);
}

static void
question_done(struct question *q)
{
	q->call.in->settling--;
	free(q);
}

static void
on_answer(void *arg, int err, const struct project_get_detail_result *res)
{
	struct question *q = arg;

	if (err < 0) {
		shard_call_error(&q->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_GET_DETAIL_MOVED: shard_call_moved(&q->call, res->u.moved.shard); return;
	case PROJECT_GET_DETAIL_MOVING:
		shard_call_moving(&q->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&q->call);
	CRASH_POINT("create_settling");
	q->exists = res->kind == PROJECT_GET_DETAIL_DETAIL;
	log_event(LOG_LEVEL_INFO, q->exists ? "project_confirmed" : "project_taken_back",
	    LOG_STR("projectId", q->project_id), LOG_INT("shard", q->call.shard));
	/* Should it fail, the next round asks again. */
	(void)actor_turn(q->call.in->actor, 1, settled_turn, q);
	question_done(q);
}

static int
send(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct question *q = question_of(c);
	struct project_get_detail_params p = { .project_id = q->project_id };

	return project_get_detail_call(peer, opts, &p, on_answer, q);
}

static void
failed(struct shard_call *c, enum http_code why, int sent)
{
	(void)why;
	(void)sent;
	question_done(question_of(c));
}

static void
ask(struct ingress *in, const struct index_project *p)
{
	struct question *q = mem_calloc(1, sizeof(*q));

	if (q == NULL)
		return; /* the next round asks again */
	(void)snprintf(q->project_id, sizeof(q->project_id), "%s", p->id);
	q->call = (struct shard_call) { .in = in,
		.shard = p->shard,
		.deadline_ms = CALL_OTHER_MS,
		.request_id = "",
		.send = send,
		.failed = failed };
	in->settling++;
	shard_call_start(&q->call);
}

struct open_projects {
	struct arena *arena;
	struct index_project *rows;
	size_t n;
};

static int
open_turn(void *arg, struct turn *t)
{
	struct open_projects *o = arg;

	return index_project_unconfirmed(
	    t->store, o->arena, t->now_ms - SETTLE_OLDER_MS, &o->rows, &o->n);
}

static void
settle(struct ingress *in)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct open_projects o = { .arena = arena };

	if (arena == NULL || in->settling > 0 || actor_turn(in->actor, 0, open_turn, &o) < 0)
		return;
	for (size_t i = 0; i < o.n; i++)
		ask(in, &o.rows[i]);
}

static void
on_settle(void *arg)
{
	struct ingress *in = arg;

	OBJ_CHECK(in, INGRESS_MAGIC);
	settle(in);
	(void)actor_timer_set(in->settle_timer, SETTLE_EVERY_MS);
}

/* ---- old rows ---- */

static int
sweep_turn(void *arg, struct turn *t)
{
	(void)arg;
	return index_accounts_sweep(t->store, t->now_ms);
}

static void
on_sweep(void *arg)
{
	struct ingress *in = arg;

	OBJ_CHECK(in, INGRESS_MAGIC);
	if (actor_turn(in->actor, 1, sweep_turn, in) < 0)
		log_plain(LOG_LEVEL_WARN, "sweep_failed");
	(void)actor_timer_set(in->sweep_timer, SWEEP_EVERY_MS);
}

int
settle_begin(struct ingress *in)
{
	in->settle_timer = actor_timer_new(in->actor, on_settle, in);
	in->sweep_timer = actor_timer_new(in->actor, on_sweep, in);
	if (in->settle_timer == NULL || in->sweep_timer == NULL ||
	    actor_timer_set(in->settle_timer, SETTLE_EVERY_MS) < 0 ||
	    actor_timer_set(in->sweep_timer, SWEEP_EVERY_MS) < 0)
		return E_NOMEM;
	return 0;
}
