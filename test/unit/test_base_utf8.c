#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/utf8.h"

/* An encoder that knows nothing of the code under test. */
static size_t
encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 63));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 63));
		out[2] = (char)(0x80 | (cp & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 63));
	out[2] = (char)(0x80 | (cp >> 6 & 63));
	out[3] = (char)(0x80 | (cp & 63));
	return 4;
}

static void
every_code_point_but_surrogates_is_valid(void **state)
{
	(void)state;
	for (uint32_t cp = 0; cp < 0x120000; cp++) {
		int good = cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);
		char text[4];
		uint8_t ours[4];
		size_t n = encode(cp, text);
		uint32_t back = 0;

		assert_int_equal(utf8_len(text, n), good ? n : 0);
		if (!good)
			continue;
		assert_int_equal(utf8_decode(text, n, &back), n);
		assert_int_equal(back, cp);
		assert_int_equal(utf8_encode(cp, ours), n);
		assert_memory_equal(ours, text, n);
		for (size_t cut = 1; cut < n; cut++) {
			assert_int_equal(utf8_len(text, cut), 0);
			assert_true(utf8_is_partial(text, cut));
		}
		assert_false(utf8_is_partial(text, n));
	}
}

static void
other_bytes_are_refused(void **state)
{
	static const char *const bad[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf",
		"\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3(",
		"\xe2\x82(", "\xf0\x9f\x98(", "\xe2(\xa1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(utf8_len(bad[i], strlen(bad[i])), 0);
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
		assert_false(utf8_is_partial(bad[i], strlen(bad[i])));
	}
	assert_int_equal(utf8_len("", 0), 0);
	assert_false(utf8_is_partial("", 0));
	assert_true(utf8_valid("", 0));
	assert_true(utf8_valid("a\0b", 3));
}

static void
what_cannot_be_completed_is_no_beginning(void **state)
{
	(void)state;
	assert_true(utf8_is_partial("\xe0\xa0", 2));
	assert_false(utf8_is_partial("\xe0\x9f", 2));
	assert_false(utf8_is_partial("\xed\xa0", 2));
	assert_false(utf8_is_partial("\xf4\x90", 2));
	assert_true(utf8_is_partial("\xf4\x8f", 2));
}

static void
characters_are_counted_and_never_cut(void **state)
{
	static const char text[] =
	    "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"; /* 1, 2, 3, 4 bytes */
	static const size_t cuts[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10 };

	(void)state;
	assert_int_equal(utf8_count(text, 10), 4);
	for (size_t max = 0; max < ARRAY_LEN(cuts); max++)
		assert_int_equal(utf8_cut(text, 10, max), cuts[max]);
}

static void
controls_and_spaces_are_those_of_unicode(void **state)
{
	(void)state;
	assert_true(utf8_has_control("a\x1f", 2));
	assert_true(utf8_has_control("\x7f", 1));
	assert_true(utf8_has_control("\xc2\x80", 2));
	assert_true(utf8_has_control("a\xc2\x9f", 3));
	assert_true(utf8_has_control("\0", 1));
	assert_false(utf8_has_control("\xc2\xa0 ~", 4));
	assert_false(utf8_has_control("\xc3\x80", 2));
	assert_false(utf8_has_control("", 0));
	assert_true(utf8_is_space(' '));
	assert_true(utf8_is_space('\t'));
	assert_true(utf8_is_space(0xa0));
	assert_true(utf8_is_space(0x2003));
	assert_true(utf8_is_space(0x3000));
	assert_false(utf8_is_space('a'));
	assert_false(utf8_is_space(0x200b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_but_surrogates_is_valid),
		cmocka_unit_test(other_bytes_are_refused),
		cmocka_unit_test(what_cannot_be_completed_is_no_beginning),
		cmocka_unit_test(characters_are_counted_and_never_cut),
		cmocka_unit_test(controls_and_spaces_are_those_of_unicode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
