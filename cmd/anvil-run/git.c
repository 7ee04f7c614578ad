#include "cmd/anvil-run/git.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvil-run/place.h"
#include "lib/actor/actor.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define READ_BYTES     16384
#define REQUEST_BYTES  16384 /* More than any request that fits a pipe at once. */
#define GIT_MEMORY_MIN ((rlim_t)1 << 30)

struct git {
	uint32_t magic;
#define GIT_MAGIC 0x71f0a2c8
	struct actor *actor;
	struct git_ops ops;
	void *arg;
	pid_t pid;
	int pidfd, request_fd, result_fd;
	struct actor_watch *ended, *results;
	struct actor_timer *kill;
	struct checkout_decoder decoder;
	int last_word; /* `done` or `failed` has come. */
	int stopping;  /* Nobody wants to hear it. */
	int gone;
};

/* ---- the fork ---- */

static void
close_both(int fds[2])
{
	io_close(&fds[0]);
	io_close(&fds[1]);
}

/* A server may send refs without end.  Half of the machine's memory, or what is set already,
 * leaves room for everybody else; sanitizers reserve more than any machine has. */
static void
limit_memory(rlim_t bytes)
{
#ifndef ANVIL_SANITIZED
	struct rlimit l;

	if (getrlimit(RLIMIT_DATA, &l) < 0)
		return;
	if (bytes < l.rlim_cur)
		l.rlim_cur = l.rlim_max = bytes;
	(void)setrlimit(RLIMIT_DATA, &l);
#else
	(void)bytes;
#endif
}

static rlim_t
memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	rlim_t half = pages > 0 && size > 0 ? (rlim_t)pages / 2 * (rlim_t)size : 0;

	return half > GIT_MEMORY_MIN ? half : GIT_MEMORY_MIN;
}

/* Between fork and exec.  It gets these three, /dev/null and no environment (in a test: which
 * point it dies at): not the start object, which has keys. */
static void
become(const char *program, rlim_t memory, int request_fd, int result_fd, int noise_fd)
{
	static char request[] = "3", result[] = "4", name[] = "anvil-checkout";
	static char *const argv[] = { name, request, result, NULL };
	char *const env[] = { CRASH_VARIABLE(), NULL };
	int from = fcntl(request_fd, F_DUPFD_CLOEXEC, 10);
	int to = fcntl(result_fd, F_DUPFD_CLOEXEC, 10);

	if (from < 0 || to < 0 || dup2(noise_fd, STDOUT_FILENO) < 0 ||
	    dup2(noise_fd, STDERR_FILENO) < 0 || dup2(from, 3) < 0 || dup2(to, 4) < 0 ||
	    close_range(5, ~0U, 0) < 0)
		_exit(126);
	limit_memory(memory);
	(void)execve(program, argv, env);
	dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

int
git_start(struct git_child *ret)
{
	int request[2] = { -1, -1 }, result[2] = { -1, -1 }, noise[2] = { -1, -1 };
	CLEANUP_FREE char *program = place_program("anvil-checkout");
	rlim_t memory = memory_bytes();
	pid_t pid = -1;

	if (program == NULL)
		return E_NOMEM;
	if (pipe2(request, O_CLOEXEC) == 0 && pipe2(result, O_CLOEXEC) == 0 &&
	    pipe2(noise, O_CLOEXEC) == 0)
		pid = fork();
	if (pid < 0) {
		close_both(request);
		close_both(result);
		close_both(noise);
		return E_SYS;
	}
	if (pid == 0)
		become(program, memory, request[0], result[1], noise[1]);
	io_close(&request[0]);
	io_close(&result[1]);
	io_close(&noise[1]);
	*ret = (struct git_child) { pid, request[1], result[0], noise[0] };
	return 0;
}

/* ---- what it says ---- */

/* 1: it spoke nonsense. */
static int
deliver(struct git *g)
{
	struct checkout_message m;
	int r = 0;

	while (!g->stopping && (r = checkout_decoder_next(&g->decoder, &m)) == 1) {
		g->last_word |= m.kind == CHECKOUT_DONE || m.kind == CHECKOUT_FAILED;
		g->ops.on_message(g->arg, &m);
	}
	return r < 0;
}

/* 1: the pipe has ended. */
static int
read_results(struct git *g)
{
	char bytes[READ_BYTES];
	ssize_t n;

	while ((n = read(g->result_fd, bytes, sizeof(bytes))) > 0)
		if (g->stopping)
			continue;
		else if (checkout_decoder_feed(&g->decoder, bytes, (size_t)n) < 0 || deliver(g))
			git_stop(g, 1);
	return n == 0 || (errno != EAGAIN && errno != EINTR);
}

static void
on_results(void *arg, int fd, enum watch_what what)
{
	struct git *g = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(g, GIT_MAGIC);
	if (read_results(g))
		actor_watch_pause(g->results);
}

static void
describe_end(const siginfo_t *info, char *out, size_t size)
{
	if (info->si_code == CLD_EXITED)
		(void)snprintf(out, size, "exit status %d", info->si_status);
	else
		(void)snprintf(out, size, "signal %d", info->si_status);
}

static void
on_ended(void *arg, int fd, enum watch_what what)
{
	struct git *g = arg;
	siginfo_t info = { 0 };
	char how[64] = "unknown";

	(void)what;
	OBJ_CHECK(g, GIT_MAGIC);
	(void)read_results(g);
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0) {
		if (info.si_pid == 0)
			return;
		describe_end(&info, how, sizeof(how));
	}
	g->gone = 1;
	g->ended = actor_watch_free(g->ended);
	g->results = actor_watch_free(g->results);
	actor_timer_stop(g->kill);
	g->ops.on_gone(g->arg, g->last_word ? NULL : how);
}

