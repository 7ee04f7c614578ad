/*
 * test/bench/system.h -- a whole anvil in a scratch directory, as an account without rights.
 */
#ifndef TEST_BENCH_SYSTEM_H
#define TEST_BENCH_SYSTEM_H

#include <sys/types.h>

#include <jansson.h>

#include "test/bench/web.h"

struct client;

struct system {
	char dir[64]; /* Scratch; bin/ has copies of the programs. */
	pid_t pid;    /* Of anvild; 0: it does not run.            */
	int port;
	char session[64];
	struct client *ctl;
	struct web web;
	int prober; /* Socket to the process that kept its rights; see system_memory(). */
};

/* Makes the scratch directory below $TMPDIR, copies the programs of $ANVIL_BUILD (build/release)
 * into it, and, started as root, becomes nobody for good. */
void system_prepare(struct system *s);
/* Starts anvild with two shards, waits until it is well, makes a user and logs in. */
void system_start(struct system *s, const char *sandbox, int slots);
/* Everything ends at once, as by a power cut; the stores stay. */
void system_cut(struct system *s);
/* Starts anvild once more, and waits for nothing. */
void system_again(struct system *s);
/* Ends anvild and every run, and removes its stores. */
void system_stop(struct system *s);
/* Removes the scratch directory. */
void system_done(struct system *s);

/* A repository of ${nfiles} files and this .anvil.yml, in one commit; its URL. */
void system_repository(
    struct system *s, const char *name, int nfiles, const char *yml, char url[160]);
/* A project of that URL; its id. */
void system_project(struct system *s, const char *slug, const char *url, char id[32]);
/* Triggers; the run's id. */
void system_trigger(struct system *s, const char *project_id, char run_id[32]);
/* Until the newest run of the project has ended, as the list of its runs shows it, asked each
 * ${pause_us}.  0: passed; -1: it ended otherwise, or not within ${limit_s}. */
int system_await(
    struct system *s, const char *project_id, const char *run_id, int pause_us, int limit_s);

/* One call in the role ctl; ${params} as text.  The result is owned by the caller; NULL: it
 * failed, which the second one tells. */
json_t *
system_rpc_try(struct system *s, const char *address, const char *method, const char *params);
json_t *
system_rpc(struct system *s, const char *address, const char *method, const char *params);

/* Kilobytes of ${pid}: proportional set size, and the highest resident size so far. */
struct memory {
	long pss_kb, peak_kb;
};
int system_memory(struct system *s, pid_t pid, struct memory *ret);
/* Pid of an actor, 0: there is none. */
pid_t system_pid(struct system *s, const char *address);
/* The same of the process that executes a run. */
pid_t system_run_pid(struct system *s, const char *run_id);

/* Runs a program and waits; its exit status.  Output goes to /dev/null. */
int system_run(const char *const *argv, const char *dir);

#endif
