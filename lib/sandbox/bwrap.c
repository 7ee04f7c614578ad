/*
 * The driver `bwrap`: each step in namespaces of its own, made by bubblewrap.
 *
 * Our child is bwrap; its child is our init, PID 1 of the namespace, to which a socket pair
 * leads.  The next step's surroundings can be made ahead (prepare): bwrap and the init
 * are started and wait for their order.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/box.h"

#define SPARE    2  /* Processes beside the step's: bwrap and the init. */
#define PATIENCE 10 /* Milliseconds that close waits for each of its two. */

struct sandbox {
	uint32_t magic;
#define BWRAP_MAGIC 0x91d3a06e
	struct bwrap_args *args; /* Owned. */
	char *workspace;         /* Owned: on the host. */
	int init_fd;
	struct sandbox_limits limits;
	struct cgroup *groups;           /* Owned. */
	struct sandbox_process *next;    /* Owned: prepared; NULL: nothing is. */
	struct sandbox_process *process; /* Owned: the step's; NULL: none runs. */
};

static void
bwrap_abandon(struct sandbox *sb)
{
	OBJ_CHECK(sb, BWRAP_MAGIC);
	sb->magic = 0;
	(void)box_process_free(sb->next);
	(void)box_process_free(sb->process);
	(void)bwrap_args_free(sb->args);
	(void)cgroup_free(sb->groups);
	io_close(&sb->init_fd);
	free(sb->workspace);
	free(sb);
}

static int
bwrap_open(const struct sandbox_paths *paths, const struct sandbox_limits *limits,
    struct sandbox **ret_sandbox, struct sandbox_problem *ret_problem)
{
	struct sandbox *sb;
	int r = bwrap_check(ret_problem);

	if (r < 0)
		return r;
	sb = mem_calloc(1, sizeof(*sb));
	if (sb == NULL) {
		box_problem(ret_problem, "", "out of memory");
		return E_NOMEM;
	}
	sb->magic = BWRAP_MAGIC;
	sb->limits = *limits;
	sb->init_fd = open(paths->init_path, O_RDONLY | O_CLOEXEC);
	if (sb->init_fd < 0) {
		box_problem(ret_problem, "Install anvil completely.", "%s: %s",
		    paths->init_path, strerror(errno));
		bwrap_abandon(sb);
		return E_SANDBOX;
	}
	sb->workspace = mem_strdup(paths->workspace);
	sb->args = bwrap_args_new(bwrap_find(), paths);
	sb->groups = cgroup_new(limits, SPARE);
	if (sb->workspace == NULL || sb->args == NULL || sb->groups == NULL) {
		box_problem(ret_problem, "", "out of memory");
		bwrap_abandon(sb);
		return E_NOMEM;
	}
	*ret_sandbox = sb;
	return 0;
}

