/* Configuration of a project: create, update, list, remove. */

#include "test/support/starve.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

static struct ledger_project
values(const struct ledger_rig *rig)
{
	return (struct ledger_project) { .project_id = rig_prj(rig, 1),
		.owner_user_id = rig_usr(rig, 1),
		.owner_slug = "acme",
		.project_slug = "app",
		.name = "An app",
		.repo_url = "https://git.example/acme/app.git",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.token = { "c2VhbGVk", "bm9uY2U", 3 },
		.created_at = rig->now };
}

static enum ledger_created
create(const struct ledger_rig *rig, const struct ledger_project *p)
{
	enum ledger_created kind;

	assert_int_equal(ledger_project_create(rig->s, rig->a, p, &kind), 0);
	return kind;
}

static struct ledger_project
get(const struct ledger_rig *rig)
{
	struct ledger_project p;

	assert_int_equal(ledger_project_get(rig->s, rig->a, rig_prj(rig, 1), &p), 0);
	return p;
}

static struct ledger_project
update(const struct ledger_rig *rig, const struct ledger_change *c)
{
	struct ledger_project p, stored;
	int stale;

	assert_int_equal(
	    ledger_project_update(rig->s, rig->a, rig_prj(rig, 1), c, rig->now, &p, &stale), 0);
	stored = get(rig);
	assert_string_equal(p.name, stored.name);
	assert_string_equal(p.repo_url, stored.repo_url);
	assert_string_equal(p.default_branch, stored.default_branch);
	assert_string_equal(p.config_path, stored.config_path);
	assert_int_equal(p.updated_at, stored.updated_at);
	assert_int_equal(p.index_rev, stored.index_rev);
	assert_int_equal(p.index_current, stored.index_current);
	assert_int_equal(p.badge_public, stored.badge_public);
	return stored;
}

static void
a_new_project_is_live_and_unknown_to_the_index(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig), p;

	assert_int_equal(ledger_project_get(rig->s, rig->a, v.project_id, &p), E_NOENT);
	assert_int_equal(create(rig, &v), LEDGER_CREATED);
	p = get(rig);
	assert_string_equal(p.owner_user_id, v.owner_user_id);
	assert_string_equal(p.owner_slug, "acme");
	assert_string_equal(p.project_slug, "app");
	assert_string_equal(p.name, "An app");
	assert_string_equal(p.repo_url, v.repo_url);
	assert_string_equal(p.default_branch, "main");
	assert_string_equal(p.config_path, ".anvil.yml");
	assert_string_equal(p.token.ciphertext, "c2VhbGVk");
	assert_string_equal(p.token.nonce, "bm9uY2U");
	assert_int_equal(p.token.key_version, 3);
	assert_int_equal(p.created_at, rig->now);
	assert_int_equal(p.updated_at, rig->now);
	assert_string_equal(p.phase, "live");
	assert_false(p.index_current);
	assert_int_equal(p.index_rev, 1);
}

static void
a_project_may_have_no_token(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig);

	v.token = (struct ledger_sealed) { 0 };
	assert_int_equal(create(rig, &v), LEDGER_CREATED);
	assert_null(get(rig).token.ciphertext);
	assert_null(get(rig).token.nonce);
}

static void
the_same_values_exist_and_others_conflict(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig);

	assert_int_equal(create(rig, &v), LEDGER_CREATED);
	rig->now += 1000;
	assert_int_equal(create(rig, &v), LEDGER_EXISTS);
	/* Sealed anew by the repeat. */
	v.token.ciphertext = "b3RoZXI";
	v.token.nonce = "YWdhaW4";
	assert_int_equal(create(rig, &v), LEDGER_EXISTS);
	assert_string_equal(get(rig).token.ciphertext, "c2VhbGVk");
#define CONFLICTS(member, value)                                               \
	do {                                                                   \
		struct ledger_project other = values(rig);                     \
		other.member = value;                                          \
		assert_int_equal(create(rig, &other), LEDGER_CREATE_CONFLICT); \
	} while (0)
	CONFLICTS(owner_user_id, rig_usr(rig, 2));
	CONFLICTS(owner_slug, "other");
	CONFLICTS(project_slug, "other");
	CONFLICTS(name, "Other");
	CONFLICTS(repo_url, "https://git.example/other.git");
	CONFLICTS(default_branch, "other");
	CONFLICTS(config_path, "other.yml");
	CONFLICTS(token.ciphertext, NULL);
	CONFLICTS(badge_public, 1);
#undef CONFLICTS
	assert_string_equal(get(rig).name, "An app");
}

