/*
 * test/unit/test_anvil-ingress_webhooks.c -- orders about webhooks, against a shard that answers
 * what the test has written down.  It stands in for links.c and for the sending of stubs.
 */
#include <string.h>

#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/webhooks.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/unit.h"

#define PROJECT  "prj_0123456789abcdefghijAB"
#define WEBHOOK  "whk_0123456789abcdefghijAB"
#define ASKS_MAX 6

/* What the shard is asked, in this order, and what it says. */
struct reply {
	const char *method;
	int err;
	const void *result;
};

static struct shard {
	const struct reply *script;
	size_t nscript, at;
	char params[ASKS_MAX][1024];
	int64_t asked[ASKS_MAX]; /* Number of the shard. */
	rpc_answer_fn *cb;       /* NULL: it owes nothing. */
	struct stub_call call;
	struct shard_call *under_way;
} shard;

static struct ingress in;
static struct webhooks_work work;

/* What `done` has seen. */
static struct seen {
	int times;
	enum webhooks_verdict verdict;
	char told[VAULT_TOKEN_SIZE], id[ID_SIZE], message[128];
	size_t ndeliveries, nlist;
} seen;

/* ---- the shard ---- */

int
stub_send(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts, rpc_answer_fn *cb,
    const struct stub_call *call)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)p;
	(void)opts;
	assert_null(shard.cb);
	assert_true(shard.at < shard.nscript);
	assert_string_equal(method, shard.script[shard.at].method);
	assert_int_equal(codec_encode(&text, t, params), 0);
	assert_true(text.len < sizeof(shard.params[0]));
	memcpy(shard.params[shard.at], buf_cstr(&text), text.len + 1);
	shard.asked[shard.at] = shard.under_way->shard;
	shard.cb = cb;
	shard.call = *call;
	return 0;
}

int
stub_notify(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts)
{
	(void)p;
	(void)method;
	(void)t;
	(void)params;
	(void)opts;
	return E_LINK;
}

int
stub_answer(struct stub_call *call, const struct rpc_answer *answer, const struct codec_type *t,
    void *ret_result)
{
	const struct reply *r = &shard.script[shard.at - 1];

	(void)call;
	(void)answer;
	if (r->err == 0)
		memcpy(ret_result, r->result, t->size);
	return r->err;
}

void
stub_done(struct stub_call *call)
{
	(void)call;
}

static void
ask(struct shard_call *c)
{
	const struct rpc_call_opts opts = { .request_id = c->request_id };

	shard.under_way = c;
	assert_int_equal(c->send(c, NULL, &opts), 0);
}

void
shard_call_start(struct shard_call *c)
{
	assert_int_equal(c->deadline_ms, CALL_OTHER_MS);
	ask(c);
}

void
shard_call_done(struct shard_call *c)
{
	assert_ptr_equal(c, shard.under_way);
	shard.under_way = NULL;
}

/* One more try, as of E_LINK; no more of anything else. */
void
shard_call_error(struct shard_call *c, int err)
{
	assert_true(c->repeats);
	if (err == E_LINK) {
		ask(c);
		return;
	}
	shard_call_done(c);
	c->failed(c, HTTP_CODE_SHARD_UNAVAILABLE, 1);
}

void
shard_call_moved(struct shard_call *c, int64_t to)
{
	c->shard = to;
	ask(c);
}

void
shard_call_moving(struct shard_call *c, int64_t retry_ms)
{
	(void)retry_ms;
	shard_call_done(c);
	c->failed(c, HTTP_CODE_PROJECT_MOVING, 0);
}

/* ---- one order ---- */

static void
on_done(struct webhooks_work *w, enum webhooks_verdict v)
{
	assert_ptr_equal(w->arg, &in);
	seen.times++;
	seen.verdict = v;
	if (w->told != NULL)
		(void)snprintf(seen.told, sizeof(seen.told), "%s", w->told);
	if (w->webhook.webhook_id != NULL)
		(void)snprintf(seen.id, sizeof(seen.id), "%s", w->webhook.webhook_id);
	if (w->message != NULL)
		(void)snprintf(seen.message, sizeof(seen.message), "%s", w->message);
	if (w->entry != NULL)
		seen.ndeliveries = w->entry->ndeliveries;
	if (w->list != NULL)
		seen.nlist = w->list->nwebhooks;
}

