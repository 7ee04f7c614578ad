#include "lib/ledger/sealed.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

/* Every column that holds a sealed secret, in the order in which they are listed. */
static const struct place {
	const char *table, *column;
	enum ledger_stmt list, replace;
} places[] = {
	{ LEDGER_SEALED_TOKENS, "repo_token", LG_SEALED_TOKENS, LG_RESEAL_TOKEN },
	{ LEDGER_SEALED_WEBHOOKS, "secret", LG_SEALED_WEBHOOKS, LG_RESEAL_WEBHOOK },
};

/* A cursor is the table and the last row of it that was listed, with a slash between. */
static int
cursor_parse(const char *cursor, size_t *ret_place, const char **ret_after)
{
	const char *slash = cursor != NULL ? strchr(cursor, '/') : NULL;

	*ret_place = 0;
	*ret_after = "";
	if (cursor == NULL)
		return 0;
	for (size_t i = 0; slash != NULL && i < ARRAY_LEN(places); i++) {
		size_t n = (size_t)(slash - cursor);

		if (strlen(places[i].table) == n && memcmp(places[i].table, cursor, n) == 0) {
			*ret_place = i;
			*ret_after = slash + 1;
			return 0;
		}
	}
	return E_INVAL;
}

static int
sealed_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_sealed_row *v = row;
	int err = 0;

	*v = (struct ledger_sealed_row) { .project_id = stmt_text_dup(st, 0, a, &err),
		.row_id = stmt_text_dup(st, 1, a, &err),
		.sealed = { stmt_text_dup(st, 2, a, &err), stmt_text_dup(st, 3, a, &err),
		    stmt_int(st, 4) } };
	return err;
}

/* Adds up to ${limit} rows of one place to the ${*n} that are there. */
static int
list_place(const struct ledger_at *at, const struct place *p, const char *after,
    int64_t below_version, size_t limit, struct ledger_sealed_row *rows, size_t *n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, (unsigned)p->list);
	int r = stmt_bind(st, "sii", after, below_version, (int64_t)(limit - *n));

	while (r == 0 && *n < limit && (r = stmt_step(st)) == 1) {
		struct ledger_sealed_row *v = &rows[*n];

		r = sealed_read(st, at->arena, v);
		v->table = p->table;
		v->column = p->column;
		(*n)++;
	}
	return r;
}

int
ledger_sealed_list(const struct ledger_at *at, int64_t below_version, const char *cursor,
    size_t limit, struct ledger_sealed_row **ret, size_t *ret_n, const char **ret_next)
{
	struct ledger_sealed_row *rows = arena_calloc(at->arena, limit, sizeof(*rows));
	const char *after, *next = NULL;
	size_t i, n = 0;
	int r = cursor_parse(cursor, &i, &after);

	if (r == 0 && rows == NULL)
		r = E_NOMEM;
	for (; r == 0 && i < ARRAY_LEN(places) && n < limit; i++, after = "")
		r = list_place(at, &places[i], after, below_version, limit, rows, &n);
	if (r == 0 && n != 0 && n == limit) {
		next = arena_format(at->arena, "%s/%s", rows[n - 1].table, rows[n - 1].row_id);
		r = next == NULL ? E_NOMEM : 0;
	}
	if (r < 0)
		return r;
	*ret = rows;
	*ret_n = n;
	*ret_next = next;
	return 0;
}

static int
replace_in(struct store *s, struct arena *a, const struct place *p,
    const struct ledger_sealed_row *to, const char *expect, const char **ret_project)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)p->replace);
	int err = 0;
	int r = stmt_first(st,
	    stmt_bind(st, "ssssi", to->row_id, expect, to->sealed.ciphertext, to->sealed.nonce,
		to->sealed.key_version));

	*ret_project = r == 0 ? stmt_text_dup(st, 0, a, &err) : NULL;
	return r < 0 && r != E_NOENT ? r : err;
}

int
ledger_sealed_replace(struct store *s, struct arena *a, const struct ledger_sealed_row *to,
    const char *expect, const char **ret_project)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strcmp(places[i].table, to->table) == 0 &&
		    strcmp(places[i].column, to->column) == 0)
			return replace_in(s, a, &places[i], to, expect, ret_project);
	return E_INVAL;
}
