/*
 * cmd/anvil-ingress/seal.h -- what clients bring in secret, sealed before it goes on (design 8).
 */
#ifndef CMD_ANVIL_INGRESS_SEAL_H
#define CMD_ANVIL_INGRESS_SEAL_H

#include "cmd/anvil-ingress/ingress.h"

/* The repository token of a project; vault_sealed_done() follows.  0, E_NOKEY: there is no
 * usable key, E_NOMEM. */
int seal_repo_token(const struct ingress *in, const char *project_id, const char *token,
    struct vault_sealed *ret);

#endif
