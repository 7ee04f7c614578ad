/* ingress.setWebhook, rotateWebhook, deleteWebhook: what the routes do, for anvilctl. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/webhooks.h"
#include "cmd/anvil-ingress/webhooks_view.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* One of them, from its call to its reply. */
struct order {
	struct webhooks_work work;
	struct ingress *in;
	struct parked *caller;
	struct arena *arena; /* Owned. */
	char *secret;        /* In the arena, wiped. */
	struct index_project project;
	void (*start)(struct webhooks_work *w);
	char request_id[RPC_REQUEST_ID_SIZE];
};

static void
order_free(struct order *o)
{
	if (o->secret != NULL)
		mem_wipe(o->secret, strlen(o->secret));
	o->arena = arena_free(o->arena);
	free(o);
}

/* NULL: no memory. */
static struct order *
order_new(struct ingress *in, const struct turn *t, const char *project_id, enum provider p)
{
	struct order *o = mem_calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->in = in;
	o->arena = arena_new();
	(void)snprintf(o->request_id, sizeof(o->request_id), "%s", t->request_id);
	if (o->arena != NULL)
		o->work = (struct webhooks_work) { .in = in,
			.arena = o->arena,
			.project_id = arena_strdup(o->arena, project_id),
			.request_id = o->request_id,
			.provider = p,
			.arg = o };
	if (o->work.project_id != NULL)
		return o;
	order_free(o);
	return NULL;
}

/* ---- the project comes first ---- */

static int
find_turn(void *arg, struct turn *t)
{
	struct order *o = arg;
	int r = index_project_get(t->store, o->arena, o->work.project_id, &o->project);

	return r == 0 && !o->project.confirmed ? E_NOENT : r;
}

static void
begin(void *arg)
{
	struct order *o = arg;
	int r = actor_turn_for(o->in->actor, 0, o->request_id, find_turn, o);

	if (r == E_NOENT) {
		o->work.done(&o->work, WEBHOOKS_NO_PROJECT);
	} else if (r < 0) {
		parked_error(o->caller, r, NULL);
		order_free(o);
	} else {
		o->work.shard = o->project.shard;
		o->work.user_id = o->project.owner_user_id;
		o->start(&o->work);
	}
}

static void
begin_never(void *arg)
{
	struct order *o = arg;

	parked_error(o->caller, E_STORAGE, NULL);
	order_free(o);
}

/* Parks the caller; the work begins when its turn is over.  Takes ${o}. */
static int
order_start_take(struct order *o, struct turn *t)
{
	o->caller = turn_park(t);
	if (o->caller == NULL) {
		order_free(o);
		return E_NOMEM;
	}
	if (turn_after_commit(t, begin, o, begin_never) < 0) {
		parked_error(o->caller, E_NOMEM, NULL);
		order_free(o);
	}
	return TURN_PARKED;
}

static const char *
message_of(const struct webhooks_work *w)
{
	return w->message != NULL ? w->message : webhooks_message(w->why);
}

static void
reply(struct order *o, const void *result)
{
	parked_reply(o->caller, result);
	order_free(o);
}

/* ---- set ---- */

static void
on_set(struct webhooks_work *w, enum webhooks_verdict v)
{
	struct ingress_set_webhook_result res = { .kind = INGRESS_SET_WEBHOOK_NOT_FOUND };
	struct order *o = w->arg;
	struct webhooks_place where = { .public_url = o->in->config->public_url,
		.owner_slug = o->project.owner_slug,
		.project_slug = o->project.slug };
	const char *url = "";

	if (v == WEBHOOKS_CREATED || v == WEBHOOKS_UPDATED)
		url = webhooks_delivery_url(o->arena, &where, w->provider);
	if (url == NULL) {
		parked_error(o->caller, E_NOMEM, NULL);
		order_free(o);
		return;
	}
	if (v == WEBHOOKS_CREATED) {
		res.kind = INGRESS_SET_WEBHOOK_CREATED;
		res.u.created.webhook = w->webhook;
		res.u.created.generated_secret = w->told;
		res.u.created.delivery_url = url;
	} else if (v == WEBHOOKS_UPDATED) {
		res.kind = INGRESS_SET_WEBHOOK_UPDATED;
		res.u.updated.webhook = w->webhook;
		res.u.updated.delivery_url = url;
	} else if (v == WEBHOOKS_REFUSED) {
		res.kind = INGRESS_SET_WEBHOOK_REFUSED;
		res.u.refused.code = http_code_name(w->why);
		res.u.refused.message = message_of(w);
	}
	reply(o, &res);
}

