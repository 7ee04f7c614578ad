/*
 * test/unit/test_anvilctl_text.c -- times, sizes and tables as people read them.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/table.h"
#include "cmd/anvilctl/text.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

static void
durations_change_their_units_at_the_edges(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{ -5, "0ms" },
		{ 0, "0ms" },
		{ 999, "999ms" },
		{ 1000, "1.0s" },
		{ 12345, "12.3s" },
		{ 59999, "59.9s" },
		{ 60000, "1m00s" },
		{ 245000, "4m05s" },
		{ 3599999, "59m59s" },
		{ 3600000, "1h00m" },
		{ 86399999, "23h59m" },
		{ 86400000, "1d0h" },
		{ 12 * 86400000LL + 4 * 3600000LL, "12d4h" },
	};
	char out[TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		text_duration(rows[i].ms, out);
		assert_string_equal(out, rows[i].text);
	}
	text_duration(INT64_MAX, out);
	assert_true(strlen(out) < TEXT_SIZE);
}

static void
sizes_never_show_a_thousand_and_twenty_four(void **state)
{
	static const struct {
		int64_t n;
		const char *text;
	} rows[] = {
		{ -1, "0 B" },
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 1048575, "1.0 MiB" },
		{ 1048576, "1.0 MiB" },
		{ 5LL << 30, "5.0 GiB" },
		{ INT64_MAX, "8.0 EiB" },
	};
	char out[TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		text_bytes(rows[i].n, out);
		assert_string_equal(out, rows[i].text);
	}
}

static void
a_time_is_utc_to_the_second(void **state)
{
	char out[TEXT_SIZE];

	(void)state;
	text_time(0, out);
	assert_string_equal(out, "1970-01-01 00:00:00");
	text_time(1769850307042, out);
	assert_string_equal(out, "2026-01-31 09:05:07");
}

static void
states_have_tones_and_plain_output_has_none(void **state)
{
	(void)state;
	assert_int_equal(text_tone("passed"), TONE_GOOD);
	assert_int_equal(text_tone("failing"), TONE_BAD);
	assert_int_equal(text_tone("some word"), TONE_PLAIN);
	assert_string_equal(text_tone_begin(TONE_BAD, 0), "");
	assert_string_equal(text_tone_end(TONE_BAD, 0), "");
	assert_string_equal(text_tone_begin(TONE_PLAIN, 1), "");
	assert_string_equal(text_tone_end(TONE_PLAIN, 1), "");
	assert_string_equal(text_tone_begin(TONE_GOOD, 1), "\033[32m");
}

static void
names_cannot_steer_the_terminal(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(text_add_clean(&b,
			     "a\033[2Jb\nc\xc2\x9b"
			     "d\xff\xc3\xa4"),
	    0);
	assert_string_equal(buf_cstr(&b), "a [2Jb c d\xef\xbf\xbd\xc3\xa4");
}

static const char *const heads[] = { "NAME", ">N", "WHAT" };

static void
columns_are_aligned_by_characters(void **state)
{
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	assert_non_null(t);
	table_add(t, TONE_PLAIN, "%s", "\xc3\xa4\xc3\xb6\xc3\xbc");
	table_add(t, TONE_PLAIN, "%d", 7);
	table_add(t, TONE_PLAIN, "%s", "");
	table_add(t, TONE_PLAIN, "a longer one");
	table_add(t, TONE_PLAIN, "1234");
	table_add_duration(t, -1);
	assert_int_equal(table_nrows(t), 2);
	assert_int_equal(table_render(t, 0, &b), 0);
	assert_string_equal(buf_cstr(&b),
	    "NAME             N  WHAT\n"
	    "\xc3\xa4\xc3\xb6\xc3\xbc              7\n"
	    "a longer one  1234  -\n");
}

static void
colours_do_not_move_columns(void **state)
{
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	table_add_word(t, "up");
	table_add(t, TONE_PLAIN, "1");
	table_add(t, TONE_PLAIN, "x");
	assert_int_equal(table_render(t, 1, &b), 0);
	assert_non_null(strstr(buf_cstr(&b), "\033[32mup\033[0m    1  x\n"));
}

static void
a_table_without_rows_prints_nothing(void **state)
{
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(table_render(t, 0, &b), 0);
	assert_int_equal(b.len, 0);
}

static void
every_failed_allocation_makes_the_table_void(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		struct table *t;
		int hit, r = E_NOMEM;

		mem_fault_arm(n);
		t = table_new(heads, ARRAY_LEN(heads));
		for (int i = 0; t != NULL && i < 90; i++)
			table_add(t, TONE_PLAIN, "%d", i);
		if (t != NULL)
			r = table_render(t, 0, &b);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		(void)table_free(t);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		if (!hit)
			break;
	}
	assert_true(n > 90);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_change_their_units_at_the_edges),
		cmocka_unit_test(sizes_never_show_a_thousand_and_twenty_four),
		cmocka_unit_test(a_time_is_utc_to_the_second),
		cmocka_unit_test(states_have_tones_and_plain_output_has_none),
		cmocka_unit_test(names_cannot_steer_the_terminal),
		cmocka_unit_test(columns_are_aligned_by_characters),
		cmocka_unit_test(colours_do_not_move_columns),
		cmocka_unit_test(a_table_without_rows_prints_nothing),
		cmocka_unit_test(every_failed_allocation_makes_the_table_void),
	};

	return cmocka_run_group_tests_name("anvilctl text", tests, NULL, NULL);
}
