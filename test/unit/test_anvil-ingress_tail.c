/*
 * test/unit/test_anvil-ingress_tail.c -- the newest lines of a run, framed.
 */
#include "cmd/anvil-ingress/tail.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static int
add(struct tail *t, int64_t next, size_t n)
{
	static const char bytes[1000];

	return tail_add_take(t, next, n != 0 ? http_blob_new_copy(bytes, n) : NULL);
}

static void
an_empty_tail_has_a_place_and_nothing_in_it(void **state)
{
	struct tail *t = tail_new(17);

	(void)state;
	assert_int_equal(tail_first_seq(t), 17);
	assert_true(tail_begin(t) == 0 && tail_end(t) == 0);
	assert_true(tail_find(t, 17) == 0 && tail_find(t, 1000) == 0);
	assert_int_equal(tail_bytes_from(t, 0), 0);
	assert_true(tail_is_whole(t));
	tail_trim(t, 0);
	assert_null(tail_free(t));
	assert_null(tail_free(NULL));
}

static void
a_line_is_found_by_its_number_also_inside_a_gap(void **state)
{
	struct tail *t = tail_new(5);

	(void)state;
	assert_int_equal(add(t, 6, 10), 0);
	assert_int_equal(add(t, 20, 0), 0); /* lines 6..19 */
	assert_int_equal(add(t, 21, 30), 0);
	assert_true(tail_find(t, 5) == 0);
	assert_true(tail_find(t, 6) == 1 && tail_find(t, 19) == 1);
	assert_true(tail_find(t, 20) == 2);
	assert_true(tail_find(t, 21) == 3);
	assert_null(tail_at(t, 1)->blob);
	assert_int_equal(tail_at(t, 1)->first, 6);
	assert_int_equal(tail_at(t, 1)->next, 20);
	assert_int_equal(tail_bytes_from(t, 0), 40);
	assert_int_equal(tail_bytes_from(t, 1), 30);
	assert_int_equal(tail_bytes_from(t, 3), 0);
	(void)tail_free(t);
}

static void
the_oldest_go_and_numbers_stay(void **state)
{
	struct tail *t = tail_new(1);

	(void)state;
	for (int64_t seq = 1; seq <= 1000; seq++) {
		assert_int_equal(add(t, seq + 1, 100), 0);
		tail_trim(t, 1000);
	}
	assert_true(tail_end(t) == 1000 && tail_begin(t) == 990);
	assert_int_equal(tail_first_seq(t), 991);
	assert_int_equal(tail_at(t, 999)->next, 1001);
	assert_false(tail_is_whole(t));
	for (uint64_t i = 990; i < 1000; i++) {
		assert_int_equal(tail_at(t, i)->first, i + 1);
		assert_true(tail_find(t, (int64_t)i + 1) == i);
	}
	tail_trim(t, 999);
	assert_true(tail_begin(t) == 991);
	tail_trim(t, 0);
	assert_true(tail_begin(t) == 1000);
	assert_int_equal(tail_first_seq(t), 1001);
	(void)tail_free(t);
}

static void
a_blob_lives_as_long_as_somebody_has_it(void **state)
{
	struct http_blob *b = http_blob_new_copy("abc", 3);
	struct tail *t = tail_new(1);

	(void)state;
	assert_int_equal(tail_add_take(t, 2, http_blob_ref(b)), 0);
	(void)tail_free(t);
	assert_int_equal(http_blob_len(b), 3);
	(void)http_blob_unref(b);
}

static int
make_and_fill(void *arg)
{
	struct tail *t = tail_new(1);
	int r = t != NULL ? 0 : E_NOMEM;

	(void)arg;
	for (int64_t seq = 1; r == 0 && seq <= 200; seq++) {
		struct http_blob *b = http_blob_new_copy("x", 1);

		r = b != NULL ? tail_add_take(t, seq + 1, b) : E_NOMEM;
	}
	(void)tail_free(t);
	return r;
}

static void
it_survives_every_failed_allocation(void **state)
{
	(void)state;
	assert_true(starve(make_and_fill, NULL) > 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_tail_has_a_place_and_nothing_in_it),
		cmocka_unit_test(a_line_is_found_by_its_number_also_inside_a_gap),
		cmocka_unit_test(the_oldest_go_and_numbers_stay),
		cmocka_unit_test(a_blob_lives_as_long_as_somebody_has_it),
		cmocka_unit_test(it_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
