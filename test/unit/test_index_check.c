/* Each invariant of ingress.db is broken on purpose, named, and mended where that is safe. */
#include <string.h>

#include "lib/base/base.h"
#include "test/support/index_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define USR    "usr_0000000000000000000001"
#define NOBODY "usr_0000000000000000000009"
#define PRJ    "prj_0000000000000000000001"
#define RUN    "run_0000000000000000000001"
#define HASH   "'0000000000000000000000000000000000000000000000000000000000000000'"

/* A hand that heeds neither triggers nor checks. */
static int
setup(void **state)
{
	int r = index_rig_setup(state);
	struct index_rig *g = *state;
	struct index_run run;

	index_rig_add_user(g, 1);
	index_rig_add_project(g, 1, 1);
	run = index_rig_run(g, 1, 1);
	assert_int_equal(index_run_upsert(g->s, &run), 0);
	assert_int_equal(store_exec(g->s,
			     "DROP TRIGGER run_index_terminal_stays;"
			     "DROP TRIGGER invite_accepted_once;"
			     "PRAGMA ignore_check_constraints = ON;"
			     "PRAGMA defer_foreign_keys = ON"),
	    0);
	return r;
}

static struct store_problems
look(const struct index_rig *g)
{
	struct store_problems found = { .arena = g->a };

	assert_int_equal(index_find_problems(g->s, INDEX_RIG_NOW, &found), 0);
	return found;
}

static const struct {
	const char *code, *subject, *sql;
	int mended;
} breaches[] = {
	{ "account_row", USR, "UPDATE users SET slug = 'a b' WHERE user_id = '" USR "'", 0 },
	{ "account_row", USR, "UPDATE users SET display_name = ''", 0 },
	{ "session_row", USR, "INSERT INTO sessions VALUES (" HASH ", '" USR "', 5, 4, 1)", 1 },
	{ "session_row", USR, "INSERT INTO sessions VALUES ('x', '" USR "', 1, 2, 1)", 1 },
	{ "session_orphan", NOBODY,
	    "INSERT INTO sessions VALUES (" HASH ", '" NOBODY "', 1, 2, 1)", 1 },
	{ "session_orphan", NOBODY,
	    "INSERT INTO log_tickets VALUES (" HASH ", '" RUN "', '" NOBODY "', 2)", 1 },
	{ "session_orphan", NOBODY, "INSERT INTO credentials VALUES ('" NOBODY "', 'h', 2)",
	    1 },
	{ "invite_row", "inv_1",
	    "INSERT INTO invites VALUES ('inv_1', " HASH ", 'operator', 5, 9, 7, NULL)", 0 },
	{ "index_project_row", PRJ, "UPDATE project_index SET name = ''", 1 },
	{ "index_project_row", PRJ, "UPDATE project_index SET shard = 64", 1 },
	{ "project_without_owner", PRJ, "UPDATE project_index SET owner_user_id = '" NOBODY "'",
	    0 },
	{ "index_run_orphan", RUN, "DELETE FROM project_index", 1 },
	{ "index_run_row", RUN, "UPDATE run_index SET status = 'lost'", 1 },
	{ "index_run_row", RUN, "UPDATE run_index SET rev = 0", 1 },
	{ "index_run_row", RUN, "UPDATE run_index SET finished_at = 7", 1 },
	{ "index_run_row", RUN,
	    "UPDATE run_index SET status = 'passed', finished_at = 7, exit_code = 1", 1 },
	{ "index_run_row", RUN, "UPDATE run_index SET triggered_by_user_id = NULL", 1 },
};

static void
each_breach_is_named_and_mended_where_that_is_safe(void **state)
{
	struct index_rig *g = *state;

	assert_int_equal(look(g).n, 0);
	for (size_t i = 0; i < ARRAY_LEN(breaches); i++) {
		struct store_problems found;
		int mended;

		assert_int_equal(store_exec(g->s, "SAVEPOINT hand"), 0);
		if (store_exec(g->s, breaches[i].sql) != 0)
			fail_msg("%s: %s", breaches[i].sql, store_error(g->s));
		found = look(g);
		if (found.n != 1 || strcmp(found.rows[0].code, breaches[i].code) != 0 ||
		    strcmp(found.rows[0].subject, breaches[i].subject) != 0)
			fail_msg("%s was not found, or not alone, by %s", breaches[i].code,
			    breaches[i].sql);
		assert_int_equal(found.rows[0].mendable, breaches[i].mended);
		assert_int_equal(
		    index_mend(g->s, breaches[i].code, breaches[i].subject, &mended), 0);
		assert_int_equal(mended, breaches[i].mended);
		/* The runs of a project that has gone from the index come back with it. */
		found = look(g);
		if (mended && strcmp(breaches[i].code, "index_project_row") != 0)
			assert_int_equal(found.n, 0);
		assert_int_equal(store_exec(g->s, "ROLLBACK TO hand; RELEASE hand"), 0);
	}
	assert_int_equal(look(g).n, 0);
}

