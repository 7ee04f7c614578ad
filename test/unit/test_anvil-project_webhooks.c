/*
 * test/unit/test_anvil-project_webhooks.c -- the shard's methods of webhooks, in turns of a real
 * actor, beside an ingress that only hears what it is told.
 *
 * Answers are looked at as the JSON that would be sent.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cmd/anvil-project/shard.h"
#include "gen/ingress.h"
#include "gen/project_methods.h"
#include "lib/actor/actor.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 30000
#define PRJ         "prj_0000000000000000000001"
#define OTHER_PRJ   "prj_0000000000000000000002"
#define USR         "usr_0000000000000000000001"
#define NONCE       "bm9uY2Vub25jZW5vbmNlbm9uY2Vub25j"
#define SHA256      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COMMIT      "0123456789abcdef0123456789abcdef01234567"

struct fix {
	char *dir;
	int dirfd;
	struct actor *a;
	struct listener *listener;
	struct rpc_peer *ingress; /* The listener's side of it. */
	struct shard shard;
	int awake;         /* Times that the shard was asked to look. */
	struct buf heard;  /* What ingress was told, a line each.     */
	struct buf answer; /* Of the last call.                       */
};

/* ---- ingress, which listens ---- */

static void
on_told(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct fix *f = arg;

	(void)p;
	buf_printf(&f->heard, "%s ", req->method);
	(void)json_text_dump(&f->heard, req->params);
	buf_printf(&f->heard, "\n");
	rpc_reply(req, "{}", 2);
}

static void
on_peer(void *arg, struct rpc_peer *p)
{
	static const struct rpc_peer_ops ops = { .on_request = on_told };
	struct fix *f = arg;

	f->ingress = p;
	rpc_peer_set_ops(p, &ops, f);
}

static const struct listener_ops listener_ops = { .on_peer = on_peer };

/* ---- the shard ---- */

static void
on_pump(void *arg)
{
	struct fix *f = arg;

	f->awake++;
}

static int
add_project(void *arg, struct turn *t)
{
	const char *id = arg;
	struct ledger_project p = { .project_id = id,
		.owner_user_id = USR,
		.owner_slug = "acme",
		.project_slug = "app",
		.name = "An app",
		.repo_url = "https://github.com/Acme/App",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.token = { "dG9rZW4", NONCE, 1 },
		.created_at = t->now_ms };
	enum ledger_created created;

	return ledger_project_create(t->store, t->arena, &p, &created);
}

/* Everything that is due has happened. */
static void
settle(struct fix *f)
{
	do
		actor_step(f->a);
	while (actor_in_batch(f->a));
}

