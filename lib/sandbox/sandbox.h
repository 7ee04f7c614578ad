/*
 * lib/sandbox/sandbox.h -- where steps run, behind one interface (spec run 8 and 9).
 *
 * A driver is a const descriptor in a file of its own: `bwrap` (namespaces by bubblewrap) and
 * `none` (ordinary processes).  A sandbox belongs to one run; it runs one step at a time, each
 * in processes that are all gone when sandbox wait has answered.  Nothing here waits for a
 * process (except probe, as said there), nothing logs, nothing keeps a thread or a loop: the
 * caller polls the pidfd of the process handle and calls wait.
 *
 * The caller has made itself a child subreaper (PR_SET_CHILD_SUBREAPER) and calls spawn and
 * prepare from the thread that lives as long as the process, because the kernel ties
 * parent-death signals to the thread that forked.  While a sandbox `none` is open, every
 * descendant of the process counts as the step's: it has no other children then.
 */
#ifndef LIB_SANDBOX_SANDBOX_H
#define LIB_SANDBOX_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"

#define SANDBOX_LEFT_MAX   10 /* Leftovers that are named; all are counted.              */
#define SANDBOX_NAME_SIZE  16 /* Of a process, as the kernel keeps it.                   */
#define SANDBOX_TEXT_SIZE  512
#define SANDBOX_SHELL_ARGS 8 /* Of sandbox_shell_argv(), with the NULL.                  */

struct sandbox;         /* One run's; each driver has its own. */
struct sandbox_process; /* One step's.                         */

/* What the run is given.  Strings are borrowed for the call; paths are absolute. */
struct sandbox_paths {
	const char *workspace; /* Directories of the run; they exist already.            */
	const char *tmp;
	const char *home;
	const char *objects;     /* The mirror's objects directory, read-only; or NULL.  */
	const char *init_path;   /* The program anvil-init: PID 1 of the sandbox.        */
	const char *const *hide; /* NULL-terminated: data_dir, runtime_dir, configuration
	                          * file or directory, where they lie beneath what the
	                          * sandbox shows (/usr, /etc, /opt ...).  NULL: none.   */
};

struct sandbox_limits {
	/* Held by a cgroup where one can be had, else by rlimits: memory then counts for each
	 * process, and processes are those of the user, in the sandbox or (none) at all. */
	int64_t memory_bytes;  /* runs.step_memory_bytes; 0: none.  */
	int64_t max_processes; /* runs.step_max_processes; 0: none. */
};

/* What to run.  All is borrowed for the call; the arrays end in NULL. */
struct sandbox_step {
	const char *const *argv; /* argv[0] is found along the PATH of env.              */
	const char *const *env;
	const char *dir; /* Relative to the workspace; ".": the workspace itself.     */
	int out_fd;      /* Its stdout and stderr, duplicated: close yours, or the    */
	int err_fd;      /* pipes never end.                                          */
};

/* Why something did not work, for people: "Sandbox could not start: <reason>. <remedy>". */
struct sandbox_problem {
	char reason[SANDBOX_TEXT_SIZE]; /* Without a full stop at its end.  */
	char remedy[SANDBOX_TEXT_SIZE]; /* Whole sentences; may be empty.   */
};

/* A process that a step left running; pid as the step saw it. */
struct sandbox_left {
	pid_t pid;
	char name[SANDBOX_NAME_SIZE];
};

enum sandbox_end {
	SANDBOX_EXITED,       /* `code` is the exit status.                              */
	SANDBOX_SIGNALED,     /* `code` is the signal.                                   */
	SANDBOX_NO_DIRECTORY, /* The working directory is gone or leads outside.         */
	SANDBOX_BROKEN        /* The step never ran: `problem` says why.                 */
};

struct sandbox_result {
	enum sandbox_end end;
	int code;
	int oom;      /* 1: a cgroup reported an OOM kill. */
	size_t nleft; /* All leftovers that were killed.   */
	struct sandbox_left left[SANDBOX_LEFT_MAX];
	struct sandbox_problem problem;
};

struct sandbox_driver {
	const char *name; /* "bwrap", "none" */
	/* Where a step sees what sandbox_paths names.  NULL: at the same path. */
	const char *workspace_at;
	const char *tmp_at;
	const char *home_at;
	const char *objects_at;

	/*
	 * probe(ret): 0, or E_SANDBOX with the reason and the remedy in ${ret}.  Tries it for
	 * real and waits for it (10 ms, 5 s at most): for a supervisor's start, `health` and
	 * explanations, not for each run.
	 */
	int (*probe)(struct sandbox_problem *ret);

