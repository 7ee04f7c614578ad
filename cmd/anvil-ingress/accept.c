#include "cmd/anvil-ingress/accept.h"

#include <stddef.h>

#include "cmd/anvil-ingress/accepted.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"

static struct accept *
accept_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct accept, call);
}

static void
on_answer(void *arg, int err, const struct project_accept_run_result *res)
{
	struct accept *a = arg;

	if (err < 0) {
		shard_call_error(&a->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_ACCEPT_RUN_MOVED: shard_call_moved(&a->call, res->u.moved.shard); return;
	case PROJECT_ACCEPT_RUN_MOVING:
		shard_call_moving(&a->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&a->call);
	switch (res->kind) {
	case PROJECT_ACCEPT_RUN_ACCEPTED:
		CRASH_POINT("accept_answered");
		accepted_add(a->in->accepted, &res->u.accepted.run);
		CRASH_POINT("accept_row_kept");
		a->done(a, ACCEPT_ACCEPTED, &res->u.accepted.run);
		break;
	case PROJECT_ACCEPT_RUN_QUEUE_FULL: a->done(a, ACCEPT_QUEUE_FULL, NULL); break;
	case PROJECT_ACCEPT_RUN_NOT_FOUND: a->done(a, ACCEPT_NOT_FOUND, NULL); break;
	default:
		/* The id is ours and fresh: nobody else can have it. */
		log_event(LOG_LEVEL_ERROR, "run_id_conflict", LOG_STR("runId", a->run_id));
		a->why = HTTP_CODE_INTERNAL_ERROR;
		a->done(a, ACCEPT_FAILED, NULL);
	}
}

static int
send(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct accept *a = accept_of(c);
	struct project_accept_run_params p = { .project_id = a->project_id,
		.run_id = a->run_id,
		.branch = a->branch,
		.user_id = a->user_id };

	return project_accept_run_call(peer, opts, &p, on_answer, a);
}

static void
failed(struct shard_call *c, enum http_code why, int sent)
{
	struct accept *a = accept_of(c);

	(void)sent;
	a->why = why;
	a->done(a, ACCEPT_FAILED, NULL);
}

void
accept_start(struct accept *a)
{
	id_make(ID_RUN, a->run_id);
	a->call = (struct shard_call) { .in = a->in,
		.shard = a->shard,
		.deadline_ms = CALL_ACCEPT_MS,
		.repeats = 1,
		.request_id = a->request_id,
		.send = send,
		.failed = failed };
	shard_call_start(&a->call);
}
