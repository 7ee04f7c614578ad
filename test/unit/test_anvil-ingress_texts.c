/*
 * test/unit/test_anvil-ingress_texts.c -- what clients write in headers and queries: session ids,
 * cursors, numbers, flags.
 */
#include <string.h>

#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/cursor.h"
#include "cmd/anvil-ingress/query.h"
#include "lib/base/err.h"
#include "test/support/unit.h"

static void
a_session_id_is_what_follows_bearer_without_white_space(void **state)
{
	static const char *const good[] = { "Bearer abc", "bearer abc", "BEARER  abc",
		"Bearer\tabc \t", "bEaReR abc\t" };
	static const char *const bad[] = { "", "Bearer", "Bearer ", "Bearer \t ", "Bearerabc",
		"Basic abc", "Token Bearer abc", " Bearer abc", "Bearer:abc" };
	char out[AUTH_BEARER_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(auth_bearer(good[i], out), 0);
		assert_string_equal(out, "abc");
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(auth_bearer(bad[i], out), E_NOENT);
}

static void
a_session_id_that_is_too_long_is_none(void **state)
{
	char header[8 + AUTH_BEARER_MAX] = "Bearer ", out[AUTH_BEARER_MAX];

	(void)state;
	memset(header + 7, 'x', AUTH_BEARER_MAX);
	assert_int_equal(auth_bearer(header, out), E_RANGE);
	header[7 + AUTH_BEARER_MAX - 1] = '\0';
	assert_int_equal(auth_bearer(header, out), 0);
	assert_int_equal(strlen(out), AUTH_BEARER_MAX - 1);
}

static void
a_cursor_comes_back_as_it_was_made(void **state)
{
	static const int64_t times[] = { 0, 1, 1700000000000, INT64_MAX };
	const char *run = "run_0123456789abcdefghijAB";
	char text[CURSOR_SIZE], id[ID_SIZE];
	int64_t at;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		cursor_format(times[i], run, text);
		assert_true(strlen(text) <= 128);
		assert_int_equal(cursor_parse(text, &at, id), 0);
		assert_int_equal(at, times[i]);
		assert_string_equal(id, run);
	}
}

static void
a_cursor_that_was_not_made_here_is_refused(void **state)
{
	static const char *const bad[] = { "", "a", "no!", "AAAA", "=", "====" };
	char text[CURSOR_SIZE], cut[CURSOR_SIZE], id[ID_SIZE];
	int64_t at;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(cursor_parse(bad[i], &at, id), E_INVAL);
	cursor_format(1700000000000, "run_0123456789abcdefghijAB", text);
	for (size_t n = 0; n < strlen(text); n++) {
		memcpy(cut, text, n);
		cut[n] = '\0';
		assert_int_equal(cursor_parse(cut, &at, id), E_INVAL);
	}
	cursor_format(1700000000000, "prj_0123456789abcdefghijAB", text);
	assert_int_equal(cursor_parse(text, &at, id), E_INVAL);
	cursor_format(-1, "run_0123456789abcdefghijAB", text);
	assert_int_equal(cursor_parse(text, &at, id), E_INVAL);
}

static void
a_number_is_digits_within_its_bounds(void **state)
{
	static const char *const bad[] = { "", "0", "101", "01", "+1", "-1", "1.0", " 1", "1 ",
		"1e1", "0x1", "9999999999999999999", "1000000000000000000000000000000", "a" };
	int64_t v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(query_number(bad[i], 1, 100, &v), E_INVAL);
	assert_int_equal(v, 7);
	assert_int_equal(query_number("1", 1, 100, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(query_number("100", 1, 100, &v), 0);
	assert_int_equal(v, 100);
	assert_int_equal(query_number("0", 0, 5, &v), 0);
	assert_int_equal(v, 0);
}

static void
a_flag_is_0_or_1(void **state)
{
	static const char *const bad[] = { "", "2", "true", "00", "01", " 1" };
	int v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(query_flag(bad[i], &v), E_INVAL);
	assert_int_equal(query_flag("1", &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(query_flag("0", &v), 0);
	assert_int_equal(v, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_id_is_what_follows_bearer_without_white_space),
		cmocka_unit_test(a_session_id_that_is_too_long_is_none),
		cmocka_unit_test(a_cursor_comes_back_as_it_was_made),
		cmocka_unit_test(a_cursor_that_was_not_made_here_is_refused),
		cmocka_unit_test(a_number_is_digits_within_its_bounds),
		cmocka_unit_test(a_flag_is_0_or_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
