#include "cmd/anvild/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"

#define FD_START    3 /* as lib/actor expects them */
#define FD_LIFELINE 4
#define FD_MORE     5
#define EXEC_FAILED 127

int
spawn_memfd(const void *text, size_t n)
{
	CLEANUP(io_closep)
	int fd = memfd_create("anvil-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int out;

	if (fd < 0 || io_write_all(fd, text, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
	    0)
		return -1;
	out = fd;
	fd = -1;
	return out;
}

/* ---- between fork and exec: async-signal-safe calls only ---- */

static void
signals_default(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Copies ${fd} above every number that the layout uses, so that dup2() overwrites nothing. */
static int
lift(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD, FD_MORE + SPAWN_FDS_MAX + 1);
}

/* Puts the descriptors where the program expects them and closes all others.
 * Returns the gate's new number, or -1. */
static int
lay_descriptors(const struct spawn_desc *d, int gate)
{
	int start = lift(d->start_fd), lifeline = lift(d->lifeline_fd);
	int more[SPAWN_FDS_MAX], null = open("/dev/null", O_RDWR);
	int top = FD_MORE + (int)d->nmore_fds;

	gate = lift(gate);
	for (size_t i = 0; i < d->nmore_fds; i++)
		more[i] = lift(d->more_fds[i]);
	if (null < 0 || start < 0 || gate < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
		return -1;
	if (dup2(start, FD_START) < 0)
		return -1;
	if (lifeline >= 0 ? dup2(lifeline, FD_LIFELINE) < 0 : (close(FD_LIFELINE), 0))
		return -1;
	for (size_t i = 0; i < d->nmore_fds; i++)
		if (dup2(more[i], FD_MORE + (int)i) < 0)
			return -1;
	if (dup2(gate, top) < 0 || fcntl(top, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	if (close_range((unsigned)top + 1, ~0u, 0) < 0)
		return -1;
	return top;
}

static void NORETURN
child_run(const struct spawn_desc *d, int gate)
{
	ssize_t got;
	char go;

	/* Its own session: a Ctrl-C on the supervisor's terminal is the supervisor's alone. */
	(void)setsid();
	signals_default();
	gate = lay_descriptors(d, gate);
	if (gate < 0)
		_exit(EXEC_FAILED);
	CRASH_POINT("child_at_gate");
	do
		got = read(gate, &go, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0); /* the parent never committed us */
	CRASH_POINT("child_through_gate");
	(void)execv(d->program, (char *const *)(uintptr_t)d->argv);
	_exit(EXEC_FAILED);
}

/* ---- the parent ---- */

int
spawn_fork(const struct spawn_desc *d, struct spawned *ret)
{
	CLEANUP(io_closep) int gate_read = -1;
	struct spawned s = SPAWNED_NONE;
	int gate[2];

	must(d->nmore_fds <= SPAWN_FDS_MAX);
	if (pipe2(gate, O_CLOEXEC) < 0)
		return err_from_errno(errno);
	gate_read = gate[0];
	s.gate_fd = gate[1];
	s.pid = fork();
	if (s.pid < 0) {
		int r = errno == EAGAIN ? E_BUSY : err_from_errno(errno);

		io_close(&s.gate_fd);
		return r;
	}
	if (s.pid == 0)
		child_run(d, gate_read);
	CRASH_POINT("supervisor_forked");
	s.pidfd = io_pidfd_open(s.pid);
	if (s.pidfd < 0 || io_proc_start_time(s.pid, &s.start_ticks) < 0) {
		spawn_abandon(&s);
		return E_SYS;
	}
	*ret = s;
	return 0;
}

void
spawn_open(struct spawned *s)
{
	if (s->gate_fd >= 0)
		(void)io_write_all(s->gate_fd, "", 1);
	io_close(&s->gate_fd);
}

void
spawn_abandon(struct spawned *s)
{
	io_close(&s->gate_fd);
	io_close(&s->pidfd);
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	s->pid = -1;
}
