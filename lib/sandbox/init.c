/*
 * anvil-init: PID 1 of a bwrap sandbox, and the last stretch before a step in both drivers.
 *
 * It is linked alone into a small static program and runs from a descriptor, so that no file
 * of it is in the sandbox.  It allocates nothing.  When it ends, the kernel ends whatever
 * else is in its namespace; so it ends as soon as the step's own process has.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/sandbox/box.h"

#define EXIT_LOST 70

/* An order as it came. */
struct order {
	struct box_step head;
	char text[BOX_ORDER_MAX];
	char *words[BOX_WORDS_MAX];
	char **env;
	const char *dir;
	int fds[BOX_FDS];
};

struct init {
	int ctl_fd;
	int signal_fd;
	int error_fd; /* What the step's process says when it cannot begin. */
	pid_t step;
};

/* ---- orders ------------------------------------------------------------------------- */

static void
take_fds(struct msghdr *m, int fds[BOX_FDS])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && n <= BOX_FDS)
			memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
}

/* One message into ${o}; its kind, 0 at the end of the connection, -1 when it is not ours. */
static int
receive(int ctl_fd, struct order *o)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(BOX_FDS * sizeof(int))];
	} control;
	struct iovec iov[2] = { { &o->head, sizeof(o->head) },
		{ o->text, sizeof(o->text) - 1 } };
	struct msghdr m = { .msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n;

	for (int i = 0; i < BOX_FDS; i++)
		o->fds[i] = -1;
	do
		n = recvmsg(ctl_fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	take_fds(&m, o->fds);
	if ((size_t)n >= sizeof(struct box_signal) && o->head.kind == BOX_SIGNAL)
		return BOX_SIGNAL;
	if ((size_t)n < sizeof(o->head) || o->head.kind != BOX_STEP ||
	    (size_t)n - sizeof(o->head) != o->head.text_bytes)
		return -1;
	o->text[o->head.text_bytes] = '\0';
	return BOX_STEP;
}

/* Points at the strings.  0, or -1: they are not as many as the head says. */
static int
split(struct order *o)
{
	char *at = o->text, *end = o->text + o->head.text_bytes;
	uint32_t nwords = o->head.argc + o->head.envc;
	size_t n = 0;

	if (o->head.argc == 0 || o->head.argc >= BOX_WORDS_MAX ||
	    o->head.envc >= BOX_WORDS_MAX || nwords + 2 > BOX_WORDS_MAX)
		return -1;
	for (uint32_t i = 0; i < nwords; i++) {
		if (at >= end)
			return -1;
		o->words[n++] = at;
		at += strlen(at) + 1;
		if (i + 1 == o->head.argc)
			o->words[n++] = NULL;
	}
	o->words[n] = NULL;
	o->env = o->words + o->head.argc + 1;
	o->dir = at;
	return o->words[0] != NULL && at < end && at + strlen(at) + 1 == end ? 0 : -1;
}

/* ---- becoming the step -------------------------------------------------------------- */

static int
set_limit(__rlimit_resource_t what, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(what, &now) < 0)
		return -1;
	if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max)
		value = now.rlim_max;
	now.rlim_cur = now.rlim_max = value;
	return setrlimit(what, &now);
}

static int
enter_directory(const struct order *o)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int root, fd = o->fds[2];

	if (fd < 0) {
		root = open(BOX_WORKSPACE_AT, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -1;
		fd = (int)syscall(SYS_openat2, root, o->dir, &how, sizeof(how));
	}
	return fd < 0 ? -1 : fchdir(fd);
}

static int
set_descriptors(const struct order *o)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(o->fds[0], 1) < 0 ||
	    dup2(o->fds[1], 2) < 0)
		return -1;
	return close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* Past the C library, which keeps two signals to itself and leaves them as inherited. */
static void
reset_signals(void)
{
	unsigned long long dfl[4] = { 0 }; /* The kernel's sigaction: all zero is SIG_DFL. */

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, sizeof(unsigned long long));
}

static int
set_state(const struct order *o)
{
	sigset_t none;

	reset_signals();
	(void)sigemptyset(&none);
	(void)umask(022);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || set_limit(RLIMIT_CORE, 0) < 0)
		return -1;
	if (o->head.memory_bytes != 0 && set_limit(RLIMIT_DATA, o->head.memory_bytes) < 0)
		return -1;
	return o->head.max_processes != 0 ? set_limit(RLIMIT_NPROC, o->head.max_processes) : 0;
}

static void
raise_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* A container may forbid it; a step is then as likely a victim as its neighbours. */
	if (fd >= 0 && write(fd, "500", 3) < 0)
		errno = 0;
	if (fd >= 0)
		(void)close(fd);
}

static const char *
search_path(char *const env[])
{
	for (; *env != NULL; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return "/usr/bin:/bin";
}

static void
execute(const struct order *o)
{
	const char *path = search_path(o->env), *name = o->words[0];
	int err = ENOENT;
	char file[PATH_MAX];

	if (strchr(name, '/') != NULL) {
		(void)execve(name, o->words, o->env);
		return;
	}
	while (*path != '\0') {
		size_t n = strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, name) < PATH_MAX) {
			(void)execve(file, o->words, o->env);
			if (errno != ENOENT && errno != ENOTDIR)
				err = errno;
		}
		path += path[n] == ':' ? n + 1 : n;
	}
	errno = err;
}

