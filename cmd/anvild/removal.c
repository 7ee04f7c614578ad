#include "cmd/anvild/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "cmd/anvild/exits.h"
#include "cmd/anvild/methods.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"

#define RUNS_OF_A_LOOK 50  /* folders between two commits                   */
#define AGAIN_MS       200 /* what holds a removal up is looked at so often */

struct removal {
	LIST_ENTRY(removal) link;
	uint32_t magic;
#define REMOVAL_MAGIC 0x5e0d27c9
	struct removals *owner; /* NULL: the supervisor goes       */
	char project_id[ID_SIZE];
	struct parked *waiter;
	struct mono_time until;
	struct actor_timer *again;
	int busy; /* The worker or a commit has it: nothing frees it.      */
	/* One pass over the runs. */
	char after[ID_SIZE]; /* Those up to it have been gone through.  */
	int left;            /* Some had to be passed over.             */
	/* What the worker is given, and what has become of it. */
	char *data_dir;
	size_t n; /* 0: the mirror's turn. */
	char run_ids[RUNS_OF_A_LOOK][ID_SIZE];
	int gone[RUNS_OF_A_LOOK];
	int err, complained;
};

struct removals {
	struct supervisor *sup;
	LIST_HEAD(, removal) list;
};

static void look(void *arg);

/* ---- life ---- */

struct removals *
removals_new(struct supervisor *s)
{
	struct removals *m = mem_calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->sup = s;
	LIST_INIT(&m->list);
	return m;
}

static void
removal_free(struct removal *rm)
{
	actor_timer_free(rm->again);
	free(rm->data_dir);
	rm->magic = 0;
	free(rm);
}

/* ${err} 0: all is gone. */
static void
end(struct removal *rm, int err)
{
	LIST_REMOVE(rm, link);
	if (err == 0)
		methods_answer_removed(rm->waiter);
	else
		parked_error(rm->waiter, err, NULL);
	rm->waiter = NULL;
	rm->owner = NULL;
	rm->again = actor_timer_free(rm->again);
	if (!rm->busy)
		removal_free(rm);
}

struct removals *
removals_free(struct removals *m)
{
	if (m == NULL)
		return NULL;
	while (!LIST_EMPTY(&m->list))
		end(LIST_FIRST(&m->list), E_CANCELED);
	free(m);
	return NULL;
}

static struct removal *
removal_new(struct removals *m, const char *project_id)
{
	struct removal *rm = mem_calloc(1, sizeof(*rm));

	if (rm == NULL)
		return NULL;
	rm->magic = REMOVAL_MAGIC;
	(void)snprintf(rm->project_id, sizeof(rm->project_id), "%s", project_id);
	rm->data_dir = mem_strdup(m->sup->config->data_dir);
	rm->again = actor_timer_new(m->sup->actor, look, rm);
	if (rm->data_dir == NULL || rm->again == NULL) {
		removal_free(rm);
		return NULL;
	}
	rm->owner = m;
	LIST_INSERT_HEAD(&m->list, rm, link);
	return rm;
}

static struct removal *
find(const struct removals *m, const char *project_id)
{
	struct removal *rm;

	LIST_FOREACH (rm, &m->list, link)
		if (strcmp(rm->project_id, project_id) == 0)
			return rm;
	return NULL;
}

int
removals_ask(
    struct removals *m, const char *project_id, int64_t deadline_ms, struct parked *waiter)
{
	struct removal *rm = find(m, project_id);

	if (rm != NULL) {
		parked_drop(rm->waiter);
	} else {
		rm = removal_new(m, project_id);
		if (rm == NULL)
			return E_NOMEM;
		(void)actor_timer_set(rm->again, 0);
	}
	rm->waiter = waiter;
	rm->until = mono_add_ms(clock_mono(), deadline_ms > 0 ? deadline_ms : REMOVAL_MS);
	return 0;
}

/* What the worker or a commit had is back: 1 when nobody wants it any more and it is freed. */
static int
came_back(struct removal *rm)
{
	OBJ_CHECK(rm, REMOVAL_MAGIC);
	rm->busy = 0;
	if (rm->owner != NULL)
		return 0;
	removal_free(rm);
	return 1;
}

/* ---- removing, on the worker ---- */

static int
remove_runs(struct removal *rm)
{
	CLEANUP_FREE char *path = mem_format("%s/runs", rm->data_dir);
	CLEANUP(io_closep)
	int dir = path != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = 0;

	memset(rm->gone, 0, sizeof(rm->gone));
	if (dir < 0)
		return path == NULL ? E_NOMEM : E_SYS;
	for (size_t i = 0; i < rm->n; i++) {
		int each;

		CRASH_POINT("supervisor_removing_run");
		each = sandbox_remove_tree(dir, rm->run_ids[i]);
		rm->gone[i] = each == 0;
		r = each < 0 ? each : r;
	}
	/* The rows go next: no folder may come back behind them. */
	if (io_sync_dir(dir) < 0) {
		memset(rm->gone, 0, sizeof(rm->gone));
		r = E_SYS;
	}
	return r;
}

/* The mirror, its lock, and what fetches that were cut short have left beside it. */
static int
is_of_project(const char *name, const char *project_id)
{
	size_t n = strlen(project_id);

	return strncmp(name, project_id, n) == 0 && name[n] == '.';
}

