#include "cmd/anvil-ingress/webhooks.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/seal.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static struct webhooks_work *
work_of(struct shard_call *call)
{
	return CONTAINER_OF(call, struct webhooks_work, call);
}

/* ---- the end ---- */

/* ${w} may be gone when `done` returns, so that what is wiped afterwards is not in it. */
static void
finish(struct webhooks_work *w, enum webhooks_verdict v)
{
	char secret[VAULT_TOKEN_SIZE];

	memcpy(secret, w->made, sizeof(secret));
	mem_wipe(w->made, sizeof(w->made));
	vault_sealed_done(&w->sealed);
	if (secret[0] != '\0' && (v == WEBHOOKS_CREATED || v == WEBHOOKS_ROTATED))
		w->told = secret;
	w->done(w, v);
	mem_wipe(secret, sizeof(secret));
}

static void
refuse(struct webhooks_work *w, enum http_code why, const char *message)
{
	w->why = why;
	w->message = message;
	finish(w, WEBHOOKS_REFUSED);
}

static void
refuse_err(struct webhooks_work *w, int err)
{
	if (err == E_NOKEY)
		refuse(w, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED, NULL);
	else
		refuse(
		    w, err == E_NOMEM ? HTTP_CODE_OVERLOADED : HTTP_CODE_INTERNAL_ERROR, NULL);
}

static void
refuse_config(struct webhooks_work *w, const char *message)
{
	const char *copy = arena_strdup(w->arena, message);

	if (copy == NULL)
		refuse_err(w, E_NOMEM);
	else
		refuse(w, HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, copy);
}

static void
refuse_no_project(struct webhooks_work *w)
{
	log_event(LOG_LEVEL_ERROR, "project_unknown_to_shard",
	    LOG_STR("projectId", w->project_id), LOG_INT("shard", w->call.shard));
	finish(w, WEBHOOKS_NO_PROJECT);
}

static void
call_failed(struct shard_call *call, enum http_code why, int sent)
{
	(void)sent;
	refuse(work_of(call), why, NULL);
}

/* Every order may be repeated: a secret is the same, and so is the id of a new webhook. */
static void
call_shard(struct webhooks_work *w,
    int (*send)(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts),
    void (*failed)(struct shard_call *c, enum http_code why, int sent))
{
	w->call = (struct shard_call) { .in = w->in,
		.shard = w->shard,
		.deadline_ms = CALL_OTHER_MS,
		.repeats = 1,
		.request_id = w->request_id,
		.send = send,
		.failed = failed };
	shard_call_start(&w->call);
}

/* The next question goes where this one was answered. */
static void
answered(struct webhooks_work *w)
{
	w->shard = w->call.shard;
	shard_call_done(&w->call);
}

/* Deliveries that follow the answer are verified against what it says. */
static void
changed(const struct webhooks_work *w, const char *event)
{
	hook_cache_drop(w->in->hook_cache, w->project_id, w->provider);
	log_set_request(w->request_id);
	log_event(LOG_LEVEL_INFO, event, LOG_STR("projectId", w->project_id),
	    LOG_STR("provider", provider_name(w->provider)), LOG_STR("userId", w->user_id));
	log_set_request("");
}

/* ---- list ---- */

