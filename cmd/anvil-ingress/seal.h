/*
 * cmd/anvil-ingress/seal.h -- what clients bring in secret, sealed before it goes on, and the
 * one kind of it that is opened here (design 8).
 */
#ifndef CMD_ANVIL_INGRESS_SEAL_H
#define CMD_ANVIL_INGRESS_SEAL_H

#include "cmd/anvil-ingress/ingress.h"

struct sealed_secret;

/* The repository token of a project; vault_sealed_done() follows.  0, E_NOKEY: there is no
 * usable key, E_NOMEM. */
int seal_repo_token(const struct ingress *in, const char *project_id, const char *token,
    struct vault_sealed *ret);

/* The secret of a webhook (webhooks 11), ${n} bytes; as above. */
int seal_webhook_secret(const struct ingress *in, const char *project_id,
    const char *webhook_id, const char *secret, size_t n, struct vault_sealed *ret);
/* Appends the plain secret to ${out}, which the caller wipes.  0, E_NOKEY: there is no key of
 * its version, E_SEAL: it is not what was sealed for this webhook, E_NOMEM. */
int seal_open_webhook_secret(const struct ingress *in, const char *project_id,
    const char *webhook_id, const struct vault_sealed *sealed, struct buf *out);

/* Whether the secret of a row opens.  0, E_NOKEY: there is no key of its version, E_SEAL: it is
 * not what was sealed for this row, E_UNSUPPORTED: no secrets are known there, E_NOMEM. */
int seal_check(const struct ingress *in, const struct sealed_secret *row);
/* The same secret under the current version, for the same row; vault_sealed_done() follows.
 * As above. */
int
seal_anew(const struct ingress *in, const struct sealed_secret *row, struct vault_sealed *ret);

#endif