/* Runs ${order} to its end; nothing of a secret is left in it then. */
static void
carry_out(void (*order)(struct webhooks_work *w), const struct reply *script, size_t nscript)
{
	static const char nothing[VAULT_TOKEN_SIZE];
	static const struct rpc_answer answer;

	shard = (struct shard) { .script = script, .nscript = nscript };
	seen = (struct seen) { .times = 0 };
	work.in = &in;
	work.project_id = PROJECT;
	work.user_id = "usr_0123456789abcdefghijAB";
	work.request_id = "request";
	work.shard = 1;
	work.done = on_done;
	work.arg = &in;
	order(&work);
	while (shard.cb != NULL) {
		rpc_answer_fn *cb = shard.cb;

		shard.cb = NULL;
		shard.at++;
		cb(&shard.call, &answer);
	}
	assert_int_equal(shard.at, nscript);
	assert_null(shard.under_way);
	assert_int_equal(seen.times, 1);
	assert_memory_equal(work.made, nothing, sizeof(nothing));
	assert_null(work.sealed.ciphertext);
}

#define CARRY_OUT(order, ...)                                      \
	carry_out((order), (const struct reply[]) { __VA_ARGS__ }, \
	    sizeof((const struct reply[]) { __VA_ARGS__ }) / sizeof(struct reply))

static void
expect_refused(enum http_code why)
{
	assert_int_equal(seen.verdict, WEBHOOKS_REFUSED);
	assert_string_equal(http_code_name(work.why), http_code_name(why));
	assert_string_equal(seen.told, "");
}

/* ---- what a shard may say ---- */

static const struct webhook_config config = { .instance_url = "https://git.example.org" };
#define ROW                                                                      \
	{                                                                        \
		.webhook_id = WEBHOOK, .provider = PROVIDER_GITEA, .enabled = 1, \
		.config = &config, .created_at = 1, .updated_at = 2              \
	}
static const struct delivery_row deliveries[3];
static const struct webhook_entry entry = {
	.webhook = ROW, .deliveries = deliveries, .ndeliveries = 3
};

static const struct webhook_list_result listed = { .kind = WEBHOOK_LIST_LIST,
	.u.list = { &entry, 1 } };
static const struct webhook_list_result listed_none = { .kind = WEBHOOK_LIST_LIST };
static const struct webhook_list_result listed_unknown = { .kind = WEBHOOK_LIST_NOT_FOUND };
static const struct webhook_list_result listed_moved = { .kind = WEBHOOK_LIST_MOVED,
	.u.moved = { .shard = 5 } };
static const struct webhook_upsert_result updated = { .kind = WEBHOOK_UPSERT_UPDATED,
	.u.updated = { ROW } };
static const struct webhook_upsert_result created = { .kind = WEBHOOK_UPSERT_CREATED,
	.u.created = { ROW } };
static const struct webhook_upsert_result conflict = { .kind = WEBHOOK_UPSERT_CREATE_CONFLICT };
static const struct webhook_upsert_result gone = { .kind = WEBHOOK_UPSERT_NOT_FOUND };
static const struct webhook_upsert_result invalid = { .kind = WEBHOOK_UPSERT_INVALID_CONFIG,
	.u.invalid_config = { "It does not fit." } };
static const struct webhook_upsert_result moved = { .kind = WEBHOOK_UPSERT_MOVED,
	.u.moved = { .shard = 6 } };
static const struct webhook_rotate_result rotated = { .kind = WEBHOOK_ROTATE_ROTATED,
	.u.rotated = { .version = 3 } };
static const struct webhook_rotate_result rotated_none = { .kind = WEBHOOK_ROTATE_NOT_FOUND };
static const struct webhook_delete_result deleted = { .kind = WEBHOOK_DELETE_DELETED };
static const struct webhook_delete_result deleted_none = { .kind = WEBHOOK_DELETE_NOT_FOUND };

