#include "cmd/anvild/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
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
	process_end_fn *on_end;
	void *arg;
};

struct process *
process_free(struct process *p)
{
	if (p == NULL)
		return NULL;
	actor_watch_free(p->watch);
	io_close(&p->spawned.gate_fd);
	io_close(&p->spawned.pidfd);
	p->magic = 0;
	free(p);
	return NULL;
}

static void
end(struct process *p, const struct process_end *how)
{
	p->watch = actor_watch_free(p->watch);
	p->on_end(p->arg, p, how);
	process_free(p);
}

static void
on_pidfd(void *arg, int fd, enum watch_what what)
{
	struct process *p = arg;
	struct process_end how = { 0 };
	siginfo_t info = { 0 };

	(void)what;
	OBJ_CHECK(p, PROCESS_MAGIC);
	if (!p->adopted) {
		if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) < 0 && errno != ECHILD)
			return;
		if (info.si_pid == 0 && errno != ECHILD)
			return;
		how.exited = info.si_code == CLD_EXITED;
		how.signaled = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
		how.exit_status = how.exited ? info.si_status : 0;
		how.signal = how.signaled ? info.si_status : 0;
	}
	end(p, &how);
}

static struct process *
process_new(
    struct supervisor *s, const struct process_id *id, process_end_fn *on_end, void *arg)
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
	p->on_end = on_end;
	p->arg = arg;
	return p;
}

/* ---- effects of the turn that wrote the row ---- */

static void
row_on_disk(void *arg)
{
	struct process *p = arg;

	OBJ_CHECK(p, PROCESS_MAGIC);
	spawn_open(&p->spawned);
}

/* The row is not on disk.  anvil cannot serve without its residents: they run all the same.
 * A run must not: a supervisor that comes later would not know it. */
static void
row_lost(void *arg)
{
	struct process *p = arg;
	struct process_end how = { .error = "the supervisor's store is unavailable" };

	OBJ_CHECK(p, PROCESS_MAGIC);
	if (p->id.kind == PROCESS_RESIDENT) {
		spawn_open(&p->spawned);
		return;
	}
	p->watch = actor_watch_free(p->watch);
	spawn_abandon(&p->spawned);
	end(p, &how);
}

static int
row_add(struct turn *t, const struct process *p)
{
	static const char *const kinds[] = { "resident", "runner", "serve" };
	const struct process_id *id = &p->id;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_ADD);
	int runner = id->kind == PROCESS_RUNNER;
	int r;

	r = stmt_bind(st, "sssssIIiisi", id->spawn_id, kinds[id->kind], id->address,
	    id->run_id[0] != '\0' ? id->run_id : NULL, runner ? id->project_id : NULL,
	    runner ? &id->shard : NULL, runner ? &id->attempt : NULL, (int64_t)p->spawned.pid,
	    (int64_t)p->spawned.start_ticks, p->sup->boot_id, p->started_ms);
	return r < 0 ? r : stmt_run(st);
}

int
process_start(struct supervisor *s, struct turn *t, const struct process_id *id,
    const struct spawn_desc *d, process_end_fn *on_end, void *arg, struct process **ret)
{
	struct process *p = process_new(s, id, on_end, arg);
	int r;

	if (p == NULL)
		return E_NOMEM;
	r = spawn_fork(d, &p->spawned);
	if (r < 0) {
		process_free(p);
		return r;
	}
	p->watch = actor_watch_new(s->actor, p->spawned.pidfd, WATCH_READ, on_pidfd, p);
	r = p->watch != NULL ? row_add(t, p) : E_NOMEM;
	if (r == 0)
		r = turn_after_commit(t, row_on_disk, p, row_lost);
	if (r < 0 && id->kind == PROCESS_RESIDENT && p->watch != NULL) {
		log_event(LOG_LEVEL_WARN, "process_not_recorded", LOG_STR("actor", id->address),
		    LOG_STR("errorCode", err_symbol(r)));
		spawn_open(&p->spawned);
		r = 0;
	}
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
process_adopt(struct supervisor *s, const struct process_id *id, pid_t pid,
    uint64_t start_ticks, int64_t spawned_at_ms, process_end_fn *on_end, void *arg,
    struct process **ret)
{
	struct process *p = process_new(s, id, on_end, arg);
	uint64_t ticks;

	if (p == NULL)
		return E_NOMEM;
	p->adopted = 1;
	p->started_ms = spawned_at_ms;
	p->spawned.pid = pid;
	p->spawned.pidfd = io_pidfd_open(pid);
	/* The pid may be another process's by now; the descriptor was opened first, so what
	 * the start time says holds for it. */
	if (p->spawned.pidfd < 0 || io_proc_start_time(pid, &ticks) < 0 ||
	    ticks != start_ticks) {
		process_free(p);
		return E_NOENT;
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
