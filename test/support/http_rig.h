/*
 * test/support/http_rig.h -- a server, its clients and a handler that obeys the path, all on one
 * real event loop.  For the tests of lib/http.
 */
#ifndef TEST_SUPPORT_HTTP_RIG_H
#define TEST_SUPPORT_HTTP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"

#define RIG_PATIENCE_S 20
#define RIG_COLLECT    64 /* limit of /echo and /count */

struct rig {
	struct event_base *base;
	struct http_server *srv;
	struct http_limits limits;
	struct event guard;
	int timed_out;
	/* What the handler saw and keeps. */
	struct http_req *held; /* of /later, /stream and /raw */
	int nrequests, ngone, nbody_errors, nended, nwants, nstopped;
	int body_err;
	uint64_t body_bytes;
	char last_path[128];
	char ended[32][32]; /* "status cut" of each end */
	struct buf raw;     /* input after a takeover  */
	int raw_ended;
	size_t stream_left, stream_most; /* of /pour: bytes to go; most that were unsent */
	struct http_blob *blob;
};

/* One end of a connection, reading as it comes unless told not to. */
struct client {
	struct rig *rig;
	int fd;
	struct event ev;
	int reading;
	struct buf got;
	size_t at; /* of the next answer in `got` */
	int eof;
};

struct reply {
	int status;
	char head[8192];
	char body[131072];
	size_t body_len;
	int complete; /* by its own framing */
};

/* Handler of /echo, for tests that ask for a body late. */
http_body_fn rig_echo;

/* ${limits} NULL: the defaults. */
struct rig *rig_new(const struct http_limits *limits);
void rig_free(struct rig *r);
/* Whatever can happen now has happened. */
void rig_settle(struct rig *r);

/* Runs until ${cond} holds; fails the test when that takes too long. */
#define RIG_WAIT(r, cond)                                        \
	do {                                                     \
		while (!(cond) && !(r)->timed_out)               \
			event_base_loop((r)->base, EVLOOP_ONCE); \
		assert_false((r)->timed_out);                    \
	} while (0)

/* Over a socket pair, or over ${fd}. */
struct client *client_new(struct rig *r);
struct client *client_new_fd(struct rig *r, int fd);
void client_free(struct client *c);
/* Reading stops and goes on. */
void client_read(struct client *c, int on);
/* Sends in pieces of ${step} bytes; a server that closed already is fine. */
void client_send_n(struct client *c, const char *p, size_t n, size_t step);
void client_send(struct client *c, const char *text);

/* Waits for the next answer; valid until the next call. */
const struct reply *client_reply(struct client *c);
/* The same for the answer to a HEAD. */
const struct reply *client_reply_of(struct client *c, int is_head);
/* Value, valid until the next call; NULL: it has none. */
const char *reply_header(const struct reply *p, const char *name);
/* The next answer has this status and (unless NULL) body. */
void client_expect(struct client *c, int status, const char *body);
/* The server closes, and nothing more came. */
void client_expect_end(struct client *c);

#endif
