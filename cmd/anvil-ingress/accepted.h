/*
 * cmd/anvil-ingress/accepted.h -- rows of runs that were just accepted, on their way into the
 * index (project 13).
 *
 * The first goes in at once.  Those that follow closely go in together, so that under load the
 * edge does not wait for the disk once for every few runs.  Whoever reads the list of runs has
 * them put in first.  A row that gets lost costs a moment: its shard tells it as well.
 */
#ifndef CMD_ANVIL_INGRESS_ACCEPTED_H
#define CMD_ANVIL_INGRESS_ACCEPTED_H

#include "cmd/anvil-ingress/ingress.h"
#include "gen/types.h"

struct accepted;

/* NULL: no memory. */
struct accepted *accepted_new(struct ingress *in);
struct accepted *accepted_free(struct accepted *a);

/* Copies ${row}.  Not from inside a turn. */
void accepted_add(struct accepted *a, const struct run_row *row);
/* All of them are in the index now.  Not from inside a turn. */
void accepted_flush(struct accepted *a);

#endif
