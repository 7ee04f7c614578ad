/*
 * lib/ledger/sealed.h -- every sealed secret of a shard, for the rotation of keys (spec webhooks
 * 12).
 */
#ifndef LIB_LEDGER_SEALED_H
#define LIB_LEDGER_SEALED_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/project.h"
#include "lib/ledger/run.h"

#define LEDGER_SEALED_TOKENS   "project_config"
#define LEDGER_SEALED_WEBHOOKS "project_webhooks"

/* A secret with the place that it is bound to. */
struct ledger_sealed_row {
	const char *project_id;
	const char *table, *row_id, *column;
	struct ledger_sealed sealed;
};

/* Those whose key is older than ${below_version}, after ${cursor} (NULL: from the first).
 * *ret_next: the cursor of the page after this one, NULL when there is none; with keys being
 * replaced meanwhile no secret is left out.  E_INVAL: it is no cursor. */
int ledger_sealed_list(const struct ledger_at *at, int64_t below_version, const char *cursor,
    size_t limit, struct ledger_sealed_row **ret, size_t *ret_n, const char **ret_next);

/* The same secret under another key; no version and no time moves.  *ret_project: of which
 * project, in ${a}; NULL: what stands there is neither ${expect} (any more) nor what is to be
 * put there.  E_INVAL: no such table or column. */
int ledger_sealed_replace(struct store *s, struct arena *a, const struct ledger_sealed_row *to,
    const char *expect, const char **ret_project);

#endif
