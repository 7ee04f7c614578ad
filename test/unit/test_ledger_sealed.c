/* Every sealed secret of a shard is met once, and replaced only where it is what was read. */
#include <string.h>

#include "test/support/starve.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

#define NPROJECTS 7

/* Seven projects, the token of each under the key of its number; webhooks under key 1. */
static void
begin(struct ledger_rig *rig)
{
	for (int p = 1; p <= NPROJECTS; p++)
		rig_project(rig, p);
	for (int p = 1; p <= 4; p++)
		rig_webhook(rig, p, "github", p);
	rig_webhook(rig, 2, "gitea", 5);
}

static size_t
list(const struct ledger_rig *rig, int64_t below, const char *cursor, size_t limit,
    struct ledger_sealed_row **ret, const char **ret_next)
{
	struct ledger_at at = rig_at(rig);
	size_t n;

	assert_int_equal(ledger_sealed_list(&at, below, cursor, limit, ret, &n, ret_next), 0);
	return n;
}

/* The row and its table as one word. */
static const char *
name_of(const struct ledger_rig *rig, const struct ledger_sealed_row *v)
{
	return arena_format(rig->a, "%s/%s", v->table, v->row_id);
}

static void
pages_of_any_size_hold_each_old_secret_once(void **state)
{
	struct ledger_rig *rig = *state;
	const char *all[16];
	size_t nall = 0;

	begin(rig);
	for (size_t limit = 1; limit <= 10; limit++) {
		const char *cursor = NULL, *names[16];
		size_t n = 0, pages = 0;

		do {
			struct ledger_sealed_row *rows;
			size_t got = list(rig, 4, cursor, limit, &rows, &cursor);

			assert_true(got <= limit);
			assert_true(cursor == NULL || (got == limit && strlen(cursor) <= 128));
			for (size_t i = 0; i < got; i++)
				names[n++] = name_of(rig, &rows[i]);
			assert_true(pages++ < 12);
		} while (cursor != NULL);
		/* Tokens under the keys 1, 2, 3; five webhooks. */
		assert_int_equal(n, 8);
		if (limit == 1) {
			memcpy(all, names, sizeof(names));
			nall = n;
		}
		assert_int_equal(n, nall);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(names[i], all[i]);
	}
}

static void
a_row_tells_what_a_secret_is_bound_to(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_sealed_row *rows;
	const char *next;

	begin(rig);
	assert_int_equal(list(rig, 2, NULL, 500, &rows, &next), 6);
	assert_null(next);
	assert_string_equal(rows[0].table, "project_config");
	assert_string_equal(rows[0].column, "repo_token");
	assert_string_equal(rows[0].row_id, rig_prj(rig, 1));
	assert_string_equal(rows[0].project_id, rig_prj(rig, 1));
	assert_string_equal(rows[0].sealed.ciphertext, "c2VhbGVk");
	assert_string_equal(rows[0].sealed.nonce, "bm9uY2U");
	assert_int_equal(rows[0].sealed.key_version, 1);
	assert_string_equal(rows[5].table, "project_webhooks");
	assert_string_equal(rows[5].column, "secret");
	assert_string_equal(rows[5].row_id, rig_whk(rig, 5));
	assert_string_equal(rows[5].project_id, rig_prj(rig, 2));
	assert_string_equal(rows[5].sealed.ciphertext, "c2VjcmV05");
	assert_int_equal(list(rig, 1, NULL, 500, &rows, &next), 0);
	assert_null(next);
	/* A project without a token has none that could be old. */
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_config SET repo_token_ciphertext = NULL,"
			     " repo_token_nonce = NULL, repo_token_key_version = NULL"),
	    0);
	assert_int_equal(list(rig, 100, NULL, 500, &rows, &next), 5);
}

static void
what_is_no_cursor_or_no_secret_is_invalid(void **state)
{
	static const char *const cursors[] = { "", "x", "project_config", "projectconfig/x",
		"project_runs/run_1", "/" };
	struct ledger_rig *rig = *state;
	struct ledger_at at = rig_at(rig);
	struct ledger_sealed_row *rows;
	struct ledger_sealed_row to = { .table = "project_config",
		.row_id = "prj_0000000000000000000001",
		.column = "secret",
		.sealed = { "bmV3", "bg", 9 } };
	const char *next, *project;
	size_t n;

	begin(rig);
	for (size_t i = 0; i < ARRAY_LEN(cursors); i++)
		assert_int_equal(
		    ledger_sealed_list(&at, 2, cursors[i], 5, &rows, &n, &next), E_INVAL);
	assert_int_equal(
	    ledger_sealed_replace(rig->s, rig->a, &to, "c2VhbGVk", &project), E_INVAL);
	to.table = "project_runs";
	assert_int_equal(
	    ledger_sealed_replace(rig->s, rig->a, &to, "c2VhbGVk", &project), E_INVAL);
}

