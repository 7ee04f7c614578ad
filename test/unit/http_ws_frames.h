/*
 * test/unit/http_ws_frames.h -- frames as a WebSocket client sends them, good and bad.
 */
#ifndef TEST_UNIT_HTTP_WS_FRAMES_H
#define TEST_UNIT_HTTP_WS_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/buf.h"

#define WS_FIN   0x80
#define WS_TEXT  (WS_FIN | 1)
#define WS_BIN   (WS_FIN | 2)
#define WS_CLOSE (WS_FIN | 8)
#define WS_PING  (WS_FIN | 9)
#define WS_PONG  (WS_FIN | 10)

/* A header whose length takes 0, 2 or 8 bytes of its own; ${mask} 0: unmasked. */
static inline void
ws_put_head(struct buf *b, int first, uint64_t n, size_t digits, uint32_t mask)
{
	size_t i;
	int small = digits == 0 ? (int)n : digits == 2 ? 126 : 127;

	(void)buf_add_byte(b, (uint8_t)first);
	(void)buf_add_byte(b, (uint8_t)((mask != 0 ? 0x80 : 0) | small));
	for (i = 0; i < digits; i++)
		(void)buf_add_byte(b, (uint8_t)(n >> (8 * (digits - 1 - i))));
	for (i = 0; mask != 0 && i < 4; i++)
		(void)buf_add_byte(b, (uint8_t)(mask >> (24 - 8 * i)));
}

/* A frame in the shortest form. */
static inline void
ws_put(struct buf *b, int first, const void *p, size_t n, uint32_t mask)
{
	const uint8_t *in = p;
	size_t i;

	ws_put_head(b, first, n, n < 126 ? 0 : n <= UINT16_MAX ? 2 : 8, mask);
	for (i = 0; i < n; i++)
		(void)buf_add_byte(b, (uint8_t)(in[i] ^ (uint8_t)(mask >> (24 - 8 * (i % 4)))));
}

static inline void
ws_put_text(struct buf *b, int first, const char *text)
{
	ws_put(b, first, text, strlen(text), 0x5ac3f017);
}

#endif
