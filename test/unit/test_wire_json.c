/* test/unit/test_wire_json.c -- JSON texts: what is taken, what is refused and as what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/json.h"

#define DEPTH 64

static int
parse(const char *text, size_t n, json_t **ret)
{
	*ret = NULL;
	return json_text_parse(text, n, DEPTH, ret);
}

static void
assert_refused(const char *text, size_t n, int wanted)
{
	char why[128] = "";
	json_t *j;
	int r = parse(text, n, &j);

	if (r != wanted)
		print_message("%.*s: %s\n", (int)n, text, err_symbol(r));
	assert_int_equal(r, wanted);
	assert_null(j);
	json_text_why(text, n, DEPTH, why, sizeof(why));
	assert_string_not_equal(why, "");
}

static void
whatever_is_not_one_json_value_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"}",
		"[1,]",
		"{\"a\":1,}",
		"{a:1}",
		"{'a':1}",
		"01",
		"+1",
		".5",
		"1.",
		"0x10",
		"NaN",
		"Infinity",
		"nul",
		"True",
		"{} {}",
		"{}x",
		"[1] 2",
		"\xef\xbb\xbf{}",
		"\"\xff\"",
		"\"\xc0\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\\ud800\"",
		"\"\\udc00x\"",
		"\"\\x41\"",
		"\"a\nb\"",
		"\"open",
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"\\u0061\":2}",
		"{\"a\\u0000b\":1}",
		"9223372036854775808",
		"-9223372036854775809",
		"1e999",
		"// c\n1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_refused(bad[i], strlen(bad[i]), E_PARSE);
	assert_refused("{}\0", 3, E_PARSE);
	assert_refused("\0", 1, E_PARSE);
}

static void
every_kind_of_value_is_taken_and_printed_again(void **state)
{
	static const char *const good[] = { "null", "true", "false", "0", "-1",
		"9223372036854775807", "-9223372036854775808", "\"\"", "\"a\\u0000b\"",
		"\"\\\"\\\\\"", "\"\xf0\x9f\x98\x80\"", "[]", "{}",
		"[1,[2,{\"a\":null}],\"x\"]", "{\"b\":1,\"a\":{\"c\":[]}}", "1.5" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		char why[64] = "x";
		json_t *j;

		assert_int_equal(parse(good[i], strlen(good[i]), &j), 0);
		assert_int_equal(json_text_dump(&out, j), 0);
		assert_string_equal(buf_cstr(&out), good[i]);
		json_text_why(good[i], strlen(good[i]), DEPTH, why, sizeof(why));
		assert_string_equal(why, "");
		json_decref(j);
	}
}

static void
white_space_around_the_value_is_no_matter(void **state)
{
	json_t *j;

	(void)state;
	assert_int_equal(parse(" \t\r\n[ 1 , 2 ]\n", 14, &j), 0);
	assert_int_equal(json_array_size(j), 2);
	json_decref(j);
}

static void
nesting_is_counted_outside_strings_only(void **state)
{
	char text[2 * DEPTH + 8];
	json_t *j;

	(void)state;
	memset(text, '[', DEPTH + 1);
	memset(text + DEPTH + 1, ']', DEPTH + 1);
	assert_int_equal(parse(text + 1, 2 * DEPTH, &j), 0);
	json_decref(j);
	assert_refused(text, 2 * DEPTH + 2, E_DEEP);
	/* The brackets come before the rest is looked at. */
	assert_refused(text, DEPTH + 1, E_DEEP);

	memset(text, '[', sizeof(text));
	text[0] = '"';
	text[sizeof(text) - 1] = '"';
	assert_int_equal(parse(text, sizeof(text), &j), 0);
	json_decref(j);
	memcpy(text + 1, "\\\"", 2);
	assert_int_equal(parse(text, sizeof(text), &j), 0);
	json_decref(j);
	assert_int_equal(json_text_parse("[[]]", 4, 1, &j), E_DEEP);
	assert_int_equal(json_text_parse("1", 1, 0, &j), 0);
	json_decref(j);
	assert_int_equal(json_text_parse("\"\\", 2, 1, &j), E_PARSE);
}

static void
a_missing_value_is_printed_as_null(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(json_text_dump(&out, NULL), 0);
	assert_string_equal(buf_cstr(&out), "null");
}

static void
every_failed_allocation_is_told(void **state)
{
	static const char text[] = "{\"a\":[1,2.5,\"three\",{\"b\":\"four\"}],\"c\":null}";
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		json_t *j = NULL;
		int r;

		mem_fault_arm(n);
		r = json_text_parse(text, strlen(text), DEPTH, &j);
		if (r == 0)
			r = json_text_dump(&out, j);
		json_decref(j);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_is_not_one_json_value_is_refused),
		cmocka_unit_test(every_kind_of_value_is_taken_and_printed_again),
		cmocka_unit_test(white_space_around_the_value_is_no_matter),
		cmocka_unit_test(nesting_is_counted_outside_strings_only),
		cmocka_unit_test(a_missing_value_is_printed_as_null),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	json_text_use_mem();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
