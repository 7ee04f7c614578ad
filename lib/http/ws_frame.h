/*
 * lib/http/ws_frame.h -- frames as a server sends them: whole and unmasked.  Private.
 */
#ifndef LIB_HTTP_WS_FRAME_H
#define LIB_HTTP_WS_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define WS_HEAD_MAX    14  /* bytes of the longest header, mask included  */
#define WS_CONTROL_MAX 125 /* bytes of payload in a control frame          */

enum ws_opcode {
	WS_OP_MORE = 0,
	WS_OP_TEXT = 1,
	WS_OP_BINARY = 2,
	WS_OP_CLOSE = 8,
	WS_OP_PING = 9,
	WS_OP_PONG = 10,
};

/* Writes the header of a final frame with ${n} bytes of payload; returns its size. */
size_t ws_frame_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode op, uint64_t n);

/* Writes a control frame of at most WS_CONTROL_MAX bytes of payload; returns its size. */
size_t
ws_frame_control(uint8_t out[2 + WS_CONTROL_MAX], enum ws_opcode op, const void *p, size_t n);

/* Writes the payload of a close frame; the reason is cut off where it is too long, between two
 * characters.  Returns its size. */
size_t ws_close_payload(uint8_t out[WS_CONTROL_MAX], int code, const char *reason);

/* 1 when an endpoint may send this code (RFC 6455, 7.4). */
int ws_close_code_valid(int code);

#endif
