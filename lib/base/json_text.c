#include "lib/base/json_text.h"

#include <endian.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"

/* 0: as it is; 1: \u00XX; else the letter behind the backslash. */
static char
escape_of(uint8_t c)
{
	switch (c) {
	case '"': return '"';
	case '\\': return '\\';
	case '\n': return 'n';
	case '\r': return 'r';
	case '\t': return 't';
	case '\b': return 'b';
	case '\f': return 'f';
	default: return c < 0x20 || c == 0x7f ? 1 : 0;
	}
}

static void
add_escape(struct buf *b, uint8_t c, char letter)
{
	static const char hex[] = "0123456789abcdef";

	if (letter != 1) {
		char two[2] = { '\\', letter };

		buf_add(b, two, sizeof(two));
	} else {
		char six[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

		buf_add(b, six, sizeof(six));
	}
}

/* The highest bit of each of eight bytes that is zero; above the first one, of others too. */
static uint64_t
zeros(uint64_t v)
{
	return (v - 0x0101010101010101) & ~v & 0x8080808080808080;
}

size_t
json_text_plain(const char *p, size_t n)
{
	size_t at = 0;

	for (; n - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
		uint64_t v, odd;

		memcpy(&v, p + at, sizeof(v));
		v = le64toh(v);
		odd = (v | (v - 0x2020202020202020)) & 0x8080808080808080;
		odd |= zeros(v ^ 0x2222222222222222) | zeros(v ^ 0x5c5c5c5c5c5c5c5c) |
		    zeros(v ^ 0x7f7f7f7f7f7f7f7f);
		if (odd != 0)
			return at + (size_t)__builtin_ctzll(odd) / 8;
	}
	return at;
}

int
json_text_string(struct buf *b, const char *p, size_t n)
{
	size_t from = 0, at = 0;

	buf_reserve(b, n + 2);
	buf_add_byte(b, '"');
	while (at < n) {
		uint8_t c;
		char letter;
		size_t len = 1;

		at += json_text_plain(p + at, n - at);
		if (at == n)
			break;
		c = (uint8_t)p[at];
		letter = escape_of(c);
		if (letter == 0 && (c < 0x80 || (len = utf8_len(p + at, n - at)) != 0)) {
			at += len;
			continue;
		}
		buf_add(b, p + from, at - from);
		if (letter != 0)
			add_escape(b, c, letter);
		else
			buf_add_str(b, UTF8_REPLACEMENT);
		from = ++at;
	}
	buf_add(b, p + from, n - from);
	buf_add_byte(b, '"');
	return b->failed ? E_NOMEM : 0;
}
