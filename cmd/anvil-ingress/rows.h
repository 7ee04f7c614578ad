/*
 * cmd/anvil-ingress/rows.h -- the same run, step, line or project in the words of the index, of
 * the contract between actors, and of the HTTP API.  Texts are borrowed from what is translated.
 */
#ifndef CMD_ANVIL_INGRESS_ROWS_H
#define CMD_ANVIL_INGRESS_ROWS_H

#include "gen/http.h"
#include "gen/types.h"
#include "lib/index/index.h"

struct index_run rows_index_run(const struct run_row *r);
struct run_row rows_run_row(const struct index_run *r);
struct http_run_summary rows_summary(const struct run_row *r);
struct http_run_step rows_step(const struct step_row *s);
struct http_log_event rows_line(const struct log_row *l);
struct index_project rows_index_project(const struct project_config *c, int64_t shard);
struct project_config rows_project_config(const struct index_project *p);

/* A copy whose texts live in the arena.  0 or E_NOMEM. */
int rows_copy_run(struct arena *a, const struct run_row *from, struct run_row *ret);

#endif
