/*
 * cmd/anvild/history.h -- starts, ends and restarts, the newest thousand, in supervisor.db.
 */
#ifndef CMD_ANVILD_HISTORY_H
#define CMD_ANVILD_HISTORY_H

#include <stdint.h>
#include <sys/types.h>

struct process_end;
struct turn;

#define HISTORY_ROWS 1000

struct history_entry {
	const char *address;
	const char *event; /* started ready exited restarting failing recovered stopped */
	pid_t pid;         /* 0: none                                                  */
	int64_t uptime_ms; /* below 0: none                                            */
	const struct process_end *end; /* NULL: none                                   */
	const char *reason;            /* NULL: none                                   */
};

/* Part of a write turn.  0 or a storage error. */
int history_add(struct turn *t, const struct history_entry *e);

#endif
