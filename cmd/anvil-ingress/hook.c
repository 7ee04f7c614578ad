/* POST /api/public/hooks/{provider}/{ownerSlug}/{projectSlug}: the order of work (webhooks 1). */
#include "cmd/anvil-ingress/hook.h"

#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/routes.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define ANSWER_MS  8000 /* From the end of the body, whatever others do.            */
#define RECHECK_MS 1000 /* Material that is younger is not asked for once more.     */

static void settle(struct hook *h);

/* ---- what it is verified against ---- */

static void
set_material(struct hook *h, struct hook_material *m)
{
	(void)hook_material_ref(m);
	(void)hook_material_unref(h->material);
	h->material = m;
}

static void
load(struct hook *h, int64_t deadline_ms,
    void (*done)(struct hook_wait *w, enum hook_found v, struct hook_material *m))
{
	h->wait.done = done;
	hook_cache_load(h->x->in->hook_cache, &h->wait, h->project_id, h->body.forge->provider,
	    h->material != NULL ? h->material->shard : h->shard, deadline_ms,
	    http_req_id(h->x->req));
}

static struct hook *
hook_of(struct hook_wait *w)
{
	struct hook *h = CONTAINER_OF(w, struct hook, wait);

	OBJ_CHECK(h, HOOK_MAGIC);
	return h;
}

static int64_t
left_ms(const struct hook *h)
{
	return mono_diff_ms(clock_mono(), h->until);
}

/* Steps 9 to 14 once more, against other material. */
static void
work_again(struct hook *h, struct hook_material *m)
{
	int r;

	set_material(h, m);
	r = hook_body_again(&h->body, m);
	if (r < 0)
		exchange_fail(h->x, r);
	else
		settle(h);
}

static void
on_reloaded(struct hook_wait *w, enum hook_found v, struct hook_material *m)
{
	struct hook *h = hook_of(w);

	log_set_request(http_req_id(h->x->req));
	if (v == HOOK_FOUND)
		work_again(h, m);
	else
		answer_error(h->x, v == HOOK_ABSENT ? HTTP_CODE_WEBHOOK_NOT_FOUND : w->why);
	log_set_request("");
}

static void
reload(struct hook *h)
{
	int64_t ms = min_i64(CALL_OTHER_MS, left_ms(h));

	if (ms <= 0 || !hook_body_is_kept(&h->body))
		answer_error(h->x, HTTP_CODE_SHARD_UNAVAILABLE);
	else
		load(h, ms, on_reloaded);
}

/* ---- step 14 ---- */

static void
on_stale(struct hook *h)
{
	static const struct hook_verdict twice = { .code = HTTP_CODE_STALE_WEBHOOK_VERIFICATION,
		.is_kept = 1,
		.reason = REFUSAL_REASON_STALE_VERIFICATION,
		.hint =
		    "The webhook was changed twice while the delivery was being verified." };

	hook_cache_drop(h->x->in->hook_cache, h->project_id, h->body.forge->provider);
	if (h->is_stale) {
		hook_refuse(h, &twice);
	} else {
		h->is_stale = 1;
		reload(h);
	}
}

static void
on_recorded(struct hook_record *r, const struct webhook_record_result *res)
{
	struct hook *h = CONTAINER_OF(r, struct hook, record);

	OBJ_CHECK(h, HOOK_MAGIC);
	log_set_request(http_req_id(h->x->req));
	if (res != NULL && res->kind == WEBHOOK_RECORD_STALE)
		on_stale(h);
	else
		hook_answer(h, res);
	log_set_request("");
}

static void
record(struct hook *h)
{
	struct exchange *x = h->x;
	int r = webhook_classify(
	    x->arena, &h->payload, h->material->default_branch, &h->candidate);

	if (r < 0) {
		exchange_fail(x, r);
		return;
	}
	if (h->is_stale || h->is_rechecked)
		log_event(LOG_LEVEL_INFO, "webhook_reverified",
		    LOG_STR("projectId", h->project_id),
		    LOG_STR("provider", provider_name(h->body.forge->provider)));
	if (h->run_id[0] == '\0')
		id_make(ID_RUN, h->run_id);
	h->record = (struct hook_record) { .in = x->in,
		.material = h->material,
		.payload = &h->payload,
		.candidate = &h->candidate,
		.run_id = h->run_id,
		.deadline_ms = max_i64(1, left_ms(h)),
		.request_id = http_req_id(x->req),
		.done = on_recorded };
	hook_record_start(&h->record);
}

static struct hook_material *
cached(const struct hook *h)
{
	return hook_cache_find(
	    h->x->in->hook_cache, h->project_id, h->body.forge->provider, clock_mono());
}

/* Whether a refusal may come from what is out of date here.  It is asked of the shard at most
 * once a second for a webhook, so that bad deliveries do not get through to it. */
static int
wants_recheck(const struct hook *h, const struct hook_verdict *v)
{
	return v->rests_on_material && !h->is_stale && !h->is_rechecked &&
	    hook_body_is_kept(&h->body) &&
	    (cached(h) != h->material ||
		mono_diff_ms(h->material->loaded, clock_mono()) >= RECHECK_MS);
}

static void
recheck(struct hook *h)
{
	struct hook_material *m = cached(h);

	h->is_rechecked = 1;
	if (m != NULL && m != h->material)
		work_again(h, m);
	else
		reload(h);
}

