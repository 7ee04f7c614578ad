/*
 * Starting an init, giving it its step, and hearing what became of it: both drivers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/box.h"

#define SAFE_FD 64 /* Above every number that the child gives out. */

struct sandbox_process *
box_process_new(void)
{
	struct sandbox_process *p = mem_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->magic = SANDBOX_PROCESS_MAGIC;
	p->pidfd = p->ctl_fd = p->errors_fd = p->init_pidfd = -1;
	return p;
}

struct sandbox_process *
box_process_free(struct sandbox_process *p)
{
	if (p == NULL)
		return NULL;
	OBJ_CHECK(p, SANDBOX_PROCESS_MAGIC);
	p->magic = 0;
	io_close(&p->pidfd);
	io_close(&p->ctl_fd);
	io_close(&p->errors_fd);
	io_close(&p->init_pidfd);
	free(p->seen);
	return mem_free(p);
}

/* ---- starting ----------------------------------------------------------------------- */

/* In the child, where only async-signal-safe calls are allowed. */
static void
place_descriptors(int ctl, int init_fd, int errors_fd)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int from[] = { fcntl(null_fd, F_DUPFD, SAFE_FD), fcntl(errors_fd, F_DUPFD, SAFE_FD),
		fcntl(errors_fd, F_DUPFD, SAFE_FD), fcntl(ctl, F_DUPFD, SAFE_FD),
		fcntl(init_fd, F_DUPFD, SAFE_FD) };

	for (int to = 0; to < (int)ARRAY_LEN(from); to++)
		if (from[to] < 0 || dup2(from[to], to) < 0)
			_exit(127);
	if (close_range(ARRAY_LEN(from), ~0U, 0) < 0)
		_exit(127);
}

static void
fail_child(const char *what, int err)
{
	(void)dprintf(2, "%s: errno %d", what, err);
	_exit(127);
}

