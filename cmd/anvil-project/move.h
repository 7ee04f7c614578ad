/*
 * cmd/anvil-project/move.h -- projects on their way to another shard (spec project 17): what every
 * method asks first, and who drives a move on from its rows.
 */
#ifndef CMD_ANVIL_PROJECT_MOVE_H
#define CMD_ANVIL_PROJECT_MOVE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/ledger/ledger.h"

struct buf;
struct moves;
struct shard;
struct turn;

/* ---- what a method answers of a project that is not served here ---- */

#define MOVE_RETRY_MS 100 /* After which a caller is to ask again. */

enum move_use { MOVE_READS, MOVE_CHANGES }; /* A frozen project is still read here. */

/* *ret_where: LEDGER_HERE (also of a project that is not known), LEDGER_MOVED with the shard,
 * or LEDGER_INCOMING, which stands for all that is between two shards. */
int move_guard(struct turn *t, const char *project_id, enum move_use use,
    enum ledger_where *ret_where, int64_t *ret_shard, int64_t *ret_retry_ms);

/* The beginning of a method that names a project: true when it is through, and *${err} is what
 * it returns.
 *	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_WHY, ret))
 *		return r; */
#define MOVE_ANSWERED(err, t, project_id, use, METHOD, ret)                                   \
	__extension__({                                                                       \
		enum ledger_where where_ = LEDGER_HERE;                                       \
		*(err) = move_guard((t), (project_id), (use), &where_, &(ret)->u.moved.shard, \
		    &(ret)->u.moving.retry_ms);                                               \
		if (where_ != LEDGER_HERE)                                                    \
			(ret)->kind = where_ == LEDGER_MOVED ? METHOD##_MOVED                 \
							     : METHOD##_MOVING;               \
		*(err) < 0 || where_ != LEDGER_HERE;                                          \
	})

/* ---- moves from here ---- */

struct moves *moves_new(struct shard *s);
struct moves *moves_free(struct moves *m);

/* Begins to move a live project, or joins who has begun; ${t} is parked until it is done or given
 * up.  What a handler returns; E_BUSY: it is on its way to another shard than that. */
int moves_begin(struct moves *m, struct turn *t, const char *project_id, int64_t to);
/* 1: somebody drives a move of it. */
int moves_has(const struct moves *m, const char *project_id);
/* In a turn: takes up what the rows say is under way and nobody drives. */
int moves_resume(struct moves *m, struct turn *t);
/* 1: it is frozen, and no new call about it is to start. */
int moves_holds(const struct moves *m, const char *project_id);
/* Ingress is there again. */
void moves_wake(struct moves *m);
/* Those who wait are told that this process ends. */
void moves_leave(struct moves *m);
/* Adds a JSON array: what is under way. */
void moves_inspect(const struct moves *m, struct buf *out);

#endif
