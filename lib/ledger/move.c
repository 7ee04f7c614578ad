#include "lib/ledger/move.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/moved.h"

#define END_BYTES 64 /* of a part, behind its last row: the names of tables without rows */

/* Rows refer to those before them. */
const struct ledger_moved_table ledger_moved_tables[LEDGER_MOVED_TABLES] = {
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
	CLEANUP(stmt_resetp)
	struct stmt *st = store_stmt(s, (unsigned)ledger_moved_tables[p->table].read);
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
	while (r == 0 && p->table < LEDGER_MOVED_TABLES) {
		(void)buf_printf(out, "%s\"%s\":[",
		    out->data != NULL && out->len > 1 ? "," : "",
		    ledger_moved_tables[p->table].name);
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

/* What nobody may find here any more; the rest goes bit by bit, ledger_empty_some(). */
static int
empty(struct store *s, const char *project_id)
{
	static const enum ledger_stmt stmts[] = { LG_MOVE_EMPTY_WEBHOOKS,
		LG_MOVE_EMPTY_CONFIG };

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

int
ledger_discarded(struct store *s, const char *move_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_DISCARD_REMOVE);

	return ledger_run_stmt(st, stmt_bind(st, "s", move_id));
}
