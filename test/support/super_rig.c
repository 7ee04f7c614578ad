#include "test/support/super_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define WAIT_MS   20000 /* sanitizers and a busy machine are slow */
#define LOOK_MS   20
#define FRAME_MAX (16u << 20)

static void NORETURN
give_up(const struct super_rig *g, const char *what)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (io_read_file(AT_FDCWD, g->log, 1 << 20, &b) == 0)
		(void)fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.data);
	fail_msg("%s", what);
	abort();
}

/* ---- places ---- */

static void
install(const struct super_rig *g, const char *name)
{
	CLEANUP_FREE char *from = scratch_program(name);
	CLEANUP_FREE char *to = mem_format("%s/%s", g->bin, name);
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	assert_non_null(to);
	/* anvild finds the others beside itself, wherever nobody may look. */
	if (access(from, X_OK) < 0 || link(from, to) == 0)
		return;
	assert_int_equal(io_read_file(AT_FDCWD, from, 1u << 30, &b), 0);
	assert_int_equal(io_write_file(AT_FDCWD, to, b.data, b.len, 0755), 0);
}

void
super_rig_own(const struct super_rig *g, const char *path)
{
	if (geteuid() == 0)
		assert_int_equal(chown(path, g->uid, g->gid), 0);
}

static void
make_notify(struct super_rig *g)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", g->dir);
	g->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(g->notify_fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(chmod(un.sun_path, 0666), 0);
}

void
super_rig_init(struct super_rig *g)
{
	static const char *const programs[] = { "anvild", "anvil-project", "anvil-ingress" };
	const struct passwd *nobody = getpwnam("nobody");
	char state[128];

	*g = (struct super_rig) { .shards = 2, .uid = geteuid(), .gid = getegid() };
	if (geteuid() == 0) {
		assert_non_null(nobody);
		g->uid = nobody->pw_uid;
		g->gid = nobody->pw_gid;
	}
	g->dir = scratch_new();
	assert_int_equal(chmod(g->dir, 0755), 0);
	(void)snprintf(g->bin, sizeof(g->bin), "%s/bin", g->dir);
	(void)snprintf(state, sizeof(state), "%s/s", g->dir);
	(void)snprintf(g->data, sizeof(g->data), "%s/s/data", g->dir);
	(void)snprintf(g->runtime, sizeof(g->runtime), "%s/s/run", g->dir);
	(void)snprintf(g->keys, sizeof(g->keys), "%s/s/keys.json", g->dir);
	(void)snprintf(g->config, sizeof(g->config), "%s/anvil.yml", g->dir);
	(void)snprintf(g->log, sizeof(g->log), "%s/log", g->dir);
	(void)snprintf(g->listen, sizeof(g->listen), "unix:%s/s/http", g->dir);
	assert_int_equal(mkdir(g->bin, 0755), 0);
	assert_int_equal(mkdir(state, 0700), 0);
	super_rig_own(g, state);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		install(g, programs[i]);
	make_notify(g);
	super_rig_configure(g, "");
}

void
super_rig_done(struct super_rig *g)
{
	if (g->pid != 0)
		super_rig_stop(g);
	io_close(&g->notify_fd);
	scratch_free(g->dir);
}

void
super_rig_write(struct super_rig *g, const char *path, const char *text, mode_t mode)
{
	(void)unlink(path);
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), mode), 0);
	assert_int_equal(chmod(path, mode), 0);
	super_rig_own(g, path);
}

void
super_rig_configure(struct super_rig *g, const char *more)
{
	CLEANUP_FREE char *text = mem_format("version: 1\n%s"
					     "data_dir: %s\nruntime_dir: %s\nkeys_file: %s\n"
					     "listen: [\"%s\"]\nshards: %d\n%s",
	    geteuid() == 0 ? "user: nobody\n" : "", g->data, g->runtime, g->keys, g->listen,
	    g->shards, more);

	assert_non_null(text);
	super_rig_write(g, g->config, text, 0644);
}

/* ---- the process ---- */

/* As systemd does: from descriptor 3 on, and the variables name the process that has them. */
static void
hand_over(const struct super_rig *g)
{
	int lifted[SUPER_HANDED_MAX];
	char text[16];

	for (size_t i = 0; i < g->nhanded; i++)
		lifted[i] = fcntl(g->handed[i], F_DUPFD_CLOEXEC, 100);
	for (size_t i = 0; i < g->nhanded; i++)
		(void)dup2(lifted[i], 3 + (int)i);
	(void)snprintf(text, sizeof(text), "%d", (int)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)setenv("WATCHDOG_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%zu", g->nhanded);
	(void)setenv("LISTEN_FDS", text, 1);
	(void)setenv("LISTEN_FDNAMES", "http:more", 1);
	if (g->watchdog_usec != NULL)
		(void)setenv("WATCHDOG_USEC", g->watchdog_usec, 1);
}

