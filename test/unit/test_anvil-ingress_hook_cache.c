/*
 * test/unit/test_anvil-ingress_hook_cache.c -- what is kept of verification material, and who waits
 * for it.  It stands in for links.c and for the sending of stubs.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define CALLS_MAX 8
#define WAITS_MAX 4

static struct ingress in;
static struct hook_cache *cache;

/* ---- the shard ---- */

static struct call {
	struct shard_call *call;
	struct stub_call stub;
	rpc_answer_fn *cb;
	struct webhook_get_verification_result result;
	int err;
} calls[CALLS_MAX];
static size_t ncalls;

int
stub_send(struct rpc_peer *p, const char *method, const struct codec_type *t,
    const void *params, const struct rpc_call_opts *opts, rpc_answer_fn *cb,
    const struct stub_call *call)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)p;
	(void)opts;
	assert_string_equal(method, "webhook.getVerification");
	assert_int_equal(codec_encode(&text, t, params), 0);
	calls[ncalls - 1].cb = cb;
	calls[ncalls - 1].stub = *call;
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

/* ${stub} is that of the call whose callback runs. */
int
stub_answer(struct stub_call *stub, const struct rpc_answer *answer, const struct codec_type *t,
    void *ret_result)
{
	const struct call *c =
	    (const struct call *)((const char *)stub - offsetof(struct call, stub));

	(void)answer;
	if (c->err == 0)
		memcpy(ret_result, &c->result, t->size);
	return c->err;
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
	calls[ncalls++].call = c;
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
	(void)err;
	c->failed(c, HTTP_CODE_SHARD_UNAVAILABLE, 1);
}

void
shard_call_moved(struct shard_call *c, int64_t shard)
{
	c->shard = shard;
}

void
shard_call_moving(struct shard_call *c, int64_t retry_ms)
{
	(void)retry_ms;
	c->failed(c, HTTP_CODE_PROJECT_MOVING, 0);
}

static void
answer(size_t i)
{
	static const struct rpc_answer nothing;

	assert_true(i < ncalls);
	calls[i].cb(&calls[i].stub, &nothing);
}

