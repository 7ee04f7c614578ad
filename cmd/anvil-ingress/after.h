/*
 * cmd/anvil-ingress/after.h -- what is done about one object, by its id, when a turn is on disk.
 */
#ifndef CMD_ANVIL_INGRESS_AFTER_H
#define CMD_ANVIL_INGRESS_AFTER_H

#include "cmd/anvil-ingress/ingress.h"

/* ${fn} runs once ${t} is on disk, with a copy of ${id} that is gone when it returns; never when
 * the turn is lost.  0 or E_NOMEM. */
int after_commit(struct ingress *in, struct turn *t,
    void (*fn)(struct ingress *in, const char *id), const char *id);

#endif
