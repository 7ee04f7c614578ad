/*
 * cmd/anvild/salvage.h -- a supervisor.db that is damaged is put aside, and a new one is made.
 *
 * Nothing that anvil has accepted is in it alone: live runs are found by the locks that they
 * hold, dead ones by the shards that ask for them.  What goes is the history.
 */
#ifndef CMD_ANVILD_SALVAGE_H
#define CMD_ANVILD_SALVAGE_H

#include "lib/actor/actor.h"

/* actor_new() for the supervisor; as actor_new(), E_CORRUPT only when the file cannot be put
 * aside. */
int salvage_actor_new(const struct actor_desc *desc, const struct actor_place *place,
    struct actor **ret, char **ret_why);

#endif
