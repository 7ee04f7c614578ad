#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"

static void
formats(int64_t ms, const char *want)
{
	char text[CLOCK_TEXT_SIZE];
	int64_t back = -1;

	clock_format(ms, text);
	assert_string_equal(text, want);
	assert_int_equal(clock_parse(text, &back), 0);
	assert_int_equal(back, ms);
}

static void
times_are_written_in_utc_with_three_digits(void **state)
{
	(void)state;
	formats(0, "1970-01-01T00:00:00.000Z");
	formats(1, "1970-01-01T00:00:00.001Z");
	formats(1769850307042, "2026-01-31T09:05:07.042Z");
	formats(951782400000, "2000-02-29T00:00:00.000Z");
	formats(253402300799999, "9999-12-31T23:59:59.999Z");
}

static void
times_outside_the_years_are_clamped(void **state)
{
	char text[CLOCK_TEXT_SIZE];

	(void)state;
	clock_format(INT64_MIN, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_format(INT64_MAX, text);
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
}

static void
only_the_one_form_is_read(void **state)
{
	static const char *const bad[] = { "", "2026-01-31T09:05:07Z",
		"2026-01-31T09:05:07.42Z", "2026-01-31T09:05:07.042",
		"2026-01-31T09:05:07.042z", "2026-01-31t09:05:07.042Z",
		"2026-01-31 09:05:07.042Z", "2026-02-29T00:00:00.000Z",
		"2026-13-01T00:00:00.000Z", "2026-00-10T00:00:00.000Z",
		"2026-01-00T00:00:00.000Z", "2026-01-31T24:00:00.000Z",
		"2026-01-31T09:60:07.042Z", "2026-01-31T09:05:60.042Z",
		"1969-12-31T23:59:59.999Z", "+026-01-31T09:05:07.042Z",
		"2026-01-31T09:05:07.042Z ", "2026-01-31T09:05:07.042+00:00" };
	int64_t ms = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (clock_parse(bad[i], &ms) != E_INVAL)
			fail_msg("read \"%s\"", bad[i]);
	assert_int_equal(ms, 7);
}

static void
a_test_can_move_both_clocks_apart(void **state)
{
	int64_t wall = clock_wall_ms();
	struct mono_time mono = clock_mono();

	(void)state;
	clock_shift_for_test(3600000, 0);
	assert_true(clock_wall_ms() >= wall + 3600000);
	assert_true(mono_diff_ms(mono, clock_mono()) < 3600000);
	clock_shift_for_test(0, 3600000);
	assert_true(clock_wall_ms() < wall + 3600000);
	assert_true(mono_diff_ms(mono, clock_mono()) >= 3600000);
	clock_shift_for_test(0, 0);
}

static void
monotonic_time_never_goes_back(void **state)
{
	struct mono_time before = clock_mono();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct mono_time now = clock_mono();

		assert_true(mono_diff_us(before, now) >= 0);
		before = now;
	}
	assert_int_equal(mono_diff_ms(before, mono_add_ms(before, 250)), 250);
	assert_int_equal(mono_diff_ms(mono_add_ms(before, 250), before), -250);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_written_in_utc_with_three_digits),
		cmocka_unit_test(times_outside_the_years_are_clamped),
		cmocka_unit_test(only_the_one_form_is_read),
		cmocka_unit_test(a_test_can_move_both_clocks_apart),
		cmocka_unit_test(monotonic_time_never_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
