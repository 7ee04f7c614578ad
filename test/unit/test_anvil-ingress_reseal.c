/*
 * test/unit/test_anvil-ingress_reseal.c -- walks over the secrets of a shard that the test plays:
 * pages, the guard of each replacement, what does not open, what is interrupted.  It stands in
 * for links.c, for the stubs of the shard and for timers.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/reseal.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define PROJECT  "prj_0123456789abcdefghijAB"
#define ROWS_MAX 100
#define SHARD    1

#define FIRST_KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define ZERO_KEY  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

#define FIRST_KEYS "{\"current\":1,\"keys\":{\"1\":\"" FIRST_KEY "\"}}"

/* ---- time ---- */

/* Only one of many is ever running: that of the shard. */
static struct clock {
	void (*fn)(void *arg);
	void *arg;
	int64_t ms; /* -1: it does not run. */
} timer = { .ms = -1 };

struct actor_timer {
	void (*fn)(void *arg);
	void *arg;
};

struct actor_timer *
actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg)
{
	struct actor_timer *t = mem_calloc(1, sizeof(*t));

	(void)a;
	if (t != NULL)
		*t = (struct actor_timer) { fn, arg };
	return t;
}

struct actor_timer *
actor_timer_free(struct actor_timer *t)
{
	return mem_free(t);
}

int
actor_timer_set(struct actor_timer *t, int64_t ms)
{
	timer = (struct clock) { t->fn, t->arg, ms };
	return 0;
}

/* The time of the timer has come, which is set to ${ms}. */
static void
fire(int64_t ms)
{
	struct clock now = timer;

	assert_int_equal(now.ms, ms);
	timer.ms = -1;
	now.fn(now.arg);
}

/* ---- the shard ---- */

struct row {
	char id[ID_SIZE];
	char *ciphertext;
	char nonce[33];
	int64_t version;
};

static struct shard {
	struct row rows[ROWS_MAX]; /* Webhooks in the order of their ids. */
	size_t nrows;
	int is_down, refuses; /* The next call is not sent; its link is not there. */
	/* The call in flight. */
	project_list_sealed_fn *listed;
	project_replace_sealed_fn *replaced;
	void *arg;
	struct project_list_sealed_params list;
	char cursor[130], id[ID_SIZE], expect[512], ciphertext[512], nonce[33];
	int64_t version;
	int nlists, nreplaced;
} shard;

static struct ingress in;

struct rpc_peer *
links_shard(const struct ingress *i, int64_t number)
{
	assert_ptr_equal(i, &in);
	return number == SHARD && !shard.is_down ? (struct rpc_peer *)(void *)&shard : NULL;
}

static int
begin_call(const struct rpc_call_opts *opts, void *arg)
{
	assert_null(shard.listed);
	assert_null(shard.replaced);
	assert_int_equal(opts->deadline_ms, RESEAL_CALL_MS);
	shard.arg = arg;
	return shard.refuses ? E_OVERLOADED : 0;
}

int
project_list_sealed_call(struct rpc_peer *p, const struct rpc_call_opts *opts,
    const struct project_list_sealed_params *params, project_list_sealed_fn *cb, void *arg)
{
	int r = begin_call(opts, arg);

	(void)p;
	if (r < 0)
		return r;
	assert_int_equal(params->limit, RESEAL_PAGE);
	shard.listed = cb;
	shard.list = *params;
	(void)snprintf(shard.cursor, sizeof(shard.cursor), "%s",
	    params->cursor != NULL ? params->cursor : "");
	return 0;
}

int
project_replace_sealed_call(struct rpc_peer *p, const struct rpc_call_opts *opts,
    const struct project_replace_sealed_params *params, project_replace_sealed_fn *cb,
    void *arg)
{
	int r = begin_call(opts, arg);

	(void)p;
	if (r < 0)
		return r;
	assert_string_equal(params->table, "project_webhooks");
	assert_string_equal(params->column, "secret");
	shard.replaced = cb;
	(void)snprintf(shard.id, sizeof(shard.id), "%s", params->row_id);
	(void)snprintf(shard.expect, sizeof(shard.expect), "%s", params->expect_ciphertext);
	(void)snprintf(
	    shard.ciphertext, sizeof(shard.ciphertext), "%s", params->sealed.ciphertext);
	(void)snprintf(shard.nonce, sizeof(shard.nonce), "%s", params->sealed.nonce);
	shard.version = params->sealed.key_version;
	return 0;
}

