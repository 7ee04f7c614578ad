/*
 * test/unit/test_anvil-project_runners.c -- what a shard makes of processes that do not do what
 * they should: a real shard, beside a supervisor that answers as the test has it.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/dispatcher.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/shard.h"
#include "cmd/anvil-project/takeover.h"
#include "gen/project_methods.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 30000
#define PRJ         "prj_0000000000000000000001"
#define RUN         "run_0000000000000000000001"
#define USR         "usr_0000000000000000000001"
#define SPAWN       "11111111111111111111111111111111"
#define OTHER_SPAWN "22222222222222222222222222222222"
#define LIVE(id)    "{\"kind\":\"live\",\"spawnId\":\"" id "\"}"
#define ABSENT      "{\"kind\":\"absent\"}"
#define GONE        "{\"kind\":\"gone\",\"how\":{\"exitStatus\":1}}"

enum method { SPAWN_RUN, RUN_STATUS, KILL_RUN, SERVE_RUN, METHODS };
static const char *const names[METHODS] = { "supervisor.spawnRun", "supervisor.runStatus",
	"supervisor.killRun", "supervisor.serveRun" };

struct fix {
	char *dir;
	int dirfd;
	struct actor *a;
	struct listener *listener;
	struct rpc_peer *peer; /* The supervisor's side. */
	struct shard *shard;
	/* The supervisor: answers as JSON; NULL: the call is kept. */
	const char *says[METHODS];
	struct rpc_request *kept[METHODS];
	int calls[METHODS];
	char spawn_id[ID_HEX32_SIZE]; /* Of the newest call that names one. */
};

/* ---- the supervisor ---- */

static void
on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct fix *f = arg;
	const char *spawn_id = json_string_value(json_object_get(req->params, "spawnId"));
	int i = 0;

	(void)p;
	while (i < METHODS && strcmp(names[i], req->method) != 0)
		i++;
	assert_true(i < METHODS);
	f->calls[i]++;
	if (spawn_id != NULL)
		(void)snprintf(f->spawn_id, sizeof(f->spawn_id), "%s", spawn_id);
	if (f->says[i] == NULL && f->kept[i] == NULL)
		f->kept[i] = req;
	else if (f->says[i] != NULL && strcmp(f->says[i], "full") == 0)
		rpc_reply_error(req, E_STORAGE, NULL, NULL);
	else if (f->says[i] == NULL || strcmp(f->says[i], "error") == 0)
		rpc_reply_error(req, E_INTERNAL, NULL, NULL);
	else
		rpc_reply(req, f->says[i], strlen(f->says[i]));
}

static void
on_peer(void *arg, struct rpc_peer *p)
{
	static const struct rpc_peer_ops ops = { .on_request = on_request };
	struct fix *f = arg;

	f->peer = p;
	rpc_peer_set_ops(p, &ops, f);
}

static const struct listener_ops listener_ops = { .on_peer = on_peer };

static void
answer_kept(struct fix *f, enum method m, const char *text)
{
	struct rpc_request *req = f->kept[m];

	assert_non_null(req);
	f->kept[m] = NULL;
	rpc_reply(req, text, strlen(text));
}

/* ---- the shard ---- */

