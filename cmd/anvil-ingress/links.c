#include "cmd/anvil-ingress/links.h"

#include <stdio.h>

#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/reseal.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define ATTEMPTS_MAX 3
#define CROWDED_MS   30
#define HOPS_MAX     4 /* A project that goes from shard to shard for ever is an error. */

static const int64_t pauses_ms[ATTEMPTS_MAX - 1] = { 50, 250 };

/* Number of the shard; -1: not one yet. */
static int64_t
shard_of(const struct ingress *in, const struct link *l)
{
	for (size_t i = 0; i < in->nshards; i++)
		if (in->shards[i] == l)
			return (int64_t)i;
	return -1;
}

static void
on_shard_up(void *arg, struct link *l, struct rpc_peer *p)
{
	struct ingress *in = arg;

	(void)p;
	OBJ_CHECK(in, INGRESS_MAGIC);
	reseal_kick(in->reseal, shard_of(in, l));
	rebuild_kick(in->rebuild);
}

/* What it notified of meanwhile has not come. */
static void
on_shard_down(void *arg, struct link *l, int err)
{
	struct ingress *in = arg;
	int64_t shard;

	(void)err;
	OBJ_CHECK(in, INGRESS_MAGIC);
	shard = shard_of(in, l);
	if (shard >= 0)
		hook_cache_drop_shard(in->hook_cache, shard);
}

static const struct link_ops shard_ops = { .on_up = on_shard_up, .on_down = on_shard_down };

int
links_open(struct ingress *in, size_t nshards)
{
	char address[32];

	while (in->nshards < nshards && in->nshards < SHARDS_MAX) {
		(void)snprintf(address, sizeof(address), "project/%zu", in->nshards);
		in->shards[in->nshards] = actor_link(in->actor, address, &shard_ops, in);
		if (in->shards[in->nshards] == NULL)
			return E_NOMEM;
		in->nshards++;
	}
	return 0;
}

struct rpc_peer *
links_shard(const struct ingress *in, int64_t shard)
{
	if (shard < 0 || shard >= (int64_t)in->nshards)
		return NULL;
	return link_peer(in->shards[shard]);
}

struct rpc_peer *
links_supervisor(const struct ingress *in)
{
	struct link *l = proc_supervisor(in->proc);

	return l != NULL ? link_peer(l) : NULL;
}

/* ---- one call ---- */

static void
fail(struct shard_call *c, enum http_code why)
{
	shard_call_done(c);
	c->failed(c, why, c->sent);
}

static void on_timer(void *arg);

static void
send_after(struct shard_call *c, int64_t ms, enum http_code otherwise)
{
	if (c->timer == NULL)
		c->timer = actor_timer_new(c->in->actor, on_timer, c);
	if (c->timer == NULL || mono_add_ms(clock_mono(), ms).us > c->until.us ||
	    actor_timer_set(c->timer, ms) < 0)
		fail(c, otherwise);
}

static void
send_now(struct shard_call *c)
{
	struct rpc_peer *peer = links_shard(c->in, c->shard);
	struct rpc_call_opts opts = { .deadline_ms = mono_diff_ms(clock_mono(), c->until),
		.request_id = c->request_id };
	int r = peer != NULL ? 0 : E_LINK;

	if (opts.deadline_ms <= 0)
		r = E_DEADLINE;
	if (r == 0)
		r = c->send(c, peer, &opts);
	if (r == E_OVERLOADED)
		/* Nothing was sent: that many are under way, and some of them end soon. */
		send_after(c, CROWDED_MS, HTTP_CODE_SHARD_UNAVAILABLE);
	else if (r < 0)
		shard_call_error(c, r);
	else
		c->sent = 1;
}

static void
on_timer(void *arg)
{
	struct shard_call *c = arg;

	send_now(c);
}

void
shard_call_start(struct shard_call *c)
{
	LIST_INSERT_HEAD(&c->in->calls, c, entry);
	c->under_way = 1;
	c->until = mono_add_ms(clock_mono(), c->deadline_ms);
	c->moving_until = mono_add_ms(clock_mono(), min_i64(c->deadline_ms, MOVING_MS));
	send_now(c);
}

void
shard_call_done(struct shard_call *c)
{
	must(c->under_way);
	c->under_way = 0;
	c->timer = actor_timer_free(c->timer);
	LIST_REMOVE(c, entry);
}

static int
is_ours(int err)
{
	switch (err) {
	case E_INTERNAL:
	case E_PARAMS:
	case E_METHOD:
	case E_DENIED:
	case E_REQUEST:
	case E_ILLEGAL:
	case E_CONSTRAINT:
	case E_UNSUPPORTED: return 1;
	default: return 0;
	}
}

void
shard_call_error(struct shard_call *c, int err)
{
	enum http_code why = HTTP_CODE_SHARD_UNAVAILABLE;

	if (is_ours(err)) {
		log_event(LOG_LEVEL_ERROR, "shard_call_failed", LOG_INT("shard", c->shard),
		    LOG_STR("errorCode", err_symbol(err)));
		fail(c, HTTP_CODE_INTERNAL_ERROR);
		return;
	}
	if (err == E_STORAGE || err == E_FULL || err == E_CORRUPT)
		why = HTTP_CODE_STORAGE_UNAVAILABLE;
	if (c->repeats && c->attempts < ATTEMPTS_MAX - 1)
		send_after(c, pauses_ms[c->attempts++], why);
	else
		fail(c, why);
}

void
shard_call_moved(struct shard_call *c, int64_t shard)
{
	if (++c->hops > HOPS_MAX) {
		fail(c, HTTP_CODE_SHARD_UNAVAILABLE);
		return;
	}
	c->sent = 0; /* It was refused. */
	c->shard = shard;
	/* A shard that was just added may be known to others first. */
	if (links_shard(c->in, shard) == NULL)
		shard_call_moving(c, CROWDED_MS);
	else
		send_now(c);
}

void
shard_call_moving(struct shard_call *c, int64_t retry_ms)
{
	int64_t ms = max_i64(10, min_i64(retry_ms, 1000));

	c->sent = 0; /* It was refused. */
	if (mono_add_ms(clock_mono(), ms).us > c->moving_until.us)
		fail(c, HTTP_CODE_PROJECT_MOVING);
	else
		send_after(c, ms, HTTP_CODE_PROJECT_MOVING);
}

void
links_fail_all(struct ingress *in)
{
	while (!LIST_EMPTY(&in->calls))
		fail(LIST_FIRST(&in->calls), HTTP_CODE_SHARD_UNAVAILABLE);
}
