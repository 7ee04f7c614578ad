/* Text of the strings that count: keys where a kept member may stand, and kept values. */
#include <string.h>

#include "lib/base/utf8.h"
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

/* A character may be cut by the end of a piece, so that its state outlives the run. */
static int
is_utf8(struct webhook_scan *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct utf8_lead l = { s->need, 0x80, 0xbf };

		if (s->need == 0)
			l = utf8_lead(p[i]);
		else if (p[i] < s->lo || p[i] > s->hi)
			return 0;
		if (l.len == 0)
			return 0;
		s->need = (uint8_t)(l.len - 1);
		s->lo = l.lo;
		s->hi = l.hi;
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
	text_run(s, bytes, utf8_encode(cp, bytes));
}

void
text_end(struct webhook_scan *s)
{
	if (s->high != 0)
		text_fail(s, SAY_SURROGATE);
	else if (s->need != 0)
		text_fail(s, SAY_UTF8);
}