static void
child(const struct sandbox_process *p, int fds[2], char *const argv[],
    const struct cgroup *groups, pid_t parent)
{
	static char *const no_env[] = { NULL };
	int err = groups != NULL && cgroup_join(groups) < 0 ? errno : 0;
	sigset_t none;

	/* bwrap asks for it itself, when its own child can no longer be left behind. */
	if (argv[0][0] == '\0' && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(127);
	(void)setsid();
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	place_descriptors(fds[0], fds[1], p->errors_fd);
	if (err != 0)
		fail_child("the step's cgroup cannot be entered", err);
	if (argv[0][0] == '\0')
		(void)execveat(BOX_INIT_FD, "", argv, no_env, AT_EMPTY_PATH);
	else
		(void)execve(argv[0], argv, no_env);
	fail_child("cannot be executed", errno);
}

/* A signal that comes between fork and exec would run the caller's handlers in the child and
 * be lost to it; blocked, it waits until the child is itself. */
static pid_t
fork_shielded(void)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid != 0)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int
box_start(struct sandbox_process *p, const char *const argv[], int init_fd,
    const struct cgroup *groups)
{
	CLEANUP(io_closep) int theirs = -1;
	pid_t parent = getpid();
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return E_SYS;
	p->ctl_fd = pair[0];
	theirs = pair[1];
	p->errors_fd = memfd_create("anvil-sandbox-errors", MFD_CLOEXEC);
	if (p->errors_fd < 0 ||
	    setsockopt(p->ctl_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return E_SYS;
	p->pid = fork_shielded();
	if (p->pid == 0) /* exec takes its words as they are; the const is ours. */
		child(p, (int[]) { theirs, init_fd }, (char *const *)(uintptr_t)argv, groups,
		    parent);
	if (p->pid < 0)
		return err_from_errno(errno);
	p->pidfd = io_pidfd_open(p->pid);
	if (p->pidfd < 0) {
		/* A child that nobody has waited for keeps its pid. */
		(void)kill(p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
		p->pid = 0;
		return E_SYS;
	}
	(void)io_set_cloexec(p->pidfd, 1);
	return 0;
}

/* ---- orders ------------------------------------------------------------------------- */

static uint32_t
add_words(struct buf *text, const char *const words[])
{
	uint32_t n = 0;

	for (; words[n] != NULL; n++)
		(void)buf_add(text, words[n], strlen(words[n]) + 1);
	return n;
}

static int
send_step(int ctl_fd, struct box_step *head, struct buf *text, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(BOX_FDS * sizeof(int))];
	} control;
	struct iovec iov[2] = { { head, sizeof(*head) }, { text->data, text->len } };
	struct msghdr m = { .msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(nfds * sizeof(int)) };
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	return sendmsg(ctl_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? E_SYS : 0;
}

int
box_order(struct sandbox_process *p, const struct sandbox_step *step,
    const struct sandbox_limits *limits, const int fds[BOX_FDS])
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct box_step head = { .kind = BOX_STEP };

	head.argc = add_words(&text, step->argv);
	head.envc = add_words(&text, step->env);
	(void)buf_add(&text, step->dir, strlen(step->dir) + 1);
	if (text.failed)
		return E_NOMEM;
	if (text.len >= BOX_ORDER_MAX || head.argc == 0 ||
	    head.argc + head.envc + 2 > BOX_WORDS_MAX)
		return E_TOO_BIG;
	head.text_bytes = (uint32_t)text.len;
	head.memory_bytes = (uint64_t)max_i64(limits->memory_bytes, 0);
	head.max_processes = (uint64_t)max_i64(limits->max_processes, 0);
	p->ordered = 1;
	return send_step(p->ctl_fd, &head, &text, fds, fds[2] < 0 ? 2 : 3);
}

int
box_send_signal(struct sandbox_process *p, int sig)
{
	struct box_signal s = { BOX_SIGNAL, sig };

	return send(p->ctl_fd, &s, sizeof(s), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? E_SYS : 0;
}

/* ---- hearing ------------------------------------------------------------------------ */

/* The hello may be read late, when the init has ended and its pid is another's. */
static void
find_init(struct sandbox_process *p, pid_t pid)
{
	CLEANUP(io_closep) int fd = io_pidfd_open(pid);
	struct proc_seen seen;

	if (fd < 0 || proc_look(pid, &seen) < 0 ||
	    (seen.parent != p->pid && seen.parent != getpid())) {
		p->init_gone = 1;
		return;
	}
	p->init = pid;
	p->init_pidfd = fd;
	fd = -1;
}

static void
greet(struct sandbox_process *p, struct msghdr *m)
{
	struct ucred who;

	if (p->greeted)
		return;
	p->greeted = 1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		find_init(p, who.pid);
	}
}

static ssize_t
listen_once(struct sandbox_process *p, struct box_report *r, struct msghdr *m)
{
	struct iovec iov = { r, sizeof(*r) };
	ssize_t n;

	m->msg_iov = &iov;
	m->msg_iovlen = 1;
	do
		n = recvmsg(p->ctl_fd, m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	m->msg_iov = NULL;
	return n;
}

void
box_listen(struct sandbox_process *p)
{
	for (;;) {
		union {
			struct cmsghdr align;
			char space[CMSG_SPACE(sizeof(struct ucred)) + 64];
		} control;
		struct msghdr m = { .msg_control = &control,
			.msg_controllen = sizeof(control) };
		struct box_report r;
		ssize_t n = listen_once(p, &r, &m);

		if (n <= 0)
			return;
		if ((size_t)n >= sizeof(r.kind) && r.kind == BOX_HELLO)
			greet(p, &m);
		/* The first word counts; what a step might add later does not. */
		if ((size_t)n == sizeof(r) && r.kind == BOX_REPORT && !p->reported) {
			p->report = r;
			p->reported = 1;
		}
	}
}

int
box_reap(struct sandbox_process *p)
{
	int status;
	pid_t pid;

	if (p->ended)
		return 1;
	pid = waitpid(p->pid, &status, WNOHANG);
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return 0;
	p->ended = 1;
	/* Somebody else's wait took it: nobody knows how it ended. */
	p->status = pid < 0 ? SIGKILL : status;
	return 1;
}

static void
set_status(struct sandbox_result *ret, int status)
{
	ret->end = WIFSIGNALED(status) ? SANDBOX_SIGNALED : SANDBOX_EXITED;
	ret->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

void
box_said(const struct sandbox_process *p, char *out, size_t size)
{
	ssize_t n = pread(p->errors_fd, out, size - 1, 0);

	out[max_i64(n, 0)] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

void
box_result(const struct sandbox_process *p, struct sandbox_result *ret)
{
	const struct box_report *r = &p->report;

	memset(ret, 0, sizeof(*ret));
	if (!p->reported) {
		set_status(ret, p->status);
		return;
	}
	if (r->end == SANDBOX_NO_DIRECTORY) {
		ret->end = SANDBOX_NO_DIRECTORY;
		return;
	}
	if (r->end == SANDBOX_BROKEN) {
		ret->end = SANDBOX_BROKEN;
		box_problem(
		    &ret->problem, "", "the step's shell did not start: %s", strerror(r->err));
		return;
	}
	set_status(ret, r->status);
	ret->nleft = r->nleft;
	memcpy(ret->left, r->left, sizeof(ret->left));
	for (size_t i = 0; i < SANDBOX_LEFT_MAX; i++)
		ret->left[i].name[SANDBOX_NAME_SIZE - 1] = '\0';
}