static pid_t
start(const struct super_rig *g)
{
	CLEANUP_FREE char *program = mem_format("%s/anvild", g->bin);
	CLEANUP_FREE char *notify = mem_format("%s/notify", g->dir);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(g->log, O_WRONLY | O_CREAT | O_APPEND, 0666);

		(void)dup2(fd, 1);
		(void)dup2(fd, 2);
		(void)setenv("NOTIFY_SOCKET", notify, 1);
		hand_over(g);
		(void)execl(program, program, "-c", g->config, (char *)NULL);
		_exit(127);
	}
	return pid;
}

void
super_rig_start(struct super_rig *g)
{
	char old[64];

	while (recv(g->notify_fd, old, sizeof(old), MSG_DONTWAIT) > 0)
		;
	g->pid = start(g);
	g->pidfd = io_pidfd_open(g->pid);
	assert_true(g->pidfd >= 0);
}

const char *
super_rig_wait_notified(struct super_rig *g, const char *word)
{
	struct pollfd p[2] = { { .fd = g->notify_fd, .events = POLLIN },
		{ .fd = g->pidfd, .events = POLLIN } };
	static char state[128];
	ssize_t n;

	do {
		if (poll(p, 2, WAIT_MS) <= 0 || p[0].revents == 0)
			give_up(g, word);
		n = recv(g->notify_fd, state, sizeof(state) - 1, 0);
		assert_true(n > 0);
		state[n] = '\0';
	} while (strncmp(state, word, strlen(word)) != 0);
	return state;
}

void
super_rig_wait_ready(struct super_rig *g)
{
	assert_string_equal(super_rig_wait_notified(g, ""), "READY=1");
}

static int
status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
super_rig_wait(struct super_rig *g, int timeout_ms)
{
	struct pollfd p = { .fd = g->pidfd, .events = POLLIN };
	pid_t pid = g->pid;

	if (poll(&p, 1, timeout_ms) != 1) {
		(void)kill(g->pid, SIGKILL);
		give_up(g, "anvild does not end");
	}
	io_close(&g->pidfd);
	g->pid = 0;
	return status_of(pid);
}

int
super_rig_run_another(struct super_rig *g)
{
	pid_t pid = start(g);

	if (!super_rig_gone(pid, WAIT_MS)) {
		(void)kill(pid, SIGKILL);
		give_up(g, "the other anvild does not end");
	}
	return status_of(pid);
}

void
super_rig_stop(struct super_rig *g)
{
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	assert_int_equal(super_rig_wait(g, WAIT_MS), 0);
}

void
super_rig_kill(struct super_rig *g)
{
	assert_int_equal(kill(g->pid, SIGKILL), 0);
	assert_int_equal(super_rig_wait(g, WAIT_MS), 128 + SIGKILL);
}

long
super_rig_said_at(const struct super_rig *g, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	const char *all, *at;

	assert_int_equal(io_read_file(AT_FDCWD, g->log, 16 << 20, &b), 0);
	all = (const char *)buf_cstr(&b);
	at = all != NULL ? strstr(all, text) : NULL;
	return at != NULL ? (long)(at - all) : -1;
}

int
super_rig_said(const struct super_rig *g, const char *text)
{
	return super_rig_said_at(g, text) >= 0;
}

/* ---- looking ---- */

void
super_rig_actor(const struct super_rig *g, const char *address, struct super_actor *ret)
{
	json_t *list = super_ask(g, "supervisor", "supervisor.list", "{}");
	const json_t *row;
	size_t i;

	*ret = (struct super_actor) { .state = "" };
	json_array_foreach (json_object_get(list, "actors"), i, row) {
		if (strcmp(json_string_value(json_object_get(row, "address")), address) != 0)
			continue;
		ret->pid = (pid_t)json_integer_value(json_object_get(row, "pid"));
		ret->restarts = (int)json_integer_value(json_object_get(row, "restarts"));
		(void)snprintf(ret->state, sizeof(ret->state), "%s",
		    json_string_value(json_object_get(row, "state")));
	}
	json_decref(list);
}

