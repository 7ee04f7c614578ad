/*
 * lib/actor/options.h -- the command line of a program, by its table.
 */
#ifndef LIB_ACTOR_OPTIONS_H
#define LIB_ACTOR_OPTIONS_H

#include "lib/actor/proc.h"

#define PROC_OPTIONS_MAX 12
#define PROC_EXIT_USAGE  64

struct options {
	const char *values[PROC_OPTIONS_MAX]; /* By the row; NULL: absent. */
	int check;
};

/* --help, --version and mistakes end the process. */
void options_read(struct options *o, const struct proc_role *role, int argc, char *argv[]);
void
options_usage(const struct proc_role *role, const char *fmt, ...) PRINTF_LIKE(2, 3) NORETURN;

#endif