static int
setup(void **state)
{
	static const struct actor_desc desc = { .role = ROLE_PROJECT,
		.methods = project_methods,
		.nmethods = &project_methods_count,
		.document = project_document,
		.store = &ledger_store };
	struct fix *f = mem_calloc(1, sizeof(*f));
	struct listener_desc listen = { .address = "ingress" };
	struct actor_place place = { .address = "project/0" };
	CLEANUP_FREE char *store = NULL;
	char *why = NULL;

	assert_non_null(f);
	log_set_level(LOG_LEVEL_ERROR);
	f->dir = scratch_new();
	f->dirfd = io_open_dir(AT_FDCWD, f->dir);
	store = mem_format("%s/project-0.db", f->dir);
	place.runtime_dir = f->dir;
	place.store_path = store;
	if (actor_new(&desc, &place, &f->a, &why) < 0)
		fail_msg("%s", why);
	listen.dirfd = f->dirfd;
	assert_int_equal(
	    listener_new(actor_loop(f->a), &listen, &listener_ops, f, &f->listener), 0);
	f->shard.actor = f->a;
	f->shard.pump = actor_timer_new(f->a, on_pump, f);
	f->shard.ingress = actor_link(f->a, "ingress", NULL, NULL);
	assert_non_null(f->shard.ingress);
	actor_set_ctx(f->a, &f->shard);
	while (link_peer(f->shard.ingress) == NULL || f->ingress == NULL)
		actor_step(f->a);
	assert_int_equal(actor_turn(f->a, 1, add_project, (void *)(uintptr_t)PRJ), 0);
	settle(f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	actor_timer_free(f->shard.pump);
	(void)rpc_peer_free(f->ingress);
	(void)listener_free(f->listener);
	(void)actor_free(f->a);
	io_close(&f->dirfd);
	buf_done(&f->heard);
	buf_done(&f->answer);
	scratch_free(f->dir);
	free(f);
	return 0;
}

/* ---- calls ---- */

struct call {
	struct fix *f;
	const void *params;
};

static const char *
ask(struct fix *f, int (*in_turn)(void *arg, struct turn *t), const void *params)
{
	struct call c = { f, params };
	int r;

	buf_reset(&f->answer);
	r = actor_turn(f->a, 1, in_turn, &c);
	if (r < 0)
		buf_printf(&f->answer, "error %d", r);
	settle(f);
	return (const char *)buf_cstr(&f->answer);
}

#define IN_TURN(name)                                                         \
	static int name##_in_turn(void *arg, struct turn *t)                  \
	{                                                                     \
		const struct call *c = arg;                                   \
		struct name##_result res = { .kind = 0 };                     \
		int r = name(&c->f->shard, t, c->params, &res);               \
		return r < 0 ? r : name##_result_encode(&c->f->answer, &res); \
	}

/* ask_NAME(f, &params): the answer as JSON text; "error N" when there is none. */
#define ASK(name)                                                                        \
	IN_TURN(name)                                                                    \
	static const char *ask_##name(struct fix *f, const struct name##_params *params) \
	{                                                                                \
		return ask(f, name##_in_turn, params);                                   \
	}

ASK(webhook_upsert)
ASK(webhook_rotate)
ASK(webhook_delete)
ASK(webhook_list)
ASK(webhook_get_verification)
ASK(webhook_record)
ASK(webhook_refused)
ASK(webhook_deliveries)
ASK(project_update)
ASK(project_remove)
ASK(project_why)
ASK(project_list_sealed)
ASK(project_replace_sealed)

static void
has(const char *answer, const char *text)
{
	if (strstr(answer, text) == NULL)
		fail_msg("%s is not in %s", text, answer);
}

static void
lacks(const char *answer, const char *text)
{
	if (strstr(answer, text) != NULL)
		fail_msg("%s is in %s", text, answer);
}

/* What ingress has been told since the last time, once ${what} is among it. */
static void
hears(struct fix *f, const char *what)
{
	struct mono_time until = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (strstr((const char *)buf_cstr(&f->heard), what) == NULL) {
		assert_true(clock_mono().us < until.us);
		actor_step(f->a);
		(void)sched_yield();
	}
	buf_reset(&f->heard);
}

/* The number of that name in an answer. */
static int64_t
number_in(const char *answer, const char *name)
{
	char member[32];
	const char *at;

	(void)snprintf(member, sizeof(member), "\"%s\":", name);
	at = strstr(answer, member);
	assert_non_null(at);
	return strtoll(at + strlen(member), NULL, 10);
}

static int64_t
version_in(const char *answer)
{
	return number_in(answer, "updatedAt");
}

#define CHANGED(provider) \
	"webhook.changed {\"projectId\":\"" PRJ "\",\"provider\":" provider "}\n"

static const char *
whk(int n)
{
	static char ids[10][ID_SIZE];

	(void)snprintf(ids[n], ID_SIZE, "whk_%022d", n);
	return ids[n];
}

static struct sealed_value
sealed(const char *ciphertext)
{
	return (struct sealed_value) { ciphertext, NONCE, 1 };
}

/* The webhook of github, enabled. */
static int64_t
make_github(struct fix *f)
{
	struct sealed_value secret = sealed("Zmlyc3RzZWNyZXQ");
	struct webhook_upsert_params p = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB,
		.creating = 1,
		.webhook_id = whk(1),
		.enabled = 1,
		.sealed_secret = &secret };
	const char *answer = ask_webhook_upsert(f, &p);

	has(answer, "\"kind\":\"created\"");
	hears(f, CHANGED("\"github\""));
	return version_in(answer);
}

/* ---- custody ---- */

static void
a_webhook_is_made_as_its_forge_allows(void **state)
{
	static const struct webhook_config hub = { "https://github.com" },
					   lab = { "https://gitlab.com" },
					   tea = { "https://tea.example" };
	struct fix *f = *state;
	struct sealed_value secret = sealed("Zmlyc3RzZWNyZXQ");
	struct webhook_upsert_params p = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB,
		.creating = 1,
		.webhook_id = whk(1),
		.enabled = 1,
		.config = &hub,
		.sealed_secret = &secret };
	struct project_update_params u = { .project_id = PRJ };
	const char *answer = ask_webhook_upsert(f, &p);

	has(answer, "\"kind\":\"invalid_config\"");
	has(answer, "takes no configuration");
	p.provider = PROVIDER_GITEA;
	p.config = NULL;
	answer = ask_webhook_upsert(f, &p);
	has(answer, "\"kind\":\"invalid_config\"");
	has(answer, "config.instanceUrl");
	p.config = &tea;
	answer = ask_webhook_upsert(f, &p);
	has(answer, "\"kind\":\"invalid_config\"");
	has(answer, "https://github.com/Acme/App");
	has(answer, "https://tea.example/");
	p.provider = PROVIDER_GITLAB;
	p.config = NULL;
	has(ask_webhook_upsert(f, &p), "https://gitlab.com/");
	assert_int_equal(f->heard.len, 0);
	u.set.repo_url = "https://gitlab.com/acme/app";
	has(ask_project_update(f, &u), "\"kind\":\"updated\"");
	hears(f, CHANGED("null"));
	/* Its default is stored as none. */
	p.config = &lab;
	answer = ask_webhook_upsert(f, &p);
	has(answer, "\"kind\":\"created\"");
	has(answer, "\"config\":null");
	hears(f, CHANGED("\"gitlab\""));
	p.project_id = OTHER_PRJ;
	has(ask_webhook_upsert(f, &p), "\"kind\":\"not_found\"");
}

