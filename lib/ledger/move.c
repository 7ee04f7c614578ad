#include "lib/ledger/move.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"
#include "lib/wire/wire.h"

#define DIGEST_BYTES 32
#define END_BYTES    64 /* of a part, behind its last row: the names of tables without rows */

/* What a part may hold, in the order in which it is written: rows refer to those before them. */
static const struct table {
	const char *name;
	size_t ncolumns;
	size_t nnested; /* The last column is a list of rows of so many; 0: it is not. */
	enum ledger_stmt read;
} tables[] = {
	{ "state", 5, 0, LG_MOVED_STATE },
	{ "config", 13, 0, LG_MOVED_CONFIG },
	{ "webhooks", 10, 9, LG_MOVED_WEBHOOKS },
	{ "deliveries", 15, 0, LG_MOVED_DELIVERIES },
	{ "runs", 37, 4, LG_MOVED_RUNS },
};

/* ---- whose it is ---- */

static int
where_of(const char *phase, struct ledger_move *m)
{
	static const struct {
		const char *phase;
		enum ledger_where where;
	} rows[] = { { "live", LEDGER_HERE }, { "removing", LEDGER_HERE },
		{ "frozen", LEDGER_FROZEN }, { "incoming", LEDGER_INCOMING },
		{ "moved", LEDGER_MOVED } };

	for (size_t i = 0; phase != NULL && i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].phase, phase) == 0) {
			m->where = rows[i].where;
			m->removing = strcmp(phase, "removing") == 0;
			return 0;
		}
	return E_CORRUPT;
}

static int
move_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_move *m = row;
	const char *id = stmt_text(st, 0), *move = stmt_text(st, 2);

	(void)a;
	*m = (struct ledger_move) { .to = stmt_int(st, 3), .step = stmt_int(st, 4) };
	if (id == NULL || strlen(id) >= sizeof(m->project_id) ||
	    (move != NULL && strlen(move) >= sizeof(m->move_id)))
		return E_CORRUPT;
	(void)snprintf(m->project_id, sizeof(m->project_id), "%s", id);
	(void)snprintf(m->move_id, sizeof(m->move_id), "%s", move != NULL ? move : "");
	return where_of(stmt_text(st, 1), m);
}

int
ledger_move_get(struct store *s, const char *project_id, struct ledger_move *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_GET);
	int r = stmt_first(st, stmt_bind(st, "s", project_id));

	if (r != E_NOENT)
		return r < 0 ? r : move_read(st, NULL, ret);
	*ret = (struct ledger_move) { .where = LEDGER_UNKNOWN };
	(void)snprintf(ret->project_id, sizeof(ret->project_id), "%s", project_id);
	return 0;
}

static int
move_rows(struct store *s, struct arena *a, enum ledger_stmt which, struct ledger_move **ret,
    size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);
	void *rows;
	int r = stmt_rows(st, 0, a, move_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
ledger_moves(struct store *s, struct arena *a, struct ledger_move **ret, size_t *ret_n)
{
	return move_rows(s, a, LG_MOVE_LIST, ret, ret_n);
}

int
ledger_discards(struct store *s, struct arena *a, struct ledger_move **ret, size_t *ret_n)
{
	return move_rows(s, a, LG_DISCARD_LIST, ret, ret_n);
}

int
ledger_moving_count(struct store *s, int64_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_SEALED_MOVING);
	int r = stmt_first(st, 0);

	if (r == 0)
		*ret_n = stmt_int(st, 0);
	return r;
}

/* ---- the old shard ---- */

/* What a statement that changes one row of project_state said. */
static int
one_row(struct store *s, int r)
{
	return r == 0 && store_changes(s) == 0 ? E_NOENT : r;
}

int
ledger_freeze(
    struct store *s, const char *project_id, const char *move_id, int64_t to, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_FREEZE);

	return one_row(
	    s, ledger_run_stmt(st, stmt_bind(st, "ssii", project_id, move_id, to, now_ms)));
}

static int
set_step(struct store *s, const char *project_id, const char *move_id, const char *phase,
    enum ledger_step step)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_STEP);

	return one_row(s,
	    ledger_run_stmt(
		st, stmt_bind(st, "ssis", project_id, move_id, (int64_t)step, phase)));
}

int
ledger_freeze_done(struct store *s, const char *project_id, const char *move_id)
{
	return set_step(s, project_id, move_id, "frozen", LEDGER_STEP_FROZEN);
}

int
ledger_given(
    struct store *s, const char *project_id, const char *move_id, enum ledger_step step)
{
	return set_step(s, project_id, move_id, "moved", step);
}

