/*
 * cmd/anvil-ingress/auth.h -- sessions (http-api 3) and log tickets (http-api 8.2).
 */
#ifndef CMD_ANVIL_INGRESS_AUTH_H
#define CMD_ANVIL_INGRESS_AUTH_H

#include "cmd/anvil-ingress/exchange.h"

#define AUTH_BEARER_MAX 128 /* Longer ones are no session id. */

/* Takes the session id out of an Authorization header.  0; E_NOENT: another scheme, or none,
 * or nothing behind it; E_RANGE: longer than any session id. */
int auth_bearer(const char *header, char out[AUTH_BEARER_MAX]);

/* Fills x->user, and refreshes a session that ends soon.  0, or it has been answered. */
int auth_check(struct exchange *x);

/* Uses ${ticket} up, whatever it turns out to be good for, fills x->user, and calls ${next} once
 * that is on disk; or answers.  NULL: none was given. */
void auth_use_ticket(struct exchange *x, const char *ticket, const char *run_id,
    void (*next)(struct exchange *x));

/* Makes a session in this turn and the answer that tells it, for `POST login` and `accept`. */
int
auth_begin_session(struct exchange *x, struct turn *t, const struct index_user *u, int status);

#endif
