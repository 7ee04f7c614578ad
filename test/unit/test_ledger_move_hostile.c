/* Parts of a project that are garbled, incomplete or of something else make nothing. */
#include <string.h>

#include "lib/wire/wire.h"
#include "test/support/move_rig.h"
#include "test/support/unit.h"

static json_t *
parsed(const char *text)
{
	json_t *j;

	assert_int_equal(json_text_parse(text, strlen(text), 8, &j), 0);
	return j;
}

static void
what_is_no_part_is_not_kept(void **state)
{
	static const char *const bad[] = { "[]", "1", "null", "{\"state\":{}}",
		"{\"state\":[1]}", "{\"state\":[[1,2,3,4]]}", "{\"state\":[[1,2,3,4,5,6]]}",
		"{\"users\":[]}", "{\"state\":[[1,2,3,4,[]]]}", "{\"state\":[[1,2,3,4,{}]]}",
		"{\"state\":[[1,2,3,4,true]]}", "{\"state\":[[1,2,3,4,1.5]]}",
		"{\"webhooks\":[[1,2,3,4,5,6,7,8,9,10]]}",
		"{\"webhooks\":[[1,2,3,4,5,6,7,8,9,[[]]]]}",
		"{\"webhooks\":[[1,2,3,4,5,6,7,8,9,[1]]]}" };
	struct move_pair *pair = *state;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(json_unrefp) json_t *rows = parsed(bad[i]);

		if (pair_store_part(pair, 1, 1, 1, rows) != E_INVAL)
			fail_msg("%s", bad[i]);
	}
	assert_true(rig_holds(pair->to, "NOT EXISTS (SELECT 1 FROM import_parts)"));
}

static void
a_part_that_is_too_long_is_not_kept(void **state)
{
	struct move_pair *pair = *state;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(json_unrefp) json_t *rows = NULL;

	(void)buf_add_str(&text, "{\"state\":[[1,2,3,4,\"");
	for (size_t i = 0; i < LEDGER_PART_BYTES; i++)
		(void)buf_add_byte(&text, 'x');
	(void)buf_add_str(&text, "\"]]}");
	rows = parsed(buf_cstr(&text));
	assert_int_equal(pair_store_part(pair, 1, 1, 1, rows), E_TOO_BIG);
}

/* Begins a savepoint, imports, and takes back whatever was written. */
static int
try_import(const struct move_pair *pair, int project, int move)
{
	int r;

	assert_int_equal(store_exec(pair->to->s, "SAVEPOINT try"), 0);
	r = pair_import(pair, project, move);
	assert_int_equal(store_exec(pair->to->s, "ROLLBACK TO try; RELEASE try"), 0);
	return r;
}

static void
parts_that_do_not_belong_together_make_nothing(void **state)
{
	struct move_pair *pair = *state;
	json_t *part;

	pair_fill(pair->from, 1);
	pair_fill(pair->from, 2);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, 600);
	assert_true(pair->nparts > 3);
	/* None, one that is missing, one too many. */
	assert_int_equal(try_import(pair, 1, 1), E_INVAL);
	pair_send(pair, 1, 1);
	assert_int_equal(rig_exec(pair->to, "DELETE FROM import_parts WHERE part = 2"), 0);
	assert_int_equal(try_import(pair, 1, 1), E_INVAL);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_store_part(pair, 1, 1, pair->nparts + 1, pair->parts[1]), 0);
	assert_int_equal(try_import(pair, 1, 1), E_INVAL);
	/* Of another move, of another project. */
	pair_send(pair, 1, 1);
	assert_int_equal(try_import(pair, 1, 2), E_INVAL);
	assert_int_equal(pair_store_part(pair, 2, 1, 2, pair->parts[1]), 0);
	assert_int_equal(try_import(pair, 1, 1), E_INVAL);
	/* The same rows twice, in another part. */
	pair_send(pair, 1, 1);
	part = pair->parts[pair->nparts - 1];
	assert_int_equal(pair_store_part(pair, 1, 1, pair->nparts + 1, part), 0);
	pair->nparts++;
	pair->parts[pair->nparts - 1] = json_incref(part);
	assert_int_equal(try_import(pair, 1, 1), E_CONSTRAINT);
	assert_int_equal(pair_look(pair->to, 1).where, LEDGER_UNKNOWN);
}

