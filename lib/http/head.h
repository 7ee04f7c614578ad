/*
 * lib/http/head.h -- reads the head of one request, strictly, from any pieces.  Private.
 *
 * Lines end in CRLF; one SP between the parts of the first; no folding, no space before a
 * colon, no control characters; exactly one Host on 1.1; one framing of the body.
 */
#ifndef LIB_HTTP_HEAD_H
#define LIB_HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct head_field {
	uint32_t name, value; /* Offsets of NUL-terminated text. */
};

struct head {
	struct buf text;           /* All lines; ends of parts were overwritten with NUL.  */
	struct head_field *fields; /* Owned.                                              */
	uint32_t nfields, fields_cap;
	uint32_t line;         /* Where the line begins that is not complete yet.        */
	uint32_t fields_start; /* Where the first header line begins; 0: not yet.         */
	uint32_t path, query;  /* Offsets; the query is "" when there is none.           */
	uint32_t host;         /* Offset of the value; only if has_host.               */
	uint32_t authority;    /* Of an absolute form, its length behind it; or 0.     */
	uint32_t authority_len;
	int64_t length;     /* Of the body; -1: chunked; 0: none.                   */
	unsigned minor : 1; /* HTTP/1.minor                                         */
	unsigned has_host : 1;
	unsigned has_length : 1;
	unsigned has_coding : 1;
	unsigned keep_alive : 1; /* As the client wants it, by version and Connection.   */
	unsigned expects : 1;    /* Expect: 100-continue                                 */
	unsigned blank_seen : 1; /* The one empty line that may come first was skipped.  */
	unsigned done : 1;
};

enum { HEAD_MORE = 0, HEAD_DONE = 1 }; /* else a status: 400, 414, 431, 503 (no memory) */

void head_init(struct head *h);
void head_done(struct head *h);

/* Reads from ${p} what belongs to this head; ${ret_used} <= n bytes.  HEAD_MORE: all were
 * used.  After a status nothing of the head may be looked at. */
int head_feed(struct head *h, const uint8_t *p, size_t n, size_t target_max, size_t fields_max,
    size_t *ret_used);

const char *head_text(const struct head *h, uint32_t at);
/* The ${nth} value of that name, any case; NULL: there are not so many. */
const char *head_get(const struct head *h, const char *name, size_t nth);
/* 1 when a header of that name has ${token}, any case, in its comma-separated list. */
int head_has_token(const struct head *h, const char *name, const char *token);

/* Grammar shared with trailers.  1 when ${line} (no CRLF) is `name:value`; tells the parts,
 * the value without white space around it. */
int head_split_field(const uint8_t *line, size_t n, size_t *ret_name_len, size_t *ret_value,
    size_t *ret_value_len);

#endif
