/* cmd/anvil-ingress/hook_refusal.c: refused attempts are merged, bounded, and sent at most once a
 * second.  It stands in for links.c and for timers. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hook_refusal.h"
#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define CALLS_MAX 256

static struct ingress in;
static struct hook_refusals *refusals;

/* ---- stand-ins ---- */

static struct shard_call *calls[CALLS_MAX];
static size_t ncalls;
static char sent[64 * 1024]; /* Params of the newest call. */

int
stub_send(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts, rpc_answer_fn *cb,
    const struct stub_call *call)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)p;
	(void)opts;
	(void)cb;
	(void)call;
	assert_string_equal(method, "webhook.refused");
	assert_int_equal(codec_encode(&text, t, params), 0);
	(void)snprintf(sent, sizeof(sent), "%s", buf_cstr(&text));
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
stub_answer(struct stub_call *stub, const struct rpc_answer *answer, const struct codec_type *t,
    void *ret_result)
{
	(void)stub;
	(void)answer;
	(void)t;
	(void)ret_result;
	return E_LINK;
}

void
stub_done(struct stub_call *stub)
{
	(void)stub;
}

void
shard_call_start(struct shard_call *c)
{
	assert_true(ncalls < CALLS_MAX);
	assert_false(c->repeats);
	calls[ncalls++] = c;
	assert_int_equal(c->send(c, NULL, NULL), 0);
}

void
shard_call_done(struct shard_call *c)
{
	(void)c;
}

void
shard_call_error(struct shard_call *c, int err)
{
	(void)c;
	(void)err;
}

void
shard_call_moved(struct shard_call *c, int64_t shard)
{
	(void)c;
	(void)shard;
}

void
shard_call_moving(struct shard_call *c, int64_t retry_ms)
{
	(void)c;
	(void)retry_ms;
}

static struct actor_timer {
	void (*fn)(void *arg);
	void *arg;
	int is_set;
} timer;

struct actor_timer *
actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg)
{
	(void)a;
	timer = (struct actor_timer) { fn, arg, 0 };
	return &timer;
}

struct actor_timer *
actor_timer_free(struct actor_timer *t)
{
	(void)t;
	return NULL;
}

int
actor_timer_set(struct actor_timer *t, int64_t ms)
{
	assert_int_equal(ms, HOOK_REFUSAL_EVERY_MS);
	t->is_set = 1;
	return 0;
}

int
actor_timer_is_set(const struct actor_timer *t)
{
	return t->is_set;
}

static void
second_passes(void)
{
	if (!timer.is_set)
		return;
	timer.is_set = 0;
	timer.fn(timer.arg);
}

/* Every call has its end. */
static void
calls_end(void)
{
	while (ncalls > 0) {
		ncalls--;
		calls[ncalls]->failed(calls[ncalls], HTTP_CODE_SHARD_UNAVAILABLE, 1);
	}
}

/* ---- attempts ---- */

static void
add(int webhook, enum refusal_reason reason, const char *address, const char *id)
{
	struct hook_material m = { .shard = 1, .project_id = "prj_0123456789abcdefghijAB" };
	struct refusal_row row = { .reason = reason,
		.hint = "a hint",
		.delivery_id = id,
		.has_body_bytes = 1,
		.body_bytes = 5,
		.client_address = address };

	(void)snprintf(m.webhook_id, sizeof(m.webhook_id), "whk_%022d", webhook);
	hook_refusals_add(refusals, &m, &row);
}

static int
setup(void **state)
{
	(void)state;
	ncalls = 0;
	sent[0] = '\0';
	refusals = hook_refusals_new(&in);
	return refusals == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	calls_end();
	refusals = hook_refusals_free(refusals);
	return 0;
}

