#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

static void
pieces_of_every_kind_are_appended(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(buf_add_str(&b, "a"), 0);
	assert_int_equal(buf_add_byte(&b, '='), 0);
	assert_int_equal(buf_add_int(&b, INT64_MIN), 0);
	assert_int_equal(buf_add_int(&b, 0), 0);
	assert_int_equal(buf_add_int(&b, INT64_MAX), 0);
	assert_int_equal(buf_printf(&b, "[%s:%d]", "x", 7), 0);
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_string_equal(buf_cstr(&b), "a=-922337203685477580809223372036854775807[x:7]");
	assert_int_equal(b.len, strlen((const char *)b.data));
}

static void
it_grows_over_many_appends(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_add_byte(&b, (uint8_t)i), 0);
	assert_int_equal(b.len, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(b.data[i], (uint8_t)i);
}

static void
the_front_can_be_consumed(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	buf_consume(&b, 0);
	assert_int_equal(buf_add_str(&b, "abcdef"), 0);
	buf_consume(&b, 2);
	assert_string_equal(buf_cstr(&b), "cdef");
	buf_consume(&b, 4);
	assert_int_equal(b.len, 0);
	assert_string_equal(buf_cstr(&b), "");
}

static void
taking_the_text_empties_the_buffer(void **state)
{
	struct buf b = BUF_INIT;
	char *text;

	(void)state;
	assert_int_equal(buf_add_str(&b, "text"), 0);
	text = buf_take_cstr(&b);
	assert_string_equal(text, "text");
	free(text);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	text = buf_take_cstr(&b);
	assert_string_equal(text, "");
	free(text);
}

static void
reset_keeps_the_storage_and_wipe_frees_it(void **state)
{
	struct buf b = BUF_INIT;
	const uint8_t *data;

	(void)state;
	assert_int_equal(buf_add_str(&b, "secret"), 0);
	data = b.data;
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_add_str(&b, "x"), 0);
	assert_ptr_equal(b.data, data);
	buf_wipe(&b);
	assert_null(b.data);
}

static void
a_size_that_no_memory_has_is_refused(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(buf_add_byte(&b, 1), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), E_NOMEM);
	assert_true(b.failed);
	buf_reset(&b);
	assert_int_equal(buf_reserve(&b, SIZE_MAX / 2 + 2), E_NOMEM);
}

static void
after_a_failed_append_nothing_more_is_done(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		char *text;

		mem_fault_arm(n);
		for (int i = 0; i < 100; i++) {
			buf_add_str(&b, "twelve bytes");
			buf_add_int(&b, i);
			buf_printf(&b, "%d", i);
		}
		if (!mem_fault_hit())
			break;
		assert_true(b.failed);
		assert_int_equal(buf_add_byte(&b, 'x'), E_NOMEM);
		assert_null(buf_cstr(&b));
		text = buf_take_cstr(&b);
		assert_null(text);
		assert_false(b.failed);
	}
	mem_fault_arm(-1);
	assert_true(n > 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_every_kind_are_appended),
		cmocka_unit_test(it_grows_over_many_appends),
		cmocka_unit_test(the_front_can_be_consumed),
		cmocka_unit_test(taking_the_text_empties_the_buffer),
		cmocka_unit_test(reset_keeps_the_storage_and_wipe_frees_it),
		cmocka_unit_test(a_size_that_no_memory_has_is_refused),
		cmocka_unit_test(after_a_failed_append_nothing_more_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
