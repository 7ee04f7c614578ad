/*
 * lib/ledger/webhook.h -- webhooks of a project, their sealed secrets, and attempts that were
 * refused (spec webhooks 9-11).
 *
 * A webhook's version is its updated_at: what was verified against an older one is stale.
 */
#ifndef LIB_LEDGER_WEBHOOK_H
#define LIB_LEDGER_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/project.h"

struct ledger_webhook {
	const char *webhook_id, *project_id, *provider;
	int enabled;
	const char *instance_url; /* NULL: none is configured */
	struct ledger_sealed secret;
	int64_t created_at, updated_at;
};

/* E_NOENT: the project has none of that provider. */
int ledger_webhook_get(struct store *s, struct arena *a, const char *project_id,
    const char *provider, struct ledger_webhook *ret);
/* By name of provider. */
int ledger_webhook_list(struct store *s, struct arena *a, const char *project_id,
    struct ledger_webhook **ret, size_t *ret_n);

/* Both times become ${now_ms}.  0 also when it was made by an earlier try, which its id and
 * ciphertext tell; E_EXISTS: there is another one.  The project exists. */
int ledger_webhook_create(
    struct store *s, struct arena *a, struct ledger_webhook *w, int64_t now_ms);
/* Writes whether it is enabled, configuration and secret; its version moves, also when nothing
 * differs. */
int ledger_webhook_save(struct store *s, struct ledger_webhook *w, int64_t now_ms);
/* With secret and refusals; deliveries stay.  E_NOENT. */
int ledger_webhook_remove(
    struct store *s, const char *project_id, const char *provider, int64_t now_ms);

/* ---- refused attempts ---- */

#define LEDGER_REFUSALS_KEPT   20 /* of each webhook, the newest             */
#define LEDGER_REFUSALS_MINUTE 10 /* of a webhook that are stored in a minute */

struct ledger_refusal {
	int64_t at; /* of the newest */
	const char *reason;
	const char *hint, *event_name, *delivery_id; /* may be NULL */
	int has_body_bytes;
	int64_t body_bytes;
	const char *client_address;
	int64_t count;
};

/* Equal reasons from one address within a minute become one row with what the newest says;
 * what is over the limit of the minute is dropped. */
int ledger_refusal_add(struct store *s, const char *webhook_id, const struct ledger_refusal *f);
/* Newest first. */
int ledger_refusals(struct store *s, struct arena *a, const char *webhook_id,
    struct ledger_refusal **ret, size_t *ret_n);

#endif