static void
a_secret_is_replaced_only_where_it_is_what_was_read(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_sealed_row to = { .table = "project_webhooks",
		.row_id = rig_whk(rig, 5),
		.column = "secret",
		.sealed = { "bmV3", "bg", 9 } };
	struct ledger_webhook before, w;
	struct ledger_project p;
	const char *project;

	begin(rig);
	rig->now += 1000;
	before = rig_stored(rig, 2, "gitea");
	assert_int_equal(ledger_sealed_replace(rig->s, rig->a, &to, "b2xk", &project), 0);
	assert_null(project);
	w = rig_stored(rig, 2, "gitea");
	assert_string_equal(w.secret.ciphertext, before.secret.ciphertext);
	assert_int_equal(
	    ledger_sealed_replace(rig->s, rig->a, &to, before.secret.ciphertext, &project), 0);
	assert_string_equal(project, rig_prj(rig, 2));
	w = rig_stored(rig, 2, "gitea");
	assert_string_equal(w.secret.ciphertext, "bmV3");
	assert_string_equal(w.secret.nonce, "bg");
	assert_int_equal(w.secret.key_version, 9);
	assert_int_equal(w.updated_at, before.updated_at);
	assert_true(w.enabled);
	/* Its reply was lost: the same once more. */
	assert_int_equal(
	    ledger_sealed_replace(rig->s, rig->a, &to, before.secret.ciphertext, &project), 0);
	assert_string_equal(project, rig_prj(rig, 2));
	to.row_id = rig_whk(rig, 77);
	assert_int_equal(ledger_sealed_replace(rig->s, rig->a, &to, "bmV3", &project), 0);
	assert_null(project);

	/* A token; the time of its project stays, and so do others. */
	to = (struct ledger_sealed_row) { .table = "project_config",
		.row_id = rig_prj(rig, 3),
		.column = "repo_token",
		.sealed = { "bmV3", "bg", 9 } };
	assert_int_equal(ledger_sealed_replace(rig->s, rig->a, &to, "c2VhbGVk", &project), 0);
	assert_string_equal(project, rig_prj(rig, 3));
	assert_int_equal(ledger_project_get(rig->s, rig->a, rig_prj(rig, 3), &p), 0);
	assert_string_equal(p.token.ciphertext, "bmV3");
	assert_int_equal(p.token.key_version, 9);
	assert_int_equal(p.updated_at, RIG_START_MS);
	assert_int_equal(p.index_rev, 1);
	assert_int_equal(ledger_project_get(rig->s, rig->a, rig_prj(rig, 4), &p), 0);
	assert_string_equal(p.token.ciphertext, "c2VhbGVk");
}

/* A walk that replaces as it goes, with others that come and go meanwhile, ends with none left
 * under an old key. */
static void
a_walk_that_replaces_misses_nothing(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_sealed_row *rows;
	const char *cursor = NULL, *project;
	size_t n;
	int step = 0;

	begin(rig);
	do {
		n = list(rig, 9, cursor, 3, &rows, &cursor);
		for (size_t i = 0; i < n; i++) {
			rows[i].sealed.key_version = 9;
			assert_int_equal(ledger_sealed_replace(rig->s, rig->a, &rows[i],
					     rows[i].sealed.ciphertext, &project),
			    0);
			assert_non_null(project);
		}
		if (step++ == 1)
			assert_int_equal(
			    ledger_webhook_remove(rig->s, rig_prj(rig, 2), "gitea", rig->now),
			    0);
	} while (cursor != NULL);
	assert_int_equal(list(rig, 9, NULL, 500, &rows, &cursor), 0);
}

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_sealed_row *rows;
	const char *next, *project;
	struct ledger_at at;
	size_t n;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	at = rig_at(&rig);
	r = ledger_sealed_list(&at, 100, NULL, 12, &rows, &n, &next);
	if (r == 0)
		r = ledger_sealed_replace(
		    rig.s, rig.a, &rows[0], rows[0].sealed.ciphertext, &project);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	begin(rig);
	assert_true(starve(hungry, rig) >= 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_of_any_size_hold_each_old_secret_once),
		TEST(a_row_tells_what_a_secret_is_bound_to),
		TEST(what_is_no_cursor_or_no_secret_is_invalid),
		TEST(a_secret_is_replaced_only_where_it_is_what_was_read),
		TEST(a_walk_that_replaces_misses_nothing),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
