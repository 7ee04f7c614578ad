/*
 * lib/ledger/check.h -- what holds in a ledger at any moment, and how a breach is mended
 * (spec project 19).
 */
#ifndef LIB_LEDGER_CHECK_H
#define LIB_LEDGER_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/project.h"
#include "lib/ledger/run.h"

struct arena;
struct store;
struct store_problems;

/* Adds what is broken in the store as it is in this transaction: every rule of
 * schema/project.rules.def. */
int ledger_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret);
/* The same, and what SQLite says of the file, for the store in ${path}; for any thread. */
int ledger_inspect(const char *path, int64_t now_ms, struct store_problems *ret);

/* A project as it is decided about, in whatever phase; config is empty (project_id NULL) for one
 * that has moved away.  Texts live in the arena. */
struct ledger_standing {
	const char *project_id, *phase;
	int64_t move_to; /* -1: nowhere */
	int index_current;
	int64_t index_rev;
	struct ledger_project config; /* without token and state */
};
/* By id, after ${after} ("" = from the first). */
int ledger_standings(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_standing **ret, size_t *ret_n);
int ledger_runs_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_run **ret, size_t *ret_n);

/* Text of the first broken invariant, in ${a}; NULL: none is. */
int ledger_check(struct store *s, struct arena *a, const char **ret_broken);

#endif
