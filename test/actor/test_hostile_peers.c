/* Real anvild and shards: whatever a peer sends, it is refused or dropped, and nobody else sees. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/super_rig.h"
#include "test/support/unit.h"

#define CLOSE_MS 10000 /* LINK_HELLO_MS and some */

static const char *const sockets[] = { "supervisor", "project-0", "ingress" };

static int
setup(void **state)
{
	struct super_rig *g = mem_calloc(1, sizeof(*g));

	assert_non_null(g);
	super_rig_init(g);
	super_rig_start(g);
	super_rig_wait_ready(g);
	(void)super_rig_wait_up(g, "project/0", 0);
	(void)super_rig_wait_up(g, "project/1", 0);
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

/* Everybody is who he was, and answers. */
static void
expect_peace(struct super_rig *g)
{
	static const char *const all[] = { "project/0", "project/1", "ingress" };
	struct super_actor a;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		super_rig_actor(g, all[i], &a);
		assert_string_equal(a.state, "up");
		assert_int_equal(a.restarts, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(sockets); i++)
		json_decref(super_ask(g, sockets[i], "actor.info", "{}"));
}

/* Sends bytes as the first of a connection: at most one error comes, then the end. */
static void
expect_cut(struct super_rig *g, const void *bytes, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
		CLEANUP(io_closep) int fd = super_connect(g, sockets[i]);
		json_t *answer;

		assert_true(fd >= 0);
		(void)super_send(fd, bytes, n);
		answer = super_receive(fd, CLOSE_MS);
		if (answer != NULL)
			assert_int_not_equal(super_error(answer), 0);
		json_decref(answer);
		assert_true(super_closed(fd, CLOSE_MS));
	}
	expect_peace(g);
}

static void
noise_is_cut(void **state)
{
	expect_cut(*state, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
	expect_cut(*state, "\0\0\0\3{}{", 7);
	expect_cut(*state, "\0\0\0\0", 4);
	expect_cut(*state, "\0\0\0\5\xff\xfe\xfd\xfc\xfb", 9);
}

static void
a_length_that_no_frame_may_have_is_cut(void **state)
{
	expect_cut(*state, "\xff\xff\xff\xff{", 5);
	expect_cut(*state, "\x01\x00\x00\x01{", 5);
}

static void
half_a_frame_is_waited_for_and_then_cut(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int fd = super_connect(g, "project-0");

	assert_int_equal(super_send(fd, "\0\0\1\0{\"jsonrpc\"", 14), 0);
	expect_peace(g); /* meanwhile */
	assert_true(super_closed(fd, CLOSE_MS));
	expect_peace(g);
}

static void
a_connection_that_says_nothing_is_cut(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int fd = super_connect(g, "supervisor");

	assert_true(super_closed(fd, CLOSE_MS));
	expect_peace(g);
}

static void
what_nests_too_deeply_is_cut(void **state)
{
	char frame[4 + 400] = { 0, 0, 1, (char)0x90 };

	memset(frame + 4, '[', 200);
	memset(frame + 204, ']', 200);
	expect_cut(*state, frame, sizeof(frame));
}

static void
expect_hello(struct super_rig *g, const char *socket, const char *role, const char *address,
    long pid, int err)
{
	CLEANUP(io_closep) int fd = super_connect(g, socket);
	json_t *answer = super_hello(fd, role, address, pid);

	if (answer == NULL)
		fail_msg("%s as %s %s: no answer", socket, role, address);
	if (super_error(answer) != err)
		fail_msg("%s as %s %s: %d instead of %d", socket, role, address,
		    super_error(answer), err);
	json_decref(answer);
	if (err != 0)
		assert_true(super_closed(fd, CLOSE_MS));
}

static void
nobody_is_taken_for_another(void **state)
{
	struct super_rig *g = *state;
	long me = getpid();
	struct super_actor shard;

	super_rig_actor(g, "project/1", &shard);
	for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
		/* The kernel knows who we are. */
		expect_hello(g, sockets[i], "ctl", "ctl", shard.pid, E_DENIED);
		expect_hello(g, sockets[i], "project", "project/1", shard.pid, E_DENIED);
		expect_hello(g, sockets[i], "ctl", "ctl", me, 0);
	}
	expect_hello(g, "project-0", "supervisor", "supervisor", me, E_PEER);
	expect_hello(g, "project-0", "ingress", "ingress", me, E_PEER);
	expect_hello(g, "project-0", "project", "project/1", me, E_PEER);
	expect_hello(g, "ingress", "project", "project/0", me, E_PEER);
	expect_hello(g, "supervisor", "project", "project/0", me, E_PEER);
	expect_hello(g, "supervisor", "ingress", "ingress", me, E_PEER);
	expect_hello(g, "supervisor", "project", "project/63", me, E_DENIED);
	expect_hello(g, "supervisor", "supervisor", "supervisor", me, E_DENIED);
	expect_peace(g);
}

