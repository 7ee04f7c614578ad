#include "lib/http/ws.h"

#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"
#include "lib/http/ws_in.h"
#include "lib/http/ws_upgrade.h"

#define CONTROL_ROOM 2048 /* bytes of pings and pongs that may wait to leave */

enum ws_state {
	WS_OPEN,
	WS_CLOSING, /* Our close frame is queued; the client's is waited for. */
	WS_ENDED,   /* Freed as soon as no callback is under way.             */
};

struct ws {
	uint32_t magic;
#define WS_MAGIC 0x48745753
	struct http_req *req; /* Ours until WS_ENDED. */
	const struct ws_ops *ops;
	void *arg;
	struct ws_limits limits;
	enum ws_state state;
	int busy; /* A callback of the loop is under way.                  */
	int code; /* Of the first close frame, for on_gone.                */
	struct ws_in in;
	/* Time. */
	struct event timer;
	struct mono_time heard;   /* Last complete frame.                  */
	struct mono_time ping_at; /* When the next ping is due.            */
	size_t left;              /* Closing: unsent when last looked at.  */
	/* Sending. */
	void (*want_fn)(void *arg, struct ws *ws);
	void *want_arg;
	size_t want_low;
	uint64_t queued;     /* Bytes handed over, from the beginning on.  */
	uint64_t control_at; /* Of these, up to the end of the last ping or pong. */
	size_t control_room; /* What more of them may be queued now.       */
	/* The last ping that could not be answered at once. */
	int pong_due;
	size_t npong;
	uint8_t pong[WS_CONTROL_MAX];
};

struct ws_limits
ws_limits_default(void)
{
	return (struct ws_limits) { .ping_ms = 20000, .silence_ms = 60000, .close_ms = 5000 };
}

/* ---- ends ------------------------------------------------------------------------------ */

static void
ws_free(struct ws *ws)
{
	event_del(&ws->timer);
	ws_in_done(&ws->in);
	ws->magic = 0;
	free(ws);
}

/* Around all that the loop starts: who ends the connection in between does not free it. */
static void
ws_enter(struct ws *ws)
{
	OBJ_CHECK(ws, WS_MAGIC);
	must(!ws->busy);
	ws->busy = 1;
}

static void
ws_leave(struct ws *ws)
{
	ws->busy = 0;
	if (ws->state == WS_ENDED)
		ws_free(ws);
}

/* From the loop.  ${cut}: what is unsent is lost. */
static void
ws_end(struct ws *ws, int cut)
{
	ws->state = WS_ENDED;
	ws->ops->on_gone(ws->arg, ws, ws->code);
	if (cut)
		http_stream_break(ws->req);
	else
		http_stream_end(ws->req);
}

void
ws_drop(struct ws *ws)
{
	OBJ_CHECK(ws, WS_MAGIC);
	if (ws->state == WS_ENDED)
		return;
	ws->state = WS_ENDED;
	http_stream_break(ws->req);
	if (!ws->busy)
		ws_free(ws);
}

/* ---- sending --------------------------------------------------------------------------- */

static void ws_on_room(void *arg, struct http_req *req);

/* The one wish that a stream can have, made of the owner's and of the pong that is due. */
static void
ws_ask(struct ws *ws)
{
	size_t low = ws->want_fn != NULL ? ws->want_low : 0;
	size_t behind = (size_t)(ws->queued - ws->control_at);

	if (ws->pong_due && behind > low)
		low = behind;
	if (ws->want_fn != NULL || ws->pong_due)
		http_stream_want(ws->req, low, ws_on_room, ws);
	else
		http_stream_want(ws->req, 0, NULL, NULL);
}

static int
ws_queue(struct ws *ws, const void *p, size_t n)
{
	int r = http_stream_write(ws->req, p, n);

	if (r == 0)
		ws->queued += n;
	return r;
}

/* 1 when no ping or pong of ours is on its way to the kernel any more. */
static int
ws_control_has_left(const struct ws *ws)
{
	return ws->queued - http_stream_unsent(ws->req) >= ws->control_at;
}

/* Queues a ping or pong; 0: too many wait to leave, this one will have to.  So a client that
 * asks for more than it takes does not make us queue without end. */
static int
ws_send_control(struct ws *ws, enum ws_opcode op, const uint8_t *p, size_t n)
{
	uint8_t frame[2 + WS_CONTROL_MAX];
	size_t size = ws_frame_control(frame, op, p, n);

	if (ws_control_has_left(ws))
		ws->control_room = CONTROL_ROOM;
	if (size > ws->control_room)
		return 0;
	if (ws_queue(ws, frame, size) == 0) {
		ws->control_room -= size;
		ws->control_at = ws->queued;
	}
	return 1;
}

