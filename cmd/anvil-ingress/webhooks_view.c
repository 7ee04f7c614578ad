#include "cmd/anvil-ingress/webhooks_view.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"

const char *
webhooks_delivery_url(
    struct arena *a, const struct webhooks_place *where, enum provider provider)
{
	return arena_format(a, "%s/api/public/hooks/%s/%s/%s", where->public_url,
	    provider_name(provider), where->owner_slug, where->project_slug);
}

/* ---- summaries ---- */

static struct http_webhook_delivery
delivery_of(const struct delivery_row *d)
{
	const struct verified_payload *p = &d->payload;

	return (struct http_webhook_delivery) { .provider = p->provider,
		.delivery_id = p->delivery_id,
		.event_kind = p->event_kind,
		.event_name = p->event_name,
		.outcome = d->outcome,
		.reason = d->reason,
		.repository_url = p->repository_url,
		.ref = p->ref,
		.branch = p->branch,
		.commit_sha = p->commit_sha,
		.before_sha = p->before_sha,
		.run_id = d->run_id,
		.body_sha256 = p->body_sha256,
		.body_bytes = p->body_bytes,
		.received_at = d->received_at };
}

static struct http_webhook_refusal
refusal_of(const struct refusal_row *r)
{
	return (struct http_webhook_refusal) { .at = r->at,
		.reason = r->reason,
		.hint = r->hint,
		.event_name = r->event_name,
		.delivery_id = r->delivery_id,
		.has_body_bytes = r->has_body_bytes,
		.body_bytes = r->body_bytes,
		.client_address = r->client_address,
		.count = r->count };
}

static int
add_history(
    struct arena *a, const struct webhook_entry *entry, struct http_webhook_summary *ret)
{
	struct http_webhook_delivery *deliveries = arena_calloc(
	    a, entry->ndeliveries, sizeof(*deliveries));
	struct http_webhook_refusal *refusals = arena_calloc(
	    a, entry->nrefusals, sizeof(*refusals));

	if (deliveries == NULL || refusals == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < entry->ndeliveries; i++)
		deliveries[i] = delivery_of(&entry->deliveries[i]);
	for (size_t i = 0; i < entry->nrefusals; i++)
		refusals[i] = refusal_of(&entry->refusals[i]);
	ret->recent_deliveries = deliveries;
	ret->nrecent_deliveries = entry->ndeliveries;
	ret->recent_refusals = refusals;
	ret->nrecent_refusals = entry->nrefusals;
	return 0;
}

int
webhooks_summary(struct arena *a, const struct webhooks_place *where,
    const struct webhook_row *row, const struct webhook_entry *entry,
    struct http_webhook_summary *ret)
{
	struct http_instance_config_view *config = NULL;

	*ret = (struct http_webhook_summary) { .id = row->webhook_id,
		.project_id = where->project_id,
		.provider = row->provider,
		.enabled = row->enabled,
		.delivery_url = webhooks_delivery_url(a, where, row->provider),
		.created_at = row->created_at,
		.updated_at = row->updated_at };
	if (row->config != NULL) {
		config = arena_alloc(a, sizeof(*config));
		if (config == NULL)
			return E_NOMEM;
		config->instance_url = row->config->instance_url;
	}
	ret->config = config;
	if (ret->delivery_url == NULL)
		return E_NOMEM;
	return entry != NULL ? add_history(a, entry, ret) : 0;
}

/* ---- refusals ---- */

static const struct message {
	enum http_code code;
	const char *text;
} messages[] = {
	{ HTTP_CODE_WEBHOOK_NOT_FOUND, "This project has no webhook of that forge." },
	{ HTTP_CODE_WEBHOOK_CREATE_CONFLICT,
	    "Somebody else has just made this webhook; nothing was changed." },
	{ HTTP_CODE_INVALID_WEBHOOK_SECRET,
	    "This webhook exists already; its secret is changed by rotation alone." },
	{ HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG,
	    "The configuration does not fit this forge and the project's repository." },
	{ HTTP_CODE_ENCRYPTION_NOT_CONFIGURED,
	    "This server has no usable encryption key; its operator has to set one up." },
	{ HTTP_CODE_SHARD_UNAVAILABLE,
	    "The shard of the project does not answer; it is safe to repeat this." },
	{ HTTP_CODE_PROJECT_MOVING, "This project is being moved; try again." },
	{ HTTP_CODE_STORAGE_UNAVAILABLE,
	    "The server could not store this; whether it happened is not known, and it is "
	    "safe to repeat." },
	{ HTTP_CODE_OVERLOADED, "The server has too much to do; try again." },
};

const char *
webhooks_message(enum http_code code)
{
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (messages[i].code == code)
			return messages[i].text;
	return "Something went wrong on this server; its log tells more.";
}

struct fault {
	const char *path, *expected;
};

/* The path is NULL where no field of the request would put it right. */
static struct fault
fault_of(enum http_code code, const struct webhooks_asked *asked)
{
	if (code == HTTP_CODE_INVALID_WEBHOOK_SECRET)
		return (struct fault) { "secret", "absent" };
	if (code != HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG)
		return (struct fault) { NULL, NULL };
	if (asked->provider == PROVIDER_GITHUB)
		return (struct fault) { asked->instance_url != NULL ? "config" : NULL, "Null" };
	if (asked->instance_url != NULL)
		return (struct fault) { "config.instanceUrl", "InstanceUrl" };
	return (struct fault) { "config", "Object" };
}

int
webhooks_issues(struct buf *out, enum http_code code, const struct webhooks_asked *asked,
    const char *message)
{
	struct fault f = fault_of(code, asked);

	if (f.path == NULL)
		return 0;
	buf_printf(out,
	    "{\"issues\":[{\"path\":\"%s\",\"expected\":\"%s\",\"message\":", f.path,
	    f.expected);
	(void)json_text_string(out, message, strlen(message));
	buf_add_str(out, "}]}");
	return out->failed ? E_NOMEM : 0;
}
