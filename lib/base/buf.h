/*
 * lib/base/buf.h -- a growing byte buffer.
 *
 * A failed append sets `failed` and every later one does nothing, so that a writer of many
 * small pieces checks once at its end.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"

struct buf {
	uint8_t *data; /* Owned; NULL while nothing was reserved.      */
	size_t len;    /* Bytes in use.                                */
	size_t cap;    /* Bytes allocated.                             */
	int failed;    /* An append ran out of memory: contents void.  */
};

#define BUF_INIT              \
	{                     \
		NULL, 0, 0, 0 \
	}

void buf_init(struct buf *b);
/* Frees the storage; ${b} may be used again afterwards. */
void buf_done(struct buf *b);
/* As buf_done(), and the bytes are overwritten first. */
void buf_wipe(struct buf *b);
/* Empties it and keeps the storage. */
void buf_reset(struct buf *b);

/* Each: 0, or E_NOMEM (then `failed` is set as well). */
int buf_reserve(struct buf *b, size_t more);
int buf_add(struct buf *b, const void *p, size_t n);
int buf_add_byte(struct buf *b, uint8_t c);
int buf_add_str(struct buf *b, const char *s);
int buf_add_int(struct buf *b, int64_t v);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Removes the first ${n} bytes (n <= len), moving the rest down. */
void buf_consume(struct buf *b, size_t n);

/* Adds a NUL that len does not count and lends the text; NULL: out of memory. */
const char *buf_cstr(struct buf *b);

/* Hands the storage out as a NUL-terminated string; the buffer is empty afterwards.
 * NULL: an append had failed, or out of memory now.  The caller frees. */
char *buf_take_cstr(struct buf *b);

#endif
