/*
 * test/support/webhook_rig.h -- webhooks, deliveries and refused attempts by number, in the ledger
 * of a rig.
 */
#ifndef TEST_SUPPORT_WEBHOOK_RIG_H
#define TEST_SUPPORT_WEBHOOK_RIG_H

#include "test/support/ledger_rig.h"

#define HOUR_MS INT64_C(3600000)

const char *rig_whk(const struct ledger_rig *rig, int n);
/* Digest of body ${n}. */
const char *rig_sha256(const struct ledger_rig *rig, int n);

/* Webhook ${n} of the project, enabled, with a secret of its own. */
struct ledger_webhook
rig_webhook(const struct ledger_rig *rig, int project, const char *provider, int n);
/* The project's, as it is stored. */
struct ledger_webhook
rig_stored(const struct ledger_rig *rig, int project, const char *provider);

/* Delivery ${n} with body ${n}, verified against the webhook as it is there: a push that would be
 * run ${run}. */
struct ledger_offer
rig_push(const struct ledger_rig *rig, const struct ledger_webhook *w, int n, int run);
/* The same, and starts no run. */
struct ledger_offer
rig_ping(const struct ledger_rig *rig, const struct ledger_webhook *w, int n);
/* Offers it; any error ends the test. */
struct ledger_recorded rig_record(const struct ledger_rig *rig, const struct ledger_offer *o);

/* 1 when the SQL condition is true. */
int rig_holds(const struct ledger_rig *rig, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* 1 when there are so many rows of deliveries, kept still or not. */
int rig_has_deliveries(const struct ledger_rig *rig, int n);

#endif
