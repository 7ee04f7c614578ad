/*
 * test/unit/test_index_accounts.c -- users, passwords, invites, sessions and tickets in ingress.db.
 */

#include "lib/base/mem.h"
#include "test/support/index_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

static void
a_user_is_found_by_id_address_or_slug(void **state)
{
	struct index_rig *g = *state;
	const char *const names[] = { "usr_0000000000000000000002", "user2@example.com",
		"user-2" };
	struct index_user u;

	index_rig_add_user(g, 1);
	index_rig_add_user(g, 2);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(index_user_find(g->s, g->a, names[i], &u), 0);
		assert_string_equal(u.display_name, "User 2");
		assert_int_equal(u.created_at, INDEX_RIG_NOW + 2);
		assert_int_equal(u.disabled_at, 0);
	}
	assert_int_equal(index_user_find(g->s, g->a, "nobody", &u), E_NOENT);
	assert_int_equal(index_user_by_email(g->s, g->a, "User2@example.com", &u), E_NOENT);
	assert_int_equal(index_user_by_email(g->s, g->a, "user1@example.com", &u), 0);
	assert_string_equal(u.slug, "user-1");
}

static void
a_taken_address_is_told_before_a_taken_slug(void **state)
{
	struct index_rig *g = *state;
	struct index_user u = index_rig_user(g, 1);
	const char *taken = NULL;

	index_rig_add_user(g, 1);
	u.id = index_rig_id(g, "usr_", 9);
	assert_int_equal(index_user_add(g->s, &u, "hash", &taken), E_EXISTS);
	assert_string_equal(taken, "email");
	u.email = "other@example.com";
	assert_int_equal(index_user_add(g->s, &u, "hash", &taken), E_EXISTS);
	assert_string_equal(taken, "slug");
	u.slug = "USER-1"; /* case counts */
	assert_int_equal(index_user_add(g->s, &u, "hash", &taken), 0);
}

static void
users_are_listed_from_the_oldest(void **state)
{
	struct index_rig *g = *state;
	struct index_user *all;
	size_t n;

	assert_int_equal(index_user_list(g->s, g->a, &all, &n), 0);
	assert_int_equal(n, 0);
	for (int i = 40; i > 0; i--)
		index_rig_add_user(g, i);
	assert_int_equal(index_user_list(g->s, g->a, &all, &n), 0);
	assert_int_equal(n, 40);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(all[i].created_at, INDEX_RIG_NOW + 1 + (int64_t)i);
}

static void
disabling_is_told_and_taken_back(void **state)
{
	struct index_rig *g = *state;
	const char *id = index_rig_id(g, "usr_", 1);
	struct index_user u;

	index_rig_add_user(g, 1);
	assert_int_equal(index_user_set_disabled(g->s, id, INDEX_RIG_NOW), 0);
	assert_int_equal(index_user_by_id(g->s, g->a, id, &u), 0);
	assert_int_equal(u.disabled_at, INDEX_RIG_NOW);
	assert_int_equal(index_user_set_disabled(g->s, id, 0), 0);
	assert_int_equal(index_user_by_id(g->s, g->a, id, &u), 0);
	assert_int_equal(u.disabled_at, 0);
	assert_int_equal(index_user_set_disabled(g->s, index_rig_id(g, "usr_", 9), 1), E_NOENT);
}

