/*
 * cmd/anvil-run/journal.h -- state changes and system lines of the run, as jobs of the
 * recorder.  All are stored in the order of the calls; output that was read before a call is
 * stored before it.
 *
 * ${then}(r), where it is given, runs on the loop when the change is on disk.  It does not run
 * when the change turned out to be impossible: then the run has been told so already (its
 * store belongs to another claim: lost; anything else: internal_unexpected).
 */
#ifndef CMD_ANVIL_RUN_JOURNAL_H
#define CMD_ANVIL_RUN_JOURNAL_H

#include "cmd/anvil-run/run.h"

typedef void journal_fn(struct run_actor *r);

/* Opens the store and makes the run `starting`, with ${lines} (may be NULL) in the log, each
 * ended by a newline.  ${ended} runs instead when it had ended before: r->ending says how. */
void journal_claim(struct run_actor *r, const char *lines, journal_fn *then, journal_fn *ended);
void journal_commit(struct run_actor *r, journal_fn *then);
/* The steps of r->pipeline, then `running`. */
void journal_begin(struct run_actor *r, journal_fn *then);
/* The step r->step has ended with r->last_exit; a next one is running then. */
void journal_end_step(struct run_actor *r, int passed, journal_fn *then);
/* cancel_requested at r->cancel_at_ms; canceling, when the processes have been told. */
void journal_cancel_requested(struct run_actor *r);
void journal_canceling(struct run_actor *r);

/* A system line of the step r->step if one runs, else of none. */
void journal_note(struct run_actor *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The archive is complete and on disk.  ${then} runs in any case. */
void journal_finish_log(struct run_actor *r, journal_fn *then);
/* The end: r->ending gets what is stored.  ${then} runs with it; a store that cannot be made
 * terminal ends the process. */
void journal_finish(struct run_actor *r, const struct record_outcome *o, journal_fn *then);
/* failed / runner_lost, unless it has ended.  ${then} runs in any case. */
void journal_lose(struct run_actor *r, const char *message, journal_fn *then);
/* Removes what the run left in its directory.  ${then} runs in any case. */
void journal_remove_trees(struct run_actor *r, journal_fn *then);

#endif