static void
an_update_changes_what_is_given_and_always_moves_the_time(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig), p;
	struct ledger_change c = { .name = "New name" };

	(void)create(rig, &v);
	assert_int_equal(ledger_project_synced(rig->s, v.project_id, 1), 0);
	rig->now += 500;
	p = update(rig, &c);
	assert_string_equal(p.name, "New name");
	assert_string_equal(p.repo_url, v.repo_url);
	assert_string_equal(p.token.ciphertext, "c2VhbGVk");
	assert_int_equal(p.created_at, v.created_at);
	assert_int_equal(p.updated_at, rig->now);
	assert_int_equal(p.index_rev, 2);
	assert_false(p.index_current);
	/* Twice in one millisecond, and with a clock that was set back. */
	assert_int_equal(update(rig, &c).updated_at, rig->now + 1);
	rig->now -= 100000;
	assert_int_equal(update(rig, &c).updated_at, rig->now + 100002);
	c = (struct ledger_change) { .repo_url = "https://git.example/new.git",
		.default_branch = "trunk",
		.config_path = "ci.yml" };
	p = update(rig, &c);
	assert_string_equal(p.name, "New name");
	assert_string_equal(p.repo_url, "https://git.example/new.git");
	assert_string_equal(p.default_branch, "trunk");
	assert_string_equal(p.config_path, "ci.yml");
}

static void
a_token_stays_is_replaced_or_cleared(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig);
	struct ledger_change keep = { .name = "x" };
	struct ledger_change replace = { .set_token = 1, .token = { "bmV3", "bmV4dA", 4 } };
	struct ledger_change clear = { .set_token = 1 };

	(void)create(rig, &v);
	assert_string_equal(update(rig, &keep).token.ciphertext, "c2VhbGVk");
	assert_string_equal(update(rig, &replace).token.ciphertext, "bmV3");
	assert_int_equal(get(rig).token.key_version, 4);
	assert_null(update(rig, &clear).token.ciphertext);
	assert_null(get(rig).token.nonce);
}

static void
a_badge_is_off_until_it_is_asked_for_and_is_as_quiet_as_a_name(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_change on = { .set_badge_public = 1, .badge_public = 1 };
	struct ledger_change off = { .set_badge_public = 1 }, keep = { .name = "x" };
	struct ledger_project v = values(rig), p;
	int64_t version;
	int stale;

	(void)create(rig, &v);
	version = rig_webhook(rig, 1, "github", 1).updated_at;
	assert_int_equal(get(rig).badge_public, 0);
	assert_int_equal(ledger_project_synced(rig->s, v.project_id, 1), 0);
	rig->now += 10;
	assert_int_equal(
	    ledger_project_update(rig->s, rig->a, v.project_id, &on, rig->now, &p, &stale), 0);
	assert_int_equal(p.badge_public, 1);
	assert_false(stale);
	assert_int_equal(rig_stored(rig, 1, "github").updated_at, version);
	p = get(rig);
	assert_int_equal(p.updated_at, rig->now);
	assert_int_equal(p.index_rev, 2);
	assert_false(p.index_current);
	assert_int_equal(update(rig, &keep).badge_public, 1);
	assert_int_equal(update(rig, &off).badge_public, 0);
}

static void
a_new_project_may_have_a_badge_at_once(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig);

	v.badge_public = 1;
	assert_int_equal(create(rig, &v), LEDGER_CREATED);
	assert_int_equal(get(rig).badge_public, 1);
	assert_int_equal(create(rig, &v), LEDGER_EXISTS);
}

static void
another_owner_is_told_to_the_index_and_the_same_is_not(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project v = values(rig), p;
	int64_t version;

	(void)create(rig, &v);
	version = rig_webhook(rig, 1, "github", 1).updated_at;
	assert_int_equal(ledger_project_synced(rig->s, v.project_id, 1), 0);
	rig->now += 10;
	assert_int_equal(ledger_project_set_owner(rig->s, rig->a, v.project_id, rig_usr(rig, 2),
			     "other", rig->now, &p),
	    0);
	assert_string_equal(p.owner_user_id, rig_usr(rig, 2));
	for (int again = 0; again < 2; again++) {
		struct ledger_project stored = get(rig);

		assert_string_equal(stored.owner_user_id, rig_usr(rig, 2));
		assert_string_equal(stored.owner_slug, "other");
		assert_string_equal(stored.project_slug, "app");
		assert_string_equal(stored.token.ciphertext, "c2VhbGVk");
		assert_int_equal(stored.updated_at, v.created_at + 10);
		assert_int_equal(stored.index_rev, 2);
		assert_false(stored.index_current);
		assert_int_equal(p.updated_at, stored.updated_at);
		assert_int_equal(p.index_rev, stored.index_rev);
		rig->now += 10;
		assert_int_equal(ledger_project_set_owner(rig->s, rig->a, v.project_id,
				     rig_usr(rig, 2), "other", rig->now, &p),
		    0);
	}
	assert_int_equal(rig_stored(rig, 1, "github").updated_at, version);
	/* An account that was made anew has the same slug and another id. */
	assert_int_equal(ledger_project_set_owner(rig->s, rig->a, v.project_id, rig_usr(rig, 3),
			     "other", rig->now, &p),
	    0);
	assert_int_equal(get(rig).index_rev, 3);
}

