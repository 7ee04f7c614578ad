/*
 * lib/wire/frame.h -- cuts a stream of bytes into frames, and writes frames (design 2).
 *
 * A frame is a 4-byte big-endian length and that many bytes.  The reader grows with the
 * bytes that have come, never with the length that was promised.
 */
#ifndef LIB_WIRE_FRAME_H
#define LIB_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define FRAME_HEAD_BYTES 4
#define FRAME_MAX_BYTES  (16u << 20) /* of the body */

struct frame_in {
	uint8_t *data; /* Owned; NULL while nothing is pending.       */
	size_t start;  /* First byte that was not handed out.         */
	size_t end;    /* Behind the last byte received.              */
	size_t cap;    /* Bytes allocated.                            */
	size_t step;   /* Room offered next; grows while it is used.  */
};

void frame_in_init(struct frame_in *f);
void frame_in_done(struct frame_in *f);

/* Room for at least one more byte: read into it, then say how many came.  NULL: out of
 * memory.  Bodies handed out before are gone after frame_in_room(). */
uint8_t *frame_in_room(struct frame_in *f, size_t *ret_room);
void frame_in_add(struct frame_in *f, size_t n);

/* 1: a whole frame; its body is ${n} bytes long and may be overwritten.  0: needs more bytes.
 * E_TOO_BIG: the length is above the limit, the stream is lost. */
int frame_in_next(struct frame_in *f, char **ret_body, size_t *ret_n);

/* Gives the storage back when nothing is pending and it has grown beyond ordinary use. */
void frame_in_idle(struct frame_in *f);

/* Begins a frame at the end of ${out} and tells where; append the body, then end it.
 * frame_end() writes the length.  0; E_TOO_BIG or E_NOMEM, then ${out} is as before
 * frame_begin() (its `failed` cleared). */
size_t frame_begin(struct buf *out);
int frame_end(struct buf *out, size_t at);

#endif
