/*
 * lib/http/request.h -- a request: its parts, its body, its end.  Included by http.h.
 *
 * A request is the handler's from on_request until it has ended the answer, and valid until
 * then, also when the client goes: the answer then goes nowhere.  Text handed out is
 * borrowed, NUL-terminated and valid as long as the request.
 */
#ifndef LIB_HTTP_REQUEST_H
#define LIB_HTTP_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct http_req;

/* ---- parts ---- */

/* As sent, case counts: "GET". */
const char *http_req_method(const struct http_req *req);
int http_req_is_head(const struct http_req *req);
/* The target up to its query, as sent (not decoded), without scheme and authority of an
 * absolute form; "*" is possible. */
const char *http_req_path(const struct http_req *req);
/* What follows the "?", as sent; "" when there is none.  It may hold secrets. */
const char *http_req_query_text(const struct http_req *req);
/* Value of Host; "" when an HTTP/1.0 request has none. */
const char *http_req_host(const struct http_req *req);
/* 22 characters, made here. */
const char *http_req_id(const struct http_req *req);
/* Address of the client by spec http-api 2.1: IPv4 or IPv6 without port; "unix" when a Unix
 * socket's peer names none. */
const char *http_req_client(struct http_req *req);
/* 1 when that address is a loopback one, or "unix". */
int http_req_client_is_local(struct http_req *req);
/* When its first byte came. */
struct mono_time http_req_started(const struct http_req *req);

/* Decoded segments of the path: "/a/b%20c" has "a" and "b c", "/" has none, "/a/" has "a"
 * and "".  -1: no resource can have this path (malformed escape, NUL, more than 16 segments,
 * "*"); -2: out of memory. */
int http_req_segments(struct http_req *req);
/* NULL from the number of segments on. */
const char *http_req_segment(struct http_req *req, int i);

/* Decoded value of a query parameter ("+" is a space; "" for one without "=").
 * 0; E_NOENT: absent; E_EXISTS: given twice; E_INVAL: malformed escape or NUL in it; E_NOMEM. */
int http_req_query(struct http_req *req, const char *name, const char **ret_value);

/* Headers: names in any case, values without white space at their ends. */
/* First of that name, or NULL. */
const char *http_req_header(const struct http_req *req, const char *name);
/* The value when it is there exactly once, else NULL. */
const char *http_req_header_once(const struct http_req *req, const char *name);
size_t http_req_header_count(const struct http_req *req, const char *name);
/* 1 when a comma-separated header holds ${token}, in any case: Connection, Upgrade. */
int http_req_header_has(const struct http_req *req, const char *name, const char *token);
/* 0 when a Content-Encoding other than `identity` is there: 415. */
int http_req_is_identity(const struct http_req *req);

/* The handler's own pointer; NULL at first. */
void http_req_set_data(struct http_req *req, void *data);
void *http_req_data(const struct http_req *req);

/* ---- body ---- */

/* Declared length; -1 when chunked.  0 when there is none. */
int64_t http_req_body_length(const struct http_req *req);

/*
 * Receives a body.  ${err} 0: see the functions.  ${err} < 0 is the last call and the end of
 * the request: E_TOO_BIG, E_DEADLINE, E_FRAME (malformed chunks), E_NOMEM, E_EOF (client
 * gone).  The handler may answer inside that call; when it does not, the server answers.
 * Either way ${req} is not the handler's any more and must be forgotten.
 */
typedef void
http_body_fn(void *arg, struct http_req *req, int err, const uint8_t *data, size_t len);

/* Each at most once for a request, before its answer.  A declared length over ${max} fails
 * before a byte is read, a chunked body as soon as it is over.  `Expect: 100-continue` gets its
 * 100 here.  A handler that answers without any of these has the body dropped within
 * drop_bytes, or the connection closed after the answer. */

/* One call with the whole body, which stays valid as long as the request. */
void http_body_collect(struct http_req *req, size_t max, http_body_fn *fn, void *arg);
/* A call for each piece as it comes (len > 0), and one with len 0 at the end.  A handler that
 * answers between pieces gets no more of them. */
void http_body_stream(struct http_req *req, size_t max, http_body_fn *fn, void *arg);
/* One call with len 0 when the body has been read and forgotten. */
void http_body_drop(struct http_req *req, size_t max, http_body_fn *fn, void *arg);
/* Bytes of body read so far. */
uint64_t http_req_body_read(const struct http_req *req);

/* ---- the client ---- */

/* ${fn} runs once, from the loop, when the client has closed its side or is lost while the
 * answer is not ended.  The request stays the handler's: it still has to answer (which reaches
 * a client that closed only one direction) or to http_req_abandon().  NULL: not interested.
 * Told at once (from the loop) when it has happened already.  Not called for failures that a
 * http_body_fn is told. */
void
http_req_on_gone(struct http_req *req, void (*fn)(void *arg, struct http_req *req), void *arg);
/* 1 when nothing can reach the client any more. */
int http_req_is_gone(const struct http_req *req);
/* Ends the request without (the rest of) an answer; the connection is closed. */
void http_req_abandon(struct http_req *req);

/* For on_end: status of the answer (0: none was begun), cut off before its end or not. */
int http_req_status(const struct http_req *req);
int http_req_was_cut(const struct http_req *req);

#endif
