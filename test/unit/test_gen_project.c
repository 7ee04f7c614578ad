/*
 * test/unit/test_gen_project.c -- generated stubs and dispatch rows, over a real connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/event.h>

#include "gen/actor_methods.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define RUN_ID     "run_0123456789ABCDEFGHabcd"
#define PROJECT_ID "prj_0123456789ABCDEFGHabcd"
#define HEX32      "0123456789abcdef0123456789abcdef"

/* ---- handlers of actor.json, of which two do something ---- */

struct actor {
	int64_t npeers;
	enum log_level_word level;
};

int
actor_info(struct actor *a, struct turn *t, const struct actor_info_params *p,
    struct actor_info_result *ret)
{
	(void)a, (void)t, (void)p, (void)ret;
	return E_BUSY;
}

int
actor_stats(struct actor *a, struct turn *t, const struct actor_stats_params *p,
    struct actor_stats_result *ret)
{
	(void)a, (void)t, (void)p, (void)ret;
	return E_BUSY;
}

int
actor_inspect(struct actor *a, struct turn *t, const struct actor_inspect_params *p,
    struct actor_inspect_result *ret)
{
	(void)a, (void)t, (void)p;
	ret->state_text = "{\"well\":true}";
	return 0;
}

int
actor_backup(struct actor *a, struct turn *t, const struct actor_backup_params *p,
    struct actor_backup_result *ret)
{
	(void)a, (void)t, (void)p, (void)ret;
	return E_BUSY;
}

int
actor_check(struct actor *a, struct turn *t, const struct actor_check_params *p,
    struct actor_check_result *ret)
{
	(void)a, (void)t, (void)p, (void)ret;
	return E_BUSY;
}

int
actor_set_log_level(struct actor *a, struct turn *t, const struct actor_set_log_level_params *p,
    struct actor_set_log_level_result *ret)
{
	(void)t;
	a->level = p->level;
	ret->kind = ACTOR_SET_LOG_LEVEL_OK;
	return 0;
}

int
actor_peers(struct actor *a, struct turn *t, const struct actor_peers_params *p)
{
	(void)t;
	a->npeers = (int64_t)p->npeers;
	return 0;
}

/* ---- a connection whose far end answers what it is told to ---- */

struct fix {
	struct event_base *base;
	struct rpc_peer *near, *far;
	const char *answer; /* NULL: the error. */
	int error;
	char params[2048]; /* As they came. */
	char method[64];
	/* What the callback got. */
	int called, err;
	struct project_claim_run_result result;
	char lease_id[40], branch[64];
};

static void
on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct fix *f = arg;

	(void)p;
	assert_int_equal(json_text_dump(&text, req->params), 0);
	assert_true(text.len < sizeof(f->params));
	memcpy(f->params, text.data, text.len);
	f->params[text.len] = '\0';
	(void)snprintf(f->method, sizeof(f->method), "%s", req->method);
	if (f->answer != NULL)
		rpc_reply(req, f->answer, strlen(f->answer));
	else
		rpc_reply_error(req, f->error, NULL, NULL);
}

static void
on_claimed(void *arg, int err, const struct project_claim_run_result *result)
{
	struct fix *f = arg;

	f->called++;
	f->err = err;
	assert_true((err == 0) == (result != NULL));
	if (result == NULL)
		return;
	f->result = *result;
	if (result->kind == PROJECT_CLAIM_RUN_CLAIMED) {
		/* Borrowed until here. */
		(void)snprintf(
		    f->lease_id, sizeof(f->lease_id), "%s", result->u.claimed.lease_id);
		(void)snprintf(
		    f->branch, sizeof(f->branch), "%s", result->u.claimed.snapshot.branch);
	}
}

static int
setup(void **state)
{
	static const struct rpc_peer_ops ops = { .on_request = on_request };
	struct fix *f = mem_calloc(1, sizeof(*f));
	int fds[2];

	assert_non_null(f);
	f->base = event_base_new();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	f->near = rpc_peer_new(f->base, fds[0], &ops, f);
	f->far = rpc_peer_new(f->base, fds[1], &ops, f);
	assert_true(f->near != NULL && f->far != NULL);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	rpc_peer_free(f->near);
	rpc_peer_free(f->far);
	while (event_base_loop(f->base, EVLOOP_NONBLOCK) == 0)
		;
	event_base_free(f->base);
	mem_free(f);
	return 0;
}

