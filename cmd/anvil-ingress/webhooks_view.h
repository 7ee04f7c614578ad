/*
 * cmd/anvil-ingress/webhooks_view.h -- how webhooks look to clients: summaries, the URL that a
 * forge delivers to, refusals in words.  No secret passes through here.
 */
#ifndef CMD_ANVIL_INGRESS_WEBHOOKS_VIEW_H
#define CMD_ANVIL_INGRESS_WEBHOOKS_VIEW_H

#include "gen/http.h"
#include "gen/project.h"

/* Of which webhook something is told. */
struct webhooks_place {
	const char *public_url; /* Without a slash at its end. */
	const char *project_id, *owner_slug, *project_slug;
};

/* In the arena; NULL: out of memory. */
const char *webhooks_delivery_url(
    struct arena *a, const struct webhooks_place *where, enum provider provider);

/* ${entry}: its newest deliveries, NULL: none are known.  Texts are borrowed, lists are the
 * arena's.  0 or E_NOMEM. */
int webhooks_summary(struct arena *a, const struct webhooks_place *where,
    const struct webhook_row *row, const struct webhook_entry *entry,
    struct http_webhook_summary *ret);

/* What people read; never NULL. */
const char *webhooks_message(enum http_code code);

/* What of a put led to its refusal. */
struct webhooks_asked {
	enum provider provider;
	const char *instance_url; /* NULL: none was given. */
};

/* Adds `{"issues":[...]}` with the one field that is at fault; nothing when it is none.
 * 0 or E_NOMEM. */
int webhooks_issues(struct buf *out, enum http_code code, const struct webhooks_asked *asked,
    const char *message);

#endif
