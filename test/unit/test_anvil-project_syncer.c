/*
 * test/unit/test_anvil-project_syncer.c -- what a shard sends to an index that the test plays: rows
 * that are refused, and rows that cannot be told, keep no others waiting.  It stands in for
 * shard.c, for turns, for the link and for the stubs of ingress.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/shard.h"
#include "cmd/anvil-project/syncer.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/ledger_rig.h"
#include "test/support/unit.h"

#define RUNS 6

static struct ledger_rig *rig;
static struct shard shard;

/* ---- turns ---- */

static struct {
	void (*fn)(void *arg);
	void *arg;
} effect;

static int
do_turn(int (*fn)(void *arg, struct turn *t), void *arg)
{
	struct turn t = { .store = rig->s, .arena = rig->a, .now_ms = rig->now };
	int r = fn(arg, &t);

	if (effect.fn != NULL) {
		void (*then)(void *arg) = effect.fn;

		effect.fn = NULL;
		then(effect.arg);
	}
	return r;
}

int
actor_turn(struct actor *a, int write, int (*fn)(void *arg, struct turn *t), void *arg)
{
	(void)a;
	(void)write;
	return do_turn(fn, arg);
}

int
turn_after_commit(struct turn *t, void (*fn)(void *arg), void *arg, void (*drop)(void *arg))
{
	(void)t;
	(void)drop;
	assert_null(effect.fn);
	effect.fn = fn;
	effect.arg = arg;
	return 0;
}

static int woken;

void
shard_wake(struct shard *s)
{
	(void)s;
	woken = 1;
}

int
shard_wake_after(struct shard *s, struct turn *t)
{
	(void)t;
	shard_wake(s);
	return 0;
}

/* ---- the index ---- */

struct rpc_peer *
link_peer(const struct link *l)
{
	return (struct rpc_peer *)(uintptr_t)l;
}

static struct {
	index_upsert_runs_fn *cb;
	void *arg;
	size_t n;
	char ids[LEDGER_SYNC_ROWS][ID_SIZE];
	int calls;
} sent;

int
index_upsert_runs_call(struct rpc_peer *p, const struct rpc_call_opts *opts,
    const struct index_upsert_runs_params *params, index_upsert_runs_fn *cb, void *arg)
{
	(void)p;
	(void)opts;
	assert_null(sent.cb);
	sent.cb = cb;
	sent.arg = arg;
	sent.n = params->nrows;
	sent.calls++;
	for (size_t i = 0; i < params->nrows; i++)
		(void)snprintf(sent.ids[i], ID_SIZE, "%s", params->rows[i].run_id);
	return 0;
}

int
index_upsert_project_call(struct rpc_peer *p, const struct rpc_call_opts *opts,
    const struct index_upsert_project_params *params, index_upsert_project_fn *cb, void *arg)
{
	(void)p;
	(void)opts;
	(void)params;
	(void)cb;
	(void)arg;
	return E_OVERLOADED; /* of no interest here */
}

static void
answer(int err)
{
	struct index_upsert_runs_result res = { .kind = INDEX_UPSERT_RUNS_OK };
	struct upsert_result rows[LEDGER_SYNC_ROWS];
	index_upsert_runs_fn *cb = sent.cb;

	for (size_t i = 0; i < sent.n; i++)
		rows[i] = (struct upsert_result) { sent.ids[i], UPSERT_KIND_APPLIED };
	res.u.ok.results = rows;
	res.u.ok.nresults = sent.n;
	sent.cb = NULL;
	cb(sent.arg, err, err < 0 ? NULL : &res);
}

static int
pump(void *arg, struct turn *t)
{
	(void)arg;
	return syncer_pump(shard.syncer, t);
}

/* Sends what is due. */
static void
look(void)
{
	woken = 0;
	(void)do_turn(pump, NULL);
}

static int
begin(void **state)
{
	int r = rig_setup(state);

	rig = *state;
	memset(&sent, 0, sizeof(sent));
	effect.fn = NULL;
	shard = (struct shard) { .broken = broken_new(),
		.ingress = (struct link *)(void *)&sent };
	shard.syncer = syncer_new(&shard);
	for (int i = 1; i <= RUNS; i++) {
		rig_project(rig, i);
		rig_accept(rig, i, i);
		rig->now++;
	}
	return r;
}

static int
end(void **state)
{
	shard.syncer = syncer_free(shard.syncer);
	shard.broken = broken_free(shard.broken);
	return rig_teardown(state);
}

/* ---- tests ---- */

static void
a_row_that_has_all_refused_is_found_and_waits_alone(void **state)
{
	(void)state;
	look();
	assert_int_equal(sent.n, RUNS);
	answer(E_PARAMS);
	assert_true(woken);
	assert_int_equal(rig_row(rig, 1).index_attempt, 0); /* nobody is blamed for another */
	for (int i = 1; i <= RUNS; i++) {
		look();
		assert_int_equal(sent.n, 1);
		assert_string_equal(sent.ids[0], rig_run(rig, i));
		answer(i == 3 ? E_PARAMS : 0);
	}
	for (int i = 1; i <= RUNS; i++)
		assert_int_equal(rig_row(rig, i).sync,
		    i == 3 ? LEDGER_SYNC_NEEDS_CREATE : LEDGER_SYNC_CURRENT);
	assert_int_equal(rig_row(rig, 3).index_attempt, 1);
	assert_int_equal(rig_row(rig, 3).index_retry_at, rig->now + 5000);
	look();
	assert_null(sent.cb);
	/* From now on together again. */
	for (int i = 1; i <= 2; i++) {
		(void)rig_claim(rig, i);
		rig_report(rig, i, LEDGER_PUBLIC_STARTING, rig->now);
	}
	look();
	assert_int_equal(sent.n, 2);
	answer(0);
}

static void
a_row_that_cannot_be_told_is_passed_over(void **state)
{
	(void)state;
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = 1"), 0);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_runs SET public_status = 'lurking'"
			     " WHERE run_id = '%s'",
			     rig_run(rig, 2)),
	    0);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_runs SET error_message ="
			     " printf('%%.*c', 5000, 'x') WHERE run_id = '%s'",
			     rig_run(rig, 4)),
	    0);
	look();
	assert_int_equal(sent.n, RUNS - 2);
	assert_string_equal(sent.ids[0], rig_run(rig, 1));
	assert_string_equal(sent.ids[1], rig_run(rig, 3));
	assert_string_equal(sent.ids[2], rig_run(rig, 5));
	answer(0);
	assert_int_equal(rig_row(rig, 4).index_retry_at, rig->now + 300000);
	look();
	assert_null(sent.cb);
	assert_int_equal(sent.calls, 1);
}

static void
a_link_that_ends_counts_for_no_row(void **state)
{
	(void)state;
	look();
	answer(E_LINK);
	for (int i = 1; i <= RUNS; i++)
		assert_int_equal(rig_row(rig, i).index_attempt, 0);
	look();
	assert_int_equal(sent.n, RUNS);
	answer(E_DEADLINE); /* this counts once for each */
	for (int i = 1; i <= RUNS; i++)
		assert_int_equal(rig_row(rig, i).index_attempt, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_that_has_all_refused_is_found_and_waits_alone),
		TEST(a_row_that_cannot_be_told_is_passed_over),
		TEST(a_link_that_ends_counts_for_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
