/*
 * test/unit/test_index_runs.c -- the index of runs: which word wins, pages, prefixes.
 */
#include <stdio.h>
#include <string.h>

#include "test/support/index_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static int
setup(void **state)
{
	int r = index_rig_setup(state);

	index_rig_add_project(*state, 1, 1);
	return r;
}

static struct index_run
get(const struct index_rig *g, int n)
{
	struct index_run r;

	assert_int_equal(index_run_get(g->s, g->a, index_rig_id(g, "run_", n), &r), 0);
	return r;
}

static struct index_run
ended(const struct index_rig *g, int n, int64_t rev)
{
	struct index_run r = index_rig_run(g, n, 1);

	r.rev = rev;
	r.status = "failed";
	r.started_at = INDEX_RIG_NOW + 1;
	r.finished_at = INDEX_RIG_NOW + 2;
	r.has_exit_code = 1;
	r.exit_code = 3;
	r.failure_code = "step_failed";
	r.error_message = "Step 1 failed";
	return r;
}

static void
all_values_come_back_as_they_went_in(void **state)
{
	struct index_rig *g = *state;
	struct index_run in = ended(g, 1, 7), out;

	in.commit_sha = "0123456789abcdef0123456789abcdef01234567";
	assert_int_equal(index_run_upsert(g->s, &in), 0);
	out = get(g, 1);
	assert_string_equal(out.project_id, in.project_id);
	assert_string_equal(out.trigger_type, "manual");
	assert_string_equal(out.triggered_by_user_id, in.triggered_by_user_id);
	assert_string_equal(out.branch, "main");
	assert_string_equal(out.commit_sha, in.commit_sha);
	assert_string_equal(out.status, "failed");
	assert_int_equal(out.rev, 7);
	assert_int_equal(out.queued_at, in.queued_at);
	assert_int_equal(out.started_at, in.started_at);
	assert_int_equal(out.finished_at, in.finished_at);
	assert_true(out.has_exit_code);
	assert_int_equal(out.exit_code, 3);
	assert_string_equal(out.failure_code, "step_failed");
	assert_string_equal(out.error_message, "Step 1 failed");
}

static void
the_higher_rev_wins_and_a_commit_is_never_forgotten(void **state)
{
	struct index_rig *g = *state;
	struct index_run r = index_rig_run(g, 1, 1), got;

	r.rev = 3;
	r.status = "running";
	r.started_at = INDEX_RIG_NOW;
	r.commit_sha = "abcdef0";
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	r.rev = 2;
	r.status = "starting";
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	assert_string_equal(get(g, 1).status, "running");
	r.rev = 4;
	r.status = "queued"; /* released */
	r.started_at = 0;
	r.commit_sha = NULL;
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	got = get(g, 1);
	assert_string_equal(got.status, "queued");
	assert_int_equal(got.started_at, 0);
	assert_string_equal(got.commit_sha, "abcdef0");
	r.status = "starting"; /* the same rev again: a replay, or the row of an accept */
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	assert_string_equal(get(g, 1).status, "starting");
}

static void
an_ended_run_takes_nothing_but_a_commit(void **state)
{
	struct index_rig *g = *state;
	struct index_run r = ended(g, 1, 5), got;

	assert_int_equal(index_run_upsert(g->s, &r), 0);
	r = index_rig_run(g, 1, 1);
	r.rev = 9;
	r.status = "running";
	r.commit_sha = "abcdef0";
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	got = get(g, 1);
	assert_string_equal(got.status, "failed");
	assert_int_equal(got.rev, 5);
	assert_string_equal(got.commit_sha, "abcdef0");
	r.commit_sha = NULL;
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	assert_string_equal(get(g, 1).commit_sha, "abcdef0");
	/* Another end of a higher rev is the newer word. */
	r = ended(g, 1, 6);
	r.failure_code = "runner_lost";
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	assert_string_equal(get(g, 1).failure_code, "runner_lost");
}

static void
a_run_of_a_project_that_is_not_here_is_not_taken(void **state)
{
	struct index_rig *g = *state;
	struct index_run r = index_rig_run(g, 1, 9);

	assert_int_equal(index_run_upsert(g->s, &r), E_NOENT);
	assert_int_equal(index_run_get(g->s, g->a, r.id, &r), E_NOENT);
}

static void
the_row_of_an_accept_never_overwrites(void **state)
{
	struct index_rig *g = *state;
	struct index_run r = index_rig_run(g, 1, 1);

	assert_int_equal(index_run_add_if_absent(g->s, &r), 0);
	r.rev = 2;
	r.status = "starting";
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	r = index_rig_run(g, 1, 1);
	assert_int_equal(index_run_add_if_absent(g->s, &r), 0);
	assert_string_equal(get(g, 1).status, "starting");
}

