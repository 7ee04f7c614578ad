/*
 * The driver `none`: a step is an ordinary process, with everything that anvil's user may do.
 *
 * It must be asked for in the configuration.  What a step leaves behind is found as
 * descendants of this process, a subreaper, and killed until two scans find nothing; the
 * cgroup, where there is one, kills faster than they can breed, but a step can leave it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/box.h"

#define CALM_SCANS 2  /* Scans without a find that are the proof.        */
#define HOLD_SCANS 8  /* The last of so many does without a hold.        */
#define TURN_MS    50 /* After so long the caller has its turn.          */
#define PATIENCE   10 /* Milliseconds for the killed to die, each round. */

struct sandbox {
	uint32_t magic;
#define NONE_MAGIC 0x2e81f4c7
	char *workspace; /* Owned. */
	int init_fd;
	struct sandbox_limits limits;
	struct cgroup *groups;           /* Owned. */
	struct sandbox_process *process; /* Owned; NULL: no step runs. */
	unsigned breeding;               /* Scans in a row that found some. */
};

static int
none_probe(struct sandbox_problem *ret)
{
	(void)ret;
	return 0;
}

static void
none_abandon(struct sandbox *sb)
{
	OBJ_CHECK(sb, NONE_MAGIC);
	sb->magic = 0;
	(void)box_process_free(sb->process);
	(void)cgroup_free(sb->groups);
	io_close(&sb->init_fd);
	free(sb->workspace);
	free(sb);
}

static int
none_open(const struct sandbox_paths *paths, const struct sandbox_limits *limits,
    struct sandbox **ret_sandbox, struct sandbox_problem *ret_problem)
{
	struct sandbox *sb = mem_calloc(1, sizeof(*sb));

	if (sb == NULL) {
		box_problem(ret_problem, "", "out of memory");
		return E_NOMEM;
	}
	sb->magic = NONE_MAGIC;
	sb->limits = *limits;
	sb->workspace = mem_strdup(paths->workspace);
	sb->init_fd = open(paths->init_path, O_RDONLY | O_CLOEXEC);
	if (sb->init_fd < 0) {
		box_problem(ret_problem, "Install anvil completely.", "%s: %s",
		    paths->init_path, strerror(errno));
		none_abandon(sb);
		return E_SANDBOX;
	}
	sb->groups = cgroup_new(limits, 0);
	if (sb->workspace == NULL || sb->groups == NULL) {
		box_problem(ret_problem, "", "out of memory");
		none_abandon(sb);
		return E_NOMEM;
	}
	*ret_sandbox = sb;
	return 0;
}

static void
none_prepare(struct sandbox *sb)
{
	OBJ_CHECK(sb, NONE_MAGIC);
}

static int
none_spawn(struct sandbox *sb, const struct sandbox_step *step,
    struct sandbox_process **ret_process, struct sandbox_problem *ret_problem)
{
	static const char *const init[] = { "", SANDBOX_INIT_NAME, "exec", NULL };
	CLEANUP(box_process_freep) struct sandbox_process *p = NULL;
	CLEANUP(io_closep) int dir_fd = sandbox_open_beneath(sb->workspace, step->dir);
	const struct sandbox_limits rest = box_rlimits(&sb->limits, sb->groups);
	int fds[BOX_FDS] = { step->out_fd, step->err_fd, dir_fd };
	int r;

	OBJ_CHECK(sb, NONE_MAGIC);
	must(sb->process == NULL);
	if (dir_fd < 0)
		return E_NOENT;
	p = box_process_new();
	cgroup_begin(sb->groups);
	r = p == NULL ? E_NOMEM : box_start(p, init, sb->init_fd, sb->groups);
	/* An init that has ended already is a matter for wait. */
	if (r == 0 && (r = box_order(p, step, &rest, fds)) == E_SYS)
		r = 0;
	if (r < 0) {
		box_problem(ret_problem, "", "the step's process: %s", err_text(r));
		if (p != NULL && p->pidfd >= 0) {
			(void)io_pidfd_signal(p->pidfd, SIGKILL);
			(void)waitpid(p->pid, NULL, 0);
		}
		return r == E_NOMEM ? r : E_SANDBOX;
	}
	sb->process = *ret_process = TAKE_PTR(p);
	return 0;
}

/* ---- what is left ------------------------------------------------------------------- */

static int
was_seen(const struct sandbox_process *p, const struct proc_seen *it)
{
	for (size_t i = 0; i < p->nseen; i++)
		if (p->seen[i].pid == it->pid && p->seen[i].start_ticks == it->start_ticks)
			return 1;
	return 0;
}

