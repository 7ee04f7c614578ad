/*
 * cmd/anvil-ingress/check.h -- how ingress looks at its own store, and what it mends there.
 */
#ifndef CMD_ANVIL_INGRESS_CHECK_H
#define CMD_ANVIL_INGRESS_CHECK_H

struct actor_check;

extern const struct actor_check ingress_checks;

#endif
