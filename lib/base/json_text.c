#include "lib/base/json_text.h"

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

int
json_text_string(struct buf *b, const char *p, size_t n)
{
	size_t from = 0, at = 0;

	buf_reserve(b, n + 2);
	buf_add_byte(b, '"');
	while (at < n) {
		uint8_t c = (uint8_t)p[at];
		char letter = escape_of(c);
		size_t len = 1;

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
