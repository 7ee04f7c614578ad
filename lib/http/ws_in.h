/*
 * lib/http/ws_in.h -- what a WebSocket client sends: frames put together to messages, strictly.
 * Private.
 *
 * No socket and no clock: bytes go in, in any pieces; messages come out one by one.
 */
#ifndef LIB_HTTP_WS_IN_H
#define LIB_HTTP_WS_IN_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/http/ws_frame.h"

#define WS_MESSAGE_MAX 4096 /* bytes of one message, over all its fragments */

struct wslay_frame_context;

struct ws_in {
	struct wslay_frame_context *frames; /* Owned. */
	/* Input of the present call. */
	const uint8_t *p;
	size_t n;
	/* The present frame. */
	uint8_t head[WS_HEAD_MAX]; /* As it goes by.                                */
	uint8_t nhead;
	uint64_t left; /* Payload that wslay was not given yet.                     */
	uint64_t got;  /* Payload that it gave back.                                */
	uint8_t control[WS_CONTROL_MAX];
	/* The present message. */
	uint8_t kind;  /* Opcode of its first frame; WS_OP_MORE: there is none.     */
	uint64_t size; /* Announced by its frames so far.                           */
	struct buf text;
	int verdict;      /* Close code; once set nothing more is read.             */
	uint64_t nframes; /* Complete ones so far.                                  */
};

enum ws_in_result {
	WS_IN_MORE,  /* All input was used.                                         */
	WS_IN_TEXT,  /* A message, valid UTF-8.                                     */
	WS_IN_PING,  /* At most WS_CONTROL_MAX bytes.                               */
	WS_IN_PONG,  /* The same.                                                   */
	WS_IN_CLOSE, /* Its whole payload, which is valid; `code` is 1005 if empty. */
	WS_IN_BAD,   /* `code` is what to close with: 1002, 1007, 1009, 1011.       */
};

struct ws_message {
	const uint8_t *data; /* Valid until the next call. */
	size_t len;
	int code;
};

/* 0 or E_NOMEM.  ${in} must stay where it is. */
int ws_in_init(struct ws_in *in);
void ws_in_done(struct ws_in *in);

/* Reads from ${p} up to the end of the next message that matters; ${ret_used} <= n.  Binary
 * messages are swallowed.  What is wrong with a frame is known when its header is there. */
enum ws_in_result ws_in_feed(
    struct ws_in *in, const uint8_t *p, size_t n, size_t *ret_used, struct ws_message *ret);

#endif
