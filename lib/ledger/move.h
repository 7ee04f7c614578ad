/*
 * lib/ledger/move.h -- a project that goes to another shard, whole (spec project 17).
 *
 * The old shard freezes it, reads its rows by parts, turns into a tombstone when the new one has
 * them all, and from then on has only to tell others and to clear away; what the new one does
 * stands in import.h.  Each function may be repeated.
 */
#ifndef LIB_LEDGER_MOVE_H
#define LIB_LEDGER_MOVE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/id.h"

struct arena;
struct store;

#define LEDGER_PART_BYTES (1u << 20)  /* of the JSON text of one part, at most       */
#define LEDGER_PART_AIM   (64u << 10) /* so that a turn can make rows of it shortly */

/* ---- whose it is ---- */

enum ledger_where {
	LEDGER_UNKNOWN,
	LEDGER_HERE,     /* live, or being removed                                        */
	LEDGER_FROZEN,   /* here still, and what would change it is for later            */
	LEDGER_INCOMING, /* a copy that nobody is served from                            */
	LEDGER_MOVED,    /* what is left is where it has gone                            */
};

/* The last step that is done (spec project 17), of a project that is frozen or has moved. */
enum ledger_step {
	LEDGER_STEP_FREEZING = 0, /* answers to calls in flight may still change it */
	LEDGER_STEP_FROZEN = 1,   /* nothing may                                    */
	LEDGER_STEP_GIVEN = 4,    /* the new shard owns it                          */
	LEDGER_STEP_ACTIVE = 5,   /* and serves it                                  */
	LEDGER_STEP_DONE = 6,     /* and the directory says so                      */
};

struct ledger_move {
	char project_id[ID_SIZE];
	enum ledger_where where;
	int removing;                /* Of LEDGER_HERE.                          */
	char move_id[ID_HEX32_SIZE]; /* "" unless it is frozen, incoming, moved. */
	int64_t to;                  /* Shard; of frozen and moved.              */
	int64_t step;                /* Of frozen and moved.                     */
};

/* Where the project is, as every method asks before anything else. */
int ledger_move_get(struct store *s, const char *project_id, struct ledger_move *ret);

/* 1: what was going on when it was frozen may write its outcome down.  A project that is not
 * known has no rows to be changed. */
static inline int
ledger_may_change(const struct ledger_move *m)
{
	return m->where == LEDGER_HERE || m->where == LEDGER_UNKNOWN ||
	    (m->where == LEDGER_FROZEN && m->step == LEDGER_STEP_FREEZING);
}

/* Moves that the old shard has to drive on. */
int ledger_moves(struct store *s, struct arena *a, struct ledger_move **ret, size_t *ret_n);
/* Those that it has given up, whose copies the new shard has still to drop; where is LEDGER_HERE,
 * whatever has become of the project since. */
int ledger_discards(struct store *s, struct arena *a, struct ledger_move **ret, size_t *ret_n);
/* Projects that are between two shards, or were until the directory knew: others may have been
 * asked about them too early, and this one too late. */
int ledger_moving_count(struct store *s, int64_t *ret_n);

/* ---- the old shard ---- */

/* Live becomes frozen.  E_NOENT: there is no live project of that id here. */
int ledger_freeze(
    struct store *s, const char *project_id, const char *move_id, int64_t to, int64_t now_ms);
/* Calls in flight have come back, or are not waited for any longer. */
int ledger_freeze_done(struct store *s, const char *project_id, const char *move_id);

/* How far its rows have been read; {.project_id} is the beginning. */
struct ledger_pages {
	const char *project_id;
	unsigned table;
	int64_t after;
};

/* Adds the next part to ${out}, as a JSON object of tables with rows, of at most ${limit} bytes
 * as long as one row is not longer by itself.  A frozen project does not change, so that parts
 * that are read one after another are of one moment.  *ret_last: there are no more. */
int ledger_move_part(
    struct store *s, struct ledger_pages *p, size_t limit, struct buf *out, int *ret_last);

/* The point of no return: what is left is a tombstone, and runs and deliveries that are for
 * ledger_empty_some().  E_NOENT: it is not frozen for that move. */
int ledger_give(struct store *s, const char *project_id, const char *move_id, int64_t now_ms);
/* LEDGER_STEP_ACTIVE or LEDGER_STEP_DONE. */
int ledger_given(
    struct store *s, const char *project_id, const char *move_id, enum ledger_step step);
/* Gives the move up: frozen becomes live, and the copy is to be dropped.  E_NOENT: it is not
 * frozen for that move (any more). */
int ledger_thaw(struct store *s, const struct ledger_move *m, int64_t now_ms);
/* The new shard has dropped the copy. */
int ledger_discarded(struct store *s, const char *move_id);

#endif
