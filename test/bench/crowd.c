#include "test/bench/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/bench/report.h"
#include "test/bench/speak.h"

#define GLANCE_BYTES  1024
#define READ_BYTES    ((size_t)512 << 10)
#define HEAD_MAX      10
#define STALLED_BYTES 4096
#define EVENTS        256

enum { OP_TEXT = 1, OP_CLOSE = 8, OP_PING = 9 };

struct frame {
	int op;
	size_t head; /* Bytes of the header. */
	uint64_t len;
};

/* ---- messages ---- */

/* The number behind ${key} in a text that ends in a NUL or a quote; -1: it is not there. */
static int64_t
number_of(const char *text, size_t n, const char *key)
{
	const char *at = memmem(text, n, key, strlen(key));

	return at == NULL ? -1 : strtoll(at + strlen(key), NULL, 10);
}

/* Bytes of the text that a JSON string stands for, up to its end; ASCII is assumed of what is
 * escaped. */
static int64_t
length_of_string(const char *p, const char *end)
{
	int64_t n = 0;

	while (p < end && *p != '"') {
		if (*p == '\\')
			p += p + 1 < end && p[1] == 'u' ? 5 : 1;
		p++;
		n++;
	}
	return n;
}

static void
begin_log(struct crowd_viewer *v, const char *text, size_t n)
{
	static const char key[] = "\"chunk\":\"";
	const char *chunk = memmem(text, n, key, sizeof(key) - 1);
	int64_t seq = number_of(text, n, "\"seq\":");

	if (chunk == NULL || seq < 0)
		bench_die("not a line of a log: %.*s", (int)(n < 200 ? n : 200), text);
	chunk += sizeof(key) - 1;
	if (v->next != 0 && seq != v->next)
		bench_die(
		    "line %lld where %lld comes next", (long long)seq, (long long)v->next);
	v->in_log = 1;
	v->logs++;
	v->next = seq + 1;
	v->said_us = speak_find_us(chunk, (size_t)(text + n - chunk));
	if (v->kind == CROWD_READS)
		v->text_bytes += length_of_string(chunk, text + n);
}

static void
begin_text(struct crowd_viewer *v, const char *text, size_t n)
{
	static const char log[] = "{\"type\":\"log\"", gap[] = "{\"type\":\"gap\"",
			  state[] = "{\"type\":\"state\"";

	if (n > sizeof(log) && memcmp(text, log, sizeof(log) - 1) == 0) {
		begin_log(v, text, n);
	} else if (n > sizeof(gap) && memcmp(text, gap, sizeof(gap) - 1) == 0) {
		int64_t to = number_of(text, n, "\"toSeq\":");

		v->gaps++;
		v->gap_lines += to + 1 - number_of(text, n, "\"fromSeq\":");
		v->next = to + 1;
	} else if (n > sizeof(state) && memcmp(text, state, sizeof(state) - 1) == 0) {
		v->states++;
	}
}

/* ${n} bytes of its payload are there. */
static void
begin_frame(struct crowd_viewer *v, const struct frame *f, const uint8_t *payload, size_t n)
{
	static const uint8_t pong[] = { 0x8a, 0x80, 0, 0, 0, 0 };

	v->in_log = 0;
	v->said_us = 0;
	if (f->op == OP_TEXT)
		begin_text(v, (const char *)payload, n);
	else if (f->op == OP_CLOSE && n >= 2)
		v->code = payload[0] << 8 | payload[1];
	else if (f->op == OP_PING)
		(void)io_write_all(v->fd, pong, sizeof(pong));
}

static void
end_frame(struct crowd *c, struct crowd_viewer *v)
{
	double now, lag;
	size_t step;

	if (!v->in_log)
		return;
	now = bench_now_us();
	v->first_us = v->first_us == 0 ? now : v->first_us;
	v->last_us = now;
	if (v->said_us == 0)
		return;
	lag = now - v->said_us;
	v->lag_us = lag > v->lag_us ? lag : v->lag_us;
	step = (size_t)(lag / CROWD_STEP_US);
	c->lags[step < CROWD_STEPS ? step : CROWD_STEPS - 1]++;
	c->nlags++;
}

/* ---- frames ---- */

/* 1: the header is whole. */
static int
read_head(const uint8_t *p, size_t n, struct frame *f)
{
	size_t more;

	if (n < 2)
		return 0;
	f->op = p[0] & 0xf;
	f->len = p[1] & 0x7f;
	more = f->len == 127 ? 8 : f->len == 126 ? 2 : 0;
	f->head = 2 + more;
	if (n < f->head)
		return 0;
	if (more != 0)
		f->len = 0;
	for (size_t i = 0; i < more; i++)
		f->len = f->len << 8 | p[2 + i];
	return 1;
}

static void
take_frames(struct crowd *c, struct crowd_viewer *v)
{
	size_t at = 0;
	struct frame f;

	while (v->left == 0 && read_head(v->in + at, v->n - at, &f)) {
		size_t have = v->n - at - f.head;

		if (have < f.len && have < v->cap - HEAD_MAX)
			break;
		have = have < f.len ? have : (size_t)f.len;
		begin_frame(v, &f, v->in + at + f.head, have);
		at += f.head + have;
		v->left = f.len - have;
		if (v->left == 0)
			end_frame(c, v);
	}
	memmove(v->in, v->in + at, v->n - at);
	v->n -= at;
}