/* The page that was asked for; what is in it is gone when the callback is through. */
static void
answer_list(int err)
{
	struct project_list_sealed_result res = { .kind = PROJECT_LIST_SEALED_PAGE };
	struct sealed_secret *page = mem_calloc(RESEAL_PAGE, sizeof(*page));
	project_list_sealed_fn *cb = shard.listed;
	CLEANUP_FREE char *next = NULL;
	size_t n = 0;

	shard.listed = NULL;
	shard.nlists++;
	for (size_t i = 0; i < shard.nrows && n < RESEAL_PAGE; i++) {
		const struct row *w = &shard.rows[i];

		if (w->version >= shard.list.below_version ||
		    (shard.cursor[0] != '\0' && strcmp(w->id, shard.cursor) <= 0))
			continue;
		page[n++] = (struct sealed_secret) { .project_id = PROJECT,
			.table = "project_webhooks",
			.row_id = w->id,
			.column = "secret",
			.sealed = { w->ciphertext, w->nonce, w->version } };
	}
	if (n == RESEAL_PAGE)
		next = mem_strdup(page[n - 1].row_id);
	res.u.page = (struct project_list_sealed_page) { page, n, next, 0 };
	cb(shard.arg, err, err < 0 ? NULL : &res);
	memset(page, 0xa5, RESEAL_PAGE * sizeof(*page));
	mem_free(page);
}

static struct row *
row_of(const char *id)
{
	for (size_t i = 0; i < shard.nrows; i++)
		if (strcmp(shard.rows[i].id, id) == 0)
			return &shard.rows[i];
	return NULL;
}

/* Takes the replacement as a shard does, and answers it with ${err}: when that is E_LINK the
 * answer was lost on its way. */
static void
answer_replace(int err)
{
	struct project_replace_sealed_result res = { .kind = PROJECT_REPLACE_SEALED_CHANGED };
	project_replace_sealed_fn *cb = shard.replaced;
	struct row *w = row_of(shard.id);

	shard.replaced = NULL;
	if (w != NULL && strcmp(w->ciphertext, shard.expect) == 0) {
		mem_free(w->ciphertext);
		w->ciphertext = mem_strdup(shard.ciphertext);
		memcpy(w->nonce, shard.nonce, sizeof(w->nonce));
		w->version = shard.version;
		res.kind = PROJECT_REPLACE_SEALED_REPLACED;
		shard.nreplaced++;
	}
	cb(shard.arg, err, err < 0 ? NULL : &res);
}

static void
serve_until_idle(void)
{
	while (shard.listed != NULL || shard.replaced != NULL || timer.ms == RESEAL_PAUSE_MS)
		if (shard.listed != NULL)
			answer_list(0);
		else if (shard.replaced != NULL)
			answer_replace(0);
		else
			fire(RESEAL_PAUSE_MS);
}

/* ---- secrets ---- */

/* Seals the secret of row ${i} as somebody else would. */
static void
seal_row(size_t i, const struct vault_keys *keys)
{
	struct row *w = &shard.rows[i];
	struct vault_sealed s;
	char bound[80];

	(void)snprintf(w->id, sizeof(w->id), "whk_0123456789abcdefghij%02zu", i);
	(void)snprintf(bound, sizeof(bound), "project_webhooks|%s|secret", w->id);
	assert_int_equal(
	    vault_seal(keys, VAULT_WEBHOOK_SECRET, PROJECT, bound, w->id, strlen(w->id), &s),
	    0);
	mem_free(w->ciphertext);
	w->ciphertext = s.ciphertext;
	memcpy(w->nonce, s.nonce, sizeof(w->nonce));
	w->version = s.key_version;
}

static void
fill(size_t n)
{
	shard.nrows = n;
	for (size_t i = 0; i < n; i++)
		seal_row(i, in.keys);
}

/* So many rows are under ${version} and open to what they were. */
static void
expect_under(int64_t version, size_t n)
{
	size_t got = 0;

	for (size_t i = 0; i < shard.nrows; i++) {
		CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
		const struct row *w = &shard.rows[i];
		struct vault_sealed s = { w->ciphertext, "", w->version };
		char bound[80];

		if (w->version != version)
			continue;
		got++;
		memcpy(s.nonce, w->nonce, sizeof(s.nonce));
		(void)snprintf(bound, sizeof(bound), "project_webhooks|%s|secret", w->id);
		assert_int_equal(
		    vault_open(in.keys, VAULT_WEBHOOK_SECRET, PROJECT, bound, &s, &plain), 0);
		assert_string_equal(buf_cstr(&plain), w->id);
	}
	assert_int_equal(got, n);
}

static struct vault_keys *
keys_of(const char *text)
{
	struct vault_keys *k = NULL;

	assert_int_equal(vault_keys_parse(text, strlen(text), &k, NULL), 0);
	return k;
}

