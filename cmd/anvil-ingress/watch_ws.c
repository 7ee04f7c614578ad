/* GET /api/private/runs/{runId}/logs: the log over a WebSocket (http-api 8.2, 8.3). */
#include <stddef.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/run_find.h"
#include "cmd/anvil-ingress/viewer.h"
#include "cmd/anvil-ingress/watch.h"
#include "lib/base/err.h"
#include "lib/base/id.h"

#define PONG_ROOM_BYTES ((size_t)64 << 10) /* Pings are not answered beyond that. */

/* In the exchange's arena. */
struct socket {
	struct run_known known;
	int64_t from;
	struct ws *ws; /* NULL: not yet, or not any more. */
	struct viewer viewer;
};

static struct socket *
socket_of(const struct viewer *v)
{
	return CONTAINER_OF(v, struct socket, viewer);
}

/* ---- the transport ---- */

static int
send_blob(struct viewer *v, struct http_blob *b)
{
	struct socket *s = socket_of(v);

	return s->ws != NULL ? ws_send_frame(s->ws, b) : E_LINK;
}

static size_t
unsent(const struct viewer *v)
{
	const struct socket *s = socket_of(v);

	return s->ws != NULL ? ws_unsent(s->ws) : 0;
}

static void
on_room(void *arg, struct ws *ws)
{
	struct socket *s = arg;

	(void)ws;
	viewer_on_room(&s->viewer);
}

static void
want(struct viewer *v, size_t low)
{
	struct socket *s = socket_of(v);

	if (s->ws != NULL)
		ws_want(s->ws, low, on_room, s);
}

static void
end(struct viewer *v, enum viewer_end why)
{
	static const enum ws_close_code codes[] = {
		[VIEWER_RUN_FINISHED] = WS_CLOSE_NORMAL,
		[VIEWER_RESTARTING] = WS_CLOSE_GOING_AWAY,
		[VIEWER_USER_DISABLED] = WS_CLOSE_POLICY,
		[VIEWER_INTERNAL_ERROR] = WS_CLOSE_INTERNAL,
		[VIEWER_SLOW_CONSUMER] = WS_CLOSE_TRY_LATER,
	};
	struct socket *s = socket_of(v);

	if (s->ws == NULL)
		return;
	ws_want(s->ws, 0, NULL, NULL);
	/* Only at the end of a run is there something that has to arrive. */
	if (why == VIEWER_RUN_FINISHED)
		ws_close(s->ws, codes[why], viewer_end_word(why));
	else
		ws_close_now(s->ws, codes[why], viewer_end_word(why));
}

static const struct viewer_ops socket_ops = {
	.format = MESSAGE_WS, .send = send_blob, .unsent = unsent, .want = want, .end = end
};

/* ---- the client ---- */

static void
on_text(void *arg, struct ws *ws, const char *text, size_t n)
{
	(void)arg;
	if (n == 4 && memcmp(text, "ping", 4) == 0 && ws_unsent(ws) <= PONG_ROOM_BYTES)
		(void)ws_send_text(ws, "pong", 4);
}

static void
on_gone(void *arg, struct ws *ws, int code)
{
	struct socket *s = arg;

	(void)ws;
	(void)code;
	s->ws = NULL;
	viewer_leave(&s->viewer);
}

static const struct ws_ops client_ops = { .on_text = on_text, .on_gone = on_gone };

/* ---- the request ---- */

static void
stop(struct exchange *x)
{
	struct socket *s = x->work;

	if (s->viewer.hub != NULL)
		viewer_end(&s->viewer, VIEWER_RESTARTING);
}

static void
drop(struct exchange *x)
{
	struct socket *s = x->work;

	viewer_leave(&s->viewer);
	if (s->ws != NULL)
		ws_drop(s->ws);
}

static void
on_found(struct exchange *x, struct run_known *k)
{
	struct socket *s = CONTAINER_OF(k, struct socket, known);

	s->ws = ws_accept(x->req, NULL, &client_ops, s);
	if (s->ws == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	x->work = s;
	x->stop = stop;
	x->drop = drop;
	s->viewer = (struct viewer) { .ops = &socket_ops, .x = x };
	if (viewer_join(&s->viewer, x->in, k, s->from) < 0)
		end(&s->viewer, VIEWER_INTERNAL_ERROR);
}

static void
on_ticket(struct exchange *x)
{
	struct socket *s = arena_alloc(x->arena, sizeof(*s));

	if (s == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	(void)watch_from(x, &s->from);
	run_find(x, &s->known, on_found);
}

/* 1: it can become a WebSocket; else it has been answered. */
static int
check_upgrade(struct exchange *x)
{
	const char *origin = http_req_header(x->req, "Origin");

	switch (ws_request_check(x->req)) {
	case WS_REQUEST_PLAIN:
		answer_error_with(x, HTTP_CODE_UPGRADE_REQUIRED, "Upgrade", "websocket");
		return 0;
	case WS_REQUEST_VERSION:
		answer_error_with(x, HTTP_CODE_UPGRADE_REQUIRED, "Sec-WebSocket-Version", "13");
		return 0;
	case WS_REQUEST_BAD: answer_error(x, HTTP_CODE_BAD_REQUEST); return 0;
	case WS_REQUEST_OK: break;
	}
	if (origin == NULL ||
	    (http_req_header_count(x->req, "Origin") == 1 && watch_origin_is_ours(x, origin)))
		return 1;
	answer_error(x, HTTP_CODE_ORIGIN_NOT_ALLOWED);
	return 0;
}

void
route_watch_run(struct exchange *x)
{
	const char *ticket;
	int64_t from;

	if (!id_check(ID_RUN, http_req_param(x->req, 0))) {
		answer_error(x, HTTP_CODE_RUN_NOT_FOUND);
		return;
	}
	if (!check_upgrade(x) || watch_from(x, &from) < 0 ||
	    routes_query(x, "ticket", "String", &ticket) < 0)
		return;
	auth_use_ticket(x, ticket, http_req_param(x->req, 0), on_ticket);
}
