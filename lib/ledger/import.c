#include "lib/ledger/import.h"

#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/ledger/moved.h"
#include "lib/wire/wire.h"

#define DIGEST_BYTES 32

/* Runs a statement whose one parameter is an id. */
static int
run_with(struct store *s, enum ledger_stmt which, const char *id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)which);

	return ledger_run_stmt(st, stmt_bind(st, "s", id));
}

/* ---- parts ---- */

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
is_row(const json_t *row, const struct ledger_moved_table *t)
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

	for (size_t i = 0; i < LEDGER_MOVED_TABLES; i++) {
		const json_t *list = json_object_get(rows, ledger_moved_tables[i].name), *row;
		size_t at;

		if (list == NULL)
			continue;
		known++;
		if (!json_is_array(list))
			return 0;
		json_array_foreach (list, at, row)
			if (!is_row(row, &ledger_moved_tables[i]))
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

/* ---- rows of a part ---- */

/* What is made of which. */
struct import {
	const struct ledger_at *at;
	const char *project_id, *move_id;
	int64_t part, nleft; /* The first that is left; so many are. */
};

static int
import_state(const struct import *m)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(m->at->store, LG_IMPORT_STATE);
	int r = ledger_run_stmt(
	    st, stmt_bind(st, "ssii", m->project_id, m->move_id, m->part, m->at->now_ms));

	return r == 0 && store_changes(m->at->store) != 1 ? E_INVAL : r;
}

static int
import_table(const struct import *m, enum ledger_stmt which)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(m->at->store, (unsigned)which);

	return ledger_run_stmt(st, stmt_bind(st, "ssi", m->project_id, m->move_id, m->part));
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
import_deliveries(const struct import *m)
{
	struct store *s = m->at->store;
	CLEANUP(stmt_resetp) struct stmt *from = store_stmt(s, LG_IMPORT_DELIVERIES);
	int r = stmt_bind(from, "ssi", m->project_id, m->move_id, m->part);

	while (r == 0 && (r = stmt_step(from)) == 1)
		r = import_delivery(s, m->project_id, from);
	return r;
}

static int
part_done(const struct import *m)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(m->at->store, LG_PART_DONE);

	return ledger_run_stmt(st, stmt_bind(st, "si", m->move_id, m->part));
}

static int
import_part(const struct import *m)
{
	int r = import_table(m, LG_IMPORT_CONFIG);

	if (r == 0)
		r = import_table(m, LG_IMPORT_WEBHOOKS);
	if (r == 0)
		r = import_table(m, LG_IMPORT_REFUSALS);
	if (r == 0)
		r = import_deliveries(m);
	if (r == 0)
		r = import_table(m, LG_IMPORT_RUNS);
	if (r == 0)
		r = import_table(m, LG_IMPORT_EVENTS);
	return r < 0 ? r : part_done(m);
}

/* ---- all of them ---- */

static int
are_whole(const struct import *m, int64_t nparts)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(m->at->store, LG_PART_COUNT);
	int r = stmt_first(st, stmt_bind(st, "ss", m->move_id, m->project_id));

	if (r < 0)
		return r;
	return stmt_int(st, 0) == nparts && stmt_int(st, 1) == nparts && stmt_int(st, 2) == 0
	    ? 0
	    : E_INVAL;
}

/* Of an earlier copy, of a tombstone that is not empty yet, and of other moves. */
static int
clear_place(const struct import *m, int *ret_left)
{
	struct store *s = m->at->store;
	int r = ledger_empty_some(s, m->project_id, LEDGER_EMPTY_ROWS, ret_left);

	if (r < 0 || *ret_left)
		return r;
	r = run_with(s, LG_MOVE_REPLACE, m->project_id);
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_PART_REMOVE_OTHERS);

		r = ledger_run_stmt(st, stmt_bind(st, "ss", m->project_id, m->move_id));
	}
	return r;
}

/* The part that is to be made rows of next; its number is 0 when none is left. */
static int
first_part(struct import *m)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(m->at->store, LG_PART_FIRST);
	int r = stmt_first(st, stmt_bind(st, "s", m->move_id));

	if (r < 0)
		return r;
	m->part = stmt_int(st, 0);
	m->nleft = stmt_int(st, 1);
	return 0;
}

static int
has_config(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_GET);

	return stmt_first(st, stmt_bind(st, "s", project_id));
}

