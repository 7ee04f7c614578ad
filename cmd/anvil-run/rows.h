/*
 * cmd/anvil-run/rows.h -- rows of the record as the contract has them.
 */
#ifndef CMD_ANVIL_RUN_ROWS_H
#define CMD_ANVIL_RUN_ROWS_H

#include <stddef.h>

#include "gen/types.h"
#include "lib/record/record.h"

#define ROWS_ID_SIZE 64

/* They live in ${a} and lend from ${steps} and ${run_id}.  NULL: no memory. */
const struct step_row *
rows_steps(struct arena *a, const char *run_id, const struct record_step *steps, size_t n);
/* The same of a line; its id is written to ${id}. */
struct log_row
rows_line(const char *run_id, const struct record_row *line, char id[ROWS_ID_SIZE]);
/* What viewers see of the run. */
struct run_live rows_live(const struct record_run *run);

#endif
