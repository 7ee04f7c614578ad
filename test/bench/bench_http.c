/*
 * test/bench/bench_http.c -- requests per second of lib/http and, side by side, of nginx with a
 * static 204, on loopback with the same client; and the memory of idle connections.
 *
 * Each round measures both, one after the other, so that the ratio holds on a noisy machine.
 * Without nginx only the own numbers are printed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/http/http.h"

#define CONNS    64
#define ROUND_MS 1000
#define ROUNDS   5
#define IDLE     4000

#define REQUEST                                                            \
	"GET /api/public/app-config HTTP/1.1\r\nHost: 127.0.0.1\r\n"       \
	"User-Agent: bench/1.0 (loopback)\r\nAccept: application/json\r\n" \
	"Accept-Language: en\r\nX-Forwarded-Proto: https\r\n\r\n"

/* ---- our side -------------------------------------------------------------------------- */

static void
on_request(void *arg, struct http_req *req)
{
	(void)arg;
	http_answer(req, 204, NULL, 0);
}

static void
on_headers(void *arg, struct http_req *req, int status)
{
	(void)arg;
	(void)status;
	http_answer_add(req, "X-Request-Id", http_req_id(req));
	http_answer_add(req, "Cache-Control", "no-store");
}

static void
serve(int lfd)
{
	struct http_hooks hooks = { on_request, on_headers, NULL, NULL, NULL };
	struct http_limits limits = http_limits_default();
	struct event_base *base = event_base_new();
	struct http_server *s;

	limits.max_conns = IDLE + CONNS + 10;
	s = http_server_new(base, &limits, &hooks);
	if (s == NULL || http_server_listen(s, lfd) < 0)
		_exit(1);
	event_base_dispatch(base);
	_exit(0);
}

static int
listen_loopback(int *ret_port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&sin, len) < 0 ||
	    listen(fd, 1024) < 0 ||
	    getsockname(fd, (struct sockaddr *)(void *)&sin, &len) < 0) {
		perror("listen");
		exit(1);
	}
	*ret_port = ntohs(sin.sin_port);
	return fd;
}

static pid_t
start_ours(int *ret_port)
{
	int fd = listen_loopback(ret_port);
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd);
	}
	close(fd);
	return pid;
}

/* ---- nginx ------------------------------------------------------------------------------- */

