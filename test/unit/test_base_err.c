#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"

static const int numbers[] = {
#define ERR(sym, num, again, text) num,
#include "lib/base/err.def"
#undef ERR
};

static void
every_number_stands_once_and_has_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		assert_true(numbers[i] < 0);
		assert_true(err_known(numbers[i]));
		assert_memory_equal(err_symbol(numbers[i]), "E_", 2);
		assert_true(strlen(err_text(numbers[i])) > 0);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(numbers[i], numbers[j]);
	}
}

static void
numbers_outside_the_table_have_words_too(void **state)
{
	(void)state;
	assert_string_equal(err_text(0), "success");
	assert_string_equal(err_symbol(0), "OK");
	assert_string_equal(err_text(-1), "unknown error");
	assert_string_equal(err_symbol(5), "E_UNKNOWN");
	assert_false(err_known(0));
	assert_false(err_known(-1));
	assert_false(err_retryable(-1));
}

static void
released_numbers_and_repeats_hold(void **state)
{
	(void)state;
	assert_int_equal(E_METHOD, -32601);
	assert_int_equal(E_NOMEM, -1001);
	assert_string_equal(err_symbol(-1200), "E_STORAGE");
	assert_true(err_retryable(E_STORAGE));
	assert_false(err_retryable(E_INVAL));
}

static void
errno_is_translated(void **state)
{
	(void)state;
	assert_int_equal(err_from_errno(0), 0);
	assert_int_equal(err_from_errno(ENOMEM), E_NOMEM);
	assert_int_equal(err_from_errno(ENOENT), E_NOENT);
	assert_int_equal(err_from_errno(EEXIST), E_EXISTS);
	assert_int_equal(err_from_errno(ENOSPC), E_FULL);
	assert_int_equal(err_from_errno(EDQUOT), E_FULL);
	assert_int_equal(err_from_errno(EAGAIN), E_BUSY);
	assert_int_equal(err_from_errno(EPERM), E_SYS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_stands_once_and_has_words),
		cmocka_unit_test(numbers_outside_the_table_have_words_too),
		cmocka_unit_test(released_numbers_and_repeats_hold),
		cmocka_unit_test(errno_is_translated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
