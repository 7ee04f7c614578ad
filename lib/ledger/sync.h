/*
 * lib/ledger/sync.h -- what the index does not know yet (spec project 4, 13).
 */
#ifndef LIB_LEDGER_SYNC_H
#define LIB_LEDGER_SYNC_H

#include <stddef.h>

#include "lib/ledger/project.h"
#include "lib/ledger/run.h"

#define LEDGER_SYNC_ROWS 100 /* of one index.upsertRuns */

/* Rows that are due, the longest waiting first. */
int ledger_sync_due(
    struct store *s, struct arena *a, int64_t now_ms, struct ledger_run **ret, size_t *ret_n);
int ledger_project_sync_due(struct store *s, struct arena *a, int64_t now_ms, size_t limit,
    struct ledger_project **ret, size_t *ret_n);

/* The index has the row as of ${rev}; a row that has changed meanwhile stays due.
 * *ret_done: it is terminal, and that is known now. */
int ledger_sync_applied(struct store *s, struct arena *a, const char *run_id, int64_t rev,
    int64_t now_ms, int *ret_done);
/* It could not take it: one step on the row's ladder.  ${unknown_project}: its project is
 * sent again as well.  *ret_attempt: failures so far. */
int ledger_sync_failed(struct store *s, struct arena *a, const char *run_id,
    int unknown_project, int64_t now_ms, int64_t *ret_attempt);
/* It cannot be told to anybody as it stands: the last step of the ladder at once, without a look
 * at the rest of the row. */
int ledger_sync_defer(struct store *s, const char *run_id, int64_t now_ms);
int ledger_project_synced(struct store *s, const char *project_id, int64_t rev);
int ledger_project_sync_failed(struct store *s, const char *project_id, int64_t now_ms);

#endif
