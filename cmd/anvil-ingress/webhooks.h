/*
 * cmd/anvil-ingress/webhooks.h -- management of webhooks, for clients and for anvilctl alike
 * (http-api 10, webhooks 11).
 *
 * Decisions are the shard's.  What is done here needs the keys: a secret is made or taken,
 * sealed under the id that is minted for it, and told once.  In the clear it lives in this
 * work alone, from its making to the end of `done`.
 */
#ifndef CMD_ANVIL_INGRESS_WEBHOOKS_H
#define CMD_ANVIL_INGRESS_WEBHOOKS_H

#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/id.h"

enum webhooks_verdict {
	WEBHOOKS_CREATED,
	WEBHOOKS_UPDATED,
	WEBHOOKS_ROTATED,
	WEBHOOKS_DELETED,
	WEBHOOKS_LISTED,
	WEBHOOKS_NO_PROJECT, /* Its shard does not know it.    */
	WEBHOOKS_REFUSED,    /* `why` and `message` say it.    */
};

/* One order; lives until `done`. */
struct webhooks_work {
	/* Filled by the owner; texts stay until `done`. */
	struct ingress *in;
	struct arena *arena; /* What is answered lives there. */
	const char *project_id, *user_id, *request_id;
	int64_t shard;
	enum provider provider; /* Of all but a list. */
	/* Of webhooks_put(). */
	int enabled;
	int has_config;           /* 0: what is stored stays.             */
	const char *instance_url; /* NULL: that of the public forge.      */
	const char *secret;       /* In the clear; NULL: one is made.     */
	int with_history;         /* `entry` is wanted as well.           */
	/* Runs once, and may run from inside the function that has begun. */
	void (*done)(struct webhooks_work *w, enum webhooks_verdict v);
	void *arg;
	/* Results, borrowed until `done` returns. */
	struct webhook_row webhook;        /* Created, updated.                              */
	const struct webhook_entry *entry; /* Its newest deliveries; NULL: nobody could tell. */
	const struct webhook_list_list *list;
	const char *told;    /* The secret that was made; NULL: none was.     */
	enum http_code why;  /* Refused.                                      */
	const char *message; /* For people; NULL: the usual one of that code. */
	/* Private. */
	enum webhooks_verdict verdict;
	void (*found)(struct webhooks_work *w, const struct webhook_list_list *list);
	int lists_all;
	int creating;   /* There is none yet. */
	int unanswered; /* A deletion may have had its effect. */
	char id[ID_SIZE];
	char made[VAULT_TOKEN_SIZE];
	struct vault_sealed sealed;
	struct shard_call call;
};

/* Makes the webhook, or changes it. */
void webhooks_put(struct webhooks_work *w);
void webhooks_rotate(struct webhooks_work *w);
void webhooks_delete(struct webhooks_work *w);
/* All webhooks of the project. */
void webhooks_list(struct webhooks_work *w);

#endif
