/*
 * test/unit/test_index_rebuild.c -- filling the index from the shards: what a page may change, what
 * is left over at the end, and that nothing comes back that was removed meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/index_rig.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define JOB "0123456789abcdef0123456789abcdef"

static struct index_job
job(const struct index_rig *g)
{
	struct index_job j;

	assert_int_equal(index_job_get(g->s, g->a, &j), 0);
	return j;
}

static void
begin(const struct index_rig *g, const char *reason)
{
	assert_int_equal(index_job_begin(g->s, JOB, reason, INDEX_RIG_NOW), 0);
}

static int
exported(const struct index_rig *g, int n, int64_t shard, int64_t rev, int owned)
{
	struct index_project p = index_rig_project(g, n, 1);

	p.shard = shard;
	p.rev = rev;
	p.name = arena_format(g->a, "rev %d", (int)rev);
	return index_project_exported(g->s, &p, owned);
}

static struct index_project
get(const struct index_rig *g, int n)
{
	struct index_project p;

	assert_int_equal(index_project_get(g->s, g->a, index_rig_id(g, "prj_", n), &p), 0);
	return p;
}

static int
is_there(const struct index_rig *g, int n)
{
	struct index_project p;
	int r = index_project_get(g->s, g->a, index_rig_id(g, "prj_", n), &p);

	assert_true(r == 0 || r == E_NOENT);
	return r == 0;
}

static int64_t
remove_unseen(const struct index_rig *g, size_t limit)
{
	int64_t n;

	assert_int_equal(index_remove_unseen(g->s, g->a, limit, &n), 0);
	return n;
}

static void
a_new_store_is_not_complete_until_a_job_has_ended(void **state)
{
	struct index_rig *g = *state;
	struct index_job j = job(g);
	enum index_gap gap;

	assert_false(j.complete);
	assert_null(j.job_id);
	assert_int_equal(index_is_empty(g->s, &gap), 0);
	assert_int_equal(gap, INDEX_GAP_PROJECTS);
	begin(g, "new_store");
	j = job(g);
	assert_false(j.complete);
	assert_string_equal(j.job_id, JOB);
	assert_string_equal(j.reason, "new_store");
	assert_int_equal(j.pass, 1);
	assert_int_equal(j.started_at, INDEX_RIG_NOW);
	assert_int_equal(j.finished_at, 0);
	assert_int_equal(index_job_count(g->s, 3, 7, 1), 0);
	assert_int_equal(index_job_count(g->s, 4, 9, 1), 0);
	assert_int_equal(index_job_end(g->s, INDEX_RIG_NOW + 5), 0);
	j = job(g);
	assert_true(j.complete);
	assert_int_equal(j.finished_at, INDEX_RIG_NOW + 5);
	assert_int_equal(j.projects, 4);
	assert_int_equal(j.runs, 9);
	assert_int_equal(j.removed, 2);
}

static void
one_that_was_asked_for_leaves_the_index_as_complete_as_it_was(void **state)
{
	struct index_rig *g = *state;

	begin(g, "asked");
	assert_false(job(g).complete);
	assert_int_equal(index_job_end(g->s, INDEX_RIG_NOW), 0);
	begin(g, "asked");
	assert_true(job(g).complete);
	assert_int_equal(job(g).finished_at, 0);
	assert_int_equal(index_job_pass(g->s), 0);
	assert_int_equal(job(g).pass, 3);
	assert_int_equal(index_job_end(g->s, INDEX_RIG_NOW), 0);
	index_rig_add_project(g, 1, 1);
	begin(g, "empty"); /* of runs; projects are all there */
	assert_true(job(g).complete);
	begin(g, "restored");
	assert_false(job(g).complete);
}

static void
a_store_from_before_has_a_whole_index(void **state)
{
	struct index_rig *g = *state;
	CLEANUP_FREE char *path = mem_format("%s/before.db", g->dir);
	size_t first = 1;
	struct store_desc before = index_store;
	CLEANUP(store_closep) struct store *s = NULL;
	struct index_job j;
	char *why = NULL;

	before.nmigrations = &first;
	before.nstmts = 0;
	assert_int_equal(store_open(&before, path, &s, &why), 0);
	assert_int_equal(
	    store_exec(s,
		"INSERT INTO users VALUES ('usr_0000000000000000000001', 'a', 'a@b',"
		" 'A', 1, NULL)"),
	    0);
	s = store_close(s);
	assert_int_equal(store_open(&index_store, path, &s, &why), 0);
	assert_int_equal(index_job_get(s, g->a, &j), 0);
	assert_true(j.complete);
}

