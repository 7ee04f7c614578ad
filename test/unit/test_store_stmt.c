#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

struct rig {
	char *dir;
	struct store *s;
};

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));

	rig->dir = scratch_new();
	rig->s = tiny_open(&tiny_store, rig->dir);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	(void)store_close(rig->s);
	scratch_free(rig->dir);
	free(rig);
	return 0;
}

static void
every_type_goes_in_and_comes_out(void **state)
{
	struct rig *rig = *state;
	static const uint8_t bytes[] = { 0, 1, 0xff, 0 };
	int64_t least = INT64_MIN;
	size_t n = 99;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_ADD_ALL);

		assert_int_equal(
		    stmt_bind(st, "isbI", INT64_MAX, "žluť", bytes, sizeof(bytes), &least), 0);
		assert_int_equal(stmt_run(st), 0);
		assert_int_equal(store_changes(rig->s), 1);
	}
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_GET);

		assert_int_equal(stmt_bind(st, "i", INT64_MAX), 0);
		assert_int_equal(stmt_step(st), 1);
		assert_true(stmt_int(st, 0) == INT64_MAX);
		assert_string_equal(stmt_text(st, 1), "žluť");
		assert_memory_equal(stmt_blob(st, 2, &n), bytes, sizeof(bytes));
		assert_int_equal(n, sizeof(bytes));
		assert_true(stmt_int(st, 3) == INT64_MIN);
		assert_false(stmt_is_null(st, 3));
		assert_int_equal(stmt_step(st), 0);
	}
}

static void
nulls_are_nulls_and_read_as_nothing(void **state)
{
	struct rig *rig = *state;
	size_t n = 99;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_ADD_ALL);

		assert_int_equal(stmt_bind(st, "isnI", (int64_t)1, "x", (int64_t *)NULL), 0);
		assert_int_equal(stmt_run(st), 0);
	}
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_GET);

		assert_int_equal(stmt_bind(st, "i", (int64_t)1), 0);
		assert_int_equal(stmt_step(st), 1);
		assert_true(stmt_is_null(st, 2));
		assert_null(stmt_blob(st, 2, &n));
		assert_int_equal(n, 0);
		assert_null(stmt_text(st, 2));
		assert_true(stmt_is_null(st, 3));
		assert_int_equal(stmt_int(st, 3), 0);
	}
	/* A null text meets NOT NULL. */
	assert_int_equal(tiny_add(rig->s, 2, NULL), E_CONSTRAINT);
}

static void
a_statement_forgets_its_parameters_when_it_is_reset(void **state)
{
	struct rig *rig = *state;
	struct stmt *st;

	assert_int_equal(tiny_add(rig->s, 1, "one"), E_CONSTRAINT); /* three letters */
	assert_int_equal(tiny_add(rig->s, 1, "first"), 0);
	st = store_stmt(rig->s, TINY_GET);
	assert_int_equal(stmt_bind(st, "i", (int64_t)1), 0);
	assert_int_equal(stmt_step(st), 1);
	/* Handed out again before anybody has reset it. */
	st = store_stmt(rig->s, TINY_GET);
	assert_int_equal(stmt_step(st), 0);
	assert_null(stmt_reset(st));
	assert_null(stmt_reset(NULL));
}

static void
too_many_parameters_are_an_error_of_bind_and_of_step(void **state)
{
	struct rig *rig = *state;
	struct stmt *st = store_stmt(rig->s, TINY_GET);

	assert_int_equal(stmt_bind(st, "ii", (int64_t)1, (int64_t)2), E_RANGE);
	assert_int_equal(stmt_step(st), E_RANGE);
	(void)stmt_reset(st);
	assert_false(tiny_has(rig->s, 1));
}

static void
a_statement_that_does_not_prepare_hands_out_its_error(void **state)
{
	struct rig *rig = *state;
	struct stmt *st = store_stmt(rig->s, TINY_WRONG);

	assert_non_null(st);
	assert_int_equal(stmt_bind(st, ""), E_STORAGE);
	assert_int_equal(stmt_step(st), E_STORAGE);
	assert_int_equal(stmt_run(st), E_STORAGE);
	assert_non_null(strstr(store_error(rig->s), "absent"));
	/* It is tried anew each time: the schema may have changed. */
	assert_int_equal(store_exec(rig->s, "CREATE TABLE absent (id INTEGER)"), 0);
	st = store_stmt(rig->s, TINY_WRONG);
	assert_int_equal(stmt_step(st), 0);
	(void)stmt_reset(st);
}