static int
add_run(void *arg, struct turn *t)
{
	struct ledger_project p = { .project_id = PRJ,
		.owner_user_id = USR,
		.owner_slug = "acme",
		.project_slug = "app",
		.name = "An app",
		.repo_url = "https://github.com/Acme/App",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.created_at = t->now_ms };
	struct ledger_accept q = { .project_id = PRJ, .run_id = RUN, .user_id = USR };
	enum ledger_created created;
	enum ledger_accepted accepted;
	struct ledger_run run;
	int r = ledger_project_create(t->store, t->arena, &p, &created);

	(void)arg;
	return r < 0 ? r
		     : ledger_accept_run(t->store, t->arena, &q, t->now_ms, &accepted, &run);
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
	struct listener_desc listen = { .address = "supervisor" };
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
	f->shard = shard_new(f->a, 0);
	assert_non_null(f->shard);
	actor_set_ctx(f->a, f->shard);
	f->shard->supervisor = actor_link(f->a, "supervisor", NULL, NULL);
	assert_non_null(f->shard->supervisor);
	assert_int_equal(actor_turn(f->a, 1, add_run, NULL), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	clock_shift_for_test(0, 0);
	for (size_t i = 0; i < METHODS; i++)
		if (f->kept[i] != NULL)
			rpc_reply_error(f->kept[i], E_INTERNAL, NULL, NULL);
	f->shard = shard_free(f->shard);
	(void)rpc_peer_free(f->peer);
	(void)listener_free(f->listener);
	(void)actor_free(f->a);
	io_close(&f->dirfd);
	scratch_free(f->dir);
	free(f);
	return 0;
}

/* UNTIL(f, condition): the loop turns until it holds. */
#define UNTIL(f, condition)                                                            \
	do {                                                                           \
		struct mono_time until_ = mono_add_ms(clock_mono(), PATIENCE_MS);      \
		while (!(condition)) {                                                 \
			if (clock_mono().us > until_.us)                               \
				fail_msg("%s:%d: %s", __FILE__, __LINE__, #condition); \
			actor_step((f)->a);                                            \
			(void)sched_yield();                                           \
		}                                                                      \
	} while (0)

static int
read_row(void *arg, struct turn *t)
{
	struct ledger_run run, *ret = arg;
	int r = ledger_run_get(t->store, t->arena, RUN, &run);

	/* Only what is no text outlives the turn. */
	*ret = (struct ledger_run) { .state = run.state,
		.dispatch = run.dispatch,
		.lease_epoch = run.lease_epoch,
		.failure_code = run.failure_code != NULL ? "set" : NULL };
	return r;
}

static struct ledger_run
row(struct fix *f)
{
	struct ledger_run run;

	assert_int_equal(actor_turn(f->a, 0, read_row, &run), 0);
	return run;
}

struct claim {
	struct fix *f;
	char lease_id[ID_HEX32_SIZE];
};

static int
claim_turn(void *arg, struct turn *t)
{
	struct claim *c = arg;
	const struct project_claim_run_params p = { PRJ, RUN, SPAWN, 4711 };
	struct project_claim_run_result res;
	int r = project_claim_run(c->f->shard, t, &p, &res);

	if (r == 0)
		assert_int_equal(res.kind, PROJECT_CLAIM_RUN_CLAIMED);
	if (r == 0)
		(void)snprintf(c->lease_id, sizeof(c->lease_id), "%s", res.u.claimed.lease_id);
	return r;
}

/* ---- leases ---- */

static void
a_question_about_an_earlier_lease_silences_no_later_one(void **state)
{
	const struct ledger_run earlier = {
		.run_id = RUN, .project_id = PRJ, .lease_id = OTHER_SPAWN, .spawn_id = SPAWN
	};
	const struct ledger_run later = {
		.run_id = RUN, .project_id = PRJ, .lease_id = SPAWN, .spawn_id = SPAWN
	};
	struct fix *f = *state;
	struct leases *l = f->shard->leases;

	UNTIL(f, shard_supervisor(f->shard) != NULL);
	/* The claim behind the first one is lost with its batch; the question about it is out. */
	assert_int_equal(leases_grant(l, &earlier, NULL), 0);
	leases_ask_all(l);
	UNTIL(f, f->calls[RUN_STATUS] == 1);
	assert_int_equal(leases_grant(l, &later, NULL), 0);
	f->says[RUN_STATUS] = LIVE(SPAWN);
	leases_ask_all(l);
	UNTIL(f, f->calls[RUN_STATUS] == 2);
	/* What was said about the earlier one says nothing about this one. */
	answer_kept(f, RUN_STATUS, GONE);
	/* It is asked again as soon as the answer has come. */
	UNTIL(f, (leases_ask_all(l), f->calls[RUN_STATUS] >= 3));
	assert_int_equal(takeovers_count(f->shard->takeovers), 0);
}

/* ---- a process that does not claim ---- */

static void
recheck_after(struct fix *f, int64_t shift_ms)
{
	int calls = f->calls[SPAWN_RUN];

	clock_shift_for_test(0, shift_ms);
	shard_recheck(f->shard);
	UNTIL(
	    f, f->calls[SPAWN_RUN] > calls && dispatcher_in_flight(f->shard->dispatcher) == 0);
}

static void
a_process_that_never_claims_is_killed(void **state)
{
	struct fix *f = *state;

	f->says[SPAWN_RUN] = "{\"kind\":\"spawned\",\"spawnId\":\"" SPAWN "\"}";
	f->says[KILL_RUN] = GONE;
	UNTIL(f, shard_supervisor(f->shard) != NULL);
	assert_int_equal(shard_begin(f->shard), 0);
	UNTIL(f, row(f).dispatch == LEDGER_DISPATCH_QUEUED);
	f->says[SPAWN_RUN] = LIVE(SPAWN);
	/* Often, but not for long: an operator has asked for re-checks. */
	for (int i = 0; i < 5; i++)
		recheck_after(f, i);
	assert_int_equal(f->calls[KILL_RUN], 0);
	/* Long ago, but another process by now. */
	f->says[SPAWN_RUN] = LIVE(OTHER_SPAWN);
	recheck_after(f, 100000);
	assert_int_equal(f->calls[KILL_RUN], 0);
	/* Long, but the shard may have slept all that time. */
	recheck_after(f, 200000);
	assert_int_equal(f->calls[KILL_RUN], 0);
	recheck_after(f, 230000);
	UNTIL(f, f->calls[KILL_RUN] == 1);
	assert_string_equal(f->spawn_id, OTHER_SPAWN);
	/* One that was killed is not killed at the next look. */
	recheck_after(f, 231000);
	assert_int_equal(f->calls[KILL_RUN], 1);
}

static void
a_process_that_has_claimed_is_left_alone(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };

	UNTIL(f, shard_supervisor(f->shard) != NULL);
	f->says[RUN_STATUS] = LIVE(SPAWN);
	assert_int_equal(shard_begin(f->shard), 0);
	/* The question is out while it claims. */
	for (int i = 0; i < 3; i++) {
		UNTIL(f, f->kept[SPAWN_RUN] != NULL);
		if (i == 2)
			assert_int_equal(actor_turn(f->a, 1, claim_turn, &c), 0);
		answer_kept(f, SPAWN_RUN, LIVE(SPAWN));
		UNTIL(f, dispatcher_in_flight(f->shard->dispatcher) == 0);
		clock_shift_for_test(0, 40000 * (i + 1));
		if (i < 2)
			shard_recheck(f->shard);
	}
	assert_int_equal(f->calls[KILL_RUN], 0);
	assert_int_equal(row(f).state, LEDGER_ACTIVE);
}

/* ---- takeover ---- */

/* It is on disk that the run is ours. */
static void
claim_run(struct claim *c)
{
	UNTIL(c->f, shard_supervisor(c->f->shard) != NULL);
	assert_int_equal(actor_turn(c->f->a, 1, claim_turn, c), 0);
	assert_int_equal(actor_commit_now(c->f->a), 0);
	assert_int_equal(row(c->f).state, LEDGER_ACTIVE);
}

/* The disk is full for one commit, of which nothing must be left. */
static void
lose_a_commit(struct claim *c)
{
	struct fix *f = c->f;

	leases_find(f->shard->leases, RUN)->channel = f->peer; /* it asks for nothing */
	store_fault_arm(STORE_FAULT_FULL, 0);
	takeover_begin(f->shard->takeovers, RUN, c->lease_id, "exit status 1");
	UNTIL(f, store_fault_count() > 0);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(row(f).state, LEDGER_ACTIVE);
	assert_int_equal(takeovers_count(f->shard->takeovers), 1);
	assert_non_null(leases_find(f->shard->leases, RUN));
}

static void
nothing_is_concluded_without_the_supervisor(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };

	claim_run(&c);
	/* The store cannot be asked, and who could say that nobody holds it is silent, ... */
	f->says[SERVE_RUN] = f->says[RUN_STATUS] = "error";
	takeover_begin(f->shard->takeovers, RUN, c.lease_id, "exit status 1");
	UNTIL(f, f->calls[SERVE_RUN] >= 4);
	assert_int_equal(row(f).state, LEDGER_ACTIVE);
	/* ... then says that somebody does: he is fenced first ... */
	f->says[RUN_STATUS] = LIVE(SPAWN);
	f->says[KILL_RUN] = GONE;
	UNTIL(f, f->calls[KILL_RUN] >= 1);
	assert_int_equal(row(f).state, LEDGER_ACTIVE);
	/* ... and only when he has gone the ledger speaks alone. */
	f->says[RUN_STATUS] = GONE;
	UNTIL(f, takeovers_count(f->shard->takeovers) == 0);
	assert_int_equal(row(f).state, LEDGER_FAILED);
	assert_non_null(row(f).failure_code);
}

