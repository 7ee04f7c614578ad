/*
 * cmd/anvild/check.h -- how the supervisor looks at its own store, at the files of runs, and lets
 * a process look at the records of runs that nobody has open (supervisor.checkRuns).
 *
 * The process is one at a time, a row of supervisor.db like every other, ends with the
 * supervisor, and changes nothing of a run.
 */
#ifndef CMD_ANVILD_CHECK_H
#define CMD_ANVILD_CHECK_H

#include <stdint.h>
#include <sys/types.h>

struct actor_check;
struct checks;
struct store_problems;
struct supervisor;

struct checks *checks_new(struct supervisor *s);
struct checks *checks_free(struct checks *c);

/* Of the process; 0: none. */
pid_t checks_pid(const struct checks *c);
/* Nobody waits for it any more. */
void checks_stop(struct checks *c);

/* What is wrong in supervisor.db, by schema/supervisor.rules.def; for any thread. */
int supervisor_look(const char *path, int64_t now_ms, struct store_problems *ret);

extern const struct actor_check supervisor_checks;

#endif
