/* Webhooks: made, changed, removed, their versions; attempts that were refused. */

#include "test/support/starve.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

static void
a_new_webhook_is_stored_as_it_is(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w;

	rig_project(rig, 1);
	assert_int_equal(
	    ledger_webhook_get(rig->s, rig->a, rig_prj(rig, 1), "gitea", &w), E_NOENT);
	rig->now += 5;
	w = rig_webhook(rig, 1, "gitea", 1);
	assert_int_equal(w.created_at, rig->now);
	assert_int_equal(w.updated_at, rig->now);
	w = rig_stored(rig, 1, "gitea");
	assert_string_equal(w.webhook_id, rig_whk(rig, 1));
	assert_string_equal(w.project_id, rig_prj(rig, 1));
	assert_string_equal(w.provider, "gitea");
	assert_true(w.enabled);
	assert_string_equal(w.instance_url, "https://git.example");
	assert_string_equal(w.secret.ciphertext, "c2VjcmV01");
	assert_string_equal(w.secret.nonce, "bm9uY2U");
	assert_int_equal(w.secret.key_version, 1);
	assert_int_equal(w.created_at, rig->now);
	assert_int_equal(w.updated_at, rig->now);
	assert_true(rig_holds(rig, "(SELECT config_json FROM project_webhooks) = '%s'",
	    "{\"instanceUrl\":\"https://git.example\"}"));
	rig_webhook(rig, 1, "github", 2);
	assert_null(rig_stored(rig, 1, "github").instance_url);
}

static void
of_two_creates_one_wins_and_a_repeat_of_it_does_too(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w, first;

	rig_project(rig, 1);
	first = rig_webhook(rig, 1, "github", 1);
	rig->now += 1000;
	w = first;
	w.enabled = 0; /* was changed since */
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	w = first;
	assert_int_equal(ledger_webhook_create(rig->s, rig->a, &w, rig->now + 1), 0);
	assert_false(w.enabled);
	assert_int_equal(w.created_at, first.created_at);
	assert_int_equal(w.updated_at, rig->now);
	w = first;
	w.webhook_id = rig_whk(rig, 2);
	assert_int_equal(ledger_webhook_create(rig->s, rig->a, &w, rig->now), E_EXISTS);
	w = first;
	w.secret.ciphertext = "b3RoZXI";
	assert_int_equal(ledger_webhook_create(rig->s, rig->a, &w, rig->now), E_EXISTS);
	assert_string_equal(
	    rig_stored(rig, 1, "github").secret.ciphertext, first.secret.ciphertext);
	assert_true(rig_holds(rig, "(SELECT count(*) FROM project_webhooks) = 1"));
}