static void
expect_error(int fd, const char *method, const char *params, int err)
{
	json_t *answer = super_call(fd, method, params);

	assert_non_null(answer);
	if (super_error(answer) != err)
		fail_msg("%s: %d instead of %d", method, super_error(answer), err);
	json_decref(answer);
}

static void
what_ctl_may_not_do_is_denied_and_the_connection_lives(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int s = super_ctl(g, "supervisor");
	CLEANUP(io_closep) int p = super_ctl(g, "project-0");

	expect_error(s, "supervisor.spawnRun", "{}", E_DENIED);
	expect_error(s, "supervisor.ready", "{\"address\":\"project/0\"}", E_DENIED);
	expect_error(s, "supervisor.nothing", "{}", E_METHOD);
	expect_error(s, "supervisor.history", "{\"limit\":\"many\"}", E_PARAMS);
	expect_error(s, "supervisor.history", "{\"limit\":5,\"more\":1}", E_PARAMS);
	expect_error(s, "supervisor.killRun", "{\"runId\":\"run_1\"}", E_PARAMS);
	expect_error(p, "project.claimRun", "{}", E_DENIED);
	expect_error(p, "project.runnerExited", "{}", E_DENIED);
	expect_error(p, "project.create", "{}", E_DENIED);
	expect_error(p, "project.findRun", "{\"runId\":7}", E_PARAMS);
	expect_error(s, "supervisor.list", "{}", 0);
	expect_error(p, "project.kick", "{\"projectId\":null}", 0);
	expect_peace(g);
}

/* A run is known by its lease alone; one that has none gets nothing done. */
static void
a_run_without_a_lease_is_lost(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int fd = super_connect(g, "project-0");
	json_t *answer = super_hello(fd, "run", "run/run_0000000000000000000001", getpid());

	assert_int_equal(super_error(answer), 0);
	json_decref(answer);
	answer = super_call(fd, "project.heartbeat",
	    "{\"projectId\":\"prj_0000000000000000000001\","
	    "\"runId\":\"run_0000000000000000000001\","
	    "\"leaseId\":\"00000000000000000000000000000001\",\"status\":\"running\","
	    "\"startedAt\":null}");
	assert_string_equal(
	    json_string_value(json_object_get(json_object_get(answer, "result"), "kind")),
	    "lost");
	json_decref(answer);
	expect_error(fd, "project.acceptRun", "{}", E_DENIED);
	expect_peace(g);
}

static void
a_peer_that_never_reads_is_cut_before_it_costs_much(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int fd = super_ctl(g, "supervisor");
	int cut = 0;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	/* More calls than may be in flight, and of their answers none is read. */
	for (int i = 0; i < 200000 && !cut; i++) {
		char text[128];

		(void)snprintf(text, sizeof(text),
		    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"rpc.discover\"}", i);
		cut = super_send_text(fd, text) < 0;
	}
	assert_true(cut); /* or its own buffer is full, since nobody reads it any more */
	expect_peace(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_is_cut),
		cmocka_unit_test(a_length_that_no_frame_may_have_is_cut),
		cmocka_unit_test(half_a_frame_is_waited_for_and_then_cut),
		cmocka_unit_test(a_connection_that_says_nothing_is_cut),
		cmocka_unit_test(what_nests_too_deeply_is_cut),
		cmocka_unit_test(nobody_is_taken_for_another),
		cmocka_unit_test(what_ctl_may_not_do_is_denied_and_the_connection_lives),
		cmocka_unit_test(a_run_without_a_lease_is_lost),
		cmocka_unit_test(a_peer_that_never_reads_is_cut_before_it_costs_much),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
