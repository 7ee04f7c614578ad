#include "cmd/anvil-ingress/hook_refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

/* What one webhook is to be told. */
struct bundle {
	TAILQ_ENTRY(bundle) entry;
	struct hook_refusals *all;
	char project_id[ID_SIZE], webhook_id[ID_SIZE];
	int64_t shard;
	struct refusal_row *rows[HOOK_REFUSALS_ONE]; /* Owned, each with its texts behind it. */
	size_t n;
	struct shard_call call;
};

struct hook_refusals {
	struct ingress *in;
	struct map *by_webhook;              /* Bundles that wait.           */
	TAILQ_HEAD(bundles, bundle) waiting; /* In the order of their turns. */
	size_t nrows, ncalls;
	struct actor_timer *timer;
};

/* ---- rows ---- */

static size_t
size_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

static char *
put(char **at, const char *text)
{
	char *to = *at;

	if (text == NULL)
		return NULL;
	*at += size_of(text);
	return memcpy(to, text, size_of(text));
}

/* One block, texts included. */
static struct refusal_row *
copy_row(const struct refusal_row *row)
{
	struct refusal_row *r = mem_alloc(sizeof(*r) + size_of(row->hint) +
	    size_of(row->event_name) + size_of(row->delivery_id) +
	    size_of(row->client_address));
	char *at;

	if (r == NULL)
		return NULL;
	at = (char *)(r + 1);
	*r = *row;
	r->hint = put(&at, row->hint);
	r->event_name = put(&at, row->event_name);
	r->delivery_id = put(&at, row->delivery_id);
	r->client_address = put(&at, row->client_address);
	return r;
}

static struct bundle *
bundle_free(struct bundle *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->rows[i]);
	free(b);
	return NULL;
}

/* Takes it out of those that wait. */
static void
bundle_remove(struct hook_refusals *c, struct bundle *b)
{
	(void)map_remove(c->by_webhook, b->webhook_id);
	TAILQ_REMOVE(&c->waiting, b, entry);
	c->nrows -= b->n;
}

/* ---- one call ---- */

static struct bundle *
bundle_of(struct shard_call *call)
{
	return CONTAINER_OF(call, struct bundle, call);
}

static void
bundle_sent(struct bundle *b)
{
	b->all->ncalls--;
	(void)bundle_free(b);
}

static void
on_answer(void *arg, int err, const struct webhook_refused_result *res)
{
	struct bundle *b = arg;

	if (err < 0) {
		shard_call_error(&b->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_REFUSED_MOVED: shard_call_moved(&b->call, res->u.moved.shard); return;
	case WEBHOOK_REFUSED_MOVING:
		shard_call_moving(&b->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&b->call);
	bundle_sent(b);
}

static int
send(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct bundle *b = bundle_of(call);
	struct refusal_row rows[HOOK_REFUSALS_ONE];
	struct webhook_refused_params p = { .project_id = b->project_id,
		.webhook_id = b->webhook_id,
		.entries = rows,
		.nentries = b->n };

	for (size_t i = 0; i < b->n; i++)
		rows[i] = *b->rows[i];
	return webhook_refused_call(peer, opts, &p, on_answer, b);
}

static void
failed(struct shard_call *call, enum http_code why, int sent)
{
	(void)why;
	(void)sent;
	bundle_sent(bundle_of(call));
}

static void
start(struct hook_refusals *c, struct bundle *b)
{
	bundle_remove(c, b);
	c->ncalls++;
	b->call = (struct shard_call) { .in = c->in,
		.shard = b->shard,
		.deadline_ms = CALL_OTHER_MS,
		.request_id = "",
		.send = send,
		.failed = failed };
	shard_call_start(&b->call);
}

/* ---- the collection ---- */

static void
on_timer(void *arg)
{
	struct hook_refusals *c = arg;

	for (int i = 0; i < HOOK_REFUSAL_CALLS && !TAILQ_EMPTY(&c->waiting); i++)
		start(c, TAILQ_FIRST(&c->waiting));
	if (!TAILQ_EMPTY(&c->waiting))
		(void)actor_timer_set(c->timer, HOOK_REFUSAL_EVERY_MS);
}

struct hook_refusals *
hook_refusals_new(struct ingress *in)
{
	struct hook_refusals *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->in = in;
	TAILQ_INIT(&c->waiting);
	c->by_webhook = map_new();
	c->timer = actor_timer_new(in->actor, on_timer, c);
	return c->by_webhook != NULL && c->timer != NULL ? c : hook_refusals_free(c);
}

struct hook_refusals *
hook_refusals_free(struct hook_refusals *c)
{
	struct bundle *b;

	if (c == NULL)
		return NULL;
	must(c->ncalls == 0);
	c->timer = actor_timer_free(c->timer);
	while ((b = TAILQ_FIRST(&c->waiting)) != NULL) {
		bundle_remove(c, b);
		(void)bundle_free(b);
	}
	c->by_webhook = map_free(c->by_webhook);
	free(c);
	return NULL;
}

void
hook_refusals_flush(struct hook_refusals *c)
{
	while (!TAILQ_EMPTY(&c->waiting))
		start(c, TAILQ_FIRST(&c->waiting));
}

static struct bundle *
bundle_for(struct hook_refusals *c, const struct hook_material *m)
{
	struct bundle *b = map_get(c->by_webhook, m->webhook_id);

	if (b != NULL)
		return b;
	b = mem_calloc(1, sizeof(*b));
	if (b == NULL || map_set(c->by_webhook, m->webhook_id, b) < 0)
		return mem_free(b);
	b->all = c;
	b->shard = m->shard;
	(void)snprintf(b->project_id, sizeof(b->project_id), "%s", m->project_id);
	(void)snprintf(b->webhook_id, sizeof(b->webhook_id), "%s", m->webhook_id);
	TAILQ_INSERT_TAIL(&c->waiting, b, entry);
	return b;
}

/* The newest of its kind shows, with how many there were. */
static int
merge(struct bundle *b, struct refusal_row *row)
{
	for (size_t i = 0; i < b->n; i++) {
		struct refusal_row *old = b->rows[i];

		if (old->reason != row->reason ||
		    strcmp(old->client_address, row->client_address) != 0)
			continue;
		row->count += old->count;
		free(old);
		b->rows[i] = row;
		return 1;
	}
	return 0;
}

static void
add_take(struct hook_refusals *c, const struct hook_material *m, struct refusal_row *row)
{
	struct bundle *b = bundle_for(c, m);

	if (b != NULL && merge(b, row))
		return;
	if (b == NULL || b->n == HOOK_REFUSALS_ONE) {
		free(row);
		return;
	}
	b->rows[b->n++] = row;
	c->nrows++;
	if (!actor_timer_is_set(c->timer))
		(void)actor_timer_set(c->timer, HOOK_REFUSAL_EVERY_MS);
}

void
hook_refusals_add(
    struct hook_refusals *c, const struct hook_material *m, const struct refusal_row *row)
{
	struct refusal_row *copy = c->nrows < HOOK_REFUSALS_ALL ? copy_row(row) : NULL;

	if (copy == NULL)
		return;
	copy->at = clock_wall_ms();
	copy->count = 1;
	add_take(c, m, copy);
}

size_t
hook_refusals_count(const struct hook_refusals *c)
{
	return c->nrows;
}
