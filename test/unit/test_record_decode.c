#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/decode.h"

#define BAD UTF8_REPLACEMENT

struct row {
	const char *in;
	size_t n;
	const char *want;
	size_t nwant;
};
#define ROW(in, want)                                          \
	{                                                      \
		(in), sizeof(in) - 1, (want), sizeof(want) - 1 \
	}

static const struct row rows[] = {
	ROW("", ""),
	ROW("plain\r\n\033[1m", "plain\r\n\033[1m"),
	ROW("a\0b", "a\0b"),
	ROW("\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xa9"),
	ROW("\x80", BAD),
	ROW("\xff\xfe", BAD BAD),
	ROW("\xc0\xaf", BAD BAD),
	ROW("\xc3(", BAD "("),
	ROW("\xe2\x82(", BAD BAD "("),
	ROW("\xe2\xe2\x82\xac", BAD "\xe2\x82\xac"),
	ROW("\xf0\x9f\x92\xc3\xa4", BAD BAD BAD "\xc3\xa4"),
	ROW("\xed\xa0\x80", BAD BAD BAD),
	ROW("\xf4\x90\x80\x80", BAD BAD BAD BAD),
	ROW("\xf0\x8f\xbf\xbf", BAD BAD BAD BAD),
	/* Cut off by the end: one for the sequence that did not come. */
	ROW("a\xc3", "a" BAD),
	ROW("a\xe2\x82", "a" BAD),
	ROW("a\xf0\x9f\x92", "a" BAD),
	ROW("0123456789012345678901234567890123456789\xc3\xa4"
	    "0123456789012345678901234567890123456789\xfe",
	    "0123456789012345678901234567890123456789\xc3\xa4"
	    "0123456789012345678901234567890123456789" BAD),
};

static void
bad_bytes_become_replacements_at_any_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t a = 0; a <= rows[i].n; a++) {
			for (size_t b = a; b <= rows[i].n; b++) {
				CLEANUP(buf_done) struct buf out = BUF_INIT;
				struct decoder d = { 0 };

				assert_int_equal(decode_feed(&d, rows[i].in, a, &out), 0);
				assert_int_equal(
				    decode_feed(&d, rows[i].in + a, b - a, &out), 0);
				assert_int_equal(
				    decode_feed(&d, rows[i].in + b, rows[i].n - b, &out), 0);
				assert_int_equal(decode_end(&d, &out), 0);
				assert_int_equal(out.len, rows[i].nwant);
				if (out.len != 0)
					assert_memory_equal(out.data, rows[i].want, out.len);
			}
		}
	}
}

static void
an_incomplete_character_waits(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct decoder d = { 0 };

	(void)state;
	assert_int_equal(decode_feed(&d, "x\xe2", 2, &out), 0);
	assert_int_equal(out.len, 1);
	assert_int_equal(decode_feed(&d, "\x82", 1, &out), 0);
	assert_int_equal(out.len, 1);
	assert_int_equal(decode_feed(&d, "\xac", 1, &out), 0);
	assert_string_equal(buf_cstr(&out), "x\xe2\x82\xac");
	assert_int_equal(decode_end(&d, &out), 0);
	assert_int_equal(out.len, 4);
}

/* Whole input, one character or one bad byte at a time. */
static void
naive(const char *p, size_t n, struct buf *out)
{
	for (size_t at = 0; at < n;) {
		size_t len = utf8_len(p + at, n - at);

		if (len != 0) {
			(void)buf_add(out, p + at, len);
			at += len;
		} else {
			(void)buf_add_str(out, BAD);
			at += utf8_is_partial(p + at, n - at) ? n - at : 1;
		}
	}
}

static void
random_bytes_decode_as_the_naive_decoder_does(void **state)
{
	static const char *const pieces[] = { "a", "\xc3", "\xa4", "\xe2", "\x82\xac",
		"\xf0\x9f", "\x92", "\xa9", "\xff",
		"text and more of it, long enough for a fast path\n",
		"\xd0\x96\xd0\xb8\xd0\xb7\xd0\xbd\xd1\x8c" };
	unsigned seed = 5;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, want = BUF_INIT, got = BUF_INIT;
		struct decoder d = { 0 };
		size_t at = 0;

		for (int i = 0; i < 20; i++)
			(void)buf_add_str(
			    &in, pieces[(size_t)rand_r(&seed) % ARRAY_LEN(pieces)]);
		naive((const char *)in.data, in.len, &want);
		while (at < in.len) {
			size_t n = min_size(in.len - at, 1 + (size_t)rand_r(&seed) % 60);

			assert_int_equal(decode_feed(&d, in.data + at, n, &got), 0);
			assert_true(utf8_valid((const char *)got.data, got.len));
			at += n;
		}
		assert_int_equal(decode_end(&d, &got), 0);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, want.len);
	}
}

static void
a_failed_allocation_is_told(void **state)
{
	struct buf out = BUF_INIT;
	struct decoder d = { 0 };

	(void)state;
	mem_fault_arm(0);
	assert_int_equal(decode_feed(&d, "text", 4, &out), E_NOMEM);
	assert_true(mem_fault_hit());
	mem_fault_arm(-1);
	buf_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_bytes_become_replacements_at_any_split),
		cmocka_unit_test(an_incomplete_character_waits),
		cmocka_unit_test(random_bytes_decode_as_the_naive_decoder_does),
		cmocka_unit_test(a_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