/* 0, E_NOMEM, E_SYS. */
static int
start(struct sandbox *sb, struct sandbox_process **ret)
{
	CLEANUP(box_process_freep) struct sandbox_process *p = box_process_new();
	int r = p == NULL ? E_NOMEM
			  : box_start(p, bwrap_args_argv(sb->args), sb->init_fd, sb->groups);

	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

static void
bwrap_prepare(struct sandbox *sb)
{
	OBJ_CHECK(sb, BWRAP_MAGIC);
	if (sb->next == NULL)
		(void)start(sb, &sb->next);
}

static int
bwrap_spawn(struct sandbox *sb, const struct sandbox_step *step,
    struct sandbox_process **ret_process, struct sandbox_problem *ret_problem)
{
	CLEANUP(io_closep) int dir_fd = sandbox_open_beneath(sb->workspace, step->dir);
	const struct sandbox_limits rest = box_rlimits(&sb->limits, sb->groups);
	const int fds[BOX_FDS] = { step->out_fd, step->err_fd, -1 };
	int r = 0;

	OBJ_CHECK(sb, BWRAP_MAGIC);
	must(sb->process == NULL);
	if (dir_fd < 0)
		return E_NOENT;
	if (sb->next == NULL)
		r = start(sb, &sb->next);
	/* A bwrap that has ended already is a matter for wait, which knows why. */
	cgroup_begin(sb->groups);
	if (r == 0 && (r = box_order(sb->next, step, &rest, fds)) == E_SYS)
		r = 0;
	if (r < 0) {
		box_problem(ret_problem, "", "the step's process: %s", err_text(r));
		return r == E_NOMEM ? r : E_SANDBOX;
	}
	*ret_process = sb->process = TAKE_PTR(sb->next);
	return 0;
}

/* Ends the init, and with it all of its namespace; then bwrap ends by itself.  Killing bwrap
 * first would be wrong: its child waits for it for ever when it has just been cloned. */
static int
kill_init(struct sandbox_process *p)
{
	box_listen(p);
	if (p->init_pidfd >= 0)
		return io_pidfd_signal(p->init_pidfd, SIGKILL) < 0 && errno != ESRCH ? E_SYS
										     : 0;
	/* One that is not there yet finds the end of its orders. */
	return shutdown(p->ctl_fd, SHUT_WR) < 0 && errno != ENOTCONN ? E_SYS : 0;
}

static int
bwrap_signal(struct sandbox *sb, int sig)
{
	struct sandbox_process *p = sb->process;

	OBJ_CHECK(sb, BWRAP_MAGIC);
	if (p == NULL || p->ended || box_send_signal(p, sig) == 0)
		return 0;
	return sig == SIGKILL ? kill_init(p) : 0;
}

/* 1: the init has ended, and with it, before it, everything in its namespace. */
static int
init_is_gone(struct sandbox_process *p)
{
	struct pollfd init = { .fd = p->init_pidfd, .events = POLLIN };
	char byte;

	if (p->init_gone)
		return 1;
	if (p->init_pidfd >= 0) {
		if (poll(&init, 1, 0) <= 0)
			return 0;
		/* bwrap has reaped it; one whose bwrap was killed became our child. */
		(void)waitpid(p->init, NULL, WNOHANG);
		return 1;
	}
	/* It never said hello: nobody has the other end of the socket any more. */
	return recv(p->ctl_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static int
is_of_this_run(const struct sandbox *sb, pid_t pid)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	return io_read_file(AT_FDCWD, path, BOX_ORDER_MAX, &b) == 0 && b.len != 0 &&
	    memmem(b.data, b.len, sb->workspace, strlen(sb->workspace) + 1) != NULL;
}

/* Somebody killed bwrap between its clone and its child's first step: that child waits for
 * ever, and has become ours. */
static void
kill_orphans(struct sandbox *sb)
{
	struct proc_seen *list = NULL;
	size_t n = 0;

	if (proc_descendants(&list, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (list[i].parent == getpid() && is_of_this_run(sb, list[i].pid) &&
		    (sb->next == NULL || sb->next->pid != list[i].pid)) {
			proc_signal(&list[i], SIGKILL);
			(void)waitpid(list[i].pid, NULL, WNOHANG);
		}
	free(list);
}

/* 1: both are gone. */
static int
is_gone(struct sandbox *sb, struct sandbox_process *p)
{
	box_listen(p);
	if (!box_reap(p))
		return 0;
	box_listen(p);
	if (init_is_gone(p))
		return 1;
	if (p->init_pidfd >= 0)
		(void)io_pidfd_signal(p->init_pidfd, SIGKILL);
	else
		kill_orphans(sb);
	return 0;
}

static int
bwrap_wait(struct sandbox *sb, struct sandbox_process *p, struct sandbox_result *ret)
{
	OBJ_CHECK(sb, BWRAP_MAGIC);
	OBJ_CHECK(p, SANDBOX_PROCESS_MAGIC);
	must(sb->process == p);
	if (!is_gone(sb, p))
		return E_BUSY;
	box_result(p, ret);
	if (!p->reported && !p->greeted) {
		memset(ret, 0, sizeof(*ret));
		ret->end = SANDBOX_BROKEN;
		bwrap_explain(p, &ret->problem);
	} else if (!p->reported) {
		/* The init was killed with all the rest. */
		ret->end = SANDBOX_SIGNALED;
		ret->code = SIGKILL;
	}
	ret->oom = cgroup_oom(sb->groups);
	sb->process = box_process_free(p);
	return 0;
}

/* Ends one; 1: it is gone and freed. */
static int
finish(struct sandbox *sb, struct sandbox_process **p)
{
	struct pollfd fd;

	if (*p == NULL)
		return 1;
	(void)kill_init(*p);
	fd = (struct pollfd) { .fd = (*p)->pidfd, .events = POLLIN };
	(void)poll(&fd, 1, PATIENCE);
	if (!is_gone(sb, *p))
		return 0;
	*p = box_process_free(*p);
	return 1;
}

static int
bwrap_close(struct sandbox *sb, pid_t *pids, size_t npids)
{
	struct sandbox_process **all[] = { &sb->process, &sb->next };
	size_t n = 0;
	int busy = 0;

	OBJ_CHECK(sb, BWRAP_MAGIC);
	for (size_t i = 0; i < npids; i++)
		pids[i] = 0;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (finish(sb, all[i]))
			continue;
		busy = 1;
		if (n < npids)
			pids[n++] = (*all[i])->ended ? (*all[i])->init : (*all[i])->pid;
	}
	if (busy)
		return E_BUSY;
	bwrap_abandon(sb);
	return 0;
}

static void
bwrap_describe(const struct sandbox *sb, char *out, size_t size)
{
	char limits[256];

	box_describe_limits(&sb->limits, sb->groups, limits, sizeof(limits));
	(void)snprintf(out, size,
	    "Sandbox: bwrap. Own user, mount, PID, IPC and UTS namespaces, read-only system, "
	    "private /tmp and HOME; the network is the host's.\n%s",
	    limits);
}

const struct sandbox_driver sandbox_driver_bwrap = {
	.name = "bwrap",
	.workspace_at = BOX_WORKSPACE_AT,
	.tmp_at = "/tmp",
	.home_at = "/home/anvil",
	.objects_at = "/mirror/objects",
	.probe = bwrap_probe,
	.open = bwrap_open,
	.prepare = bwrap_prepare,
	.spawn = bwrap_spawn,
	.signal = bwrap_signal,
	.wait = bwrap_wait,
	.close = bwrap_close,
	.abandon = bwrap_abandon,
	.describe = bwrap_describe,
};
