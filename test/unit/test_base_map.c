#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#define MANY 2000

static int values[MANY];

static const char *
key_of(int i)
{
	static char key[32];

	(void)snprintf(key, sizeof(key), "key-%d", i);
	return key;
}

static void
what_is_set_is_found(void **state)
{
	CLEANUP(map_freep) struct map *m = map_new();

	(void)state;
	assert_null(map_get(m, "a"));
	assert_null(map_remove(m, "a"));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(map_set(m, key_of(i), &values[i]), 0);
	assert_int_equal(map_count(m), MANY);
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(m, key_of(i)), &values[i]);
	assert_null(map_get(m, "key-"));
	assert_int_equal(map_set(m, "", &values[0]), 0);
	assert_ptr_equal(map_get(m, ""), &values[0]);
}

static void
a_second_value_replaces_the_first(void **state)
{
	CLEANUP(map_freep) struct map *m = map_new();

	(void)state;
	assert_int_equal(map_set(m, "k", &values[0]), 0);
	assert_int_equal(map_set(m, "k", &values[1]), 0);
	assert_int_equal(map_count(m), 1);
	assert_ptr_equal(map_get(m, "k"), &values[1]);
}

static void
removed_entries_do_not_hide_others(void **state)
{
	CLEANUP(map_freep) struct map *m = map_new();

	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(map_set(m, key_of(i), &values[i]), 0);
	for (int i = 0; i < MANY; i += 2)
		assert_ptr_equal(map_remove(m, key_of(i)), &values[i]);
	assert_int_equal(map_count(m), MANY / 2);
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(m, key_of(i)), i % 2 == 0 ? NULL : &values[i]);
	assert_null(map_remove(m, key_of(0)));
}

static void
coming_and_going_for_ever_stays_small(void **state)
{
	CLEANUP(map_freep) struct map *m = map_new();
	void *value;
	size_t at = 0, seen = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(map_set(m, key_of(i), &values[0]), 0);
		if (i >= 8)
			assert_ptr_equal(map_remove(m, key_of(i - 8)), &values[0]);
	}
	assert_int_equal(map_count(m), 8);
	while (map_next(m, &at, NULL, &value))
		seen++;
	assert_int_equal(seen, 8);
	assert_true(at <= 64);
}

static void
a_walk_meets_each_entry_once_and_may_remove_it(void **state)
{
	CLEANUP(map_freep) struct map *m = map_new();
	int met[100] = { 0 };
	const char *key;
	void *value;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(map_set(m, key_of(i), &values[i]), 0);
	for (size_t at = 0; map_next(m, &at, &key, &value);) {
		int i = (int)((int *)value - values);

		met[i]++;
		assert_string_equal(key, key_of(i));
		assert_ptr_equal(map_remove(m, key_of(i)), value);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(met[i], 1);
	assert_int_equal(map_count(m), 0);
}

static void
a_failed_allocation_leaves_what_was_there(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(map_freep) struct map *m = NULL;
		int i, r = 0;

		mem_fault_arm(n);
		m = map_new();
		for (i = 0; m != NULL && r == 0 && i < 40; i++)
			r = map_set(m, key_of(i), &values[i]);
		if (!mem_fault_hit())
			break;
		if (m == NULL)
			continue;
		assert_int_equal(r, E_NOMEM);
		assert_int_equal(map_count(m), i - 1);
		assert_null(map_get(m, key_of(i - 1)));
		for (int j = 0; j < i - 1; j++)
			assert_ptr_equal(map_get(m, key_of(j)), &values[j]);
	}
	mem_fault_arm(-1);
	assert_true(n > 40);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_found),
		cmocka_unit_test(a_second_value_replaces_the_first),
		cmocka_unit_test(removed_entries_do_not_hide_others),
		cmocka_unit_test(coming_and_going_for_ever_stays_small),
		cmocka_unit_test(a_walk_meets_each_entry_once_and_may_remove_it),
		cmocka_unit_test(a_failed_allocation_leaves_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
