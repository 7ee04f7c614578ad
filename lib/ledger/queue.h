/*
 * lib/ledger/queue.h -- into the queue, out of it, and to its head (spec project 5, 8, 10).
 */
#ifndef LIB_LEDGER_QUEUE_H
#define LIB_LEDGER_QUEUE_H

#include <stddef.h>

#include "lib/base/id.h"
#include "lib/ledger/run.h"

#define LEDGER_QUEUE_MAX 20 /* queued runs of a project; the active one does not count */

struct ledger_accept {
	const char *project_id, *run_id;
	const char *branch;                 /* NULL: the project's default branch     */
	const char *user_id;                /* of a manual run                        */
	const char *provider, *delivery_id; /* of a webhook's                */
	const char *commit_sha;             /* pinned by the event; NULL: the branch's */
};

enum ledger_accepted {
	LEDGER_ACCEPTED, /* also when the same run was accepted before */
	LEDGER_QUEUE_FULL,
	LEDGER_ACCEPT_CONFLICT, /* the id stands for another run */
};

/* ${ret}: the row, when accepted.  E_NOENT: no live project of that id here. */
int ledger_accept_run(struct store *s, struct arena *a, const struct ledger_accept *q,
    int64_t now_ms, enum ledger_accepted *ret_kind, struct ledger_run *ret);

/* A run that has just become the head and has to be dispatched; "" for none. */
struct ledger_promoted {
	char run_id[ID_SIZE];
};

/* ${ret} is the row after the effect; *ret_push: its process has to be told.
 * E_NOENT: no such run here. */
int ledger_cancel_run(const struct ledger_at *at, const char *run_id, const char *by,
    struct ledger_run *ret, int *ret_push, struct ledger_promoted *ret_promoted);

/* Makes the first of the queue executable when the project has no head. */
int ledger_promote(struct store *s, struct arena *a, const char *project_id, int64_t now_ms,
    struct ledger_promoted *ret);

/* Queued runs in the order in which they will run. */
int ledger_queue_list(struct store *s, struct arena *a, const char *project_id,
    struct ledger_run **ret, size_t *ret_n);

#endif