static void
the_second_create_finds_the_first(void **state)
{
	struct fix *f = *state;
	struct sealed_value secret = sealed("Zmlyc3RzZWNyZXQ");
	struct webhook_upsert_params p = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB,
		.creating = 1,
		.webhook_id = whk(1),
		.enabled = 0,
		.sealed_secret = &secret };
	const char *answer;

	(void)make_github(f);
	answer = ask_webhook_upsert(f, &p); /* the repeat of a lost reply */
	has(answer, "\"kind\":\"created\"");
	has(answer, "\"enabled\":true");
	p.webhook_id = whk(2);
	has(ask_webhook_upsert(f, &p), "\"kind\":\"create_conflict\"");
	p.config = &(struct webhook_config) { "https://x.example" };
	has(ask_webhook_upsert(f, &p), "\"kind\":\"create_conflict\"");
	p.sealed_secret = NULL; /* nothing would verify it */
	has(ask_webhook_upsert(f, &p), "error -32602");
}

static void
an_update_keeps_what_it_does_not_name_and_checks_it_all_the_same(void **state)
{
	struct fix *f = *state;
	struct webhook_config tea = { "https://github.com" };
	struct sealed_value secret = sealed("c2VhbGVk");
	struct webhook_upsert_params p = {
		.project_id = PRJ, .provider = PROVIDER_GITEA, .webhook_id = whk(2)
	};
	struct webhook_upsert_params c = { .project_id = PRJ,
		.provider = PROVIDER_GITEA,
		.creating = 1,
		.webhook_id = whk(2),
		.enabled = 1,
		.config = &tea,
		.sealed_secret = &secret };
	const char *answer;
	int64_t version;

	has(ask_webhook_upsert(f, &p), "\"kind\":\"not_found\"");
	version = version_in(ask_webhook_upsert(f, &c));
	hears(f, CHANGED("\"gitea\""));
	answer = ask_webhook_upsert(f, &p);
	has(answer, "\"kind\":\"updated\"");
	has(answer, "\"enabled\":false");
	has(answer, "\"instanceUrl\":\"https://github.com\"");
	assert_true(version_in(answer) > version);
	version = version_in(answer);
	hears(f, CHANGED("\"gitea\""));
	p.has_config = 1; /* and null: cleared, which gitea cannot be */
	has(ask_webhook_upsert(f, &p), "\"kind\":\"invalid_config\"");
	p.config = &(struct webhook_config) { "https://tea.example" };
	has(ask_webhook_upsert(f, &p), "\"kind\":\"invalid_config\"");
	p.config = &(struct webhook_config) { "https://github.com/Acme" };
	answer = ask_webhook_upsert(f, &p);
	has(answer, "https://github.com/Acme\"");
	assert_true(version_in(answer) > version);
	version = version_in(answer);
	p.webhook_id = whk(3); /* one that has been replaced meanwhile */
	has(ask_webhook_upsert(f, &p), "\"kind\":\"not_found\"");
	p.webhook_id = whk(2);
	p.sealed_secret = &secret; /* which rotation alone may change */
	has(ask_webhook_upsert(f, &p), "error -32602");
	p.sealed_secret = NULL;
	answer = ask_webhook_list(f, &(struct webhook_list_params) { .project_id = PRJ });
	assert_int_equal(version_in(answer), version);
	p.project_id = OTHER_PRJ;
	has(ask_webhook_upsert(f, &p), "\"kind\":\"not_found\"");
}

