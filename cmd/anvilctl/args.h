/*
 * cmd/anvilctl/args.h -- from a command line to a command, its words and its options.
 *
 * Options may stand anywhere; `--option=value` and `--` are understood.
 */
#ifndef CMD_ANVILCTL_ARGS_H
#define CMD_ANVILCTL_ARGS_H

#include <stddef.h>

#define ARGS_OPTIONS_MAX 8
#define ARGS_WORDS_MAX   32
#define ARGS_WHY_SIZE    256

struct ctl;
struct args;

struct option_row {
	const char *name;  /* "--branch"            */
	char letter;       /* 'b' for -b; 0: none.  */
	const char *value; /* "B"; NULL: a switch.  */
	const char *help;
};

/* One command; each is a const object of its file, listed in commands.c. */
struct command {
	const char *name;    /* "ps", "user list"                     */
	const char *words;   /* Of the usage line: "ACTOR [METHOD]"    */
	const char *summary; /* One line.                             */
	const char *more;    /* Further text of its help; NULL: none. */
	size_t min_words, max_words;
	const struct option_row *options;
	size_t noptions;
	int (*run)(struct ctl *ctl, const struct args *args); /* Exit status. */
};

enum global {
	GLOBAL_DIR,
	GLOBAL_CONFIG,
	GLOBAL_JSON,
	GLOBAL_HELP,
	GLOBAL_VERSION,
	GLOBAL_COUNT
};
extern const struct option_row args_globals[GLOBAL_COUNT];

struct args {
	const struct command *command; /* NULL: none was named. */
	const char *group;             /* "user" of `user --help` alone; NULL otherwise. */
	const char *words[ARGS_WORDS_MAX];
	size_t nwords;
	const char *globals[GLOBAL_COUNT];    /* NULL: not given; a switch is "". */
	const char *values[ARGS_OPTIONS_MAX]; /* By row of the command.           */
};

/* ${commands} ends with NULL; ${argv} without the program's name.  0; or E_INVAL with what is
 * wrong in ${why} (and the command in ${ret}, when one was recognised). */
int args_parse(struct args *ret, const struct command *const *commands, int argc,
    char *const argv[], char why[ARGS_WHY_SIZE]);

/* Value of ${name}, "" for a switch; NULL: not given. */
const char *args_value(const struct args *args, const char *name);
/* A decimal number from ${min} to ${max}, nothing around it.  0 or E_INVAL. */
int args_number(const char *text, long min, long max, long *ret);

#endif
