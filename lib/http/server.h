/*
 * lib/http/server.h -- listening, limits, hooks, stopping.  Included by http.h.
 *
 * Everything here belongs to one event loop and one thread.  Hooks and callbacks run from
 * that loop, never from inside a call of this library, except where on_headers says so.
 */
#ifndef LIB_HTTP_SERVER_H
#define LIB_HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"

struct event_base;
struct http_req;
struct http_server;

struct http_limits {
	size_t target_bytes; /* Request target; over it 414.                           */
	size_t header_bytes; /* All header lines together; over it 431.                */
	size_t drop_bytes;   /* A body that nobody wants is dropped up to this.        */
	size_t max_conns;    /* Over it 503 `overloaded` with Retry-After: 1.          */
	int head_ms;         /* First byte of a request to the end of its headers: 408 */
	int body_idle_ms;    /* Wanted body: without a byte, 408.                      */
	int body_ms;         /* Wanted body: in all, 408.                              */
	int idle_ms;         /* Connection between requests; then closed without words. */
	int write_ms;        /* Client takes no byte of an answer; then cut off.       */
	int linger_ms;       /* After a last answer, while the client still sends.     */
};

/* 8 KiB, 32 KiB, 64 KiB, 4096; 10 s, 10 s, 60 s, 75 s, 300 s, 5 s. */
struct http_limits http_limits_default(void);

struct http_hooks {
	/* Headers are complete, nothing of the body is read.  The request is the handler's
	 * now: it answers (answer.h), says what to do with the body (request.h), or returns
	 * and does one of these later. */
	void (*on_request)(void *arg, struct http_req *req);

	/* May be NULL.  Every answer passes here before its first byte, from inside the call
	 * that answers: http_answer_add() adds what all answers carry. */
	void (*on_headers)(void *arg, struct http_req *req, int status);

	/* May be NULL.  The server itself refuses: ${status} and ${code} are 400
	 * `bad_request`, 408 `request_timeout`, 413 `payload_too_large`, 414 `uri_too_long`,
	 * 431 `headers_too_large`, 503 `overloaded`.  The hook may answer with that status,
	 * at once; else the answer is bare.  The connection closes in any case.  Of a
	 * malformed or late head method and path read "" and there are no headers. */
	void (*on_refusal)(void *arg, struct http_req *req, int status, const char *code);

	/* May be NULL.  Last sight of a request, for logs and counters: its answer is
	 * complete, or it was cut off (http_req_was_cut()).  Must not touch the answer. */
	void (*on_end)(void *arg, struct http_req *req);

	void *arg; /* First argument of all four. */
};

/* NULL: out of memory.  ${limits} and ${hooks} are copied. */
struct http_server *http_server_new(
    struct event_base *base, const struct http_limits *limits, const struct http_hooks *hooks);
/* Closes every connection at once; requests that handlers still hold are told (on_gone) and
 * stay valid until answered.  Not from inside a hook or callback.  Always NULL. */
struct http_server *http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free)

/* Trusts the X-Forwarded-For of a peer in ${cidr}: "10.0.0.0/8", "::1", "192.0.2.7".
 * 0, E_INVAL, E_NOMEM. */
int http_server_trust(struct http_server *s, const char *cidr);

/* Accepts on ${fd}, a listening stream socket of TCP or Unix, which stays the caller's and is
 * made non-blocking; it must outlive the server or its stop.  Peers of a Unix socket are
 * trusted proxies.  0, E_NOMEM, E_SYS, E_INVAL (no socket). */
int http_server_listen(struct http_server *s, int fd);

/* Serves the connected socket ${fd}, which is taken, on failure too.  0, E_NOMEM, E_SYS. */
int http_server_serve_take(struct http_server *s, int fd);

/* Stops accepting, closes idle connections, lets each other one finish its request and
 * then closes it.  ${on_stopped} runs once, from the loop, when none is left; streams and
 * taken-over connections count, so their owners have to end them.  Repeated: does nothing. */
void http_server_stop(
    struct http_server *s, void (*on_stopped)(void *arg, struct http_server *s), void *arg);

struct http_counters {
	uint64_t accepted;   /* Connections.                                            */
	uint64_t overloaded; /* Of these, refused for want of room.                     */
	uint64_t requests;   /* Heads that were read.                                   */
	uint64_t malformed;  /* 400, 414, 431 made here.                                */
	uint64_t timeouts;   /* 408 made here.                                          */
	uint64_t cut;        /* Clients that left, or were cut off, before their answer */
	uint64_t answers[6]; /* By first digit of the status.                           */
	uint64_t bytes_in, bytes_out;
	size_t open;      /* Connections now.                                        */
	size_t in_flight; /* Requests now: head read, not yet ended.                 */
};
void http_server_counters(const struct http_server *s, struct http_counters *ret);

#endif
