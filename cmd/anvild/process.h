/*
 * cmd/anvild/process.h -- one process of anvil: row, gate, pidfd, end.
 *
 * Residents, runners and serving processes are made of it.  A process is in supervisor.db
 * before it runs an instruction of its own and until its end has been dealt with.
 */
#ifndef CMD_ANVILD_PROCESS_H
#define CMD_ANVILD_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"

struct process;
struct spawn_desc;
struct supervisor;
struct turn;

enum process_kind { PROCESS_RESIDENT, PROCESS_RUNNER, PROCESS_SERVE };

/* Who a process is: the columns of its row.  Texts are copied. */
struct process_id {
	enum process_kind kind;
	char spawn_id[ID_HEX32_SIZE];
	char address[64];
	char run_id[ID_SIZE];     /* "" for a resident                      */
	char project_id[ID_SIZE]; /* "" unless a runner                     */
	int64_t shard;            /* of a runner                            */
	int64_t attempt;          /* of a runner                            */
	int found;                /* by the lock that it holds: it has no row, and needs none */
};

/* How it ended.  At most one of these is so; none: the status is not known. */
struct process_end {
	int exited, exit_status;
	int signaled, signal;
	int rebooted;   /* the machine has been restarted since */
	int abandoned;  /* given up by the operator, alive or not */
	int unrecorded; /* its row was lost: it never ran         */
	char error[96]; /* it never came to run; "" otherwise  */
};

/* Whose process it is.  ${on_end} is called once, from the loop and outside of any turn, when
 * the process has been reaped (or, an adopted one, has been seen to be gone).  The process frees
 * itself afterwards. */
struct process_owner {
	void (*on_end)(void *arg, struct process *p, const struct process_end *end);
	void *arg;
};

/* In a turn: forks to the gate and writes the row; the gate opens when the turn is on disk.  When
 * that fails the process has run nothing, and ${owner} hears `unrecorded`.  0, or E_BUSY,
 * E_NOMEM, E_SYS, or a storage error: then there is no process and no callback. */
int process_start(struct supervisor *s, struct turn *t, const struct process_id *id,
    const struct spawn_desc *d, const struct process_owner *owner, struct process **ret);

/* A resident, outside of any turn: anvil cannot serve without it, so it runs even when its row
 * cannot be written.  0, E_BUSY, E_NOMEM, E_SYS. */
int process_start_resident(struct supervisor *s, const struct process_id *id,
    const struct spawn_desc *d, const struct process_owner *owner, struct process **ret);

/* What the row of an earlier supervisor's process says about when it began. */
struct process_birth {
	pid_t pid;
	uint64_t start_ticks;
	int64_t at_ms;
};

/* A live process that an earlier supervisor started, by its row.  0, or E_NOENT: it is gone. */
int process_adopt(struct supervisor *s, const struct process_id *id,
    const struct process_birth *birth, const struct process_owner *owner, struct process **ret);

/* SIGKILL to a process that nobody owns here, if it is still the one that was born so. */
void process_kill_born(const struct process_birth *birth);

/* A killed process leaves its name behind, and maybe nobody comes to replace it. */
void process_remove_socket(const struct supervisor *s, const char *address);

/* Removes the row; part of the turn that deals with the end. */
int process_forget(struct turn *t, const char *spawn_id);

void process_signal(struct process *p, int sig);
const struct process_id *process_id(const struct process *p);
pid_t process_pid(const struct process *p);
struct mono_time process_started(const struct process *p);
int64_t process_started_ms(const struct process *p);
/* Lets go at the supervisor's own end: no callback, nothing is killed. */
struct process *process_free(struct process *p);

/* "exit status 70", "signal 9 (SIGKILL)", … for people; ${out} holds 96 bytes. */
void process_end_text(const struct process_end *end, char out[96]);
/* `how` of project.runnerExited, as JSON text. */
int process_end_json(const struct process_end *end, struct buf *out);
/* Reads that text back.  0 or E_INVAL. */
int process_end_parse(const char *text, struct process_end *ret);

#endif
