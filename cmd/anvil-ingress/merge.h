/*
 * cmd/anvil-ingress/merge.h -- one picture of a run from its ledger or index and from its own
 * actor (http-api 7, run 14).  Plain functions over values.
 */
#ifndef CMD_ANVIL_INGRESS_MERGE_H
#define CMD_ANVIL_INGRESS_MERGE_H

#include "cmd/anvil-ingress/runlink.h"
#include "gen/http.h"
#include "gen/run.h"

int merge_is_terminal(enum run_status s);

/* The newer one of what ledger and index say: a terminal one, else the higher rev. */
const struct run_row *merge_newer(const struct run_row *a, const struct run_row *b);

/* ${detail} is that of the run actor with ${store} RUNLINK_UP, else NULL.  Steps and lines come
 * from ${steps} and ${events}, of the sizes that ${detail} has. */
struct http_run_detail merge_detail(const struct run_row *truth, enum runlink_verdict store,
    const struct run_get_detail_detail *detail, struct http_run_step *steps,
    struct http_log_event *events);

#endif
