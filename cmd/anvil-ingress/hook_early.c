/* Deliveries that are refused by their headers alone.  Whether their path names a webhook is
 * found out when they have been answered (webhooks 9). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/hook.h"
#include "cmd/anvil-ingress/hook_refusal.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define NOTES_MAX    256 /* at a time; others are not kept */
#define ADDRESS_SIZE 65
#define SLUG_SIZE    65
#define HINT_SIZE    512

/* Outlives its exchange. */
struct note {
	struct ingress *in;
	enum provider provider;
	char owner_slug[SLUG_SIZE], slug[SLUG_SIZE];
	char request_id[RPC_REQUEST_ID_SIZE];
	struct refusal_row row; /* Its texts are the following. */
	char hint[HINT_SIZE], client[ADDRESS_SIZE];
	char event_name[WEBHOOK_CLAIM_SIZE], delivery_id[WEBHOOK_CLAIM_SIZE];
	struct hook_wait wait;
};

/* ---- the project ---- */

struct look {
	const char *owner_slug, *slug;
	char *id;
	int64_t *shard;
};

static int
look_turn(void *arg, struct turn *t)
{
	const struct look *l = arg;
	struct index_project p = { .id = NULL };
	int r = index_project_by_slug(t->store, t->arena, l->owner_slug, l->slug, &p);

	if (r < 0)
		return r;
	if (!p.confirmed)
		return E_NOENT;
	(void)snprintf(l->id, ID_SIZE, "%s", p.id);
	*l->shard = p.shard;
	return 0;
}

int
hook_find_project(struct ingress *in, const char *request_id, const char *owner_slug,
    const char *slug, char ret_id[ID_SIZE], int64_t *ret_shard)
{
	struct look l = { owner_slug, slug, ret_id, ret_shard };

	return actor_turn_for(in->actor, 0, request_id, look_turn, &l);
}

/* ---- the note ---- */

static struct note *
note_free(struct note *n)
{
	n->in->nhook_notes--;
	free(n);
	return NULL;
}

static void
on_loaded(struct hook_wait *w, enum hook_found v, struct hook_material *m)
{
	struct note *n = CONTAINER_OF(w, struct note, wait);

	if (v == HOOK_FOUND)
		hook_refusals_add(n->in->hook_refusals, m, &n->row);
	(void)note_free(n);
}

static void
look_up_take(struct note *n)
{
	char project_id[ID_SIZE];
	int64_t shard;
	struct hook_material *m;

	if (hook_find_project(
		n->in, n->request_id, n->owner_slug, n->slug, project_id, &shard) < 0) {
		(void)note_free(n);
		return;
	}
	n->wait.done = on_loaded;
	m = hook_cache_find(n->in->hook_cache, project_id, n->provider, clock_mono());
	if (m != NULL)
		on_loaded(&n->wait, HOOK_FOUND, m);
	else
		hook_cache_load(n->in->hook_cache, &n->wait, project_id, n->provider, shard,
		    CALL_OTHER_MS, n->request_id);
}

/* NULL: it is not kept. */
static struct note *
note_new(struct hook *h, enum refusal_reason reason, const char *hint)
{
	struct exchange *x = h->x;
	struct note *n = x->in->nhook_notes < NOTES_MAX ? mem_calloc(1, sizeof(*n)) : NULL;
	int64_t length = http_req_body_length(x->req);

	if (n == NULL)
		return NULL;
	n->in = x->in;
	n->in->nhook_notes++;
	n->provider = h->body.forge->provider;
	(void)snprintf(n->owner_slug, sizeof(n->owner_slug), "%s", http_req_param(x->req, 1));
	(void)snprintf(n->slug, sizeof(n->slug), "%s", http_req_param(x->req, 2));
	(void)snprintf(n->request_id, sizeof(n->request_id), "%s", http_req_id(x->req));
	(void)snprintf(n->hint, sizeof(n->hint), "%s", hint != NULL ? hint : "");
	(void)snprintf(n->client, sizeof(n->client), "%s", http_req_client(x->req));
	n->row = (struct refusal_row) { .reason = reason,
		.hint = hint != NULL ? n->hint : NULL,
		.event_name = webhook_claim_text(h->claim.event_name, n->event_name),
		.delivery_id = webhook_claim_text(h->claim.delivery_id, n->delivery_id),
		.has_body_bytes = length >= 0,
		.body_bytes = max_i64(length, 0),
		.client_address = n->client };
	return n;
}

void
hook_refuse_early(
    struct hook *h, enum refusal_reason reason, enum http_code code, const char *message)
{
	struct note *n = note_new(h, reason, message);

	hook_log_refused(NULL, h->body.forge->provider, reason, code);
	answer_error_text(h->x, code, message);
	if (n != NULL)
		look_up_take(n);
}
