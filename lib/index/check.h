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

#endif
