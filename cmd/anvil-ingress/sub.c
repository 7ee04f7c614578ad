#include "cmd/anvil-ingress/sub.h"

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

#define ANSWER_MS 30000 /* A run that stores much answers late. */

/* Outlives a subscription that is closed before its answer. */
struct sub_call {
	struct sub *sub;       /* NULL: nobody waits any more. */
	struct rpc_peer *peer; /* A reference.                 */
};

static void
on_gone(void *arg, int err, const struct run_unsubscribe_result *res)
{
	(void)arg;
	(void)err;
	(void)res;
}

static void
unsubscribe(struct rpc_peer *peer, int64_t id)
{
	const struct run_unsubscribe_params p = { .subscription = id };

	if (rpc_peer_is_open(peer))
		(void)run_unsubscribe_call(peer, NULL, &p, on_gone, NULL);
}

static void
on_answer(void *arg, int err, const struct run_subscribe_result *res)
{
	struct sub_call *c = arg;
	struct sub *s = c->sub;

	if (s == NULL && err == 0)
		unsubscribe(c->peer, res->u.ok.subscription);
	(void)rpc_peer_unref(c->peer);
	free(c);
	if (s == NULL)
		return;
	s->call = NULL;
	if (err == 0)
		s->id = res->u.ok.subscription;
	else
		sub_close(s, 0);
	s->ops->on_answer(s, err, err == 0 ? &res->u.ok : NULL);
}

int
sub_open(struct sub *s, const struct sub_ops *ops, struct rpc_peer *peer, int64_t from)
{
	struct run_subscribe_params p = { .has_from_seq = from != 0, .from_seq = from };
	struct rpc_call_opts opts = { .deadline_ms = ANSWER_MS };
	struct sub_call *c = mem_calloc(1, sizeof(*c));
	int r;

	if (c == NULL)
		return E_NOMEM;
	*c = (struct sub_call) { s, peer };
	r = run_subscribe_call(peer, &opts, &p, on_answer, c);
	if (r < 0) {
		free(c);
		return r;
	}
	(void)rpc_peer_ref(peer); /* the call's */
	*s = (struct sub) { .ops = ops, .peer = rpc_peer_ref(peer), .call = c };
	return 0;
}

void
sub_close(struct sub *s, int tell)
{
	if (s->call != NULL)
		s->call->sub = NULL;
	else if (s->peer != NULL && tell)
		unsubscribe(s->peer, s->id);
	if (s->peer != NULL)
		(void)rpc_peer_unref(s->peer);
	*s = (struct sub) { .ops = s->ops };
}

int
sub_is_open(const struct sub *s)
{
	return s->peer != NULL;
}

void
sub_ack(const struct sub *s, int64_t seq)
{
	const struct run_ack_params p = { .subscription = s->id, .seq = seq };

	if (s->id != 0 && rpc_peer_is_open(s->peer))
		(void)run_ack_send(s->peer, NULL, &p);
}

int
sub_owns(const struct sub *s, const struct rpc_peer *peer, int64_t id)
{
	return s->peer == peer && s->id == id && id != 0;
}