static void
rotate(void)
{
	assert_int_equal(vault_keys_rotate(in.keys), 0);
	reseal_kick_all(in.reseal);
}

static int
begin(void **state)
{
	(void)state;
	in = (struct ingress) { .nshards = SHARD + 1 };
	in.keys = keys_of(FIRST_KEYS);
	in.reseal = reseal_new(&in);
	assert_non_null(in.reseal);
	timer.ms = -1;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	in.reseal = reseal_free(in.reseal);
	in.keys = vault_keys_free(in.keys);
	for (size_t i = 0; i < ROWS_MAX; i++)
		mem_free(shard.rows[i].ciphertext);
	shard = (struct shard) { .nrows = 0 };
	return 0;
}

/* ---- tests ---- */

static void
every_secret_comes_under_the_current_version_page_by_page(void **state)
{
	(void)state;
	fill(2 * RESEAL_PAGE + 3);
	reseal_kick(in.reseal, SHARD);
	fire(0);
	assert_int_equal(shard.list.below_version, 1);
	serve_until_idle();
	assert_int_equal(shard.nreplaced, 0);
	fire(RESEAL_EVERY_MS);
	serve_until_idle();
	shard.nlists = 0;
	rotate();
	fire(0);
	assert_int_equal(shard.list.below_version, 2);
	serve_until_idle();
	expect_under(2, 2 * RESEAL_PAGE + 3);
	assert_int_equal(shard.nlists, 3);
	assert_int_equal(reseal_count(in.reseal), 2 * RESEAL_PAGE + 3);
	/* And once in a while somebody looks. */
	fire(RESEAL_EVERY_MS);
	serve_until_idle();
	assert_int_equal(shard.nlists, 4);
}

static void
pages_are_a_moment_apart_and_calls_never_two(void **state)
{
	(void)state;
	fill(RESEAL_PAGE + 1);
	rotate();
	fire(0);
	answer_list(0);
	for (int i = 0; i < RESEAL_PAGE; i++) {
		assert_int_equal(timer.ms, -1);
		answer_replace(0);
	}
	assert_null(shard.listed);
	fire(RESEAL_PAUSE_MS);
	assert_string_equal(shard.cursor, shard.rows[RESEAL_PAGE - 1].id);
	serve_until_idle();
	expect_under(2, RESEAL_PAGE + 1);
}

static void
a_secret_that_somebody_changed_is_left_as_it_is_and_read_again(void **state)
{
	CLEANUP(vault_keys_freep)
	struct vault_keys *first = keys_of(FIRST_KEYS);
	char kept[512];

	(void)state;
	fill(3);
	rotate();
	fire(0);
	answer_list(0);
	answer_replace(0);
	/* Under the old version still, by one who had it when it began. */
	seal_row(1, first);
	(void)snprintf(kept, sizeof(kept), "%s", shard.rows[1].ciphertext);
	answer_replace(0);
	assert_string_equal(shard.rows[1].ciphertext, kept);
	serve_until_idle();
	expect_under(2, 2);
	fire(RESEAL_AGAIN_MS);
	serve_until_idle();
	expect_under(2, 3);
	assert_int_equal(timer.ms, RESEAL_EVERY_MS);
}

static void
a_secret_without_a_key_keeps_none_of_the_others_back(void **state)
{
	(void)state;
	fill(RESEAL_PAGE + 4);
	shard.rows[0].version = shard.rows[3].version = 7; /* Nobody has that. */
	shard.rows[RESEAL_PAGE + 3].ciphertext[0] ^= 1;
	in.keys = vault_keys_free(in.keys);
	in.keys = keys_of(
	    "{\"current\":8,\"keys\":{\"1\":\"" FIRST_KEY "\",\"8\":\"" ZERO_KEY "\"}}");
	reseal_kick(in.reseal, SHARD);
	fire(0);
	serve_until_idle();
	expect_under(8, RESEAL_PAGE + 1);
	/* They are tried again, but not soon. */
	fire(RESEAL_EVERY_MS);
	serve_until_idle();
	expect_under(8, RESEAL_PAGE + 1);
	assert_int_equal(timer.ms, RESEAL_EVERY_MS);
	/* The key is back. */
	in.keys = vault_keys_free(in.keys);
	in.keys = keys_of("{\"current\":8,\"keys\":{\"1\":\"" FIRST_KEY "\",\"7\":\"" FIRST_KEY
			  "\",\"8\":\"" ZERO_KEY "\"}}");
	reseal_kick_all(in.reseal);
	fire(0);
	serve_until_idle();
	expect_under(8, RESEAL_PAGE + 3);
}

