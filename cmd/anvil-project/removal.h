/*
 * cmd/anvil-project/removal.h -- projects on their way out (spec project 14, Remove).
 */
#ifndef CMD_ANVIL_PROJECT_REMOVAL_H
#define CMD_ANVIL_PROJECT_REMOVAL_H

struct removals;
struct shard;
struct turn;

struct removals *removals_new(struct shard *s);
struct removals *removals_free(struct removals *m);

/* In a read turn outside of any batch: moves the next project on, one at a time. */
int removals_pump(struct removals *m, struct turn *t);

#endif
