/*
 * test/fuzz/fuzz_http_conn.c -- bytes of a client through a whole connection, on a socket pair.
 *
 * The first byte steers the sizes of the pieces, what the handler does late, and how the client
 * leaves.  Nothing may be left over: no connection, no request, no callback that came twice.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HELD_MAX 64

struct world {
	struct http_req *held[HELD_MAX]; /* Requests of /later, /stream, /raw. */
	unsigned nheld, nstarted, nended, nwritten;
	unsigned mood; /* The first byte of the input. */
};

static void
on_gone(void *arg, struct http_req *req)
{
	struct world *w = arg;
	unsigned i;

	for (i = 0; i < w->nheld; i++)
		if (w->held[i] == req)
			w->held[i] = w->held[--w->nheld];
	http_req_abandon(req);
}

static void
on_raw(void *arg, struct http_req *req, const uint8_t *data, size_t len)
{
	(void)arg;
	if (len > 0)
		(void)http_stream_write(req, data, len);
}

static void
on_body(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len)
{
	struct world *w = arg;

	if (err < 0) {
		if (w->mood & 1)
			http_answer(req, 418, "mine", 4);
		return;
	}
	if (len == 0 || http_req_path(req)[1] != 's' || (w->mood & 2))
		http_answer(req, 200, data, len);
}

static void
on_room(void *arg, struct http_req *req)
{
	struct world *w = arg;

	if (++w->nwritten % 32 == 0 || http_stream_write(req, w, sizeof(*w)) < 0)
		http_stream_end(req);
	else
		http_stream_want(req, w->mood * 16, on_room, w);
}

static void
hold(struct world *w, struct http_req *req)
{
	if (w->nheld == HELD_MAX) {
		http_req_abandon(req);
		return;
	}
	w->held[w->nheld++] = req;
	if (w->mood & 4)
		http_req_on_gone(req, on_gone, w);
}

static void
on_request(void *arg, struct http_req *req)
{
	struct world *w = arg;
	const char *path = http_req_path(req);

	w->nstarted++;
	if (strcmp(path, "/echo") == 0) {
		http_body_collect(req, 20, on_body, w);
	} else if (strcmp(path, "/sink") == 0) {
		http_body_stream(req, 20, on_body, w);
	} else if (strcmp(path, "/drop") == 0) {
		http_body_drop(req, 20, on_body, w);
	} else if (strcmp(path, "/pour") == 0) {
		http_stream_begin(req, 200);
		http_stream_want(req, 100, on_room, w);
	} else if (strcmp(path, "/raw") == 0) {
		http_takeover(req, 101, on_raw, w);
		hold(w, req);
	} else if (strcmp(path, "/stream") == 0) {
		http_stream_begin(req, 200);
		hold(w, req);
	} else if (strcmp(path, "/later") == 0) {
		hold(w, req);
	} else {
		http_answer(req, 200, path, strlen(path));
	}
}

static void
on_end(void *arg, struct http_req *req)
{
	struct world *w = arg;

	/* Refusals that came before any request end as well. */
	w->nended += http_req_method(req)[0] != '\0';
}

/* Late answers, as an RPC would bring them. */
static void
finish_one(struct world *w)
{
	struct http_req *req;

	if (w->nheld == 0)
		return;
	req = w->held[--w->nheld];
	if (http_req_path(req)[1] != 'l')
		(w->mood & 8) ? http_stream_break(req) : http_stream_end(req);
	else if (w->mood & 16)
		http_body_collect(req, 1000, on_body, w);
	else
		http_answer(req, 200, "late", 4);
}

static void
turn(struct event_base *base, int fd)
{
	char sink[65536];
	int i;

	for (i = 0; i < 4; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
}

static void
play(struct event_base *base, struct world *w, int fd, const uint8_t *p, size_t n)
{
	size_t step = (size_t)(w->mood & 31) * 8 + 1, take;
	ssize_t sent;

	for (; n > 0; p += take, n -= take) {
		take = min_size(step, n);
		sent = send(fd, p, take, MSG_NOSIGNAL | MSG_DONTWAIT);
		turn(base, fd);
		if (sent < 0)
			break;
		if ((w->mood & 32) == 0)
			finish_one(w);
	}
	if (w->mood & 64) {
		(void)shutdown(fd, SHUT_WR);
		turn(base, fd);
	}
	while (w->nheld > 0 && (w->mood & 128) == 0) {
		finish_one(w);
		turn(base, fd);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .mood = size > 0 ? data[0] : 0 };
	struct http_hooks hooks = { on_request, NULL, NULL, on_end, &w };
	struct http_limits limits = http_limits_default();
	struct event_base *base = event_base_new();
	struct http_counters n;
	struct http_server *s;
	int sv[2];

	if (size == 0) {
		event_base_free(base);
		return 0;
	}
	limits.drop_bytes = 50;
	limits.header_bytes = 500;
	limits.target_bytes = 100;
	s = http_server_new(base, &limits, &hooks);
	must(s != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	must(http_server_serve_take(s, sv[0]) == 0);
	play(base, &w, sv[1], data + 1, size - 1);
	close(sv[1]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	http_server_counters(s, &n);
	must(n.open == n.in_flight); /* an answer that is waited for may still hold it */
	w.mood &= ~16u;
	while (w.nheld > 0)
		finish_one(&w);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	http_server_counters(s, &n);
	must(n.open == 0 && n.in_flight == 0);
	must(w.nstarted == w.nended);
	http_server_free(s);
	event_base_free(base);
	return 0;
}
