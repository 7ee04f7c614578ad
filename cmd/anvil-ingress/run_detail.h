/*
 * cmd/anvil-ingress/run_detail.h -- the answer of `GET /api/private/runs/{runId}` (http-api 7).
 */
#ifndef CMD_ANVIL_INGRESS_RUN_DETAIL_H
#define CMD_ANVIL_INGRESS_RUN_DETAIL_H

#include "cmd/anvil-ingress/run_find.h"

/* Asks the run actor, and answers 200 with what it says over ${k}; no status is behind that of
 * ${k}.  The row is copied, its texts live in the exchange's arena. */
void run_detail_answer(struct exchange *x, const struct run_known *k);

#endif
