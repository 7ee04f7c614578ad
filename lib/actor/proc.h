/*
 * lib/actor/proc.h -- how a child of the supervisor starts and ends (operations 3).
 *
 * Order: options, descriptors, signals, memory, then proc_actor() (lock, store, socket), then
 * what the program makes, then proc_run() (link to the supervisor, ready, loop, drain).
 *
 * Descriptors: 0 /dev/null; 1, 2 the supervisor's standard error; 3 one JSON object
 * {config, keys, configFile, supervisorPid, bootId}, read to its end and closed; 4 the
 * lifeline, whose end of file means that the supervisor has gone (runs have none); from 5 on
 * what is announced.
 */
#ifndef LIB_ACTOR_PROC_H
#define LIB_ACTOR_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "lib/actor/host.h"
#include "lib/base/base.h"

#define PROC_FD_START        3
#define PROC_FD_LIFELINE     4
#define PROC_FD_FIRST        5
#define PROC_START_MAX_BYTES (4u << 20)

/* A row of a program's command line.  --check, --help and --version are every program's. */
struct proc_option {
	const char *name;  /* "--listen-fds", or "RUN_ID" for a word without a dash.     */
	const char *value; /* Name of its value for --help; NULL: a switch, or a word.   */
	const char *help;
	int required;
};

struct proc_role {
	const char *program; /* "anvil-project" */
	const char *summary; /* One line for --help. */
	const struct proc_option *options;
	size_t noptions;
	int outlives_supervisor; /* 1 (runs): no lifeline, no parent-death signal. */
};

struct proc;

/* Reads options and descriptors; --help, --version and mistakes end the process here (0, 0,
 * 64).  Never NULL.  What goes wrong before there is a log is said on standard error. */
struct proc *proc_start(const struct proc_role *role, int argc, char *argv[]);
/* Value of an option (a switch: ""), NULL when absent. */
const char *proc_option(const struct proc *p, const char *name);
/* As proc_option() for a number within bounds; a bad one ends the process with 64. */
int64_t proc_option_int(
    const struct proc *p, const char *name, int64_t min, int64_t max, int64_t absent);
int proc_wants_check(const struct proc *p);

/* Of descriptor 3, borrowed; keys: NULL when there are none. */
const json_t *proc_config(const struct proc *p);
/* Absolute path of the file that it was read from; NULL: there was none. */
const char *proc_config_file(const struct proc *p);
const json_t *proc_keys(const struct proc *p);
const char *proc_boot_id(const struct proc *p);
/* Forgets the start object, keys wiped as far as they can be; when the program has read it. */
void proc_forget_start(struct proc *p);

/* actor_new() for this process, its log component and its crash note; a failure is logged
 * and ends the process (a locked store: 75; one that is newer: 78 with a note; else 70).  A
 * store that cannot be used for another reason does not: see actor_outage().  ${place}'s
 * supervisor_pid is filled in.  ${data_dir}: for the crash note, NULL: none. */
struct actor *proc_actor(struct proc *p, const struct actor_desc *desc,
    const struct actor_place *place, const char *data_dir);

/* Links to the supervisor, calls supervisor.ready, runs the loop; frees actor and proc and
 * returns the exit status.  ${ctx}: of the actor's methods and callbacks. */
int proc_run(struct proc *p, void *ctx);
/* For a program that only checks: what proc_start() made.  NULL back. */
struct proc *proc_free(struct proc *p);
/* The link to the supervisor; NULL before proc_run(). */
struct link *proc_supervisor(const struct proc *p);

/* Logs `actor_failed` with ${why} and exits with 70. */
void proc_die(struct proc *p, const char *why) NORETURN;

#endif
