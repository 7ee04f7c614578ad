/*
 * lib/index/check.h -- what holds in ingress.db at any moment.
 *
 * Whether the index says what the ledgers say, only they can tell.
 */
#ifndef LIB_INDEX_CHECK_H
#define LIB_INDEX_CHECK_H

#include <stdint.h>

struct store;
struct store_problems;

/* Adds what is broken in the store as it is in this transaction: every rule of
 * schema/ingress.rules.def. */
int index_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret);
/* The same, and what SQLite says of the file, for the store in ${path}; for any thread. */
int index_inspect(const char *path, int64_t now_ms, struct store_problems *ret);

/* Copies that are wrong, and what belongs to nobody; what only the ledgers have comes from them
 * again.  *ret_mended: something was. */
int index_mend(struct store *s, const char *code, const char *subject, int *ret_mended);
/* The copy of a run goes. */
int index_forget_run(struct store *s, const char *run_id);
/* That of a project stays, and the next word of its shard replaces all of it. */
int index_doubt_project(struct store *s, const char *project_id);
/* A run that no ledger knows any more has ended as failed; its copy is the last that is known
 * of it, and stays.  Nothing when it had ended. */
int index_end_lost_run(struct store *s, const char *run_id, int64_t now_ms);

#endif