/* ---- what it is told ---- */

/* What is written fits the pipe, which the child has read empty: a pipe that takes less has
 * nobody at its other end. */
static int
send_out(struct git *g, struct buf *b, int r)
{
	ssize_t n = -1;

	if (r == 0)
		n = write(g->request_fd, b->data, b->len);
	if (r == 0 && (n < 0 || (size_t)n != b->len))
		r = E_LINK;
	buf_wipe(b);
	return r;
}

int
git_request(struct git *g, const struct checkout_request *req)
{
	struct buf b = BUF_INIT;
	/* A buffer that grows would leave copies of the token behind. */
	int r = buf_reserve(&b, REQUEST_BYTES);

	if (r == 0)
		r = checkout_put_request(&b, req);
	return send_out(g, &b, r);
}

int
git_go_on(struct git *g)
{
	struct buf b = BUF_INIT;
	int r = checkout_put_go_on(&b);

	return send_out(g, &b, r);
}

int
git_workspace(struct git *g, uint32_t depth)
{
	struct buf b = BUF_INIT;
	int r = checkout_put_workspace(&b, depth);

	return send_out(g, &b, r);
}

void
git_dismiss(struct git *g)
{
	io_close(&g->request_fd);
}

static void
on_kill(void *arg)
{
	struct git *g = arg;

	OBJ_CHECK(g, GIT_MAGIC);
	if (!g->gone)
		(void)io_pidfd_signal(g->pidfd, SIGKILL);
}

void
git_stop(struct git *g, int now)
{
	if (g->gone)
		return;
	if (!g->stopping)
		(void)actor_timer_set(g->kill, GIT_KILL_MS);
	if (now || !g->stopping)
		(void)io_pidfd_signal(g->pidfd, now ? SIGKILL : SIGTERM);
	g->stopping = 1;
	git_dismiss(g);
}

int
git_is_gone(const struct git *g)
{
	return g->gone;
}

/* ---- life ---- */

struct git *
git_new(struct actor *a, const struct git_child *c, const struct git_ops *ops, void *arg)
{
	struct git *g = mem_calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	*g = (struct git) { .magic = GIT_MAGIC,
		.actor = a,
		.ops = *ops,
		.arg = arg,
		.pid = c->pid,
		.pidfd = io_pidfd_open(c->pid),
		.request_fd = c->request_fd,
		.result_fd = c->result_fd };
	checkout_decoder_init(&g->decoder);
	if (g->pidfd < 0 || io_set_nonblocking(g->request_fd) < 0 ||
	    io_set_nonblocking(g->result_fd) < 0)
		return git_free(g);
	g->kill = actor_timer_new(a, on_kill, g);
	g->results = actor_watch_new(a, g->result_fd, WATCH_READ, on_results, g);
	g->ended = actor_watch_new(a, g->pidfd, WATCH_READ, on_ended, g);
	return g->kill != NULL && g->results != NULL && g->ended != NULL ? g : git_free(g);
}

struct git *
git_free(struct git *g)
{
	if (g == NULL)
		return NULL;
	OBJ_CHECK(g, GIT_MAGIC);
	actor_watch_free(g->ended);
	actor_watch_free(g->results);
	actor_timer_free(g->kill);
	if (!g->gone && g->pidfd >= 0) {
		(void)io_pidfd_signal(g->pidfd, SIGKILL);
		(void)waitpid(g->pid, NULL, 0);
	}
	checkout_decoder_done(&g->decoder);
	io_close(&g->pidfd);
	io_close(&g->request_fd);
	io_close(&g->result_fd);
	g->magic = 0;
	return mem_free(g);
}
