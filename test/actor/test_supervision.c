/* Real anvild, anvil-project and anvil-ingress: what dies comes back, and ends in order. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

#define GONE_MS 10000

static int
setup(void **state)
{
	struct super_rig *g = mem_calloc(1, sizeof(*g));

	assert_non_null(g);
	super_rig_init(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	super_rig_done(*state);
	free(*state);
	return 0;
}

static const char *const everybody[] = { "project/0", "project/1", "ingress" };

/* Where in the log it says that this process has ended. */
static long
exit_of(const struct super_rig *g, const char *address, pid_t pid)
{
	char text[96];
	long at;

	(void)snprintf(text, sizeof(text), "\"actor\":\"%s\",\"childPid\":%d,\"durationMs\"",
	    address, (int)pid);
	at = super_rig_said_at(g, text);
	assert_true(at >= 0);
	return at;
}

static void
starts_says_ready_lists_everybody_and_stops_in_order(void **state)
{
	struct super_rig *g = *state;
	pid_t pids[ARRAY_LEN(everybody)];
	struct super_actor a;
	json_t *health;

	super_rig_start(g);
	super_rig_wait_ready(g);
	super_rig_actor(g, "supervisor", &a);
	assert_int_equal(a.pid, g->pid);
	assert_string_equal(a.state, "up");
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++) {
		super_rig_actor(g, everybody[i], &a);
		assert_string_equal(a.state, "up");
		assert_int_equal(a.restarts, 0);
		pids[i] = a.pid;
	}
	health = super_ask(g, "supervisor", "supervisor.health", "{}");
	assert_string_equal(json_string_value(json_object_get(health, "status")), "ok");
	json_decref(health);

	super_rig_stop(g);
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++)
		assert_true(super_rig_gone(pids[i], 0));
	assert_in_range(exit_of(g, "ingress", pids[2]), 0, exit_of(g, "project/0", pids[0]));
	assert_in_range(exit_of(g, "ingress", pids[2]), 0, exit_of(g, "project/1", pids[1]));
	assert_false(super_rig_said(g, "\"level\":\"error\""));
}

/* Waits for a start that is over without asking the supervisor, which may be gone by then. */
static pid_t
pid_of(const struct super_rig *g, const char *address)
{
	return super_rig_wait_up(g, address, 0);
}

/* A project in the store of shard 0, before anybody runs. */
static void
make_project(struct super_rig *g, char project[ID_SIZE], char user[ID_SIZE])
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", g->data);
	struct ledger_project p = { .owner_slug = "demo",
		.project_slug = "hello",
		.name = "Hello",
		.repo_url = "https://example.test/hello.git",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.created_at = clock_wall_ms() };
	enum ledger_created created;
	char *why = NULL;

	id_make("prj_", project);
	id_make("usr_", user);
	p.project_id = project;
	p.owner_user_id = user;
	assert_int_equal(io_mkdirs(g->data, 0700), 0);
	super_rig_own(g, g->data);
	assert_int_equal(store_open(&ledger_store, path, &s, &why), 0);
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(ledger_project_create(s, a, &p, &created), 0);
	assert_int_equal(store_commit(s), 0);
	s = store_close(s);
	super_rig_own(g, path);
}

