/*
 * test/unit/test_anvil-ingress_limiter.c -- windows of 60 s, a key each.
 */
#include <stdio.h>

#include "cmd/anvil-ingress/limiter.h"
#include "lib/base/err.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static const struct mono_time start = { 1000000 };

static struct mono_time
at(int64_t ms)
{
	return mono_add_ms(start, ms);
}

static void
so_many_attempts_pass_and_the_next_does_not(void **state)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(10, 100);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(limiter_try(l, "a", at(i)), 1);
	assert_int_equal(limiter_just_full(l, "a"), 0);
	assert_int_equal(limiter_try(l, "a", at(10)), 0);
	assert_int_equal(limiter_just_full(l, "a"), 1);
	assert_int_equal(limiter_try(l, "b", at(10)), 1); /* others are not affected */
	for (int i = 11; i < 20; i++) {
		assert_int_equal(limiter_try(l, "a", at(i)), 0);
		assert_int_equal(limiter_just_full(l, "a"), 0); /* told once in a window */
	}
	assert_int_equal(limiter_try(l, "a", at(59999)), 0);
}

static void
a_window_begins_with_the_first_attempt_and_not_with_refused_ones(void **state)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(1, 100);

	(void)state;
	assert_int_equal(limiter_try(l, "a", at(0)), 1);
	assert_int_equal(limiter_try(l, "a", at(30000)), 0);
	assert_int_equal(limiter_try(l, "a", at(59999)), 0);
	assert_int_equal(limiter_try(l, "a", at(60000)), 1);
	assert_int_equal(limiter_try(l, "a", at(119999)), 0);
	assert_int_equal(limiter_try(l, "a", at(120000)), 1);
}

static void
without_a_limit_nothing_is_counted(void **state)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(0, 100);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(limiter_try(l, "a", at(0)), 1);
	assert_int_equal(limiter_nkeys(l), 0);
}

static void
windows_that_are_over_are_forgotten(void **state)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(1, 1000);
	char key[16];

	(void)state;
	for (int i = 0; i < 500; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(limiter_try(l, key, at(i)), 1);
	}
	assert_int_equal(limiter_nkeys(l), 500);
	assert_int_equal(limiter_try(l, "new", at(60000 + 249)), 1);
	assert_int_equal(limiter_nkeys(l), 251);
}

static void
when_there_are_too_many_keys_the_oldest_window_goes(void **state)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(1, 3);

	(void)state;
	assert_int_equal(limiter_try(l, "a", at(0)), 1);
	assert_int_equal(limiter_try(l, "b", at(1)), 1);
	assert_int_equal(limiter_try(l, "c", at(2)), 1);
	assert_int_equal(limiter_try(l, "d", at(3)), 1);
	assert_int_equal(limiter_nkeys(l), 3);
	assert_int_equal(limiter_try(l, "b", at(4)), 0);
	assert_int_equal(limiter_try(l, "a", at(5)), 1);
}

static int
try_some(void *arg)
{
	CLEANUP(limiter_freep) struct limiter *l = limiter_new(2, 10);
	int r;

	(void)arg;
	if (l == NULL)
		return E_NOMEM;
	for (int i = 0; i < 4; i++) {
		r = limiter_try(l, i % 2 == 0 ? "a" : "b", at(i));
		if (r < 0)
			return r;
		assert_int_equal(r, 1);
	}
	return 0;
}

static void
it_survives_every_failed_allocation(void **state)
{
	(void)state;
	assert_true(starve(try_some, NULL) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_attempts_pass_and_the_next_does_not),
		cmocka_unit_test(
		    a_window_begins_with_the_first_attempt_and_not_with_refused_ones),
		cmocka_unit_test(without_a_limit_nothing_is_counted),
		cmocka_unit_test(windows_that_are_over_are_forgotten),
		cmocka_unit_test(when_there_are_too_many_keys_the_oldest_window_goes),
		cmocka_unit_test(it_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
