/*
 * cmd/anvil-ingress/keys.h -- the master keys as they are now (spec webhooks 12).
 *
 * They come with the start object, and newer sets, each a sealed memory file, over a socket that
 * only the supervisor has the other end of.  A set is taken whole; versions that are in it stay
 * usable, whatever is current.
 */
#ifndef CMD_ANVIL_INGRESS_KEYS_H
#define CMD_ANVIL_INGRESS_KEYS_H

#include "cmd/anvil-ingress/ingress.h"

/* Takes the keys of the start object; without usable ones everything works that has no secret
 * in it.  0 or E_NOMEM. */
int keys_read_start(struct ingress *in);

/* Listens to in->keys_fd (-1: there is no socket), of which it is the owner now.  NULL: out of
 * memory. */
struct key_socket *keys_listen(struct ingress *in);
struct key_socket *keys_unlisten(struct key_socket *k);

#endif
