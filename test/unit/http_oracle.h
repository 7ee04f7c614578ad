/*
 * test/unit/http_oracle.h -- http_parser as a witness: what lib/http accepts, it must accept
 * and read in the same way.  (It accepts far more, so the other direction says nothing.)
 */
#ifndef TEST_UNIT_HTTP_ORACLE_H
#define TEST_UNIT_HTTP_ORACLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <http_parser.h>

#include "lib/base/buf.h"

struct oracle {
	http_parser parser;
	struct buf target, body;
	unsigned nfields;
	int in_value, head_over, message_over;
	unsigned major, minor;
};

static inline int
oracle_url(http_parser *p, const char *at, size_t n)
{
	struct oracle *o = p->data;

	return buf_add(&o->target, at, n);
}

static inline int
oracle_field(http_parser *p, const char *at, size_t n)
{
	struct oracle *o = p->data;

	(void)at;
	(void)n;
	o->nfields += o->nfields == 0 || o->in_value;
	o->in_value = 0;
	return 0;
}

static inline int
oracle_value(http_parser *p, const char *at, size_t n)
{
	struct oracle *o = p->data;

	(void)at;
	(void)n;
	o->in_value = 1;
	return 0;
}

static inline int
oracle_head_over(http_parser *p)
{
	struct oracle *o = p->data;

	o->head_over = 1;
	return 0;
}

static inline int
oracle_body(http_parser *p, const char *at, size_t n)
{
	struct oracle *o = p->data;

	return buf_add(&o->body, at, n);
}

static inline int
oracle_message_over(http_parser *p)
{
	struct oracle *o = p->data;

	o->message_over = 1;
	http_parser_pause(p, 1);
	return 0;
}

/* Reads one message from ${p}.  Bytes it took, or -1: it refuses. */
static inline long
oracle_read(struct oracle *o, const void *p, size_t n)
{
	static const http_parser_settings settings = {
		.on_url = oracle_url,
		.on_header_field = oracle_field,
		.on_header_value = oracle_value,
		.on_headers_complete = oracle_head_over,
		.on_body = oracle_body,
		.on_message_complete = oracle_message_over,
	};
	size_t took;

	memset(o, 0, sizeof(*o));
	http_parser_init(&o->parser, HTTP_REQUEST);
	http_parser_set_max_header_size(1 << 20);
	o->parser.data = o;
	took = http_parser_execute(&o->parser, &settings, p, n);
	if (HTTP_PARSER_ERRNO(&o->parser) != HPE_OK &&
	    HTTP_PARSER_ERRNO(&o->parser) != HPE_PAUSED)
		return -1;
	/* Paused in the last callback, it has not counted the byte that led there. */
	return (long)took;
}

static inline void
oracle_done(struct oracle *o)
{
	buf_done(&o->target);
	buf_done(&o->body);
}

#endif