static void
a_full_disk_of_the_supervisor_is_no_failed_try(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };

	claim_run(&c);
	f->says[SERVE_RUN] = "full";
	f->says[RUN_STATUS] = GONE;
	takeover_begin(f->shard->takeovers, RUN, c.lease_id, "exit status 1");
	UNTIL(f, f->calls[SERVE_RUN] >= 5);
	assert_int_equal(row(f).state, LEDGER_ACTIVE);
	f->says[SERVE_RUN] = ABSENT;
	UNTIL(f, takeovers_count(f->shard->takeovers) == 0);
	assert_int_equal(row(f).state, LEDGER_FAILED);
}

static void
a_conclusion_that_does_not_reach_the_disk_is_drawn_again(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };

	claim_run(&c);
	f->says[SERVE_RUN] = ABSENT;
	lose_a_commit(&c);
	UNTIL(f, takeovers_count(f->shard->takeovers) == 0);
	assert_int_equal(row(f).state, LEDGER_FAILED);
	assert_null(leases_find(f->shard->leases, RUN));
}

static int
release_turn(void *arg, struct turn *t)
{
	const struct claim *c = arg;
	const struct project_release_run_params p = {
		.project_id = PRJ, .run_id = RUN, .lease_id = c->lease_id
	};
	struct project_release_run_result res;
	int r = project_release_run(c->f->shard, t, &p, &res);

	if (r == 0)
		assert_int_equal(res.kind, PROJECT_RELEASE_RUN_RELEASED);
	return r;
}

