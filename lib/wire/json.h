/*
 * lib/wire/json.h -- JSON texts in and out: the only place where jansson parses or prints.
 */
#ifndef LIB_WIRE_JSON_H
#define LIB_WIRE_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

/* CLEANUP(json_unrefp) json_t *j = NULL; */
static inline void
json_unrefp(json_t **j)
{
	json_decref(*j);
}

/*
 * Reads exactly one value, with nothing but white space around it.  Refused: invalid UTF-8, a
 * byte order mark, duplicate members, lone surrogates, numbers that fit neither int64_t nor
 * double.  U+0000 may stand in strings, not in names.  A scalar has depth 0, `[]` has 1.
 * 0, E_PARSE, E_DEEP (whichever is met first), E_NOMEM.
 */
int json_text_parse(const char *p, size_t n, unsigned max_depth, json_t **ret);

/* Where and why json_text_parse() would refuse ${p}, for people; empty when it would not. */
void json_text_why(const char *p, size_t n, unsigned max_depth, char *out, size_t size);

/* Adds ${j} (any value; NULL: null) as text without white space.  0 or E_NOMEM. */
int json_text_dump(struct buf *out, const json_t *j);

/* Makes jansson allocate through lib/base/mem.h, so that tests can starve it.  Once, at start,
 * before the first value exists. */
void json_text_use_mem(void);

#endif
