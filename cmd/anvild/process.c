#include "cmd/anvild/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct process {
	uint32_t magic;
#define PROCESS_MAGIC 0x4c0de5a1
	struct supervisor *sup;
	struct process_id id;
	struct spawned spawned;
	int adopted; /* not our child: its status cannot be had */
	struct mono_time started;
	int64_t started_ms;
	struct actor_watch *watch; /* of the pidfd */
	struct actor_timer *lost;  /* its row is not on disk: ends it from the loop */
	struct process_owner owner;
};

struct process *
process_free(struct process *p)
{
	if (p == NULL)
		return NULL;
	actor_watch_free(p->watch);
	actor_timer_free(p->lost);
	io_close(&p->spawned.gate_fd);
	io_close(&p->spawned.pidfd);
	p->magic = 0;
	free(p);
	return NULL;
}

void
process_remove_socket(const struct supervisor *s, const char *address)
{
	char name[RPC_ADDRESS_SIZE + 8];

	if (link_socket_name(address, name) == 0)
		(void)unlinkat(actor_runtime_dirfd(s->actor), name, 0);
}

static void
end(struct process *p, const struct process_end *how)
{
	p->watch = actor_watch_free(p->watch);
	/* Before its owner hears of it and starts another one. */
	if (!how->unrecorded)
		process_remove_socket(p->sup, p->id.address);
	p->owner.on_end(p->owner.arg, p, how);
	process_free(p);
}

/* 1 when it has ended.  Somebody else reaping it (ECHILD) leaves its status unknown. */
static int
reap(int pidfd, struct process_end *how)
{
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0)
		return errno == ECHILD;
	if (info.si_pid == 0)
		return 0;
	how->exited = info.si_code == CLD_EXITED;
	how->signaled = !how->exited;
	how->exit_status = how->exited ? info.si_status : 0;
	how->signal = how->signaled ? info.si_status : 0;
	return 1;
}

static void
on_pidfd(void *arg, int fd, enum watch_what what)
{
	struct process *p = arg;
	struct process_end how = { 0 };

	(void)what;
	OBJ_CHECK(p, PROCESS_MAGIC);
	/* The end of one that is not our child is all that can be known of it. */
	if (p->adopted || reap(fd, &how)) {
		CRASH_POINT("supervisor_reaped");
		end(p, &how);
	}
}

static void
on_lost(void *arg)
{
	static const struct process_end how = { .unrecorded = 1,
		.error = "the supervisor's store is unavailable" };
	struct process *p = arg;

	OBJ_CHECK(p, PROCESS_MAGIC);
	end(p, &how);
}

static struct process *
process_new(
    struct supervisor *s, const struct process_id *id, const struct process_owner *owner)
{
	struct process *p = mem_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->magic = PROCESS_MAGIC;
	p->sup = s;
	p->id = *id;
	p->spawned = (struct spawned)SPAWNED_NONE;
	p->started = clock_mono();
	p->started_ms = clock_wall_ms();
	p->owner = *owner;
	p->lost = actor_timer_new(s->actor, on_lost, p);
	return p->lost != NULL ? p : process_free(p);
}

/* Up to the gate, and watched. */
static int
fork_to_gate(struct supervisor *s, const struct process_id *id, const struct spawn_desc *d,
    const struct process_owner *owner, struct process **ret)
{
	struct process *p = process_new(s, id, owner);
	int r;

	if (p == NULL)
		return E_NOMEM;
	r = spawn_fork(d, &p->spawned);
	if (r == 0) {
		p->watch = actor_watch_new(s->actor, p->spawned.pidfd, WATCH_READ, on_pidfd, p);
		r = p->watch != NULL ? 0 : E_NOMEM;
	}
	if (r < 0) {
		spawn_abandon(&p->spawned);
		process_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

/* ---- the row, and what becomes of the process when it is on disk or lost ---- */

static void
row_on_disk(void *arg)
{
	struct process *p = arg;

	OBJ_CHECK(p, PROCESS_MAGIC);
	CRASH_POINT("supervisor_row_on_disk");
	spawn_open(&p->spawned);
	CRASH_POINT("supervisor_gate_open");
}

/* A run must not go on: a supervisor that comes later would not know it.  Its owner hears of it
 * from the loop, for what is lost here is lost in the middle of a batch. */
static void
row_lost(void *arg)
{
	struct process *p = arg;

	OBJ_CHECK(p, PROCESS_MAGIC);
	if (p->id.kind == PROCESS_RESIDENT) {
		spawn_open(&p->spawned);
		return;
	}
	p->watch = actor_watch_free(p->watch);
	spawn_abandon(&p->spawned);
	(void)actor_timer_set(p->lost, 0);
}

/* The row of one that served the run may have outlived it, when a full disk kept the row from
 * going: the next supervisor would take this one's socket away for its. */
static int
forget_server(struct turn *t, const char *address)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_SERVE_REMOVE);
	int r = stmt_bind(st, "s", address);

	return r < 0 ? r : stmt_run(st);
}

