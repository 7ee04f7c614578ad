/* webhook.* about custody: upsert, rotate, delete, list, and what verifies a delivery
 * (spec webhooks 8, 11). */
#include <string.h>

#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/custody.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/notice.h"
#include "cmd/anvil-project/shard.h"
#include "lib/webhook/webhook.h"

#define RECENT_DELIVERIES 10

static struct ledger_sealed
sealed_of(const struct sealed_value *v)
{
	return (struct ledger_sealed) { v->ciphertext, v->nonce, v->key_version };
}

/* The instance to be stored: where the forge is anyway is the same as none. */
static const char *
instance_of(enum provider provider, const struct webhook_config *config)
{
	const struct webhook_forge *f = webhook_forge_of(provider);

	if (config == NULL)
		return NULL;
	return f->instance == WEBHOOK_INSTANCE_OPTIONAL && f->base != NULL &&
		strcmp(config->instance_url, f->base) == 0
	    ? NULL
	    : config->instance_url;
}

static int
answer_webhook(struct turn *t, const struct ledger_webhook *w, struct webhook_row *ret)
{
	struct webhook_config *config = arena_alloc(t->arena, sizeof(*config));

	return config == NULL ? E_NOMEM : convert_webhook(w, config, ret);
}

/* ---- what verifies a delivery ---- */

int
webhook_get_verification(struct shard *s, struct turn *t,
    const struct webhook_get_verification_params *p,
    struct webhook_get_verification_result *ret)
{
	struct webhook_get_verification_found *f = &ret->u.found;
	struct ledger_webhook *w;
	struct custody c;
	int r;

	(void)s;
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, WEBHOOK_GET_VERIFICATION, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	ret->kind = WEBHOOK_GET_VERIFICATION_NOT_FOUND;
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	w = custody_find(&c, provider_name(p->provider));
	if (w == NULL || !w->enabled)
		return 0; /* which of the two is nobody's business */
	ret->kind = WEBHOOK_GET_VERIFICATION_FOUND;
	*f = (struct webhook_get_verification_found) { .webhook_id = w->webhook_id,
		.version = w->updated_at,
		.sealed_secret = { w->secret.ciphertext, w->secret.nonce,
		    w->secret.key_version },
		.repo_url = c.project.repo_url,
		.default_branch = c.project.default_branch };
	if (w->instance_url != NULL) {
		struct webhook_config *config = arena_alloc(t->arena, sizeof(*config));

		if (config == NULL)
			return E_NOMEM;
		config->instance_url = w->instance_url;
		f->config = config;
	}
	return 0;
}

/* ---- changes ---- */

/* Whoever comes second learns that, whatever was to be configured. */
static int
make_webhook(struct turn *t, const struct webhook_upsert_params *p, const struct custody *c,
    struct webhook_upsert_result *ret)
{
	struct ledger_webhook w = { .webhook_id = p->webhook_id,
		.project_id = p->project_id,
		.provider = provider_name(p->provider),
		.enabled = p->enabled,
		.instance_url = instance_of(p->provider, p->config),
		.secret = sealed_of(p->sealed_secret) };
	const char *why = NULL;
	int r = 0;

	if (custody_find(c, w.provider) == NULL)
		r = custody_judge(t, p->provider, w.instance_url, c->project.repo_url, &why);
	if (r < 0)
		return r;
	if (why != NULL) {
		ret->kind = WEBHOOK_UPSERT_INVALID_CONFIG;
		ret->u.invalid_config.message = why;
		return 0;
	}
	r = ledger_webhook_create(t->store, t->arena, &w, t->now_ms);
	if (r == E_EXISTS) {
		ret->kind = WEBHOOK_UPSERT_CREATE_CONFLICT;
		return 0;
	}
	ret->kind = WEBHOOK_UPSERT_CREATED;
	return r < 0 ? r : answer_webhook(t, &w, &ret->u.created.webhook);
}

static int
change_webhook(struct turn *t, const struct webhook_upsert_params *p, const struct custody *c,
    struct webhook_upsert_result *ret)
{
	struct ledger_webhook *w = custody_find(c, provider_name(p->provider));
	const char *why;
	int r;

	if (w == NULL || strcmp(w->webhook_id, p->webhook_id) != 0) {
		ret->kind = WEBHOOK_UPSERT_NOT_FOUND;
		return 0;
	}
	w->enabled = p->enabled;
	if (p->has_config)
		w->instance_url = instance_of(p->provider, p->config);
	r = custody_judge(t, p->provider, w->instance_url, c->project.repo_url, &why);
	if (r == 0 && why != NULL) {
		ret->kind = WEBHOOK_UPSERT_INVALID_CONFIG;
		ret->u.invalid_config.message = why;
		return 0;
	}
	ret->kind = WEBHOOK_UPSERT_UPDATED;
	if (r == 0)
		r = ledger_webhook_save(t->store, w, t->now_ms);
	return r < 0 ? r : answer_webhook(t, w, &ret->u.updated.webhook);
}

