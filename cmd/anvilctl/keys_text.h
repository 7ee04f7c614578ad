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

/* Parts of that, without an end of line; a lack of memory is in ${out}. */

/* Whose secrets are not in ${s}, and why not. */
void keys_silent(const struct ingress_keys_status_status *s, struct buf *out);
/* What depends on a version that is not there. */
void keys_missing(const struct key_version *v, struct buf *out);
/* Secrets whose version is there with another key, and what that means for ${n} of them. */
int64_t keys_nother(const struct ingress_keys_status_status *s);
void keys_other(int64_t n, struct buf *out);

#endif