/* One part; the last one completes it. */
static int
go_on(struct import *m, int *ret_left)
{
	int r = import_part(m);

	*ret_left = m->nleft > 1;
	if (r == 0 && !*ret_left)
		r = has_config(m->at->store, m->project_id);
	return r == E_NOENT ? E_INVAL : r;
}

static int
begin(struct import *m, int64_t nparts, int *ret_left)
{
	int r = are_whole(m, nparts);

	if (r == 0)
		r = clear_place(m, ret_left);
	if (r < 0 || *ret_left)
		return r;
	r = first_part(m);
	if (r == 0)
		r = import_state(m);
	return r < 0 ? r : go_on(m, ret_left);
}

int
ledger_import(const struct ledger_at *at, const char *project_id, const char *move_id,
    int64_t nparts, int *ret_left)
{
	struct import m = { .at = at, .project_id = project_id, .move_id = move_id };
	struct ledger_move here;
	int r = ledger_move_get(at->store, project_id, &here);

	*ret_left = 0;
	if (r < 0)
		return r;
	if (here.where == LEDGER_HERE || here.where == LEDGER_FROZEN)
		return E_EXISTS;
	if (here.where != LEDGER_INCOMING || strcmp(here.move_id, move_id) != 0)
		return begin(&m, nparts, ret_left);
	r = first_part(&m);
	return r < 0 || m.nleft == 0 ? r : go_on(&m, ret_left);
}

int
ledger_import_look(struct store *s, const char *project_id, const char *move_id, int *ret_left)
{
	const struct ledger_at at = { .store = s };
	struct import m = { .at = &at, .project_id = project_id, .move_id = move_id };
	struct ledger_move here;
	int r = ledger_move_get(s, project_id, &here);

	if (r == 0)
		r = first_part(&m);
	if (r < 0)
		return r;
	if (here.where != LEDGER_INCOMING || strcmp(here.move_id, move_id) != 0)
		return E_NOENT;
	*ret_left = m.nleft > 0;
	return *ret_left ? 0 : has_config(s, project_id);
}

int
ledger_activate(struct store *s, const char *project_id, const char *move_id, int64_t now_ms,
    struct ledger_move *ret)
{
	int left, r = ledger_import_look(s, project_id, move_id, &left);

	if (r == 0 && left)
		return E_BUSY;
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_MOVE_ACTIVATE);

		r = ledger_run_stmt(st, stmt_bind(st, "ssi", project_id, move_id, now_ms));
	}
	return r < 0 && r != E_NOENT ? r : ledger_move_get(s, project_id, ret);
}

/* ---- giving it up ---- */

int
ledger_empty_some(struct store *s, const char *project_id, int64_t limit, int *ret_left)
{
	static const enum ledger_stmt stmts[] = { LG_EMPTY_RUNS, LG_EMPTY_DELIVERIES };
	int r = 0;

	*ret_left = 0;
	for (size_t i = 0; i < ARRAY_LEN(stmts) && r == 0; i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, (unsigned)stmts[i]);

		r = ledger_run_stmt(st, stmt_bind(st, "si", project_id, limit));
		if (r == 0 && store_changes(s) == limit)
			*ret_left = 1;
	}
	return r;
}

/* First what tells that it is whole. */
static int
discard_copy(struct store *s, const char *project_id, const char *move_id, int *ret_left)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	int r = run_with(s, LG_MOVE_EMPTY_WEBHOOKS, project_id);

	if (r == 0)
		r = run_with(s, LG_MOVE_EMPTY_CONFIG, project_id);
	if (r == 0)
		r = ledger_empty_some(s, project_id, LEDGER_EMPTY_ROWS, ret_left);
	if (r < 0 || *ret_left)
		return r;
	st = store_stmt(s, LG_MOVE_DROP);
	return ledger_run_stmt(st, stmt_bind(st, "ss", project_id, move_id));
}

int
ledger_discard(struct store *s, const char *project_id, const char *move_id, int *ret_left)
{
	struct ledger_move here;
	int r = ledger_move_get(s, project_id, &here);

	*ret_left = 0;
	if (r == 0)
		r = run_with(s, LG_PART_REMOVE, move_id);
	if (r < 0 || here.where != LEDGER_INCOMING || strcmp(here.move_id, move_id) != 0)
		return r;
	return discard_copy(s, project_id, move_id, ret_left);
}