static void
webhooks_are_listed_by_the_name_of_the_provider(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook *list;
	size_t n;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_webhook(rig, 1, "gitlab", 1);
	rig_webhook(rig, 1, "github", 2);
	rig_webhook(rig, 1, "gitea", 3);
	rig_webhook(rig, 2, "gitea", 4);
	assert_int_equal(ledger_webhook_list(rig->s, rig->a, rig_prj(rig, 1), &list, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[0].provider, "gitea");
	assert_string_equal(list[1].provider, "github");
	assert_string_equal(list[2].provider, "gitlab");
	assert_int_equal(ledger_webhook_list(rig->s, rig->a, rig_prj(rig, 3), &list, &n), 0);
	assert_int_equal(n, 0);
}

static void
every_change_moves_the_version_upwards(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w;
	int64_t version;

	rig_project(rig, 1);
	w = rig_webhook(rig, 1, "gitlab", 1);
	version = w.updated_at;
	rig->now += 500;
	w.enabled = 0;
	w.instance_url = "https://lab.example";
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	assert_int_equal(w.updated_at, rig->now);
	w = rig_stored(rig, 1, "gitlab");
	assert_false(w.enabled);
	assert_string_equal(w.instance_url, "https://lab.example");
	assert_int_equal(w.updated_at, version + 500);
	assert_int_equal(w.created_at, version);
	/* Nothing differs, in one millisecond; a clock that was set back. */
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	assert_int_equal(rig_stored(rig, 1, "gitlab").updated_at, version + 501);
	rig->now -= HOUR_MS;
	w.secret = (struct ledger_sealed) { "bmV3", "bm9uY2Uy", 7 };
	w.instance_url = NULL;
	assert_int_equal(ledger_webhook_save(rig->s, &w, rig->now), 0);
	w = rig_stored(rig, 1, "gitlab");
	assert_int_equal(w.updated_at, version + 502);
	assert_string_equal(w.secret.ciphertext, "bmV3");
	assert_string_equal(w.secret.nonce, "bm9uY2Uy");
	assert_int_equal(w.secret.key_version, 7);
	assert_null(w.instance_url);
}

static void
a_project_that_changes_moves_the_versions_of_its_webhooks(void **state)
{
	static const struct {
		struct ledger_change change;
		int moves;
	} rows[] = {
		{ { .name = "Other" }, 0 },
		{ { .set_token = 1, .token = { "eA", "eQ", 2 } }, 0 },
		{ { .repo_url = "https://git.example/acme/app.git" }, 0 }, /* as it is */
		{ { .default_branch = "main", .config_path = ".anvil.yml" }, 0 },
		{ { .repo_url = "https://git.example/acme/other" }, 1 },
		{ { .default_branch = "trunk" }, 1 },
		{ { .config_path = "ci.yml" }, 1 },
		{ { .name = "More", .default_branch = "main" }, 1 },
	};
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_webhook(rig, 1, "github", 1);
	rig_webhook(rig, 1, "gitea", 2);
	rig_webhook(rig, 2, "gitea", 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t hub = rig_stored(rig, 1, "github").updated_at;
		int64_t tea = rig_stored(rig, 1, "gitea").updated_at;
		struct ledger_project p;
		int stale;

		/* Every other time within the same millisecond. */
		rig->now += i % 2 == 0 ? 0 : 100;
		assert_int_equal(ledger_project_update(rig->s, rig->a, rig_prj(rig, 1),
				     &rows[i].change, rig->now, &p, &stale),
		    0);
		assert_int_equal(stale, rows[i].moves);
		assert_int_equal(rig_stored(rig, 1, "github").updated_at,
		    rows[i].moves ? max_i64(rig->now, hub + 1) : hub);
		assert_int_equal(rig_stored(rig, 1, "gitea").updated_at,
		    rows[i].moves ? max_i64(rig->now, tea + 1) : tea);
	}
	assert_int_equal(rig_stored(rig, 2, "gitea").updated_at, RIG_START_MS);
}

static void
removal_takes_secret_and_refusals_and_leaves_deliveries(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_refusal f = {
		.at = rig->now, .reason = "bad_json", .client_address = "192.0.2.1", .count = 1
	};
	struct ledger_webhook w;
	struct ledger_offer o;

	rig_project(rig, 1);
	w = rig_webhook(rig, 1, "github", 1);
	o = rig_push(rig, &w, 1, 1);
	(void)rig_record(rig, &o);
	assert_int_equal(ledger_refusal_add(rig->s, w.webhook_id, &f), 0);
	assert_int_equal(
	    ledger_webhook_remove(rig->s, w.project_id, "gitlab", rig->now), E_NOENT);
	assert_int_equal(ledger_webhook_remove(rig->s, w.project_id, "github", rig->now), 0);
	assert_int_equal(
	    ledger_webhook_remove(rig->s, w.project_id, "github", rig->now), E_NOENT);
	assert_true(rig_holds(rig, "NOT EXISTS (SELECT 1 FROM project_webhooks)"));
	assert_true(rig_holds(rig, "NOT EXISTS (SELECT 1 FROM project_webhook_refusals)"));
	assert_true(rig_has_deliveries(rig, 1));
	/* Made again, its deliveries go on being known. */
	rig->now += 1;
	w = rig_webhook(rig, 1, "github", 2);
	o.webhook_id = w.webhook_id;
	o.version = w.updated_at;
	o.delivery.run_id = rig_run(rig, 2);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_REPLAYED);
}

