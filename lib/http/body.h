/*
 * lib/http/body.h -- takes the framing off a request body.  Private.
 */
#ifndef LIB_HTTP_BODY_H
#define LIB_HTTP_BODY_H

#include <stddef.h>
#include <stdint.h>

struct body {
	int64_t left;      /* Of the length or of the present chunk.                    */
	uint64_t total;    /* Bytes of body given out.                                  */
	uint32_t overhead; /* Extensions and trailers so far; bounded.                  */
	uint16_t line_len; /* Bytes of the trailer line in `line`.                      */
	uint8_t state;     /* enum body_state of body.c                                 */
	uint8_t digits;    /* Of the chunk size so far.                                 */
	uint8_t line[256]; /* A trailer line; a longer one is refused.                  */
};

enum { BODY_MORE = 0, BODY_PIECE, BODY_DONE, BODY_BAD };

/* ${length}: bytes that follow, -1 = chunked. */
void body_init(struct body *b, int64_t length);

/* Reads from ${p}; ${ret_used} <= n bytes are behind it.  BODY_PIECE: ${ret_piece} of
 * ${ret_len} > 0 bytes, inside ${p}, call again; BODY_DONE: the body has ended (all further
 * bytes belong to the next request); BODY_MORE: all were used; BODY_BAD: malformed. */
int body_feed(struct body *b, const uint8_t *p, size_t n, size_t *ret_used,
    const uint8_t **ret_piece, size_t *ret_len);

#endif
