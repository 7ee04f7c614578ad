/*
 * lib/base/json_text.h -- writing JSON as text, piece by piece, without a tree.
 *
 * Parsing is lib/wire's; this half is used by the log and by generated encoders.
 */
#ifndef LIB_BASE_JSON_TEXT_H
#define LIB_BASE_JSON_TEXT_H

#include <stddef.h>

#include "lib/base/buf.h"

/* Adds ${n} bytes as a quoted JSON string.  The bytes are UTF-8; a byte that is not becomes
 * U+FFFD.  NUL and control characters are escaped.  0 or E_NOMEM. */
int json_text_string(struct buf *b, const char *p, size_t n);

/* How many of ${n} bytes at ${p} certainly stand for themselves in a JSON string.  It goes by eight
 * bytes: of what is left in the end, fewer than eight, it counts none. */
size_t json_text_plain(const char *p, size_t n);

#endif
