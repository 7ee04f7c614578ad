/* Steps 9 to 13: what a delivery has to be before it is recorded (webhooks 1).  Each step is
 * 0, REFUSED with the verdict filled, or E_NOMEM. */
#include <string.h>

#include "cmd/anvil-ingress/hook.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

#define REFUSED  1
#define HINT_MAX 1000 /* Bytes; a RefusalRow takes 1,024. */

typedef int step_fn(struct hook *h, struct hook_verdict *v);

static int
refuse(struct hook_verdict *v, enum http_code code, enum refusal_reason reason,
    const char *message, char *hint)
{
	if (hint == NULL)
		return E_NOMEM;
	/* All of it is ASCII. */
	if (strlen(hint) > HINT_MAX)
		hint[HINT_MAX] = '\0';
	v->code = code;
	v->message = message;
	v->is_kept = 1;
	v->reason = reason;
	v->hint = hint;
	return REFUSED;
}

/* Not the sender's fault, and nothing for the list of the owner. */
static int
fail(struct hook_verdict *v, enum http_code code)
{
	v->code = code;
	v->rests_on_material = 1;
	return REFUSED;
}

/* Step 9. */
static int
check_headers(struct hook *h, struct hook_verdict *v)
{
	struct arena *a = h->x->arena;
	const char *name = h->claim.bad_header;

	if (name == NULL)
		return 0;
	return refuse(v, HTTP_CODE_INVALID_WEBHOOK_SIGNATURE, REFUSAL_REASON_MISSING_HEADER,
	    arena_format(a, "The delivery has no usable header %s.", name),
	    arena_format(a, "The header %s is missing, given twice, or not usable.", name));
}

/* Step 10. */
static int
check_secret(struct hook *h, struct hook_verdict *v)
{
	if (h->body.secret_err == 0)
		return 0;
	log_event(LOG_LEVEL_ERROR, "webhook_secret_unreadable",
	    LOG_STR("projectId", h->project_id),
	    LOG_STR("provider", provider_name(h->body.forge->provider)),
	    LOG_INT("keyVersion", h->material->secret.key_version),
	    LOG_STR("errorCode", err_symbol(h->body.secret_err)));
	return fail(v, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
}

/* Step 11. */
static int
check_proof(struct hook *h, struct hook_verdict *v)
{
	if (h->body.is_verified)
		return 0;
	v->rests_on_material = 1;
	return refuse(v, HTTP_CODE_INVALID_WEBHOOK_SIGNATURE, REFUSAL_REASON_SIGNATURE_MISMATCH,
	    NULL,
	    arena_strdup(h->x->arena,
		"The secret in the forge differs from that of this webhook, or a proxy changed "
		"the body on its way."));
}

static int
refuse_json(struct hook *h, struct hook_verdict *v, const char *path, const char *message)
{
	char *text = path[0] != '\0' ? arena_format(h->x->arena, "%s: %s", path, message)
				     : arena_strdup(h->x->arena, message);

	return refuse(v, HTTP_CODE_INVALID_JSON, REFUSAL_REASON_BAD_JSON, text, text);
}

/* Step 12. */
static int
check_json(struct hook *h, struct hook_verdict *v)
{
	struct webhook_fault fault = { .path = "" };
	int r;

	if (h->body.form_err < 0)
		return refuse_json(h, v, "", h->body.form_message);
	r = webhook_scan_end(h->body.scan, &fault);
	return r == E_PARSE ? refuse_json(h, v, fault.path, fault.message) : r;
}

/* Step 13a. */
static int
check_payload(struct hook *h, struct hook_verdict *v)
{
	struct codec *c = &h->x->codec;
	struct webhook_facts facts = { .forge = h->body.forge,
		.claim = &h->claim,
		.project_url = h->material->repo_url,
		.body_sha256 = h->body.sha256,
		.body_bytes = h->body.nbytes };
	int r = webhook_payload_make(c, h->body.scan, &facts, &h->payload);

	if (r != E_PARAMS && r != E_INVAL)
		return r;
	must(c->nissues > 0);
	v->has_issues = 1;
	return refuse(v, r == E_PARAMS ? HTTP_CODE_INVALID_REQUEST : HTTP_CODE_INVALID_REPO_URL,
	    REFUSAL_REASON_BAD_PAYLOAD, c->nissues == 1 ? c->issues[0].message : NULL,
	    arena_format(h->x->arena, "%s: %s", c->issues[0].path,
		c->issues[0].message != NULL ? c->issues[0].message : c->issues[0].expected));
}

/* Step 13b. */
static int
check_config(struct hook *h, struct hook_verdict *v)
{
	const struct hook_material *m = h->material;

	if (webhook_config_fits(h->body.forge->provider, m->instance_url, m->repo_url))
		return 0;
	log_event(LOG_LEVEL_ERROR, "webhook_config_unfit", LOG_STR("projectId", h->project_id),
	    LOG_STR("provider", provider_name(h->body.forge->provider)));
	return fail(v, HTTP_CODE_INVALID_WEBHOOK_CONFIG);
}

/* Step 13c. */
static int
check_repository(struct hook *h, struct hook_verdict *v)
{
	const char *ours = h->material->repo_url, *theirs = h->payload.repository_url;
	struct arena *a = h->x->arena;

	if (webhook_same_repository(theirs, ours))
		return 0;
	v->rests_on_material = 1;
	return refuse(v, HTTP_CODE_WEBHOOK_REPO_MISMATCH, REFUSAL_REASON_REPO_MISMATCH,
	    arena_format(a, "The delivery is about another repository than %s.", ours),
	    arena_format(a, "The delivery is about %s, the project is %s.", theirs, ours));
}

int
hook_verify(struct hook *h, struct hook_verdict *ret)
{
	static step_fn *const steps[] = { check_headers, check_secret, check_proof, check_json,
		check_payload, check_config, check_repository };
	int r = 0;

	*ret = (struct hook_verdict) { .is_good = 0 };
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
		r = steps[i](h, ret);
	ret->is_good = r == 0;
	return r < 0 ? r : 0;
}
