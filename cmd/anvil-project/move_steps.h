/*
 * cmd/anvil-project/move_steps.h -- one move from here: what it is, and its steps (private to
 * move*.c).
 */
#ifndef CMD_ANVIL_PROJECT_MOVE_STEPS_H
#define CMD_ANVIL_PROJECT_MOVE_STEPS_H

#include <sys/queue.h>

#include "cmd/anvil-project/shard.h"
#include "lib/base/buf.h"

#define MOVE_AGAIN_MS     1000 /* doubles ...  */
#define MOVE_AGAIN_MAX_MS 30000
#define MOVE_REASON_SIZE  200

/* What it is at; what is done is in the rows. */
enum move_stage {
	MOVE_REACH,  /* Nothing is written yet.                            */
	MOVE_SETTLE, /* Frozen; calls in flight come back.                 */
	MOVE_EXPORT, /* The other shard gets the rows, by parts.           */
	MOVE_GIVE,   /* It has them.                                       */
	MOVE_ABORT,  /* Given up: to be live again.                        */
	MOVE_ACTIVATE,
	MOVE_FLIP,
	/* Behind the move, of which nobody has to know any more. */
	MOVE_CLEAR,   /* What is left of it here goes, bit by bit.          */
	MOVE_DISCARD, /* Given up; the other shard may still have a copy.   */
};

struct project_move_result;

struct move_waiter {
	STAILQ_ENTRY(move_waiter) entry;
	struct parked *parked;
};

struct move {
	LIST_ENTRY(move) entry;
	uint32_t magic;
#define MOVE_MAGIC 0x3ad97c16
	struct moves *owner;
	struct ledger_move row; /* What stands there, or will. */
	enum move_stage stage;
	struct link *link; /* To the other shard; the actor's. */
	struct actor_timer *timer;
	int pending;                   /* A call, or a commit, will come back to us ... */
	int ended;                     /* ... and finds that it is over.                */
	void (*then)(struct move *mv); /* When it is on disk. */
	struct mono_time begun, since; /* At all; of the last progress. */
	int64_t wait_ms;               /* Before the next try.          */
	/* Of the export. */
	struct ledger_pages pages, next; /* Up to this part, and behind it. */
	int64_t part, best;
	int last;
	int left; /* Of MOVE_CLEAR: there is more. */
	struct buf text;
	char reason[MOVE_REASON_SIZE];
	STAILQ_HEAD(, move_waiter) waiters;
};

struct moves {
	struct shard *shard;
	LIST_HEAD(, move) list;
};

/* A callback: 1 when the move has ended meanwhile and is freed now. */
int move_came_back(struct move *mv);
/* Tells those who wait and frees it; ${res} NULL: nobody knows. */
void move_finish(struct move *mv, const struct project_move_result *res);
/* Tells those who wait. */
void move_answer(struct move *mv, const struct project_move_result *res);
void move_look_after(struct move *mv, int64_t ms);
void move_turn_to(struct move *mv, enum move_stage stage);
/* 1 s doubling to 30 s, for what is retried for ever. */
void move_again(struct move *mv);
/* Writes in a turn of its own; ${then} runs when that is on disk, before which nobody may hear of
 * it; ${otherwise} when ${write} finds the project in another state (E_NOENT).  After any other
 * failure the stage is tried again. */
void move_write(struct move *mv, int (*write)(struct move *, struct turn *),
    void (*then)(struct move *), void (*otherwise)(struct move *));

/* ---- move_steps.c ---- */

/* The next step of the stage; nothing is pending. */
void move_step(struct move *mv);
/* Its rows are to be read from the first on. */
void move_from_the_first(struct move *mv);

#endif
