#include "test/bench/web.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/bench/report.h"
#include "test/support/member.h"

#define CONNS_MAX 256

static int
connect_to(int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)(void *)&sin, sizeof(sin)) == 0 &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0)
		return fd;
	io_close(&fd);
	return -1;
}

int
web_open(struct web *w, int port)
{
	*w = (struct web) { .fd = connect_to(port), .port = port };
	return w->fd < 0 ? -1 : 0;
}

void
web_close(struct web *w)
{
	io_close(&w->fd);
	buf_done(&w->in);
	buf_done(&w->body);
}

/* Bytes of the answer at the start of ${in}: head and body; 0: not all of it is there. */
static size_t
answer_size(struct buf *in, size_t *ret_head)
{
	const char *text = buf_cstr(in), *end, *length;
	size_t total;

	end = text == NULL || in->len == 0 ? NULL : strstr(text, "\r\n\r\n");
	if (end == NULL)
		return 0;
	*ret_head = (size_t)(end - text) + 4;
	length = strcasestr(text, "\r\ncontent-length:");
	total = *ret_head;
	if (length != NULL && length < end)
		total += strtoul(length + 17, NULL, 10);
	return in->len >= total ? total : 0;
}

/* 1 when bytes came. */
static int
receive(int fd, struct buf *in)
{
	ssize_t n;

	if (buf_reserve(in, 16384) < 0)
		return 0;
	n = read(fd, in->data + in->len, in->cap - in->len);
	if (n <= 0)
		return 0;
	in->len += (size_t)n;
	return 1;
}

int
web_call(
    struct web *w, const char *method, const char *path, const char *session, const char *json)
{
	struct buf out = BUF_INIT;
	size_t head = 0, total = 0;
	int status;

	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", method, path, w->port);
	if (session != NULL)
		buf_printf(&out, "Authorization: Bearer %s\r\n", session);
	if (json != NULL)
		buf_printf(&out,
		    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		    strlen(json), json);
	else
		buf_add_str(&out, "\r\n");
	if (w->fd < 0)
		w->fd = connect_to(w->port);
	if (w->fd < 0 || io_write_all(w->fd, out.data, out.len) < 0)
		io_close(&w->fd);
	buf_done(&out);
	while (w->fd >= 0 && (total = answer_size(&w->in, &head)) == 0)
		if (!receive(w->fd, &w->in))
			io_close(&w->fd);
	if (w->fd < 0) {
		buf_reset(&w->in);
		return -1;
	}
	status = atoi((const char *)w->in.data + 9);
	buf_reset(&w->body);
	buf_add(&w->body, w->in.data + head, total - head);
	(void)buf_cstr(&w->body);
	buf_consume(&w->in, total);
	return status;
}

int
web_member(const struct web *w, const char *name, char *out, size_t size)
{
	return member_of(&w->body, name, out, size);
}

/* ---- a flood ---- */

struct flood_conn {
	int fd;
	struct buf in;
	double sent_us;
};

static void
note_latency(struct web_flood *f, const struct flood_conn *c)
{
	size_t step = (size_t)((bench_now_us() - c->sent_us) / WEB_STEP_US);

	f->slow[step < WEB_STEPS ? step : WEB_STEPS - 1]++;
}

double
web_latency_us(const struct web_flood *f, double share)
{
	unsigned long all = 0, seen = 0;
	size_t i = 0;

	for (size_t k = 0; k < WEB_STEPS; k++)
		all += f->slow[k];
	while (i < WEB_STEPS - 1 && (double)(seen += f->slow[i]) < share * (double)all)
		i++;
	return (double)((i + 1) * WEB_STEP_US);
}

/* 1: one is under way. */
static int
send_next(struct web_flood *f, struct flood_conn *c)
{
	size_t n;
	const char *text = f->next(f->arg, &n);

	if (text == NULL || io_write_all(c->fd, text, n) < 0)
		return 0;
	c->sent_us = bench_now_us();
	return 1;
}

static int
take_answer(struct web_flood *f, struct flood_conn *c)
{
	size_t head, total;
	int status;

	if (!receive(c->fd, &c->in))
		return -1;
	total = answer_size(&c->in, &head);
	if (total == 0)
		return 0;
	note_latency(f, c);
	status = atoi((const char *)c->in.data + 9);
	buf_consume(&c->in, total);
	if (status == f->wanted) {
		f->done++;
	} else {
		f->refused++;
		f->odd = status;
	}
	return 1;
}

static void
open_conns(const struct web_flood *f, int ep, struct flood_conn *conns)
{
	for (int i = 0; i < f->nconns; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)i };

		conns[i] = (struct flood_conn) { .fd = connect_to(f->port) };
		if (conns[i].fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev) < 0)
			bench_die("no connection %d to port %d", i, f->port);
	}
}

int
web_flood(struct web_flood *f)
{
	struct flood_conn conns[CONNS_MAX];
	struct epoll_event ev[CONNS_MAX];
	int ep = epoll_create1(EPOLL_CLOEXEC), under_way = 0, r = 0;
	double begin;

	f->done = f->refused = 0;
	memset(f->slow, 0, sizeof(f->slow));
	open_conns(f, ep, conns);
	begin = bench_now_us();
	for (int i = 0; i < f->nconns; i++)
		under_way += send_next(f, &conns[i]);
	while (under_way > 0 && r == 0) {
		int n = epoll_wait(ep, ev, CONNS_MAX, 30000);

		r = n <= 0 ? -1 : 0;
		for (int i = 0; i < n && r == 0; i++) {
			struct flood_conn *c = &conns[ev[i].data.u32];
			int got = take_answer(f, c);

			if (got < 0)
				r = -1;
			else if (got > 0 && !send_next(f, c))
				under_way--;
		}
	}
	f->us = bench_now_us() - begin;
	for (int i = 0; i < f->nconns; i++) {
		io_close(&conns[i].fd);
		buf_done(&conns[i].in);
	}
	io_close(&ep);
	return r;
}