static void
what_verifies_is_found_while_it_is_enabled(void **state)
{
	struct fix *f = *state;
	struct webhook_get_verification_params p = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB };
	struct webhook_upsert_params u = {
		.project_id = PRJ, .provider = PROVIDER_GITHUB, .webhook_id = whk(1)
	};
	char version[64];
	const char *answer;

	has(ask_webhook_get_verification(f, &p), "\"kind\":\"not_found\"");
	(void)snprintf(version, sizeof(version), "\"version\":%lld", (long long)make_github(f));
	answer = ask_webhook_get_verification(f, &p);
	has(answer, "\"kind\":\"found\"");
	has(answer, version);
	has(answer, "\"ciphertext\":\"Zmlyc3RzZWNyZXQ\"");
	has(answer, "\"config\":null");
	has(answer, "\"repoUrl\":\"https://github.com/Acme/App\"");
	has(answer, "\"defaultBranch\":\"main\"");
	has(ask_webhook_upsert(f, &u), "\"enabled\":false");
	has(ask_webhook_get_verification(f, &p), "\"kind\":\"not_found\"");
}

/* ---- old secrets ---- */

/* 1 when any file of the store has the text. */
static int
on_disk(const struct fix *f, const char *text)
{
	/* What leaves the log meanwhile is in the other by then. */
	static const char *const files[] = { "project-0.db-wal", "project-0.db" };
	int found = 0;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;

		assert_int_equal(io_read_file(f->dirfd, files[i], 64u << 20, &b), 0);
		found |= b.len != 0 && memmem(b.data, b.len, text, strlen(text)) != NULL;
	}
	return found;
}

static void
leaves_the_disk(struct fix *f, const char *text)
{
	struct mono_time until = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (on_disk(f, text)) {
		if (clock_mono().us > until.us)
			fail_msg("%s is still on disk", text);
		actor_step(f->a);
		(void)sched_yield();
	}
}

static void
secrets_that_are_rotated_replaced_or_deleted_leave_the_disk(void **state)
{
	struct fix *f = *state;
	struct webhook_rotate_params rotate = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB,
		.webhook_id = whk(2),
		.sealed_secret = sealed("c2Vjb25kc2VjcmV0") };
	struct project_replace_sealed_params reseal = { .table = "project_webhooks",
		.row_id = whk(1),
		.column = "secret",
		.expect_ciphertext = "Zmlyc3RzZWNyZXQ",
		.sealed = { "dGhpcmRzZWNyZXQ", NONCE, 2 } };
	struct webhook_delete_params drop = { .project_id = PRJ, .provider = PROVIDER_GITHUB };
	int64_t version = make_github(f);
	const char *answer;

	assert_true(on_disk(f, "Zmlyc3RzZWNyZXQ"));
	has(ask_webhook_rotate(f, &rotate), "\"kind\":\"not_found\""); /* sealed for another */
	assert_false(on_disk(f, "c2Vjb25kc2VjcmV0"));
	rotate.webhook_id = whk(1);
	answer = ask_webhook_rotate(f, &rotate);
	has(answer, "\"kind\":\"rotated\"");
	assert_true(number_in(answer, "version") > version);
	version = number_in(answer, "version");
	hears(f, CHANGED("\"github\""));
	assert_true(on_disk(f, "c2Vjb25kc2VjcmV0"));
	leaves_the_disk(f, "Zmlyc3RzZWNyZXQ");

	has(ask_project_replace_sealed(f, &reseal), "\"kind\":\"changed\"");
	assert_int_equal(f->heard.len, 0);
	reseal.expect_ciphertext = "c2Vjb25kc2VjcmV0";
	has(ask_project_replace_sealed(f, &reseal), "\"kind\":\"replaced\"");
	hears(f, CHANGED("null"));
	assert_true(on_disk(f, "dGhpcmRzZWNyZXQ"));
	leaves_the_disk(f, "c2Vjb25kc2VjcmV0");
	answer = ask_webhook_list(f, &(struct webhook_list_params) { .project_id = PRJ });
	assert_int_equal(version_in(answer), version);
	lacks(answer, "dGhpcmRzZWNyZXQ"); /* no list tells one */

	has(ask_webhook_delete(f, &drop), "\"kind\":\"deleted\"");
	hears(f, CHANGED("\"github\""));
	leaves_the_disk(f, "dGhpcmRzZWNyZXQ");
	has(ask_webhook_delete(f, &drop), "\"kind\":\"not_found\"");
	has(ask_webhook_rotate(f, &rotate), "\"kind\":\"not_found\"");
}