/* Adds rows of the table that is read now.  1: there is no room for the next one. */
static int
read_rows(struct store *s, struct ledger_pages *p, size_t limit, size_t *n, struct buf *out)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)tables[p->table].read);
	int r = stmt_bind(st, "si", p->project_id, p->after), first = 1;

	while (r == 0 && (r = stmt_step(st)) == 1) {
		const char *row = stmt_text(st, 1);

		if (row == NULL)
			return E_NOMEM;
		if (*n > 0 && out->len + strlen(row) + END_BYTES > limit)
			return 1;
		if (!first)
			(void)buf_add_byte(out, ',');
		(void)buf_add_str(out, row);
		p->after = stmt_int(st, 0);
		first = 0;
		(*n)++;
		r = 0;
	}
	return r;
}

int
ledger_move_part(
    struct store *s, struct ledger_pages *p, size_t limit, struct buf *out, int *ret_last)
{
	size_t n = 0;
	int r = 0;

	(void)buf_add_byte(out, '{');
	while (r == 0 && p->table < ARRAY_LEN(tables)) {
		(void)buf_printf(out, "%s\"%s\":[",
		    out->data != NULL && out->len > 1 ? "," : "", tables[p->table].name);
		r = read_rows(s, p, limit, &n, out);
		(void)buf_add_byte(out, ']');
		if (r == 0) {
			p->table++;
			p->after = 0;
		}
	}
	(void)buf_add_byte(out, '}');
	if (r < 0)
		return r;
	*ret_last = r == 0;
	return out->failed ? E_NOMEM : 0;
}

static int
empty(struct store *s, const char *project_id)
{
	static const enum ledger_stmt stmts[] = { LG_MOVE_EMPTY_RUNS, LG_MOVE_EMPTY_DELIVERIES,
		LG_MOVE_EMPTY_WEBHOOKS, LG_MOVE_EMPTY_CONFIG };

	for (size_t i = 0; i < ARRAY_LEN(stmts); i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)stmts[i]);
		int r = ledger_run_stmt(st, stmt_bind(st, "s", project_id));

		if (r < 0)
			return r;
	}
	return 0;
}

int
ledger_give(struct store *s, const char *project_id, const char *move_id, int64_t now_ms)
{
	int r;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_TOMBSTONE);

		r = one_row(
		    s, ledger_run_stmt(st, stmt_bind(st, "ssi", project_id, move_id, now_ms)));
	}
	return r < 0 ? r : empty(s, project_id);
}

int
ledger_thaw(struct store *s, const struct ledger_move *m, int64_t now_ms)
{
	int r;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_THAW);

		r = one_row(s,
		    ledger_run_stmt(
			st, stmt_bind(st, "ssi", m->project_id, m->move_id, now_ms)));
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_DISCARD_ADD);

		r = ledger_run_stmt(st, stmt_bind(st, "ssi", m->move_id, m->project_id, m->to));
	}
	return r;
}

/* Runs a statement whose one parameter is an id. */
static int
run_with(struct store *s, enum ledger_stmt which, const char *id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);

	return ledger_run_stmt(st, stmt_bind(st, "s", id));
}

int
ledger_discarded(struct store *s, const char *move_id)
{
	return run_with(s, LG_DISCARD_REMOVE, move_id);
}

/* ---- the new shard: parts ---- */

static int
is_value(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v) || json_is_null(v);
}

static int
are_nested(const json_t *rows, size_t ncolumns)
{
	const json_t *row, *v;
	size_t i, k;

	if (!json_is_array(rows))
		return 0;
	json_array_foreach (rows, i, row) {
		if (!json_is_array(row) || json_array_size(row) != ncolumns)
			return 0;
		json_array_foreach (row, k, v)
			if (!is_value(v))
				return 0;
	}
	return 1;
}

static int
is_row(const json_t *row, const struct table *t)
{
	if (!json_is_array(row) || json_array_size(row) != t->ncolumns)
		return 0;
	for (size_t i = 0; i < t->ncolumns; i++) {
		const json_t *v = json_array_get(row, i);

		if (t->nnested != 0 && i == t->ncolumns - 1 ? !are_nested(v, t->nnested)
							    : !is_value(v))
			return 0;
	}
	return 1;
}

/* Tables that are known, with rows of the right length; the schema judges the values. */
static int
is_part(const json_t *rows)
{
	size_t known = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		const json_t *list = json_object_get(rows, tables[i].name), *row;
		size_t at;

		if (list == NULL)
			continue;
		known++;
		if (!json_is_array(list))
			return 0;
		json_array_foreach (list, at, row)
			if (!is_row(row, &tables[i]))
				return 0;
	}
	return json_is_object(rows) && json_object_size(rows) == known;
}

int
ledger_part_add(struct store *s, const struct ledger_part *p)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = is_part(p->rows) ? json_text_dump(&text, p->rows) : E_INVAL;

	if (r == 0 && text.len > LEDGER_PART_BYTES)
		r = E_TOO_BIG;
	if (r == 0 && p->part == 1)
		r = run_with(s, LG_PART_REMOVE, p->move_id);
	if (r < 0)
		return r;
	if (buf_cstr(&text) == NULL)
		return E_NOMEM;
	st = store_stmt(s, LG_PART_ADD);
	return ledger_run_stmt(st,
	    stmt_bind(st, "siss", p->move_id, p->part, p->project_id, (const char *)text.data));
}