static void
the_higher_rev_wins_and_a_copy_on_its_way_wins_over_nothing(void **state)
{
	struct index_rig *g = *state;

	begin(g, "asked");
	assert_int_equal(exported(g, 1, 0, 5, 1), 0);
	assert_int_equal(get(g, 1).rev, 5);
	assert_true(get(g, 1).confirmed);
	assert_int_equal(exported(g, 1, 1, 4, 1), 0);
	assert_string_equal(get(g, 1).name, "rev 5");
	assert_int_equal(get(g, 1).shard, 0);
	/* On its way to another shard: what owns it says where it is. */
	assert_int_equal(exported(g, 1, 1, 5, 0), 0);
	assert_int_equal(get(g, 1).shard, 0);
	assert_int_equal(exported(g, 2, 1, 5, 0), 0);
	assert_int_equal(get(g, 2).shard, 1);
	assert_int_equal(exported(g, 2, 0, 5, 1), 0);
	assert_int_equal(get(g, 2).shard, 0);
}

static void
a_slug_that_another_project_has_is_refused(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 2, 1);

	index_rig_add_project(g, 1, 1);
	p.slug = get(g, 1).slug;
	begin(g, "asked");
	assert_int_equal(index_project_exported(g->s, &p, 1), E_EXISTS);
}

static void
what_no_shard_has_told_of_is_removed_with_its_runs(void **state)
{
	struct index_rig *g = *state;
	struct index_run run = index_rig_run(g, 1, 2), old = index_rig_run(g, 2, 1), got;
	struct index_project p = index_rig_project(g, 3, 1);

	index_rig_add_project(g, 1, 1);
	index_rig_add_project(g, 2, 1);
	p.confirmed = 0; /* nobody knows yet whether its shard has it */
	assert_int_equal(index_project_add(g->s, &p), 0);
	assert_int_equal(index_run_upsert(g->s, &run), 0);
	assert_int_equal(index_run_upsert(g->s, &old), 0);
	begin(g, "asked");
	assert_int_equal(exported(g, 1, 0, 0, 1), 0); /* met, though it has nothing newer */
	assert_int_equal(remove_unseen(g, 100), 1);
	assert_true(is_there(g, 1));
	assert_false(is_there(g, 2));
	assert_true(is_there(g, 3));
	assert_int_equal(index_run_get(g->s, g->a, run.id, &got), E_NOENT);
	/* Its ledger may have forgotten the run long ago. */
	assert_int_equal(index_run_get(g->s, g->a, old.id, &got), 0);
	assert_int_equal(remove_unseen(g, 100), 0);
}

static void
no_more_are_removed_at_once_than_was_said(void **state)
{
	struct index_rig *g = *state;

	for (int i = 1; i <= 5; i++)
		index_rig_add_project(g, i, 1);
	begin(g, "asked");
	assert_int_equal(remove_unseen(g, 2), 2);
	assert_int_equal(remove_unseen(g, 2), 2);
	assert_int_equal(remove_unseen(g, 2), 1);
}

static void
what_is_made_meanwhile_stays(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), q = index_rig_project(g, 3, 1);

	p.confirmed = 0;
	assert_int_equal(index_project_add(g->s, &p), 0); /* before it began */
	begin(g, "asked");
	assert_int_equal(index_job_pass(g->s), 0);
	index_rig_add_project(g, 2, 1);
	assert_int_equal(index_project_confirm(g->s, p.id, 0), 0);
	assert_int_equal(index_project_upsert(g->s, &q), 0);
	assert_int_equal(remove_unseen(g, 100), 0);
	assert_int_equal(index_job_pass(g->s), 0);
	assert_int_equal(index_project_upsert(g->s, &q), 0);
	assert_int_equal(remove_unseen(g, 100), 2);
}

