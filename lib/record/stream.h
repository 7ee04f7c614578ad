/*
 * lib/record/stream.h -- one output stream of a run on its way from bytes to chunks:
 * redacted, decoded, cut.  Each stage keeps what it cannot decide yet.
 */
#ifndef LIB_RECORD_STREAM_H
#define LIB_RECORD_STREAM_H

#include "lib/record/chunk.h"
#include "lib/record/decode.h"
#include "lib/record/redact.h"

struct record_stream {
	struct redact_stream redact;
	struct decoder decoder;
	struct chunker chunker;
};

void record_stream_init(struct record_stream *s);
void record_stream_done(struct record_stream *s);

/* Takes what was read, 64 KiB at most at a time if memory matters.  0, or E_NOMEM: then the
 * stream is void. */
int
record_stream_feed(struct record_stream *s, const struct redactor *r, const void *p, size_t n);
/* The stream has ended; what was held is decided.  It may be fed again afterwards, as a new
 * stream whose text follows. */
int record_stream_end(struct record_stream *s, const struct redactor *r);

/* As chunker_pending() and chunker_next(). */
size_t record_stream_pending(const struct record_stream *s);
size_t record_stream_next(struct record_stream *s, int flush, const char **ret);

#endif
