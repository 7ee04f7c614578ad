/*
 * cmd/anvil-ingress/hub_row.h -- what ledger and index say of a run that is being watched, for
 * the times when it cannot speak for itself: before it starts, and when its store is gone.
 */
#ifndef CMD_ANVIL_INGRESS_HUB_ROW_H
#define CMD_ANVIL_INGRESS_HUB_ROW_H

#include "cmd/anvil-ingress/hub.h"

struct turn;

/* Of a new hub.  0 or E_NOMEM. */
int hub_keep_row(struct hub *h, const struct run_known *k);
/* Looks into the index. */
int hub_is_queued(struct hub *h);
/* The run has no store: tells what the index says.  1: that is not the end of it. */
int hub_on_absent(struct hub *h);
/* Timer: its row has been terminal for a while. */
void hub_on_settle(void *hub);

/* In a turn that changes the row of a run: its hub, if there is one, hears of it behind the
 * commit. */
void hub_row_changes(struct ingress *in, struct turn *t, const char *run_id);

/* ---- of hub.c ---- */

/* Takes what is in ${json}. */
void hub_set_state_take(struct hub *h, struct buf *json);
void hub_fill_all(struct hub *h);

#endif