static void
sealed_secrets_are_listed_for_those_who_have_the_keys(void **state)
{
	struct fix *f = *state;
	struct project_list_sealed_params p = { .below_version = 2, .limit = 1 };
	struct project_replace_sealed_params bad = { .table = "project_runs",
		.row_id = "run_1",
		.column = "secret",
		.expect_ciphertext = "eA",
		.sealed = sealed("eQ") };
	const char *answer;

	(void)make_github(f);
	answer = ask_project_list_sealed(f, &p);
	has(answer,
	    "\"table\":\"project_config\",\"rowId\":\"" PRJ "\",\"column\":\"repo_token\"");
	has(answer, "\"next\":\"project_config/" PRJ "\"");
	p.cursor = "project_config/" PRJ;
	answer = ask_project_list_sealed(f, &p);
	has(answer, "\"table\":\"project_webhooks\"");
	has(answer, "\"rowId\":\"whk_0000000000000000000001\",\"column\":\"secret\"");
	p.cursor = "project_webhooks/whk_0000000000000000000001";
	has(ask_project_list_sealed(f, &p), "\"secrets\":[],\"next\":null");
	p.cursor = "nonsense";
	has(ask_project_list_sealed(f, &p), "error -32602");
	has(ask_project_replace_sealed(f, &bad), "error -32602");
}

/* ---- project.update ---- */

static void
a_url_that_a_webhook_does_not_fit_is_refused(void **state)
{
	struct fix *f = *state;
	struct project_update_params u = { .project_id = PRJ,
		.set = { .name = "New name", .repo_url = "https://gitlab.com/acme/app" } };
	struct webhook_upsert_params off = {
		.project_id = PRJ, .provider = PROVIDER_GITHUB, .webhook_id = whk(1)
	};
	struct webhook_list_params list = { .project_id = PRJ };
	int64_t version;
	const char *answer;

	(void)make_github(f);
	has(ask_webhook_upsert(f, &off), "\"enabled\":false"); /* which helps nothing */
	hears(f, CHANGED("\"github\""));
	version = version_in(ask_webhook_list(f, &list));
	has(ask_project_update(f, &u),
	    "{\"kind\":\"webhook_conflict\",\"providers\":[\"github\"]}");
	assert_int_equal(version_in(ask_webhook_list(f, &list)), version);
	/* Another name or token makes no delivery stale, another branch does. */
	u.set.repo_url = NULL;
	answer = ask_project_update(f, &u);
	has(answer, "\"kind\":\"updated\"");
	has(answer, "\"repoUrl\":\"https://github.com/Acme/App\"");
	u.set.repo_url = "https://github.com/Acme/App";
	has(ask_project_update(f, &u), "\"kind\":\"updated\"");
	assert_int_equal(version_in(ask_webhook_list(f, &list)), version);
	assert_int_equal(f->heard.len, 0);
	u.set.default_branch = "trunk";
	has(ask_project_update(f, &u), "\"kind\":\"updated\"");
	hears(f, CHANGED("null"));
	assert_true(version_in(ask_webhook_list(f, &list)) > version);
	u.project_id = OTHER_PRJ;
	has(ask_project_update(f, &u), "\"kind\":\"not_found\"");
}

