/*
 * lib/store/check.h -- what is wrong with a store, each thing named by a stable code.
 *
 * Rules are SQL that selects what breaks them, so that a store says by itself in which rows.
 * Nothing here changes a store.
 */
#ifndef LIB_STORE_CHECK_H
#define LIB_STORE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"

struct arena;
struct store;
struct store_desc;

#define STORE_RULE_ROWS    50  /* told of one rule; the others are counted   */
#define STORE_PROBLEMS_MAX 500 /* told of one store; the others are counted  */

struct store_problem {
	const char *code;    /* "no_head"; stable, for programs                     */
	const char *subject; /* what breaks it: an id, a table; never NULL           */
	const char *text;    /* for people, without the subject                     */
	int mendable;        /* its owner knows a safe way                          */
	int mended;          /* ... and has gone it                                 */
};

/* Texts and rows live in the arena.  Zeroed but for it. */
struct store_problems {
	struct arena *arena;
	struct store_problem *rows;
	size_t n, cap;
	size_t left_out; /* more than are told */
};

/* 0 or E_NOMEM. */
int store_problem_add(struct store_problems *p, const struct store_problem *what);
/* The same with a text to be made; ${code} is borrowed, ${subject} copied. */
int store_problem_say(struct store_problems *p, const char *code, const char *subject,
    int mendable, const char *fmt, ...) PRINTF_LIKE(5, 6);

struct store_rule {
	const char *code;
	int mendable;
	const char *text; /* what is wrong with the subject */
	/* Selects the subjects of what is broken, and as a second column, when there is one,
	 * what is to be said after the text.  `:now` is the wall clock. */
	const char *sql;
};

/* 0, or an error of the reading: E_CORRUPT, E_DEADLINE, E_NOMEM, E_STORAGE. */
int store_check_rules(struct store *s, const struct store_rule *rules, size_t nrules,
    int64_t now_ms, struct store_problems *ret);

/* Schema no newer than ours, integrity, foreign keys; a row that breaks a CHECK is named by its
 * table alone, hence not said when ${ret} has problems of rows already.  What cannot be read
 * is a problem, not an error.  0 or E_NOMEM. */
int store_check_whole(struct store *s, struct store_problems *ret);

/* Both, for the store in ${path}, by a connection of its own and as of one moment; for any thread
 * of the process that holds its lock.  ${rules} NULL: there are none.  A file that is not there
 * has nothing wrong, and one that cannot be read has one problem.  0 or E_NOMEM. */
typedef int
store_rules_fn(void *arg, struct store *s, int64_t now_ms, struct store_problems *ret);
int store_inspect(const struct store_desc *d, const char *path, store_rules_fn *rules,
    void *arg, int64_t now_ms, struct store_problems *ret);

#endif