static void
pages_have_every_run_once_from_the_newest_on(void **state)
{
	struct index_rig *g = *state;
	struct index_run r, *rows;
	struct index_run_page page = { .project_id = index_rig_id(g, "prj_", 1), .limit = 3 };
	int seen = 0, more = 1;
	size_t n;

	index_rig_add_project(g, 2, 1);
	for (int i = 1; i <= 10; i++) {
		r = index_rig_run(g, i, 1);
		r.queued_at = INDEX_RIG_NOW + i / 4; /* several at the same time */
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	r = index_rig_run(g, 99, 2);
	assert_int_equal(index_run_upsert(g->s, &r), 0);
	while (more) {
		assert_int_equal(index_run_list(g->s, g->a, &page, &rows, &n, &more), 0);
		assert_int_equal(n, more ? 3 : 1);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(rows[i].id, index_rig_id(g, "run_", 10 - seen++));
		page.before_queued_at = rows[n - 1].queued_at;
		page.before_id = rows[n - 1].id;
	}
	assert_int_equal(seen, 10);
	/* Exactly full: nothing follows. */
	page.before_id = NULL;
	page.limit = 10;
	assert_int_equal(index_run_list(g->s, g->a, &page, &rows, &n, &more), 0);
	assert_int_equal(n, 10);
	assert_false(more);
	page.project_id = index_rig_id(g, "prj_", 3);
	assert_int_equal(index_run_list(g->s, g->a, &page, &rows, &n, &more), 0);
	assert_int_equal(n, 0);
}

static void
a_beginning_finds_one_run_or_says_that_there_are_more(void **state)
{
	struct index_rig *g = *state;
	struct index_run r;
	const char *ids[2];
	size_t n;

	for (int i = 10; i <= 13; i++) {
		r = index_rig_run(g, i, 1);
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	assert_int_equal(index_run_find(g->s, g->a, index_rig_id(g, "run_", 12), ids, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(ids[0], index_rig_id(g, "run_", 12));
	assert_int_equal(index_run_find(g->s, g->a, "run_0000", ids, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(index_run_find(g->s, g->a, "run_1", ids, &n), 0);
	assert_int_equal(n, 0);
}

static int
read_page(void *arg)
{
	struct index_rig *g = arg;
	struct arena *a = arena_new();
	struct index_run_page page = { .project_id = "prj_0000000000000000000001",
		.limit = 50 };
	struct index_run *rows;
	size_t n;
	int more, r = a != NULL ? index_run_list(g->s, a, &page, &rows, &n, &more) : E_NOMEM;

	(void)arena_free(a);
	return r;
}

static void
the_newest_run_of_a_branch_is_found_by_time_and_then_by_id(void **state)
{
	static const struct {
		const char *branch, *status;
		int at;
	} runs[] = { { "main", "passed", 3 }, { "main", "queued", 9 }, { "main", "running", 9 },
		{ "topic", "canceling", 20 }, { "Main", "starting", 21 } };
	struct index_rig *g = *state;
	const char *project = index_rig_id(g, "prj_", 1), *status;
	struct index_run r;

	assert_int_equal(
	    index_run_newest_status(g->s, g->a, project, "main", &status), E_NOENT);
	for (int i = 0; i < (int)ARRAY_LEN(runs); i++) {
		r = index_rig_run(g, i + 1, 1);
		r.branch = runs[i].branch;
		r.status = runs[i].status;
		r.queued_at = INDEX_RIG_NOW + runs[i].at;
		r.finished_at = strcmp(r.status, "passed") == 0 ? r.queued_at : 0;
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	assert_int_equal(index_run_newest_status(g->s, g->a, project, "main", &status), 0);
	assert_string_equal(status, "running");
	assert_int_equal(index_run_newest_status(g->s, g->a, project, "topic", &status), 0);
	assert_string_equal(status, "canceling");
	assert_int_equal(index_run_newest_status(g->s, g->a, project, "top", &status), E_NOENT);
}

static void
a_page_survives_every_failed_allocation(void **state)
{
	struct index_rig *g = *state;
	struct index_run r;

	for (int i = 1; i <= 20; i++) {
		r = index_rig_run(g, i, 1);
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	assert_int_equal(read_page(g), 0); /* its statement is prepared now */
	assert_true(starve(read_page, g) > 0);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, index_rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_values_come_back_as_they_went_in),
		TEST(the_higher_rev_wins_and_a_commit_is_never_forgotten),
		TEST(an_ended_run_takes_nothing_but_a_commit),
		TEST(a_run_of_a_project_that_is_not_here_is_not_taken),
		TEST(the_row_of_an_accept_never_overwrites),
		TEST(pages_have_every_run_once_from_the_newest_on),
		TEST(a_beginning_finds_one_run_or_says_that_there_are_more),
		TEST(the_newest_run_of_a_branch_is_found_by_time_and_then_by_id),
		TEST(a_page_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
