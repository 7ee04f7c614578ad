/*
 * test/soak/http.h -- HTTP as a client that never waits for long: each call has a connection of
 * its own and a limit to any silence.
 */
#ifndef TEST_SOAK_HTTP_H
#define TEST_SOAK_HTTP_H

#include <stddef.h>

#include "lib/base/buf.h"

struct http {
	int port;
	const char *session; /* NULL: none. */
	int status;          /* Of the newest answer, 0: it was not whole. */
	struct buf body;     /* Of it, without the chunks; a NUL follows it. */
};

/* Connected, and reads and writes on it fail after ${ms}; -1: nobody takes it. */
int http_connect(int port, int ms);
/* ${headers}: lines with CRLF each, or NULL.  ${body}: NULL: none.  h->status. */
int http_call(struct http *h, const char *method, const char *path, const char *headers,
    const void *body, size_t n);
/* Same with JSON, or without a body; ${json} NULL. */
int http_json(struct http *h, const char *method, const char *path, const char *json);
/* The text of member ${name}, wherever it stands first in the body; 0 or -1. */
int http_member(const struct http *h, const char *name, char *out, size_t size);
void http_done(struct http *h);

/* Takes whole chunks off the front of ${in} and adds what is in them to ${out}.  1: that was
 * the last one; 0: more has to come; -1: it is no chunk. */
int http_unchunk(struct buf *in, struct buf *out);

#endif
