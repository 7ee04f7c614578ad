/*
 * test/unit/test_anvil-ingress_webhooks_view.c -- webhooks as clients see them.
 */
#include <string.h>

#include "cmd/anvil-ingress/webhooks_view.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define NOW INT64_C(1700000000000)
#define SHA "0123456789abcdef0123456789abcdef01234567"

static const struct webhooks_place place = { .public_url = "https://ci.example.org",
	.project_id = "prj_0123456789abcdefghijAB",
	.owner_slug = "ann",
	.project_slug = "Hello" };
static const struct webhook_config config = { .instance_url = "https://git.example.org" };
static const struct webhook_row row = { .webhook_id = "whk_0123456789abcdefghijAB",
	.provider = PROVIDER_GITEA,
	.enabled = 1,
	.config = &config,
	.created_at = NOW,
	.updated_at = NOW + 1 };
static const struct delivery_row deliveries[] = {
	{ .payload = { .provider = PROVIDER_GITEA,
	      .delivery_id = "d-2",
	      .event_kind = EVENT_KIND_PUSH,
	      .event_name = "push",
	      .repository_url = "https://git.example.org/a/b",
	      .ref = "refs/heads/main",
	      .branch = "main",
	      .commit_sha = SHA,
	      .body_sha256 = SHA "0123456789abcdef01234567",
	      .body_bytes = 12 },
	    .outcome = OUTCOME_ACCEPTED,
	    .reason = "run created",
	    .run_id = "run_0123456789abcdefghijAB",
	    .received_at = NOW + 3 },
	{ .payload = { .provider = PROVIDER_GITEA,
	      .delivery_id = "d-1",
	      .event_kind = EVENT_KIND_PING,
	      .event_name = "ping",
	      .repository_url = "https://git.example.org/a/b",
	      .body_sha256 = SHA "0123456789abcdef01234567" },
	    .outcome = OUTCOME_IGNORED_PING,
	    .reason = "ping",
	    .received_at = NOW + 2 },
};
static const struct refusal_row refusals[] = {
	{ .at = NOW + 4,
	    .reason = REFUSAL_REASON_SIGNATURE_MISMATCH,
	    .hint = "the secret differs",
	    .client_address = "192.0.2.1",
	    .count = 3 },
};
static const struct webhook_entry entry = { .deliveries = deliveries,
	.ndeliveries = ARRAY_LEN(deliveries),
	.refusals = refusals,
	.nrefusals = ARRAY_LEN(refusals) };

static void
the_delivery_url_names_forge_owner_and_project(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	assert_string_equal(webhooks_delivery_url(a, &place, PROVIDER_GITHUB),
	    "https://ci.example.org/api/public/hooks/github/ann/Hello");
	assert_string_equal(webhooks_delivery_url(a, &place, PROVIDER_GITLAB),
	    "https://ci.example.org/api/public/hooks/gitlab/ann/Hello");
}

static void
a_summary_has_every_member_of_the_contract(void **state)
{
	static const char want[] =
	    "{\"id\":\"whk_0123456789abcdefghijAB\","
	    "\"projectId\":\"prj_0123456789abcdefghijAB\",\"provider\":\"gitea\","
	    "\"enabled\":true,\"config\":{\"instanceUrl\":\"https://git.example.org\"},"
	    "\"deliveryUrl\":\"https://ci.example.org/api/public/hooks/gitea/ann/Hello\","
	    "\"createdAt\":\"2023-11-14T22:13:20.000Z\","
	    "\"updatedAt\":\"2023-11-14T22:13:20.001Z\","
	    "\"recentDeliveries\":[{\"provider\":\"gitea\",\"deliveryId\":\"d-2\","
	    "\"eventKind\":\"push\",\"eventName\":\"push\",\"outcome\":\"accepted\","
	    "\"reason\":\"run created\",\"repositoryUrl\":\"https://git.example.org/a/b\","
	    "\"ref\":\"refs/heads/main\",\"branch\":\"main\",\"commitSha\":\"" SHA "\","
	    "\"beforeSha\":null,\"runId\":\"run_0123456789abcdefghijAB\","
	    "\"bodySha256\":\"" SHA "0123456789abcdef01234567\",\"bodyBytes\":12,"
	    "\"receivedAt\":\"2023-11-14T22:13:20.003Z\"},"
	    "{\"provider\":\"gitea\",\"deliveryId\":\"d-1\",\"eventKind\":\"ping\","
	    "\"eventName\":\"ping\",\"outcome\":\"ignored_ping\",\"reason\":\"ping\","
	    "\"repositoryUrl\":\"https://git.example.org/a/b\",\"ref\":null,\"branch\":null,"
	    "\"commitSha\":null,\"beforeSha\":null,\"runId\":null,"
	    "\"bodySha256\":\"" SHA "0123456789abcdef01234567\",\"bodyBytes\":0,"
	    "\"receivedAt\":\"2023-11-14T22:13:20.002Z\"}],"
	    "\"recentRefusals\":[{\"at\":\"2023-11-14T22:13:20.004Z\","
	    "\"reason\":\"signature_mismatch\",\"hint\":\"the secret differs\","
	    "\"eventName\":null,\"deliveryId\":null,\"bodyBytes\":null,"
	    "\"clientAddress\":\"192.0.2.1\",\"count\":3}]}";
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct http_webhook_summary s;

	(void)state;
	assert_int_equal(webhooks_summary(a, &place, &row, &entry, &s), 0);
	assert_int_equal(http_webhook_summary_encode(&out, &s), 0);
	assert_string_equal(buf_cstr(&out), want);
}

