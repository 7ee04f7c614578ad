/*
 * cmd/anvild/copies.h -- a process that copies the records of runs that nobody has open
 * (supervisor.copyRuns), and how far it is.
 *
 * One at a time.  It is a row of supervisor.db like every other process, ends with the
 * supervisor, and changes nothing of a run.
 */
#ifndef CMD_ANVILD_COPIES_H
#define CMD_ANVILD_COPIES_H

#include <sys/types.h>

struct copies;
struct supervisor;

struct copies *copies_new(struct supervisor *s);
struct copies *copies_free(struct copies *c);

/* Of the process; 0: none. */
pid_t copies_pid(const struct copies *c);
/* Nobody waits for it any more. */
void copies_stop(struct copies *c);

#endif