static void
rows_that_no_project_has_make_nothing(void **state)
{
	/* A member of the first row of a table, and what is put there. */
	static const struct {
		const char *table;
		size_t column;
		const char *value;
	} bad[] = { { "state", 0, "0" }, { "state", 0, "null" }, { "state", 0, "\"x\"" },
		{ "state", 1, "\"done\"" }, { "config", 0, "\"usr_1\"" },
		{ "config", 3, "\"\"" }, { "config", 7, "null" }, { "config", 10, "null" },
		{ "webhooks", 0, "\"whk_1\"" }, { "webhooks", 1, "\"svn\"" },
		{ "webhooks", 2, "2" }, { "webhooks", 4, "\"\"" },
		{ "deliveries", 4, "\"maybe\"" }, { "deliveries", 11, "\"00\"" },
		{ "deliveries", 11, "null" }, { "deliveries", 12, "null" },
		{ "deliveries", 14, "null" }, { "runs", 0, "\"run_1\"" }, { "runs", 1, "0" },
		{ "runs", 3, "\"pending\"" }, { "runs", 3, "\"active\"" },
		{ "runs", 9, "\"cron\"" }, { "runs", 10, "null" }, { "runs", 15, "null" },
		{ "runs", 21, "1" }, { "runs", 30, "\"current\"" }, { "runs", 31, "0" },
		{ "runs", 36, "[[1,1,\"slept\",\"{}\"]]" },
		{ "runs", 36, "[[1,1,\"accepted\",\"{}\"],[1,1,\"accepted\",\"{}\"]]" } };
	struct move_pair *pair = *state;

	pair_fill(pair->from, 1);
	pair_freeze(pair, 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *row;
		int r;

		pair_export(pair, 1, LEDGER_PART_BYTES);
		assert_int_equal(pair->nparts, 1);
		row = json_array_get(json_object_get(pair->parts[0], bad[i].table), 0);
		assert_non_null(row);
		if (strcmp(bad[i].value, "null") == 0)
			json_array_set_new(row, bad[i].column, json_null());
		else if (bad[i].value[0] == '[')
			json_array_set_new(row, bad[i].column, parsed(bad[i].value));
		else if (bad[i].value[0] == '\"')
			json_array_set_new(row, bad[i].column,
			    json_stringn(bad[i].value + 1, strlen(bad[i].value) - 2));
		else
			json_array_set_new(
			    row, bad[i].column, json_integer(bad[i].value[0] - '0'));
		pair_send(pair, 1, 1);
		r = try_import(pair, 1, 1);
		if (r != E_CONSTRAINT && r != E_ILLEGAL)
			fail_msg("%s[%zu] = %s: %s", bad[i].table, bad[i].column, bad[i].value,
			    r == 0 ? "taken" : err_symbol(r));
	}
	/* No state, two; no configuration. */
	for (int i = 0; i < 3; i++) {
		json_t *list;

		pair_export(pair, 1, LEDGER_PART_BYTES);
		list = json_object_get(pair->parts[0], i < 2 ? "state" : "config");
		if (i == 1)
			json_array_append(list, json_array_get(list, 0));
		else
			json_array_clear(list);
		pair_send(pair, 1, 1);
		assert_int_equal(try_import(pair, 1, 1), i == 1 ? E_CONSTRAINT : E_INVAL);
	}
	assert_int_equal(pair_look(pair->to, 1).where, LEDGER_UNKNOWN);
}

static void
runs_of_another_project_are_not_taken_over(void **state)
{
	struct move_pair *pair = *state;
	const char *before;
	json_t *runs;

	pair_fill(pair->to, 2);
	before = pair_dump(pair->to, 2);
	pair_fill(pair->from, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, LEDGER_PART_BYTES);
	runs = json_object_get(pair->parts[0], "runs");
	json_array_set_new(json_array_get(runs, 0), 0, json_string(rig_run(pair->to, 201)));
	pair_send(pair, 1, 1);
	assert_int_equal(try_import(pair, 1, 1), E_CONSTRAINT);
	assert_string_equal(pair_dump(pair->to, 2), before);
	/* Nor is a project that is there. */
	rig_project(pair->to, 1);
	assert_int_equal(try_import(pair, 1, 1), E_EXISTS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(what_is_no_part_is_not_kept),
		TEST(a_part_that_is_too_long_is_not_kept),
		TEST(parts_that_do_not_belong_together_make_nothing),
		TEST(rows_that_no_project_has_make_nothing),
		TEST(runs_of_another_project_are_not_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
