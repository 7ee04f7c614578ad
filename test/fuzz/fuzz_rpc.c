/*
 * Any bytes from the other side of a connection.  What we send is always well-formed; every
 * request has one answer; every call of ours has one callback.
 *
 * First byte: bit 0 set: the rest is the raw stream; else lines, each sent as a frame.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/wire/wire.h"

#define CALLS    3
#define KEPT_MAX RPC_CALLS_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fix {
	struct event_base *base;
	struct rpc_peer *peer;
	int fd; /* The other end. */
	int nanswers, closed;
	struct rpc_request *kept[KEPT_MAX];
	size_t nkept;
	struct frame_in in;
};

static void
on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct fix *f = arg;
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)p;
	must(req->method != NULL && strlen(req->id) < sizeof(req->id));
	must(req->params == NULL || json_is_object(req->params) || json_is_array(req->params));
	if (strcmp(req->method, "keep") == 0 && !req->notification) {
		must(f->nkept < KEPT_MAX);
		f->kept[f->nkept++] = req;
	} else if (strcmp(req->method, "echo") == 0) {
		must(json_text_dump(&text, req->params) == 0);
		rpc_reply(req, (const char *)text.data, text.len);
	} else {
		rpc_reply_error(req, E_METHOD, req->method, NULL);
	}
}

static void
on_close(void *arg, struct rpc_peer *p, int err)
{
	struct fix *f = arg;

	(void)p;
	must(err < 0);
	f->closed++;
}

static void
on_answer(void *arg, const struct rpc_answer *a)
{
	struct fix *f = arg;

	must((a->err == 0) == (a->result != NULL));
	must(a->err == 0 || a->message != NULL);
	f->nanswers++;
}

/* All that we have sent so far must be messages. */
static void
drain(struct fix *f)
{
	size_t room, n;
	char *body;
	ssize_t got;

	(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
	for (;;) {
		uint8_t *to = frame_in_room(&f->in, &room);

		must(to != NULL);
		got = read(f->fd, to, room);
		if (got <= 0)
			return;
		frame_in_add(&f->in, (size_t)got);
		while (frame_in_next(&f->in, &body, &n) == 1) {
			json_t *j = NULL;

			must(json_text_parse(body, n, RPC_DEPTH_MAX + 2, &j) == 0);
			must(json_is_object(j));
			json_decref(j);
		}
		(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
	}
}

static void
feed(struct fix *f, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = send(f->fd, p, n, MSG_NOSIGNAL);

		drain(f);
		if (done < 0 && f->closed)
			return;
		p += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
}

static void
feed_lines(struct fix *f, const uint8_t *p, size_t n)
{
	while (n > 0 && !f->closed) {
		const uint8_t *end = memchr(p, '\n', n);
		size_t len = end != NULL ? (size_t)(end - p) : n;
		CLEANUP(buf_done) struct buf frame = BUF_INIT;
		size_t at = frame_begin(&frame);

		buf_add(&frame, p, len);
		must(frame_end(&frame, at) == 0);
		feed(f, frame.data, frame.len);
		len += end != NULL;
		p += len;
		n -= len;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rpc_peer_ops ops = { .on_request = on_request,
		.on_close = on_close };
	struct fix f = { .base = event_base_new() };
	int fds[2];

	if (size == 0 || size > 65536) {
		event_base_free(f.base);
		return 0;
	}
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	f.fd = fds[1];
	must(io_set_nonblocking(f.fd) == 0);
	frame_in_init(&f.in);
	f.peer = rpc_peer_new(f.base, fds[0], &ops, &f);
	must(f.peer != NULL);
	for (int i = 0; i < CALLS; i++)
		must(rpc_send(f.peer, "ask", NULL, NULL, on_answer, &f) == 0);
	if (data[0] & 1)
		feed(&f, data + 1, size - 1);
	else
		feed_lines(&f, data + 1, size - 1);
	while (f.nkept > 0)
		rpc_reply(f.kept[--f.nkept], "{}", 2);
	drain(&f);
	rpc_peer_close(f.peer, E_LINK);
	(void)event_base_loop(f.base, EVLOOP_NONBLOCK);
	must(f.closed == 1 && f.nanswers == CALLS);
	(void)rpc_peer_free(f.peer);
	frame_in_done(&f.in);
	close(f.fd);
	event_base_free(f.base);
	return 0;
}
