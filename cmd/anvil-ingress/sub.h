/*
 * cmd/anvil-ingress/sub.h -- one subscription at a run's actor (run 14); embedded in what it is
 * for.
 */
#ifndef CMD_ANVIL_INGRESS_SUB_H
#define CMD_ANVIL_INGRESS_SUB_H

#include <stdint.h>

#include "gen/run.h"

struct rpc_peer;
struct sub;
struct sub_call;

struct sub_ops {
	/* Once, unless it is closed before.  ${ok} NULL: it came to nothing, with ${err}. */
	void (*on_answer)(struct sub *s, int err, const struct run_subscribe_ok *ok);
	/* Behind the answer, in order; the items are gone when this returns. */
	void (*on_items)(struct sub *s, const struct run_item *items, size_t n);
};

/* Zeroed, it is closed. */
struct sub {
	const struct sub_ops *ops;
	struct rpc_peer *peer; /* A reference; NULL: closed. */
	int64_t id;            /* 0: not answered. */
	struct sub_call *call; /* Until it is. */
};

/* From the line ${from} on; 0: from whatever is hot.  0, or an error and it is closed. */
int sub_open(struct sub *s, const struct sub_ops *ops, struct rpc_peer *peer, int64_t from);
/* Nothing more comes; tells the run when ${tell}. */
void sub_close(struct sub *s, int tell);
int sub_is_open(const struct sub *s);
/* All lines up to ${seq} have been taken. */
void sub_ack(const struct sub *s, int64_t seq);
/* 1 when events of ${id} over ${peer} are its own. */
int sub_owns(const struct sub *s, const struct rpc_peer *peer, int64_t id);

#endif