static int
begin(void **state)
{
	static const char keys[] =
	    "{\"current\":1,\"keys\":{\"1\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\"}}";

	(void)state;
	in.keys = vault_keys_free(in.keys);
	assert_int_equal(vault_keys_parse(keys, sizeof(keys) - 1, &in.keys, NULL), 0);
	in.hook_cache = hook_cache_new(&in);
	assert_non_null(in.hook_cache);
	work = (struct webhooks_work) { .arena = arena_new(),
		.provider = PROVIDER_GITEA,
		.enabled = 1,
		.instance_url = config.instance_url,
		.has_config = 1 };
	assert_non_null(work.arena);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	work.arena = arena_free(work.arena);
	in.hook_cache = hook_cache_free(in.hook_cache);
	in.keys = vault_keys_free(in.keys);
	return 0;
}

/* What was sealed for the shard in question ${at} opens for its webhook, and is ${secret}. */
static void
expect_sealed(size_t at, const char *secret)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
	struct vault_sealed sealed;
	const json_t *value;
	char bound[80];

	assert_int_equal(json_text_parse(shard.params[at], strlen(shard.params[at]), 8, &j), 0);
	value = json_object_get(j, "sealedSecret");
	(void)snprintf(bound, sizeof(bound), "project_webhooks|%s|secret",
	    json_string_value(json_object_get(j, "webhookId")));
	sealed = (struct vault_sealed) { .key_version = json_integer_value(
					     json_object_get(value, "keyVersion")) };
	sealed.ciphertext = mem_strdup(json_string_value(json_object_get(value, "ciphertext")));
	(void)snprintf(sealed.nonce, sizeof(sealed.nonce), "%s",
	    json_string_value(json_object_get(value, "nonce")));
	assert_int_equal(
	    vault_open(in.keys, VAULT_WEBHOOK_SECRET, PROJECT, bound, &sealed, &plain), 0);
	vault_sealed_done(&sealed);
	assert_string_equal(buf_cstr(&plain), secret);
	assert_null(strstr(shard.params[at], secret));
}

/* ---- put ---- */

static void
an_update_tells_the_history_and_no_secret(void **state)
{
	(void)state;
	work.with_history = 1;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed },
	    { "webhook.upsert", 0, &updated }, { "webhook.list", 0, &listed });
	assert_int_equal(seen.verdict, WEBHOOKS_UPDATED);
	assert_string_equal(seen.told, "");
	assert_string_equal(seen.id, WEBHOOK);
	assert_int_equal(seen.ndeliveries, 3);
	assert_string_equal(
	    shard.params[0], "{\"projectId\":\"" PROJECT "\",\"provider\":\"gitea\"}");
	assert_string_equal(shard.params[1],
	    "{\"projectId\":\"" PROJECT "\",\"provider\":\"gitea\",\"creating\":false,"
	    "\"webhookId\":\"" WEBHOOK "\",\"enabled\":true,"
	    "\"config\":{\"instanceUrl\":\"https://git.example.org\"},"
	    "\"sealedSecret\":null}");
	assert_string_equal(shard.params[2], shard.params[0]);
}

static void
an_absent_configuration_is_not_one_that_is_null(void **state)
{
	(void)state;
	work.instance_url = NULL;
	CARRY_OUT(
	    webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &updated });
	assert_non_null(strstr(shard.params[1], "\"enabled\":true,\"config\":null,"));
	work.has_config = 0;
	CARRY_OUT(
	    webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &updated });
	assert_null(strstr(shard.params[1], "config"));
}

static void
a_new_webhook_gets_a_secret_that_is_told_once(void **state)
{
	char before[VAULT_TOKEN_SIZE];

	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &created });
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	assert_non_null(strstr(shard.params[1], "\"creating\":true"));
	assert_true(vault_token_check(seen.told));
	expect_sealed(1, seen.told);
	(void)snprintf(before, sizeof(before), "%s", seen.told);
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &created });
	assert_string_not_equal(before, seen.told);
}

