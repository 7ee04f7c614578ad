/* A real shard with webhooks from before it was started: what anvilctl may ask of it, and that
 * what is kept no longer goes by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/ledger/ledger.h"
#include "lib/store/store.h"
#include "test/support/super_rig.h"
#include "test/support/unit.h"

#define WAIT_MS 30000
#define OLD     130 /* deliveries; more than go in one turn */
#define HOUR_MS INT64_C(3600000)

struct test {
	struct super_rig g;
	char project[ID_SIZE], webhook[ID_SIZE];
	char params[64]; /* {"projectId": ...} */
	char page[128];  /* the same for the first page of a list */
};

static void
add_project(struct test *t, const struct ledger_at *at)
{
	char user[ID_SIZE];
	struct ledger_project p = { .project_id = t->project,
		.owner_user_id = user,
		.owner_slug = "demo",
		.project_slug = "app",
		.name = "Demo",
		.repo_url = "https://github.com/demo/app",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.created_at = at->now_ms };
	struct ledger_webhook w = { .webhook_id = t->webhook,
		.project_id = t->project,
		.provider = "github",
		.enabled = 1,
		.secret = { "c2VhbGVk", "bm9uY2U", 1 } };
	enum ledger_created created;

	id_make("usr_", user);
	id_make("prj_", t->project);
	id_make("whk_", t->webhook);
	assert_int_equal(ledger_project_create(at->store, at->arena, &p, &created), 0);
	assert_int_equal(ledger_webhook_create(at->store, at->arena, &w, at->now_ms), 0);
}

static void
deliver(const struct test *t, const struct ledger_at *at, int n, int64_t version)
{
	char id[32];
	struct ledger_offer o = { .webhook_id = t->webhook,
		.version = version,
		.delivery = { .project_id = t->project,
		    .provider = "github",
		    .delivery_id = id,
		    .event_kind = "ping",
		    .event_name = "ping",
		    .repository_url = "https://github.com/demo/app",
		    .body_sha256 = "0123456789abcdef0123456789abcdef"
				   "0123456789abcdef0123456789abcdef",
		    .outcome = "ignored_ping",
		    .reason = "ping",
		    .run_id = "run_0000000000000000000001" } };
	struct ledger_recorded rec;

	(void)snprintf(id, sizeof(id), "delivery-%d", n);
	assert_int_equal(ledger_record(at, &o, &rec), 0);
	assert_int_equal(rec.kind, LEDGER_RECORD_RECORDED);
}

/* Deliveries of four days ago, and one of now. */
static int
setup(void **state)
{
	struct test *t = mem_calloc(1, sizeof(*t));
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP_FREE char *path = NULL;
	char *why = NULL;
	int64_t now = clock_wall_ms();
	struct ledger_at at = { .arena = a, .now_ms = now - 96 * HOUR_MS };

	assert_non_null(t);
	super_rig_init(&t->g);
	t->g.shards = 1;
	super_rig_configure(&t->g, "runs: {max_concurrent: 1, min_free_bytes: 0}\n");
	path = mem_format("%s/project-0.db", t->g.data);
	assert_int_equal(io_mkdirs(t->g.data, 0700), 0);
	super_rig_own(&t->g, t->g.data);
	assert_int_equal(store_open(&ledger_store, path, &s, &why), 0);
	assert_int_equal(store_begin(s), 0);
	at.store = s;
	add_project(t, &at);
	for (int i = 0; i < OLD; i++)
		deliver(t, &at, i, at.now_ms);
	assert_int_equal(store_commit(s), 0);
	assert_int_equal(store_begin(s), 0);
	/* Of a moment when the old ones were kept still, so that it takes none along. */
	at.now_ms += 71 * HOUR_MS;
	deliver(t, &at, OLD, now - 96 * HOUR_MS);
	assert_int_equal(store_commit(s), 0);
	s = store_close(s);
	super_rig_own(&t->g, path);
	(void)snprintf(t->params, sizeof(t->params), "{\"projectId\":\"%s\"}", t->project);
	(void)snprintf(t->page, sizeof(t->page),
	    "{\"projectId\":\"%s\",\"provider\":null,\"cursor\":null,\"limit\":100}",
	    t->project);
	*state = t;
	return 0;
}

static int
teardown(void **state)
{
	struct test *t = *state;

	super_rig_done(&t->g);
	free(t);
	return 0;
}

static void
begin(struct test *t)
{
	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
}

static void
lists_show_what_is_kept_and_no_secret(void **state)
{
	struct test *t = *state;
	CLEANUP_FREE char *list = mem_format(
	    "{\"projectId\":\"%s\",\"provider\":null}", t->project);
	CLEANUP_FREE char *text = NULL;
	json_t *res;

	begin(t);
	res = super_ask(&t->g, "project-0", "webhook.list", list);
	text = json_dumps(res, JSON_COMPACT);
	assert_non_null(strstr(text, t->webhook));
	assert_non_null(strstr(text, "\"deliveryId\":\"delivery-130\""));
	assert_null(strstr(text, "\"deliveryId\":\"delivery-129\""));
	assert_null(strstr(text, "c2VhbGVk"));
	json_decref(res);
	res = super_ask(&t->g, "project-0", "webhook.deliveries", t->page);
	assert_int_equal(json_array_size(json_object_get(res, "deliveries")), 1);
	assert_int_equal(json_array_size(json_object_get(res, "refusals")), 0);
	json_decref(res);
	super_rig_stop(&t->g);
}

/* Those who hold keys or verify deliveries are of ingress; a person is not. */
static void
custody_is_not_for_everybody(void **state)
{
	static const char *const methods[] = { "webhook.getVerification", "webhook.record",
		"webhook.upsert", "webhook.rotate", "webhook.delete", "webhook.refused",
		"project.listSealed", "project.replaceSealed" };
	struct test *t = *state;
	int fd;

	begin(t);
	fd = super_ctl(&t->g, "project-0");
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		json_t *answer = super_call(fd, methods[i], t->params);

		assert_int_equal(super_error(answer), E_DENIED);
		json_decref(answer);
	}
	io_close(&fd);
	super_rig_stop(&t->g);
}

static int64_t
count_all(const struct test *t)
{
	static const struct store_stmt_row count = { "COUNT", 0,
		"SELECT count(*) FROM project_webhook_deliveries" };
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", t->g.data);
	CLEANUP(store_closep) struct store *s = NULL;
	struct store_desc desc = ledger_store;
	struct stmt *st;
	int64_t n;

	desc.stmts = &count;
	desc.nstmts = 1;
	assert_int_equal(store_open_reader(&desc, path, 0, &s), 0);
	st = store_stmt(s, 0);
	assert_int_equal(stmt_first(st, 0), 0);
	n = stmt_int(st, 0);
	(void)stmt_reset(st);
	return n;
}

static void
old_deliveries_go_by_themselves(void **state)
{
	struct test *t = *state;
	struct mono_time until = mono_add_ms(clock_mono(), WAIT_MS);

	assert_int_equal(count_all(t), OLD + 1);
	begin(t);
	while (count_all(t) != 1) {
		json_t *res = super_ask(&t->g, "project-0", "webhook.deliveries", t->page);

		json_decref(res);
		assert_true(clock_mono().us < until.us);
	}
	super_rig_stop(&t->g);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_show_what_is_kept_and_no_secret),
		TEST(custody_is_not_for_everybody),
		TEST(old_deliveries_go_by_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
