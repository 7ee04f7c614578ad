/*
 * cmd/anvild/surplus.h -- shards that the configuration leaves out, and who lives in them.
 */
#ifndef CMD_ANVILD_SURPLUS_H
#define CMD_ANVILD_SURPLUS_H

#include <stddef.h>

struct supervisor;

/* Asks `anvil-project N --check` for each store of a shard that will not run.  0, or E_BUSY: ${why}
 * lists the projects to move first; or E_SYS when a store cannot be asked. */
int surplus_check(const struct supervisor *s, char *why, size_t size);
/* The same for who only looks at the configuration: names on standard error the stores that would
 * be left out, without asking what is in them. */
void surplus_note(const struct supervisor *s);
/* Asks the shards that the next start is to do without (s->shards_wanted) which projects they
 * hold, and logs those: that start would be refused. */
void surplus_warn(struct supervisor *s);

#endif