static void
a_secret_that_is_given_is_for_a_new_webhook_only(void **state)
{
	(void)state;
	work.secret = "of the client";
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &created });
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	assert_string_equal(seen.told, "");
	expect_sealed(1, "of the client");
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed });
	expect_refused(HTTP_CODE_INVALID_WEBHOOK_SECRET);
}

static void
who_comes_second_gets_a_conflict(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &conflict });
	expect_refused(HTTP_CODE_WEBHOOK_CREATE_CONFLICT);
}

static void
an_update_that_meets_a_deletion_finds_nothing(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &gone });
	expect_refused(HTTP_CODE_WEBHOOK_NOT_FOUND);
}

static void
a_repeated_create_is_the_same_webhook_and_secret(void **state)
{
	char first[1024];

	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", E_LINK, NULL }, { "webhook.upsert", 0, &created });
	(void)snprintf(first, sizeof(first), "%s", shard.params[1]);
	assert_string_equal(shard.params[2], first);
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	expect_sealed(2, seen.told);
}

static void
what_the_shard_says_of_a_configuration_is_passed_on(void **state)
{
	(void)state;
	CARRY_OUT(
	    webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &invalid });
	expect_refused(HTTP_CODE_INVALID_WEBHOOK_PROVIDER_CONFIG);
	assert_string_equal(seen.message, "It does not fit.");
}

static void
the_secret_is_told_even_when_the_history_is_not_there(void **state)
{
	(void)state;
	work.with_history = 1;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &created }, { "webhook.list", E_DEADLINE, NULL });
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	assert_true(vault_token_check(seen.told));
	assert_int_equal(seen.ndeliveries, 0);
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none },
	    { "webhook.upsert", 0, &created }, { "webhook.list", 0, &listed_none });
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	assert_true(vault_token_check(seen.told));
}

static void
without_a_key_nothing_is_made_and_updates_go_on(void **state)
{
	(void)state;
	in.keys = vault_keys_free(in.keys);
	CARRY_OUT(
	    webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &updated });
	assert_int_equal(seen.verdict, WEBHOOKS_UPDATED);
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none });
	expect_refused(HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
	CARRY_OUT(webhooks_rotate, { "webhook.list", 0, &listed });
	expect_refused(HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
	CARRY_OUT(webhooks_delete, { "webhook.delete", 0, &deleted });
	assert_int_equal(seen.verdict, WEBHOOKS_DELETED);
	work.secret = "of the client";
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_none });
	expect_refused(HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed });
	expect_refused(HTTP_CODE_INVALID_WEBHOOK_SECRET);
}

/* ---- the others ---- */

static void
a_rotation_seals_for_the_webhook_that_is_there(void **state)
{
	(void)state;
	CARRY_OUT(
	    webhooks_rotate, { "webhook.list", 0, &listed }, { "webhook.rotate", 0, &rotated });
	assert_int_equal(seen.verdict, WEBHOOKS_ROTATED);
	assert_true(vault_token_check(seen.told));
	assert_non_null(strstr(shard.params[1], "\"webhookId\":\"" WEBHOOK "\""));
	expect_sealed(1, seen.told);
}

static void
a_rotation_that_meets_a_deletion_finds_nothing(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_rotate, { "webhook.list", 0, &listed_none });
	expect_refused(HTTP_CODE_WEBHOOK_NOT_FOUND);
	CARRY_OUT(webhooks_rotate, { "webhook.list", 0, &listed },
	    { "webhook.rotate", 0, &rotated_none });
	expect_refused(HTTP_CODE_WEBHOOK_NOT_FOUND);
}

static void
a_deletion_whose_answer_got_lost_has_happened(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_delete, { "webhook.delete", 0, &deleted_none });
	expect_refused(HTTP_CODE_WEBHOOK_NOT_FOUND);
	CARRY_OUT(webhooks_delete, { "webhook.delete", E_LINK, NULL },
	    { "webhook.delete", 0, &deleted_none });
	assert_int_equal(seen.verdict, WEBHOOKS_DELETED);
	work.unanswered = 0;
	CARRY_OUT(webhooks_delete, { "webhook.delete", E_DEADLINE, NULL });
	expect_refused(HTTP_CODE_SHARD_UNAVAILABLE);
}

