/*
 * lib/http/ws.h -- the server's side of WebSocket (RFC 6455; spec http-api 8.2, 8.3).  Included
 * by http.h.
 *
 * Whoever routes checks the request, answers what is wrong, and accepts.  Then text goes out,
 * one frame for each message; of what comes in only text is for the owner.  Pings, pongs,
 * close frames, malformed ones and silence are dealt with here.
 */
#ifndef LIB_HTTP_WS_H
#define LIB_HTTP_WS_H

#include <stddef.h>

struct http_blob;
struct http_req;
struct ws;

/* ---- the request ---- */

enum ws_request {
	WS_REQUEST_OK,
	WS_REQUEST_PLAIN,   /* Asks for no WebSocket: 426 with `Upgrade: websocket`.        */
	WS_REQUEST_VERSION, /* Of another version: 426 with `Sec-WebSocket-Version: 13`.    */
	WS_REQUEST_BAD,     /* No key of 16 bytes in base64, or a body comes with it: 400.  */
};

/* The first of these that holds; looks at headers alone, and changes nothing. */
enum ws_request ws_request_check(const struct http_req *req);

/* ---- a connection ---- */

struct ws_limits {
	int ping_ms;    /* A ping goes out that often.                                       */
	int silence_ms; /* Without a complete frame for so long, the client is dropped; so is
	                 * one that takes no byte of what stands before a close frame.       */
	int close_ms;   /* From when a close frame has left to the client's own.             */
};

/* 20 s, 60 s, 5 s. */
struct ws_limits ws_limits_default(void);

/* All run from the loop, never from inside a call of this library. */
struct ws_ops {
	/* A complete message of valid UTF-8, at most 4096 bytes, not NUL-terminated, gone when
	 * this returns.  A client may send any number of them: who answers has to keep
	 * ws_unsent() bounded. */
	void (*on_text)(void *arg, struct ws *ws, const char *text, size_t n);

	/* The end, exactly once, unless the owner called ws_drop().  ${ws} is freed behind it.
	 * ${code} is the one that was sent to the client, or else the one that it sent;
	 * WS_CLOSE_NONE: it sent none; WS_CLOSE_LOST: no close frame was seen. */
	void (*on_gone)(void *arg, struct ws *ws, int code);
};

enum ws_close_code {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_GOING_AWAY = 1001,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_NONE = 1005,
	WS_CLOSE_LOST = 1006,
	WS_CLOSE_NOT_UTF8 = 1007,
	WS_CLOSE_POLICY = 1008,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_INTERNAL = 1011,
	WS_CLOSE_TRY_LATER = 1013,
};

/* Answers 101 to a request for which ws_request_check() was content, with X-Request-Id and
 * without any header that was added before; ${req} is not the handler's any more, but lives as
 * long as ${ws}.  ${limits} NULL: the defaults; ${ops} must outlive the connection.
 * NULL: out of memory, ${req} is still to be answered.  When the client is gone already, or
 * the answer could not be made, on_gone follows. */
struct ws *ws_accept(
    struct http_req *req, const struct ws_limits *limits, const struct ws_ops *ops, void *arg);

/* One message as one frame, made once for any number of clients.  NULL: out of memory. */
struct http_blob *ws_frame_text(const void *p, size_t n);

/* Each: 0; E_LINK: closing, or nothing reaches the client any more; E_NOMEM: the same from now
 * on.  On failure on_gone follows or has been called.  Take any amount: keeping ws_unsent()
 * bounded is the writer's duty. */
/* Sends a frame made by ws_frame_text(), without a copy; keeps its own reference. */
int ws_send_frame(struct ws *ws, struct http_blob *frame);
int ws_send_text(struct ws *ws, const void *p, size_t n);
/* Bytes that the kernel has not taken yet. */
size_t ws_unsent(const struct ws *ws);
/* ${fn} runs once, from the loop, as soon as at most ${low} bytes are unsent; also when that is
 * so already.  It may ask again.  One at a time: the last counts, NULL takes it back.  Never
 * called once the connection is closing. */
void ws_want(struct ws *ws, size_t low, void (*fn)(void *arg, struct ws *ws), void *arg);

/* Sends a close frame behind all that is unsent, waits a while for the client's, and ends.
 * ${reason}: UTF-8, at most 123 bytes are sent.  Of the callbacks only on_gone follows.
 * Repeated: does nothing. */
void ws_close(struct ws *ws, enum ws_close_code code, const char *reason);
/* The same, and drops the frames that have not begun to leave. */
void ws_close_now(struct ws *ws, enum ws_close_code code, const char *reason);
/* Cuts the connection off and forgets it: no callback follows, ${ws} is gone.  From inside
 * callbacks too; on_gone excepted, where it does nothing. */
void ws_drop(struct ws *ws);

#endif
