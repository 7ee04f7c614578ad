/* Real anvild and shard with an anvil-run that a test plays: slots, ends, kills, releases. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

#define WAIT_MS    20000
#define LOOK_MS    20
#define PROJECTS   3
#define NEVER_ENDS "exec sleep 600\n"

struct test {
	struct super_rig g;
	char projects[PROJECTS][ID_SIZE];
	char user[ID_SIZE];
};

/* anvil-run RUN_ID --project PRJ --shard N --spawn SPAWN, or --serve RUN_ID. */
static void
play_run(struct test *t, const char *script)
{
	CLEANUP_FREE char *path = mem_format("%s/anvil-run", t->g.bin);
	CLEANUP_FREE char *text = mem_format("#!/bin/sh\n%s", script);

	super_rig_write(&t->g, path, text, 0755);
}

static void
make_projects(struct test *t)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", t->g.data);
	char *why = NULL;

	assert_int_equal(io_mkdirs(t->g.data, 0700), 0);
	super_rig_own(&t->g, t->g.data);
	assert_int_equal(store_open(&ledger_store, path, &s, &why), 0);
	assert_int_equal(store_begin(s), 0);
	id_make("usr_", t->user);
	for (int i = 0; i < PROJECTS; i++) {
		char slug[16];
		struct ledger_project p = { .owner_user_id = t->user,
			.owner_slug = "demo",
			.project_slug = slug,
			.name = "Demo",
			.repo_url = "https://example.test/demo.git",
			.default_branch = "main",
			.config_path = ".anvil.yml",
			.created_at = clock_wall_ms() };
		enum ledger_created created;

		(void)snprintf(slug, sizeof(slug), "p%d", i);
		id_make("prj_", t->projects[i]);
		p.project_id = t->projects[i];
		assert_int_equal(ledger_project_create(s, a, &p, &created), 0);
	}
	assert_int_equal(store_commit(s), 0);
	s = store_close(s);
	super_rig_own(&t->g, path);
}

