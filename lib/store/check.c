#include "lib/store/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

#define TEXT_SIZE 512

int
store_problem_add(struct store_problems *p, const struct store_problem *what)
{
	void *rows = p->rows;
	int r;

	if (p->n >= STORE_PROBLEMS_MAX) {
		p->left_out++;
		return 0;
	}
	r = arena_list_grow(p->arena, &rows, p->n, &p->cap, sizeof(*p->rows));
	if (r < 0)
		return r;
	p->rows = rows;
	p->rows[p->n++] = *what;
	return 0;
}

int
store_problem_say(struct store_problems *p, const char *code, const char *subject, int mendable,
    const char *fmt, ...)
{
	struct store_problem what = { .code = code, .mendable = mendable };
	char text[TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	what.subject = arena_strdup(p->arena, subject);
	what.text = arena_strdup(p->arena, text);
	if (what.subject == NULL || what.text == NULL)
		return E_NOMEM;
	return store_problem_add(p, &what);
}

/* ---- rules ---- */

static int
say_row(sqlite3_stmt *st, const struct store_rule *rule, struct store_problems *ret)
{
	const char *subject = (const char *)sqlite3_column_text(st, 0);
	const char *more = sqlite3_column_count(st) > 1
	    ? (const char *)sqlite3_column_text(st, 1)
	    : NULL;

	return store_problem_say(ret, rule->code, subject != NULL ? subject : "?",
	    rule->mendable, "%s%s%s", rule->text, more != NULL ? " " : "",
	    more != NULL ? more : "");
}

static int
check_rule(
    struct store *s, const struct store_rule *rule, int64_t now_ms, struct store_problems *ret)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, rule->sql, -1, &st, NULL), r = 0;
	int now = st != NULL ? sqlite3_bind_parameter_index(st, ":now") : 0;
	size_t n = 0;

	if (rc == SQLITE_OK && now != 0)
		rc = sqlite3_bind_int64(st, now, now_ms);
	while (rc == SQLITE_OK && r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		if (n++ < STORE_RULE_ROWS)
			r = say_row(st, rule, ret);
		else
			ret->left_out++;
	}
	if (r == 0)
		r = store_error_of(s->db, rc);
	(void)sqlite3_finalize(st);
	return r;
}

int
store_check_rules(struct store *s, const struct store_rule *rules, size_t nrules,
    int64_t now_ms, struct store_problems *ret)
{
	int r = 0;

	OBJ_CHECK(s, STORE_MAGIC);
	s->until_us = INT64_MAX;
	for (size_t i = 0; i < nrules && r == 0; i++)
		r = check_rule(s, &rules[i], now_ms, ret);
	return r;
}

/* ---- the file ---- */

/* Rows that break a CHECK are named better by the rules. */
static int
is_of_row(const char *text)
{
	static const char *const of_rows[] = { "CHECK constraint failed", "NULL value in" };

	for (size_t i = 0; i < ARRAY_LEN(of_rows); i++)
		if (strncmp(text, of_rows[i], strlen(of_rows[i])) == 0)
			return 1;
	return 0;
}

static int
say_integrity(sqlite3_stmt *st, int known, struct store_problems *ret)
{
	const char *text = (const char *)sqlite3_column_text(st, 0);

	if (text == NULL || strcmp(text, "ok") == 0 || (known && is_of_row(text)))
		return 0;
	return store_problem_say(ret, "integrity", "store", 0, "%s", text);
}

static int
say_foreign_key(sqlite3_stmt *st, int known, struct store_problems *ret)
{
	const char *table = (const char *)sqlite3_column_text(st, 0);
	const char *parent = (const char *)sqlite3_column_text(st, 2);

	(void)known;
	return store_problem_say(ret, "foreign_key", table != NULL ? table : "store", 0,
	    "has a row that belongs to none of %s", parent != NULL ? parent : "?");
}

static int
check_pragma(struct store *s, const char *sql,
    int (*say)(sqlite3_stmt *st, int known, struct store_problems *ret),
    struct store_problems *ret)
{
	int known = ret->n > 0, rc, r = 0;
	sqlite3_stmt *st = NULL;

	rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	while (rc == SQLITE_OK && r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		r = say(st, known, ret);
	}
	if (r == 0)
		r = store_error_of(s->db, rc);
	(void)sqlite3_finalize(st);
	return r;
}

static int
say_unreadable(const struct store *s, int err, struct store_problems *ret)
{
	const char *more = store_error(s);

	return store_problem_say(ret, "unreadable", "store", 0, "%s%s%s", err_text(err),
	    *more != '\0' ? ": " : "", more);
}

int
store_check_whole(struct store *s, struct store_problems *ret)
{
	int64_t have, want = (int64_t)*s->desc->nmigrations;
	int r;

	OBJ_CHECK(s, STORE_MAGIC);
	s->until_us = INT64_MAX;
	have = store_version(s);
	/* An older one is brought up to date by whoever opens it. */
	if (have > want) {
		r = store_problem_say(ret, "schema", "store", 0,
		    "has schema %lld, and this program knows %lld: it was written by a newer anvil",
		    (long long)have, (long long)want);
		if (r < 0)
			return r;
	}
	r = check_pragma(s, "PRAGMA integrity_check(50)", say_integrity, ret);
	if (r == 0)
		r = check_pragma(s, "PRAGMA foreign_key_check", say_foreign_key, ret);
	if (r < 0 && r != E_NOMEM)
		r = say_unreadable(s, r, ret);
	return r;
}

/* ---- both ---- */

/* What only reads leaves its log behind when it is the last to close, and is not told of CHECKs;
 * so this one may write, and does not.  Nor does it touch what a newer version has written. */
static int
open_checker(const struct store_desc *d, const char *path, struct store **ret)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP_FREE char *why = NULL;
	int r = store_open_checker(d, path, &s);

	if (r == 0)
		r = store_look(s, &why);
	if (r == 0)
		r = store_set_up(s->db);
	if (r == 0 || r == E_NEWER)
		r = store_exec(s, "PRAGMA query_only = ON");
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

/* A schema that is older or newer has other tables than the rules speak of. */
static int
inspect_open(struct store *s, store_rules_fn *rules, void *arg, int64_t now_ms,
    struct store_problems *ret)
{
	int r = store_do(s, WORD_BEGIN);

	if (r == 0 && rules != NULL && store_version(s) == (int64_t)*s->desc->nmigrations)
		r = rules(arg, s, now_ms, ret);
	if (r < 0 && r != E_NOMEM)
		r = say_unreadable(s, r, ret);
	if (r == 0)
		r = store_check_whole(s, ret);
	store_rollback(s);
	return r;
}

int
store_inspect(const struct store_desc *d, const char *path, store_rules_fn *rules, void *arg,
    int64_t now_ms, struct store_problems *ret)
{
	CLEANUP(store_closep) struct store *s = NULL;
	int r;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	/* SQLite would give the log that it makes the same mode, and leave it. */
	if (access(path, W_OK) < 0)
		return store_problem_say(
		    ret, "unreadable", "store", 0, "cannot be written: %s", strerror(errno));
	r = open_checker(d, path, &s);
	if (r < 0 && r != E_NOMEM)
		return store_problem_say(ret, "unreadable", "store", 0, "%s", err_text(r));
	if (r < 0)
		return r;
	must(s != NULL);
	return inspect_open(s, rules, arg, now_ms, ret);
}
