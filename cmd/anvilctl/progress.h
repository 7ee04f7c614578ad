/*
 * cmd/anvilctl/progress.h -- one line on the terminal that tells how far a long command is.
 */
#ifndef CMD_ANVILCTL_PROGRESS_H
#define CMD_ANVILCTL_PROGRESS_H

#include "lib/base/base.h"
#include "lib/base/clock.h"

#define PROGRESS_EVERY_MS 100

struct progress {
	int on;    /* Standard error is a terminal, and nobody reads JSON. */
	int shown; /* There is a line to take away. */
	struct mono_time last;
};

void progress_init(struct progress *p, int json);
/* Replaces the line, at most every PROGRESS_EVERY_MS. */
void progress_say(struct progress *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Takes the line away; before anything else is printed. */
void progress_end(struct progress *p);

#endif