/* ---- the new shard: rows of the parts ---- */

static int
are_whole(struct store *s, const char *project_id, const char *move_id, int64_t nparts)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_PART_COUNT);
	int r = stmt_first(st, stmt_bind(st, "ss", move_id, project_id));

	if (r < 0)
		return r;
	return stmt_int(st, 0) == nparts && stmt_int(st, 1) == nparts && stmt_int(st, 2) == 0
	    ? 0
	    : E_INVAL;
}

static int
import_state(const struct ledger_at *at, const char *project_id, const char *move_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(at->store, LG_IMPORT_STATE);
	int r = ledger_run_stmt(st, stmt_bind(st, "ssi", project_id, move_id, at->now_ms));

	return r == 0 && store_changes(at->store) != 1 ? E_INVAL : r;
}

static int
import_table(
    struct store *s, enum ledger_stmt which, const char *project_id, const char *move_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);

	return ledger_run_stmt(st, stmt_bind(st, "ss", project_id, move_id));
}

/* Columns as LG_MOVED_DELIVERIES has them; SQL cannot make the digest's bytes of its digits. */
static int
import_delivery(struct store *s, const char *project_id, struct stmt *from)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_DELIVERY_ADD);
	const char *digits = stmt_text(from, 11);
	uint8_t digest[DIGEST_BYTES];

	if (digits == NULL || stmt_is_null(from, 12) || stmt_is_null(from, 14) ||
	    hex_decode(digits, strlen(digits), digest, sizeof(digest)) < 0)
		return E_CONSTRAINT;
	return ledger_run_stmt(st,
	    stmt_bind(st, "ssssssssssssbisi", project_id, stmt_text(from, 0),
		stmt_text(from, 1), stmt_text(from, 2), stmt_text(from, 3), stmt_text(from, 4),
		stmt_text(from, 5), stmt_text(from, 6), stmt_text(from, 7), stmt_text(from, 8),
		stmt_text(from, 9), stmt_text(from, 10), digest, sizeof(digest),
		stmt_int(from, 12), stmt_text(from, 13), stmt_int(from, 14)));
}

static int
import_deliveries(struct store *s, const char *project_id, const char *move_id)
{
	CLEANUP(stmt_resetp) struct stmt *from = store_stmt(s, LG_IMPORT_DELIVERIES);
	int r = stmt_bind(from, "ss", project_id, move_id);

	while (r == 0 && (r = stmt_step(from)) == 1)
		r = import_delivery(s, project_id, from);
	return r;
}

int
ledger_import(
    const struct ledger_at *at, const char *project_id, const char *move_id, int64_t nparts)
{
	struct ledger_move here;
	int r = ledger_move_get(at->store, project_id, &here);

	if (r < 0)
		return r;
	if (here.where == LEDGER_INCOMING && strcmp(here.move_id, move_id) == 0)
		return 0;
	if (here.where == LEDGER_HERE || here.where == LEDGER_FROZEN)
		return E_EXISTS;
	r = are_whole(at->store, project_id, move_id, nparts);
	if (r == 0)
		r = run_with(at->store, LG_MOVE_REPLACE, project_id);
	if (r == 0)
		r = import_state(at, project_id, move_id);
	if (r == 0)
		r = import_table(at->store, LG_IMPORT_CONFIG, project_id, move_id);
	if (r == 0 && store_changes(at->store) != 1)
		r = E_INVAL;
	if (r == 0)
		r = import_table(at->store, LG_IMPORT_WEBHOOKS, project_id, move_id);
	if (r == 0)
		r = import_table(at->store, LG_IMPORT_REFUSALS, project_id, move_id);
	if (r == 0)
		r = import_deliveries(at->store, project_id, move_id);
	if (r == 0)
		r = import_table(at->store, LG_IMPORT_RUNS, project_id, move_id);
	if (r == 0)
		r = import_table(at->store, LG_IMPORT_EVENTS, project_id, move_id);
	return r < 0 ? r : run_with(at->store, LG_PART_REMOVE_ALL, project_id);
}

int
ledger_activate(struct store *s, const char *project_id, const char *move_id, int64_t now_ms,
    struct ledger_move *ret)
{
	int r;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_ACTIVATE);

		r = ledger_run_stmt(st, stmt_bind(st, "ssi", project_id, move_id, now_ms));
	}
	return r < 0 ? r : ledger_move_get(s, project_id, ret);
}

int
ledger_discard(struct store *s, const char *project_id, const char *move_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_DROP);
	int r = ledger_run_stmt(st, stmt_bind(st, "ss", project_id, move_id));

	return r < 0 ? r : run_with(s, LG_PART_REMOVE, move_id);
}
