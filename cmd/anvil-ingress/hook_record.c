#include "cmd/anvil-ingress/hook_record.h"

#include <stddef.h>

#include "cmd/anvil-ingress/accepted.h"
#include "lib/base/crash.h"

static struct hook_record *
record_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct hook_record, call);
}

static void
on_answer(void *arg, int err, const struct webhook_record_result *res)
{
	struct hook_record *r = arg;

	if (err < 0) {
		shard_call_error(&r->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_RECORD_MOVED: shard_call_moved(&r->call, res->u.moved.shard); return;
	case WEBHOOK_RECORD_MOVING: shard_call_moving(&r->call, res->u.moving.retry_ms); return;
	default: break;
	}
	shard_call_done(&r->call);
	CRASH_POINT("delivery_recorded");
	if (res->kind == WEBHOOK_RECORD_ACCEPTED)
		accepted_add(r->in->accepted, &res->u.accepted.run);
	r->done(r, res);
}

static int
send(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct hook_record *r = record_of(c);
	struct webhook_record_params p = { .project_id = r->material->project_id,
		.webhook_id = r->material->webhook_id,
		.webhook_version = r->material->version,
		.candidate = *r->candidate,
		.run_id = r->run_id,
		.payload = *r->payload };

	return webhook_record_call(peer, opts, &p, on_answer, r);
}

static void
failed(struct shard_call *c, enum http_code why, int sent)
{
	struct hook_record *r = record_of(c);

	(void)sent;
	r->why = why;
	r->done(r, NULL);
}

void
hook_record_start(struct hook_record *r)
{
	r->call = (struct shard_call) { .in = r->in,
		.shard = r->material->shard,
		.deadline_ms = r->deadline_ms,
		.repeats = 1,
		.request_id = r->request_id,
		.send = send,
		.failed = failed };
	shard_call_start(&r->call);
}
