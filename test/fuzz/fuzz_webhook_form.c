/* Input: a seed of the splits, then a form.  Whatever the splits, what comes out is what a decoder
 * of the whole makes of it. */
#include <stdint.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/webhook/webhook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decoded text of ${n} bytes.  0 or E_PARSE. */
static int
decode(const uint8_t *p, size_t n, struct buf *out)
{
	buf_reset(out);
	for (size_t i = 0; i < n; i++) {
		uint8_t c = p[i];

		if (c == '%') {
			if (n - i < 3 || hex_decode((const char *)p + i + 1, 2, &c, 1) < 0)
				return E_PARSE;
			i += 2;
		} else if (c == '+') {
			c = ' ';
		}
		must(buf_add_byte(out, c) == 0);
	}
	return 0;
}

static int
is_payload(const struct buf *name)
{
	return name->len == 7 && memcmp(name->data, "payload", 7) == 0;
}

/* Field by field.  ${ret} is void unless 0 is returned. */
static int
decode_whole(const uint8_t *p, size_t n, struct buf *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const uint8_t *end = p + n;
	size_t npayload = 0;

	for (const uint8_t *next = p; p <= end; p = next + 1) {
		const uint8_t *equals;

		next = p < end ? memchr(p, '&', (size_t)(end - p)) : NULL;
		if (next == NULL)
			next = end;
		equals = p < next ? memchr(p, '=', (size_t)(next - p)) : NULL;
		if (equals == NULL)
			equals = next;
		if (decode(p, (size_t)(equals - p), &text) < 0)
			return E_PARSE;
		if (is_payload(&text) && ++npayload > 1)
			return E_PARSE;
		if (equals < next &&
		    decode(equals + 1, (size_t)(next - equals - 1),
			is_payload(&text) ? ret : &text) < 0)
			return E_PARSE;
	}
	return npayload == 1 ? 0 : E_PARSE;
}

static void
collect(void *arg, const void *p, size_t n)
{
	must(n > 0);
	must(buf_add(arg, p, n) == 0);
}

static int
decode_split(const uint8_t *p, size_t n, unsigned seed, size_t most, struct buf *ret)
{
	CLEANUP(webhook_form_freep) struct webhook_form *f = webhook_form_new(collect, ret);
	const char *say = NULL;
	int r;

	must(f != NULL);
	for (size_t at = 0; at < n;) {
		size_t len = min_size(n - at, (size_t)rand_r(&seed) % (most + 1));

		webhook_form_feed(f, p + at, len);
		at += len;
	}
	r = webhook_form_end(f, &say);
	must(r == 0 ? say == NULL : r == E_PARSE && say != NULL);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t most[] = { 1, 8, SIZE_MAX >> 1 };
	struct buf want = BUF_INIT;
	unsigned seed;
	int r;

	if (size < 1)
		return 0;
	seed = *data++;
	size--;
	r = decode_whole(data, size, &want);
	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		struct buf got = BUF_INIT;

		must(decode_split(data, size, seed, most[i], &got) == r);
		if (r == 0)
			must(got.len == want.len &&
			    (got.len == 0 || memcmp(got.data, want.data, got.len) == 0));
		buf_done(&got);
	}
	buf_done(&want);
	return 0;
}
