/*
 * lib/webhook/decide.h -- whose repository it is, and what a delivery comes to (spec webhooks
 * 5, 6).  Included by webhook.h.
 */
#ifndef LIB_WEBHOOK_DECIDE_H
#define LIB_WEBHOOK_DECIDE_H

#include "gen/types.h"
#include "lib/base/arena.h"

#define WEBHOOK_REASON_MAX 300 /* Bytes. */

/* Step 13c, for two normalised URLs: 1 when scheme, host and port are equal, and the path but
 * for the case of ASCII letters. */
int webhook_same_repository(const char *a, const char *b);

/* Step 13b, and the rule for webhooks of a project whose URL changes: 1 when ${repo_url} is
 * under the forge's base or the configured instance.  ${instance_url} is normalised; NULL:
 * none is configured, which gitea does not allow and github demands. */
int webhook_config_fits(enum provider provider, const char *instance_url, const char *repo_url);

/* Section 6.  0 with *ret, whose reason is memory of ${arena}; or E_NOMEM. */
int webhook_classify(struct arena *arena, const struct verified_payload *v,
    const char *default_branch, struct delivery_candidate *ret);

#endif
