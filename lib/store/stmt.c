#include "lib/store/stmt.h"

#include <stdarg.h>

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/store/priv.h"

struct stmt *
store_stmt(struct store *s, unsigned id)
{
	struct stmt *st;

	OBJ_CHECK(s, STORE_MAGIC);
	must(id < s->desc->nstmts);
	st = &s->stmts[id];
	if (st->raw != NULL) {
		(void)stmt_reset(st);
		return st;
	}
	st->err = store_error_in(s,
	    sqlite3_prepare_v3(
		s->db, s->desc->stmts[id].sql, -1, SQLITE_PREPARE_PERSISTENT, &st->raw, NULL));
	return st;
}

struct stmt *
stmt_reset(struct stmt *st)
{
	if (st != NULL && st->raw != NULL) {
		(void)sqlite3_reset(st->raw);
		(void)sqlite3_clear_bindings(st->raw);
		st->err = 0;
	}
	return NULL;
}

static int
bind_text(sqlite3_stmt *raw, int at, const char *text)
{
	return text != NULL ? sqlite3_bind_text(raw, at, text, -1, SQLITE_TRANSIENT)
			    : sqlite3_bind_null(raw, at);
}

int
stmt_bind(struct stmt *st, const char *types, ...)
{
	int rc = SQLITE_OK, at = 1;
	va_list ap;

	if (st->err < 0)
		return st->err;
	va_start(ap, types);
	for (; *types != '\0' && rc == SQLITE_OK; types++, at++) {
		const int64_t *maybe;
		const void *blob;

		switch (*types) {
		case 'i': rc = sqlite3_bind_int64(st->raw, at, va_arg(ap, int64_t)); break;
		case 'I':
			maybe = va_arg(ap, const int64_t *);
			rc = maybe != NULL ? sqlite3_bind_int64(st->raw, at, *maybe)
					   : sqlite3_bind_null(st->raw, at);
			break;
		case 's': rc = bind_text(st->raw, at, va_arg(ap, const char *)); break;
		case 'b':
			blob = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(
			    st->raw, at, blob, va_arg(ap, size_t), SQLITE_TRANSIENT);
			break;
		case 'n': rc = sqlite3_bind_null(st->raw, at); break;
		default: base_bug(__FILE__, __LINE__, "a type of stmt_bind()");
		}
	}
	va_end(ap);
	if (rc == SQLITE_RANGE)
		st->err = E_RANGE;
	else if (rc != SQLITE_OK)
		st->err = store_error_of(NULL, rc);
	return st->err;
}

int
stmt_step(struct stmt *st)
{
	struct store *s = st->store;
	int rc;

	if (st->err < 0)
		return st->err;
	if (s->limit_ms != 0 && !sqlite3_stmt_busy(st->raw))
		s->until_us = mono_add_ms(clock_mono(), s->limit_ms).us;
	rc = sqlite3_step(st->raw);
	if (rc == SQLITE_ROW)
		return 1;
	return store_error_in(s, rc);
}

int
stmt_run(struct stmt *st)
{
	int r;

	while ((r = stmt_step(st)) == 1)
		;
	(void)stmt_reset(st);
	return r;
}

int
stmt_first(struct stmt *st, int bound)
{
	int r = bound < 0 ? bound : stmt_step(st);

	if (r < 0)
		return r;
	return r == 0 ? E_NOENT : 0;
}

int
stmt_rows(struct stmt *st, int bound, struct arena *a, stmt_read_fn *read, size_t row_size,
    void **ret_rows, size_t *ret_n)
{
	void *rows = NULL;
	size_t n = 0, cap = 0;
	int r = bound;

	while (r == 0 && (r = stmt_step(st)) == 1) {
		r = arena_list_grow(a, &rows, n, &cap, row_size);
		if (r == 0)
			r = read(st, a, (char *)rows + n++ * row_size);
	}
	if (r < 0)
		return r;
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}

int64_t
stmt_int(struct stmt *st, int col)
{
	return sqlite3_column_int64(st->raw, col);
}

const char *
stmt_text(struct stmt *st, int col)
{
	return (const char *)sqlite3_column_text(st->raw, col);
}

const char *
stmt_text_dup(struct stmt *st, int col, struct arena *a, int *err)
{
	const char *text = stmt_text(st, col);
	char *copy;

	if (text == NULL)
		return NULL;
	copy = arena_strdup(a, text);
	if (copy == NULL)
		*err = E_NOMEM;
	return copy;
}

const void *
stmt_blob(struct stmt *st, int col, size_t *ret_n)
{
	const void *p = sqlite3_column_blob(st->raw, col);

	*ret_n = (size_t)sqlite3_column_bytes(st->raw, col);
	return p;
}

int
stmt_is_null(struct stmt *st, int col)
{
	return sqlite3_column_type(st->raw, col) == SQLITE_NULL;
}
