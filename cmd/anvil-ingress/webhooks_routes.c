/* .../projects/{projectId}/webhooks: list, put, rotate-secret, delete (http-api 10). */
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/webhooks.h"
#include "cmd/anvil-ingress/webhooks_view.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* A buffer that grows leaves its old bytes behind unwiped: room for all of an answer that tells
 * a secret, with a history that is as long as it may be. */
#define WIPED_BYTES ((size_t)256 << 10)

static struct webhooks_place
place_of(const struct exchange *x)
{
	return (struct webhooks_place) { .public_url = x->in->config->public_url,
		.project_id = x->project.id,
		.owner_slug = x->project.owner_slug,
		.project_slug = x->project.slug };
}

/* ---- answers ---- */

/* As answer_value(), for what may hold a secret. */
static void
answer_wiped(struct exchange *x, int status, const struct codec_type *t, const void *value)
{
	CLEANUP(buf_wipe) struct buf out = BUF_INIT;
	int r = buf_reserve(&out, WIPED_BYTES);

	if (r == 0)
		r = codec_encode(&out, t, value);
	if (r < 0) {
		exchange_fail(x, r);
		return;
	}
	x->answered = 1;
	http_answer_add(x->req, "Content-Type", "application/json");
	http_answer(x->req, status, out.data, out.len);
}

static void
answer_list(struct exchange *x, const struct webhook_list_list *list)
{
	struct http_list_webhooks_answer answer = { .nwebhooks = list->nwebhooks };
	struct http_webhook_summary *rows = arena_calloc(
	    x->arena, list->nwebhooks, sizeof(*rows));
	struct webhooks_place where = place_of(x);
	int r = rows != NULL ? 0 : E_NOMEM;

	for (size_t i = 0; i < list->nwebhooks && r == 0; i++)
		r = webhooks_summary(
		    x->arena, &where, &list->webhooks[i].webhook, &list->webhooks[i], &rows[i]);
	answer.webhooks = rows;
	if (r < 0)
		exchange_fail(x, r);
	else
		answer_value(x, 200, &http_list_webhooks_answer_codec, &answer);
}

static void
answer_put(struct exchange *x, const struct webhooks_work *w, int status)
{
	struct http_webhook_put answer = { .generated_secret = w->told };
	struct webhooks_place where = place_of(x);
	int r = webhooks_summary(x->arena, &where, &w->webhook, w->entry, &answer.webhook);

	if (r < 0)
		exchange_fail(x, r);
	else
		answer_wiped(x, status, &http_webhook_put_codec, &answer);
}

static void
answer_refusal(struct exchange *x, const struct webhooks_work *w)
{
	CLEANUP(buf_done) struct buf issues = BUF_INIT;
	struct webhooks_asked asked = { w->provider, w->instance_url };
	const char *message = w->message != NULL ? w->message : webhooks_message(w->why);

	if (w->why == HTTP_CODE_INTERNAL_ERROR)
		answer_error(x, w->why);
	else if (webhooks_issues(&issues, w->why, &asked, message) < 0)
		exchange_fail(x, E_NOMEM);
	else
		answer_error_details(
		    x, w->why, message, issues.len > 0 ? buf_cstr(&issues) : NULL);
}

static void
on_done(struct webhooks_work *w, enum webhooks_verdict v)
{
	struct http_rotate_webhook_secret_answer rotated = { .secret = w->told };
	struct exchange *x = w->arg;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	switch (v) {
	case WEBHOOKS_CREATED: answer_put(x, w, 201); break;
	case WEBHOOKS_UPDATED: answer_put(x, w, 200); break;
	case WEBHOOKS_ROTATED:
		answer_wiped(x, 200, &http_rotate_webhook_secret_answer_codec, &rotated);
		break;
	case WEBHOOKS_DELETED: answer_empty(x, 204); break;
	case WEBHOOKS_LISTED: answer_list(x, w->list); break;
	case WEBHOOKS_NO_PROJECT: answer_error(x, HTTP_CODE_PROJECT_NOT_FOUND); break;
	case WEBHOOKS_REFUSED: answer_refusal(x, w); break;
	}
}

/* ---- what is asked ---- */

/* NULL: no memory, and that is answered. */
static struct webhooks_work *
work_new(struct exchange *x, enum provider provider)
{
	struct webhooks_work *w = arena_alloc(x->arena, sizeof(*w));

	if (w == NULL) {
		exchange_fail(x, E_NOMEM);
		return NULL;
	}
	*w = (struct webhooks_work) { .in = x->in,
		.arena = x->arena,
		.project_id = x->project.id,
		.user_id = x->user.id,
		.request_id = http_req_id(x->req),
		.shard = x->project.shard,
		.provider = provider,
		.with_history = 1,
		.done = on_done,
		.arg = x };
	return w;
}

/* The project and the forge of the path: 0, or it has been answered. */
static int
find_place(struct exchange *x, enum provider *ret)
{
	int r = routes_find_project(x);

	if (r < 0)
		return r;
	r = provider_parse(http_req_param(x->req, 1), ret);
	if (r < 0)
		answer_error_text(x, HTTP_CODE_WEBHOOK_NOT_FOUND,
		    "There are webhooks of github, gitlab and gitea.");
	return r;
}

static void
start(struct exchange *x, void (*order)(struct webhooks_work *w))
{
	struct webhooks_work *w;
	enum provider provider;

	if (find_place(x, &provider) < 0)
		return;
	w = work_new(x, provider);
	if (w != NULL)
		order(w);
}

void
route_list_webhooks(struct exchange *x)
{
	struct webhooks_work *w;

	if (routes_find_project(x) < 0)
		return;
	w = work_new(x, PROVIDER_GITHUB);
	if (w != NULL)
		webhooks_list(w);
}

void
route_rotate_webhook_secret(struct exchange *x)
{
	start(x, webhooks_rotate);
}

void
route_delete_webhook(struct exchange *x)
{
	start(x, webhooks_delete);
}

/* ---- put ---- */

/* What the body says in secret goes with the exchange. */
static void
wipe_secret(struct exchange *x)
{
	json_t *secret = json_object_get(x->body, "secret");
	const char *text = json_string_value(secret);

	if (text != NULL)
		mem_wipe((char *)(uintptr_t)text, json_string_length(secret));
}

static void
on_put_body(struct exchange *x)
{
	struct http_put_webhook_body b = { .enabled = 0 };
	struct webhooks_work *w;
	enum provider provider;

	x->drop = wipe_secret;
	if (exchange_shapes(x, &http_put_webhook_body_codec, &b) < 0 ||
	    exchange_rules(x, &http_put_webhook_body_codec, &b) < 0)
		return;
	must(provider_parse(http_req_param(x->req, 1), &provider) == 0);
	w = work_new(x, provider);
	if (w == NULL)
		return;
	w->enabled = b.enabled;
	w->has_config = b.has_config;
	w->instance_url = b.config != NULL ? b.config->instance_url : NULL;
	w->secret = b.secret;
	webhooks_put(w);
}

void
route_put_webhook(struct exchange *x)
{
	enum provider provider;

	if (find_place(x, &provider) == 0)
		exchange_read_body(x, on_put_body);
}
