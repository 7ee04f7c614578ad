#include "lib/record/decode.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/utf8.h"

#define HIGH_BITS 0x8080808080808080u

/* Bytes below 0x80 at the beginning of ${p}. */
static size_t
ascii_run(const char *p, size_t n)
{
	size_t at = 0;

	for (; n - at >= 32; at += 32) {
		uint64_t w[4];

		memcpy(w, p + at, sizeof(w));
		if (((w[0] | w[1] | w[2] | w[3]) & HIGH_BITS) != 0)
			break;
	}
	while (at < n && (uint8_t)p[at] < 0x80)
		at++;
	return at;
}

/* Valid bytes at the beginning of ${p}. */
static size_t
valid_run(const char *p, size_t n)
{
	size_t at = 0, len = 1;

	while (len != 0 && at < n) {
		at += ascii_run(p + at, n - at);
		len = utf8_len(p + at, n - at);
		/* Text of other alphabets comes in runs too. */
		while (len > 1) {
			at += len;
			len = utf8_len(p + at, n - at);
		}
	}
	return at;
}

/* Decides the held bytes with as many of ${p} as that takes; returns how many it used. */
static size_t
finish_held(struct decoder *d, const char *p, size_t n, struct buf *out)
{
	size_t used = 0;

	while (d->nheld != 0 && used < n) {
		d->held[d->nheld++] = p[used++];
		if (utf8_is_partial(d->held, d->nheld))
			continue;
		if (utf8_len(d->held, d->nheld) == d->nheld) {
			(void)buf_add(out, d->held, d->nheld);
		} else {
			/* The new byte is not part of it and is looked at afresh. */
			used--;
			for (size_t i = 1; i < d->nheld; i++)
				(void)buf_add_str(out, UTF8_REPLACEMENT);
		}
		d->nheld = 0;
	}
	return used;
}

int
decode_feed(struct decoder *d, const void *bytes, size_t n, struct buf *out)
{
	const char *p = bytes;
	size_t at = finish_held(d, p, n, out);

	while (at < n) {
		size_t run = valid_run(p + at, n - at);

		(void)buf_add(out, p + at, run);
		at += run;
		if (at < n && utf8_is_partial(p + at, n - at)) {
			d->nheld = n - at;
			memcpy(d->held, p + at, d->nheld);
			break;
		}
		if (at < n) {
			(void)buf_add_str(out, UTF8_REPLACEMENT);
			at++;
		}
	}
	return out->failed ? E_NOMEM : 0;
}

int
decode_end(struct decoder *d, struct buf *out)
{
	if (d->nheld != 0)
		(void)buf_add_str(out, UTF8_REPLACEMENT);
	d->nheld = 0;
	return out->failed ? E_NOMEM : 0;
}
