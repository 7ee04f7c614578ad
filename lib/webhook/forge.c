#include "lib/webhook/forge.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"

#define BIT(member) (1u << WEBHOOK_MEMBER_##member)
#define REF_BITS    (BIT(REF) | BIT(BEFORE) | BIT(AFTER))

static const struct webhook_forge forges[PROVIDER_COUNT] = {
	[PROVIDER_GITHUB] = {
		.provider = PROVIDER_GITHUB,
		.proof = WEBHOOK_PROOF_HMAC,
		.proof_header = "X-Hub-Signature-256",
		.proof_prefix = "sha256=",
		.event_header = "X-GitHub-Event",
		.id_headers = { "X-GitHub-Delivery" },
		.forms = WEBHOOK_FORMS_BODY,
		.media_hint = "Choose the content type application/json or "
			      "application/x-www-form-urlencoded in the webhook's settings on "
			      "GitHub.",
		.instance = WEBHOOK_INSTANCE_NONE,
		.base = "https://github.com",
		.push = "push",
		.ping = "ping",
		.members = REF_BITS | BIT(REPOSITORY) | BIT(REPOSITORY_FULL_NAME),
		.urls = { WEBHOOK_MEMBER_REPOSITORY_FULL_NAME },
		.nurls = 1,
	},
	[PROVIDER_GITLAB] = {
		.provider = PROVIDER_GITLAB,
		.proof = WEBHOOK_PROOF_TOKEN,
		.proof_header = "X-Gitlab-Token",
		.proof_prefix = "",
		.event_header = "X-Gitlab-Event",
		.id_headers = { "Idempotency-Key", "X-Gitlab-Event-UUID" },
		.forms = WEBHOOK_FORMS_NONE,
		.media_hint = "The content type must be application/json, which GitLab always "
			      "sends.",
		.instance = WEBHOOK_INSTANCE_OPTIONAL,
		.base = "https://gitlab.com",
		.push = "Push Hook",
		.members = REF_BITS | BIT(CHECKOUT_SHA) | BIT(OBJECT_KIND) | BIT(EVENT_NAME) |
		    BIT(PROJECT) | BIT(PROJECT_GIT_HTTP_URL) | BIT(PROJECT_HTTP_URL) |
		    BIT(REPOSITORY) | BIT(REPOSITORY_GIT_HTTP_URL),
		.urls = { WEBHOOK_MEMBER_PROJECT_GIT_HTTP_URL, WEBHOOK_MEMBER_PROJECT_HTTP_URL,
		    WEBHOOK_MEMBER_REPOSITORY_GIT_HTTP_URL },
		.nurls = 3,
	},
	[PROVIDER_GITEA] = {
		.provider = PROVIDER_GITEA,
		.proof = WEBHOOK_PROOF_HMAC,
		.proof_header = "X-Gitea-Signature",
		.proof_prefix = "",
		.event_header = "X-Gitea-Event",
		.id_headers = { "X-Gitea-Delivery" },
		.forms = WEBHOOK_FORMS_PAYLOAD,
		.media_hint = "Choose the POST content type application/json or "
			      "application/x-www-form-urlencoded in the webhook's settings in "
			      "Gitea.",
		.instance = WEBHOOK_INSTANCE_REQUIRED,
		.push = "push",
		.ping = "ping",
		.members = REF_BITS | BIT(REPOSITORY) | BIT(REPOSITORY_CLONE_URL),
		.urls = { WEBHOOK_MEMBER_REPOSITORY_CLONE_URL },
		.nurls = 1,
	},
};

const struct webhook_forge *
webhook_forge_of(enum provider provider)
{
	must((unsigned)provider < PROVIDER_COUNT);
	return &forges[provider];
}

static struct str_view
trimmed(const char *text, size_t n)
{
	while (n > 0 && ascii_is_space(text[0])) {
		text++;
		n--;
	}
	while (n > 0 && ascii_is_space(text[n - 1]))
		n--;
	return (struct str_view) { text, n };
}