static void
a_row_that_the_shard_refuses_is_passed_over(void **state)
{
	(void)state;
	fill(3);
	rotate();
	fire(0);
	answer_list(0);
	shard.expect[0] ^= 1; /* It does not take it, ... */
	answer_replace(E_PARAMS);
	serve_until_idle();
	expect_under(2, 2);
	assert_int_equal(timer.ms, RESEAL_EVERY_MS);
}

static void
what_is_interrupted_goes_on_where_rows_are_still_old(void **state)
{
	static const int errors[] = { E_LINK, E_DEADLINE, E_STORAGE, E_FULL };

	(void)state;
	fill(RESEAL_PAGE);
	rotate();
	fire(0);
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		answer_list(0);
		answer_replace(0);
		answer_replace(errors[i]); /* Done, but the answer is lost. */
		fire(RESEAL_RETRY_MS);
		answer_list(errors[i]);
		fire(RESEAL_RETRY_MS);
	}
	expect_under(2, 2 * ARRAY_LEN(errors));
	serve_until_idle();
	expect_under(2, RESEAL_PAGE);
	assert_int_equal(shard.nreplaced, RESEAL_PAGE);
}

static void
a_shard_that_is_away_is_walked_when_its_link_is_back(void **state)
{
	(void)state;
	fill(2);
	shard.is_down = 1;
	rotate();
	fire(0);
	assert_null(shard.listed);
	assert_int_equal(timer.ms, -1);
	shard.is_down = 0;
	reseal_kick(in.reseal, SHARD);
	fire(0);
	answer_list(0);
	shard.is_down = 1; /* In the middle. */
	answer_replace(0);
	assert_int_equal(timer.ms, RESEAL_RETRY_MS);
	shard.is_down = 0;
	shard.refuses = 1; /* Too many calls are under way. */
	fire(RESEAL_RETRY_MS);
	assert_null(shard.listed);
	shard.refuses = 0;
	reseal_kick(in.reseal, SHARD);
	fire(0);
	serve_until_idle();
	expect_under(2, 2);
	/* Nobody has a shard of that number. */
	reseal_kick(in.reseal, -1);
	reseal_kick(in.reseal, SHARDS_MAX);
	reseal_kick(NULL, SHARD);
}

static void
newer_keys_in_the_middle_make_another_walk(void **state)
{
	(void)state;
	fill(3);
	rotate();
	fire(0);
	answer_list(0);
	answer_replace(0);
	expect_under(2, 1);
	rotate();
	/* What was sealed before they came. */
	answer_replace(0);
	expect_under(2, 2);
	answer_replace(0);
	expect_under(3, 1);
	fire(0);
	serve_until_idle();
	expect_under(3, 3);
	assert_int_equal(timer.ms, RESEAL_EVERY_MS);
}

static void
every_failed_allocation_only_interrupts(void **state)
{
	CLEANUP(vault_keys_freep)
	struct vault_keys *first = keys_of(FIRST_KEYS);
	long n;

	(void)state;
	fill(2);
	assert_int_equal(vault_keys_rotate(in.keys), 0);
	for (n = 0;; n++) {
		int hit;

		seal_row(0, first);
		timer.ms = -1;
		reseal_kick(in.reseal, SHARD);
		fire(0);
		assert_non_null(shard.listed);
		/* The test's own page comes first. */
		mem_fault_arm(n + 1);
		answer_list(0);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		serve_until_idle();
		assert_int_equal(timer.ms, hit ? RESEAL_RETRY_MS : RESEAL_EVERY_MS);
		if (!hit)
			break;
	}
	assert_true(n >= 3); /* The page, and what a secret takes. */
	expect_under(2, 2);
}

#define WITH_SHARD(t) cmocka_unit_test_setup_teardown(t, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SHARD(every_secret_comes_under_the_current_version_page_by_page),
		WITH_SHARD(pages_are_a_moment_apart_and_calls_never_two),
		WITH_SHARD(a_secret_that_somebody_changed_is_left_as_it_is_and_read_again),
		WITH_SHARD(a_secret_without_a_key_keeps_none_of_the_others_back),
		WITH_SHARD(a_row_that_the_shard_refuses_is_passed_over),
		WITH_SHARD(what_is_interrupted_goes_on_where_rows_are_still_old),
		WITH_SHARD(a_shard_that_is_away_is_walked_when_its_link_is_back),
		WITH_SHARD(newer_keys_in_the_middle_make_another_walk),
		WITH_SHARD(every_failed_allocation_only_interrupts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
