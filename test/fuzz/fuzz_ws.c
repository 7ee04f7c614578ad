/*
 * test/fuzz/fuzz_ws.c -- frames of a WebSocket client, through their reader and through a whole
 * connection.
 *
 * The first byte steers the sizes of the pieces, what the owner does, and how the client leaves.
 * Reading in pieces and reading at once must agree; each connection must end once, with what is
 * queued bounded all the time.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/http/http.h"
#include "lib/http/ws_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ASK                                                                          \
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
#define UNSENT_MAX (64 * 1024) /* what the owner allows; over it, it closes */

struct world {
	struct ws *ws;
	unsigned mood; /* The first byte of the input. */
	int naccepted, ngone, dropped;
};

/* ---- the reader ---- */

/* Appends all that comes out of ${p}, in a form that can be compared. */
static void
read_all(struct buf *out, const uint8_t *p, size_t n, size_t step)
{
	enum ws_in_result r = WS_IN_MORE;
	struct ws_message m;
	struct ws_in in;
	size_t used, take;

	must(ws_in_init(&in) == 0);
	while (n > 0 && r != WS_IN_BAD) {
		take = min_size(step, n);
		r = ws_in_feed(&in, p, take, &used, &m);
		must(used <= take && (r != WS_IN_MORE || used == take));
		p += used;
		n -= used;
		if (r == WS_IN_MORE)
			continue;
		must(r != WS_IN_TEXT || utf8_valid((const char *)m.data, m.len));
		must(m.len <= (r == WS_IN_TEXT ? WS_MESSAGE_MAX : WS_CONTROL_MAX));
		(void)buf_printf(out, "%d %d %zu ", (int)r, m.code, m.len);
		(void)buf_add(out, m.data, m.len);
	}
	ws_in_done(&in);
}

static void
compare(const uint8_t *p, size_t n, size_t step)
{
	struct buf whole = BUF_INIT, pieces = BUF_INIT;

	read_all(&whole, p, n, n);
	read_all(&pieces, p, n, step);
	must(whole.len == pieces.len);
	must(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	buf_done(&whole);
	buf_done(&pieces);
}

/* ---- the connection ---- */

static void
on_room(void *arg, struct ws *ws)
{
	struct world *w = arg;

	if (ws_send_text(ws, "there is room", 13) == 0 && (w->mood & 1))
		ws_want(ws, 100, on_room, w);
}

static void
on_text(void *arg, struct ws *ws, const char *text, size_t n)
{
	struct world *w = arg;

	if (ws_unsent(ws) > UNSENT_MAX) {
		ws_close_now(ws, WS_CLOSE_TRY_LATER, "slow_consumer");
	} else if (n == 4 && memcmp(text, "ping", 4) == 0) {
		(void)ws_send_text(ws, "pong", 4);
	} else if (n > 0 && text[0] == 'c') {
		ws_close(ws, WS_CLOSE_NORMAL, "run_finished");
	} else if (n > 0 && text[0] == 'd') {
		w->ws = NULL;
		w->dropped = 1;
		ws_drop(ws);
	} else {
		ws_want(ws, n, on_room, w);
	}
}

static void
on_gone(void *arg, struct ws *ws, int code)
{
	struct world *w = arg;

	must(w->ws == ws && !w->dropped);
	must(code >= 1000 && code < 5000);
	w->ngone++;
	w->ws = NULL;
}

static void
on_request(void *arg, struct http_req *req)
{
	static const struct ws_ops ops = { on_text, on_gone };
	struct world *w = arg;

	must(ws_request_check(req) == WS_REQUEST_OK);
	w->ws = ws_accept(req, NULL, &ops, w);
	must(w->ws != NULL);
	w->naccepted++;
}

static void
turn(struct event_base *base, struct world *w, int fd)
{
	char sink[65536];
	int i;

	for (i = 0; i < 3; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		if (w->ws != NULL)
			must(ws_unsent(w->ws) <= UNSENT_MAX + 2 * WS_MESSAGE_MAX);
		while ((w->mood & 2) == 0 && recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
}

static void
play(struct event_base *base, struct world *w, int fd, const uint8_t *p, size_t n)
{
	size_t step = (size_t)(w->mood >> 4) * 16 + 1, take;

	must(send(fd, ASK, strlen(ASK), MSG_NOSIGNAL) == (ssize_t)strlen(ASK));
	turn(base, w, fd);
	for (; n > 0; p += take, n -= take) {
		take = min_size(step, n);
		if (send(fd, p, take, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		turn(base, w, fd);
	}
	if (w->ws != NULL && (w->mood & 4))
		ws_close(w->ws, WS_CLOSE_GOING_AWAY, "restarting");
	if (w->mood & 8)
		(void)shutdown(fd, SHUT_WR);
	turn(base, w, fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .mood = size > 0 ? data[0] : 0 };
	struct http_hooks hooks = { .on_request = on_request, .arg = &w };
	struct http_limits limits = http_limits_default();
	struct event_base *base;
	struct http_counters n;
	struct http_server *s;
	int sv[2];

	if (size < 2)
		return 0;
	compare(data + 1, size - 1, (w.mood & 15) + 1);
	base = event_base_new();
	s = http_server_new(base, &limits, &hooks);
	must(s != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	must(http_server_serve_take(s, sv[0]) == 0);
	play(base, &w, sv[1], data + 1, size - 1);
	close(sv[1]);
	turn(base, &w, -1);
	must(w.naccepted == 1 && w.ngone + w.dropped == 1 && w.ws == NULL);
	http_server_counters(s, &n);
	must(n.open == 0 && n.in_flight == 0);
	http_server_free(s);
	event_base_free(base);
	return 0;
}
