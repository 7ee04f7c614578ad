/*
 * cmd/anvild/errand.h -- a process that does something long about runs beside the supervisor, and
 * writes a report of it meanwhile.
 *
 * One of a kind at a time.  It is a row of supervisor.db like every other process, ends with the
 * supervisor, and changes nothing of a run.
 */
#ifndef CMD_ANVILD_ERRAND_H
#define CMD_ANVILD_ERRAND_H

#include <sys/types.h>

struct errand;
struct supervisor;
struct turn;

/* ${name} is constant and stands in its row where others have a run.  NULL: no memory. */
struct errand *errand_new(struct supervisor *s, const char *name);
struct errand *errand_free(struct errand *e);

/* As part of a write turn: anvil-run with ${option} and ${argument} (NULL: without), which gets
 * ${input} (-1: none; the caller's) and behind it its report.  None may be under way.  0,
 * E_NOMEM, or as process_start(). */
int errand_start(
    struct errand *e, struct turn *t, const char *option, const char *argument, int input);

int errand_is_under_way(const struct errand *e);
/* Of the process; 0: none. */
pid_t errand_pid(const struct errand *e);
/* Of the newest, which may be writing it; -1: there was none. */
int errand_report(const struct errand *e);
/* How it ended otherwise than it should; NULL: it did not, or is under way. */
const char *errand_failure(const struct errand *e);

#endif