static struct webhook_get_verification_found
found(int64_t version)
{
	return (
	    struct webhook_get_verification_found) { .webhook_id = "whk_0123456789abcdefghijAB",
		.version = version,
		.sealed_secret = { "c2VjcmV0", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", 1 },
		.repo_url = "https://github.com/a/b",
		.default_branch = "main" };
}

static void
answer_found(size_t i, int64_t version)
{
	calls[i].err = 0;
	calls[i].result.kind = WEBHOOK_GET_VERIFICATION_FOUND;
	calls[i].result.u.found = found(version);
	answer(i);
}

/* ---- those who wait ---- */

static struct waiter {
	struct hook_wait wait;
	int times;
	enum hook_found found;
	int64_t version, shard;
	enum http_code why;
} waiters[WAITS_MAX];

static void
on_done(struct hook_wait *w, enum hook_found v, struct hook_material *m)
{
	struct waiter *t = (struct waiter *)(void *)w;

	t->times++;
	t->found = v;
	t->why = w->why;
	t->version = m != NULL ? m->version : 0;
	t->shard = m != NULL ? m->shard : -1;
}

static const char *
project(int n)
{
	static char id[ID_SIZE];

	(void)snprintf(id, sizeof(id), "prj_%022d", n);
	return id;
}

static void
load(int waiter, int n, int64_t deadline_ms)
{
	waiters[waiter].wait.done = on_done;
	hook_cache_load(cache, &waiters[waiter].wait, project(n), PROVIDER_GITHUB, 1,
	    deadline_ms, "request");
}

static const struct hook_material *
find(int n)
{
	return hook_cache_find(cache, project(n), PROVIDER_GITHUB, clock_mono());
}

static void
put(int n, enum provider provider, int64_t shard, int64_t version)
{
	struct webhook_get_verification_found f = found(version);
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = hook_material_new(project(n), provider, shard, &f);

	assert_non_null(m);
	hook_cache_put(cache, m);
}

static int
setup(void **state)
{
	(void)state;
	ncalls = 0;
	memset(calls, 0, sizeof(calls));
	memset(waiters, 0, sizeof(waiters));
	cache = hook_cache_new(&in);
	return cache == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	clock_shift_for_test(0, 0);
	cache = hook_cache_free(cache);
	return 0;
}

/* ---- what is kept ---- */

static void
material_is_kept_for_a_minute(void **state)
{
	(void)state;
	put(1, PROVIDER_GITHUB, 0, 7);
	assert_int_equal(find(1)->version, 7);
	assert_null(find(2));
	assert_null(hook_cache_find(cache, project(1), PROVIDER_GITLAB, clock_mono()));
	put(1, PROVIDER_GITHUB, 0, 8);
	assert_int_equal(find(1)->version, 8);
	assert_int_equal(hook_cache_count(cache), 1);
	clock_shift_for_test(0, HOOK_CACHE_MS + 1);
	assert_null(find(1));
	assert_int_equal(hook_cache_count(cache), 0);
}

static void
who_holds_material_keeps_it_when_the_cache_lets_go(void **state)
{
	struct webhook_config config = { "https://gitlab.example.com" };
	struct webhook_get_verification_found f = found(7);
	struct hook_material *m;

	(void)state;
	f.config = &config;
	m = hook_material_new(project(1), PROVIDER_GITLAB, 3, &f);
	assert_non_null(m);
	hook_cache_put(cache, m);
	hook_cache_drop(cache, project(1), PROVIDER_GITLAB);
	assert_int_equal(hook_cache_count(cache), 0);
	assert_string_equal(m->instance_url, "https://gitlab.example.com");
	assert_string_equal(m->repo_url, "https://github.com/a/b");
	assert_string_equal(m->default_branch, "main");
	assert_string_equal(m->secret.ciphertext, "c2VjcmV0");
	assert_int_equal(m->shard, 3);
	assert_null(hook_material_unref(m));
}

static void
the_oldest_goes_when_there_is_no_room(void **state)
{
	(void)state;
	for (int i = 0; i < HOOK_CACHE_ENTRIES; i++)
		put(i, PROVIDER_GITHUB, 0, 1);
	assert_int_equal(hook_cache_count(cache), HOOK_CACHE_ENTRIES);
	/* Renewed, it is the youngest. */
	put(0, PROVIDER_GITHUB, 0, 2);
	put(HOOK_CACHE_ENTRIES, PROVIDER_GITHUB, 0, 1);
	assert_int_equal(hook_cache_count(cache), HOOK_CACHE_ENTRIES);
	assert_null(find(1));
	assert_non_null(find(0));
	assert_non_null(find(2));
	/* What is over goes without being asked for. */
	clock_shift_for_test(0, HOOK_CACHE_MS + 1);
	put(1, PROVIDER_GITHUB, 0, 1);
	assert_int_equal(hook_cache_count(cache), 1);
}

static void
changes_drop_what_they_concern(void **state)
{
	(void)state;
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		put(1, (enum provider)p, 0, 1);
		put(2, (enum provider)p, 1, 1);
	}
	hook_cache_drop(cache, project(1), PROVIDER_GITEA);
	assert_int_equal(hook_cache_count(cache), 5);
	hook_cache_drop(cache, project(3), PROVIDER_GITEA);
	hook_cache_drop_project(cache, project(1));
	assert_int_equal(hook_cache_count(cache), 3);
	put(1, PROVIDER_GITHUB, 0, 1);
	hook_cache_drop_shard(cache, 1);
	assert_int_equal(hook_cache_count(cache), 1);
	assert_non_null(find(1));
}

/* ---- asking ---- */

static void
all_who_ask_at_once_share_one_question(void **state)
{
	(void)state;
	load(0, 1, 5000);
	load(1, 1, 5000);
	load(2, 2, 5000);
	assert_int_equal(ncalls, 2);
	hook_wait_cancel(&waiters[1].wait);
	hook_wait_cancel(&waiters[1].wait);
	answer_found(0, 7);
	assert_int_equal(waiters[0].times, 1);
	assert_int_equal(waiters[0].found, HOOK_FOUND);
	assert_int_equal(waiters[0].version, 7);
	assert_int_equal(waiters[1].times, 0);
	assert_int_equal(waiters[2].times, 0);
	assert_int_equal(find(1)->version, 7);
	answer_found(1, 8);
	assert_int_equal(waiters[2].version, 8);
}

static void
an_answer_is_kept_though_nobody_waits_any_more(void **state)
{
	(void)state;
	load(0, 1, 5000);
	hook_wait_cancel(&waiters[0].wait);
	answer_found(0, 7);
	assert_int_equal(waiters[0].times, 0);
	assert_non_null(find(1));
}

