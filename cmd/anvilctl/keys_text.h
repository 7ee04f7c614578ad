/*
 * cmd/anvilctl/keys_text.h -- what the state of the key means to who runs anvil.
 */
#ifndef CMD_ANVILCTL_KEYS_TEXT_H
#define CMD_ANVILCTL_KEYS_TEXT_H

#include "gen/ingress.h"
#include "lib/base/buf.h"

/* Adds sentences, a line each: how far the sealing is, what may be removed from the keys file,
 * what cannot be opened and what helps.  0 or E_NOMEM. */
int keys_text(const struct ingress_keys_status_status *s, struct buf *out);

#endif
