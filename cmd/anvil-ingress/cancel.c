/* POST /api/private/runs/{runId}/cancel (http-api 7). */
#include <stddef.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "cmd/anvil-ingress/run_detail.h"
#include "gen/project.h"
#include "lib/base/err.h"

/* In the exchange's arena. */
struct cancel {
	struct exchange *x;
	struct run_known known;
	struct shard_call call;
};

static void
on_canceled(void *arg, int err, const struct project_cancel_run_result *res)
{
	struct cancel *c = arg;

	if (err < 0) {
		shard_call_error(&c->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_CANCEL_RUN_MOVED: shard_call_moved(&c->call, res->u.moved.shard); return;
	case PROJECT_CANCEL_RUN_MOVING:
		shard_call_moving(&c->call, res->u.moving.retry_ms);
		return;
	case PROJECT_CANCEL_RUN_OK:
		shard_call_done(&c->call);
		c->known.of_ledger = 1;
		if (rows_copy_run(c->x->arena, &res->u.ok.run, &c->known.row) < 0)
			exchange_fail(c->x, E_NOMEM);
		else
			run_detail_answer(c->x, &c->known);
		return;
	default:
		/* Known to the index alone: it ended long ago. */
		shard_call_done(&c->call);
		run_detail_answer(c->x, &c->known);
	}
}

static struct cancel *
cancel_of(struct shard_call *call)
{
	return CONTAINER_OF(call, struct cancel, call);
}

static int
send_it(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct cancel *c = cancel_of(call);
	struct project_cancel_run_params p = { .project_id = c->known.row.project_id,
		.run_id = c->known.row.run_id,
		.by = c->x->user.id };

	return project_cancel_run_call(peer, opts, &p, on_canceled, c);
}

static void
failed(struct shard_call *call, enum http_code why, int sent)
{
	(void)sent;
	answer_error(cancel_of(call)->x, why);
}

static void
on_found(struct exchange *x, struct run_known *k)
{
	struct cancel *c = CONTAINER_OF(k, struct cancel, known);

	if (merge_is_terminal(k->row.status)) {
		run_detail_answer(x, k);
		return;
	}
	c->call = (struct shard_call) { .in = x->in,
		.shard = x->project.shard,
		.deadline_ms = CALL_OTHER_MS,
		.repeats = 1,
		.request_id = http_req_id(x->req),
		.send = send_it,
		.failed = failed };
	shard_call_start(&c->call);
}

void
route_cancel_run(struct exchange *x)
{
	struct cancel *c = arena_alloc(x->arena, sizeof(*c));

	if (c == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	c->x = x;
	run_find(x, &c->known, on_found);
}
