/*
 * lib/base/enc.h -- hexadecimal and base64url, the two spellings of binary values.
 */
#ifndef LIB_BASE_ENC_H
#define LIB_BASE_ENC_H

#include <stddef.h>
#include <stdint.h>

/* Lower-case digits; ${out} holds 2 * n + 1 bytes. */
void hex_encode(const void *p, size_t n, char *out);
/* Value of a digit of any case; -1: it is none. */
int hex_value(char c);
/* Exactly 2 * n digits of any case.  0 or E_INVAL. */
int hex_decode(const char *text, size_t text_len, void *out, size_t n);
/* 1 when ${text} is ${n} lower-case hexadecimal digits and nothing else. */
int hex_is_lower(const char *text, size_t n);

/* Without padding; ${out} holds base64url_size(n) bytes. */
static inline size_t
base64url_size(size_t n)
{
	return (n * 4 + 2) / 3 + 1;
}
void base64url_encode(const void *p, size_t n, char *out);
/* Strict: no padding, no other character, unused bits zero.  0, E_INVAL, or E_RANGE when
 * more than ${cap} bytes come out. */
int base64url_decode(const char *text, size_t text_len, void *out, size_t cap, size_t *ret_n);

/* The same with the standard alphabet and padding; ${out} holds 4 * ((n + 2) / 3) + 1. */
void base64_encode(const void *p, size_t n, char *out);

#endif
