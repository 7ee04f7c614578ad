/*
 * cmd/anvil-project/syncer.h -- the index hears of every change until it has confirmed it
 * (spec project 13).
 */
#ifndef CMD_ANVIL_PROJECT_SYNCER_H
#define CMD_ANVIL_PROJECT_SYNCER_H

struct shard;
struct syncer;
struct turn;

struct syncer *syncer_new(struct shard *s);
struct syncer *syncer_free(struct syncer *y);
/* 1: the index owes an answer about that project or a run of it. */
int syncer_busy(const struct syncer *y, const char *project_id);

/* In a read turn outside of any batch, so that what it reads is on disk: sends what is due.
 * One call of each kind is in flight at a time. */
int syncer_pump(struct syncer *y, struct turn *t);

#endif