static int
row_add(struct turn *t, const struct process *p)
{
	static const char *const kinds[] = { "resident", "runner", "serve" };
	const struct process_id *id = &p->id;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_ADD);
	int runner = id->kind == PROCESS_RUNNER;
	int r = runner ? forget_server(t, id->address) : 0;

	if (r < 0)
		return r;
	r = stmt_bind(st, "sssssIIiisi", id->spawn_id, kinds[id->kind], id->address,
	    id->run_id[0] != '\0' ? id->run_id : NULL, runner ? id->project_id : NULL,
	    runner ? &id->shard : NULL, runner ? &id->attempt : NULL, (int64_t)p->spawned.pid,
	    (int64_t)p->spawned.start_ticks, p->sup->boot_id, p->started_ms);
	return r < 0 ? r : stmt_run(st);
}

static int
record_turn(void *arg, struct turn *t)
{
	struct process *p = arg;
	int r = row_add(t, p);

	if (r == 0)
		sup_watch_write(p->sup, t);
	return r < 0 ? r : turn_after_commit(t, row_on_disk, p, row_lost);
}

int
process_start(struct supervisor *s, struct turn *t, const struct process_id *id,
    const struct spawn_desc *d, const struct process_owner *owner, struct process **ret)
{
	struct process *p = NULL;
	int r = fork_to_gate(s, id, d, owner, &p);

	if (r < 0)
		return r;
	r = record_turn(p, t);
	if (r < 0) {
		p->watch = actor_watch_free(p->watch);
		spawn_abandon(&p->spawned);
		process_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int
process_start_resident(struct supervisor *s, const struct process_id *id,
    const struct spawn_desc *d, const struct process_owner *owner, struct process **ret)
{
	struct process *p = NULL;
	int r = fork_to_gate(s, id, d, owner, &p);

	if (r < 0)
		return r;
	*ret = p;
	r = sup_write(s, record_turn, p);
	if (r < 0) {
		log_event(LOG_LEVEL_WARN, "process_not_recorded", LOG_STR("actor", id->address),
		    LOG_STR("errorCode", err_symbol(r)));
		spawn_open(&p->spawned);
	}
	return 0;
}

/* The pid may be another process's by now; the descriptor was opened first, so what the start
 * time says holds for it.  Whoever cannot be looked at is not gone for that. */
static int
open_born(const struct process_birth *birth, int *ret_pidfd)
{
	uint64_t ticks;
	int r;

	*ret_pidfd = io_pidfd_open(birth->pid);
	if (*ret_pidfd < 0)
		return errno == ESRCH || errno == EINVAL ? E_NOENT : err_from_errno(errno);
	r = io_proc_start_time(birth->pid, &ticks);
	return r == 0 && ticks != birth->start_ticks ? E_NOENT : r;
}

void
process_kill_born(const struct process_birth *birth)
{
	CLEANUP(io_closep) int pidfd = -1;

	if (open_born(birth, &pidfd) == 0)
		(void)io_pidfd_signal(pidfd, SIGKILL);
}

int
process_adopt(struct supervisor *s, const struct process_id *id,
    const struct process_birth *birth, const struct process_owner *owner, struct process **ret)
{
	struct process *p = process_new(s, id, owner);
	int r;

	if (p == NULL)
		return E_NOMEM;
	p->adopted = 1;
	p->started_ms = birth->at_ms;
	p->spawned.pid = birth->pid;
	r = open_born(birth, &p->spawned.pidfd);
	if (r < 0) {
		process_free(p);
		return r;
	}
	p->watch = actor_watch_new(s->actor, p->spawned.pidfd, WATCH_READ, on_pidfd, p);
	if (p->watch == NULL) {
		process_free(p);
		return E_NOMEM;
	}
	*ret = p;
	return 0;
}

int
process_forget(struct turn *t, const char *spawn_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_REMOVE);
	int r = stmt_bind(st, "s", spawn_id);

	return r < 0 ? r : stmt_run(st);
}

void
process_signal(struct process *p, int sig)
{
	OBJ_CHECK(p, PROCESS_MAGIC);
	(void)io_pidfd_signal(p->spawned.pidfd, sig);
}

const struct process_id *
process_id(const struct process *p)
{
	return &p->id;
}

pid_t
process_pid(const struct process *p)
{
	return p->spawned.pid;
}

struct mono_time
process_started(const struct process *p)
{
	return p->started;
}

int64_t
process_started_ms(const struct process *p)
{
	return p->started_ms;
}
