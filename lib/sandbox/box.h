/*
 * lib/sandbox/box.h -- what the drivers and anvil-init share; private to lib/sandbox.
 *
 * A driver and its init talk over a SOCK_SEQPACKET socket pair, one datagram a message, its
 * kind first.  Both are of one build and on one host, so numbers are native; all the same
 * every length and count is checked, because a step may get hold of its init.
 */
#ifndef LIB_SANDBOX_BOX_H
#define LIB_SANDBOX_BOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/sandbox/cgroup.h"
#include "lib/sandbox/sandbox.h"

#define BOX_ORDER_MAX    65536 /* Bytes of one message.                  */
#define BOX_WORDS_MAX    512   /* argv and env together, with the NULLs. */
#define BOX_FDS          3     /* out, err, directory (none only).       */
#define BOX_WORKSPACE_AT "/workspace"

/* Descriptors of a fresh init. */
#define BOX_CTL_FD  3
#define BOX_INIT_FD 4

enum box_kind {
	BOX_STEP = 1, /* driver: box_step, strings, descriptors: run this      */
	BOX_SIGNAL,   /* driver: box_signal                                    */
	BOX_HELLO,    /* init: the surroundings stand; credentials tell its pid */
	BOX_REPORT    /* init: the step's end, and the init's own              */
};

struct box_step {
	uint32_t kind;
	uint32_t argc, envc; /* Strings behind: argv, env, then the directory. */
	uint32_t text_bytes; /* All of them with their NULs.                   */
	uint64_t memory_bytes;
	uint64_t max_processes;
};

struct box_signal {
	uint32_t kind;
	int32_t sig;
};

struct box_report {
	uint32_t kind;
	uint32_t end;   /* enum sandbox_end                           */
	int32_t status; /* As of waitpid(2): EXITED and SIGNALED.     */
	int32_t err;    /* errno: BROKEN.                             */
	uint32_t nleft;
	struct sandbox_left left[SANDBOX_LEFT_MAX];
};

/* One step's processes, or those that wait for their step. */
struct sandbox_process {
	uint32_t magic;
#define SANDBOX_PROCESS_MAGIC 0x6b0c5a91
	pid_t pid; /* Our child: bwrap, or the shell itself. */
	int pidfd;
	int ctl_fd;    /* To the init.                                     */
	int errors_fd; /* What bwrap writes: a memory file.                */
	int ended;     /* `status` is pid's.                               */
	int status;
	int greeted; /* bwrap: the init said hello.                        */
	int ordered; /* A step was ordered.                                */
	pid_t init;  /* bwrap: as the host sees it; 0: not known.          */
	int init_pidfd;
	int init_gone; /* It had ended before it could be looked at. */
	int reported;
	struct box_report report;
	/* none: what was seen alive after the end. */
	struct proc_seen *seen; /* Owned. */
	size_t nseen;
	size_t seen_cap;
	size_t calm; /* Scans in a row that found nothing. */
};

/* box.c */
struct sandbox_process *box_process_new(void);
struct sandbox_process *box_process_free(struct sandbox_process *p);
DEFINE_CLEANUP(struct sandbox_process *, box_process_free)

/* fork(2), and in the child: ${groups} (NULL: none), descriptors 0 (null), 1 and 2 (errors_fd),
 * 3 (${ctl}) and 4 (${init_fd}) and no others, own session, then ${argv}, with an empty
 * environment.  argv[0] "" executes ${init_fd}, and asks for KILL when this thread ends.  A
 * child that cannot do it says so in errors_fd and exits.  0, E_NOMEM, E_SYS. */
int box_start(struct sandbox_process *p, const char *const argv[], int init_fd,
    const struct cgroup *groups);

/* Sends the order for ${step} with ${fds}: out, err, and the directory, which may be -1.  0,
 * E_NOMEM, E_TOO_BIG, or E_SYS (nobody is there any more). */
int box_order(struct sandbox_process *p, const struct sandbox_step *step,
    const struct sandbox_limits *limits, const int fds[BOX_FDS]);
int box_send_signal(struct sandbox_process *p, int sig);
/* Takes what the init has said. */
void box_listen(struct sandbox_process *p);
/* 1: our child has ended and is reaped. */
int box_reap(struct sandbox_process *p);
/* What the child said in errors_fd before it was another program: its first line, or "". */
void box_said(const struct sandbox_process *p, char *out, size_t size);
/* Result of a report, or of a child that ended without one. */
void box_result(const struct sandbox_process *p, struct sandbox_result *ret);

void box_problem(struct sandbox_problem *ret, const char *remedy, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* "Limits: memory 4096 bytes (cgroup v2); processes 4096 (RLIMIT_NPROC)." for describe. */
void box_describe_limits(
    const struct sandbox_limits *limits, const struct cgroup *groups, char *out, size_t size);
/* Those that no group holds. */
struct sandbox_limits
box_rlimits(const struct sandbox_limits *limits, const struct cgroup *groups);

/* proc.c: processes that descend from this one. */
struct proc_seen {
	pid_t pid;
	pid_t parent;
	char state;
	uint64_t start_ticks;
	char name[SANDBOX_NAME_SIZE];
};

/* All descendants, zombies too, as a new array that the caller frees.  0, E_NOMEM, E_SYS. */
int proc_descendants(struct proc_seen **ret_list, size_t *ret_n);
/* 0, or E_NOENT: it has ended, or cannot be looked at.  Allocates nothing. */
int proc_look(pid_t pid, struct proc_seen *ret);
/* Sends ${sig} to just that process; a pid used again by another is left alone. */
void proc_signal(const struct proc_seen *p, int sig);
/* KILL to each child at the moment that it is read, for those that are gone before a look at
 * all processes is over.  A kernel that does not list children has none for it. */
void proc_kill_children(void);

/* bwrap_args.c */
struct bwrap_args;
/* The whole command, NULL at its end, for paths and this host.  NULL: no memory. */
struct bwrap_args *bwrap_args_new(const char *bwrap, const struct sandbox_paths *paths);
struct bwrap_args *bwrap_args_free(struct bwrap_args *a);
const char *const *bwrap_args_argv(const struct bwrap_args *a);

/* bwrap_probe.c */
/* Path of bwrap; NULL: it is not installed. */
const char *bwrap_find(void);
/* 0, or E_SANDBOX: root, or no bwrap. */
int bwrap_check(struct sandbox_problem *ret);
/* From what bwrap wrote when it failed. */
void bwrap_explain(const struct sandbox_process *p, struct sandbox_problem *ret);
int bwrap_probe(struct sandbox_problem *ret);

#endif