/* ---- deliveries ---- */

static struct webhook_record_params
push(int64_t version)
{
	return (struct webhook_record_params) { .project_id = PRJ,
		.webhook_id = whk(1),
		.webhook_version = version,
		.candidate = { OUTCOME_ACCEPTED, "run created" },
		.run_id = "run_0000000000000000000001",
		.payload = { .provider = PROVIDER_GITHUB,
		    .delivery_id = "d-1",
		    .event_kind = EVENT_KIND_PUSH,
		    .event_name = "push",
		    .repository_url = "https://github.com/acme/app",
		    .ref = "refs/heads/main",
		    .branch = "main",
		    .commit_sha = COMMIT,
		    .body_sha256 = SHA256,
		    .body_bytes = 9 } };
}

static void
a_push_is_recorded_listed_and_told_as_the_reason_of_its_run(void **state)
{
	struct fix *f = *state;
	struct webhook_record_params p = push(make_github(f));
	struct project_why_params why = { .project_id = PRJ, .run_id = p.run_id };
	struct webhook_deliveries_params list = { .project_id = PRJ, .limit = 50 };
	int awake = f->awake;
	char cursor[64];
	const char *answer = ask_webhook_record(f, &p);

	has(answer, "{\"kind\":\"accepted\",\"run\":{\"runId\":\"run_0000000000000000000001\"");
	has(answer, "\"triggerType\":\"webhook\",\"triggeredByUserId\":null");
	has(answer, "\"commitSha\":\"" COMMIT "\"");
	has(answer, "\"position\":1");
	settle(f);
	assert_true(f->awake > awake); /* to be dispatched and told to the index */
	answer = ask_project_why(f, &why);
	has(answer,
	    "\"delivery\":{\"payload\":{\"provider\":\"github\",\"deliveryId\":\"d-1\"");
	has(answer, "\"bodySha256\":\"" SHA256 "\"");
	has(answer, "\"outcome\":\"accepted\",\"reason\":\"run created\"");
	has(ask_webhook_record(f, &p), "\"kind\":\"accepted\"");
	p.run_id = "run_0000000000000000000002";
	has(ask_webhook_record(f, &p),
	    "{\"kind\":\"replayed\",\"outcome\":\"accepted\","
	    "\"runId\":\"run_0000000000000000000001\"}");
	p.payload.body_bytes++;
	has(ask_webhook_record(f, &p), "{\"kind\":\"delivery_conflict\"}");
	p.payload.delivery_id = "d-2";
	p.candidate = (struct delivery_candidate) { OUTCOME_IGNORED_BRANCH, "another branch" };
	has(ask_webhook_record(f, &p),
	    "{\"kind\":\"recorded\",\"outcome\":\"ignored_branch\"}");
	p.webhook_version++;
	has(ask_webhook_record(f, &p), "{\"kind\":\"stale\"}");
	p.candidate.outcome = OUTCOME_QUEUE_FULL;
	has(ask_webhook_record(f, &p), "error -32602");
	p.project_id = OTHER_PRJ;
	p.candidate.outcome = OUTCOME_IGNORED_BRANCH;
	has(ask_webhook_record(f, &p), "{\"kind\":\"not_found\"}");
	answer = ask_webhook_deliveries(f, &list);
	has(answer, "\"deliveryId\":\"d-2\"");
	assert_true(strstr(answer, "d-2") < strstr(answer, "d-1")); /* newest first */
	has(answer, "\"next\":null");
	list.limit = 1;
	answer = ask_webhook_deliveries(f, &list);
	lacks(answer, "d-1");
	assert_non_null(strstr(answer, "\"next\":\""));
	(void)snprintf(cursor, sizeof(cursor), "%s",
	    strstr(answer, "\"next\":\"") + strlen("\"next\":\""));
	cursor[strcspn(cursor, "\"")] = '\0';
	list.cursor = cursor;
	answer = ask_webhook_deliveries(f, &list);
	has(answer, "d-1");
	has(answer, "\"refusals\":[],\"next\":null");
	list.cursor = "nonsense";
	has(ask_webhook_deliveries(f, &list), "error -32602");
	list = (struct webhook_deliveries_params) {
		.project_id = PRJ, .has_provider = 1, .provider = PROVIDER_GITEA, .limit = 100
	};
	has(ask_webhook_deliveries(f, &list), "\"deliveries\":[]");
}

