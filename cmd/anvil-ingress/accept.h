/*
 * cmd/anvil-ingress/accept.h -- has a shard accept a manual run (project 5).
 *
 * The run's id is made here and stays the same over all tries, so that an answer that got lost
 * makes no second run.
 */
#ifndef CMD_ANVIL_INGRESS_ACCEPT_H
#define CMD_ANVIL_INGRESS_ACCEPT_H

#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/id.h"

enum accept_verdict {
	ACCEPT_ACCEPTED,
	ACCEPT_QUEUE_FULL,
	ACCEPT_NOT_FOUND,
	ACCEPT_FAILED, /* `why` says it. */
};

/* Lives until `done`, which runs once and may run from inside accept_start(). */
struct accept {
	/* Filled by the owner; texts stay until `done`. */
	struct ingress *in;
	const char *project_id, *user_id;
	const char *branch; /* NULL: the default branch. */
	int64_t shard;
	const char *request_id;
	/* ${run}: of ACCEPT_ACCEPTED, borrowed until it returns. */
	void (*done)(struct accept *a, enum accept_verdict v, const struct run_row *run);
	void *arg;
	/* Results. */
	char run_id[ID_SIZE];
	enum http_code why;
	/* Private. */
	struct shard_call call;
};

void accept_start(struct accept *a);

#endif