static void
refusals_of_constraints_and_triggers_are_told_apart(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(tiny_add(rig->s, 1, "sealed"), 0);
	assert_int_equal(tiny_add(rig->s, 1, "again"), E_CONSTRAINT); /* primary key */
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_SET);

		assert_int_equal(stmt_bind(st, "is", (int64_t)1, "open"), 0);
		assert_int_equal(stmt_run(st), E_ILLEGAL); /* trigger */
	}
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_ADD_CHILD);

		assert_int_equal(stmt_bind(st, "ii", (int64_t)1, (int64_t)2), 0);
		assert_int_equal(stmt_run(st), E_CONSTRAINT); /* foreign key */
	}
	assert_true(tiny_has(rig->s, 1));
}

static void
foreign_keys_take_the_children_along(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(tiny_add(rig->s, 1, "parent"), 0);
	for (int64_t id = 1; id <= 3; id++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_ADD_CHILD);

		assert_int_equal(stmt_bind(st, "ii", id, (int64_t)1), 0);
		assert_int_equal(stmt_run(st), 0);
	}
	assert_int_equal(tiny_number(rig->s, TINY_CHILDREN), 3);
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_REMOVE);

		assert_int_equal(stmt_bind(st, "i", (int64_t)1), 0);
		assert_int_equal(stmt_run(st), 0);
		assert_int_equal(store_changes(rig->s), 1);
	}
	assert_int_equal(tiny_number(rig->s, TINY_CHILDREN), 0);
}

static void
bound_texts_are_copied(void **state)
{
	struct rig *rig = *state;
	char text[] = "written";

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_ADD);

		assert_int_equal(stmt_bind(st, "is", (int64_t)1, text), 0);
		memset(text, 'X', sizeof(text) - 1);
		assert_int_equal(stmt_run(st), 0);
	}
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_GET);

		assert_int_equal(stmt_bind(st, "i", (int64_t)1), 0);
		assert_int_equal(stmt_step(st), 1);
		assert_string_equal(stmt_text(st, 1), "written");
	}
}

static void
changes_of_a_statement_that_hit_nothing_are_none(void **state)
{
	struct rig *rig = *state;
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_SET);

	assert_int_equal(stmt_bind(st, "is", (int64_t)404, "text"), 0);
	assert_int_equal(stmt_run(st), 0);
	assert_int_equal(store_changes(rig->s), 0);
}

static void
the_first_row_is_there_or_said_to_be_missing(void **state)
{
	struct rig *rig = *state;
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(rig->s, TINY_GET);

	assert_int_equal(stmt_first(st, stmt_bind(st, "i", (int64_t)1)), E_NOENT);
	assert_int_equal(tiny_add(rig->s, 1, "written"), 0);
	stmt_reset(st);
	assert_int_equal(stmt_first(st, stmt_bind(st, "i", (int64_t)1)), 0);
	assert_string_equal(stmt_text(st, 1), "written");
	assert_int_equal(stmt_first(st, E_RANGE), E_RANGE);
}

static int
row_read(struct stmt *st, struct arena *a, void *row)
{
	(void)a;
	*(int64_t *)row = stmt_int(st, 0);
	return *(int64_t *)row == 404 ? E_CORRUPT : 0;
}

static int
rows_of(struct store *s, int64_t id, struct arena *a, void **ret_rows, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, TINY_GET);

	return stmt_rows(
	    st, stmt_bind(st, "i", id), a, row_read, sizeof(int64_t), ret_rows, ret_n);
}

static void
all_rows_come_or_the_outputs_are_untouched(void **state)
{
	struct rig *rig = *state;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	void *rows = rig;
	size_t n = 99;

	assert_int_equal(tiny_add(rig->s, 404, "written"), 0);
	assert_int_equal(rows_of(rig->s, 404, a, &rows, &n), E_CORRUPT);
	assert_ptr_equal(rows, rig);
	assert_int_equal(n, 99);
	assert_int_equal(rows_of(rig->s, 1, a, &rows, &n), 0);
	assert_null(rows);
	assert_int_equal(n, 0);
	assert_int_equal(tiny_add(rig->s, 1, "written"), 0);
	assert_int_equal(rows_of(rig->s, 1, a, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(*(int64_t *)rows, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_type_goes_in_and_comes_out),
		TEST(nulls_are_nulls_and_read_as_nothing),
		TEST(a_statement_forgets_its_parameters_when_it_is_reset),
		TEST(too_many_parameters_are_an_error_of_bind_and_of_step),
		TEST(a_statement_that_does_not_prepare_hands_out_its_error),
		TEST(refusals_of_constraints_and_triggers_are_told_apart),
		TEST(foreign_keys_take_the_children_along),
		TEST(bound_texts_are_copied),
		TEST(changes_of_a_statement_that_hit_nothing_are_none),
		TEST(the_first_row_is_there_or_said_to_be_missing),
		TEST(all_rows_come_or_the_outputs_are_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
