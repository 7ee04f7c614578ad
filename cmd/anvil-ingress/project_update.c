/* PATCH /api/private/projects/{projectId}: the shard first, then the index (http-api 6). */
#include <stddef.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "cmd/anvil-ingress/seal.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/log.h"

/* In the exchange's arena. */
struct update {
	struct exchange *x;
	struct http_update_project_body body;
	struct vault_sealed sealed; /* Freed by drop(). */
	struct shard_call call;
	const struct project_config *result; /* While its answer is being made. */
};

static struct update *
update_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct update, call);
}

static void
drop(struct exchange *x)
{
	struct update *u = x->work;

	vault_sealed_done(&u->sealed);
}

/* The list shows it at once; when it cannot, the shard's own word comes later. */
static int
refresh_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const struct update *u = x->work;
	struct index_project p = rows_index_project(u->result, u->call.shard);
	struct http_update_project_answer answer;
	int r = index_project_refresh(t->store, &p);

	if (r < 0)
		return r;
	p.last_run_status = x->project.last_run_status;
	answer.project = answer_project(&p);
	r = answer_prepare(x, &http_update_project_answer_codec, &answer);
	return r < 0 ? r : exchange_answer_after(x, t, 200);
}

static void
answer_conflict(struct exchange *x, const struct project_update_webhook_conflict *c)
{
	CLEANUP(buf_done) struct buf details = BUF_INIT;

	buf_add_str(&details, "{\"providers\":[");
	for (size_t i = 0; i < c->nproviders; i++) {
		if (i > 0)
			buf_add_byte(&details, ',');
		(void)json_text_string(&details, c->providers[i], strlen(c->providers[i]));
	}
	buf_add_str(&details, "]}");
	if (details.failed)
		exchange_fail(x, E_NOMEM);
	else
		answer_error_details(x, HTTP_CODE_PROJECT_REPO_URL_CONFLICTS_WITH_WEBHOOK,
		    "A webhook of this project does not fit that repository URL.",
		    buf_cstr(&details));
}

static void
on_updated(void *arg, int err, const struct project_update_result *res)
{
	struct update *u = arg;
	struct exchange *x = u->x;

	if (err < 0) {
		shard_call_error(&u->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_UPDATE_MOVED: shard_call_moved(&u->call, res->u.moved.shard); return;
	case PROJECT_UPDATE_MOVING: shard_call_moving(&u->call, res->u.moving.retry_ms); return;
	default: break;
	}
	shard_call_done(&u->call);
	switch (res->kind) {
	case PROJECT_UPDATE_UPDATED:
		u->result = &res->u.updated.project;
		/* Deliveries that follow the answer are verified against what it says. */
		hook_cache_drop_project(x->in->hook_cache, x->project.id);
		exchange_do(x, 1, refresh_turn);
		u->result = NULL;
		break;
	case PROJECT_UPDATE_WEBHOOK_CONFLICT:
		answer_conflict(x, &res->u.webhook_conflict);
		break;
	default:
		log_event(LOG_LEVEL_ERROR, "project_unknown_to_shard",
		    LOG_STR("projectId", x->project.id), LOG_INT("shard", u->call.shard));
		answer_error(x, HTTP_CODE_PROJECT_NOT_FOUND);
	}
}

static int
send(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct update *u = update_of(c);
	const struct http_update_project_body *b = &u->body;
	struct sealed_value token = { .ciphertext = u->sealed.ciphertext,
		.nonce = u->sealed.nonce,
		.key_version = u->sealed.key_version };
	struct project_update_params p = { .project_id = u->x->project.id,
		.set = { .name = b->name,
		    .repo_url = b->repo_url,
		    .default_branch = b->default_branch,
		    .config_path = b->config_path,
		    .has_repo_token = b->has_repo_token,
		    .repo_token = b->repo_token != NULL ? &token : NULL,
		    .has_badge_public = b->has_badge_public,
		    .badge_public = b->badge_public } };

	return project_update_call(peer, opts, &p, on_updated, u);
}

static void
failed(struct shard_call *c, enum http_code why, int sent)
{
	(void)sent;
	answer_error(update_of(c)->x, why);
}

static int
is_empty(const struct http_update_project_body *b)
{
	return b->name == NULL && b->repo_url == NULL && b->default_branch == NULL &&
	    b->config_path == NULL && !b->has_repo_token && !b->has_badge_public;
}

static void
on_body(struct exchange *x)
{
	struct update *u = arena_alloc(x->arena, sizeof(*u));
	int r = 0;

	if (u == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	if (exchange_shapes(x, &http_update_project_body_codec, &u->body) < 0)
		return;
	if (is_empty(&u->body)) {
		answer_error(x, HTTP_CODE_EMPTY_UPDATE);
		return;
	}
	if (exchange_rules(x, &http_update_project_body_codec, &u->body) < 0)
		return;
	u->x = x;
	x->work = u;
	x->drop = drop;
	if (u->body.repo_token != NULL)
		r = seal_repo_token(x->in, x->project.id, u->body.repo_token, &u->sealed);
	if (r == E_NOKEY) {
		answer_error(x, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
		return;
	}
	if (r < 0) {
		exchange_fail(x, r);
		return;
	}
	u->call = (struct shard_call) { .in = x->in,
		.shard = x->project.shard,
		.deadline_ms = CALL_OTHER_MS,
		.request_id = http_req_id(x->req),
		.send = send,
		.failed = failed };
	shard_call_start(&u->call);
}

void
route_update_project(struct exchange *x)
{
	if (routes_find_project(x) == 0)
		exchange_read_body(x, on_body);
}
