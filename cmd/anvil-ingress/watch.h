/*
 * cmd/anvil-ingress/watch.h -- what the ways to watch a run have in common.
 */
#ifndef CMD_ANVIL_INGRESS_WATCH_H
#define CMD_ANVIL_INGRESS_WATCH_H

#include "cmd/anvil-ingress/viewer.h"

/* A line number >= 1, in decimal without leading zeros.  0 or E_INVAL. */
int watch_read_seq(const char *text, int64_t min, int64_t *ret);
/* Query parameter `from`; 0: it is not there.  0, or it has been answered. */
int watch_from(struct exchange *x, int64_t *ret);
/* Whether pages of that origin may use this server (http-api 8.2, 4). */
int watch_origin_is_ours(const struct exchange *x, const char *origin);

/* What viewer_ops asks of a transport that writes into the answer of the request. */
size_t watch_stream_unsent(const struct viewer *v);
void watch_stream_want(struct viewer *v, size_t low);

#endif