static void
on_list(void *arg, int err, const struct webhook_list_result *res)
{
	struct webhooks_work *w = arg;

	if (err < 0) {
		shard_call_error(&w->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_LIST_MOVED: shard_call_moved(&w->call, res->u.moved.shard); return;
	case WEBHOOK_LIST_MOVING: shard_call_moving(&w->call, res->u.moving.retry_ms); return;
	default: break;
	}
	answered(w);
	if (res->kind == WEBHOOK_LIST_LIST)
		w->found(w, &res->u.list);
	else
		refuse_no_project(w);
}

static int
send_list(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct webhooks_work *w = work_of(call);
	struct webhook_list_params p = { .project_id = w->project_id,
		.has_provider = !w->lists_all,
		.provider = w->provider };

	return webhook_list_call(peer, opts, &p, on_list, w);
}

/* Of the one that was asked for. */
static void
keep_id(struct webhooks_work *w, const struct webhook_list_list *list)
{
	(void)snprintf(w->id, sizeof(w->id), "%s", list->webhooks[0].webhook.webhook_id);
}

static void
found_all(struct webhooks_work *w, const struct webhook_list_list *list)
{
	w->list = list;
	finish(w, WEBHOOKS_LISTED);
}

void
webhooks_list(struct webhooks_work *w)
{
	w->lists_all = 1;
	w->found = found_all;
	call_shard(w, send_list, call_failed);
}

/* ---- put: what is told besides ---- */

/* A row that somebody has replaced meanwhile has another history. */
static void
found_history(struct webhooks_work *w, const struct webhook_list_list *list)
{
	if (list->nwebhooks == 1 &&
	    strcmp(list->webhooks[0].webhook.webhook_id, w->webhook.webhook_id) == 0)
		w->entry = &list->webhooks[0];
	finish(w, w->verdict);
}

/* It has been done, and a secret can be told now only: then without the history. */
static void
history_failed(struct shard_call *call, enum http_code why, int sent)
{
	struct webhooks_work *w = work_of(call);

	(void)why;
	(void)sent;
	finish(w, w->verdict);
}

static int
keep_row(struct webhooks_work *w, const struct webhook_row *row)
{
	struct webhook_config *config = NULL;

	w->webhook = *row;
	w->webhook.webhook_id = arena_strdup(w->arena, row->webhook_id);
	if (row->config != NULL) {
		config = arena_alloc(w->arena, sizeof(*config));
		if (config != NULL)
			config->instance_url = arena_strdup(
			    w->arena, row->config->instance_url);
		if (config == NULL || config->instance_url == NULL)
			return E_NOMEM;
	}
	w->webhook.config = config;
	return w->webhook.webhook_id != NULL ? 0 : E_NOMEM;
}

static void
finish_with(struct webhooks_work *w, enum webhooks_verdict v, const struct webhook_row *row)
{
	if (keep_row(w, row) < 0) {
		refuse_err(w, E_NOMEM);
		return;
	}
	w->verdict = v;
	if (!w->with_history) {
		finish(w, v);
		return;
	}
	w->found = found_history;
	call_shard(w, send_list, history_failed);
}

/* ---- put ---- */

static void
on_upserted(void *arg, int err, const struct webhook_upsert_result *res)
{
	struct webhooks_work *w = arg;

	if (err < 0) {
		shard_call_error(&w->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_UPSERT_MOVED: shard_call_moved(&w->call, res->u.moved.shard); return;
	case WEBHOOK_UPSERT_MOVING: shard_call_moving(&w->call, res->u.moving.retry_ms); return;
	default: break;
	}
	answered(w);
	switch (res->kind) {
	case WEBHOOK_UPSERT_CREATED:
		changed(w, "webhook_created");
		finish_with(w, WEBHOOKS_CREATED, &res->u.created.webhook);
		break;
	case WEBHOOK_UPSERT_UPDATED:
		changed(w, "webhook_updated");
		finish_with(w, WEBHOOKS_UPDATED, &res->u.updated.webhook);
		break;
	case WEBHOOK_UPSERT_CREATE_CONFLICT:
		refuse(w, HTTP_CODE_WEBHOOK_CREATE_CONFLICT, NULL);
		break;
	case WEBHOOK_UPSERT_INVALID_CONFIG:
		refuse_config(w, res->u.invalid_config.message);
		break;
	default: refuse(w, HTTP_CODE_WEBHOOK_NOT_FOUND, NULL);
	}
}

static struct sealed_value
sealed_value(const struct webhooks_work *w)
{
	return (struct sealed_value) { .ciphertext = w->sealed.ciphertext,
		.nonce = w->sealed.nonce,
		.key_version = w->sealed.key_version };
}

static int
send_upsert(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct webhooks_work *w = work_of(call);
	struct webhook_config config = { .instance_url = w->instance_url };
	struct sealed_value secret = sealed_value(w);
	struct webhook_upsert_params p = { .project_id = w->project_id,
		.provider = w->provider,
		.creating = w->creating,
		.webhook_id = w->id,
		.enabled = w->enabled,
		.has_config = w->has_config,
		.config = w->instance_url != NULL ? &config : NULL,
		.sealed_secret = w->creating ? &secret : NULL };

	return webhook_upsert_call(peer, opts, &p, on_upserted, w);
}

static int
seal(struct webhooks_work *w)
{
	const char *secret = w->secret;

	if (secret == NULL) {
		vault_token_make(w->made);
		secret = w->made;
	}
	return seal_webhook_secret(
	    w->in, w->project_id, w->id, secret, strlen(secret), &w->sealed);
}

/* The shard is asked for what was found, so that nothing is made or changed that came or went
 * meanwhile. */
static void
found_to_put(struct webhooks_work *w, const struct webhook_list_list *list)
{
	int r = 0;

	w->creating = list->nwebhooks == 0;
	if (w->creating) {
		id_make(ID_WEBHOOK, w->id);
		r = seal(w);
	} else if (w->secret != NULL) {
		refuse(w, HTTP_CODE_INVALID_WEBHOOK_SECRET, NULL);
		return;
	} else {
		keep_id(w, list);
	}
	if (r < 0)
		refuse_err(w, r);
	else
		call_shard(w, send_upsert, call_failed);
}

void
webhooks_put(struct webhooks_work *w)
{
	w->found = found_to_put;
	call_shard(w, send_list, call_failed);
}

/* ---- rotate ---- */

static void
on_rotated(void *arg, int err, const struct webhook_rotate_result *res)
{
	struct webhooks_work *w = arg;

	if (err < 0) {
		shard_call_error(&w->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_ROTATE_MOVED: shard_call_moved(&w->call, res->u.moved.shard); return;
	case WEBHOOK_ROTATE_MOVING: shard_call_moving(&w->call, res->u.moving.retry_ms); return;
	default: break;
	}
	answered(w);
	if (res->kind != WEBHOOK_ROTATE_ROTATED) {
		refuse(w, HTTP_CODE_WEBHOOK_NOT_FOUND, NULL);
		return;
	}
	changed(w, "webhook_rotated");
	finish(w, WEBHOOKS_ROTATED);
}

static int
send_rotate(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct webhooks_work *w = work_of(call);
	struct webhook_rotate_params p = { .project_id = w->project_id,
		.provider = w->provider,
		.webhook_id = w->id,
		.sealed_secret = sealed_value(w) };

	return webhook_rotate_call(peer, opts, &p, on_rotated, w);
}

/* The seal is bound to the id. */
static void
found_to_rotate(struct webhooks_work *w, const struct webhook_list_list *list)
{
	int r;

	if (list->nwebhooks == 0) {
		refuse(w, HTTP_CODE_WEBHOOK_NOT_FOUND, NULL);
		return;
	}
	keep_id(w, list);
	r = seal(w);
	if (r < 0)
		refuse_err(w, r);
	else
		call_shard(w, send_rotate, call_failed);
}

void
webhooks_rotate(struct webhooks_work *w)
{
	w->found = found_to_rotate;
	call_shard(w, send_list, call_failed);
}

/* ---- delete ---- */

static void
on_deleted(void *arg, int err, const struct webhook_delete_result *res)
{
	struct webhooks_work *w = arg;

	if (err < 0) {
		w->unanswered = 1;
		shard_call_error(&w->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_DELETE_MOVED: shard_call_moved(&w->call, res->u.moved.shard); return;
	case WEBHOOK_DELETE_MOVING: shard_call_moving(&w->call, res->u.moving.retry_ms); return;
	default: break;
	}
	answered(w);
	/* When an earlier try has deleted it, its answer is the one that got lost. */
	if (res->kind == WEBHOOK_DELETE_DELETED || w->unanswered) {
		changed(w, "webhook_deleted");
		finish(w, WEBHOOKS_DELETED);
	} else {
		refuse(w, HTTP_CODE_WEBHOOK_NOT_FOUND, NULL);
	}
}

static int
send_delete(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct webhooks_work *w = work_of(call);
	struct webhook_delete_params p = { .project_id = w->project_id,
		.provider = w->provider };

	return webhook_delete_call(peer, opts, &p, on_deleted, w);
}

void
webhooks_delete(struct webhooks_work *w)
{
	call_shard(w, send_delete, call_failed);
}
