/*
 * cmd/anvilctl/follow.h -- a run's log as it grows, and how the run ended.
 */
#ifndef CMD_ANVILCTL_FOLLOW_H
#define CMD_ANVILCTL_FOLLOW_H

#include "cmd/anvilctl/resolve.h"
#include "gen/types.h"

#define FOLLOW_POLL_MS 150

/* Prints the log as far as it goes; with ${until_end}, until the run is over.  Nothing is
 * printed when output is JSON.  *ret_status: the run's, when it was last asked.
 * 0 or a status, explained. */
int follow_log(
    struct ctl *ctl, const struct place *run, int until_end, enum run_status *ret_status);
/* The same as JSON, an object for each line (see rows.h). */
int follow_rows(
    struct ctl *ctl, const struct place *run, int until_end, enum run_status *ret_status);
/* Prints steps and outcome of a run that is over; CTL_OK when it passed, else CTL_REFUSED. */
int follow_outcome(struct ctl *ctl, const struct place *run);

#endif
