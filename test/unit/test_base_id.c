#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"

static int64_t
digit_of(char c)
{
	static const char base62[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	return strchr(base62, c) - base62;
}

/* The UUID that an id spells. */
static unsigned __int128
number_of(const char *digits)
{
	unsigned __int128 v = 0;

	for (; *digits != '\0'; digits++)
		v = v * 62 + (unsigned)digit_of(*digits);
	return v;
}

static void
an_id_is_a_uuid_of_version_7_in_base_62(void **state)
{
	char id[ID_SIZE];
	int64_t before = clock_wall_ms();
	unsigned __int128 v;

	(void)state;
	id_make(ID_RUN, id);
	assert_int_equal(strlen(id), 26);
	assert_memory_equal(id, "run_", 4);
	v = number_of(id + 4);
	assert_int_equal((uint64_t)(v >> 76) & 15, 7);
	assert_int_equal((uint64_t)(v >> 62) & 3, 2);
	assert_true((int64_t)(v >> 80) >= before);
	assert_true((int64_t)(v >> 80) <= clock_wall_ms() + 1000);
}

static void
ids_of_one_process_ascend(void **state)
{
	char a[ID_SIZE], b[ID_SIZE];

	(void)state;
	id_make(ID_PROJECT, a);
	for (int i = 0; i < 20000; i++) {
		id_make(ID_PROJECT, b);
		assert_true(strcmp(a, b) < 0);
		memcpy(a, b, sizeof(a));
	}
}

static void
ids_ascend_when_the_wall_clock_goes_back(void **state)
{
	char a[ID_SIZE], b[ID_SIZE];

	(void)state;
	id_make(ID_USER, a);
	clock_shift_for_test(-60000, 0);
	id_make(ID_USER, b);
	clock_shift_for_test(0, 0);
	assert_true(strcmp(a, b) < 0);
}

static void
only_the_shape_of_an_id_is_checked(void **state)
{
	(void)state;
	assert_true(id_check(ID_RUN, "run_0123456789ABCDEFGHIJzz"));
	assert_true(id_check(ID_RUN, "run_zzzzzzzzzzzzzzzzzzzzzz"));
	assert_false(id_check(ID_RUN, ""));
	assert_false(id_check(ID_RUN, "run_"));
	assert_false(id_check(ID_RUN, "prj_0123456789ABCDEFGHIJzz"));
	assert_false(id_check(ID_RUN, "RUN_0123456789ABCDEFGHIJzz"));
	assert_false(id_check(ID_RUN, "run_0123456789ABCDEFGHIJz"));
	assert_false(id_check(ID_RUN, "run_0123456789ABCDEFGHIJzzz"));
	assert_false(id_check(ID_RUN, "run_0123456789ABCDEFGHI-zz"));
	assert_false(id_check(ID_RUN, "run_0123456789ABCDEFGHIJz\n"));
}

static void
lease_ids_are_32_hexadecimal_digits(void **state)
{
	char a[ID_HEX32_SIZE], b[ID_HEX32_SIZE];

	(void)state;
	id_hex32(a);
	id_hex32(b);
	assert_true(id_hex32_check(a));
	assert_string_not_equal(a, b);
	assert_false(id_hex32_check("0123456789abcdef0123456789abcde"));
	assert_false(id_hex32_check("0123456789abcdef0123456789abcdefa"));
	assert_false(id_hex32_check("0123456789ABCDEF0123456789abcdef"));
	assert_false(id_hex32_check(""));
}

static void
request_ids_have_22_characters(void **state)
{
	char id[ID_DIGITS + 1], with_prefix[ID_SIZE] = "run_";

	(void)state;
	id_request(id);
	memcpy(with_prefix + 4, id, sizeof(id));
	assert_true(id_check(ID_RUN, with_prefix));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_a_uuid_of_version_7_in_base_62),
		cmocka_unit_test(ids_of_one_process_ascend),
		cmocka_unit_test(ids_ascend_when_the_wall_clock_goes_back),
		cmocka_unit_test(only_the_shape_of_an_id_is_checked),
		cmocka_unit_test(lease_ids_are_32_hexadecimal_digits),
		cmocka_unit_test(request_ids_have_22_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
