#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"

static void
hex_goes_out_lower_and_comes_in_any_case(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x0f, 0xa5, 0xff };
	char text[9];
	uint8_t back[4] = { 1, 1, 1, 1 };

	(void)state;
	hex_encode(bytes, 4, text);
	assert_string_equal(text, "000fa5ff");
	assert_int_equal(hex_decode("000FA5fF", 8, back, 4), 0);
	assert_memory_equal(back, bytes, 4);
	assert_int_equal(hex_decode("", 0, back, 0), 0);
	assert_int_equal(hex_decode("000fa5f", 7, back, 4), E_INVAL);
	assert_int_equal(hex_decode("000fa5fff", 9, back, 4), E_INVAL);
	assert_int_equal(hex_decode("000fa5", 6, back, 4), E_INVAL);
	assert_int_equal(hex_decode("000fa5fg", 8, back, 4), E_INVAL);
	assert_int_equal(hex_decode("0 0fa5ff", 8, back, 4), E_INVAL);
	assert_int_equal(hex_value('9'), 9);
	assert_int_equal(hex_value('f'), 15);
	assert_int_equal(hex_value('A'), 10);
	for (const char *p = "/:@G`g\xe1"; *p != '\0'; p++)
		assert_int_equal(hex_value(*p), -1);
}

static void
lower_hex_is_told_from_other_text(void **state)
{
	(void)state;
	assert_true(hex_is_lower("09af", 4));
	assert_false(hex_is_lower("09aF", 4));
	assert_false(hex_is_lower("09a", 4));
	assert_false(hex_is_lower("09af0", 4));
	assert_false(hex_is_lower("09ag", 4));
	assert_true(hex_is_lower("", 0));
}

static void
the_test_vectors_of_rfc_4648_hold(void **state)
{
	static const char *const std[] = { "", "Zg==", "Zm8=", "Zm9v",
		"Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	static const char *const url[] = { "", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE",
		"Zm9vYmFy" };
	char text[16];

	(void)state;
	for (size_t n = 0; n < ARRAY_LEN(std); n++) {
		char back[8];
		size_t back_n = 99;

		base64_encode("foobar", n, text);
		assert_string_equal(text, std[n]);
		base64url_encode("foobar", n, text);
		assert_string_equal(text, url[n]);
		assert_true(strlen(text) < base64url_size(n));
		assert_int_equal(base64url_decode(text, strlen(text), back, 8, &back_n), 0);
		assert_int_equal(back_n, n);
		assert_memory_equal(back, "foobar", n);
	}
	base64url_encode("\xfb\xff\xbf", 3, text);
	assert_string_equal(text, "-_-_");
	base64_encode("\xfb\xff\xbf", 3, text);
	assert_string_equal(text, "+/+/");
}

static void
all_lengths_come_back(void **state)
{
	uint8_t bytes[100], back[100];
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 200);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		size_t back_n = 0;

		base64url_encode(bytes, n, text);
		assert_int_equal(strlen(text) + 1, base64url_size(n));
		assert_int_equal(
		    base64url_decode(text, strlen(text), back, sizeof(back), &back_n), 0);
		assert_int_equal(back_n, n);
		assert_memory_equal(back, bytes, n);
	}
}

static void
decoding_is_strict(void **state)
{
	static const char *const bad[] = { "A", "Zg==", "Zg=", "Zm8=", "Zm9vA", "Z", "Zh",
		"Zm9", "ab+/", "a b ", "Zm\n8", "\xc3\xbc" };
	char back[8];
	size_t n = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    base64url_decode(bad[i], strlen(bad[i]), back, 8, &n), E_INVAL);
	assert_int_equal(base64url_decode("Zm\0v", 4, back, 8, &n), E_INVAL);
	assert_int_equal(base64url_decode("Zm9vYmFy", 8, back, 5, &n), E_RANGE);
	assert_int_equal(n, 77);
	assert_int_equal(base64url_decode("Zm9vYmFy", 8, back, 6, &n), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_goes_out_lower_and_comes_in_any_case),
		cmocka_unit_test(lower_hex_is_told_from_other_text),
		cmocka_unit_test(the_test_vectors_of_rfc_4648_hold),
		cmocka_unit_test(all_lengths_come_back),
		cmocka_unit_test(decoding_is_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
