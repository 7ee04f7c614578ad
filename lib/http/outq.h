/*
 * lib/http/outq.h -- bytes on their way to one client: copied ones and shared ones.  Private.
 */
#ifndef LIB_HTTP_OUTQ_H
#define LIB_HTTP_OUTQ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/http/answer.h"

struct out_piece;

struct outq {
	STAILQ_HEAD(, out_piece) pieces;
	struct out_piece *last; /* Where small writes may be appended, or NULL. */
	size_t unsent;          /* Bytes in all pieces.                         */
};

/* A blob of ${n} bytes for the caller to fill in.  NULL: out of memory. */
struct http_blob *http_blob_new_sized(size_t n, uint8_t **ret_bytes);

void outq_init(struct outq *q);
/* Drops everything; the queue may be used again. */
void outq_clear(struct outq *q);
/* Each: 0, or E_NOMEM and nothing was added. */
int outq_add(struct outq *q, const void *p, size_t n);
int outq_add_blob(struct outq *q, struct http_blob *b);
/* Drops all but the piece in front, which may have begun to leave.  What one call added is
 * never torn. */
void outq_drop_rest(struct outq *q);
/* Writes what the socket takes.  0: all is sent, or it takes no more now; E_LINK.
 * ${ret_sent}: bytes that were taken. */
int outq_send(struct outq *q, int fd, size_t *ret_sent);

#endif