	/*
	 * open(paths, limits, ret_sandbox, ret_problem): 0; or E_SANDBOX, E_NOMEM with
	 * ${ret_problem} filled.  Starts no process.  The sandbox is the caller's: close it.
	 */
	int (*open)(const struct sandbox_paths *paths, const struct sandbox_limits *limits,
	    struct sandbox **ret_sandbox, struct sandbox_problem *ret_problem);

	/*
	 * prepare(sandbox): begins to make the surroundings of the next step, so that its
	 * spawn finds them ready.  Optional, repeatable; the directories and the objects must
	 * be at their places by now (the workspace may still be filled).  Failures show at
	 * that step's end.
	 */
	void (*prepare)(struct sandbox *sb);

	/*
	 * spawn(sandbox, step, ret_process, ret_problem):
	 * At most one at a time.  0; E_NOENT: the directory is gone, or leads outside;
	 * E_SANDBOX, E_NOMEM with ${ret_problem} filled.  Faults behind the fork are told by
	 * wait as SANDBOX_BROKEN.
	 */
	int (*spawn)(struct sandbox *sb, const struct sandbox_step *step,
	    struct sandbox_process **ret_process, struct sandbox_problem *ret_problem);

	/* signal(sandbox, sig): to every process of the run, and to none of ours.  0 or
	 * E_SYS.  SIGKILL cannot be outlived. */
	int (*signal)(struct sandbox *sb, int sig);

	/* tend(sandbox): every so often (200 ms) while a step runs; reaps what it has made and
	 * nobody else waits for.  NULL: nothing comes to us before the step's end. */
	void (*tend)(struct sandbox *sb);

	/*
	 * wait(sandbox, process, ret): when sandbox_process_fd() is readable.  0: the step
	 * and all it started are gone, ${ret} is filled, the handle is freed.  E_BUSY: not
	 * yet; call again when readable or after 10 ms (a leftover that takes its time).
	 */
	int (*wait)(
	    struct sandbox *sb, struct sandbox_process *process, struct sandbox_result *ret);

	/*
	 * close(sandbox, pids, npids): kills what is left, and proves that nothing is.  0: no
	 * process is left, the sandbox and its process handle are freed.  E_BUSY: processes
	 * live on; at most ${npids} of their pids (as the host sees them) are in ${pids}, the
	 * rest are 0; call again, as long as you have patience.
	 */
	int (*close)(struct sandbox *sb, pid_t *pids, size_t npids);

	/* Gives the sandbox up without proof; frees it. */
	void (*abandon)(struct sandbox *sb);

	/* describe(sandbox, out, size): lines for the run's log, each ending in a newline:
	 * what is isolated, and which limits are in force by what. */
	void (*describe)(const struct sandbox *sb, char *out, size_t size);
};

extern const struct sandbox_driver sandbox_driver_bwrap;
extern const struct sandbox_driver sandbox_driver_none;

/* Every driver, NULL at the end. */
extern const struct sandbox_driver *const sandbox_drivers[];

/* By name; NULL: there is none. */
const struct sandbox_driver *sandbox_driver_find(const char *name);

/* Becomes readable when the step has ended; stays the handle's. */
int sandbox_process_fd(const struct sandbox_process *process);

/* `bash -e -o pipefail -c <command>`, or `sh -e -c <command>` where there is no bash, into
 * ${argv}; borrows ${command}.  0, or E_NOENT: no shell (both drivers show the host's). */
int sandbox_shell_argv(const char *command, const char *argv[SANDBOX_SHELL_ARGS]);

/*
 * sandbox_open_beneath(root, dir): descriptor (O_PATH) of the directory ${dir} beneath the
 * directory ${root}; symlinks are followed as long as they do not leave it.  -1 with errno.
 */
int sandbox_open_beneath(const char *root, const char *dir);

/*
 * sandbox_remove_tree(dirfd, name): removes the file or tree ${name} beneath ${dirfd}.
 * Directories without permission are given it; symlinks are removed, never followed; a tree of
 * any depth costs the same memory and descriptors.  Goes on after a failure and reports the
 * first.  0 (also when there is none), E_NOMEM, or E_SYS.
 */
int sandbox_remove_tree(int dirfd, const char *name);

/* Kills what is left in the cgroups of runs that were killed, as far as the one that this
 * process is in is shared by them, and removes those; open does so too.  Returns how many still
 * have processes that are about to end. */
size_t sandbox_sweep(void);

/* The program anvil-init, which the drivers run; its main() calls nothing else.  A program
 * that is its own init (a test) calls it first when argv[1] is SANDBOX_INIT_NAME. */
#define SANDBOX_INIT_NAME "anvil-init"
int sandbox_init_main(int argc, char *argv[]);

#endif