static void
absence_and_failure_are_told_and_not_kept(void **state)
{
	(void)state;
	load(0, 1, 5000);
	calls[0].result.kind = WEBHOOK_GET_VERIFICATION_NOT_FOUND;
	answer(0);
	assert_int_equal(waiters[0].found, HOOK_ABSENT);
	load(1, 1, 5000);
	calls[1].err = E_LINK;
	answer(1);
	assert_int_equal(waiters[1].found, HOOK_UNKNOWN);
	assert_int_equal(waiters[1].why, HTTP_CODE_SHARD_UNAVAILABLE);
	load(2, 1, 5000);
	calls[2].result.kind = WEBHOOK_GET_VERIFICATION_MOVING;
	answer(2);
	assert_int_equal(waiters[2].why, HTTP_CODE_PROJECT_MOVING);
	assert_int_equal(hook_cache_count(cache), 0);
}

static void
an_answer_that_a_change_has_overtaken_is_not_kept_nor_shared(void **state)
{
	(void)state;
	load(0, 1, 5000);
	hook_cache_drop_project(cache, project(1));
	load(1, 1, 5000);
	assert_int_equal(ncalls, 2);
	answer_found(0, 7);
	assert_int_equal(waiters[0].version, 7);
	assert_int_equal(waiters[1].times, 0);
	assert_null(find(1));
	answer_found(1, 8);
	assert_int_equal(waiters[1].version, 8);
	assert_int_equal(find(1)->version, 8);
}

static void
material_of_a_project_that_has_moved_is_from_its_new_shard(void **state)
{
	(void)state;
	load(0, 1, 5000);
	calls[0].result.kind = WEBHOOK_GET_VERIFICATION_MOVED;
	calls[0].result.u.moved.shard = 4;
	answer(0);
	assert_int_equal(waiters[0].times, 0);
	answer_found(0, 7);
	assert_int_equal(waiters[0].shard, 4);
	hook_cache_drop_shard(cache, 4);
	assert_null(find(1));
}

static void
who_has_less_time_than_the_question_takes_does_not_wait(void **state)
{
	(void)state;
	load(0, 1, 5000);
	load(1, 1, 100);
	assert_int_equal(ncalls, 1);
	assert_int_equal(waiters[1].times, 1);
	assert_int_equal(waiters[1].found, HOOK_UNKNOWN);
	assert_int_equal(waiters[1].why, HTTP_CODE_SHARD_UNAVAILABLE);
	answer_found(0, 7);
	assert_int_equal(waiters[1].times, 1);
}

static int
load_scarce(void *arg)
{
	(void)arg;
	ncalls = 0;
	memset(waiters, 0, sizeof(waiters));
	hook_cache_drop_project(cache, project(1));
	load(0, 1, 5000);
	if (ncalls == 1)
		answer_found(0, 7);
	assert_int_equal(waiters[0].times, 1);
	if (waiters[0].found == HOOK_FOUND)
		return 0;
	assert_int_equal(waiters[0].why, HTTP_CODE_OVERLOADED);
	return E_NOMEM;
}

static int
open_scarce(void *arg)
{
	(void)arg;
	cache = hook_cache_free(cache);
	cache = hook_cache_new(&in);
	return cache != NULL ? 0 : E_NOMEM;
}

static void
want_of_memory_is_told_to_those_who_wait(void **state)
{
	(void)state;
	assert_true(starve_lenient(load_scarce, NULL) >= 3);
	assert_true(starve(open_scarce, NULL) >= 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(material_is_kept_for_a_minute),
		TEST(who_holds_material_keeps_it_when_the_cache_lets_go),
		TEST(the_oldest_goes_when_there_is_no_room),
		TEST(changes_drop_what_they_concern),
		TEST(all_who_ask_at_once_share_one_question),
		TEST(an_answer_is_kept_though_nobody_waits_any_more),
		TEST(absence_and_failure_are_told_and_not_kept),
		TEST(an_answer_that_a_change_has_overtaken_is_not_kept_nor_shared),
		TEST(material_of_a_project_that_has_moved_is_from_its_new_shard),
		TEST(who_has_less_time_than_the_question_takes_does_not_wait),
		TEST(want_of_memory_is_told_to_those_who_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
