/*
 * lib/ledger/mend.h -- what a shard does about a breach, when that is safe (spec project 19).
 */
#ifndef LIB_LEDGER_MEND_H
#define LIB_LEDGER_MEND_H

#include "lib/ledger/queue.h"
#include "lib/ledger/run.h"

/* Mends the breach ${code} of ${subject}; what is sound stays as it is:
 *
 *   no_head           the first of the queue is promoted
 *   project_next_seq  goes on behind the highest number
 *   run_row           columns that follow from its status are made to; a row with which that
 *                     cannot be done is set aside whole, and its run stands as it had ended,
 *                     else as failed, or as canceled while another run is at the head; one that
 *                     had ended waits until there is none.  A claimed run is never set aside: its
 *                     process may live.
 *
 * *ret_mended tells whether it did; *ret_promoted what became the head of its project.  0 or a
 * storage error. */
int ledger_mend(const struct ledger_at *at, const char *code, const char *subject,
    int *ret_mended, struct ledger_promoted *ret_promoted);

#endif