static void
webhooks_are_checked_in_the_schema(void **state)
{
	static const char *const bad[] = { "webhook_id = 'whk_1'", "provider = 'bitbucket'",
		"enabled = 2", "config_json = '{}'", "config_json = 'https://x'",
		"config_json = '{\"instanceUrl\":\"\"}'", "secret_ciphertext = NULL",
		"secret_ciphertext = ''", "secret_nonce = ''", "secret_key_version = 0" };
	static const char *const illegal[] = { "webhook_id = 'whk_0000000000000000000009'",
		"project_id = 'prj_0000000000000000000002'", "provider = 'gitea'",
		"created_at = created_at + 1", "updated_at = updated_at - 1" };
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_project(rig, 2);
	rig_webhook(rig, 1, "gitlab", 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int r = rig_exec(rig, "UPDATE project_webhooks SET %s", bad[i]);

		if (r != E_CONSTRAINT && r != E_ILLEGAL)
			fail_msg("%s", bad[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(illegal); i++)
		if (rig_exec(rig, "UPDATE project_webhooks SET %s", illegal[i]) != E_ILLEGAL)
			fail_msg("%s: %s", illegal[i], store_error(rig->s));
	/* What belongs to a forge. */
	assert_int_equal(rig_exec(rig, "DELETE FROM project_webhooks"), 0);
	rig_webhook(rig, 1, "github", 1);
	assert_int_equal(rig_exec(rig, "UPDATE project_webhooks SET config_json = '%s'",
			     "{\"instanceUrl\":\"https://github.com\"}"),
	    E_CONSTRAINT);
	rig_webhook(rig, 1, "gitea", 2);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_webhooks SET config_json = NULL WHERE"
			     " provider = 'gitea'"),
	    E_CONSTRAINT);
}

/* ---- refused attempts ---- */

static void
refuse(const struct ledger_rig *rig, const char *reason, const char *address)
{
	struct ledger_refusal f = { .at = rig->now,
		.reason = reason,
		.hint = "what would be right",
		.event_name = "push",
		.delivery_id = "as claimed",
		.has_body_bytes = 1,
		.body_bytes = 12,
		.client_address = address,
		.count = 1 };

	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 1), &f), 0);
}

static size_t
refusals(const struct ledger_rig *rig, struct ledger_refusal **ret)
{
	size_t n;

	assert_int_equal(ledger_refusals(rig->s, rig->a, rig_whk(rig, 1), ret, &n), 0);
	return n;
}

static void
equal_attempts_within_a_minute_are_one_entry_with_what_the_newest_says(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_refusal *list, f;

	rig_project(rig, 1);
	rig_webhook(rig, 1, "github", 1);
	assert_int_equal(refusals(rig, &list), 0);
	refuse(rig, "signature_mismatch", "192.0.2.1");
	rig->now += 10;
	refuse(rig, "signature_mismatch", "192.0.2.2");
	rig->now += 10;
	refuse(rig, "bad_json", "192.0.2.1");
	rig->now += 10;
	f = (struct ledger_refusal) { .at = rig->now,
		.reason = "signature_mismatch",
		.client_address = "192.0.2.1",
		.count = 3 };
	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 1), &f), 0);
	assert_int_equal(refusals(rig, &list), 3);
	assert_string_equal(list[0].reason, "signature_mismatch");
	assert_string_equal(list[0].client_address, "192.0.2.1");
	assert_int_equal(list[0].count, 4);
	assert_int_equal(list[0].at, rig->now);
	assert_null(list[0].hint);
	assert_null(list[0].event_name);
	assert_null(list[0].delivery_id);
	assert_false(list[0].has_body_bytes);
	assert_string_equal(list[1].reason, "bad_json");
	assert_string_equal(list[1].hint, "what would be right");
	assert_string_equal(list[1].event_name, "push");
	assert_string_equal(list[1].delivery_id, "as claimed");
	assert_true(list[1].has_body_bytes);
	assert_int_equal(list[1].body_bytes, 12);
	assert_string_equal(list[2].client_address, "192.0.2.2");
	/* One that is told late makes nothing younger. */
	f.at -= 5000;
	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 1), &f), 0);
	assert_int_equal(refusals(rig, &list), 3);
	assert_int_equal(list[0].at, rig->now);
	assert_int_equal(list[0].count, 7);
	/* After a minute it is another entry. */
	rig->now += 60001;
	refuse(rig, "signature_mismatch", "192.0.2.1");
	assert_int_equal(refusals(rig, &list), 4);
	assert_int_equal(list[0].count, 1);
	rig_sound(rig);
}