static void
a_new_password_ends_the_users_sessions_alone(void **state)
{
	struct index_rig *g = *state;
	const char *first = index_rig_id(g, "usr_", 1), *second = index_rig_id(g, "usr_", 2);
	struct index_session session;
	const char *hash;

	index_rig_add_user(g, 1);
	index_rig_add_user(g, 2);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(index_session_add(g->s, index_rig_hash(g, i), first,
				     INDEX_RIG_NOW, INDEX_RIG_NOW + HOUR_MS),
		    0);
	}
	assert_int_equal(index_session_add(g->s, index_rig_hash(g, 3), second, INDEX_RIG_NOW,
			     INDEX_RIG_NOW + HOUR_MS),
	    0);
	assert_int_equal(index_password_get(g->s, g->a, first, &hash), 0);
	assert_string_equal(hash, "hash");
	assert_int_equal(index_password_set(g->s, first, "new", INDEX_RIG_NOW), 0);
	assert_int_equal(index_password_get(g->s, g->a, first, &hash), 0);
	assert_string_equal(hash, "new");
	for (int i = 1; i <= 3; i++)
		assert_int_equal(index_session_get(
				     g->s, g->a, index_rig_hash(g, i), INDEX_RIG_NOW, &session),
		    i < 3 ? E_NOENT : 0);
	assert_int_equal(index_password_get(g->s, g->a, index_rig_id(g, "usr_", 9), &hash), 0);
	assert_null(hash);
}

static void
a_session_lives_up_to_its_expiry_and_moves_it_when_refreshed(void **state)
{
	struct index_rig *g = *state;
	const char *hash = index_rig_hash(g, 1);
	int64_t until = INDEX_RIG_NOW + HOUR_MS;
	struct index_session s;

	index_rig_add_user(g, 1);
	assert_int_equal(
	    index_session_add(g->s, hash, index_rig_id(g, "usr_", 1), INDEX_RIG_NOW, until), 0);
	assert_int_equal(index_session_get(g->s, g->a, hash, until - 1, &s), 0);
	assert_int_equal(s.version, 1);
	assert_int_equal(index_session_refresh(g->s, hash, until + HOUR_MS), 0);
	assert_int_equal(index_session_get(g->s, g->a, hash, until, &s), 0);
	assert_int_equal(s.version, 2);
	assert_int_equal(s.issued_at, INDEX_RIG_NOW);
	assert_int_equal(s.expires_at, until + HOUR_MS);
	/* Expired: gone, and its row with it. */
	assert_int_equal(index_session_get(g->s, g->a, hash, s.expires_at, &s), E_NOENT);
	assert_int_equal(index_session_get(g->s, g->a, hash, INDEX_RIG_NOW, &s), E_NOENT);
	assert_int_equal(index_session_refresh(g->s, hash, until), E_NOENT);
	assert_int_equal(index_session_remove(g->s, hash), 0);
}

static void
an_invite_is_accepted_once(void **state)
{
	struct index_rig *g = *state;
	struct index_invite in = { .id = index_rig_id(g, "inv_", 1),
		.token_hash = index_rig_hash(g, 1),
		.created_by = "operator",
		.created_at = INDEX_RIG_NOW,
		.expires_at = INDEX_RIG_NOW + HOUR_MS };
	struct index_invite out;

	index_rig_add_user(g, 1);
	assert_int_equal(index_invite_add(g->s, &in), 0);
	assert_int_equal(index_invite_by_hash(g->s, g->a, index_rig_hash(g, 2), &out), E_NOENT);
	assert_int_equal(index_invite_by_hash(g->s, g->a, in.token_hash, &out), 0);
	assert_string_equal(out.created_by, "operator");
	assert_int_equal(out.expires_at, in.expires_at);
	assert_int_equal(out.accepted_at, 0);
	assert_int_equal(
	    index_invite_accept(g->s, in.id, index_rig_id(g, "usr_", 1), INDEX_RIG_NOW + 5), 0);
	assert_int_equal(index_invite_by_hash(g->s, g->a, in.token_hash, &out), 0);
	assert_int_equal(out.accepted_at, INDEX_RIG_NOW + 5);
	assert_int_equal(
	    index_invite_accept(g->s, in.id, index_rig_id(g, "usr_", 1), INDEX_RIG_NOW + 6),
	    E_EXISTS);
}

