/*
 * lib/wire/codec_issue.h -- where the decoder stands, and its complaints.  Private.
 */
#ifndef LIB_WIRE_CODEC_ISSUE_H
#define LIB_WIRE_CODEC_ISSUE_H

#include <stddef.h>

#include "lib/wire/codec.h"

/* One step from the whole value down; lives on the decoder's stack. */
struct codec_at {
	const struct codec_at *up;
	const char *name; /* NULL: an index.  Not terminated. */
	size_t name_len;
	size_t index;
};

/* Adds an issue at c->at; texts are borrowed.  0 or E_NOMEM. */
int
codec_issue_add(struct codec *c, const char *expected, const char *message, const char *code);

#endif
