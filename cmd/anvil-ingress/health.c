#include "cmd/anvil-ingress/health.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/routes.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define ANSWER_MS   5000 /* An actor that has not answered for so long is down. */
#define REASONS_MAX HTTP_HEALTH_REASON_COUNT

/* One actor as it was last seen. */
struct seen {
	struct health *health;
	char address[32];
	int64_t shard; /* below 0: the supervisor       */
	int asked;     /* An answer is owed.            */
	int ever;
	struct mono_time at;          /* of the last answer            */
	enum http_health_state state; /* as the supervisor has it      */
};

struct health {
	struct ingress *in;
	struct actor_timer *timer;
	int owed; /* Answers to calls that point here. */
	int closed;
	unsigned reasons; /* Bits of enum http_health_reason, the supervisor's word. */
	struct seen seen[1 + SHARDS_MAX]; /* The supervisor, then the shards. */
};

static size_t
nseen(const struct health *h)
{
	return 1 + h->in->nshards;
}

static struct health *
release(struct health *h)
{
	if (h->owed > 0)
		return NULL;
	return mem_free(h);
}

static int
settle(struct health *h)
{
	h->owed--;
	if (!h->closed)
		return 1;
	(void)release(h);
	return 0;
}

/* ---- asking ---- */

static void
on_info(void *arg, const struct rpc_answer *a)
{
	struct seen *s = arg;

	s->asked = 0;
	if (a->err == 0) {
		s->ever = 1;
		s->at = clock_mono();
	}
	(void)settle(s->health);
}

static void
on_list(void *arg, int err, const struct supervisor_list_result *res)
{
	static const enum http_health_state states[] = {
		[ACTOR_STATE_UP] = HTTP_HEALTH_STATE_UP,
		[ACTOR_STATE_STARTING] = HTTP_HEALTH_STATE_STARTING,
		[ACTOR_STATE_FAILING] = HTTP_HEALTH_STATE_FAILING,
		[ACTOR_STATE_DOWN] = HTTP_HEALTH_STATE_DOWN,
		[ACTOR_STATE_STOPPING] = HTTP_HEALTH_STATE_DOWN,
	};
	struct health *h = arg;

	if (!settle(h) || err < 0)
		return;
	for (size_t i = 0; i < res->nactors; i++)
		for (size_t k = 1; k < nseen(h); k++)
			if (strcmp(res->actors[i].address, h->seen[k].address) == 0)
				h->seen[k].state = states[res->actors[i].state];
}

static void
on_health(void *arg, int err, const struct supervisor_health_result *res)
{
	struct health *h = arg;
	enum http_health_reason reason;
	struct seen *s = &h->seen[0];

	s->asked = 0;
	if (!settle(h) || err < 0)
		return;
	s->ever = 1;
	s->at = clock_mono();
	h->reasons = 0;
	for (size_t i = 0; i < res->nreasons; i++)
		if (http_health_reason_parse(health_reason_name(res->reasons[i]), &reason) == 0)
			h->reasons |= 1u << reason;
}

static void
ask(struct health *h)
{
	struct rpc_call_opts opts = { .deadline_ms = ANSWER_MS };
	struct rpc_peer *peer = links_supervisor(h->in);
	struct supervisor_health_params none = { 0 };
	struct supervisor_list_params nothing = { 0 };

	if (peer != NULL && !h->seen[0].asked) {
		h->seen[0].asked = supervisor_health_call(peer, &opts, &none, on_health, h) ==
		    0;
		h->owed += h->seen[0].asked;
		h->owed += supervisor_list_call(peer, &opts, &nothing, on_list, h) == 0;
	}
	for (size_t i = 1; i < nseen(h); i++) {
		struct seen *s = &h->seen[i];

		peer = links_shard(h->in, s->shard);
		if (peer == NULL || s->asked)
			continue;
		s->asked = rpc_send(peer, "actor.info", NULL, &opts, on_info, s) == 0;
		h->owed += s->asked;
	}
}

static void
on_timer(void *arg)
{
	struct health *h = arg;

	ask(h);
	(void)actor_timer_set(h->timer, HEALTH_EVERY_MS);
}

