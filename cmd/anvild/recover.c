#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/anvild/exits.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/startup.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/sweep.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define GONE_WAIT_MS 5000 /* a process that was sent SIGKILL gets so long to vanish */

/* A row of an earlier supervisor, copied out of its statement. */
struct left {
	struct left *next;
	struct process_id id;
	struct process_birth birth;
	int same_boot;
	int restored; /* The row came from a backup. */
};

static void
copy(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static struct left *
row_read(const struct supervisor *s, struct stmt *st, struct arena *a)
{
	struct left *l = arena_alloc(a, sizeof(*l));
	const char *kind = stmt_text(st, 1);

	if (l == NULL)
		return NULL;
	copy(l->id.spawn_id, sizeof(l->id.spawn_id), stmt_text(st, 0));
	l->id.kind = strcmp(kind, "runner") == 0 ? PROCESS_RUNNER
	    : strcmp(kind, "serve") == 0         ? PROCESS_SERVE
						 : PROCESS_RESIDENT;
	copy(l->id.address, sizeof(l->id.address), stmt_text(st, 2));
	copy(l->id.run_id, sizeof(l->id.run_id), stmt_text(st, 3));
	copy(l->id.project_id, sizeof(l->id.project_id), stmt_text(st, 4));
	l->id.shard = stmt_int(st, 5);
	l->id.attempt = stmt_int(st, 6);
	l->birth.pid = (pid_t)stmt_int(st, 7);
	l->birth.start_ticks = (uint64_t)stmt_int(st, 8);
	l->same_boot = strcmp(stmt_text(st, 9), s->boot_id) == 0;
	l->birth.at_ms = stmt_int(st, 10);
	return l;
}

/* Everything of it must be over before its successor is forked: two of one address would
 * fight for lock and socket. */
static void
end_process(const struct supervisor *s, const struct left *l)
{
	CLEANUP(io_closep) int pidfd = io_pidfd_open(l->birth.pid);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	uint64_t ticks;

	if (l->same_boot && pidfd >= 0 && io_proc_start_time(l->birth.pid, &ticks) == 0 &&
	    ticks == l->birth.start_ticks) {
		log_event(LOG_LEVEL_INFO, "actor_of_earlier_supervisor_ended",
		    LOG_STR("actor", l->id.address), LOG_INT("childPid", l->birth.pid));
		(void)io_pidfd_signal(pidfd, SIGKILL);
		(void)poll(&p, 1, GONE_WAIT_MS);
	}
	process_remove_socket(s, l->id.address);
}

static int
runner_is_gone(struct supervisor *s, const struct left *l)
{
	struct run_exit e = { .shard = l->id.shard, .attempt = l->id.attempt };
	struct exit_entry *room = exits_reserve();

	if (room == NULL)
		return E_NOMEM;
	memcpy(e.spawn_id, l->id.spawn_id, sizeof(e.spawn_id));
	memcpy(e.run_id, l->id.run_id, sizeof(e.run_id));
	memcpy(e.project_id, l->id.project_id, sizeof(e.project_id));
	e.end.rebooted = !l->same_boot && !l->restored;
	process_remove_socket(s, l->id.address);
	exits_add_take(s->exits, room, &e);
	sweep_leftovers(s->sweep, l->id.run_id);
	return 0;
}

/* Only a runner that certainly is no more counts as gone: what goes on would be taken over, and
 * the next run of its project started beside it. */
static int
recover_one(struct supervisor *s, const struct left *l, char why[STARTUP_WHY_SIZE])
{
	int r = E_NOENT;

	if (l->id.kind != PROCESS_RUNNER) {
		end_process(s, l);
		return 0;
	}
	if (l->same_boot)
		r = runners_adopt(s->runners, &l->id, &l->birth);
	if (r == 0) {
		log_event(LOG_LEVEL_INFO, "runner_adopted", LOG_STR("runId", l->id.run_id),
		    LOG_INT("childPid", l->birth.pid));
	} else if (r == E_NOENT) {
		r = runner_is_gone(s, l);
	} else {
		(void)snprintf(why, STARTUP_WHY_SIZE,
		    "%s, process %d, cannot be taken over (%s); it goes on meanwhile: see to "
		    "memory and descriptors (ulimit -n), then start anvild again",
		    l->id.run_id, (int)l->birth.pid, err_text(r));
	}
	return r;
}

struct recovery {
	struct supervisor *sup;
	struct arena *arena;
	struct left *first;
	int restored;
};

static int
read_turn(void *arg, struct turn *t)
{
	struct recovery *rc = arg;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_LIST);
	struct left **end = &rc->first;
	int r = exits_load(rc->sup->exits, t);

	if (r == 0)
		r = store_is_restored(t->store, &rc->restored);
	if (r < 0)
		return r;
	while ((r = stmt_step(st)) == 1) {
		*end = row_read(rc->sup, st, rc->arena);
		if (*end == NULL)
			return E_NOMEM;
		/* The processes of the one that was backed up are not ours, though they may live:
		 * beside it, from a folder of its own, this one must not touch them. */
		(*end)->restored = rc->restored;
		(*end)->same_boot &= !rc->restored;
		end = &(*end)->next;
	}
	return r;
}

/* Rows of residents and serving processes; those of runners go with their ends, but for those
 * that would be taken for live ones once the mark of the backup has gone. */
static int
forget_turn(void *arg, struct turn *t)
{
	struct recovery *rc = arg;

	for (const struct left *l = rc->first; l != NULL; l = l->next) {
		int r = l->id.kind != PROCESS_RUNNER || l->restored
		    ? process_forget(t, l->id.spawn_id)
		    : 0;

		if (r < 0)
			return r;
	}
	return rc->restored ? store_clear_restored(t->store) : 0;
}

int
startup_recover(struct supervisor *s, char why[STARTUP_WHY_SIZE])
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct recovery rc = { s, arena, NULL, 0 };
	int r;

	if (arena == NULL)
		return E_NOMEM;
	r = actor_turn(s->actor, 0, read_turn, &rc);
	for (const struct left *l = rc.first; l != NULL && r == 0; l = l->next) {
		CRASH_POINT("supervisor_recovering");
		r = recover_one(s, l, why);
	}
	CRASH_POINT("supervisor_recovered");
	if (r == 0)
		r = sup_write(s, forget_turn, &rc);
	if (r == 0)
		r = actor_commit_now(s->actor);
	/* While the disk is full the rows stay: what they name has ended, and the next start sees
	 * that as well.  A restored store has to be told from others. */
	if ((r == E_FULL || r == E_STORAGE) && actor_outage(s->actor) == NULL && !rc.restored)
		return 0;
	return r;
}
