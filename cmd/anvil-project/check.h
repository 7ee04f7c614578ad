/*
 * cmd/anvil-project/check.h -- how a shard looks at its own store, and what it mends there.
 */
#ifndef CMD_ANVIL_PROJECT_CHECK_H
#define CMD_ANVIL_PROJECT_CHECK_H

struct actor_check;

extern const struct actor_check shard_checks;

#endif