static void
what_is_sound_is_not_mended(void **state)
{
	struct index_rig *g = *state;
	int mended;

	assert_int_equal(
	    index_session_add(g->s, index_rig_hash(g, 1), USR, 1, INDEX_RIG_NOW), 0);
	assert_int_equal(index_mend(g->s, "session_row", USR, &mended), 0);
	assert_int_equal(mended, 0);
	assert_int_equal(index_mend(g->s, "session_orphan", USR, &mended), 0);
	assert_int_equal(mended, 0);
	assert_int_equal(index_mend(g->s, "account_row", USR, &mended), 0);
	assert_int_equal(mended, 0);
	assert_int_equal(look(g).n, 0);
}

static void
a_run_that_no_ledger_knows_ends_and_stays(void **state)
{
	struct index_rig *g = *state;
	struct index_run run;

	assert_int_equal(index_end_lost_run(g->s, RUN, INDEX_RIG_NOW + 5), 0);
	assert_int_equal(index_run_get(g->s, g->a, RUN, &run), 0);
	assert_string_equal(run.status, "failed");
	assert_string_equal(run.failure_code, "internal_unexpected");
	assert_int_equal(run.finished_at, INDEX_RIG_NOW + 5);
	/* Once and for all. */
	assert_int_equal(index_end_lost_run(g->s, RUN, INDEX_RIG_NOW + 9), 0);
	assert_int_equal(index_run_get(g->s, g->a, RUN, &run), 0);
	assert_int_equal(run.finished_at, INDEX_RIG_NOW + 5);
	assert_int_equal(look(g).n, 0);
}

static void
a_project_in_doubt_answers_until_its_shard_has_spoken(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), got;
	int mended;

	/* As a hand may leave it: of a later rev than there is, and with nothing right. */
	assert_int_equal(store_exec(g->s,
			     "UPDATE project_index SET rev = 900, name = '', shard = 70,"
			     " owner_user_id = 'x', config_path = 'x', created_at = 7,"
			     " confirmed = 5;"
			     "PRAGMA ignore_check_constraints = OFF"),
	    0);
	for (int way = 0; way < 2; way++) {
		if (way == 0)
			assert_int_equal(index_doubt_project(g->s, PRJ), 0);
		else
			assert_int_equal(
			    index_mend(g->s, "index_project_row", PRJ, &mended), 0);
		assert_int_equal(
		    index_project_by_slug(g->s, g->a, p.owner_slug, p.slug, &got), 0);
		assert_int_equal(got.rev, 0);
		assert_int_equal(got.confirmed, 1);
		p.rev = 3;
		assert_int_equal(way == 0 ? index_project_exported(g->s, &p, 1)
					  : index_project_upsert(g->s, &p),
		    0);
		assert_int_equal(index_project_get(g->s, g->a, PRJ, &got), 0);
		assert_int_equal(got.rev, 3);
		assert_int_equal(got.shard, p.shard);
		assert_int_equal(got.created_at, p.created_at);
		assert_string_equal(got.name, p.name);
		assert_string_equal(got.owner_user_id, p.owner_user_id);
		assert_string_equal(got.config_path, p.config_path);
		assert_int_equal(look(g).n, 0);
	}
	/* What is no id of a project cannot be replaced. */
	assert_int_equal(store_exec(g->s,
			     "PRAGMA ignore_check_constraints = ON;"
			     "UPDATE project_index SET project_id = 'x'"),
	    0);
	assert_int_equal(index_mend(g->s, "index_project_row", "x", &mended), 0);
	assert_true(mended);
	assert_int_equal(
	    index_project_by_slug(g->s, g->a, p.owner_slug, p.slug, &got), E_NOENT);
}

static void
copies_are_forgotten_one_by_one(void **state)
{
	struct index_rig *g = *state;
	struct index_run run;
	struct index_run *runs;
	size_t n;

	assert_int_equal(index_runs_after(g->s, g->a, "", 10, &runs, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(index_runs_after(g->s, g->a, RUN, 10, &runs, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(index_run_get(g->s, g->a, RUN, &run), 0);
	assert_int_equal(index_forget_run(g->s, RUN), 0);
	assert_int_equal(index_run_get(g->s, g->a, RUN, &run), E_NOENT);
}

static int
look_at_breaches(void *arg)
{
	const struct index_rig *g = arg;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct store_problems found = { .arena = a };

	return a == NULL ? E_NOMEM : index_find_problems(g->s, INDEX_RIG_NOW, &found);
}

static void
looking_survives_every_failed_allocation(void **state)
{
	struct index_rig *g = *state;

	assert_int_equal(store_exec(g->s, "UPDATE run_index SET rev = 0"), 0);
	assert_true(starve(look_at_breaches, g) > 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, index_rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_breach_is_named_and_mended_where_that_is_safe),
		TEST(what_is_sound_is_not_mended),
		TEST(a_run_that_no_ledger_knows_ends_and_stays),
		TEST(a_project_in_doubt_answers_until_its_shard_has_spoken),
		TEST(copies_are_forgotten_one_by_one),
		TEST(looking_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
