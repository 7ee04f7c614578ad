/*
 * test/actor/test_activation.c -- a real anvild and a systemd that the test plays: it holds the
 * listening sockets, starts anvild again and again, and hears how it does.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/super_rig.h"
#include "test/support/unit.h"

#define CLIENTS      4
#define KILLS        3
#define ANSWERS_EACH 5 /* of every client, between two kills */
#define LOOK_MS      5
#define PATIENCE_S   30

static int
setup(void **state)
{
	struct super_rig *g = mem_calloc(1, sizeof(*g));

	assert_non_null(g);
	super_rig_init(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct super_rig *g = *state;

	super_rig_done(g);
	for (size_t i = 0; i < g->nhanded; i++)
		io_close(&g->handed[i]);
	free(g);
	return 0;
}

/* ---- the sockets ---- */

union place {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_un un;
};

static socklen_t
place_size(const union place *p)
{
	return p->any.sa_family == AF_UNIX ? sizeof(p->un) : sizeof(p->v4);
}

static void
listen_at(struct super_rig *g, union place *p)
{
	int fd = socket(p->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = place_size(p);

	assert_int_equal(bind(fd, &p->any, len), 0);
	assert_int_equal(listen(fd, 1024), 0);
	if (p->any.sa_family == AF_INET)
		assert_int_equal(getsockname(fd, &p->any, &len), 0);
	g->handed[g->nhanded++] = fd;
}

/* ---- those who come all the time ---- */

struct client {
	pthread_t thread;
	const union place *place;
	const atomic_int *leave;
	atomic_int answered; /* as they should be                            */
	atomic_int cut;      /* the connection ended before the whole answer */
	atomic_int refused, wrong;
};

#define STATUS "HTTP/1.1 401 " /* who does not sign in gets no other */

/* 1: the whole answer; 0: the connection ended before; -1: another answer. */
static int
judge(const char *text)
{
	const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");

	if (strncmp(text, STATUS, min_size(strlen(text), sizeof(STATUS) - 1)) != 0)
		return -1;
	if (body == NULL)
		return 0;
	if (length == NULL)
		return -1;
	return strlen(body + 4) == strtoul(length + 16, NULL, 10);
}

static void
ask_once(struct client *c)
{
	static const char request[] = "GET /api/private/me HTTP/1.1\r\n"
				      "Host: 127.0.0.1\r\nConnection: close\r\n\r\n";
	static const struct timeval patience = { .tv_sec = PATIENCE_S };
	CLEANUP(io_closep)
	int fd = socket(c->place->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[4096] = "";
	size_t len = 0;
	ssize_t n = 0;
	int r;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, &c->place->any, place_size(c->place)) < 0) {
		atomic_fetch_add(&c->refused, 1);
		return;
	}
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
		while (len < sizeof(text) - 1 &&
		    (n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
			len += (size_t)n;
	text[len] = '\0';
	r = judge(text);
	atomic_fetch_add(r > 0 ? &c->answered : r == 0 ? &c->cut : &c->wrong, 1);
}

static void *
come_again(void *arg)
{
	struct client *c = arg;

	while (!atomic_load(c->leave))
		ask_once(c);
	return NULL;
}

/* Every client gets some more right answers: the stream has come through. */
static void
wait_answers(struct client *clients)
{
	struct mono_time end = mono_add_ms(clock_mono(), PATIENCE_S * 1000);
	int before[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		before[i] = atomic_load(&clients[i].answered);
	for (int i = 0; i < CLIENTS; i++)
		while (atomic_load(&clients[i].answered) < before[i] + ANSWERS_EACH) {
			assert_true(clock_mono().us < end.us);
			(void)poll(NULL, 0, LOOK_MS);
		}
}

static void
nobody_is_refused_while_anvild_is_killed_and_started(void **state)
{
	struct super_rig *g = *state;
	static union place tcp;
	static union place un;
	static struct client clients[CLIENTS];
	static atomic_int leave;
	int cut = 0;

	tcp.v4 = (struct sockaddr_in) { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	un.un = (struct sockaddr_un) { .sun_family = AF_UNIX };
	(void)snprintf(un.un.sun_path, sizeof(un.un.sun_path), "%s/front", g->dir);
	listen_at(g, &tcp);
	listen_at(g, &un);
	super_rig_configure(g, "limits: {public_per_minute_per_address: 0}\n");
	super_rig_start(g);
	super_rig_wait_ready(g);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client) { .place = i % 2 ? &un : &tcp, .leave = &leave };
		assert_int_equal(
		    pthread_create(&clients[i].thread, NULL, come_again, &clients[i]), 0);
	}
	for (int i = 0; i < KILLS; i++) {
		wait_answers(clients);
		super_rig_kill(g);
		super_rig_start(g);
	}
	wait_answers(clients);
	/* The same with an orderly stop. */
	super_rig_wait_ready(g);
	super_rig_stop(g);
	super_rig_start(g);
	wait_answers(clients);
	atomic_store(&leave, 1);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
		assert_int_equal(clients[i].refused, 0);
		assert_int_equal(clients[i].wrong, 0);
		cut += clients[i].cut;
	}
	/* Who was being answered by a process that was killed: one a client and kill at most. */
	print_message("%d connections were cut\n", cut);
	assert_true(cut <= CLIENTS * (KILLS + 1));
	super_rig_wait_ready(g);
}

/* ---- what systemd is told ---- */

static void
systemd_hears_of_start_life_reload_and_stop(void **state)
{
	struct super_rig *g = *state;
	const char *usec;

	g->watchdog_usec = "100000";
	super_rig_start(g);
	super_rig_wait_ready(g);
	(void)super_rig_wait_notified(g, "WATCHDOG=1");
	(void)super_rig_wait_notified(g, "WATCHDOG=1");
	assert_int_equal(kill(g->pid, SIGHUP), 0);
	usec = super_rig_wait_notified(g, "RELOADING=1\nMONOTONIC_USEC=");
	assert_true(strtoll(strrchr(usec, '=') + 1, NULL, 10) > 0);
	(void)super_rig_wait_notified(g, "READY=1");
	assert_int_equal(kill(g->pid, SIGTERM), 0);
	(void)super_rig_wait_notified(g, "STOPPING=1");
	assert_int_equal(super_rig_wait(g, PATIENCE_S * 1000), 0);
}

/* The loop is what tells: nothing comes from a supervisor that does not turn. */
static void
a_supervisor_that_hangs_says_nothing(void **state)
{
	struct super_rig *g = *state;
	struct pollfd p = { .fd = g->notify_fd, .events = POLLIN };
	siginfo_t stopped;
	char text[128];

	g->watchdog_usec = "20000";
	super_rig_start(g);
	super_rig_wait_ready(g);
	(void)super_rig_wait_notified(g, "WATCHDOG=1");
	assert_int_equal(kill(g->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)g->pid, &stopped, WSTOPPED | WNOWAIT), 0);
	while (recv(g->notify_fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(poll(&p, 1, 100), 0);
	assert_int_equal(kill(g->pid, SIGCONT), 0);
	(void)super_rig_wait_notified(g, "WATCHDOG=1");
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nobody_is_refused_while_anvild_is_killed_and_started),
		TEST(systemd_hears_of_start_life_reload_and_stop),
		TEST(a_supervisor_that_hangs_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
