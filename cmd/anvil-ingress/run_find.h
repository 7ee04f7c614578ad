/*
 * cmd/anvil-ingress/run_find.h -- which run a path names, and whether it is the user's
 * (http-api 7).
 */
#ifndef CMD_ANVIL_INGRESS_RUN_FIND_H
#define CMD_ANVIL_INGRESS_RUN_FIND_H

#include "cmd/anvil-ingress/exchange.h"

/* What is known of a run before its own actor has been asked. */
struct run_known {
	struct run_row row; /* Texts in the exchange's arena.          */
	int of_ledger;      /* Else of the index, which may be behind. */
};

/* Finds the run of the path's first parameter, fills ${k} (zeroed; it stays) and x->project, and
 * calls ${next}; or answers. */
typedef void run_find_fn(struct exchange *x, struct run_known *k);
void run_find(struct exchange *x, struct run_known *k, run_find_fn *next);

#endif
