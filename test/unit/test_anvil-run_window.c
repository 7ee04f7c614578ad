/*
 * test/unit/test_anvil-run_window.c -- what a subscriber may have that it has not acknowledged.
 */
#include "cmd/anvil-run/window.h"
#include "lib/base/base.h"
#include "test/support/unit.h"

static void
a_fresh_window_has_room_for_all_of_it(void **state)
{
	const struct window w = { 0 };

	(void)state;
	assert_int_equal(window_room(&w), WINDOW_BYTES);
}

static void
what_is_sent_takes_room_until_its_last_line_is_acknowledged(void **state)
{
	struct window w = { 0 };

	(void)state;
	window_add(&w, 10, 1000);
	window_add(&w, 20, 500);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 1500);
	window_ack(&w, 9);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 1500);
	window_ack(&w, 10);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 500);
	window_ack(&w, 10);
	window_ack(&w, 3);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 500);
	window_ack(&w, 1000000);
	assert_int_equal(window_room(&w), WINDOW_BYTES);
}

static void
a_full_window_has_no_room(void **state)
{
	struct window w = { 0 };

	(void)state;
	window_add(&w, 1, WINDOW_BYTES - 1);
	assert_int_equal(window_room(&w), 1);
	window_add(&w, 2, 100000);
	assert_int_equal(window_room(&w), 0);
	window_ack(&w, 2);
	assert_int_equal(window_room(&w), WINDOW_BYTES);
}

static void
many_small_messages_are_counted_to_the_byte(void **state)
{
	struct window w = { 0 };

	(void)state;
	for (int64_t seq = 1; seq <= 1000; seq++)
		window_add(&w, seq, 7);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 7000);
	/* Those that count as one go together, never too early. */
	window_ack(&w, WINDOW_MARKS - 1);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 7 * (1000 - (WINDOW_MARKS - 1)));
	window_ack(&w, 999);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 7 * (1000 - (WINDOW_MARKS - 1)));
	window_ack(&w, 1000);
	assert_int_equal(window_room(&w), WINDOW_BYTES);
}

static void
the_ring_goes_round(void **state)
{
	struct window w = { 0 };

	(void)state;
	for (int64_t seq = 1; seq <= 10 * WINDOW_MARKS; seq++) {
		window_add(&w, seq, (size_t)seq);
		if (seq > 5)
			window_ack(&w, seq - 5);
	}
	window_ack(&w, 10 * WINDOW_MARKS - 1);
	assert_int_equal(window_room(&w), WINDOW_BYTES - 10 * WINDOW_MARKS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_window_has_room_for_all_of_it),
		cmocka_unit_test(what_is_sent_takes_room_until_its_last_line_is_acknowledged),
		cmocka_unit_test(a_full_window_has_no_room),
		cmocka_unit_test(many_small_messages_are_counted_to_the_byte),
		cmocka_unit_test(the_ring_goes_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
