/*
 * lib/record/chunk.h -- text becomes chunks of 16 KiB at most, never cut inside a character.
 *
 * The caller's timer says when an incomplete chunk goes out (spec run 10, Chunk).
 */
#ifndef LIB_RECORD_CHUNK_H
#define LIB_RECORD_CHUNK_H

#include <stddef.h>

#include "lib/base/buf.h"

#define CHUNK_MAX_BYTES 16384

struct chunker {
	struct buf text; /* Valid UTF-8. */
	size_t at;       /* Where the text begins that was not handed out. */
};

void chunker_init(struct chunker *c);
void chunker_done(struct chunker *c);

/* Where new text is appended; what was handed out before is void from here on. */
struct buf *chunker_input(struct chunker *c);
/* Text that waits. */
size_t chunker_pending(const struct chunker *c);
/* Lends the next chunk: a full one, or with ${flush} whatever there is.  Its length;
 * 0: none. */
size_t chunker_next(struct chunker *c, int flush, const char **ret);

#endif
