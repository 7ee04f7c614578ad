/*
 * cmd/anvil-ingress/create.h -- makes a project: row, shard, confirmation (project 14).
 *
 * The row of the index takes the slug first; when the shard refuses, it is taken back.  When
 * nobody knows what the shard has done, settle.c finds out later.
 */
#ifndef CMD_ANVIL_INGRESS_CREATE_H
#define CMD_ANVIL_INGRESS_CREATE_H

#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "gen/project.h"
#include "lib/base/id.h"

enum create_verdict {
	CREATE_CREATED,
	CREATE_SLUG_TAKEN,
	CREATE_FAILED, /* `why` says it. */
};

struct create {
	/* Filled by the owner; texts stay until `done`. */
	struct ingress *in;
	const char *owner_user_id, *owner_slug, *slug, *name, *repo_url, *default_branch,
	    *config_path;
	const char *repo_token; /* In the clear; NULL: none. */
	int badge_public;
	const char *request_id;
	/* Runs once, after the commit that confirms, and may run from inside create_start();
	 * what ${c} holds of its own is gone then, but for `project`. */
	void (*done)(struct create *c, enum create_verdict v);
	void *arg;
	/* Results. */
	struct index_project project;
	enum http_code why;
	/* Private. */
	char id[ID_SIZE];
	struct vault_sealed sealed;
	struct shard_call call;
	struct rebuild_wait wait;
};

void create_start(struct create *c);

#endif
