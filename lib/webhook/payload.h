/*
 * lib/webhook/payload.h -- from a scanned body to the verified payload (spec webhooks 3, 4).
 * Included by webhook.h.
 */
#ifndef LIB_WEBHOOK_PAYLOAD_H
#define LIB_WEBHOOK_PAYLOAD_H

#include <stdint.h>

#include "lib/webhook/forge.h"
#include "lib/webhook/scan.h"

/* What the payload is made of besides the body.  All is borrowed. */
struct webhook_facts {
	const struct webhook_forge *forge;
	const struct webhook_claim *claim; /* bad_header is NULL.                         */
	const char *project_url;           /* Normalised, as stored.                      */
	const char *body_sha256;           /* 64 lower-case digits, of the raw body.      */
	int64_t body_bytes;
};

/*
 * Step 13a: ${s} has ended well.  0 with *ret, whose texts are the arena's of ${c}; E_PARAMS:
 * invalid_request, or E_INVAL: invalid_repo_url, both with the list in c->issues, whose first
 * row has that very code; or E_NOMEM.  c->rules says which URLs are allowed.
 */
int webhook_payload_make(struct codec *c, const struct webhook_scan *s,
    const struct webhook_facts *facts, struct verified_payload *ret);

#endif
