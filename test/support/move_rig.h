/*
 * test/support/move_rig.h -- two ledgers, and a project that goes from one to the other.
 */
#ifndef TEST_SUPPORT_MOVE_RIG_H
#define TEST_SUPPORT_MOVE_RIG_H

#include <jansson.h>

#include "test/support/webhook_rig.h"

#define PART_MAX 64

/* Two ledgers; what a test names by number is the same in both. */
struct move_pair {
	struct ledger_rig *from, *to;
	json_t *parts[PART_MAX]; /* Of the newest export. */
	int64_t nparts;
};

/* For cmocka: *state becomes the pair. */
int pair_setup(void **state);
int pair_teardown(void **state);

const char *pair_move_id(const struct move_pair *pair, int n);
struct ledger_move pair_look(const struct ledger_rig *rig, int project);

/* A project with all that there can be: a terminal run that is done, one that is not, an active
 * one, two that wait, webhooks of all providers, deliveries, attempts that were refused.  Its runs
 * are project * 100 + 1, and so on. */
void pair_fill(struct ledger_rig *rig, int project);
/* All rows of a project but that of its state, as one text. */
const char *pair_dump(const struct ledger_rig *rig, int project);

/* Steps; those that return nothing have worked. */
void pair_freeze(struct move_pair *pair, int project, int move);
/* All parts, each of at most ${limit} bytes. */
void pair_export(struct move_pair *pair, int project, size_t limit);
int pair_store_part(
    const struct move_pair *pair, int project, int move, int64_t part, const json_t *rows);
void pair_send(const struct move_pair *pair, int project, int move);
/* All its steps. */
int pair_import(const struct move_pair *pair, int project, int move);
int pair_give(const struct move_pair *pair, int project, int move);
/* What the old shard has still of it goes; what the new one has of a move that was given up. */
void pair_clear(const struct move_pair *pair, int project);
void pair_discard(const struct move_pair *pair, int project, int move);
int pair_activate(const struct move_pair *pair, int project, int move, struct ledger_move *ret);
/* From the first step to the last. */
void pair_move(struct move_pair *pair, int project, int move, size_t limit);

#endif
