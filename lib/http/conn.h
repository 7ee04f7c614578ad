/*
 * lib/http/conn.h -- the state behind the public headers.  Private.
 *
 * A connection serves one request at a time.  Calls from outside only change the state of a
 * request and kick its connection; all work (reading, callbacks, writing, freeing) happens in
 * conn_run(), which only events start.  So no callback runs inside a call, and no connection
 * vanishes under one.
 */
#ifndef LIB_HTTP_CONN_H
#define LIB_HTTP_CONN_H

#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/base/id.h"
#include "lib/http/body.h"
#include "lib/http/client.h"
#include "lib/http/head.h"
#include "lib/http/http.h"
#include "lib/http/outq.h"

#define HTTP_SEGMENTS_MAX   16
#define SEGMENTS_UNKNOWN    (-2)
#define HTTP_PIPELINE_BYTES ((size_t)16384) /* unsent bytes that stop the next request */

struct listener {
	struct http_server *srv;
	LIST_ENTRY(listener) entry;
	struct event ev;
};

struct http_server {
	uint32_t magic;
#define HTTP_SERVER_MAGIC 0x48745376
	struct event_base *base;
	struct http_limits limits;
	struct http_hooks hooks;
	struct client_proxies proxies;
	struct http_counters count;
	LIST_HEAD(, listener) listeners;
	TAILQ_HEAD(, conn) conns;
	LIST_HEAD(, http_req) orphans; /* Requests without a connection, still to be ended. */
	size_t nrefused;               /* Connections that only get their 503.              */
	struct event accept_again;     /* After a failure of accept().                      */
	struct event later;            /* Callbacks of orphans, and the end of stopping.    */
	void (*on_stopped)(void *arg, struct http_server *s);
	void *stop_arg;
	int stopping;
	int64_t date_s;         /* The second that `date` tells.      */
	char date[32];          /* Value of the header Date.          */
	struct buf head;        /* Where heads of answers are made.   */
	uint8_t scratch[16384]; /* Where every socket is read into.   */
};

enum conn_phase {
	CONN_IDLE,   /* No byte of a request yet.                                   */
	CONN_HEAD,   /* Some bytes of one.                                          */
	CONN_BUSY,   /* A request is with its handler, or its body still comes.     */
	CONN_LINGER, /* Last answer is on its way; what comes in is thrown away.    */
	CONN_DEAD,   /* conn_run() frees it.                                        */
};

struct conn {
	uint32_t magic;
#define CONN_MAGIC 0x48744366
	int fd;
	struct http_server *srv;
	TAILQ_ENTRY(conn) entry;
	struct event io;
	struct event timer; /* Deadlines, and kicks. */
	struct http_req *req;
	struct outq out;
	struct buf in; /* Read, but not for the present request. */
	struct client_addr peer;
	int64_t since_us; /* Begin of IDLE or LINGER.                       */
	int64_t moved_us; /* When the client last took a byte.              */
	int64_t armed_us; /* What the timer is set to; 0: it is not.        */
	short mask;       /* What `io` waits for now.                       */
	uint8_t phase;    /* enum conn_phase                                */
	unsigned running : 1;
	unsigned eof : 1;         /* The client sends no more: read to the end.     */
	unsigned hup : 1;         /* It was seen to have closed its side.           */
	unsigned stalled : 1;     /* Something was unsent when last looked at.      */
	unsigned close_after : 1; /* The present answer is the last.                */
	unsigned need_linger : 1; /* The client may still be sending.               */
	unsigned shut : 1;        /* Our side is closed.                            */
	unsigned broken : 1;      /* To be dropped with all that is unsent.         */
	unsigned reset : 1;       /* ... in a way that cannot look like an end.     */
	unsigned refused : 1;     /* Counts in nrefused.                            */
	unsigned noisy : 1;       /* While only watched it had something to read.     */
	unsigned again : 1;       /* conn_run() has left work for another time.      */
};

enum body_mode { BODY_UNDECIDED, BODY_COLLECT, BODY_STREAM, BODY_DROP };
enum answer_state { ANSWER_NONE, ANSWER_STREAM, ANSWER_RAW, ANSWER_ENDED };

