/*
 * cmd/anvil-run/check.h -- how a run looks at its own record, and the form --check-all: looks at
 * the records of all runs that nobody executes or serves, each under its own lock, and changes
 * nothing (for supervisor.checkRuns and anvilctl check).
 *
 * Descriptor 5 takes the report, a JSON object a line, for reading while it is made: {"total":N}
 * first; then one for each run: {"runId", "state": looked | live | empty, "projectId", "status",
 * "epoch", "startedAt", "finishedAt", "exitCode", "failureCode", "problems": [{code, subject,
 * text}]}, without what is not there.  Exit status 0 when no run is left; else the last line is
 * {"failed": why}.
 */
#ifndef CMD_ANVIL_RUN_CHECK_H
#define CMD_ANVIL_RUN_CHECK_H

#define CHECK_FD_REPORT 5
#define CHECK_NICE      10 /* It is in no hurry, and others are. */

struct actor_check;
struct proc;

/* The form itself; exit status. */
int check_runs(struct proc *p);
/* The form --check of one run, which prints its line; exit status. */
int check_run(struct proc *p);

/* How a run looks at itself. */
extern const struct actor_check run_checks;

#endif
