/*
 * lib/ledger/check.h -- what holds in a ledger at any moment, and how a breach is mended
 * (spec project 19).
 */
#ifndef LIB_LEDGER_CHECK_H
#define LIB_LEDGER_CHECK_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;
struct store_problems;

/* Adds what is broken in the store as it is in this transaction: every rule of
 * schema/project.rules.def. */
int ledger_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret);
/* The same, and what SQLite says of the file, for the store in ${path}; for any thread. */
int ledger_inspect(const char *path, int64_t now_ms, struct store_problems *ret);

/* Text of the first broken invariant, in ${a}; NULL: none is. */
int ledger_check(struct store *s, struct arena *a, const char **ret_broken);

#endif