/* 1 when ${v} is ${word}, which is in lower case, in any case. */
static int
is_word(struct str_view v, const char *word)
{
	if (v.n != strlen(word))
		return 0;
	for (size_t i = 0; i < v.n; i++)
		if (ascii_lower(v.p[i]) != word[i])
			return 0;
	return 1;
}

enum webhook_media
webhook_media_of(const struct webhook_forge *f, const char *content_type)
{
	struct str_view type;

	if (content_type == NULL)
		return WEBHOOK_MEDIA_UNSUPPORTED;
	type = trimmed(content_type, strcspn(content_type, ";"));
	if (is_word(type, "application/json"))
		return WEBHOOK_MEDIA_JSON;
	if (f->forms != WEBHOOK_FORMS_NONE &&
	    is_word(type, "application/x-www-form-urlencoded"))
		return WEBHOOK_MEDIA_FORM;
	return WEBHOOK_MEDIA_UNSUPPORTED;
}

/* ---- headers ---- */

static struct str_view
claimed(webhook_header_fn *header, void *arg, const char *name)
{
	const char *text = header(arg, name);
	struct str_view v = { NULL, 0 };

	if (text != NULL)
		v = trimmed(text, strlen(text));
	return v.n > 0 ? v : (struct str_view) { NULL, 0 };
}

static int
is_event_name(struct str_view v)
{
	return v.n >= 1 && v.n <= WEBHOOK_EVENT_NAME_MAX && utf8_valid(v.p, v.n) &&
	    !utf8_has_control(v.p, v.n);
}

static int
is_printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

static int
is_delivery_id(struct str_view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!is_printable(v.p[i]))
			return 0;
	return v.n >= 1 && v.n <= WEBHOOK_ID_MAX;
}

void
webhook_claim_read(const struct webhook_forge *f, webhook_header_fn *header, void *arg,
    struct webhook_claim *ret)
{
	const char *id_header = f->id_headers[0];

	*ret = (struct webhook_claim) { .bad_header = NULL };
	ret->proof = claimed(header, arg, f->proof_header);
	ret->event_name = claimed(header, arg, f->event_header);
	ret->delivery_id = claimed(header, arg, id_header);
	if (ret->delivery_id.p == NULL && f->id_headers[1] != NULL) {
		ret->delivery_id = claimed(header, arg, f->id_headers[1]);
		if (ret->delivery_id.p != NULL)
			id_header = f->id_headers[1];
	}
	if (ret->proof.p == NULL)
		ret->bad_header = f->proof_header;
	else if (!is_event_name(ret->event_name))
		ret->bad_header = f->event_header;
	else if (!is_delivery_id(ret->delivery_id))
		ret->bad_header = id_header;
}

int
webhook_proof_digest(
    const struct webhook_forge *f, struct str_view proof, uint8_t out[WEBHOOK_DIGEST_BYTES])
{
	size_t skip = strlen(f->proof_prefix);

	must(f->proof == WEBHOOK_PROOF_HMAC);
	if (proof.n != skip + 2 * (size_t)WEBHOOK_DIGEST_BYTES ||
	    memcmp(proof.p, f->proof_prefix, skip) != 0)
		return E_INVAL;
	return hex_decode(proof.p + skip, proof.n - skip, out, WEBHOOK_DIGEST_BYTES);
}

const char *
webhook_claim_text(struct str_view v, char out[WEBHOOK_CLAIM_SIZE])
{
	size_t len = 0;

	if (v.p == NULL)
		return NULL;
	for (size_t i = 0; i < v.n; i++) {
		size_t need = is_printable(v.p[i]) ? 1 : 4;

		if (len + need >= WEBHOOK_CLAIM_SIZE)
			break;
		if (need == 1)
			out[len] = v.p[i];
		else
			(void)snprintf(out + len, 5, "\\x%02x", (unsigned char)v.p[i]);
		len += need;
	}
	out[len] = '\0';
	return out;
}
