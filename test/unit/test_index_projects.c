/*
 * test/unit/test_index_projects.c -- the directory of projects.
 */
#include "test/support/index_rig.h"
#include "test/support/unit.h"

static void
a_slug_belongs_to_one_project_of_its_owner(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 2, 1);

	index_rig_add_project(g, 1, 1);
	p.slug = "project-1";
	assert_int_equal(index_project_add(g->s, &p), E_EXISTS);
	p.owner_slug = "user-2";
	assert_int_equal(index_project_add(g->s, &p), 0);
}

static void
a_project_is_confirmed_with_the_shard_that_has_it(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), got;

	p.confirmed = 0;
	p.shard = 2;
	assert_int_equal(index_project_add(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_false(got.confirmed);
	assert_int_equal(index_project_confirm(g->s, p.id, 3), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_true(got.confirmed);
	assert_int_equal(got.shard, 3);
	assert_null(got.last_run_status);
	/* Nothing takes a confirmed one back. */
	assert_int_equal(index_project_remove_unconfirmed(g->s, p.id), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_int_equal(index_project_confirm(g->s, index_rig_id(g, "prj_", 9), 0), E_NOENT);
}

static void
an_unconfirmed_project_is_in_no_list_and_is_found_when_it_is_old(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 5, 1), *rows;
	size_t n;

	p.confirmed = 0;
	assert_int_equal(index_project_add(g->s, &p), 0);
	assert_int_equal(index_project_list(g->s, g->a, p.owner_user_id, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(
	    index_project_unconfirmed(g->s, g->a, INDEX_RIG_NOW + 5, &rows, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(
	    index_project_unconfirmed(g->s, g->a, INDEX_RIG_NOW + 6, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].id, p.id);
	assert_int_equal(index_project_remove_unconfirmed(g->s, p.id), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &p), E_NOENT);
	assert_int_equal(index_project_add(g->s, &rows[0]), 0); /* its slug is free again */
}

static void
a_list_has_its_owners_projects_by_their_newest_change(void **state)
{
	static const int order[] = { 3, 5, 4, 1 };
	struct index_rig *g = *state;
	struct index_project p, *rows;
	size_t n;

	for (int i = 1; i <= 5; i++) {
		p = index_rig_project(g, i, i == 2 ? 2 : 1);
		p.updated_at = i == 3 ? INDEX_RIG_NOW + 100
				      : INDEX_RIG_NOW + (i == 5 ? 4 : i); /* 4 and 5 alike */
		assert_int_equal(index_project_add(g->s, &p), 0);
	}
	assert_int_equal(
	    index_project_list(g->s, g->a, index_rig_id(g, "usr_", 1), &rows, &n), 0);
	assert_int_equal(n, ARRAY_LEN(order));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(rows[i].id, index_rig_id(g, "prj_", order[i]));
	assert_int_equal(index_project_list(g->s, g->a, NULL, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-2", "project-2", &p), 0);
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-1", "project-2", &p), E_NOENT);
}

static void
a_list_tells_the_status_of_the_newest_run(void **state)
{
	struct index_rig *g = *state;
	struct index_run r;
	struct index_project p;

	index_rig_add_project(g, 1, 1);
	for (int i = 1; i <= 3; i++) {
		r = index_rig_run(g, i, 1);
		r.status = i == 2 ? "running" : "queued";
		r.queued_at = INDEX_RIG_NOW +
		    (i == 3 ? 0 : 7); /* 1 and 2 alike: the id decides */
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	assert_int_equal(index_project_get(g->s, g->a, index_rig_id(g, "prj_", 1), &p), 0);
	assert_string_equal(p.last_run_status, "running");
}

static void
a_lower_rev_and_an_older_answer_change_nothing(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), got;

	p.rev = 5;
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	p.name = "Older";
	p.rev = 4;
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_string_equal(got.name, "Project 1");
	p.name = "Answer";
	assert_int_equal(index_project_refresh(g->s, &p), 0); /* same updated_at */
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_string_equal(got.name, "Project 1");
	p.updated_at++;
	assert_int_equal(index_project_refresh(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_string_equal(got.name, "Answer");
	assert_int_equal(got.rev, 5);
	p.name = "Newer";
	p.rev = 5;
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_string_equal(got.name, "Newer");
}

static void
a_badge_is_told_by_every_way_into_the_index(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), got;

	p.badge_public = 1;
	assert_int_equal(index_project_add(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_true(got.badge_public);
	p.badge_public = 0;
	p.updated_at++;
	assert_int_equal(index_project_refresh(g->s, &p), 0);
	assert_int_equal(index_project_by_slug(g->s, g->a, p.owner_slug, p.slug, &got), 0);
	assert_false(got.badge_public);
	p.badge_public = 1;
	p.rev = 2;
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	assert_int_equal(index_project_by_slug(g->s, g->a, p.owner_slug, p.slug, &got), 0);
	assert_true(got.badge_public);
	p.badge_public = 0;
	p.rev = 3;
	assert_int_equal(index_project_exported(g->s, &p, 1), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_false(got.badge_public);
	p = index_rig_project(g, 2, 1);
	p.badge_public = 1;
	assert_int_equal(index_project_exported(g->s, &p, 1), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_true(got.badge_public);
	/* No other case of the letters finds it. */
	assert_int_equal(index_project_by_slug(g->s, g->a, "User-1", p.slug, &got), E_NOENT);
	assert_int_equal(
	    index_project_by_slug(g->s, g->a, p.owner_slug, "PROJECT-2", &got), E_NOENT);
}

static void
a_shards_word_confirms_and_may_not_take_another_projects_slug(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), got;

	p.confirmed = 0;
	assert_int_equal(index_project_add(g->s, &p), 0);
	p.rev = 1;
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	assert_int_equal(index_project_get(g->s, g->a, p.id, &got), 0);
	assert_true(got.confirmed);
	p.id = index_rig_id(g, "prj_", 2);
	assert_int_equal(index_project_upsert(g->s, &p), E_EXISTS);
}

static int64_t
unconfirmed(const struct index_rig *g)
{
	struct index_project *rows;
	size_t n;

	assert_int_equal(
	    index_project_unconfirmed(g->s, g->a, INDEX_RIG_NOW + 100, &rows, &n), 0);
	return (int64_t)n;
}

static void
a_name_is_kept_for_a_project_that_is_given_away(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), other = index_rig_project(g, 2, 2),
			     got;
	const char *keeper = index_rig_id(g, "prj_", 8);

	index_rig_add_project(g, 1, 1);
	p.owner_user_id = index_rig_id(g, "usr_", 2);
	p.owner_slug = "user-2";
	p.rev = 3;
	assert_int_equal(index_project_keep_name(g->s, &p, keeper, INDEX_RIG_NOW), 0);
	/* Again, as after a crash; and nobody else may have it. */
	keeper = index_rig_id(g, "prj_", 9);
	assert_int_equal(index_project_keep_name(g->s, &p, keeper, INDEX_RIG_NOW), 0);
	assert_int_equal(unconfirmed(g), 1);
	other.slug = p.slug;
	assert_int_equal(index_project_add(g->s, &other), E_EXISTS);
	other.id = index_rig_id(g, "prj_", 2);
	assert_int_equal(index_project_keep_name(g->s, &other, "prj_x", 1), E_EXISTS);
	/* The old owner's is his until the shard tells otherwise. */
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-1", p.slug, &got), 0);
	assert_string_equal(got.id, p.id);
	assert_int_equal(index_project_upsert(g->s, &p), 0);
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-1", p.slug, &got), E_NOENT);
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-2", p.slug, &got), 0);
	assert_string_equal(got.id, p.id);
	assert_string_equal(got.owner_user_id, p.owner_user_id);
	assert_int_equal(unconfirmed(g), 0);
}

static void
a_name_that_was_kept_in_vain_is_free_again(void **state)
{
	struct index_rig *g = *state;
	struct index_project p = index_rig_project(g, 1, 1), other = index_rig_project(g, 2, 2);
	const char *keeper = index_rig_id(g, "prj_", 9);

	index_rig_add_project(g, 1, 1);
	p.owner_slug = "user-2";
	assert_int_equal(index_project_keep_name(g->s, &p, keeper, INDEX_RIG_NOW), 0);
	assert_int_equal(unconfirmed(g), 1);
	assert_int_equal(index_project_remove_unconfirmed(g->s, keeper), 0);
	other.slug = p.slug;
	assert_int_equal(index_project_add(g->s, &other), 0);
	assert_int_equal(index_project_keep_name(g->s, &p, keeper, INDEX_RIG_NOW), E_EXISTS);
	/* A page of a shard that has it already brings it into its name as well. */
	p.owner_slug = "user-3";
	assert_int_equal(index_project_keep_name(g->s, &p, keeper, INDEX_RIG_NOW), 0);
	p.rev = 2;
	assert_int_equal(index_project_exported(g->s, &p, 1), 0);
	assert_int_equal(index_project_by_slug(g->s, g->a, "user-3", p.slug, &other), 0);
	assert_string_equal(other.id, p.id);
	assert_int_equal(unconfirmed(g), 0);
}

static void
removing_a_project_takes_its_runs_along(void **state)
{
	struct index_rig *g = *state;
	struct index_project p;
	struct index_run r;

	for (int i = 1; i <= 2; i++) {
		index_rig_add_project(g, i, 1);
		r = index_rig_run(g, i, i);
		assert_int_equal(index_run_upsert(g->s, &r), 0);
	}
	assert_int_equal(index_project_remove(g->s, index_rig_id(g, "prj_", 1)), 0);
	assert_int_equal(
	    index_project_get(g->s, g->a, index_rig_id(g, "prj_", 1), &p), E_NOENT);
	assert_int_equal(index_run_get(g->s, g->a, index_rig_id(g, "run_", 1), &r), E_NOENT);
	assert_int_equal(index_run_get(g->s, g->a, index_rig_id(g, "run_", 2), &r), 0);
}

static void
a_new_project_goes_to_the_shard_with_the_fewest(void **state)
{
	static const int64_t chosen[] = { 0, 1, 2, 0, 1, 2, 0 };
	struct index_rig *g = *state;
	struct index_project p;
	int64_t shard;

	for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
		p = index_rig_project(g, (int)i + 1, 1);
		p.confirmed = (int)i % 2;
		assert_int_equal(index_project_choose_shard(g->s, 3, &p.shard), 0);
		assert_int_equal(p.shard, chosen[i]);
		assert_int_equal(index_project_add(g->s, &p), 0);
	}
	/* A shard that came later is empty; one that is not used any more is not chosen. */
	assert_int_equal(index_project_choose_shard(g->s, 4, &shard), 0);
	assert_int_equal(shard, 3);
	assert_int_equal(index_project_choose_shard(g->s, 1, &shard), 0);
	assert_int_equal(shard, 0);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, index_rig_setup, index_rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_slug_belongs_to_one_project_of_its_owner),
		TEST(a_project_is_confirmed_with_the_shard_that_has_it),
		TEST(an_unconfirmed_project_is_in_no_list_and_is_found_when_it_is_old),
		TEST(a_list_has_its_owners_projects_by_their_newest_change),
		TEST(a_list_tells_the_status_of_the_newest_run),
		TEST(a_lower_rev_and_an_older_answer_change_nothing),
		TEST(a_badge_is_told_by_every_way_into_the_index),
		TEST(a_shards_word_confirms_and_may_not_take_another_projects_slug),
		TEST(a_name_is_kept_for_a_project_that_is_given_away),
		TEST(a_name_that_was_kept_in_vain_is_free_again),
		TEST(removing_a_project_takes_its_runs_along),
		TEST(a_new_project_goes_to_the_shard_with_the_fewest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