struct health *
health_new(struct ingress *in)
{
	struct health *h = mem_calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->in = in;
	h->timer = actor_timer_new(in->actor, on_timer, h);
	if (h->timer == NULL || actor_timer_set(h->timer, 100) < 0)
		return health_free(h);
	for (size_t i = 0; i < ARRAY_LEN(h->seen); i++) {
		struct seen *s = &h->seen[i];

		s->health = h;
		s->shard = (int64_t)i - 1;
		s->state = HTTP_HEALTH_STATE_STARTING;
		if (i == 0)
			(void)snprintf(s->address, sizeof(s->address), "supervisor");
		else
			(void)snprintf(s->address, sizeof(s->address), "project/%zu", i - 1);
	}
	return h;
}

struct health *
health_free(struct health *h)
{
	if (h == NULL)
		return NULL;
	h->timer = actor_timer_free(h->timer);
	h->closed = 1;
	return release(h);
}

/* ---- telling ---- */

static enum http_health_state
state_of(const struct health *h, const struct seen *s, int64_t age_ms)
{
	struct rpc_peer *peer = s->shard < 0 ? links_supervisor(h->in)
					     : links_shard(h->in, s->shard);
	int fresh = s->ever && age_ms <= ANSWER_MS;

	if (s->shard < 0)
		return peer != NULL && (fresh || !s->ever) ? HTTP_HEALTH_STATE_UP
							   : HTTP_HEALTH_STATE_DOWN;
	if (s->state != HTTP_HEALTH_STATE_UP)
		return s->state;
	if (peer == NULL)
		return HTTP_HEALTH_STATE_STARTING;
	return fresh || !s->ever ? HTTP_HEALTH_STATE_UP : HTTP_HEALTH_STATE_DOWN;
}

static struct http_health_actor
ingress_itself(const struct ingress *in, unsigned *reasons)
{
	int outage = actor_outage(in->actor) != NULL;

	if (outage)
		*reasons |= 1u << HTTP_HEALTH_REASON_ACTOR_FAILING |
		    1u << HTTP_HEALTH_REASON_STORAGE_UNAVAILABLE;
	return (struct http_health_actor) { .address = "ingress",
		.state = outage ? HTTP_HEALTH_STATE_FAILING : HTTP_HEALTH_STATE_UP,
		.has_age_ms = 1 };
}

static size_t
list_actors(const struct health *h, struct http_health_actor *out, unsigned *reasons)
{
	struct mono_time now = clock_mono();
	size_t n = 0;

	for (size_t i = 0; i < nseen(h); i++) {
		const struct seen *s = &h->seen[i];
		int64_t age_ms = mono_diff_ms(s->at, now);
		enum http_health_state state = state_of(h, s, age_ms);

		if (state == HTTP_HEALTH_STATE_FAILING)
			*reasons |= 1u << HTTP_HEALTH_REASON_ACTOR_FAILING;
		else if (state != HTTP_HEALTH_STATE_UP)
			*reasons |= 1u << HTTP_HEALTH_REASON_ACTOR_DOWN;
		out[n++] = (struct http_health_actor) { .address = s->address,
			.state = state,
			.has_age_ms = s->ever,
			.age_ms = age_ms };
		if (i == 0)
			out[n++] = ingress_itself(h->in, reasons);
	}
	return n;
}

void
route_get_health(struct exchange *x)
{
	struct ingress *in = x->in;
	enum http_health_reason list[REASONS_MAX];
	unsigned reasons = in->health->reasons;
	struct http_health_actor *actors = arena_calloc(
	    x->arena, nseen(in->health) + 1, sizeof(*actors));
	struct http_health answer = { .actors = actors, .reasons = list };

	if (actors == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	answer.nactors = list_actors(in->health, actors, &reasons);
	if (in->keys == NULL)
		reasons |= 1u << HTTP_HEALTH_REASON_KEY_UNAVAILABLE;
	if (in->storage_lost.us != 0 &&
	    mono_diff_ms(in->storage_lost, clock_mono()) < STORAGE_TROUBLE_MS)
		reasons |= 1u << HTTP_HEALTH_REASON_STORAGE_UNAVAILABLE;
	for (unsigned i = 0; i < REASONS_MAX; i++)
		if ((reasons & 1u << i) != 0)
			list[answer.nreasons++] = (enum http_health_reason)i;
	answer.status = reasons == 0 ? HTTP_HEALTH_STATUS_OK : HTTP_HEALTH_STATUS_DEGRADED;
	answer_value(x, 200, &http_health_codec, &answer);
}
