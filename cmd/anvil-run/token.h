/*
 * cmd/anvil-run/token.h -- the project's repository token, out of its seal (spec run 4, row 2).
 */
#ifndef CMD_ANVIL_RUN_TOKEN_H
#define CMD_ANVIL_RUN_TOKEN_H

#include "gen/project.h"
#include "lib/actor/actor.h"
#include "lib/base/buf.h"

/* Appends the token to ${out}, which the caller wipes; nothing when ${sealed} is NULL.  The
 * keys of the start object are read for it; the caller forgets that object then.
 * 0, E_NOKEY (its version was not given), E_SEAL, E_INVAL (the keys make no sense), E_NOMEM. */
int token_unseal(
    struct proc *p, const char *project_id, const struct sealed_value *sealed, struct buf *out);

#endif