int
webhook_upsert(struct shard *s, struct turn *t, const struct webhook_upsert_params *p,
    struct webhook_upsert_result *ret)
{
	struct custody c;
	int r;

	/* A new one needs a secret, another changes it by rotation alone. */
	if (p->creating != (p->sealed_secret != NULL))
		return turn_fail(
		    t, E_PARAMS, "sealedSecret: expected for a new webhook, and for no other");
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, WEBHOOK_UPSERT, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	if (r == E_NOENT) {
		ret->kind = WEBHOOK_UPSERT_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = p->creating ? make_webhook(t, p, &c, ret) : change_webhook(t, p, &c, ret);
	if (r < 0 ||
	    (ret->kind != WEBHOOK_UPSERT_CREATED && ret->kind != WEBHOOK_UPSERT_UPDATED))
		return r;
	return notice_webhook_after(s, t, p->project_id, &p->provider);
}

int
webhook_rotate(struct shard *s, struct turn *t, const struct webhook_rotate_params *p,
    struct webhook_rotate_result *ret)
{
	struct ledger_webhook *w;
	struct custody c;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, WEBHOOK_ROTATE, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	ret->kind = WEBHOOK_ROTATE_NOT_FOUND;
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	w = custody_find(&c, provider_name(p->provider));
	/* The secret is sealed for that row and opens in no other. */
	if (w == NULL || strcmp(w->webhook_id, p->webhook_id) != 0)
		return 0;
	ret->kind = WEBHOOK_ROTATE_ROTATED;
	w->secret = sealed_of(&p->sealed_secret);
	r = ledger_webhook_save(t->store, w, t->now_ms);
	ret->u.rotated.version = w->updated_at;
	if (r == 0)
		r = shard_clean_after(s, t);
	return r < 0 ? r : notice_webhook_after(s, t, p->project_id, &p->provider);
}

int
webhook_delete(struct shard *s, struct turn *t, const struct webhook_delete_params *p,
    struct webhook_delete_result *ret)
{
	struct custody c;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, WEBHOOK_DELETE, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	if (r == 0)
		r = ledger_webhook_remove(
		    t->store, p->project_id, provider_name(p->provider), t->now_ms);
	if (r == E_NOENT) {
		ret->kind = WEBHOOK_DELETE_NOT_FOUND;
		return 0;
	}
	ret->kind = WEBHOOK_DELETE_DELETED;
	if (r == 0)
		r = shard_clean_after(s, t);
	return r < 0 ? r : notice_webhook_after(s, t, p->project_id, &p->provider);
}

/* ---- listing ---- */

static int
fill_refusals(struct turn *t, const struct ledger_webhook *w, struct webhook_entry *e)
{
	struct ledger_refusal *list;
	struct refusal_row *rows;
	size_t n;
	int r = ledger_refusals(t->store, t->arena, w->webhook_id, &list, &n);

	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = convert_refusal(&list[i], &rows[i]);
	e->refusals = rows;
	e->nrefusals = n;
	return r;
}

static int
fill_entry(struct turn *t, const struct ledger_webhook *w, struct webhook_entry *e)
{
	const struct ledger_delivery_query newest = {
		.project_id = w->project_id, .provider = w->provider, .limit = RECENT_DELIVERIES
	};
	struct custody_page page;
	int r = answer_webhook(t, w, &e->webhook);

	if (r == 0)
		r = custody_deliveries(t, &newest, &page);
	if (r < 0)
		return r;
	e->deliveries = page.rows;
	e->ndeliveries = page.n;
	return fill_refusals(t, w, e);
}

int
webhook_list(struct shard *s, struct turn *t, const struct webhook_list_params *p,
    struct webhook_list_result *ret)
{
	const char *only = p->has_provider ? provider_name(p->provider) : NULL;
	struct webhook_entry *rows;
	struct custody c;
	size_t n = 0;
	int r;

	(void)s;
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, WEBHOOK_LIST, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	if (r == E_NOENT) {
		ret->kind = WEBHOOK_LIST_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, c.nwebhooks, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < c.nwebhooks && r == 0; i++)
		if (only == NULL || strcmp(c.webhooks[i].provider, only) == 0)
			r = fill_entry(t, &c.webhooks[i], &rows[n++]);
	ret->kind = WEBHOOK_LIST_LIST;
	ret->u.list.webhooks = rows;
	ret->u.list.nwebhooks = n;
	return r;
}