static void
equal_reasons_from_one_address_are_one_entry(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		add(1, REFUSAL_REASON_SIGNATURE_MISMATCH, "192.0.2.1", i < 999 ? "x" : "last");
	add(1, REFUSAL_REASON_SIGNATURE_MISMATCH, "192.0.2.2", NULL);
	add(1, REFUSAL_REASON_BAD_JSON, "192.0.2.1", NULL);
	assert_int_equal(hook_refusals_count(refusals), 3);
	assert_int_equal(ncalls, 0);
	second_passes();
	assert_int_equal(ncalls, 1);
	assert_int_equal(hook_refusals_count(refusals), 0);
	assert_non_null(strstr(sent, "\"count\":1000"));
	assert_non_null(strstr(sent, "\"deliveryId\":\"last\""));
	assert_non_null(strstr(sent, "\"eventName\":null"));
	assert_non_null(strstr(sent, "\"reason\":\"bad_json\""));
	second_passes();
	assert_int_equal(ncalls, 1);
}

static void
a_webhook_is_told_at_most_once_a_second(void **state)
{
	(void)state;
	add(1, REFUSAL_REASON_TIMEOUT, "a", NULL);
	second_passes();
	for (int i = 0; i < 5; i++)
		add(1, REFUSAL_REASON_TIMEOUT, "a", NULL);
	assert_int_equal(ncalls, 1);
	second_passes();
	assert_int_equal(ncalls, 2);
	assert_non_null(strstr(sent, "\"count\":5"));
	assert_false(timer.is_set);
}

static void
what_is_kept_is_bounded(void **state)
{
	char address[32];

	(void)state;
	for (int i = 0; i < 3 * HOOK_REFUSALS_ONE; i++) {
		(void)snprintf(address, sizeof(address), "192.0.2.%d", i);
		add(0, REFUSAL_REASON_BAD_JSON, address, NULL);
	}
	assert_int_equal(hook_refusals_count(refusals), HOOK_REFUSALS_ONE);
	for (int i = 0; i < 2 * HOOK_REFUSALS_ALL; i++)
		add(i, REFUSAL_REASON_BAD_JSON, "192.0.2.1", NULL);
	assert_int_equal(hook_refusals_count(refusals), HOOK_REFUSALS_ALL);
	/* Each second some of them leave, until all have. */
	second_passes();
	assert_int_equal(ncalls, HOOK_REFUSAL_CALLS);
	assert_true(timer.is_set);
	while (timer.is_set) {
		calls_end();
		second_passes();
	}
	assert_int_equal(hook_refusals_count(refusals), 0);
}

static void
all_leaves_when_ingress_stops(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		add(i, REFUSAL_REASON_BAD_JSON, "192.0.2.1", NULL);
	hook_refusals_flush(refusals);
	assert_int_equal(ncalls, 100);
	assert_int_equal(hook_refusals_count(refusals), 0);
}

static void
what_has_not_left_is_freed(void **state)
{
	(void)state;
	add(1, REFUSAL_REASON_BAD_JSON, "192.0.2.1", "x");
	add(2, REFUSAL_REASON_BAD_JSON, "192.0.2.1", "x");
}

static int
add_scarce(void *arg)
{
	size_t before = hook_refusals_count(refusals);
	static int webhook;

	(void)arg;
	add(++webhook, REFUSAL_REASON_BAD_JSON, "192.0.2.1", "x");
	if (hook_refusals_count(refusals) == before)
		return E_NOMEM;
	return 0;
}

static void
want_of_memory_costs_an_entry_and_nothing_else(void **state)
{
	(void)state;
	assert_true(starve(add_scarce, NULL) >= 3);
	/* Nothing is sent for those who found no room. */
	hook_refusals_flush(refusals);
	assert_int_equal(ncalls, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_reasons_from_one_address_are_one_entry),
		TEST(a_webhook_is_told_at_most_once_a_second),
		TEST(what_is_kept_is_bounded),
		TEST(all_leaves_when_ingress_stops),
		TEST(what_has_not_left_is_freed),
		TEST(want_of_memory_costs_an_entry_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