static void
ten_entries_are_stored_in_a_minute_and_twenty_are_kept(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_refusal *list;

	rig_project(rig, 1);
	rig_webhook(rig, 1, "github", 1);
	for (int i = 0; i < 50; i++)
		refuse(rig, "bad_json", arena_format(rig->a, "192.0.2.%d", i));
	assert_int_equal(refusals(rig, &list), LEDGER_REFUSALS_MINUTE);
	assert_string_equal(list[0].client_address, "192.0.2.9");
	/* What is there already goes on being counted. */
	refuse(rig, "bad_json", "192.0.2.3");
	assert_int_equal(refusals(rig, &list), LEDGER_REFUSALS_MINUTE);
	assert_string_equal(list[0].client_address, "192.0.2.3");
	assert_int_equal(list[0].count, 2);
	for (int minute = 1; minute <= 5; minute++) {
		rig->now += 60001;
		for (int i = 0; i < 12; i++)
			refuse(rig, "timeout", arena_format(rig->a, "%d.%d", minute, i));
	}
	assert_int_equal(refusals(rig, &list), LEDGER_REFUSALS_KEPT);
	assert_string_equal(list[0].client_address, "5.9");
	assert_string_equal(list[9].client_address, "5.0");
	assert_string_equal(list[19].client_address, "4.0");
	for (size_t i = 1; i < LEDGER_REFUSALS_KEPT; i++)
		assert_true(list[i].at <= list[i - 1].at);
	rig_sound(rig);
	/* A clock that was set back closes nothing for long. */
	rig->now -= 24 * HOUR_MS;
	refuse(rig, "timeout", "6.0");
	assert_int_equal(refusals(rig, &list), LEDGER_REFUSALS_KEPT);
	assert_string_equal(list[0].client_address, "6.0");
}

static void
attempts_belong_to_a_webhook_that_is_there(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_refusal f = {
		.at = 1, .reason = "bad_json", .client_address = "192.0.2.1", .count = 1
	};

	rig_project(rig, 1);
	rig_webhook(rig, 1, "github", 1);
	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 2), &f), E_CONSTRAINT);
	f.reason = "bad_luck";
	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 1), &f), E_CONSTRAINT);
	f.reason = "timeout";
	f.count = 0;
	assert_int_equal(ledger_refusal_add(rig->s, rig_whk(rig, 1), &f), E_CONSTRAINT);
}

/* ---- memory ---- */

static int
hungry(void *arg)
{
	struct ledger_rig rig = *(struct ledger_rig *)arg;
	struct ledger_refusal *refused;
	struct ledger_webhook *list, w;
	size_t n;
	int r;

	rig.a = arena_new();
	if (rig.a == NULL)
		return E_NOMEM;
	r = ledger_webhook_get(rig.s, rig.a, "prj_0000000000000000000001", "github", &w);
	if (r == 0)
		r = ledger_webhook_create(rig.s, rig.a, &w, rig.now);
	if (r == 0)
		r = ledger_webhook_list(rig.s, rig.a, "prj_0000000000000000000001", &list, &n);
	if (r == 0)
		r = ledger_refusals(rig.s, rig.a, "whk_0000000000000000000001", &refused, &n);
	(void)arena_free(rig.a);
	return r;
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	rig_project(rig, 1);
	rig_webhook(rig, 1, "github", 1);
	rig_webhook(rig, 1, "gitea", 2);
	for (int i = 0; i < 10; i++)
		refuse(rig, "bad_json", arena_format(rig->a, "192.0.2.%d", i));
	assert_true(starve(hungry, rig) >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_webhook_is_stored_as_it_is),
		TEST(of_two_creates_one_wins_and_a_repeat_of_it_does_too),
		TEST(webhooks_are_listed_by_the_name_of_the_provider),
		TEST(every_change_moves_the_version_upwards),
		TEST(a_project_that_changes_moves_the_versions_of_its_webhooks),
		TEST(removal_takes_secret_and_refusals_and_leaves_deliveries),
		TEST(webhooks_are_checked_in_the_schema),
		TEST(equal_attempts_within_a_minute_are_one_entry_with_what_the_newest_says),
		TEST(ten_entries_are_stored_in_a_minute_and_twenty_are_kept),
		TEST(attempts_belong_to_a_webhook_that_is_there),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
