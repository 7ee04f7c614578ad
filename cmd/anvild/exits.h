/*
 * cmd/anvild/exits.h -- ends of runners, told to their shard until it has answered.
 */
#ifndef CMD_ANVILD_EXITS_H
#define CMD_ANVILD_EXITS_H

#include <stdint.h>

#include "cmd/anvild/process.h"
#include "lib/base/id.h"

struct exit_entry;
struct exits;
struct supervisor;
struct turn;

/* A runner that has ended and been reaped, or never came to be. */
struct run_exit {
	char spawn_id[ID_HEX32_SIZE];
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
	int64_t shard;
	int64_t attempt;
	struct process_end end;
};

struct exits *exits_new(struct supervisor *s);
struct exits *exits_free(struct exits *x);

/* Reads the rows that an earlier supervisor left.  0 or a storage error. */
int exits_load(struct exits *x, struct turn *t);

/* Room for one end, got before the runner is there: none may be forgotten for want of memory.
 * NULL: there is none; else for exits_add_take() or free(). */
struct exit_entry *exits_reserve(void);

/* Writes the row and removes the process's, in a turn of its own, then tells the shard.  The
 * shard is told even when the row cannot be written, which is tried until it can. */
void exits_add_take(struct exits *x, struct exit_entry *room, const struct run_exit *e);

/* Tells a shard what it has not answered yet; after its connection came up. */
void exits_deliver(struct exits *x, int64_t shard);

/* 1: the store does not know of an end of that project yet. */
int exits_unwritten(const struct exits *x, const char *project_id);

/* How that process ended; NULL when it is not known here (any more). */
const struct process_end *exits_find(const struct exits *x, const char *spawn_id);

#endif