static int
setup(void **state)
{
	struct test *t = mem_calloc(1, sizeof(*t));

	assert_non_null(t);
	super_rig_init(&t->g);
	t->g.shards = 1;
	super_rig_configure(&t->g, "runs: {max_concurrent: 1, min_free_bytes: 0}\n");
	make_projects(t);
	play_run(t, NEVER_ENDS);
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
accept_run(struct test *t, int project, char run[ID_SIZE])
{
	char params[256];
	json_t *res;

	id_make("run_", run);
	(void)snprintf(params, sizeof(params),
	    "{\"projectId\":\"%s\",\"runId\":\"%s\",\"branch\":null,\"userId\":\"%s\"}",
	    t->projects[project], run, t->user);
	res = super_ask(&t->g, "project-0", "project.acceptRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "accepted");
	json_decref(res);
}

static void
begin(struct test *t)
{
	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
}

/* The row of a run in supervisor.listRuns, with pid and spawn id; 0: it has no process. */
static pid_t
process_of(const struct test *t, const char *run, char spawn[ID_HEX32_SIZE])
{
	json_t *list = super_ask(&t->g, "supervisor", "supervisor.listRuns", "{}");
	const json_t *row;
	pid_t pid = 0;
	size_t i;

	json_array_foreach (json_object_get(list, "runs"), i, row) {
		if (strcmp(json_string_value(json_object_get(row, "runId")), run) != 0)
			continue;
		pid = (pid_t)json_integer_value(json_object_get(row, "pid"));
		if (spawn != NULL)
			(void)snprintf(spawn, ID_HEX32_SIZE, "%s",
			    json_string_value(json_object_get(row, "spawnId")));
	}
	json_decref(list);
	return pid;
}

static int
is_waiting(const struct test *t, const char *run)
{
	json_t *list = super_ask(&t->g, "supervisor", "supervisor.listRuns", "{}");
	const json_t *row;
	int found = 0;
	size_t i;

	json_array_foreach (json_object_get(list, "queue"), i, row)
		found |= strcmp(json_string_value(json_object_get(row, "runId")), run) == 0;
	json_decref(list);
	return found;
}

static pid_t
wait_process(const struct test *t, const char *run, pid_t not_pid, char spawn[ID_HEX32_SIZE])
{
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	pid_t pid;

	do
		pid = process_of(t, run, spawn);
	while ((pid == 0 || pid == not_pid) && clock_mono().us < end.us);
	assert_int_not_equal(pid, 0);
	assert_int_not_equal(pid, not_pid);
	return pid;
}

static void
wait_waiting(const struct test *t, const char *run)
{
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);

	while (!is_waiting(t, run) && clock_mono().us < end.us)
		;
	assert_true(is_waiting(t, run));
}

/* A number or word of the run's row in the ledger. */
static json_t *
ledger_of(const struct test *t, int project, const char *run, const char *member)
{
	char params[160];
	json_t *res, *value;

	(void)snprintf(params, sizeof(params), "{\"projectId\":\"%s\",\"runId\":\"%s\"}",
	    t->projects[project], run);
	res = super_ask(&t->g, "project-0", "project.why", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "history");
	value = json_incref(json_object_get(json_object_get(res, "ledger"), member));
	json_decref(res);
	return value;
}

static int
has_word(
    const struct test *t, int project, const char *run, const char *member, const char *word)
{
	json_t *v = ledger_of(t, project, run, member);
	int same = json_is_string(v) && strcmp(json_string_value(v), word) == 0;

	json_decref(v);
	return same;
}

static void
a_run_gets_a_process_and_the_next_one_waits_for_its_slot(void **state)
{
	struct test *t = *state;
	char first[ID_SIZE], second[ID_SIZE], spawn[ID_HEX32_SIZE], params[160];
	json_t *answer, *health;

	begin(t);
	accept_run(t, 0, first);
	(void)wait_process(t, first, 0, spawn);
	accept_run(t, 1, second);
	wait_waiting(t, second);
	health = super_ask(&t->g, "supervisor", "supervisor.health", "{}");
	assert_int_equal(json_integer_value(json_object_get(health, "slotsUsed")), 1);
	assert_int_equal(json_integer_value(json_object_get(health, "slotsWaiting")), 1);
	json_decref(health);

	/* Killed by order: the answer comes when it has been reaped. */
	(void)snprintf(
	    params, sizeof(params), "{\"runId\":\"%s\",\"spawnId\":\"%s\"}", first, spawn);
	answer = super_ask(&t->g, "supervisor", "supervisor.killRun", params);
	assert_string_equal(json_string_value(json_object_get(answer, "kind")), "gone");
	assert_int_equal(
	    json_integer_value(json_object_get(json_object_get(answer, "how"), "signal")),
	    SIGKILL);
	json_decref(answer);
	(void)wait_process(t, second, 0, NULL);
	/* It was never claimed: a failure, and asked for again later. */
	assert_true(has_word(t, 0, first, "status", "executable"));
	assert_true(has_word(t, 0, first, "lastError", "signal 9 (SIGKILL)"));
}

static void
a_program_that_cannot_claim_costs_its_run_an_attempt(void **state)
{
	struct test *t = *state;
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	char run[PROJECTS][ID_SIZE];
	json_t *v;

	play_run(t, "exit 75\n");
	begin(t);
	for (int i = 0; i < PROJECTS; i++)
		accept_run(t, i, run[i]);
	for (int i = 0; i < PROJECTS; i++) {
		while (!has_word(t, i, run[i], "lastError", "exit status 75"))
			assert_true(clock_mono().us < end.us);
		v = ledger_of(t, i, run[i], "dispatchAttempts");
		assert_int_equal(json_integer_value(v), 1);
		json_decref(v);
		v = ledger_of(t, i, run[i], "dispatchRetryAt");
		assert_true(json_is_integer(v));
		json_decref(v);
	}
	assert_true(super_rig_said(&t->g, "run_dispatch_failed"));
}

static void
draining_starts_nothing_and_resuming_starts_all(void **state)
{
	struct test *t = *state;
	char run[ID_SIZE];

	begin(t);
	json_decref(super_ask(&t->g, "supervisor", "supervisor.drain", "{}"));
	accept_run(t, 0, run);
	wait_waiting(t, run);
	assert_int_equal(process_of(t, run, NULL), 0);
	json_decref(super_ask(&t->g, "supervisor", "supervisor.resume", "{}"));
	(void)wait_process(t, run, 0, NULL);
}

static int
has_reason(const struct test *t, const char *reason)
{
	json_t *health = super_ask(&t->g, "supervisor", "supervisor.health", "{}");
	const json_t *each;
	int found = 0;
	size_t i;

	json_array_foreach (json_object_get(health, "reasons"), i, each)
		found |= strcmp(json_string_value(each), reason) == 0;
	json_decref(health);
	return found;
}

static void
a_drain_lasts_through_a_kill_and_a_stop_until_it_is_ended(void **state)
{
	struct test *t = *state;
	char run[ID_SIZE];

	begin(t);
	assert_false(has_reason(t, "draining"));
	json_decref(super_ask(&t->g, "supervisor", "supervisor.drain", "{}"));
	super_rig_kill(&t->g);
	begin(t);
	assert_true(has_reason(t, "draining"));
	accept_run(t, 0, run);
	wait_waiting(t, run);
	super_rig_stop(&t->g);
	begin(t);
	wait_waiting(t, run);
	json_decref(super_ask(&t->g, "supervisor", "supervisor.resume", "{}"));
	(void)wait_process(t, run, 0, NULL);
	super_rig_kill(&t->g);
	begin(t);
	assert_false(has_reason(t, "draining"));
}

/* What the machine is like is looked at anew; it is nobody's wish. */
static void
a_low_disk_is_seen_at_the_start_and_its_end_by_a_hangup(void **state)
{
	struct test *t = *state;
	char run[ID_SIZE];

	super_rig_configure(
	    &t->g, "runs: {max_concurrent: 1, min_free_bytes: 1125899906842624}\n");
	begin(t);
	assert_true(has_reason(t, "low_disk"));
	accept_run(t, 0, run);
	wait_waiting(t, run);
	super_rig_configure(&t->g, "runs: {max_concurrent: 1, min_free_bytes: 0}\n");
	assert_int_equal(kill(t->g.pid, SIGHUP), 0);
	(void)wait_process(t, run, 0, NULL);
	assert_false(has_reason(t, "low_disk"));
}

static void
a_pool_that_was_unhealthy_is_tried_by_the_next_supervisor(void **state)
{
	struct test *t = *state;
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	char run[PROJECTS][ID_SIZE];

	super_rig_configure(&t->g, "runs: {max_concurrent: 3, min_free_bytes: 0}\n");
	play_run(t, "exit 75\n");
	begin(t);
	for (int i = 0; i < PROJECTS; i++)
		accept_run(t, i, run[i]);
	/* Each is tried again after 5 s; that makes five. */
	while (!has_reason(t, "pool_unhealthy")) {
		assert_true(clock_mono().us < end.us);
		(void)poll(NULL, 0, LOOK_MS);
	}
	play_run(t, NEVER_ENDS);
	super_rig_kill(&t->g);
	begin(t);
	assert_false(has_reason(t, "pool_unhealthy"));
	(void)wait_process(t, run[0], 0, NULL);
}

static void
cancel(struct test *t, int project, const char *run_id, const char *kind)
{
	char params[160];
	json_t *res;

	(void)snprintf(params, sizeof(params),
	    "{\"projectId\":\"%s\",\"runId\":\"%s\",\"by\":\"operator\"}", t->projects[project],
	    run_id);
	res = super_ask(&t->g, "project-0", "project.cancelRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), kind);
	json_decref(res);
}

static void
a_canceled_run_leaves_the_slot_queue(void **state)
{
	struct test *t = *state;
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	char run[ID_SIZE];

	begin(t);
	json_decref(super_ask(&t->g, "supervisor", "supervisor.drain", "{}"));
	accept_run(t, 0, run);
	wait_waiting(t, run);
	/* By its own project alone. */
	cancel(t, 1, run, "not_found");
	assert_true(is_waiting(t, run));
	cancel(t, 0, run, "ok");
	assert_true(has_word(t, 0, run, "status", "canceled"));
	while (is_waiting(t, run))
		assert_true(clock_mono().us < end.us);
}

static void
an_abandoned_run_frees_its_slot_and_others_go_on(void **state)
{
	struct test *t = *state;
	char first[ID_SIZE], second[ID_SIZE], params[64];
	json_t *res;

	begin(t);
	accept_run(t, 0, first);
	(void)wait_process(t, first, 0, NULL);
	accept_run(t, 1, second);
	(void)snprintf(params, sizeof(params), "{\"runId\":\"%s\"}", first);
	res = super_ask(&t->g, "supervisor", "supervisor.abandon", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "abandoned");
	json_decref(res);
	(void)wait_process(t, second, 0, NULL);
	assert_int_equal(process_of(t, first, NULL), 0);
	res = super_ask(&t->g, "supervisor", "supervisor.abandon", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "absent");
	json_decref(res);
}

static void
runs_live_through_a_new_supervisor_and_their_end_is_told(void **state)
{
	struct test *t = *state;
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	char run[ID_SIZE], before[ID_HEX32_SIZE], after[ID_HEX32_SIZE];
	pid_t pid;

	begin(t);
	accept_run(t, 0, run);
	pid = wait_process(t, run, 0, before);
	super_rig_kill(&t->g);
	begin(t);
	assert_int_equal(process_of(t, run, after), pid);
	assert_string_equal(before, after);
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* Not its child any more: that it ended is all that can be known. */
	while (!has_word(t, 0, run, "lastError", "ended while not watched"))
		assert_true(clock_mono().us < end.us);
}

static void
a_queue_that_was_lost_is_filled_again_by_the_shards(void **state)
{
	struct test *t = *state;
	char first[ID_SIZE], second[ID_SIZE];

	begin(t);
	accept_run(t, 0, first);
	(void)wait_process(t, first, 0, NULL);
	accept_run(t, 1, second);
	wait_waiting(t, second);
	super_rig_kill(&t->g);
	begin(t);
	wait_waiting(t, second);
}

static void
runs_go_on_when_the_supervisor_stops(void **state)
{
	struct test *t = *state;
	char run[ID_SIZE];
	pid_t pid;

	begin(t);
	accept_run(t, 0, run);
	pid = wait_process(t, run, 0, NULL);
	super_rig_stop(&t->g);
	assert_false(super_rig_gone(pid, 0));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(super_rig_gone(pid, WAIT_MS));
}

static void
what_a_dead_run_leaves_running_is_ended(void **state)
{
	struct test *t = *state;
	CLEANUP_FREE char *note = mem_format("%s/s/left", t->g.dir);
	CLEANUP_FREE char *script = mem_format(
	    "setsid sleep 600 &\necho $! >%s.tmp\nmv %s.tmp %s\n" NEVER_ENDS, note, note, note);
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char run[ID_SIZE];
	pid_t pid, left;

	play_run(t, script);
	begin(t);
	accept_run(t, 0, run);
	pid = wait_process(t, run, 0, NULL);
	while (access(note, F_OK) < 0)
		(void)process_of(t, run, NULL);
	assert_int_equal(io_read_file(AT_FDCWD, note, 64, &b), 0);
	left = (pid_t)strtol((const char *)buf_cstr(&b), NULL, 10);
	assert_true(left > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(super_rig_gone(left, WAIT_MS));
}

/* Whatever a test has left running has the rig's folder in its command or is a sleep of ours:
 * the supervisor is told to end them before it goes. */
static int
end_runs(void **state)
{
	struct test *t = *state;
	json_t *list;
	const json_t *row;
	size_t i;

	if (t->g.pid != 0) {
		json_decref(super_ask(&t->g, "supervisor", "supervisor.drain", "{}"));
		list = super_ask(&t->g, "supervisor", "supervisor.listRuns", "{}");
		json_array_foreach (json_object_get(list, "runs"), i, row) {
			pid_t pid = (pid_t)json_integer_value(json_object_get(row, "pid"));

			(void)kill(pid, SIGKILL);
			assert_true(super_rig_gone(pid, WAIT_MS));
		}
		json_decref(list);
	}
	return teardown(state);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, end_runs)
	const struct CMUnitTest tests[] = {
		TEST(a_run_gets_a_process_and_the_next_one_waits_for_its_slot),
		TEST(a_program_that_cannot_claim_costs_its_run_an_attempt),
		TEST(draining_starts_nothing_and_resuming_starts_all),
		TEST(a_drain_lasts_through_a_kill_and_a_stop_until_it_is_ended),
		TEST(a_low_disk_is_seen_at_the_start_and_its_end_by_a_hangup),
		TEST(a_pool_that_was_unhealthy_is_tried_by_the_next_supervisor),
		TEST(a_canceled_run_leaves_the_slot_queue),
		TEST(an_abandoned_run_frees_its_slot_and_others_go_on),
		TEST(runs_live_through_a_new_supervisor_and_their_end_is_told),
		TEST(a_queue_that_was_lost_is_filled_again_by_the_shards),
		TEST(runs_go_on_when_the_supervisor_stops),
		TEST(what_a_dead_run_leaves_running_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
