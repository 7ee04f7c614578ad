/*
 * cmd/anvild/removal.h -- projects whose files go: run folders and mirror (spec project 14).
 *
 * Nothing of it is remembered but in ended_runs, whose rows go behind the folders: whoever asks
 * again goes on with what is left.
 */
#ifndef CMD_ANVILD_REMOVAL_H
#define CMD_ANVILD_REMOVAL_H

#include <stdint.h>

struct parked;
struct removals;
struct supervisor;

#define REMOVAL_MS 60000 /* for a caller that gives no deadline */

struct removals *removals_new(struct supervisor *s);
/* Who waits is answered; a tree that is being removed is not waited for. */
struct removals *removals_free(struct removals *m);

/* Takes ${waiter}, who is answered `ok` when nothing of the project is in data_dir any more and
 * that is durable, or E_DEADLINE; E_CANCELED when the same is asked anew.  Runs of the project
 * that are still executed are waited for, those that are served stop being so.  0 or E_NOMEM:
 * then the waiter is still the caller's. */
int removals_ask(
    struct removals *m, const char *project_id, int64_t deadline_ms, struct parked *waiter);

#endif