static void
settle(struct hook *h)
{
	struct hook_verdict v;
	int r = hook_verify(h, &v);

	if (r < 0)
		exchange_fail(h->x, r);
	else if (v.is_good)
		record(h);
	else if (wants_recheck(h, &v))
		recheck(h);
	else
		hook_refuse(h, &v);
}

/* ---- step 8 ---- */

static void
body_failed(struct hook *h, int err)
{
	int64_t nbytes = (int64_t)http_req_body_read(h->x->req);

	if (err == E_TOO_BIG)
		hook_note_refusal(
		    h, REFUSAL_REASON_TOO_LARGE, HTTP_CODE_PAYLOAD_TOO_LARGE, NULL, nbytes);
	else if (err == E_DEADLINE)
		hook_note_refusal(
		    h, REFUSAL_REASON_TIMEOUT, HTTP_CODE_REQUEST_TIMEOUT, NULL, nbytes);
}

static void
on_body(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len)
{
	struct hook *h = arg;

	(void)req;
	OBJ_CHECK(h, HOOK_MAGIC);
	if (err == 0 && len > 0) {
		hook_body_feed(&h->body, data, len);
		return;
	}
	log_set_request(http_req_id(h->x->req));
	if (err < 0) {
		body_failed(h, err);
	} else {
		h->until = mono_add_ms(clock_mono(), ANSWER_MS);
		hook_body_end(&h->body);
		settle(h);
	}
	log_set_request("");
}

static void
read_body(struct hook *h, struct hook_material *m)
{
	struct exchange *x = h->x;
	int r;

	set_material(h, m);
	r = hook_body_begin(&h->body, m, http_req_body_length(x->req));
	if (r < 0)
		exchange_fail(x, r);
	else
		http_body_stream(
		    x->req, (size_t)x->in->config->webhooks_max_body_bytes, on_body, h);
}

/* ---- steps 2 to 7 ---- */

static void
on_loaded(struct hook_wait *w, enum hook_found v, struct hook_material *m)
{
	struct hook *h = hook_of(w);

	if (v == HOOK_FOUND)
		read_body(h, m);
	else
		answer_error(h->x, v == HOOK_ABSENT ? HTTP_CODE_WEBHOOK_NOT_FOUND : w->why);
}

static void
find_webhook(struct hook *h)
{
	struct exchange *x = h->x;
	struct hook_material *m;
	int r = hook_find_project(x->in, http_req_id(x->req), http_req_param(x->req, 1),
	    http_req_param(x->req, 2), h->project_id, &h->shard);

	if (r == E_NOENT) {
		/* A forge that is told of no webhook does not come again. */
		answer_error(x,
		    rebuild_may_lack(x->in->rebuild) ? HTTP_CODE_SHARD_UNAVAILABLE
						     : HTTP_CODE_WEBHOOK_NOT_FOUND);
		return;
	}
	if (r < 0) {
		exchange_fail(x, r);
		return;
	}
	x->project.id = h->project_id;
	m = cached(h);
	if (m != NULL)
		read_body(h, m);
	else
		load(h, CALL_OTHER_MS, on_loaded);
}

/* Steps 4 and 5: 0, or it has been answered. */
static int
check_body(struct hook *h)
{
	struct http_req *req = h->x->req;
	const struct webhook_forge *f = h->body.forge;

	h->body.media = webhook_media_of(f, http_req_header_once(req, "Content-Type"));
	if (h->body.media == WEBHOOK_MEDIA_UNSUPPORTED || !http_req_is_identity(req)) {
		hook_refuse_early(h, REFUSAL_REASON_UNSUPPORTED_MEDIA_TYPE,
		    HTTP_CODE_UNSUPPORTED_MEDIA_TYPE, f->media_hint);
		return E_UNSUPPORTED;
	}
	if (http_req_body_length(req) > h->x->in->config->webhooks_max_body_bytes) {
		hook_refuse_early(
		    h, REFUSAL_REASON_TOO_LARGE, HTTP_CODE_PAYLOAD_TOO_LARGE, NULL);
		return E_TOO_BIG;
	}
	return 0;
}

static void
drop(struct exchange *x)
{
	struct hook *h = x->work;

	hook_wait_cancel(&h->wait);
	hook_body_done(&h->body);
	h->material = hook_material_unref(h->material);
	h->magic = 0;
}

static int
is_slug(struct exchange *x, const char *text)
{
	const char *kept, *why;

	return rule_slug(&x->in->rules, x->arena, text, strlen(text), &kept, &why) == 0;
}

static const char *
header(void *req, const char *name)
{
	return http_req_header_once(req, name);
}

static void
begin(struct exchange *x, enum provider provider)
{
	struct hook *h = arena_alloc(x->arena, sizeof(*h));

	if (h == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	h->magic = HOOK_MAGIC;
	h->x = x;
	h->body.in = x->in;
	h->body.forge = webhook_forge_of(provider);
	x->work = h;
	x->drop = drop;
	webhook_claim_read(h->body.forge, header, x->req, &h->claim);
	h->body.proof = h->claim.proof;
	if (check_body(h) == 0)
		find_webhook(h);
}

void
route_deliver_webhook(struct exchange *x)
{
	enum provider provider;

	if (provider_parse(http_req_param(x->req, 0), &provider) < 0)
		answer_error(x, HTTP_CODE_WEBHOOK_NOT_FOUND);
	else if (!is_slug(x, http_req_param(x->req, 1)) ||
	    !is_slug(x, http_req_param(x->req, 2)))
		answer_error(x, HTTP_CODE_INVALID_SLUG);
	else
		begin(x, provider);
}
