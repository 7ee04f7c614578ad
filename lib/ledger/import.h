/*
 * lib/ledger/import.h -- a project that comes from another shard (spec project 17).
 *
 * Its parts are kept as they came.  When all are there they become rows, a part a turn, so that
 * nobody waits long for a big project; until the last one has, it is a copy that nobody is served
 * from.  All of it is in the rows: whoever is killed goes on where that stands.
 */
#ifndef LIB_LEDGER_IMPORT_H
#define LIB_LEDGER_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/ledger/move.h"
#include "lib/ledger/run.h"

#define LEDGER_EMPTY_ROWS 100 /* Runs, and deliveries, that one turn removes. */

struct ledger_part {
	const char *project_id, *move_id;
	int64_t part; /* from 1 */
	const json_t *rows;
};

/* Keeps a part.  The first one replaces all that is there of the move.  E_INVAL: these are no
 * rows; E_TOO_BIG. */
int ledger_part_add(struct store *s, const struct ledger_part *p);

/* Makes the project of parts 1..${nparts}, as a copy that is not served, in place of an earlier
 * copy or a tombstone: a piece of that work each time.  *ret_left: there is more of it.  An error
 * leaves the transaction to be undone: E_INVAL (parts are missing or are of something else),
 * E_EXISTS (the project is here), E_CONSTRAINT or E_ILLEGAL (rows that no project can have). */
int ledger_import(const struct ledger_at *at, const char *project_id, const char *move_id,
    int64_t nparts, int *ret_left);
/* Of a copy of that move: whether it is whole, or being made.  E_NOENT: it is neither. */
int
ledger_import_look(struct store *s, const char *project_id, const char *move_id, int *ret_left);
/* The copy is served from here on; the index is told of the configuration again.  Nothing when it
 * is served already.  *ret: what it is then.  E_BUSY: it is not whole. */
int ledger_activate(struct store *s, const char *project_id, const char *move_id,
    int64_t now_ms, struct ledger_move *ret);
/* Parts and copy of that move go, if they are there and are not served: a piece each time. */
int ledger_discard(struct store *s, const char *project_id, const char *move_id, int *ret_left);

/* Removes up to ${limit} runs, and as many deliveries, of a project that is not, or no longer,
 * served.  *ret_left: there may be more. */
int ledger_empty_some(struct store *s, const char *project_id, int64_t limit, int *ret_left);

#endif
