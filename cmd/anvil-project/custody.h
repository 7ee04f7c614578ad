/*
 * cmd/anvil-project/custody.h -- the webhooks of one project, as the handlers of webhook.* and
 * project.update need them.
 */
#ifndef CMD_ANVIL_PROJECT_CUSTODY_H
#define CMD_ANVIL_PROJECT_CUSTODY_H

#include <stddef.h>

#include "gen/project.h"
#include "lib/actor/actor.h"
#include "lib/ledger/ledger.h"

struct custody {
	struct ledger_project project;
	struct ledger_webhook *webhooks; /* By name of provider. */
	size_t nwebhooks;
};

/* E_NOENT: no project of that id here. */
int custody_read(struct turn *t, const char *project_id, struct custody *ret);
/* The same for a live or frozen project; E_NOENT for any other. */
int custody_open(struct turn *t, const char *project_id, struct custody *ret);
/* Borrowed from ${c}; NULL: there is none. */
struct ledger_webhook *custody_find(const struct custody *c, const char *provider);

/* Why a webhook cannot be configured so for a repository, and what would be right: a text in the
 * arena of the turn.  *ret NULL: it can.  0 or E_NOMEM. */
int custody_judge(struct turn *t, enum provider provider, const char *instance_url,
    const char *repo_url, const char **ret);
/* Names of the providers whose webhooks, disabled ones included, do not fit ${repo_url}. */
int custody_misfits(struct turn *t, const struct custody *c, const char *repo_url,
    const char *const **ret, size_t *ret_n);

/* Rows of the contract, newest first. */
struct custody_page {
	const struct delivery_row *rows;
	size_t n;
	const char *next; /* NULL: they are all. */
};
/* E_INVAL: the cursor is none of an earlier page. */
int custody_deliveries(
    struct turn *t, const struct ledger_delivery_query *q, struct custody_page *ret);

#endif
