/*
 * test/unit/test_wire_client.c -- calls that are waited for, against a server in a process of
 * its own.
 */
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
tell(struct rpc_peer *p, int n)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)buf_printf(&text, "{\"n\":%d}", n);
	(void)rpc_notify(p, "news", &text, NULL);
}

/* Of a question that clients do not answer. */
static void
server_on_answer(void *arg, const struct rpc_answer *a)
{
	rpc_reply_error(arg, a->err != 0 ? a->err : E_INTERNAL, NULL, NULL);
}

static int nheard; /* Of notifications, in the server's process. */

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
	} else if (strcmp(req->method, "tell") == 0) {
		tell(p, 1);
		rpc_reply(req, "{}", 2);
		tell(p, 2);
		tell(p, 3);
	} else if (strcmp(req->method, "tell and cut") == 0) {
		rpc_reply(req, "{}", 2);
		tell(p, 4);
		rpc_peer_finish(p, E_LINK);
	} else if (strcmp(req->method, "ask") == 0) {
		(void)rpc_send(p, "question", NULL, NULL, server_on_answer, req);
	} else if (req->notification) {
		nheard++;
		rpc_reply(req, "", 0);
	} else if (strcmp(req->method, "heard") == 0) {
		char text[32];
		int n = snprintf(text, sizeof(text), "{\"n\":%d}", nheard);

		rpc_reply(req, text, (size_t)n);
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

/* ---- what comes unasked ---- */

struct news {
	struct client *client;
	int n;
	int64_t sum;
};

static const struct codec_type nothing = { .kind = CODEC_OBJECT, .name = "Object", .size = 1 };
static const struct rpc_contract thanks = { "thanks", &nothing, NULL };

static void
on_news(void *arg, const char *address, const char *method, const json_t *params)
{
	struct news *news = arg;

	assert_string_equal(address, "project/3");
	assert_string_equal(method, "news");
	news->n++;
	news->sum += json_integer_value(json_object_get(params, "n"));
	assert_int_equal(client_notify_as(news->client, address, &thanks, ""), 0);
}

static void
notifications_come_while_something_is_waited_for(void **state)
{
	struct fix *f = *state;
	struct news news = { f->client, 0, 0 };
	struct client_reply reply;

	client_on_event(f->client, on_news, &news);
	assert_int_equal(call(f, "tell", "{}", &reply), 0);
	while (news.n < 3)
		assert_int_equal(client_wait(f->client, "project/3"), 0);
	assert_int_equal(news.sum, 6);
	assert_int_equal(call(f, "heard", "{}", &reply), 0);
	assert_int_equal(json_integer_value(json_object_get(reply.result, "n")), 3);
	client_on_event(f->client, NULL, NULL);
	assert_int_equal(call(f, "tell", "{}", &reply), 0);
	assert_int_equal(call(f, "echo", "{}", &reply), 0);
	assert_int_equal(news.n, 3);
}

static void
a_wait_ends_with_the_connection(void **state)
{
	struct fix *f = *state;
	struct news news = { f->client, 0, 0 };
	struct client_reply reply;

	assert_int_equal(client_wait(f->client, "project/3"), E_LINK);
	assert_int_equal(client_notify_as(f->client, "project/3", &thanks, ""), E_LINK);
	client_on_event(f->client, on_news, &news);
	assert_int_equal(call(f, "tell and cut", "{}", &reply), 0);
	while (client_wait(f->client, "project/3") == 0)
		;
	assert_int_equal(news.sum, 4);
	assert_int_equal(client_wait(f->client, "project/3"), E_LINK);
	assert_int_equal(call(f, "echo", "{}", &reply), 0);
}

static void
questions_are_not_answered(void **state)
{
	struct fix *f = *state;
	struct client_reply reply;

	assert_int_equal(call(f, "ask", "{}", &reply), E_METHOD);
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
		T(notifications_come_while_something_is_waited_for),
		T(a_wait_ends_with_the_connection),
		T(questions_are_not_answered),
		T(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests_name("wire client", tests, NULL, NULL);
}