/* 0: there is none. */
static pid_t
start_nginx(const char *dir, int *ret_port)
{
	char path[256];
	pid_t pid;
	FILE *f;

	close(listen_loopback(ret_port));
	snprintf(path, sizeof(path), "%s/nginx.conf", dir);
	f = fopen(path, "w");
	if (f == NULL)
		return 0;
	fprintf(f,
	    "daemon off; master_process off; pid %s/pid; error_log /dev/null;\n"
	    "events { worker_connections 1024; }\n"
	    "http { access_log off; keepalive_requests 1000000000; client_body_temp_path %s/b;\n"
	    "proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u;\n"
	    "scgi_temp_path %s/s; server { listen 127.0.0.1:%d; location / { return 204; } } }\n",
	    dir, dir, dir, dir, dir, dir, *ret_port);
	fclose(f);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("nginx", "nginx", "-p", dir, "-c", path, (char *)NULL);
		execl("/usr/sbin/nginx", "nginx", "-p", dir, "-c", path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* ---- client ------------------------------------------------------------------------------ */

static int
connect_to(int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 1 when the server answers; 0 when ${pid} has ended or it takes longer than 5 s. */
static int
wait_up(pid_t pid, int port)
{
	struct mono_time begin = clock_mono();
	int fd;

	while ((fd = connect_to(port)) < 0) {
		if (waitpid(pid, NULL, WNOHANG) == pid ||
		    mono_diff_ms(begin, clock_mono()) > 5000)
			return 0;
	}
	close(fd);
	return 1;
}

/* Requests per second over CONNS connections, each with one request under way. */
static double
measure(int port)
{
	struct epoll_event ev[CONNS];
	struct mono_time begin = clock_mono();
	int ep = epoll_create1(0), fds[CONNS], i, n;
	char answer[4096];
	uint64_t done = 0;
	int64_t us;

	for (i = 0; i < CONNS; i++) {
		fds[i] = connect_to(port);
		ev[0] = (struct epoll_event) { .events = EPOLLIN, .data.fd = fds[i] };
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev[0]);
		if (write(fds[i], REQUEST, sizeof(REQUEST) - 1) < 0)
			exit(1);
	}
	while (mono_diff_ms(begin, clock_mono()) < ROUND_MS) {
		n = epoll_wait(ep, ev, CONNS, 1000);
		for (i = 0; i < n; i++) {
			/* Answers are small and leave in one write. */
			if (read(ev[i].data.fd, answer, sizeof(answer)) <= 0 ||
			    memcmp(answer, "HTTP/1.1 204", 12) != 0 ||
			    write(ev[i].data.fd, REQUEST, sizeof(REQUEST) - 1) < 0) {
				fprintf(stderr, "bench: an answer failed\n");
				exit(1);
			}
			done++;
		}
	}
	us = mono_diff_us(begin, clock_mono());
	for (i = 0; i < CONNS; i++)
		close(fds[i]);
	close(ep);
	return (double)done * 1e6 / (double)us;
}

/* ---- memory ------------------------------------------------------------------------------ */

static long
rss_bytes(pid_t pid)
{
	char path[64];
	long size = 0, rss = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "r");
	if (f == NULL || fscanf(f, "%ld %ld", &size, &rss) != 2)
		rss = 0;
	if (f != NULL)
		fclose(f);
	return rss * sysconf(_SC_PAGESIZE);
}

/* Each connection has served a request and then waits. */
static void
measure_idle(pid_t pid, int port)
{
	static int fds[IDLE];
	struct rlimit rl = { IDLE + 200, IDLE + 200 };
	long before = rss_bytes(pid);
	char answer[4096];
	int i, n;

	(void)setrlimit(RLIMIT_NOFILE, &rl);
	for (n = 0; n < IDLE; n++) {
		fds[n] = connect_to(port);
		if (fds[n] < 0 || write(fds[n], REQUEST, sizeof(REQUEST) - 1) < 0 ||
		    read(fds[n], answer, sizeof(answer)) <= 0)
			break;
	}
	printf("%d idle connections: %ld bytes of memory each\n", n,
	    n > 0 ? (rss_bytes(pid) - before) / n : 0);
	for (i = 0; i < n; i++)
		close(fds[i]);
}

int
main(void)
{
	char dir[] = "/tmp/bench_http.XXXXXX", cmd[64];
	struct rlimit rl = { IDLE + 200, IDLE + 200 };
	int ours_port, nginx_port = 0, i;
	pid_t ours, nginx;
	double a, b;

	(void)setrlimit(RLIMIT_NOFILE, &rl);
	if (mkdtemp(dir) == NULL)
		return 1;
	ours = start_ours(&ours_port);
	nginx = start_nginx(dir, &nginx_port);
	if (!wait_up(ours, ours_port))
		return 1;
	if (nginx > 0 && !wait_up(nginx, nginx_port))
		nginx = 0;
	measure_idle(ours, ours_port);
	for (i = 0; i < ROUNDS; i++) {
		a = measure(ours_port);
		if (nginx == 0) {
			printf("round %d: %.0f requests/s\n", i + 1, a);
			continue;
		}
		b = measure(nginx_port);
		printf(
		    "round %d: %.0f requests/s, nginx %.0f, ratio %.2f\n", i + 1, a, b, a / b);
	}
	kill(ours, SIGKILL);
	if (nginx > 0)
		kill(nginx, SIGKILL);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd) == 0 ? 0 : 1;
}