static void
a_project_that_is_not_here_is_not_updated_or_removed(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_change c = { .name = "x" };
	struct ledger_project p;
	int stale;

	assert_int_equal(
	    ledger_project_update(rig->s, rig->a, rig_prj(rig, 1), &c, rig->now, &p, &stale),
	    E_NOENT);
	assert_int_equal(ledger_project_set_owner(rig->s, rig->a, rig_prj(rig, 1),
			     rig_usr(rig, 2), "other", rig->now, &p),
	    E_NOENT);
	assert_int_equal(
	    ledger_project_begin_removal(rig->s, rig_prj(rig, 1), rig->now), E_NOENT);
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 1)), 0);
	assert_int_equal(ledger_project_was_removed(rig->s, rig_prj(rig, 1)), 0);
}

static void
what_was_removed_stays_known(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_project(rig, 2);
	assert_int_equal(ledger_project_begin_removal(rig->s, rig_prj(rig, 1), rig->now), 0);
	assert_int_equal(ledger_project_was_removed(rig->s, rig_prj(rig, 1)), 0);
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 1)), 0);
	assert_int_equal(ledger_project_was_removed(rig->s, rig_prj(rig, 1)), 1);
	assert_int_equal(ledger_project_was_removed(rig->s, rig_prj(rig, 2)), 0);
}

static void
projects_are_listed_by_id_in_pages(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project *page;
	const char *after = "";
	int seen = 0;
	size_t n;

	for (int i = 30; i > 0; i--)
		rig_project(rig, i);
	for (;;) {
		assert_int_equal(ledger_project_list(rig->s, rig->a, after, 7, &page, &n), 0);
		if (n == 0)
			break;
		assert_true(n <= 7);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(page[i].project_id, rig_prj(rig, ++seen));
		after = page[n - 1].project_id;
	}
	assert_int_equal(seen, 30);
}

static void
a_removed_project_takes_everything_along(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_project p;
	struct ledger_run run;
	const char **ids;
	size_t n;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_accept(rig, 1, 1);
	rig_accept(rig, 2, 2);
	assert_int_equal(ledger_project_removing(rig->s, rig->a, &ids, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ledger_project_begin_removal(rig->s, rig_prj(rig, 1), rig->now), 0);
	assert_string_equal(get(rig).phase, "removing");
	assert_int_equal(ledger_project_removing(rig->s, rig->a, &ids, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(ids[0], rig_prj(rig, 1));
	/* Its runs can still be ended. */
	rig_cancel(rig, 1);
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 1)), 0);
	assert_int_equal(ledger_project_get(rig->s, rig->a, rig_prj(rig, 1), &p), E_NOENT);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, 1), &run), E_NOENT);
	assert_int_equal(rig_row(rig, 2).state, LEDGER_EXECUTABLE);
	/* The id could be made again. */
	rig_project(rig, 1);
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_change c = { .name = "x" };
	struct ledger_project *page, p;
	size_t n;
	int r, stale;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	assert_int_equal(store_exec(rig.s, "SAVEPOINT hungry"), 0);
	r = ledger_project_update(
	    rig.s, rig.a, "prj_0000000000000000000001", &c, rig.now, &p, &stale);
	if (r == 0)
		r = ledger_project_set_owner(rig.s, rig.a, "prj_0000000000000000000001",
		    "usr_0000000000000000000009", "other", rig.now, &p);
	if (r == 0)
		r = ledger_project_list(rig.s, rig.a, "", 100, &page, &n);
	assert_int_equal(store_exec(rig.s, "ROLLBACK TO hungry"), 0);
	assert_int_equal(store_exec(rig.s, "RELEASE hungry"), 0);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	for (int n = 1; n <= 40; n++)
		rig_project(rig, n);
	assert_true(starve(hungry, rig) >= 4);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_project_is_live_and_unknown_to_the_index),
		TEST(a_project_may_have_no_token),
		TEST(the_same_values_exist_and_others_conflict),
		TEST(an_update_changes_what_is_given_and_always_moves_the_time),
		TEST(a_token_stays_is_replaced_or_cleared),
		TEST(a_badge_is_off_until_it_is_asked_for_and_is_as_quiet_as_a_name),
		TEST(a_new_project_may_have_a_badge_at_once),
		TEST(another_owner_is_told_to_the_index_and_the_same_is_not),
		TEST(a_project_that_is_not_here_is_not_updated_or_removed),
		TEST(what_was_removed_stays_known),
		TEST(projects_are_listed_by_id_in_pages),
		TEST(a_removed_project_takes_everything_along),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