static void
ws_send_pong(struct ws *ws, const uint8_t *p, size_t n)
{
	ws->pong_due = !ws_send_control(ws, WS_OP_PONG, p, n);
	if (!ws->pong_due)
		return;
	/* Of several pings the last one counts (RFC 6455, 5.5.3). */
	if (n > 0)
		memmove(ws->pong, p, n);
	ws->npong = n;
	ws_ask(ws);
}

int
ws_send_frame(struct ws *ws, struct http_blob *frame)
{
	int r;

	OBJ_CHECK(ws, WS_MAGIC);
	if (ws->state != WS_OPEN)
		return E_LINK;
	r = http_stream_write_blob(ws->req, frame);
	if (r == 0)
		ws->queued += http_blob_len(frame);
	if (ws->pong_due)
		ws_ask(ws);
	return r;
}

int
ws_send_text(struct ws *ws, const void *p, size_t n)
{
	CLEANUP(http_blob_unrefp) struct http_blob *frame = ws_frame_text(p, n);

	/* A frame that a caller believes to be sent must not be missing in the middle. */
	if (frame == NULL) {
		ws_close_now(ws, WS_CLOSE_INTERNAL, "");
		return E_NOMEM;
	}
	return ws_send_frame(ws, frame);
}

size_t
ws_unsent(const struct ws *ws)
{
	OBJ_CHECK(ws, WS_MAGIC);
	return http_stream_unsent(ws->req);
}

void
ws_want(struct ws *ws, size_t low, void (*fn)(void *arg, struct ws *ws), void *arg)
{
	OBJ_CHECK(ws, WS_MAGIC);
	if (ws->state != WS_OPEN)
		return;
	ws->want_fn = fn;
	ws->want_arg = arg;
	ws->want_low = low;
	ws_ask(ws);
}

/* ---- time ------------------------------------------------------------------------------ */

static int
ws_arm(struct ws *ws, int64_t ms)
{
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000 };

	return event_add(&ws->timer, &tv);
}

static int64_t
ws_next_ms(const struct ws *ws, struct mono_time now)
{
	int64_t silence = mono_diff_ms(now, mono_add_ms(ws->heard, ws->limits.silence_ms));

	return max_i64(min_i64(silence, mono_diff_ms(now, ws->ping_at)), 0) + 1;
}

static void
ws_tick_open(struct ws *ws)
{
	struct mono_time now = clock_mono();

	if (mono_diff_ms(ws->heard, now) >= ws->limits.silence_ms) {
		ws_end(ws, 1);
		return;
	}
	if (mono_diff_ms(ws->ping_at, now) >= 0) {
		(void)ws_send_control(ws, WS_OP_PING, NULL, 0);
		ws->ping_at = mono_add_ms(now, ws->limits.ping_ms);
	}
	if (ws_arm(ws, ws_next_ms(ws, now)) < 0)
		ws_end(ws, 1);
}

static void
ws_tick_closing(struct ws *ws)
{
	size_t unsent = http_stream_unsent(ws->req);

	if (unsent > 0 && unsent < ws->left && ws_arm(ws, ws->limits.silence_ms) == 0)
		ws->left = unsent;
	else
		ws_end(ws, unsent > 0);
}

static void
ws_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct ws *ws = arg;

	(void)fd;
	(void)what;
	ws_enter(ws);
	if (ws->state == WS_OPEN)
		ws_tick_open(ws);
	else
		ws_tick_closing(ws);
	ws_leave(ws);
}

/* There is room, or everything has left. */
static void
ws_on_room(void *arg, struct http_req *req)
{
	struct ws *ws = arg;
	void (*fn)(void *, struct ws *) = NULL;

	ws_enter(ws);
	if (ws->state == WS_CLOSING) {
		(void)ws_arm(ws, ws->limits.close_ms); /* it is armed: nothing to fail */
		ws_leave(ws);
		return;
	}
	if (ws->want_fn != NULL && http_stream_unsent(req) <= ws->want_low) {
		fn = ws->want_fn;
		ws->want_fn = NULL;
	}
	if (ws->pong_due && ws_control_has_left(ws))
		ws_send_pong(ws, ws->pong, ws->npong);
	if (fn != NULL)
		fn(ws->want_arg, ws);
	if (ws->state == WS_OPEN)
		ws_ask(ws);
	ws_leave(ws);
}

/* ---- closing --------------------------------------------------------------------------- */

static void
ws_begin_closing(struct ws *ws, int code)
{
	ws->state = WS_CLOSING;
	ws->code = code;
	ws->left = http_stream_unsent(ws->req);
	http_stream_want(ws->req, 0, ws_on_room, ws);
	(void)ws_arm(ws, ws->limits.silence_ms);
}

static void
ws_send_close(struct ws *ws, const uint8_t *payload, size_t n)
{
	uint8_t frame[2 + WS_CONTROL_MAX];

	(void)ws_queue(ws, frame, ws_frame_control(frame, WS_OP_CLOSE, payload, n));
}