static void
take_answer(struct crowd_viewer *v)
{
	const uint8_t *end = memmem(v->in, v->n, "\r\n\r\n", 4);
	size_t head;

	if (end == NULL)
		return;
	if (v->n < 12 || memcmp(v->in + 9, "101", 3) != 0)
		bench_die("not a socket: %.*s", (int)v->n, (const char *)v->in);
	v->up = 1;
	head = (size_t)(end + 4 - v->in);
	memmove(v->in, v->in + head, v->n - head);
	v->n -= head;
}

/* ---- sockets ---- */

static void
leave(struct crowd *c, struct crowd_viewer *v)
{
	if (v->kind != CROWD_STALLS)
		c->nopen--;
	io_close(&v->fd);
}

/* 0: nothing more now. */
static int
receive(struct crowd *c, struct crowd_viewer *v)
{
	ssize_t n;

	if (v->left != 0) {
		/* The kernel drops what nobody wants to see. */
		n = recv(v->fd, NULL, (size_t)v->left, MSG_TRUNC | MSG_DONTWAIT);
		if (n > 0 && (v->left -= (uint64_t)n) == 0)
			end_frame(c, v);
	} else {
		n = recv(v->fd, v->in + v->n, v->cap - v->n, MSG_DONTWAIT);
		v->n += n > 0 ? (size_t)n : 0;
		if (n > 0 && !v->up)
			take_answer(v);
		if (n > 0 && v->up)
			take_frames(c, v);
	}
	if (n > 0)
		return 1;
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		leave(c, v);
	return 0;
}

static void
listen_to(const struct crowd *c, const struct crowd_viewer *v)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)(v - c->viewers) };

	if (epoll_ctl(c->ep, EPOLL_CTL_ADD, v->fd, &ev) < 0)
		bench_die("no room for a viewer");
}

static int
connect_to(int port, int small)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = STALLED_BYTES;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 ||
	    (small && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) < 0) ||
	    connect(fd, (struct sockaddr *)(void *)&sin, sizeof(sin)) < 0)
		bench_die("a viewer cannot connect to port %d", port);
	return fd;
}

void
crowd_join(struct crowd *c, struct web *w, const char *session, const char *run,
    enum crowd_kind kind, int64_t from)
{
	struct crowd_viewer *v = &c->viewers[c->n++];
	char path[128], ticket[96], query[48] = "";
	struct buf out = BUF_INIT;

	must(c->n <= c->max);
	(void)snprintf(path, sizeof(path), "/api/private/runs/%s/log-ticket", run);
	if (web_call(w, "POST", path, session, "{}") != 200 ||
	    web_member(w, "ticket", ticket, sizeof(ticket)) < 0)
		bench_die("no ticket: %s", (const char *)w->body.data);
	*v = (struct crowd_viewer) { .fd = connect_to(w->port, kind == CROWD_STALLS),
		.kind = kind,
		.cap = kind == CROWD_READS ? READ_BYTES : GLANCE_BYTES };
	v->in = malloc(v->cap);
	if (from != 0)
		(void)snprintf(query, sizeof(query), "&from=%lld", (long long)from);
	buf_printf(&out,
	    "GET /api/private/runs/%s/logs?ticket=%s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	    run, ticket, query, w->port);
	if (v->in == NULL || io_write_all(v->fd, out.data, out.len) < 0)
		bench_die("a viewer cannot ask");
	buf_done(&out);
	if (kind == CROWD_STALLS)
		return;
	listen_to(c, v);
	c->nopen++;
}

/* ---- the loop ---- */

void
crowd_init(struct crowd *c, size_t max)
{
	memset(c, 0, sizeof(*c));
	c->max = max;
	c->ep = epoll_create1(EPOLL_CLOEXEC);
	c->viewers = calloc(max, sizeof(*c->viewers));
	if (c->ep < 0 || c->viewers == NULL)
		bench_die("no room for %zu viewers", max);
}

size_t
crowd_watch(struct crowd *c, int ms)
{
	double until = bench_now_us() + ms * 1e3, now;
	struct epoll_event ev[EVENTS];

	while (c->nopen > 0 && (now = bench_now_us()) < until) {
		int n = epoll_wait(c->ep, ev, EVENTS, (int)((until - now) / 1e3) + 1);

		for (int i = 0; i < n; i++)
			while (receive(c, &c->viewers[ev[i].data.u32]))
				;
	}
	return c->nopen;
}

void
crowd_stall(struct crowd *c, size_t first)
{
	for (size_t i = first; i < c->n; i++) {
		struct crowd_viewer *v = &c->viewers[i];

		if (v->kind == CROWD_STALLS || v->fd < 0)
			continue;
		v->kind = CROWD_STALLS;
		(void)epoll_ctl(c->ep, EPOLL_CTL_DEL, v->fd, NULL);
		c->nopen--;
	}
}

void
crowd_wake(struct crowd *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct crowd_viewer *v = &c->viewers[i];

		if (v->kind != CROWD_STALLS || v->fd < 0)
			continue;
		v->kind = CROWD_GLANCES;
		listen_to(c, v);
		c->nopen++;
	}
}

void
crowd_done(struct crowd *c)
{
	for (size_t i = 0; i < c->n; i++) {
		io_close(&c->viewers[i].fd);
		free(c->viewers[i].in);
	}
	free(c->viewers);
	io_close(&c->ep);
}

double
crowd_lag_ms(const struct crowd *c, double share)
{
	unsigned long seen = 0;
	size_t i = 0;

	while (i < CROWD_STEPS - 1 && (double)(seen += c->lags[i]) < share * (double)c->nlags)
		i++;
	return (double)((i + 1) * CROWD_STEP_US) / 1e3;
}
