#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/arena.h"
#include "lib/base/mem.h"

static void
memory_is_zeroed_aligned_and_apart(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	unsigned char *p[200];

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		p[i] = arena_alloc(a, i);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % sizeof(max_align_t), 0);
		for (size_t j = 0; j < i; j++)
			assert_int_equal(p[i][j], 0);
		memset(p[i], (int)i, i);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(p[i][j], (unsigned char)i);
}

static void
a_large_piece_has_a_block_of_its_own(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	char *small = arena_strdup(a, "small");
	char *large = arena_alloc(a, 100000);

	(void)state;
	memset(large, 'x', 100000);
	assert_string_equal(small, "small");
	assert_string_equal(arena_strdup(a, "after"), "after");
}

static void
after_a_reset_memory_is_zeroed_again(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	arena_reset(a);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 50; i++) {
			unsigned char *p = arena_alloc(a, 300);

			for (int j = 0; j < 300; j++)
				assert_int_equal(p[j], 0);
			memset(p, 0xee, 300);
		}
		if (round == 1)
			memset(arena_alloc(a, 50000), 0xee, 50000);
		arena_reset(a);
	}
}

static void
strings_are_copied_cut_and_formatted(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	char source[] = "hello";
	char *copy = arena_strdup(a, source);

	(void)state;
	source[0] = 'J';
	assert_string_equal(copy, "hello");
	assert_string_equal(arena_strndup(a, "hello", 2), "he");
	assert_string_equal(arena_strndup(a, "hello", 99), "hello");
	assert_string_equal(arena_strndup(a, "", 0), "");
	assert_string_equal(arena_format(a, "%s-%d", "x", 42), "x-42");
}

static void
sizes_that_overflow_are_refused(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, SIZE_MAX - 40));
	assert_null(arena_calloc(a, SIZE_MAX / 2, 3));
	assert_non_null(arena_calloc(a, 0, 8));
	assert_non_null(arena_calloc(a, 3, 8));
}

static void
a_failed_allocation_leaves_what_was_handed_out(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(arena_freep) struct arena *a = NULL;
		char *first = NULL, *last = NULL;

		mem_fault_arm(n);
		a = arena_new();
		if (a != NULL)
			first = arena_strdup(a, "first");
		for (int i = 0; first != NULL && i < 3; i++)
			last = arena_alloc(a, 3000);
		if (!mem_fault_hit())
			break;
		if (first != NULL)
			assert_string_equal(first, "first");
		(void)last;
	}
	mem_fault_arm(-1);
	assert_int_equal(n, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(a_large_piece_has_a_block_of_its_own),
		cmocka_unit_test(after_a_reset_memory_is_zeroed_again),
		cmocka_unit_test(strings_are_copied_cut_and_formatted),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(a_failed_allocation_leaves_what_was_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
