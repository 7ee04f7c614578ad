#include "cmd/anvild/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/errand.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"

#define RETENTION_ROWS 100 /* of a look, so that no turn is long */
#define DAY_MS         86400000
#define KILL_TRIES     20
#define KILL_AGAIN_MS  10

struct sweep {
	struct supervisor *sup;
	struct actor_timer *disk;
	struct actor_timer *retention;
	size_t njobs; /* trees being removed */
};

/* ---- removing trees on the worker ---- */

struct job {
	struct sweep *sweep;
	char *parent;         /* folder that holds the trees                */
	const char *names[3]; /* ends with NULL                             */
	char name[64];        /* storage of a name that is not constant     */
	char lock[64];        /* ... of a second one                        */
	char run_id[ID_SIZE]; /* "": nothing to note when it is done         */
	enum {
		JOB_TREES,   /* those that are named                            */
		JOB_LEFT,    /* what is left of the run that is named           */
		JOB_ALL_LEFT /* ... of every run in `parent`                    */
	} kind;
	int failed;
};

/* What a run leaves, and what becomes of it while it is removed. */
static const char *const leftovers[] = { "ws", "tmp", "home" };
static const char *const going[] = { "ws.gone", "tmp.gone", "home.gone" };

static void
job_free(struct job *j)
{
	free(j->parent);
	free(j);
}

static int
has_any(int dir, const char *const names[])
{
	for (size_t i = 0; i < ARRAY_LEN(leftovers); i++)
		if (faccessat(dir, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return 1;
	return 0;
}

static int
remove_going(int dir)
{
	int failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(going); i++) {
		int r;

		CRASH_POINT("supervisor_sweeping");
		r = sandbox_remove_tree(dir, going[i]);
		failed = r < 0 ? r : failed;
	}
	return failed;
}

/* 1: the lock is held by one that only serves what there is. */
static int
is_served(int dir)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const char *holder = io_read_file(dir, "lock", 128, &b) < 0 ? NULL : buf_cstr(&b);

	return holder != NULL && strstr(holder, " serve\n") != NULL;
}

/* Whoever is at work in a run holds its lock: a run that was given back may have been begun anew
 * by now.  Removing may take long, and nobody is to wait for that: under the lock the trees only
 * get other names. */
static int
remove_left(int runs, const char *run_id)
{
	CLEANUP(io_closep) int dir = io_is_dir(runs, run_id) ? io_open_dir(runs, run_id) : -1;
	CLEANUP(io_closep) int lock = -1;
	int r = 0;

	if (dir < 0)
		return 0;
	if (has_any(dir, going))
		r = remove_going(dir);
	if (r < 0 || !has_any(dir, leftovers))
		return r;
	if (io_lock_file(dir, "lock", &lock) < 0 && !is_served(dir))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(leftovers); i++)
		if (renameat(dir, leftovers[i], dir, going[i]) < 0 && errno != ENOENT)
			r = E_SYS;
	io_close(&lock);
	return r < 0 ? r : remove_going(dir);
}

static void
remove_all_left(struct job *j, int runs)
{
	/* What names the folder may not be read by itself. */
	int fd = openat(runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (d == NULL) {
		io_close(&fd);
		j->failed = E_SYS;
	}
	while (d != NULL && (e = readdir(d)) != NULL) {
		int r = id_check(ID_RUN, e->d_name) ? remove_left(runs, e->d_name) : 0;

		j->failed = r < 0 ? r : j->failed;
	}
	if (d != NULL)
		(void)closedir(d);
}

static void
job_work(void *arg)
{
	struct job *j = arg;
	CLEANUP(io_closep) int dir = open(j->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* What still runs would go on writing. */
	for (int i = 0; i < KILL_TRIES && j->kind != JOB_TREES && sandbox_sweep() != 0; i++)
		(void)poll(NULL, 0, KILL_AGAIN_MS);
	if (dir < 0) {
		j->failed = errno == ENOENT ? 0 : E_SYS;
	} else if (j->kind == JOB_LEFT) {
		j->failed = remove_left(dir, j->name);
	} else if (j->kind == JOB_ALL_LEFT) {
		remove_all_left(j, dir);
	} else {
		for (size_t i = 0; j->names[i] != NULL; i++) {
			int r = sandbox_remove_tree(dir, j->names[i]);

			j->failed = r < 0 ? r : j->failed;
		}
		/* A row goes next: no folder may come back behind it. */
		if (j->failed == 0 && io_sync_dir(dir) < 0)
			j->failed = E_SYS;
	}
}

static int
forget_run_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_REMOVE);
	int r = stmt_bind(st, "s", (const char *)arg);

	return r < 0 ? r : stmt_run(st);
}

static void
job_done(void *arg, int err)
{
	struct job *j = arg;

	CRASH_POINT("supervisor_swept");
	j->sweep->njobs--;
	if (j->sweep->sup == NULL) {
		j->sweep = sweep_free(j->sweep);
		err = E_CANCELED;
	}
	if (err == 0 && j->failed < 0)
		log_event(LOG_LEVEL_WARN, "workspace_removal_failed",
		    LOG_STR("folder", j->names[0]),
		    LOG_STR("errorCode", err_symbol(j->failed)));
	else if (err == 0 && j->run_id[0] != '\0')
		(void)sup_write(j->sweep->sup, forget_run_turn, j->run_id);
	job_free(j);
}

static void
remove_later(struct sweep *w, struct job *j)
{
	j->sweep = w;
	w->njobs++;
	/* Without room in the queue it stays for the next look at all of them. */
	if (j->parent == NULL || actor_work(w->sup->actor, job_work, job_done, j) < 0) {
		w->njobs--;
		job_free(j);
	}
}

