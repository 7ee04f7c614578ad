/* Text of the strings that count: keys where a kept member may stand, and kept values. */
#include <string.h>

#include "lib/webhook/inside.h"

#define NO_KEY (KEY_MAX + 1)

#define SAY_UTF8      "The text of this member must be valid UTF-8."
#define SAY_SURROGATE "The text of this member must not have half of a surrogate pair."

void
text_begin(struct webhook_scan *s, enum sink sink)
{
	s->sink = (uint8_t)sink;
	s->high = 0;
	s->need = 0;
	s->nkey = 0;
}

/* A key with a fault is just no name that is looked for. */
static void
text_fail(struct webhook_scan *s, const char *message)
{
	if (s->sink == SINK_KEY)
		s->nkey = NO_KEY;
	else
		scan_fail(s, member_rows[s->member].path, message);
}

static void
key_add(struct webhook_scan *s, const uint8_t *p, size_t n)
{
	if (s->nkey == NO_KEY || n > KEY_MAX - (size_t)s->nkey) {
		s->nkey = NO_KEY;
		return;
	}
	memcpy(s->key + s->nkey, p, n);
	s->nkey = (uint8_t)(s->nkey + n);
}

static void
value_add(struct webhook_scan *s, const uint8_t *p, size_t n)
{
	struct kept *k = &s->kept[s->member];
	size_t room = member_rows[s->member].max - k->text.len;

	for (size_t i = 0; i < n && !k->not_zeros; i++)
		k->not_zeros = p[i] != '0';
	if (n > room) {
		k->too_long = 1;
		n = room;
	}
	if (n > 0 && buf_add(&k->text, p, n) < 0)
		scan_fail_memory(s);
}

/* The beginning of a character beyond ASCII; 0: there is none that begins like this. */
static int
lead(struct webhook_scan *s, uint8_t c)
{
	s->lo = 0x80;
	s->hi = 0xbf;
	if (c >= 0xc2 && c <= 0xdf) {
		s->need = 1;
	} else if (c >= 0xe0 && c <= 0xef) {
		s->need = 2;
		if (c == 0xe0)
			s->lo = 0xa0;
		else if (c == 0xed)
			s->hi = 0x9f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		s->need = 3;
		if (c == 0xf0)
			s->lo = 0x90;
		else if (c == 0xf4)
			s->hi = 0x8f;
	} else {
		return 0;
	}
	return 1;
}

/* A character may be cut by the end of a piece, so that its state outlives the run. */
static int
is_utf8(struct webhook_scan *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s->need > 0) {
			if (p[i] < s->lo || p[i] > s->hi)
				return 0;
			s->need--;
			s->lo = 0x80;
			s->hi = 0xbf;
		} else if (p[i] >= 0x80 && !lead(s, p[i])) {
			return 0;
		}
	}
	return 1;
}

void
text_run(struct webhook_scan *s, const uint8_t *p, size_t n)
{
	if (n == 0)
		return;
	if (s->high != 0)
		text_fail(s, SAY_SURROGATE);
	else if (s->sink == SINK_KEY)
		key_add(s, p, n);
	else if (!is_utf8(s, p, n))
		text_fail(s, SAY_UTF8);
	else
		value_add(s, p, n);
}

static size_t
encode(uint32_t cp, uint8_t out[4])
{
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const uint8_t marks[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; cp >>= 6)
		out[i] = (uint8_t)(0x80 | (cp & 0x3f));
	out[0] = (uint8_t)(marks[n] | cp);
	return n;
}

void
text_unit(struct webhook_scan *s, uint16_t unit)
{
	int is_low = unit >= 0xdc00 && unit <= 0xdfff;
	uint32_t cp = unit;
	uint8_t bytes[4];

	if (is_low != (s->high != 0)) {
		text_fail(s, SAY_SURROGATE);
		return;
	}
	if (unit >= 0xd800 && unit <= 0xdbff) {
		s->high = unit;
		return;
	}
	if (is_low)
		cp = 0x10000 + ((uint32_t)(s->high - 0xd800) << 10) + (unit - 0xdc00u);
	s->high = 0;
	text_run(s, bytes, encode(cp, bytes));
}

void
text_end(struct webhook_scan *s)
{
	if (s->high != 0)
		text_fail(s, SAY_SURROGATE);
	else if (s->need != 0)
		text_fail(s, SAY_UTF8);
}
