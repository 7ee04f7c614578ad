/*
 * cmd/anvil-ingress/query.h -- values of query parameters.
 */
#ifndef CMD_ANVIL_INGRESS_QUERY_H
#define CMD_ANVIL_INGRESS_QUERY_H

#include <stdint.h>

/* Decimal digits without a leading zero or sign, within bounds.  0 or E_INVAL. */
int query_number(const char *text, int64_t min, int64_t max, int64_t *ret);
/* "0" or "1".  0 or E_INVAL. */
int query_flag(const char *text, int *ret);

#endif
