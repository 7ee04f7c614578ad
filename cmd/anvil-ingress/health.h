/*
 * cmd/anvil-ingress/health.h -- how the others are, asked every second (http-api 12).
 */
#ifndef CMD_ANVIL_INGRESS_HEALTH_H
#define CMD_ANVIL_INGRESS_HEALTH_H

#include "cmd/anvil-ingress/ingress.h"

/* Starts asking.  NULL: no memory. */
struct health *health_new(struct ingress *in);
struct health *health_free(struct health *h);

#endif
