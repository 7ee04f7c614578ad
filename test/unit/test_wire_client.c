/*
 * test/unit/test_wire_client.c -- calls that are waited for, against a server in a process of
 * its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

struct fix {
	char *dir;
	int dirfd;
	pid_t server;
	struct client *client;
};

/* ---- the other process ---- */

static void
server_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	(void)arg;
	if (strcmp(req->method, "echo") == 0) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		(void)json_text_dump(&text, req->params);
		rpc_reply(req, (const char *)text.data, text.len);
	} else if (strcmp(req->method, "refuse") == 0) {
		rpc_reply_error(req, E_PARAMS, "not like this", "{\"issues\":[]}");
	} else if (strcmp(req->method, "cut") == 0) {
		rpc_reply_error(req, E_LINK, NULL, NULL);
		rpc_peer_close(p, E_LINK);
	}
	/* Anything else is never answered: the process is killed with it. */
}

static void
server_on_close(void *arg, struct rpc_peer *p, int err)
{
	(void)arg;
	(void)err;
	(void)rpc_peer_free(p);
}

static void
server_on_peer(void *arg, struct rpc_peer *p)
{
	static const struct rpc_peer_ops ops = { .on_request = server_on_request,
		.on_close = server_on_close };

	rpc_peer_set_ops(p, &ops, arg);
}

static void
serve(int dirfd, int tell)
{
	static const struct listener_ops ops = { .on_peer = server_on_peer };
	struct listener_desc desc = { .dirfd = dirfd, .address = "project/3" };
	struct event_base *base = event_base_new();
	struct listener *l;

	if (base == NULL || listener_new(base, &desc, &ops, NULL, &l) < 0 ||
	    write(tell, "!", 1) != 1)
		_exit(1);
	(void)event_base_dispatch(base);
	_exit(1);
}

static void
start_server(struct fix *f)
{
	char byte;
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	f->server = fork();
	assert_true(f->server >= 0);
	if (f->server == 0)
		serve(f->dirfd, pipes[1]);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
}

static void
stop_server(struct fix *f)
{
	if (f->server <= 0)
		return;
	(void)kill(f->server, SIGKILL);
	assert_int_equal(waitpid(f->server, NULL, 0), f->server);
	f->server = 0;
}

static int
setup(void **state)
{
	struct fix *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->dir = scratch_new();
	f->dirfd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
	start_server(f);
	f->client = client_new(f->dirfd);
	assert_non_null(f->client);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	(void)client_free(f->client);
	stop_server(f);
	close(f->dirfd);
	scratch_free(f->dir);
	free(f);
	return 0;
}

static int
call(struct fix *f, const char *method, const char *params, struct client_reply *reply)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)buf_add_str(&text, params);
	return client_call(f->client, "project/3", method, &text, 5000, reply);
}

/* ---- tests ---- */

static void
an_answer_is_waited_for_and_lent(void **state)
{
	struct fix *f = *state;
	struct client_reply one, two;

	assert_int_equal(call(f, "echo", "{\"a\":1}", &one), 0);
	assert_int_equal(call(f, "echo", "{\"a\":2}", &two), 0);
	assert_int_equal(json_integer_value(json_object_get(one.result, "a")), 1);
	assert_int_equal(json_integer_value(json_object_get(two.result, "a")), 2);
	assert_int_equal(one.reached, 1);
	client_forget(f->client);
	assert_int_equal(call(f, "echo", "{\"a\":3}", &one), 0);
}

static void
a_refusal_tells_message_and_data(void **state)
{
	struct fix *f = *state;
	struct client_reply reply;

	assert_int_equal(call(f, "refuse", "{}", &reply), E_PARAMS);
	assert_int_equal(reply.reached, 1);
	assert_string_equal(reply.message, "not like this");
	assert_true(json_is_array(json_object_get(reply.data, "issues")));
	assert_null(reply.result);
}

static void
nobody_there_is_told_from_a_refusal(void **state)
{
	struct fix *f = *state;
	struct client_reply reply;

	assert_int_equal(
	    client_call(f->client, "ingress", "echo", NULL, 5000, &reply), E_NOENT);
	assert_int_equal(reply.reached, 0);
	assert_int_equal(client_connect(f->client, "no such address!"), E_INVAL);
	stop_server(f);
	assert_int_equal(client_connect(f->client, "project/3"), E_LINK);
}

static void
a_lost_connection_is_made_again(void **state)
{
	struct fix *f = *state;
	struct client_reply reply;

	assert_int_equal(call(f, "cut", "{}", &reply), E_LINK);
	assert_int_equal(call(f, "echo", "{}", &reply), 0);
	stop_server(f);
	assert_int_equal(call(f, "echo", "{}", &reply), E_LINK);
	start_server(f);
	assert_int_equal(call(f, "echo", "{}", &reply), 0);
}

static void
silence_ends_at_the_deadline(void **state)
{
	struct fix *f = *state;
	struct client_reply reply;

	assert_int_equal(
	    client_call(f->client, "project/3", "silence", NULL, 20, &reply), E_DEADLINE);
	client_pause(f->client, 1);
	assert_int_equal(call(f, "echo", "{}", &reply), 0);
}

static void
every_failed_allocation_is_told(void **state)
{
	struct fix *f = *state;
	long n, failed = 0;

	for (n = 0;; n++) {
		struct client_reply reply = { .err = 0 };
		struct client *c;
		int hit;

		mem_fault_arm(n);
		c = client_new(f->dirfd);
		if (c != NULL)
			(void)client_call(c, "project/3", "echo", NULL, 5000, &reply);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		if (hit)
			failed += c == NULL || reply.err < 0;
		(void)client_free(c);
		if (!hit)
			break;
	}
	assert_true(n > 5);
	assert_true(failed > 5);
}

int
main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_answer_is_waited_for_and_lent),
		T(a_refusal_tells_message_and_data),
		T(nobody_there_is_told_from_a_refusal),
		T(a_lost_connection_is_made_again),
		T(silence_ends_at_the_deadline),
		T(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests_name("wire client", tests, NULL, NULL);
}