static void
on_release(void *arg)
{
	const struct claim *c = arg;

	assert_int_equal(actor_turn(c->f->a, 1, release_turn, arg), 0);
}

static void
what_is_not_on_disk_yet_ends_no_takeover(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };
	struct actor_timer *release = actor_timer_new(f->a, on_release, &c);

	claim_run(&c);
	/* It gives its run back in the round in which that is looked at, which is lost. */
	assert_int_equal(actor_timer_set(release, 0), 0);
	lose_a_commit(&c);
	f->says[SERVE_RUN] = ABSENT;
	UNTIL(f, takeovers_count(f->shard->takeovers) == 0);
	assert_int_equal(row(f).state, LEDGER_FAILED);
	actor_timer_free(release);
}

static void
the_store_is_asked_once_more_when_the_supervisor_is_awake(void **state)
{
	struct fix *f = *state;
	struct claim c = { .f = f };
	int asked;

	claim_run(&c);
	/* The lease would ask as well, since nobody has come back with it. */
	leases_drop(f->shard->leases, RUN, c.lease_id);
	f->says[SERVE_RUN] = "error";
	f->says[RUN_STATUS] = GONE;
	asked = f->calls[RUN_STATUS];
	takeover_begin(f->shard->takeovers, RUN, c.lease_id, "exit status 1");
	UNTIL(f, f->calls[RUN_STATUS] > asked);
	assert_int_equal(f->calls[SERVE_RUN], 2);
	UNTIL(f, row(f).state == LEDGER_FAILED);
	assert_int_equal(f->calls[SERVE_RUN], 3);
	assert_int_equal(f->calls[RUN_STATUS], asked + 2);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_question_about_an_earlier_lease_silences_no_later_one),
		TEST(a_process_that_never_claims_is_killed),
		TEST(a_process_that_has_claimed_is_left_alone),
		TEST(nothing_is_concluded_without_the_supervisor),
		TEST(a_full_disk_of_the_supervisor_is_no_failed_try),
		TEST(a_conclusion_that_does_not_reach_the_disk_is_drawn_again),
		TEST(what_is_not_on_disk_yet_ends_no_takeover),
		TEST(the_store_is_asked_once_more_when_the_supervisor_is_awake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