/* Returns only when it failed: the end to report, and errno. */
static enum sandbox_end
become(const struct order *o)
{
	if (setsid() < 0 && errno != EPERM)
		return SANDBOX_BROKEN;
	if (enter_directory(o) < 0)
		return SANDBOX_NO_DIRECTORY;
	if (set_state(o) == 0 && set_descriptors(o) == 0)
		execute(o);
	return SANDBOX_BROKEN;
}

/* ---- PID 1 -------------------------------------------------------------------------- */

static void
add_leftover(struct box_report *r, const char *pid)
{
	char file[64], text[512], *name, *close_at;
	struct sandbox_left *left;
	ssize_t n;
	int fd;

	(void)snprintf(file, sizeof(file), "/proc/%.16s/stat", pid);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	name = strchr(text, '(');
	close_at = strrchr(text, ')');
	if (name == NULL || close_at == NULL || close_at[1] != ' ' || close_at[2] == 'Z' ||
	    close_at[2] == 'X')
		return;
	if (r->nleft++ >= SANDBOX_LEFT_MAX)
		return;
	*close_at = '\0';
	left = &r->left[r->nleft - 1];
	left->pid = (pid_t)strtol(pid, NULL, 10);
	(void)snprintf(left->name, sizeof(left->name), "%.15s", name + 1);
}

static void
find_leftovers(struct box_report *r)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && strcmp(e->d_name, "1") != 0)
			add_leftover(r, e->d_name);
	if (d != NULL)
		(void)closedir(d);
}

static void
report_end(struct init *in, int status)
{
	struct box_report r = { .kind = BOX_REPORT, .status = status };
	int32_t said[2];

	r.end = WIFSIGNALED(status) ? SANDBOX_SIGNALED : SANDBOX_EXITED;
	if (read(in->error_fd, said, sizeof(said)) == sizeof(said)) {
		r.end = (uint32_t)said[0];
		r.err = said[1];
	}
	find_leftovers(&r);
	_exit(send(in->ctl_fd, &r, sizeof(r), MSG_NOSIGNAL) < 0 ? EXIT_LOST : 0);
}

static void
start_step(struct init *in, struct order *o)
{
	int pipe_fds[2];

	if (in->step != 0 || split(o) < 0 || o->fds[0] < 0 || o->fds[1] < 0 ||
	    pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		_exit(EXIT_LOST);
	in->error_fd = pipe_fds[0];
	in->step = fork();
	if (in->step == 0) {
		int32_t say[2];

		say[0] = (int32_t)become(o);
		say[1] = errno;
		_exit(write(pipe_fds[1], say, sizeof(say)) < 0 ? EXIT_LOST : 127);
	}
	if (in->step < 0)
		_exit(EXIT_LOST);
	(void)close(pipe_fds[1]);
	for (int i = 0; i < BOX_FDS; i++)
		if (o->fds[i] >= 0)
			(void)close(o->fds[i]);
}

static void
on_order(struct init *in, struct order *o)
{
	struct box_signal s;

	switch (receive(in->ctl_fd, o)) {
	case BOX_STEP: start_step(in, o); break;
	case BOX_SIGNAL:
		memcpy(&s, &o->head, sizeof(s));
		(void)kill(-1, s.sig);
		/* One that is stopped could not answer. */
		if (s.sig == SIGTERM)
			(void)kill(-1, SIGCONT);
		break;
	default: _exit(EXIT_LOST); /* The run is gone, and so is everything here. */
	}
}

static void
on_child(struct init *in)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	(void)!read(in->signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == in->step)
			report_end(in, status);
}

static int
run_pid1(struct init *in, struct order *o)
{
	uint32_t hello = BOX_HELLO;
	struct pollfd fds[2];
	sigset_t chld;

	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	raise_oom_score();
	/* From here on /proc/1 is closed to the steps, who have the same uid. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || sigprocmask(SIG_BLOCK, &chld, NULL) < 0 ||
	    (in->signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK)) < 0 ||
	    send(in->ctl_fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
		return EXIT_LOST;
	fds[0] = (struct pollfd) { .fd = in->ctl_fd, .events = POLLIN };
	fds[1] = (struct pollfd) { .fd = in->signal_fd, .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_LOST;
		/* Children first: an order to kill must not hide how the step ended. */
		if (fds[1].revents != 0)
			on_child(in);
		if (fds[0].revents != 0)
			on_order(in, o);
	}
}

/* ---- without a namespace ------------------------------------------------------------ */

static int
run_exec(struct init *in, struct order *o)
{
	struct box_report r = { .kind = BOX_REPORT };

	if (receive(in->ctl_fd, o) != BOX_STEP || split(o) < 0)
		return EXIT_LOST;
	raise_oom_score();
	r.end = become(o);
	r.err = errno;
	(void)!send(in->ctl_fd, &r, sizeof(r), MSG_NOSIGNAL);
	return 127;
}

int
sandbox_init_main(int argc, char *argv[])
{
	struct init in = { .ctl_fd = BOX_CTL_FD, .signal_fd = -1, .error_fd = -1 };
	struct order o;

	if (argc != 3 || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return EXIT_LOST;
	return strcmp(argv[2], "pid1") == 0 ? run_pid1(&in, &o) : run_exec(&in, &o);
}