static void
without_a_history_the_lists_are_empty(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct webhook_row plain = row;
	struct http_webhook_summary s;

	(void)state;
	plain.config = NULL;
	plain.provider = PROVIDER_GITLAB;
	assert_int_equal(webhooks_summary(a, &place, &plain, NULL, &s), 0);
	assert_int_equal(http_webhook_summary_encode(&out, &s), 0);
	assert_non_null(strstr(buf_cstr(&out), "\"config\":null,"));
	assert_non_null(
	    strstr(buf_cstr(&out), "\"recentDeliveries\":[],\"recentRefusals\":[]}"));
}

static void
a_summary_survives_every_failed_allocation(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		struct http_webhook_summary s;
		struct arena *a;
		int hit, r = E_NOMEM;

		mem_fault_arm(n);
		a = arena_new();
		if (a != NULL)
			r = webhooks_summary(a, &place, &row, &entry, &s);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		(void)arena_free(a);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		if (!hit)
			break;
	}
	assert_true(n > 1);
}

static void
each_refusal_names_the_field_at_fault(void **state)
{
	static const char url[] = "https://git.example.org";
	static const struct {
		enum http_code code;
		struct webhooks_asked asked;
		const char *issues;
	} rows[] = {
		{ HTTP_CODE_INVALID_WEBHOOK_SECRET, { PROVIDER_GITHUB, NULL },
		    "{\"issues\":[{\"path\":\"secret\",\"expected\":\"absent\","
		    "\"message\":\"no \\\"x\\\"\"}]}" },
		{ HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, { PROVIDER_GITHUB, url },
		    "{\"issues\":[{\"path\":\"config\",\"expected\":\"Null\","
		    "\"message\":\"no \\\"x\\\"\"}]}" },
		{ HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, { PROVIDER_GITHUB, NULL }, "" },
		{ HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, { PROVIDER_GITLAB, url },
		    "{\"issues\":[{\"path\":\"config.instanceUrl\",\"expected\":\"InstanceUrl\","
		    "\"message\":\"no \\\"x\\\"\"}]}" },
		{ HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, { PROVIDER_GITEA, NULL },
		    "{\"issues\":[{\"path\":\"config\",\"expected\":\"Object\","
		    "\"message\":\"no \\\"x\\\"\"}]}" },
		{ HTTP_CODE_WEBHOOK_CREATE_CONFLICT, { PROVIDER_GITEA, url }, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		assert_int_equal(
		    webhooks_issues(&out, rows[i].code, &rows[i].asked, "no \"x\""), 0);
		assert_string_equal(buf_cstr(&out), rows[i].issues);
	}
}

static void
every_code_has_words(void **state)
{
	static const enum http_code own[] = { HTTP_CODE_WEBHOOK_NOT_FOUND,
		HTTP_CODE_WEBHOOK_CREATE_CONFLICT, HTTP_CODE_INVALID_WEBHOOK_SECRET,
		HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED,
		HTTP_CODE_SHARD_UNAVAILABLE, HTTP_CODE_PROJECT_MOVING,
		HTTP_CODE_STORAGE_UNAVAILABLE, HTTP_CODE_OVERLOADED };
	const char *other = webhooks_message(HTTP_CODE_INTERNAL_ERROR);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		assert_string_not_equal(webhooks_message(own[i]), other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_delivery_url_names_forge_owner_and_project),
		cmocka_unit_test(a_summary_has_every_member_of_the_contract),
		cmocka_unit_test(without_a_history_the_lists_are_empty),
		cmocka_unit_test(a_summary_survives_every_failed_allocation),
		cmocka_unit_test(each_refusal_names_the_field_at_fault),
		cmocka_unit_test(every_code_has_words),
	};

	return cmocka_run_group_tests_name("webhooks as clients see them", tests, NULL, NULL);
}