void
ws_close(struct ws *ws, enum ws_close_code code, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];

	OBJ_CHECK(ws, WS_MAGIC);
	if (ws->state != WS_OPEN)
		return;
	must(ws_close_code_valid((int)code));
	ws_send_close(ws, payload, ws_close_payload(payload, (int)code, reason));
	ws_begin_closing(ws, (int)code);
}

void
ws_close_now(struct ws *ws, enum ws_close_code code, const char *reason)
{
	OBJ_CHECK(ws, WS_MAGIC);
	if (ws->state == WS_OPEN)
		http_takeover_forget(ws->req);
	ws_close(ws, code, reason);
}

/* ---- coming in ------------------------------------------------------------------------- */

/* The client sends nonsense: nothing more is expected of it. */
static void
ws_fail(struct ws *ws, int code)
{
	uint8_t payload[WS_CONTROL_MAX];

	if (ws->state == WS_OPEN) {
		http_takeover_forget(ws->req);
		ws_send_close(ws, payload, ws_close_payload(payload, code, ""));
		ws->code = code;
	}
	ws_end(ws, 0);
}

static void
ws_on_close_frame(struct ws *ws, const struct ws_message *m)
{
	if (ws->state == WS_OPEN) {
		http_takeover_forget(ws->req);
		ws_send_close(ws, m->data, m->len);
		ws->code = m->code;
	}
	ws_end(ws, 0);
}

static void
ws_on_message(struct ws *ws, enum ws_in_result kind, const struct ws_message *m)
{
	switch (kind) {
	case WS_IN_BAD: ws_fail(ws, m->code); break;
	case WS_IN_CLOSE: ws_on_close_frame(ws, m); break;
	case WS_IN_PING:
		if (ws->state == WS_OPEN)
			ws_send_pong(ws, m->data, m->len);
		break;
	case WS_IN_TEXT:
		if (ws->state == WS_OPEN)
			ws->ops->on_text(ws->arg, ws, (const char *)m->data, m->len);
		break;
	case WS_IN_PONG:
	case WS_IN_MORE: break;
	}
}

static void
ws_read(struct ws *ws, const uint8_t *p, size_t n)
{
	uint64_t nframes = ws->in.nframes;
	enum ws_in_result kind;
	size_t used = 0;

	do {
		struct ws_message m = { 0 };

		kind = ws_in_feed(&ws->in, p, n, &used, &m);
		p += used;
		n -= used;
		ws_on_message(ws, kind, &m);
	} while (kind != WS_IN_MORE && ws->state != WS_ENDED);
	if (ws->in.nframes != nframes)
		ws->heard = clock_mono();
}

static void
ws_on_input(void *arg, struct http_req *req, const uint8_t *data, size_t len)
{
	struct ws *ws = arg;

	ws_enter(ws);
	if (len > 0)
		ws_read(ws, data, len);
	else
		ws_end(ws, ws->state == WS_OPEN || http_stream_unsent(req) > 0);
	ws_leave(ws);
}

/* ---- begin ----------------------------------------------------------------------------- */

static struct ws *
ws_new(struct event_base *base, const struct ws_limits *limits)
{
	struct ws *ws = mem_calloc(1, sizeof(*ws));

	if (ws == NULL)
		return NULL;
	ws->magic = WS_MAGIC;
	ws->limits = limits != NULL ? *limits : ws_limits_default();
	ws->code = WS_CLOSE_LOST;
	ws->heard = clock_mono();
	ws->ping_at = mono_add_ms(ws->heard, ws->limits.ping_ms);
	evtimer_assign(&ws->timer, base, ws_on_timer, ws);
	if (ws_in_init(&ws->in) < 0 || ws_arm(ws, ws_next_ms(ws, ws->heard)) < 0) {
		ws_free(ws);
		return NULL;
	}
	return ws;
}

struct ws *
ws_accept(
    struct http_req *req, const struct ws_limits *limits, const struct ws_ops *ops, void *arg)
{
	struct ws *ws = req->srv != NULL ? ws_new(req->srv->base, limits) : NULL;
	char value[WS_ACCEPT_SIZE];

	if (ws == NULL)
		return NULL;
	must(ws_request_check(req) == WS_REQUEST_OK);
	ws->req = req;
	ws->ops = ops;
	ws->arg = arg;
	ws_accept_value(http_req_header(req, "Sec-WebSocket-Key"), value);
	http_req_on_gone(req, NULL, NULL); /* that is told by on_gone from now on */
	http_answer_clear(req);
	http_answer_add(req, "Upgrade", "websocket");
	http_answer_add(req, "Connection", "Upgrade");
	http_answer_add(req, "Sec-WebSocket-Accept", value);
	http_answer_add(req, "X-Request-Id", http_req_id(req));
	http_takeover(req, 101, ws_on_input, ws);
	ws->queued = http_stream_unsent(req);
	if (http_req_status(req) != 101)
		ws_begin_closing(ws, WS_CLOSE_LOST); /* a bare 500 has left instead */
	return ws;
}