/* For the report: each process once, however often it is met.  Without memory it is killed
 * all the same, and not named. */
static void
remember(struct sandbox_process *p, const struct proc_seen *it)
{
	if (was_seen(p, it))
		return;
	if (p->nseen == p->seen_cap) {
		size_t cap = p->seen_cap == 0 ? 16 : p->seen_cap * 2;
		struct proc_seen *more = mem_realloc(p->seen, cap * sizeof(*more));

		if (more == NULL)
			return;
		p->seen = more;
		p->seen_cap = cap;
	}
	p->seen[p->nseen++] = *it;
}

/* One call that proves it in the usual case: without a child, not even a dead one, a
 * subreaper has no descendants. */
static int
has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
	    errno != ECHILD;
}

/* The next child that is dead, left as it is; 0: there is none. */
static pid_t
next_dead(siginfo_t *ret)
{
	ret->si_pid = 0;
	if (waitid(P_ALL, 0, ret, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return 0;
	return ret->si_pid;
}

/* ${p}, where it is not NULL, remembers those that were killed. */
static void
reap_dead(struct sandbox_process *p)
{
	struct proc_seen seen;
	siginfo_t info;
	pid_t pid;

	while ((pid = next_dead(&info)) != 0) {
		if (p != NULL && info.si_code == CLD_KILLED && info.si_status == SIGKILL &&
		    proc_look(pid, &seen) == 0)
			remember(p, &seen);
		(void)waitpid(pid, NULL, __WALL);
	}
}

/* For one that moves on, by a child that outlives it, faster than all of /proc is read: where
 * it has been there are dead children, and the one that lives is soon met among them. */
static void
chase(struct sandbox_process *p, struct mono_time until)
{
	reap_dead(NULL);
	while (has_children() && mono_diff_us(clock_mono(), until) > 0) {
		proc_kill_children();
		reap_dead(p);
	}
}

static void
await_deaths(const struct proc_seen *list, size_t n)
{
	struct mono_time until = mono_add_ms(clock_mono(), PATIENCE);

	for (size_t i = 0; i < n; i++) {
		struct pollfd fd = { .fd = io_pidfd_open(list[i].pid), .events = POLLIN };
		int64_t left = mono_diff_ms(clock_mono(), until);

		if (fd.fd >= 0 && list[i].state != 'Z')
			(void)poll(&fd, 1, (int)max_i64(left, 0));
		io_close(&fd.fd);
	}
}

static int
is_dead(const struct proc_seen *it)
{
	return it->state == 'Z' || it->state == 'X';
}

/* For those that breed faster than they are killed one by one: what is stopped makes no
 * more, and goes on to count among the processes that the limit allows.  1: all are. */
static int
hold_all(struct mono_time until)
{
	size_t running;

	do {
		struct proc_seen *list = NULL;
		size_t n = 0;

		running = 0;
		if (proc_descendants(&list, &n) < 0)
			return 0;
		for (size_t i = 0; i < n; i++)
			if (!is_dead(&list[i]) && list[i].state != 'T') {
				proc_signal(&list[i], SIGSTOP);
				running++;
			}
		free(list);
	} while (running != 0 && mono_diff_us(clock_mono(), until) > 0);
	return running == 0;
}

/* The group at once, and one by one those that have left it. */
static void
kill_all(const struct sandbox *sb, const struct proc_seen *list, size_t n)
{
	(void)cgroup_kill(sb->groups);
	for (size_t i = 0; i < n; i++)
		if (!is_dead(&list[i]))
			proc_signal(&list[i], SIGKILL);
}

/* Kills every descendant and reaps those that are ours.  Returns how many lived; ${pids}
 * gets some of them. */
static size_t
sweep(struct sandbox *sb, struct mono_time until, pid_t *pids, size_t npids)
{
	struct sandbox_process *p = sb->process;
	struct proc_seen *list = NULL;
	size_t n = 0, live = 0;

	if (!has_children())
		return 0;
	/* What cannot be stopped is killed all the same, now and then. */
	if (sb->breeding % HOLD_SCANS != 0 && !hold_all(until))
		return 1; /* Not proven. */
	if (proc_descendants(&list, &n) < 0)
		return 1;
	for (size_t i = 0; i < n; i++) {
		if (is_dead(&list[i]))
			continue;
		if (p != NULL)
			remember(p, &list[i]);
		if (live < npids)
			pids[live] = list[i].pid;
		live++;
	}
	if (live != 0) {
		kill_all(sb, list, n);
		await_deaths(list, n);
	}
	for (size_t i = 0; i < n; i++)
		if (live != 0 || list[i].parent == getpid())
			(void)waitpid(list[i].pid, NULL, WNOHANG);
	free(list);
	if (live != 0)
		return live;
	chase(p, until);
	return has_children() ? 1 : 0;
}

/* 1: two scans in a row have found nothing. */
static int
sweep_all(struct sandbox *sb, size_t *calm, pid_t *pids, size_t npids)
{
	struct mono_time until = mono_add_ms(clock_mono(), TURN_MS);

	do {
		size_t live = sweep(sb, until, pids, npids);

		*calm = live == 0 ? *calm + 1 : 0;
		sb->breeding = live == 0 ? 0 : sb->breeding + 1;
	} while (*calm < CALM_SCANS && mono_diff_us(clock_mono(), until) > 0);
	return *calm >= CALM_SCANS;
}

/* It may have ended before it was the step; then it said why. */
static void
explain_silence(const struct sandbox_process *p, struct sandbox_result *ret)
{
	char said[256];

	box_said(p, said, sizeof(said));
	if (said[0] == '\0')
		return;
	ret->end = SANDBOX_BROKEN;
	box_problem(&ret->problem, "", "%s", said);
}

static int
none_wait(struct sandbox *sb, struct sandbox_process *p, struct sandbox_result *ret)
{
	OBJ_CHECK(sb, NONE_MAGIC);
	OBJ_CHECK(p, SANDBOX_PROCESS_MAGIC);
	must(sb->process == p);
	if (!box_reap(p) || !sweep_all(sb, &p->calm, NULL, 0))
		return E_BUSY;
	box_listen(p);
	box_result(p, ret);
	if (!p->reported && p->status != 0)
		explain_silence(p, ret);
	ret->oom = cgroup_oom(sb->groups);
	ret->nleft = p->nseen;
	for (size_t i = 0; i < p->nseen && i < SANDBOX_LEFT_MAX; i++) {
		ret->left[i].pid = p->seen[i].pid;
		memcpy(ret->left[i].name, p->seen[i].name, SANDBOX_NAME_SIZE);
	}
	sb->process = box_process_free(p);
	return 0;
}

/* The orphans of a step become our children; dead, they would count among the processes that
 * the limit allows.  The step itself is left to wait. */
static void
none_tend(struct sandbox *sb)
{
	siginfo_t info;
	pid_t pid;

	OBJ_CHECK(sb, NONE_MAGIC);
	if (sb->process == NULL)
		return;
	while ((pid = next_dead(&info)) != 0 && pid != sb->process->pid)
		(void)waitpid(pid, NULL, __WALL);
}

static int
none_signal(struct sandbox *sb, int sig)
{
	struct proc_seen *list = NULL;
	size_t n = 0;
	int r;

	OBJ_CHECK(sb, NONE_MAGIC);
	if (sig == SIGKILL)
		(void)cgroup_kill(sb->groups);
	r = proc_descendants(&list, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		proc_signal(&list[i], sig);
		if (sig == SIGTERM) /* One that is stopped could not answer. */
			proc_signal(&list[i], SIGCONT);
	}
	free(list);
	return r < 0 ? E_SYS : 0;
}

static int
none_close(struct sandbox *sb, pid_t *pids, size_t npids)
{
	size_t calm = 0;

	OBJ_CHECK(sb, NONE_MAGIC);
	for (size_t i = 0; i < npids; i++)
		pids[i] = 0;
	if (!sweep_all(sb, &calm, pids, npids))
		return E_BUSY;
	none_abandon(sb);
	return 0;
}

static void
none_describe(const struct sandbox *sb, char *out, size_t size)
{
	const struct passwd *pw = getpwuid(geteuid());
	char limits[256];

	box_describe_limits(&sb->limits, sb->groups, limits, sizeof(limits));
	if (pw != NULL)
		(void)snprintf(out, size,
		    "Sandbox: none. Steps run as user %s without isolation.\n%s", pw->pw_name,
		    limits);
	else
		(void)snprintf(out, size,
		    "Sandbox: none. Steps run as user %u without isolation.\n%s", geteuid(),
		    limits);
}

const struct sandbox_driver sandbox_driver_none = {
	.name = "none",
	.probe = none_probe,
	.open = none_open,
	.prepare = none_prepare,
	.spawn = none_spawn,
	.signal = none_signal,
	.tend = none_tend,
	.wait = none_wait,
	.close = none_close,
	.abandon = none_abandon,
	.describe = none_describe,
};
