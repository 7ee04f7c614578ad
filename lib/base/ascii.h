/*
 * lib/base/ascii.h -- classes of ASCII characters, whatever the locale says.
 */
#ifndef LIB_BASE_ASCII_H
#define LIB_BASE_ASCII_H

static inline char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline int
ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline int
ascii_is_alpha(char c)
{
	return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

static inline int
ascii_is_hex(char c)
{
	return ascii_is_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f');
}

/* Space, tab, LF, VT, FF, CR. */
static inline int
ascii_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
