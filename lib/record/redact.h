/*
 * lib/record/redact.h -- takes the secrets of a run out of everything that it shows.
 *
 * What counts as a secret follows from the repository token (spec run 10, Redaction).  The
 * pattern set does not change and may be shared; each byte stream has its own held bytes.
 */
#ifndef LIB_RECORD_REDACT_H
#define LIB_RECORD_REDACT_H

#include <stddef.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

#define REDACT_MARK      "[REDACTED]"
#define REDACT_MIN_BYTES 6 /* Shorter forms are not looked for. */

struct redactor;

/* From the token as it was stored; ${n} 0: nothing is ever redacted.  Wiped when freed.
 * 0 or E_NOMEM. */
int redactor_new(const char *token, size_t n, struct redactor **ret);
struct redactor *redactor_free(struct redactor *r);
DEFINE_CLEANUP(struct redactor *, redactor_free)

/* Bytes of one stream that may yet turn out to begin a secret. */
struct redact_stream {
	struct buf held;
};

void redact_stream_init(struct redact_stream *s);
void redact_stream_done(struct redact_stream *s);

/* Hands out what is decided piece by piece, of each leftmost longest match REDACT_MARK; a
 * piece is lent, for the most part from ${p}.  0, E_NOMEM, or what ${emit} answered that is
 * not 0, which ends it: then the stream is void, and no part of a secret has come out. */
typedef int redact_emit_fn(void *arg, const void *p, size_t n);
int redact_pass(const struct redactor *r, struct redact_stream *s, const void *p, size_t n,
    redact_emit_fn *emit, void *arg);
/* The same, appended to ${out}. */
int redact_feed(const struct redactor *r, struct redact_stream *s, const void *p, size_t n,
    struct buf *out);
/* The stream has ended: decides the held bytes. */
int redact_end(const struct redactor *r, struct redact_stream *s, struct buf *out);

/* A whole text at once: messages, names, commands.  0 or E_NOMEM. */
int redact_text(const struct redactor *r, const char *p, size_t n, struct buf *out);

#endif
