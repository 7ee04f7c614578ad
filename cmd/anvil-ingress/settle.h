/*
 * cmd/anvil-ingress/settle.h -- chores: projects whose making was left open, old rows.
 */
#ifndef CMD_ANVIL_INGRESS_SETTLE_H
#define CMD_ANVIL_INGRESS_SETTLE_H

#include "cmd/anvil-ingress/ingress.h"

/* Starts the timers.  0 or E_NOMEM. */
int settle_begin(struct ingress *in);

#endif
