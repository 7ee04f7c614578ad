/*
 * lib/base/utf8.h -- strict UTF-8: no overlong form, no surrogate, nothing over U+10FFFF.
 */
#ifndef LIB_BASE_UTF8_H
#define LIB_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* What a first byte asks for, for text that comes byte by byte. */
struct utf8_lead {
	uint8_t len; /* Of the character; 0: none begins like this.                         */
	uint8_t lo, hi; /* Bounds of its second byte; those of the others are 0x80 and 0xbf. */
};
struct utf8_lead utf8_lead(uint8_t c);

/* Length 1..4 of the valid sequence at ${p}; 0: it is invalid or cut off. */
size_t utf8_len(const char *p, size_t n);
/* As utf8_len(), and tells the code point. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp);
/* Writes the bytes of a code point, which is valid; returns how many. */
size_t utf8_encode(uint32_t cp, uint8_t out[4]);
/* 1 when ${n} bytes at ${p} are a valid beginning that only lacks its end. */
int utf8_is_partial(const char *p, size_t n);
/* 1 when all ${n} bytes are valid. */
int utf8_valid(const char *p, size_t n);
/* Code points in ${n} valid bytes. */
size_t utf8_count(const char *p, size_t n);
/* Longest prefix of at most ${max} bytes that ends between two characters. */
size_t utf8_cut(const char *p, size_t n, size_t max);

/* 1 for U+0000..001F and U+007F..009F. */
static inline int
utf8_is_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f);
}
/* 1 for white space of ASCII and of the rest of Unicode (no-break spaces included). */
int utf8_is_space(uint32_t cp);
/* 1 when ${n} valid bytes hold a control character. */
int utf8_has_control(const char *p, size_t n);

#endif