static void
a_ticket_is_taken_once_whatever_it_is_good_for(void **state)
{
	struct index_rig *g = *state;
	const struct index_ticket in = { "run_0000000000000000000001",
		index_rig_id(g, "usr_", 1), INDEX_RIG_NOW + 60000 };
	struct index_ticket out;

	index_rig_add_user(g, 1);
	assert_int_equal(index_ticket_add(g->s, index_rig_hash(g, 1), &in), 0);
	assert_int_equal(index_ticket_add(g->s, index_rig_hash(g, 2), &in), 0);
	assert_int_equal(index_ticket_take(g->s, g->a, index_rig_hash(g, 3), &out), E_NOENT);
	assert_int_equal(index_ticket_take(g->s, g->a, index_rig_hash(g, 1), &out), 0);
	assert_string_equal(out.run_id, in.run_id);
	assert_string_equal(out.user_id, in.user_id);
	assert_int_equal(out.expires_at, in.expires_at);
	assert_int_equal(index_ticket_take(g->s, g->a, index_rig_hash(g, 1), &out), E_NOENT);
	assert_int_equal(index_ticket_take(g->s, g->a, index_rig_hash(g, 2), &out), 0);
}

static void
the_sweep_takes_what_is_over_and_keeps_invites_a_month_more(void **state)
{
	struct index_rig *g = *state;
	struct index_invite in = { .id = index_rig_id(g, "inv_", 1),
		.token_hash = index_rig_hash(g, 1),
		.created_by = "operator",
		.created_at = INDEX_RIG_NOW,
		.expires_at = INDEX_RIG_NOW + HOUR_MS };
	struct index_invite out;

	index_rig_add_user(g, 1);
	assert_int_equal(index_invite_add(g->s, &in), 0);
	assert_int_equal(index_session_add(g->s, index_rig_hash(g, 1),
			     index_rig_id(g, "usr_", 1), INDEX_RIG_NOW, INDEX_RIG_NOW + 1),
	    0);
	assert_int_equal(store_exec(g->s,
			     "INSERT INTO log_tickets VALUES (printf('%064d', 1),"
			     " 'run_0000000000000000000001', 'usr_0000000000000000000001', 5)"),
	    0);
	assert_int_equal(index_accounts_sweep(g->s, in.expires_at + 30 * DAY_MS - 1), 0);
	assert_int_equal(index_invite_by_hash(g->s, g->a, in.token_hash, &out), 0);
	assert_int_equal(store_exec(g->s,
			     "INSERT INTO log_tickets VALUES (printf('%064d', 1),"
			     " 'run_0000000000000000000001', 'usr_0000000000000000000001', 5)"),
	    0); /* the first one has gone */
	assert_int_equal(index_accounts_sweep(g->s, in.expires_at + 30 * DAY_MS), 0);
	assert_int_equal(index_invite_by_hash(g->s, g->a, in.token_hash, &out), E_NOENT);
}

static int
list_users(void *arg)
{
	struct index_rig *g = arg;
	struct arena *a = arena_new();
	struct index_user *all;
	size_t n;
	int r = a != NULL ? index_user_list(g->s, a, &all, &n) : E_NOMEM;

	(void)arena_free(a);
	return r;
}

static void
a_list_survives_every_failed_allocation(void **state)
{
	struct index_rig *g = *state;

	for (int i = 1; i <= 20; i++)
		index_rig_add_user(g, i);
	assert_int_equal(list_users(g), 0); /* its statement is prepared now */
	assert_true(starve(list_users, g) > 0);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, index_rig_setup, index_rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_user_is_found_by_id_address_or_slug),
		TEST(a_taken_address_is_told_before_a_taken_slug),
		TEST(users_are_listed_from_the_oldest),
		TEST(disabling_is_told_and_taken_back),
		TEST(a_new_password_ends_the_users_sessions_alone),
		TEST(a_session_lives_up_to_its_expiry_and_moves_it_when_refreshed),
		TEST(an_invite_is_accepted_once),
		TEST(a_ticket_is_taken_once_whatever_it_is_good_for),
		TEST(the_sweep_takes_what_is_over_and_keeps_invites_a_month_more),
		TEST(a_list_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