/* Keeps what verifies deliveries of the forge; how much is kept then. */
static size_t
keep_material(void)
{
	static const struct webhook_get_verification_found found = { .webhook_id = WEBHOOK,
		.version = 2,
		.sealed_secret = { "AAAA", "AAAA", 1 },
		.repo_url = "https://git.example.org/a/b",
		.default_branch = "main" };
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = hook_material_new(PROJECT, PROVIDER_GITEA, 1, &found);

	assert_non_null(m);
	hook_cache_put(in.hook_cache, m);
	return hook_cache_count(in.hook_cache);
}

static void
what_has_changed_verifies_nothing_more_at_once(void **state)
{
	(void)state;
	assert_int_equal(keep_material(), 1);
	CARRY_OUT(
	    webhooks_put, { "webhook.list", 0, &listed }, { "webhook.upsert", 0, &updated });
	assert_int_equal(hook_cache_count(in.hook_cache), 0);
	assert_int_equal(keep_material(), 1);
	CARRY_OUT(
	    webhooks_rotate, { "webhook.list", 0, &listed }, { "webhook.rotate", 0, &rotated });
	assert_int_equal(hook_cache_count(in.hook_cache), 0);
	assert_int_equal(keep_material(), 1);
	CARRY_OUT(webhooks_delete, { "webhook.delete", 0, &deleted });
	assert_int_equal(hook_cache_count(in.hook_cache), 0);
}

static void
a_list_asks_for_every_forge(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_list, { "webhook.list", 0, &listed });
	assert_int_equal(seen.verdict, WEBHOOKS_LISTED);
	assert_int_equal(seen.nlist, 1);
	assert_string_equal(
	    shard.params[0], "{\"projectId\":\"" PROJECT "\",\"provider\":null}");
}

static void
a_project_that_the_shard_does_not_know_is_told_apart(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_unknown });
	assert_int_equal(seen.verdict, WEBHOOKS_NO_PROJECT);
	CARRY_OUT(webhooks_rotate, { "webhook.list", 0, &listed_unknown });
	assert_int_equal(seen.verdict, WEBHOOKS_NO_PROJECT);
}

static void
after_a_move_all_goes_to_the_new_shard(void **state)
{
	(void)state;
	CARRY_OUT(webhooks_put, { "webhook.list", 0, &listed_moved },
	    { "webhook.list", 0, &listed_none }, { "webhook.upsert", 0, &moved },
	    { "webhook.upsert", 0, &created });
	assert_int_equal(seen.verdict, WEBHOOKS_CREATED);
	assert_int_equal(shard.asked[0], 1);
	assert_int_equal(shard.asked[1], 5);
	assert_int_equal(shard.asked[2], 5);
	assert_int_equal(shard.asked[3], 6);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(an_update_tells_the_history_and_no_secret),
		TEST(an_absent_configuration_is_not_one_that_is_null),
		TEST(a_new_webhook_gets_a_secret_that_is_told_once),
		TEST(a_secret_that_is_given_is_for_a_new_webhook_only),
		TEST(who_comes_second_gets_a_conflict),
		TEST(an_update_that_meets_a_deletion_finds_nothing),
		TEST(a_repeated_create_is_the_same_webhook_and_secret),
		TEST(what_the_shard_says_of_a_configuration_is_passed_on),
		TEST(the_secret_is_told_even_when_the_history_is_not_there),
		TEST(without_a_key_nothing_is_made_and_updates_go_on),
		TEST(a_rotation_seals_for_the_webhook_that_is_there),
		TEST(a_rotation_that_meets_a_deletion_finds_nothing),
		TEST(a_deletion_whose_answer_got_lost_has_happened),
		TEST(what_has_changed_verifies_nothing_more_at_once),
		TEST(a_list_asks_for_every_forge),
		TEST(a_project_that_the_shard_does_not_know_is_told_apart),
		TEST(after_a_move_all_goes_to_the_new_shard),
	};

	return cmocka_run_group_tests_name("orders about webhooks", tests, NULL, NULL);
}