int
ingress_set_webhook(struct ingress *in, struct turn *t,
    const struct ingress_set_webhook_params *p, struct ingress_set_webhook_result *ret)
{
	struct order *o = order_new(in, t, p->project_id, p->provider);
	struct webhooks_work *w;

	(void)ret;
	if (o == NULL)
		return E_NOMEM;
	w = &o->work;
	w->enabled = p->enabled;
	w->has_config = p->has_instance_url;
	if (p->instance_url != NULL)
		w->instance_url = arena_strdup(o->arena, p->instance_url);
	if (p->secret != NULL)
		w->secret = o->secret = arena_strdup(o->arena, p->secret);
	if ((p->instance_url != NULL && w->instance_url == NULL) ||
	    (p->secret != NULL && w->secret == NULL)) {
		order_free(o);
		return E_NOMEM;
	}
	w->done = on_set;
	o->start = webhooks_put;
	return order_start_take(o, t);
}

/* ---- rotate ---- */

static void
on_rotate(struct webhooks_work *w, enum webhooks_verdict v)
{
	struct ingress_rotate_webhook_result res = { .kind = INGRESS_ROTATE_WEBHOOK_NOT_FOUND };

	if (v == WEBHOOKS_ROTATED) {
		res.kind = INGRESS_ROTATE_WEBHOOK_ROTATED;
		res.u.rotated.secret = w->told;
	} else if (v == WEBHOOKS_REFUSED) {
		res.kind = INGRESS_ROTATE_WEBHOOK_REFUSED;
		res.u.refused.code = http_code_name(w->why);
		res.u.refused.message = message_of(w);
	}
	reply(w->arg, &res);
}

int
ingress_rotate_webhook(struct ingress *in, struct turn *t,
    const struct ingress_rotate_webhook_params *p, struct ingress_rotate_webhook_result *ret)
{
	struct order *o = order_new(in, t, p->project_id, p->provider);

	(void)ret;
	if (o == NULL)
		return E_NOMEM;
	o->work.done = on_rotate;
	o->start = webhooks_rotate;
	return order_start_take(o, t);
}

/* ---- delete ---- */

static void
on_delete(struct webhooks_work *w, enum webhooks_verdict v)
{
	struct ingress_delete_webhook_result res = { .kind = INGRESS_DELETE_WEBHOOK_NOT_FOUND };

	if (v == WEBHOOKS_DELETED) {
		res.kind = INGRESS_DELETE_WEBHOOK_DELETED;
	} else if (v == WEBHOOKS_REFUSED) {
		res.kind = INGRESS_DELETE_WEBHOOK_REFUSED;
		res.u.refused.code = http_code_name(w->why);
		res.u.refused.message = message_of(w);
	}
	reply(w->arg, &res);
}

int
ingress_delete_webhook(struct ingress *in, struct turn *t,
    const struct ingress_delete_webhook_params *p, struct ingress_delete_webhook_result *ret)
{
	struct order *o = order_new(in, t, p->project_id, p->provider);

	(void)ret;
	if (o == NULL)
		return E_NOMEM;
	o->work.done = on_delete;
	o->start = webhooks_delete;
	return order_start_take(o, t);
}