int
sweep_is_busy(const struct sweep *w)
{
	return w->njobs > 0;
}

void
sweep_leftovers(struct sweep *w, const char *run_id)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	j->parent = mem_format("%s/runs", w->sup->config->data_dir);
	(void)snprintf(j->name, sizeof(j->name), "%s", run_id);
	j->names[0] = j->name;
	j->kind = JOB_LEFT;
	remove_later(w, j);
}

void
sweep_run(struct sweep *w, const char *run_id)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	j->parent = mem_format("%s/runs", w->sup->config->data_dir);
	(void)snprintf(j->name, sizeof(j->name), "%s", run_id);
	(void)snprintf(j->run_id, sizeof(j->run_id), "%s", run_id);
	j->names[0] = j->name;
	remove_later(w, j);
}

void
sweep_mirror(struct sweep *w, const char *project_id)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	j->parent = mem_format("%s/cache", w->sup->config->data_dir);
	(void)snprintf(j->name, sizeof(j->name), "%s.git", project_id);
	(void)snprintf(j->lock, sizeof(j->lock), "%s.lock", project_id);
	j->names[0] = j->name;
	j->names[1] = j->lock;
	remove_later(w, j);
}

/* ---- processes that nobody owns any more ---- */

static int
is_ours(const struct supervisor *s, pid_t pid)
{
	const struct process *p;

	for (size_t i = 0; i < s->nresidents; i++)
		if (child_pid(s->residents[i]) == pid)
			return 1;
	for (size_t at = 0; (p = runners_next(s->runners, &at)) != NULL;)
		if (process_pid(p) == pid)
			return 1;
	for (size_t at = 0; (p = serves_next(s->serves, &at)) != NULL;)
		if (process_pid(p) == pid)
			return 1;
	return errand_pid(s->copies) == pid || errand_pid(s->checks) == pid;
}

/* The supervisor is a subreaper: what a dead run leaves behind becomes its child. */
void
sweep_orphans(struct sweep *w)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char path[64], *at, *word;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (io_read_file(AT_FDCWD, path, 1 << 20, &b) < 0 || buf_cstr(&b) == NULL)
		return;
	at = (char *)b.data;
	while ((word = strsep(&at, " ")) != NULL) {
		pid_t pid = (pid_t)strtol(word, NULL, 10);

		if (pid <= 1 || is_ours(w->sup, pid))
			continue;
		if (io_kill_child(pid) == 0)
			(void)waitpid(pid, NULL, WNOHANG);
	}
}

/* ---- disk space ---- */

void
sweep_disk(struct sweep *w)
{
	struct supervisor *s = w->sup;
	struct statvfs vfs;
	int low;

	if (statvfs(s->config->data_dir, &vfs) < 0)
		return;
	low = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize < s->config->runs_min_free_bytes;
	if (low == s->slots.low_disk)
		return;
	s->slots.low_disk = low;
	log_event(low ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, low ? "disk_low" : "disk_enough",
	    LOG_INT("freeBytes", (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize),
	    LOG_INT("neededBytes", s->config->runs_min_free_bytes));
	if (!low)
		runners_pump(s->runners);
}

static void
on_disk(void *arg)
{
	struct sweep *w = arg;

	sweep_disk(w);
	sup_try_store(w->sup);
	sweep_orphans(w);
	(void)actor_timer_set(w->disk, SWEEP_DISK_MS);
}

/* ---- old run folders ---- */

static int
retention_turn(void *arg, struct turn *t)
{
	struct sweep *w = arg;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_ENDED_BEFORE);
	int r = stmt_bind(st, "ii", t->now_ms - w->sup->config->runs_keep_days * DAY_MS,
	    (int64_t)RETENTION_ROWS);

	while (r == 0 && (r = stmt_step(st)) == 1) {
		const char *run_id = stmt_text(st, 0);

		r = 0;
		if (runners_find(w->sup->runners, run_id) != NULL ||
		    serves_stop(w->sup->serves, run_id))
			continue; /* next time */
		sweep_run(w, run_id);
	}
	return r;
}

/* A supervisor may have died between the end of a run and the removal. */
static void
sweep_forgotten(struct sweep *w)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	j->parent = mem_format("%s/runs", w->sup->config->data_dir);
	j->names[0] = "runs";
	j->kind = JOB_ALL_LEFT;
	remove_later(w, j);
}

static void
on_retention(void *arg)
{
	struct sweep *w = arg;

	if (w->njobs == 0)
		(void)actor_turn(w->sup->actor, 0, retention_turn, w);
	sweep_forgotten(w);
	(void)actor_timer_set(w->retention, SWEEP_RETENTION_MS);
}

/* ---- life ---- */

struct sweep *
sweep_new(struct supervisor *s)
{
	struct sweep *w = mem_calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->sup = s;
	w->disk = actor_timer_new(s->actor, on_disk, w);
	w->retention = actor_timer_new(s->actor, on_retention, w);
	return w->disk != NULL && w->retention != NULL ? w : sweep_free(w);
}

struct sweep *
sweep_free(struct sweep *w)
{
	if (w == NULL)
		return NULL;
	w->disk = actor_timer_free(w->disk);
	w->retention = actor_timer_free(w->retention);
	w->sup = NULL;
	/* Else the last of them frees it: a start that fails waits for none. */
	if (w->njobs == 0)
		free(w);
	return NULL;
}

void
sweep_begin(struct sweep *w)
{
	on_disk(w);
	on_retention(w);
}