static void
accept_run(struct super_rig *g, const char *project, const char *user, const char *run)
{
	char params[256];
	json_t *res;

	(void)snprintf(params, sizeof(params),
	    "{\"projectId\":\"%s\",\"runId\":\"%s\",\"branch\":null,\"userId\":\"%s\"}",
	    project, run, user);
	res = super_ask(g, "project-0", "project.acceptRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "accepted");
	json_decref(res);
}

static void
a_killed_shard_is_back_with_all_that_it_accepted(void **state)
{
	struct super_rig *g = *state;
	char project[ID_SIZE], user[ID_SIZE], run[ID_SIZE], params[128];
	struct mono_time from;
	struct super_actor a;
	json_t *res;
	pid_t pid;

	make_project(g, project, user);
	super_rig_start(g);
	super_rig_wait_ready(g);
	json_decref(super_ask(g, "supervisor", "supervisor.drain", "{}"));
	id_make("run_", run);
	accept_run(g, project, user, run);
	pid = pid_of(g, "project/0");
	from = clock_mono();
	assert_int_equal(kill(pid, SIGKILL), 0);
	pid = super_rig_wait_up(g, "project/0", pid);
	print_message("back after %lld ms\n", (long long)mono_diff_ms(from, clock_mono()));
	super_rig_actor(g, "project/0", &a);
	assert_int_equal(a.restarts, 1);

	(void)snprintf(params, sizeof(params), "{\"runId\":\"%s\"}", run);
	res = super_ask(g, "project-0", "project.findRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "found");
	json_decref(res);
	/* The same again is the same run, not another one. */
	accept_run(g, project, user, run);
}

static int
has_reason(const json_t *health, const char *reason)
{
	const json_t *r;
	size_t i;

	json_array_foreach (json_object_get(health, "reasons"), i, r)
		if (strcmp(json_string_value(r), reason) == 0)
			return 1;
	return 0;
}

static int
in_history(const struct super_rig *g, const char *address, const char *event)
{
	json_t *list = super_ask(g, "supervisor", "supervisor.history", "{\"limit\":100}");
	const json_t *row;
	size_t i;
	int n = 0;

	json_array_foreach (json_object_get(list, "events"), i, row)
		n += strcmp(json_string_value(json_object_get(row, "address")), address) == 0 &&
		    strcmp(json_string_value(json_object_get(row, "event")), event) == 0;
	json_decref(list);
	return n;
}

static void
six_deaths_in_a_minute_make_it_failing_and_it_is_tried_on(void **state)
{
	struct super_rig *g = *state;
	struct super_actor a;
	json_t *health;
	pid_t pid = 0;

	super_rig_start(g);
	super_rig_wait_ready(g);
	for (int i = 0; i < 6; i++) {
		pid = super_rig_wait_up(g, "project/1", pid);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_true(super_rig_gone(pid, GONE_MS));
	}
	do
		super_rig_actor(g, "project/1", &a);
	while (a.pid == pid);
	assert_string_equal(a.state, "failing");
	health = super_ask(g, "supervisor", "supervisor.health", "{}");
	assert_string_equal(json_string_value(json_object_get(health, "status")), "degraded");
	assert_true(has_reason(health, "actor_failing"));
	json_decref(health);
	assert_true(super_rig_said(g, "\"actor_failing\""));
	assert_true(super_rig_said(g, "signal 9 (SIGKILL)"));
	assert_int_equal(in_history(g, "project/1", "failing"), 1);
	assert_int_equal(in_history(g, "project/1", "exited"), 6);
	assert_int_equal(in_history(g, "project/1", "restarting"), 6);
	/* The others do not notice. */
	super_rig_actor(g, "project/0", &a);
	assert_string_equal(a.state, "up");
	assert_int_equal(a.restarts, 0);
}

static void
a_killed_supervisor_takes_its_shards_and_ingress_along(void **state)
{
	struct super_rig *g = *state;
	pid_t pids[ARRAY_LEN(everybody)];

	super_rig_start(g);
	super_rig_wait_ready(g);
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++)
		pids[i] = pid_of(g, everybody[i]);
	super_rig_kill(g);
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++)
		assert_true(super_rig_gone(pids[i], GONE_MS));
	super_rig_start(g);
	super_rig_wait_ready(g);
}

static void
take_a_port(struct super_rig *g, int *ret_fd)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(*ret_fd, 1), 0);
	assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(g->listen, sizeof(g->listen), "127.0.0.1:%d", ntohs(at.sin_port));
}

static void
the_next_supervisor_ends_what_the_last_one_left(void **state)
{
	struct super_rig *g = *state;
	pid_t pids[ARRAY_LEN(everybody)];
	int port;

	take_a_port(g, &port);
	io_close(&port);
	super_rig_configure(g, "");
	super_rig_start(g);
	super_rig_wait_ready(g);
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++) {
		pids[i] = pid_of(g, everybody[i]);
		/* They do not see that it goes, and hold their locks and the port. */
		assert_int_equal(kill(pids[i], SIGSTOP), 0);
	}
	super_rig_kill(g);
	super_rig_start(g);
	super_rig_wait_ready(g);
	for (size_t i = 0; i < ARRAY_LEN(everybody); i++) {
		assert_true(super_rig_gone(pids[i], 0));
		assert_int_not_equal(pid_of(g, everybody[i]), pids[i]);
	}
	assert_true(super_rig_said(g, "actor_of_earlier_supervisor_ended"));
}

static void
hangup_adds_shards_and_changes_the_log_level(void **state)
{
	struct super_rig *g = *state;

	super_rig_start(g);
	super_rig_wait_ready(g);
	g->shards = 3;
	super_rig_configure(g, "log: {level: debug}\n");
	assert_int_equal(kill(g->pid, SIGHUP), 0);
	(void)super_rig_wait_up(g, "project/2", 0);
	/* A mistake leaves everything as it is. */
	super_rig_configure(g, "sharks: 3\n");
	assert_int_equal(kill(g->pid, SIGHUP), 0);
	while (!super_rig_said(g, "config_not_reloaded"))
		(void)super_rig_wait_up(g, "project/2", 0);
}

static void
a_shard_that_does_not_stop_is_killed(void **state)
{
	struct super_rig *g = *state;
	pid_t pid;

	super_rig_start(g);
	super_rig_wait_ready(g);
	pid = pid_of(g, "project/0");
	assert_int_equal(kill(pid, SIGSTOP), 0);
	super_rig_stop(g);
	assert_true(super_rig_gone(pid, 0));
	assert_true(super_rig_said(g, "\"actor_killed\""));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(starts_says_ready_lists_everybody_and_stops_in_order),
		TEST(a_killed_shard_is_back_with_all_that_it_accepted),
		TEST(six_deaths_in_a_minute_make_it_failing_and_it_is_tried_on),
		TEST(a_killed_supervisor_takes_its_shards_and_ingress_along),
		TEST(the_next_supervisor_ends_what_the_last_one_left),
		TEST(hangup_adds_shards_and_changes_the_log_level),
		TEST(a_shard_that_does_not_stop_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
