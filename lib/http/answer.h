/*
 * lib/http/answer.h -- answers: whole, streamed, or a connection taken over.  Included by
 * http.h.
 *
 * Each request gets exactly one answer, in one of the three ways.  What ends it takes the
 * request from the handler.  Length, chunking, Date, Connection, bodies of HEAD, 204 and 304
 * and the older form for HTTP/1.0 are seen to here; nothing is written from inside a call.
 */
#ifndef LIB_HTTP_ANSWER_H
#define LIB_HTTP_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

struct http_req;
struct http_blob;

/* ---- shared immutable bytes ---- */

/* Lends: ${p} must live as long as the process, such as an embedded file.  NULL: out of
 * memory. */
struct http_blob *http_blob_new_static(const void *p, size_t n);
/* Copies.  NULL: out of memory. */
struct http_blob *http_blob_new_copy(const void *p, size_t n);
struct http_blob *http_blob_ref(struct http_blob *b);
struct http_blob *http_blob_unref(struct http_blob *b);
DEFINE_CLEANUP(struct http_blob *, http_blob_unref)
size_t http_blob_len(const struct http_blob *b);

/* ---- headers ---- */

/* Adds one before the answer begins.  A value with CR, LF or NUL, and want of memory, turn the
 * answer into a bare 500 and close the connection. */
void http_answer_add(struct http_req *req, const char *name, const char *value);
void http_answer_addf(struct http_req *req, const char *name, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* 1 when a header of that name, in any case, was added. */
int http_answer_has(const struct http_req *req, const char *name);
/* Forgets what was added so far. */
void http_answer_clear(struct http_req *req);

/* ---- whole ---- */

/* Ends the request.  ${status} is 200..599. */
void http_answer(struct http_req *req, int status, const void *body, size_t len);
/* The same without a copy; keeps its own reference. */
void http_answer_blob(struct http_req *req, int status, struct http_blob *body);

/* ---- streamed ---- */

/* Headers leave now, the body follows in pieces: chunked, or up to the end of the connection
 * for HTTP/1.0.  For HEAD the pieces vanish, and the writer may end at once.  The client may be
 * gone already: see write. */
void http_stream_begin(struct http_req *req, int status);
/* 0; E_LINK: nothing reaches the client any more; E_NOMEM.  The stream still has to be ended.
 * Takes any amount: keeping http_stream_unsent() bounded is the writer's duty. */
int http_stream_write(struct http_req *req, const void *p, size_t n);
/* The same without a copy; keeps its own reference.  One blob may be on its way to any number
 * of clients. */
int http_stream_write_blob(struct http_req *req, struct http_blob *b);
/* Bytes that the kernel has not taken yet, framing included. */
size_t http_stream_unsent(const struct http_req *req);
/* ${fn} runs once, from the loop, as soon as at most ${low} bytes are unsent; also when that is
 * so already, and when the client is gone.  It may ask again.  One at a time: the last counts. */
void http_stream_want(
    struct http_req *req, size_t low, void (*fn)(void *arg, struct http_req *req), void *arg);
/* Ends the request: the final chunk follows what is unsent. */
void http_stream_end(struct http_req *req);
/* Ends it without the final chunk, what is unsent included: the client sees a failure. */
void http_stream_break(struct http_req *req);

/* ---- taken over ---- */

/*
 * Answers ${status} (101) with the added headers and without on_headers; from then on the
 * connection carries plain bytes both ways.  http_stream_write*(), _unsent(), _want(), _end()
 * (flush, then close) and _break() serve the sending side.  ${on_input} gets what comes, bytes
 * that followed the request first; a call with len 0 is the last and says that the client
 * closed or is lost; the request still has to be ended.  No deadline of the server applies.
 */
typedef void http_input_fn(void *arg, struct http_req *req, const uint8_t *data, size_t len);
void http_takeover(struct http_req *req, int status, http_input_fn *on_input, void *arg);
/* Drops what has not begun to leave.  What one write handed over is kept or dropped as a
 * whole; some that stands at the front may be kept. */
void http_takeover_forget(struct http_req *req);

#endif