static void
refused_attempts_are_kept_for_an_enabled_webhook(void **state)
{
	struct fix *f = *state;
	struct refusal_row entries[] = {
		{ .at = clock_wall_ms(),
		    .reason = REFUSAL_REASON_SIGNATURE_MISMATCH,
		    .hint = "The secret differs.",
		    .event_name = "push",
		    .client_address = "192.0.2.1",
		    .count = 2 },
		{ .at = clock_wall_ms() + 1,
		    .reason = REFUSAL_REASON_BAD_JSON,
		    .client_address = "192.0.2.1",
		    .count = 1 },
	};
	struct webhook_refused_params p = {
		.project_id = PRJ, .webhook_id = whk(1), .entries = entries, .nentries = 2
	};
	struct webhook_deliveries_params list = { .project_id = PRJ, .limit = 50 };
	struct webhook_upsert_params off = {
		.project_id = PRJ, .provider = PROVIDER_GITHUB, .webhook_id = whk(1)
	};
	const char *answer;

	has(ask_webhook_refused(f, &p), "\"kind\":\"not_found\"");
	(void)make_github(f);
	has(ask_webhook_refused(f, &p), "\"kind\":\"ok\"");
	has(ask_webhook_refused(f, &p), "\"kind\":\"ok\"");
	answer = ask_webhook_deliveries(f, &list);
	has(answer, "\"refusals\":[{\"provider\":\"github\",\"refusal\":{");
	has(answer, "\"reason\":\"signature_mismatch\",\"hint\":\"The secret differs.\"");
	has(answer, "\"count\":4");
	has(answer, "\"count\":2");
	answer = ask_webhook_list(f, &(struct webhook_list_params) { .project_id = PRJ });
	has(answer, "\"refusals\":[{\"at\":");
	has(answer, "\"bodyBytes\":null");
	answer = ask_webhook_list(f,
	    &(struct webhook_list_params) {
		.project_id = PRJ, .has_provider = 1, .provider = PROVIDER_GITEA });
	has(answer, "{\"kind\":\"list\",\"webhooks\":[]}");
	(void)ask_webhook_upsert(f, &off);
	has(ask_webhook_refused(f, &p), "\"kind\":\"ok\"");
	has(ask_webhook_deliveries(f, &list), "\"count\":4"); /* no more than before */
	p.webhook_id = whk(2);
	has(ask_webhook_refused(f, &p), "\"kind\":\"not_found\"");
}

static void
a_project_that_goes_has_no_webhooks_any_more(void **state)
{
	struct fix *f = *state;
	int64_t version = make_github(f);
	struct webhook_record_params record = push(version);
	struct project_remove_params remove = { .project_id = PRJ };
	struct webhook_get_verification_params verify = { .project_id = PRJ,
		.provider = PROVIDER_GITHUB };
	struct webhook_list_params list = { .project_id = PRJ };
	struct webhook_delete_params drop = { .project_id = PRJ, .provider = PROVIDER_GITHUB };

	has(ask_project_remove(f, &remove), "\"kind\":\"removing\"");
	hears(f, CHANGED("null"));
	has(ask_webhook_record(f, &record), "\"kind\":\"not_found\"");
	has(ask_webhook_get_verification(f, &verify), "\"kind\":\"not_found\"");
	has(ask_webhook_list(f, &list), "\"kind\":\"not_found\"");
	has(ask_webhook_delete(f, &drop), "\"kind\":\"not_found\"");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_webhook_is_made_as_its_forge_allows),
		TEST(the_second_create_finds_the_first),
		TEST(an_update_keeps_what_it_does_not_name_and_checks_it_all_the_same),
		TEST(what_verifies_is_found_while_it_is_enabled),
		TEST(secrets_that_are_rotated_replaced_or_deleted_leave_the_disk),
		TEST(sealed_secrets_are_listed_for_those_who_have_the_keys),
		TEST(a_url_that_a_webhook_does_not_fit_is_refused),
		TEST(a_push_is_recorded_listed_and_told_as_the_reason_of_its_run),
		TEST(refused_attempts_are_kept_for_an_enabled_webhook),
		TEST(a_project_that_goes_has_no_webhooks_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
