/*
 * cmd/anvil-run/copy.h -- the form --copy: copies the records of runs that nobody executes or
 * serves, one after the other, each under its own lock (for actor.backup and supervisor.copyRuns).
 *
 * Descriptor 5 names the runs, a line each; nothing there: all of data_dir.  Descriptor 6 takes
 * the report, for reading while it is made: COPY_HEAD with how many runs there are, were copied
 * and were not there (any more); then a line for each run that somebody else has ("live RUN"),
 * and that cannot be read ("bad RUN why").  Exit status 0 when no run is left; else the last line
 * is "failed why".
 */
#ifndef CMD_ANVIL_RUN_COPY_H
#define CMD_ANVIL_RUN_COPY_H

#define COPY_FD_RUNS   5
#define COPY_FD_REPORT 6
#define COPY_HEAD      "%012lld %012lld %012lld\n"
#define COPY_HEAD_SIZE 39
#define COPY_NICE      10 /* It is in no hurry, and others are. */

struct proc;
struct actor_copied;

/* The form itself; exit status. */
int copy_runs(struct proc *p);

/* How a run copies itself: struct actor_backup. */
extern const struct actor_backup run_backup;

#endif