static const struct project_claim_run_params claim = {
	.project_id = PROJECT_ID, .run_id = RUN_ID, .spawn_id = HEX32, .pid = 4711
};

static void
call(struct fix *f, const char *answer)
{
	f->called = 0;
	f->answer = answer;
	assert_int_equal(project_claim_run_call(f->near, NULL, &claim, on_claimed, f), 0);
	assert_int_equal(f->called, 0);
	while (f->called == 0)
		assert_true(event_base_loop(f->base, EVLOOP_ONCE) >= 0);
}

static void
a_call_sends_its_params_and_gets_its_result(void **state)
{
	struct fix *f = *state;

	call(f,
	    "{\"kind\":\"claimed\",\"leaseId\":\"" HEX32 "\",\"leaseEpoch\":1,"
	    "\"leaseMs\":30000,\"heartbeatMs\":5000,\"cancelRequestedAt\":null,"
	    "\"snapshot\":{\"runId\":\"" RUN_ID "\",\"projectId\":\"" PROJECT_ID "\","
	    "\"ownerSlug\":\"ada\",\"projectSlug\":\"demo\",\"triggerType\":\"manual\","
	    "\"triggeredByUserId\":null,\"branch\":\"main\",\"commitSha\":null,"
	    "\"repoUrl\":\"https://example.com/a/b\",\"configPath\":\".anvil.yml\","
	    "\"queuedAt\":1},\"repoToken\":null,\"later\":true}");
	assert_string_equal(f->method, "project.claimRun");
	assert_string_equal(f->params,
	    "{\"projectId\":\"" PROJECT_ID "\",\"runId\":\"" RUN_ID "\",\"spawnId\":\"" HEX32
	    "\",\"pid\":4711}");
	assert_int_equal(f->err, 0);
	assert_int_equal(f->result.kind, PROJECT_CLAIM_RUN_CLAIMED);
	assert_int_equal(f->result.u.claimed.lease_ms, 30000);
	assert_false(f->result.u.claimed.has_cancel_requested_at);
	assert_null(f->result.u.claimed.repo_token);
	assert_string_equal(f->lease_id, HEX32);
	assert_string_equal(f->branch, "main");

	call(f, "{\"kind\":\"stale\",\"reason\":\"superseded\"}");
	assert_int_equal(f->result.kind, PROJECT_CLAIM_RUN_STALE);
	assert_int_equal(f->result.u.stale.reason, STALE_REASON_SUPERSEDED);
	call(f, "{\"kind\":\"moved\",\"shard\":3}");
	assert_int_equal(f->result.u.moved.shard, 3);
	call(f, "{\"kind\":\"not_found\"}");
	assert_int_equal(f->result.kind, PROJECT_CLAIM_RUN_NOT_FOUND);
}

static void
what_goes_wrong_reaches_the_callback_as_an_error(void **state)
{
	struct fix *f = *state;

	f->error = E_STORAGE;
	call(f, NULL);
	assert_int_equal(f->err, E_STORAGE);
	call(f, "{\"kind\":\"stale\"}");
	assert_int_equal(f->err, E_PARAMS);
	call(f, "17");
	assert_int_equal(f->err, E_PARAMS);
	call(f, "{\"kind\":\"of a later release\"}");
	assert_int_equal(f->err, E_UNSUPPORTED);
	f->far = rpc_peer_free(f->far);
	call(f, NULL);
	assert_int_equal(f->err, E_LINK);
	assert_int_equal(project_claim_run_call(f->near, NULL, &claim, on_claimed, f), E_LINK);
	assert_int_equal(f->called, 1);
}

static void
starved_calls_fail_and_never_call_back(void **state)
{
	struct fix *f = *state;
	long n;

	for (n = 0;; n++) {
		int r;

		mem_fault_arm(n);
		r = project_claim_run_call(f->near, NULL, &claim, on_claimed, f);
		if (!mem_fault_hit())
			break;
		if (r < 0)
			assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 1);
	assert_int_equal(f->called, 0);
}