pid_t
super_rig_wait_up(const struct super_rig *g, const char *address, pid_t not_pid)
{
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	struct super_actor a;

	do {
		super_rig_actor(g, address, &a);
		if (a.pid != 0 && a.pid != not_pid &&
		    (strcmp(a.state, "up") == 0 || strcmp(a.state, "failing") == 0))
			return a.pid;
		(void)poll(NULL, 0, LOOK_MS);
	} while (clock_mono().us < end.us);
	give_up(g, "an actor does not come up");
}

int
super_rig_gone(pid_t pid, int timeout_ms)
{
	CLEANUP(io_closep) int fd = io_pidfd_open(pid);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd < 0 || poll(&p, 1, timeout_ms) == 1;
}

/* ---- the client ---- */

int
super_connect(const struct super_rig *g, const char *name)
{
	CLEANUP(io_closep) int dir = io_open_dir(AT_FDCWD, g->runtime);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/%s.sock", dir, name);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	io_close(&fd);
	return -1;
}

int
super_send(int fd, const void *p, size_t n)
{
	return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

int
super_send_text(int fd, const char *text)
{
	size_t n = strlen(text);
	unsigned char head[4] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
		(unsigned char)(n >> 8), (unsigned char)n };

	return super_send(fd, head, 4) < 0 ? -1 : super_send(fd, text, n);
}

static int
read_exactly(int fd, void *p, size_t n, struct mono_time end)
{
	for (size_t got = 0; got < n;) {
		struct pollfd w = { .fd = fd, .events = POLLIN };
		int64_t left = mono_diff_ms(clock_mono(), end);
		ssize_t r;

		if (left <= 0 || poll(&w, 1, (int)left) <= 0)
			return -1;
		r = read(fd, (char *)p + got, n - got);
		if (r <= 0)
			return -1;
		got += (size_t)r;
	}
	return 0;
}

json_t *
super_receive(int fd, int timeout_ms)
{
	struct mono_time end = mono_add_ms(clock_mono(), timeout_ms);
	unsigned char head[4];
	json_t *tree = NULL;
	char *text;
	size_t n;

	if (read_exactly(fd, head, 4, end) < 0)
		return NULL;
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	assert_true(n <= FRAME_MAX);
	text = mem_alloc(n + 1);
	assert_non_null(text);
	if (read_exactly(fd, text, n, end) == 0)
		assert_int_equal(json_text_parse(text, n, RPC_DEPTH_MAX, &tree), 0);
	free(text);
	return tree;
}

/* The answer to request ${id}. */
static json_t *
answer_to(int fd, int id)
{
	json_t *got;

	while ((got = super_receive(fd, WAIT_MS)) != NULL) {
		const json_t *theirs = json_object_get(got, "id");

		if (json_object_get(got, "method") == NULL &&
		    (json_integer_value(theirs) == id || json_is_null(theirs)))
			return got;
		json_decref(got);
	}
	return NULL;
}

json_t *
super_hello(int fd, const char *role, const char *address, long pid)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"role\":\"%s\","
	    "\"address\":\"%s\",\"pid\":%ld,\"protocol\":%d}}",
	    role, address, pid, RPC_PROTOCOL);
	return super_send_text(fd, text) < 0 ? NULL : answer_to(fd, 1);
}

int
super_ctl(const struct super_rig *g, const char *name)
{
	int fd = super_connect(g, name);
	json_t *welcome;

	if (fd < 0)
		give_up(g, "a socket is not there");
	welcome = super_hello(fd, "ctl", "ctl", getpid());
	if (welcome == NULL || super_error(welcome) != 0)
		give_up(g, "ctl is not welcome");
	json_decref(welcome);
	return fd;
}

json_t *
super_call(int fd, const char *method, const char *params)
{
	CLEANUP_FREE char *text = mem_format(
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":%s}", method, params);

	assert_non_null(text);
	return super_send_text(fd, text) < 0 ? NULL : answer_to(fd, 2);
}

json_t *
super_ask(const struct super_rig *g, const char *name, const char *method, const char *params)
{
	CLEANUP(io_closep) int fd = super_ctl(g, name);
	json_t *answer = super_call(fd, method, params), *result;

	if (answer == NULL)
		give_up(g, "no answer");
	if (super_error(answer) != 0)
		give_up(g,
		    json_string_value(
			json_object_get(json_object_get(answer, "error"), "message")));
	result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return result;
}

int
super_error(const json_t *answer)
{
	return (int)json_integer_value(
	    json_object_get(json_object_get(answer, "error"), "code"));
}

int
super_closed(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, timeout_ms) == 1 && read(fd, &byte, 1) <= 0;
}
