/*
 * lib/record/decode.h -- bytes of a step become UTF-8 text, however they were split.
 *
 * Each bad byte becomes U+FFFD, and so does a sequence that the end of the stream cuts off.
 * NUL, CR and escapes stay (spec run 10, Decode).
 */
#ifndef LIB_RECORD_DECODE_H
#define LIB_RECORD_DECODE_H

#include <stddef.h>

#include "lib/base/buf.h"

/* A valid beginning that waits for its end; all zero at the start of a stream. */
struct decoder {
	char held[4];
	size_t nheld; /* 0..3 */
};

/* Appends valid UTF-8 to ${out}.  0 or E_NOMEM. */
int decode_feed(struct decoder *d, const void *p, size_t n, struct buf *out);
/* The stream has ended. */
int decode_end(struct decoder *d, struct buf *out);

#endif
