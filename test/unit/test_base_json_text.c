#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"

static void
writes(const char *in, size_t n, const char *want)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	assert_int_equal(json_text_string(&b, in, n), 0);
	assert_string_equal(buf_cstr(&b), want);
}

static void
text_is_quoted_and_escaped(void **state)
{
	(void)state;
	writes("", 0, "\"\"");
	writes("plain", 5, "\"plain\"");
	writes("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
	writes("\n\r\t\b\f", 5, "\"\\n\\r\\t\\b\\f\"");
	writes("\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"");
	writes("\xc3\xbc\xf0\x9f\x98\x80", 6, "\"\xc3\xbc\xf0\x9f\x98\x80\"");
}

static void
bytes_that_are_no_text_become_replacements(void **state)
{
	(void)state;
	writes("a\xff"
	       "b",
	    3,
	    "\"a\xef\xbf\xbd"
	    "b\"");
	writes("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	writes("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	writes("\xc3\n", 2, "\"\xef\xbf\xbd\\n\"");
}

/* Plain text goes by in pieces of eight bytes: each byte is tried at every place of one. */
static void
every_byte_is_seen_wherever_it_stands(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		CLEANUP(buf_done) struct buf alone = BUF_INIT;
		char byte = (char)c;

		assert_int_equal(json_text_string(&alone, &byte, 1), 0);
		for (size_t at = 0; at < 24; at++) {
			CLEANUP(buf_done) struct buf want = BUF_INIT, got = BUF_INIT;
			char text[24];

			memset(text, '~', sizeof(text));
			text[at] = byte;
			buf_add_byte(&want, '"');
			for (size_t i = 0; i < sizeof(text); i++)
				if (i == at)
					buf_add(&want, alone.data + 1, alone.len - 2);
				else
					buf_add_byte(&want, '~');
			buf_add_byte(&want, '"');
			assert_int_equal(json_text_string(&got, text, sizeof(text)), 0);
			assert_string_equal(buf_cstr(&got), buf_cstr(&want));
		}
	}
}

static void
every_failed_allocation_is_told(void **state)
{
	static const char text[] = "\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04\x05\x06\x07"
				   "\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04\x05\x06\x07";
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		int r;

		mem_fault_arm(n);
		r = json_text_string(&b, text, strlen(text));
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_quoted_and_escaped),
		cmocka_unit_test(bytes_that_are_no_text_become_replacements),
		cmocka_unit_test(every_byte_is_seen_wherever_it_stands),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
