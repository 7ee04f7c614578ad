/*
 * test/unit/test_index_stmts.c -- every statement of ingress.db, and what its schema refuses.
 */
#include <string.h>

#include "test/support/index_rig.h"
#include "test/support/unit.h"

static void
every_statement_prepares_and_takes_its_parameters(void **state)
{
	struct index_rig *g = *state;

	assert_true(index_store.nstmts > 0);
	for (size_t i = 0; i < index_store.nstmts; i++) {
		const struct store_stmt_row *row = &index_store.stmts[i];
		char types[32] = "";

		memset(types, 'n', (size_t)row->nparams);
		if (stmt_bind(store_stmt(g->s, (unsigned)i), types) != 0)
			fail_msg("%s: %s", row->name, store_error(g->s));
		types[row->nparams] = 'n';
		if (stmt_bind(store_stmt(g->s, (unsigned)i), types) != E_RANGE)
			fail_msg("%s has more than %d parameters", row->name, row->nparams);
	}
}

static void
the_schema_refuses_what_the_spec_does(void **state)
{
	static const struct {
		const char *sql;
		int err;
	} rows[] = {
		{ "INSERT INTO users VALUES ('usr_1', 'a', 'a@b', 'A', 1, NULL)",
		    E_CONSTRAINT },
		{ "INSERT INTO users VALUES ('usr_0000000000000000000009', 'a b', 'a@b', 'A', 1,"
		  " NULL)",
		    E_CONSTRAINT },
		{ "INSERT INTO sessions VALUES (printf('%064d', 1), 'usr_0000000000000000000008',"
		  " 1, 2, 1)",
		    E_CONSTRAINT },
		{ "INSERT INTO invites VALUES ('inv_0000000000000000000001', printf('%064d', 1),"
		  " 'somebody', 1, 2, NULL, NULL)",
		    E_CONSTRAINT },
		{ "INSERT INTO invites VALUES ('inv_0000000000000000000001', printf('%064d', 1),"
		  " 'operator', 2, 2, NULL, NULL)",
		    E_CONSTRAINT },
		{ "INSERT INTO invites VALUES ('inv_0000000000000000000001', printf('%064d', 1),"
		  " 'operator', 1, 2, 3, NULL)",
		    E_CONSTRAINT },
		{ "UPDATE run_index SET status = 'pending'", E_ILLEGAL },
		{ "UPDATE run_index SET trigger_type = 'push'", E_CONSTRAINT },
		{ "UPDATE run_index SET status = 'running', finished_at = NULL", E_ILLEGAL },
		{ "UPDATE run_index SET finished_at = NULL", E_CONSTRAINT },
		{ "UPDATE run_index SET triggered_by_user_id = NULL", E_CONSTRAINT },
		{ "UPDATE project_index SET shard = 64", E_CONSTRAINT },
		{ "UPDATE project_index SET confirmed = 2", E_CONSTRAINT },
	};
	struct index_rig *g = *state;
	struct index_run run = index_rig_run(g, 1, 1);

	index_rig_add_user(g, 1);
	index_rig_add_project(g, 1, 1);
	run.status = "passed";
	run.finished_at = INDEX_RIG_NOW;
	assert_int_equal(index_run_upsert(g->s, &run), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (store_exec(g->s, rows[i].sql) != rows[i].err)
			fail_msg("not refused as it should be: %s", rows[i].sql);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    every_statement_prepares_and_takes_its_parameters, index_rig_setup,
		    index_rig_teardown),
		cmocka_unit_test_setup_teardown(
		    the_schema_refuses_what_the_spec_does, index_rig_setup, index_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