static void
what_was_removed_meanwhile_does_not_come_back(void **state)
{
	struct index_rig *g = *state;

	index_rig_add_project(g, 1, 1);
	index_rig_add_project(g, 2, 1);
	assert_int_equal(index_project_remove(g->s, index_rig_id(g, "prj_", 2)), 0);
	begin(g, "asked");
	assert_int_equal(exported(g, 2, 0, 1, 1), 0); /* that was before */
	assert_true(is_there(g, 2));
	assert_int_equal(index_project_remove(g->s, index_rig_id(g, "prj_", 1)), 0);
	assert_int_equal(index_project_remove(g->s, index_rig_id(g, "prj_", 1)), 0);
	assert_int_equal(exported(g, 1, 0, 1, 1), 0);
	assert_false(is_there(g, 1));
	assert_int_equal(index_job_end(g->s, INDEX_RIG_NOW), 0);
	begin(g, "asked");
	assert_int_equal(exported(g, 1, 0, 1, 1), 0);
	assert_true(is_there(g, 1));
}

static void
emptying_leaves_the_accounts(void **state)
{
	struct index_rig *g = *state;
	struct index_run run = index_rig_run(g, 1, 1);
	struct index_user u;
	int64_t ownerless;
	enum index_gap gap;

	index_rig_add_user(g, 1);
	index_rig_add_project(g, 1, 1);
	index_rig_add_project(g, 2, 2);
	assert_int_equal(index_is_empty(g->s, &gap), 0);
	assert_int_equal(gap, INDEX_GAP_RUNS);
	assert_int_equal(index_run_upsert(g->s, &run), 0);
	assert_int_equal(index_is_empty(g->s, &gap), 0);
	assert_int_equal(gap, INDEX_GAP_NONE);
	assert_int_equal(index_count_ownerless(g->s, &ownerless), 0);
	assert_int_equal(ownerless, 1);
	assert_int_equal(index_empty(g->s), 0);
	assert_int_equal(index_is_empty(g->s, &gap), 0);
	assert_int_equal(gap, INDEX_GAP_PROJECTS);
	assert_false(is_there(g, 1));
	assert_int_equal(index_user_by_id(g->s, g->a, index_rig_id(g, "usr_", 1), &u), 0);
}

struct hunger {
	struct index_rig *rig;
	struct index_project project;
};

static int
hungry(void *arg)
{
	const struct hunger *h = arg;
	struct index_rig g = *h->rig;
	struct index_job j;
	int64_t n;
	enum index_gap gap;
	int r;

	g.a = arena_new();
	if (g.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(g.s, "SAVEPOINT hungry"), 0);
	r = index_job_begin(g.s, JOB, "asked", INDEX_RIG_NOW);
	if (r == 0)
		r = index_project_exported(g.s, &h->project, 1);
	if (r == 0)
		r = index_job_count(g.s, 1, 0, 0);
	if (r == 0)
		r = index_remove_unseen(g.s, g.a, 200, &n);
	if (r == 0)
		r = index_count_ownerless(g.s, &n);
	if (r == 0)
		r = index_job_pass(g.s);
	if (r == 0)
		r = index_job_end(g.s, INDEX_RIG_NOW);
	if (r == 0)
		r = index_job_get(g.s, g.a, &j);
	if (r == 0)
		r = index_empty(g.s);
	if (r == 0)
		r = index_is_empty(g.s, &gap);
	assert_int_equal(store_exec(g.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(g.s, "RELEASE hungry"), 0);
	g.a = arena_free(g.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct index_rig *g = *state;
	struct hunger h = { g, index_rig_project(g, 9, 1) };

	for (int i = 1; i <= 200; i++)
		index_rig_add_project(g, i + 10, 1);
	assert_true(starve(hungry, &h) >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, index_rig_setup, index_rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_store_is_not_complete_until_a_job_has_ended),
		TEST(one_that_was_asked_for_leaves_the_index_as_complete_as_it_was),
		TEST(a_store_from_before_has_a_whole_index),
		TEST(the_higher_rev_wins_and_a_copy_on_its_way_wins_over_nothing),
		TEST(a_slug_that_another_project_has_is_refused),
		TEST(what_no_shard_has_told_of_is_removed_with_its_runs),
		TEST(no_more_are_removed_at_once_than_was_said),
		TEST(what_is_made_meanwhile_stays),
		TEST(what_was_removed_meanwhile_does_not_come_back),
		TEST(emptying_leaves_the_accounts),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
