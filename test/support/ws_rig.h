/*
 * test/support/ws_rig.h -- WebSockets on the rig of test/support/http_rig.h: their owner, who
 * keeps what is told, and clients that see single frames.
 */
#ifndef TEST_SUPPORT_WS_RIG_H
#define TEST_SUPPORT_WS_RIG_H

#include "test/support/http_rig.h"
#include "test/unit/http_ws_frames.h"

struct desk {
	struct rig *rig;
	struct client *client;
	struct ws *ws;        /* NULL once it is gone. */
	struct http_req *req; /* Lives as long. */
	struct buf texts;     /* "[one][two]"           */
	int ngone, code;      /* As on_gone told.       */
	int nroom;            /* Calls of desk_on_room. */
	size_t room_left;     /* unsent at the last one */
	int drop_on_text;     /* ws_drop() from inside. */
	int close_on_text;    /* ws_close() ...         */
	int answer;           /* Sends each text back.  */
};

struct frame {
	int first; /* FIN and opcode. */
	size_t len;
	uint8_t data[300000];
};

/* Deadlines that never come. */
struct ws_limits desk_patient(void);

/* A client asks, the owner accepts, the client has its 101.  ${limits} NULL: patient. */
struct desk *desk_new(struct rig *r, const struct ws_limits *limits);
/* In steps: connects; asks, so that the request is in r->held; both; accepts. */
struct desk *desk_connect(struct rig *r);
void desk_request(struct desk *d);
struct desk *desk_ask(struct rig *r);
/* NULL: could not be accepted. */
struct ws *desk_accept(struct desk *d, const struct ws_limits *limits);
void desk_free(struct desk *d);
void desk_on_room(void *arg, struct ws *ws);

/* The client sends what was built, and it is emptied; in pieces of ${step}. */
void desk_send(struct desk *d, struct buf *b, size_t step);
void desk_send_text(struct desk *d, int first, const char *text);

/* Waits for the next frame of the server; valid until the next call. */
const struct frame *desk_frame(struct desk *d);
void desk_expect(struct desk *d, int first, const char *text);
/* A close frame of that code (0: empty) and reason. */
void desk_expect_close(struct desk *d, int code, const char *reason);
/* The server closes without another byte, and the owner was told once. */
void desk_expect_end(struct desk *d, int code);

#endif