struct http_req {
	uint32_t magic;
#define HTTP_REQ_MAGIC 0x48745271
	struct http_server *srv; /* NULL: freed meanwhile.    */
	struct conn *conn;       /* NULL: gone, an orphan.    */
	LIST_ENTRY(http_req) orphan;
	struct mono_time started;
	struct client_addr peer;
	char id[ID_DIGITS + 1];
	char client[CLIENT_TEXT_SIZE]; /* "" until asked for. */
	uint8_t client_local;
	void *data;
	/* Head. */
	struct head head;
	char *path; /* Owned; decoded segments behind one another. */
	const char *segment[HTTP_SEGMENTS_MAX];
	int nsegments; /* SEGMENTS_UNKNOWN, or as the getter says.     */
	const char *param[HTTP_PARAMS_MAX];
	int nparams;
	char *query; /* Owned; decoded name\0value\0 pairs; NULL: not yet looked at. */
	size_t query_len;
	/* Body. */
	struct body body;
	struct buf collected;
	size_t body_max;
	http_body_fn *body_fn;
	void *body_arg;
	int64_t body_begin_us, body_last_us;
	int body_err;      /* To be told by conn_run().                           */
	uint8_t body_mode; /* enum body_mode                                      */
	uint8_t body_over; /* Nothing more of it will be read.                     */
	/* Answer. */
	struct buf added; /* Header lines.                                       */
	int status;
	uint8_t answer; /* enum answer_state                                    */
	uint8_t held;   /* The handler has it.                                  */
	unsigned chunked : 1;
	unsigned no_body : 1; /* HEAD, 204, 304.                             */
	unsigned close : 1;   /* As the handler wishes.                      */
	unsigned bad_header : 1;
	unsigned spoilt : 1;    /* It became a bare 500: nothing more can be said.  */
	unsigned continued : 1; /* 100 was sent.                                */
	unsigned cut : 1;
	unsigned in_flight : 1; /* Counts there, and has been seen by a hook. */
	unsigned gone_told : 1;
	unsigned input_told : 1;
	unsigned want_told : 1; /* As an orphan. */
	void (*gone_fn)(void *arg, struct http_req *req);
	void *gone_arg;
	void (*want_fn)(void *arg, struct http_req *req);
	void *want_arg;
	size_t want_low;
	http_input_fn *input_fn;
	void *input_arg;
};

/* server.c */
void server_later(struct http_server *s);
const char *server_date(struct http_server *s);

/* conn.c: takes ${fd}.  NULL: no memory, ${fd} is closed. */
struct conn *conn_new(struct http_server *s, int fd, const struct client_addr *peer);
void conn_run(struct conn *c, const uint8_t *p, size_t n);
/* From outside conn_run(): drops it, with what that means for its request. */
void conn_free(struct conn *c);
/* Has conn_run() called soon; when it runs, it sees by itself what was changed. */
void conn_kick(struct conn *c);
/* The same, and when it runs once more behind it. */
void conn_again(struct conn *c);
int64_t conn_now_us(void);
/* The last answer is queued. */
void conn_begin_linger(struct conn *c);

/* serve.c: a request's way through its connection. */
size_t serve_input(struct conn *c, const uint8_t *p, size_t n);
/* 1: something changed, input may be worth another look. */
int serve_advance(struct conn *c);
/* 1: serve_advance() or, with ${left} bytes of input, serve_input() has work. */
int serve_is_ready(const struct conn *c, size_t left);
/* Answers with a refusal, by the hook or bare. */
void serve_refuse(struct conn *c, int status);
void serve_body_fail(struct conn *c, int err);
/* The connection is lost: its request is ended or becomes an orphan. */
void serve_lost(struct conn *c);
/* 1 while bytes of a body, or raw ones, are wanted. */
int serve_wants_input(const struct conn *c);

/* request.c */
struct http_req *req_new(struct conn *c);
/* Runs on_end if ${tell}, and frees. */
void req_free(struct http_req *req, int tell);
/* The handler has ended the answer or given up. */
void req_release(struct http_req *req);
void req_kick(struct http_req *req);

#endif