static void
notifications_go_one_way(void **state)
{
	const struct peer peers[] = { { "project/0", 12 }, { "ingress", 13 } };
	const struct actor_peers_params p = { .peers = peers, .npeers = 2 };
	struct fix *f = *state;

	f->answer = "null";
	assert_int_equal(actor_peers_send(f->near, NULL, &p), 0);
	while (f->method[0] == '\0')
		assert_true(event_base_loop(f->base, EVLOOP_ONCE) >= 0);
	assert_string_equal(f->method, "actor.peers");
	assert_string_equal(f->params,
	    "{\"peers\":[{\"address\":\"project/0\",\"pid\":12},"
	    "{\"address\":\"ingress\",\"pid\":13}]}");
}

/* Runs a row as lib/actor does; the result as text. */
static int
run_row(struct actor *a, const char *method, const char *params, struct buf *out)
{
	const struct rpc_method *row = rpc_method_find(
	    actor_methods, actor_methods_count, method);
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	CLEANUP(json_unrefp) json_t *j = NULL;
	struct codec c;
	void *p, *ret;
	int r;

	assert_non_null(row);
	assert_int_equal(json_text_parse(params, strlen(params), 64, &j), 0);
	codec_init(&c, arena, NULL);
	p = arena_alloc(arena, row->params_size);
	ret = arena_alloc(arena, row->result_size + 1);
	r = row->decode(&c, j, p);
	if (r == 0)
		r = row->run(a, NULL, p, ret);
	if (r == 0 && row->encode != NULL)
		r = row->encode(out, ret);
	return r;
}

static void
rows_lead_to_handlers(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct actor a = { 0 };
	const struct rpc_method *row;

	(void)state;
	assert_int_equal(actor_methods_count, 7);
	assert_int_equal(run_row(&a, "actor.setLogLevel", "{\"level\":\"warn\"}", &out), 0);
	assert_int_equal(a.level, LOG_LEVEL_WORD_WARN);
	assert_string_equal(buf_cstr(&out), "{\"kind\":\"ok\"}");
	buf_reset(&out);
	assert_int_equal(run_row(&a, "actor.inspect", "{}", &out), 0);
	assert_string_equal(buf_cstr(&out), "{\"state\":{\"well\":true}}");
	assert_int_equal(run_row(&a, "actor.info", "{}", &out), E_BUSY);
	assert_int_equal(run_row(&a, "actor.info", "{\"a\":1}", &out), E_PARAMS);

	/* A notification may say more than this release knows. */
	assert_int_equal(
	    run_row(&a, "actor.peers",
		"{\"peers\":[{\"address\":\"ingress\",\"pid\":2,\"x\":1}],\"y\":2}", &out),
	    0);
	assert_int_equal(a.npeers, 1);
	row = rpc_method_find(actor_methods, actor_methods_count, "actor.peers");
	assert_true(row->notification);
	assert_int_equal(row->from, ROLE_SUPERVISOR);
	assert_null(rpc_method_find(actor_methods, actor_methods_count, "hello"));
}

static void
words_of_enums_have_numbers_and_back(void **state)
{
	enum failure_code code = 0;

	(void)state;
	assert_string_equal(
	    failure_code_name(FAILURE_CODE_RUNTIME_CANCELLED), "runtime_cancelled");
	assert_int_equal(failure_code_parse("runner_lost", &code), 0);
	assert_int_equal(code, FAILURE_CODE_RUNNER_LOST);
	assert_int_equal(failure_code_parse("runner_los", &code), E_INVAL);
	assert_int_equal(failure_code_parse("", &code), E_INVAL);
	assert_int_equal(code, FAILURE_CODE_RUNNER_LOST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_call_sends_its_params_and_gets_its_result, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_goes_wrong_reaches_the_callback_as_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    starved_calls_fail_and_never_call_back, setup, teardown),
		cmocka_unit_test_setup_teardown(notifications_go_one_way, setup, teardown),
		cmocka_unit_test(rows_lead_to_handlers),
		cmocka_unit_test(words_of_enums_have_numbers_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