static int
remove_mirror(const struct removal *rm)
{
	CLEANUP_FREE char *path = mem_format("%s/cache", rm->data_dir);
	DIR *d = path != NULL ? opendir(path) : NULL;
	const struct dirent *e;
	int r = 0;

	if (d == NULL)
		return path == NULL ? E_NOMEM : errno == ENOENT ? 0 : E_SYS;
	CRASH_POINT("supervisor_removing_mirror");
	while ((e = readdir(d)) != NULL) {
		int each = is_of_project(e->d_name, rm->project_id)
		    ? sandbox_remove_tree(dirfd(d), e->d_name)
		    : 0;

		r = each < 0 ? each : r;
	}
	if (io_sync_dir(dirfd(d)) < 0)
		r = E_SYS;
	(void)closedir(d);
	return r;
}

static void
work(void *arg)
{
	struct removal *rm = arg;

	rm->err = rm->n != 0 ? remove_runs(rm) : remove_mirror(rm);
}

/* ---- what has gone ---- */

static void
again(struct removal *rm, int64_t ms)
{
	(void)actor_timer_set(rm->again, ms);
}

static void
is_forgotten(void *arg)
{
	struct removal *rm = arg;

	if (came_back(rm))
		return;
	for (size_t i = 0; i < rm->n; i++)
		rm->left |= !rm->gone[i];
	memcpy(rm->after, rm->run_ids[rm->n - 1], sizeof(rm->after));
	again(rm, 0);
}

static void
is_not_forgotten(void *arg)
{
	struct removal *rm = arg;

	if (!came_back(rm))
		again(rm, AGAIN_MS);
}

static int
forget_turn(void *arg, struct turn *t)
{
	struct removal *rm = arg;
	int r = 0;

	for (size_t i = 0; i < rm->n && r == 0; i++) {
		CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_REMOVE);

		if (!rm->gone[i])
			continue;
		r = stmt_bind(st, "s", rm->run_ids[i]);
		if (r == 0)
			r = stmt_run(st);
	}
	return r < 0 ? r : turn_after_commit(t, is_forgotten, rm, is_not_forgotten);
}

/* Once: it is tried again and again. */
static void
complain(struct removal *rm)
{
	if (rm->complained)
		return;
	rm->complained = 1;
	log_event(LOG_LEVEL_WARN, "project_removal_held_up",
	    LOG_STR("projectId", rm->project_id),
	    LOG_STR("folder", rm->n != 0 ? "runs" : "cache"),
	    LOG_STR("errorCode", err_symbol(rm->err)));
}

static void
done(void *arg, int err)
{
	struct removal *rm = arg;

	CRASH_POINT("supervisor_removed");
	if (came_back(rm))
		return;
	if (err < 0) {
		end(rm, err);
		return;
	}
	if (rm->err < 0)
		complain(rm);
	if (rm->n == 0 && rm->err == 0) {
		end(rm, 0);
	} else if (rm->n == 0) {
		again(rm, AGAIN_MS);
	} else {
		rm->busy = 1;
		if (sup_write(rm->owner->sup, forget_turn, rm) < 0 && rm->busy)
			is_not_forgotten(rm);
	}
}

/* ---- what comes next ---- */

/* One that is still executed, or whose end has no row yet, has a folder that is not known. */
static int
is_held_up(const struct removal *rm)
{
	const struct supervisor *s = rm->owner->sup;
	const struct process *p;

	for (size_t at = 0; (p = runners_next(s->runners, &at)) != NULL;)
		if (strcmp(process_id(p)->project_id, rm->project_id) == 0)
			return 1;
	return exits_unwritten(s->exits, rm->project_id);
}

/* The next few runs that nobody serves. */
static int
pick_turn(void *arg, struct turn *t)
{
	struct removal *rm = arg;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_OF_PROJECT);
	int r = stmt_bind(st, "ssi", rm->project_id, rm->after, (int64_t)RUNS_OF_A_LOOK);

	rm->n = 0;
	while (r == 0 && (r = stmt_step(st)) == 1) {
		const char *run_id = stmt_text(st, 0);

		r = 0;
		if (serves_stop(rm->owner->sup->serves, run_id))
			rm->left = 1;
		else
			(void)snprintf(rm->run_ids[rm->n++], ID_SIZE, "%s", run_id);
	}
	return r;
}

static void
go_on(struct removal *rm)
{
	if (actor_turn(rm->owner->sup->actor, 0, pick_turn, rm) < 0) {
		again(rm, AGAIN_MS);
		return;
	}
	if (rm->n == 0 && rm->left) {
		rm->left = 0;
		rm->after[0] = '\0';
		again(rm, AGAIN_MS);
		return;
	}
	/* Its trees may be large: the sweep of others' must not wait for them. */
	if (actor_work_aside(rm->owner->sup->actor, work, done, rm) < 0)
		again(rm, AGAIN_MS);
	else
		rm->busy = 1;
}

static void
look(void *arg)
{
	struct removal *rm = arg;
	const struct supervisor *s;

	OBJ_CHECK(rm, REMOVAL_MAGIC);
	s = rm->owner->sup;
	if (s->stopping || !parked_is_wanted(rm->waiter))
		end(rm, E_DRAINING);
	else if (clock_mono().us > rm->until.us)
		end(rm, E_DEADLINE);
	else if (actor_in_batch(s->actor))
		again(rm, 0); /* what is not on disk yet may be lost */
	else if (is_held_up(rm))
		again(rm, AGAIN_MS);
	else
		go_on(rm);
}
