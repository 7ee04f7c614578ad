#include "lib/base/utf8.h"

struct utf8_lead
utf8_lead(uint8_t c)
{
	if (c < 0x80)
		return (struct utf8_lead) { 1, 0, 0 };
	if (c < 0xc2)
		return (struct utf8_lead) { 0, 0, 0 };
	if (c < 0xe0)
		return (struct utf8_lead) { 2, 0x80, 0xbf };
	if (c < 0xf0)
		return (
		    struct utf8_lead) { 3, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf };
	if (c < 0xf5)
		return (
		    struct utf8_lead) { 4, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf };
	return (struct utf8_lead) { 0, 0, 0 };
}

/* How many of the first ${n} bytes fit the sequence that ${l} begins. */
static size_t
matching(const uint8_t *u, size_t n, struct utf8_lead l)
{
	size_t at = 1;

	if (n > 1 && l.len > 1 && (u[1] < l.lo || u[1] > l.hi))
		return 1;
	while (at < n && at < l.len && (at == 1 || (u[at] & 0xc0) == 0x80))
		at++;
	return at;
}

size_t
utf8_len(const char *p, size_t n)
{
	const uint8_t *u = (const uint8_t *)p;
	struct utf8_lead l;

	if (n == 0)
		return 0;
	l = utf8_lead(u[0]);
	return l.len != 0 && l.len <= n && matching(u, n, l) == l.len ? l.len : 0;
}

size_t
utf8_decode(const char *p, size_t n, uint32_t *ret_cp)
{
	static const uint8_t lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const uint8_t *u = (const uint8_t *)p;
	size_t len = utf8_len(p, n);
	uint32_t cp;

	if (len == 0)
		return 0;
	cp = u[0] & lead_bits[len];
	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | (u[i] & 0x3f);
	*ret_cp = cp;
	return len;
}

size_t
utf8_encode(uint32_t cp, uint8_t out[4])
{
	static const uint8_t marks[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; cp >>= 6)
		out[i] = (uint8_t)(0x80 | (cp & 0x3f));
	out[0] = (uint8_t)(marks[n] | cp);
	return n;
}

int
utf8_is_partial(const char *p, size_t n)
{
	const uint8_t *u = (const uint8_t *)p;
	struct utf8_lead l;

	if (n == 0)
		return 0;
	l = utf8_lead(u[0]);
	return l.len > n && matching(u, n, l) == n;
}

int
utf8_valid(const char *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t len = utf8_len(p + at, n - at);

		if (len == 0)
			return 0;
		at += len;
	}
	return 1;
}

size_t
utf8_count(const char *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (((uint8_t)p[i] & 0xc0) != 0x80)
			count++;
	return count;
}

size_t
utf8_cut(const char *p, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max > 0 && ((uint8_t)p[max] & 0xc0) == 0x80)
		max--;
	return max;
}

int
utf8_is_space(uint32_t cp)
{
	return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0xa0 ||
	    cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
	    cp == 0x202f || cp == 0x205f || cp == 0x3000 || cp == 0xfeff;
}

int
utf8_has_control(const char *p, size_t n)
{
	const uint8_t *u = (const uint8_t *)p;

	for (size_t i = 0; i < n; i++) {
		if (u[i] < 0x20 || u[i] == 0x7f)
			return 1;
		/* U+0080..009F are C2 80..9F. */
		if (u[i] == 0xc2 && i + 1 < n && u[i + 1] < 0xa0)
			return 1;
	}
	return 0;
}
