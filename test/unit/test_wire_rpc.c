/*
 * test/unit/test_wire_rpc.c -- peers on a real loop: one of ours at each end of a socket pair,
 * or one of ours and bytes written by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

#define KEPT_MAX 300

struct end {
	struct rpc_peer *peer;
	struct rpc_request *kept[KEPT_MAX]; /* Not answered yet. */
	size_t nkept;
	size_t nrequests;
	int closed; /* Error of on_close; 0: open. */
	char last_method[64], last_request_id[RPC_REQUEST_ID_SIZE];
	int64_t last_deadline_ms;
	int last_had_params;
};

struct answers {
	size_t n;
	int err[KEPT_MAX];
	long long value[KEPT_MAX];
	char message[100];
	int had_data;
	int sending; /* A callback that comes while this is set came from inside. */
	struct end *closing;
};

struct fix {
	struct event_base *base;
	struct end a, b; /* b.peer NULL: raw is our end */
	int raw;
	struct answers got;
};

static void
on_request(void *arg, struct rpc_peer *p, struct rpc_request *req)
{
	struct end *e = arg;

	assert_ptr_equal(p, e->peer);
	e->nrequests++;
	strncpy(e->last_method, req->method, sizeof(e->last_method) - 1);
	memcpy(e->last_request_id, req->request_id, sizeof(req->request_id));
	e->last_deadline_ms = req->deadline_ms;
	e->last_had_params = req->params != NULL;
	if (strcmp(req->method, "echo") == 0) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		if (json_text_dump(&out, req->params) < 0)
			rpc_reply_error(req, E_NOMEM, NULL, NULL);
		else
			rpc_reply(req, (const char *)out.data, out.len);
	} else if (strcmp(req->method, "fail") == 0) {
		rpc_reply_error(req, E_ILLEGAL, "no such move", "{\"why\":1}");
	} else if (strcmp(req->method, "big") == 0) {
		CLEANUP_FREE char *big = mem_calloc(1, FRAME_MAX_BYTES);

		memset(big, '1', FRAME_MAX_BYTES);
		rpc_reply(req, big, FRAME_MAX_BYTES);
	} else if (req->notification) {
		rpc_reply(req, "null", 4);
	} else {
		assert_true(e->nkept < KEPT_MAX);
		e->kept[e->nkept++] = req;
	}
}

static void
on_close(void *arg, struct rpc_peer *p, int err)
{
	struct end *e = arg;

	assert_ptr_equal(p, e->peer);
	assert_int_equal(e->closed, 0);
	e->closed = err;
}

static const struct rpc_peer_ops ops = { .on_request = on_request, .on_close = on_close };

static void
step(struct fix *f)
{
	(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static int
setup_with(void **state, int with_b)
{
	struct fix *f = calloc(1, sizeof(*f));
	int fds[2];

	assert_non_null(f);
	f->base = event_base_new();
	f->raw = -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	f->a.peer = rpc_peer_new(f->base, fds[0], &ops, &f->a);
	assert_non_null(f->a.peer);
	if (with_b) {
		f->b.peer = rpc_peer_new(f->base, fds[1], &ops, &f->b);
		assert_non_null(f->b.peer);
	} else {
		f->raw = fds[1];
		assert_int_equal(io_set_nonblocking(f->raw), 0);
	}
	*state = f;
	return 0;
}

static int
setup(void **state)
{
	return setup_with(state, 1);
}

static int
setup_raw(void **state)
{
	return setup_with(state, 0);
}

static void
answer_kept(struct end *e)
{
	while (e->nkept > 0)
		rpc_reply_error(e->kept[--e->nkept], E_CANCELED, NULL, NULL);
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	answer_kept(&f->a);
	answer_kept(&f->b);
	f->a.peer = rpc_peer_free(f->a.peer);
	f->b.peer = rpc_peer_free(f->b.peer);
	io_close(&f->raw);
	step(f);
	step(f);
	event_base_free(f->base);
	free(f);
	return 0;
}

static void
on_answer(void *arg, const struct rpc_answer *a)
{
	struct answers *got = arg;

	assert_int_equal(got->sending, 0);
	assert_true(got->n < KEPT_MAX);
	got->err[got->n] = a->err;
	got->value[got->n] = json_integer_value(json_object_get(a->result, "n"));
	got->had_data = a->data != NULL;
	if (a->message != NULL)
		strncpy(got->message, a->message, sizeof(got->message) - 1);
	got->n++;
	if (got->closing != NULL) {
		got->closing->peer = rpc_peer_free(got->closing->peer);
		got->closing = NULL;
	}
}

static int
call_n(struct fix *f, const char *method, int n, int64_t deadline_ms)
{
	CLEANUP(buf_done) struct buf params = BUF_INIT;
	struct rpc_call_opts opts = { .deadline_ms = deadline_ms, .request_id = "req-1" };
	int r;

	buf_printf(&params, "{\"n\":%d}", n);
	f->got.sending = 1;
	r = rpc_send(f->a.peer, method, &params, &opts, on_answer, &f->got);
	f->got.sending = 0;
	return r;
}

static void
wait_answers(struct fix *f, size_t n)
{
	while (f->got.n < n)
		(void)event_base_loop(f->base, EVLOOP_ONCE);
}

static void
a_call_is_answered_and_says_whose_it_is(void **state)
{
	struct fix *f = *state;

	assert_int_equal(call_n(f, "echo", 7, 1234), 0);
	wait_answers(f, 1);
	assert_int_equal(f->got.err[0], 0);
	assert_int_equal(f->got.value[0], 7);
	assert_string_equal(f->b.last_method, "echo");
	assert_string_equal(f->b.last_request_id, "req-1");
	assert_int_equal(f->b.last_deadline_ms, 1234);
	assert_int_equal(rpc_send(f->a.peer, "echo", NULL, NULL, on_answer, &f->got), 0);
	wait_answers(f, 2);
	assert_int_equal(f->b.last_had_params, 0);
	assert_int_equal(f->b.last_deadline_ms, RPC_DEADLINE_MS);
	assert_string_equal(f->b.last_request_id, "");
}

static void
an_error_carries_its_number_text_and_data(void **state)
{
	struct fix *f = *state;

	assert_int_equal(call_n(f, "fail", 1, 0), 0);
	wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_ILLEGAL);
	assert_string_equal(f->got.message, "no such move");
	assert_int_equal(f->got.had_data, 1);
}

static void
both_sides_may_call_at_once(void **state)
{
	struct fix *f = *state;
	CLEANUP(buf_done) struct buf params = BUF_INIT;

	buf_add_str(&params, "{\"n\":2}");
	assert_int_equal(call_n(f, "echo", 1, 0), 0);
	assert_int_equal(rpc_send(f->b.peer, "echo", &params, NULL, on_answer, &f->got), 0);
	wait_answers(f, 2);
	assert_int_equal(f->got.value[0] + f->got.value[1], 3);
}

static void
replies_out_of_order_reach_their_own_callers(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < 20; i++)
		assert_int_equal(call_n(f, "keep", i, 0), 0);
	while (f->b.nkept < 20)
		step(f);
	for (int i = 19; i >= 0; i--) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		/* The request has forgotten what it borrowed. */
		assert_null(f->b.kept[i]->params);
		buf_printf(&out, "{\"n\":%d}", 1000 + i);
		rpc_reply(f->b.kept[i], (const char *)out.data, out.len);
	}
	f->b.nkept = 0;
	wait_answers(f, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(f->got.value[i], 1019 - i);
}

static void
a_deadline_ends_the_wait_and_the_late_answer_is_dropped(void **state)
{
	struct fix *f = *state;
	struct rpc_peer_stats stats;

	assert_int_equal(call_n(f, "keep", 1, 5), 0);
	assert_int_equal(call_n(f, "keep", 2, 60000), 0);
	wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_DEADLINE);
	rpc_peer_stats(f->a.peer, &stats);
	assert_int_equal(stats.calls_out, 2); /* the slot waits for the late answer */
	while (f->b.nkept < 2)
		step(f);
	rpc_reply(f->b.kept[0], "{\"n\":1}", 7);
	rpc_reply(f->b.kept[1], "{\"n\":2}", 7);
	f->b.nkept = 0;
	wait_answers(f, 2);
	assert_int_equal(f->got.value[1], 2);
	rpc_peer_stats(f->a.peer, &stats);
	assert_int_equal(stats.calls_out, 0);
	assert_int_equal(stats.stray_answers, 1);
}

static void
a_peer_that_owes_256_late_answers_is_given_up(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < RPC_CALLS_MAX; i++)
		assert_int_equal(call_n(f, "keep", i, 5), 0);
	wait_answers(f, RPC_CALLS_MAX);
	while (f->a.closed == 0)
		(void)event_base_loop(f->base, EVLOOP_ONCE);
	assert_int_equal(f->a.closed, E_LINK);
	assert_int_equal(f->got.n, RPC_CALLS_MAX);
}

static void
a_close_in_the_middle_fails_every_call_once(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < 50; i++)
		assert_int_equal(call_n(f, "keep", i, 0), 0);
	while (f->b.nkept < 50)
		step(f);
	rpc_peer_close(f->b.peer, E_LINK);
	while (f->a.closed == 0 || f->b.closed == 0)
		step(f);
	assert_int_equal(f->got.n, 50);
	for (int i = 0; i < 50; i++)
		assert_int_equal(f->got.err[i], E_LINK);
	assert_int_equal(call_n(f, "keep", 1, 0), E_LINK);
	/* Requests that are still owed an answer may be answered into the void. */
	answer_kept(&f->b);
}

static void
a_callback_may_free_its_peer_and_may_call_again(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < 10; i++)
		assert_int_equal(call_n(f, i == 4 ? "echo" : "keep", i, 0), 0);
	f->got.closing = &f->a;
	wait_answers(f, 10);
	assert_null(f->a.peer);
	assert_int_equal(f->got.err[0], 0);
	for (int i = 1; i < 10; i++)
		assert_int_equal(f->got.err[i], E_LINK);
	assert_int_equal(f->a.closed, 0); /* who has left is not called */
}

static void
the_257th_call_is_refused_on_this_side(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < RPC_CALLS_MAX; i++)
		assert_int_equal(call_n(f, "keep", i, 0), 0);
	assert_int_equal(call_n(f, "keep", 256, 0), E_OVERLOADED);
	while (f->b.nkept < RPC_CALLS_MAX)
		step(f);
	rpc_reply(f->b.kept[--f->b.nkept], "{}", 2);
	wait_answers(f, 1);
	assert_int_equal(call_n(f, "keep", 257, 0), 0);
	assert_int_equal(f->a.closed, 0);
}

static void
a_peer_that_never_reads_is_cut_at_the_limit(void **state)
{
	struct fix *f = *state;
	CLEANUP(buf_done) struct buf params = BUF_INIT;
	int n = 0;

	buf_add_str(&params, "{\"text\":\"");
	for (size_t i = 0; i < 1u << 20; i++)
		buf_add_byte(&params, 'x');
	buf_add_str(&params, "\"}");
	while (rpc_peer_is_open(f->a.peer)) {
		f->got.sending = 1;
		assert_int_equal(
		    rpc_send(f->a.peer, "keep", &params, NULL, on_answer, &f->got), 0);
		f->got.sending = 0;
		assert_true(++n < 40);
	}
	assert_true(n > 30);
	step(f);
	assert_int_equal(f->a.closed, E_LINK);
	assert_int_equal(f->got.n, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(f->got.err[i], E_LINK);
}

static void
notifications_have_no_answer(void **state)
{
	struct fix *f = *state;
	struct rpc_peer_stats stats;

	assert_int_equal(rpc_notify(f->a.peer, "tick", NULL, NULL), 0);
	assert_int_equal(rpc_notify(f->a.peer, "fail", NULL, NULL), 0);
	while (f->b.nrequests < 2)
		step(f);
	assert_int_equal(call_n(f, "echo", 1, 0), 0);
	wait_answers(f, 1);
	rpc_peer_stats(f->a.peer, &stats);
	assert_int_equal(stats.frames_in, 1);
}

static void
an_answer_too_big_for_a_frame_is_an_error(void **state)
{
	struct fix *f = *state;

	assert_int_equal(call_n(f, "big", 1, 0), 0);
	wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_TOO_BIG);
}

static void
params_too_big_for_a_frame_are_not_sent(void **state)
{
	struct fix *f = *state;
	struct buf params = { .data = mem_calloc(1, FRAME_MAX_BYTES), .len = FRAME_MAX_BYTES };
	struct buf broken = { .failed = 1 };

	assert_int_equal(
	    rpc_send(f->a.peer, "echo", &params, NULL, on_answer, &f->got), E_TOO_BIG);
	assert_int_equal(
	    rpc_send(f->a.peer, "echo", &broken, NULL, on_answer, &f->got), E_NOMEM);
	assert_int_equal(rpc_notify(f->a.peer, "echo", &params, NULL), E_TOO_BIG);
	free(params.data);
	assert_int_equal(call_n(f, "echo", 1, 0), 0);
	wait_answers(f, 1);
	assert_int_equal(f->got.value[0], 1);
}

static void
finish_writes_what_is_queued(void **state)
{
	struct fix *f = *state;

	assert_int_equal(call_n(f, "keep", 1, 0), 0);
	while (f->b.nkept < 1)
		step(f);
	rpc_reply(f->b.kept[0], "{\"n\":5}", 7);
	f->b.nkept = 0;
	rpc_peer_finish(f->b.peer, E_DRAINING);
	wait_answers(f, 1);
	assert_int_equal(f->got.value[0], 5);
	while (f->b.closed == 0 || f->a.closed == 0)
		step(f);
	assert_int_equal(f->b.closed, E_DRAINING);
}

/* ---- against bytes written by hand ---- */

static void
raw_write(struct fix *f, const char *body)
{
	uint32_t n = (uint32_t)strlen(body);
	uint8_t head[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
		(uint8_t)n };

	assert_int_equal(write(f->raw, head, 4), 4);
	assert_int_equal(write(f->raw, body, n), n);
}

/* 1: a frame, NUL-terminated; 0: end of file. */
static int
raw_read(struct fix *f, char *out, size_t size)
{
	size_t have = 0, want = 4;

	while (have < want) {
		ssize_t n = read(f->raw, out + have, want - have);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 0;
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			step(f);
			continue;
		}
		have += (size_t)n;
		if (have == 4 && want == 4) {
			want = 4 + ((size_t)(uint8_t)out[2] << 8 | (uint8_t)out[3]);
			assert_true(want < size);
		}
	}
	memmove(out, out + 4, want - 4);
	out[want - 4] = '\0';
	return 1;
}

static void
expect_error(struct fix *f, const char *id, int err)
{
	char got[2000], want[100];

	assert_int_equal(raw_read(f, got, sizeof(got)), 1);
	(void)snprintf(want, sizeof(want),
	    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,", id, err);
	if (strncmp(got, want, strlen(want)) != 0)
		fail_msg("got %s, wanted %s", got, want);
}

static void
bad_requests_are_answered_and_the_connection_lives(void **state)
{
	static const struct {
		const char *body, *id;
		int err;
	} rows[] = {
		{ "[]", "null", E_REQUEST },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}]", "null", E_REQUEST },
		{ "1", "null", E_REQUEST },
		{ "{}", "null", E_REQUEST },
		{ "{\"id\":1,\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "1", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":7}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}", "null",
		    E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"echo\"}", "null", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"echo\",\"params\":1}",
		    "\"a\"", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"extra\":1}", "1",
		    E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"meta\":1}", "1",
		    E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"meta\":{\"deadlineMs\":0}}",
		    "1", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"meta\":{\"requestId\":\"a b\"}}",
		    "1", E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"result\":1}", "1",
		    E_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fail\"}", "1", E_ILLEGAL },
	};
	struct fix *f = *state;
	char got[200];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		raw_write(f, rows[i].body);
		expect_error(f, rows[i].id, rows[i].err);
	}
	raw_write(f, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"echo\",\"params\":{\"n\":1}}");
	assert_int_equal(raw_read(f, got, sizeof(got)), 1);
	assert_string_equal(got, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"n\":1}}");
}

static void
requests_of_unusual_form_are_understood(void **state)
{
	static const char *const rows[] = {
		" { \"id\" : 1 , \"jsonrpc\" : \"2.0\" , \"params\" : { \"n\" : 1 } , "
		"\"method\" : \"echo\" } \r\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"m\\u0065thod\":\"echo\",\"params\":{\"n\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u0065cho\",\"p\\u0061rams\":{\"n\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"n\":1},\"meta\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"n\":1},"
		"\"meta\":{\"later\":[1],\"requestId\":\"x\"}}",
	};
	struct fix *f = *state;
	char got[200];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		raw_write(f, rows[i]);
		assert_int_equal(raw_read(f, got, sizeof(got)), 1);
		assert_string_equal(got, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1}}");
	}
	raw_write(f, "{\"jsonrpc\":\"2.0\",\"id\":\"r-1\",\"method\":\"echo\",\"params\":[]}");
	assert_int_equal(raw_read(f, got, sizeof(got)), 1);
	assert_string_equal(got, "{\"jsonrpc\":\"2.0\",\"id\":\"r-1\",\"result\":[]}");
}

static void
answers_that_nobody_waits_for_are_counted(void **state)
{
	static const char *const rows[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":256,\"result\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":-5,\"error\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"?\"}}"
	};
	struct fix *f = *state;
	struct rpc_peer_stats stats;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		raw_write(f, rows[i]);
	do {
		step(f);
		rpc_peer_stats(f->a.peer, &stats);
	} while (stats.frames_in < ARRAY_LEN(rows));
	assert_int_equal(stats.stray_answers, ARRAY_LEN(rows));
	assert_int_equal(f->a.closed, 0);
}

/* Each loses the stream: one error, then the end of file. */
static void
what_is_no_message_gets_one_error_and_the_end(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int err;
	} rows[] = {
		{ "\0\0\0\0", 4, E_PARSE },
		{ "\0\0\0\1{", 5, E_PARSE },
		{ "\0\0\0\3{]}", 7, E_PARSE },
		{ "\0\0\0\3nul", 7, E_PARSE },
		{ "\0\0\0\4\"\xff\xfe\"", 8, E_PARSE },
		{ "\0\0\0\x0d{\"a\":1,\"a\":2}", 17, E_PARSE },
		{ "\x01\0\0\1", 4, E_TOO_BIG },
		{ "GET / HTTP/1.1\r\n", 16, E_TOO_BIG },
	};
	static const char params[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":";
	char body[400], got[400];

	for (size_t i = 0; i < ARRAY_LEN(rows) + 3; i++) {
		struct fix *f;
		int err = i < ARRAY_LEN(rows) ? rows[i].err : E_DEEP;

		assert_int_equal(setup_raw(state), 0);
		f = *state;
		if (i < ARRAY_LEN(rows)) {
			assert_int_equal(write(f->raw, rows[i].bytes, rows[i].n), rows[i].n);
		} else if (i == ARRAY_LEN(rows)) {
			(void)snprintf(body, sizeof(body), "%s%.64s%.64s}", params,
			    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
			    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
			raw_write(f, body);
		} else {
			err = E_PARSE;
			(void)snprintf(body, sizeof(body), "%s%s}", params,
			    i == ARRAY_LEN(rows) + 1 ? "{]" : "\"\\x\"");
			raw_write(f, body);
		}
		expect_error(f, "null", err);
		assert_int_equal(raw_read(f, got, sizeof(got)), 0);
		step(f);
		assert_int_equal(f->a.closed, err);
		assert_int_equal(f->a.nrequests, 0);
		teardown(state);
	}
}

static void
nesting_of_64_is_fine(void **state)
{
	struct fix *f;
	char body[400], got[400];

	assert_int_equal(setup_raw(state), 0);
	f = *state;
	(void)snprintf(body, sizeof(body),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":"
	    "%.63s%.63s}",
	    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
	    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
	raw_write(f, body);
	assert_int_equal(raw_read(f, got, sizeof(got)), 1);
	assert_non_null(strstr(got, "\"result\":[[["));
	teardown(state);
}

static void
a_peer_with_257_requests_in_flight_is_cut(void **state)
{
	struct fix *f = *state;
	char body[100];

	for (int i = 0; i < 257; i++) {
		(void)snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"keep\"}", i);
		raw_write(f, body);
		step(f);
	}
	while (f->a.closed == 0)
		step(f);
	assert_int_equal(f->a.closed, E_OVERLOADED);
	assert_int_equal(f->a.nrequests, RPC_CALLS_MAX);
}

static void
half_a_frame_and_the_end_is_a_lost_link(void **state)
{
	struct fix *f = *state;

	assert_int_equal(call_n(f, "x", 1, 0), 0);
	assert_int_equal(write(f->raw, "\0\0\1\0{\"json", 10), 10);
	step(f);
	io_close(&f->raw);
	wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_LINK);
	step(f);
	assert_int_equal(f->a.closed, E_LINK);
	assert_int_equal(f->a.nrequests, 0);
}

static void
an_answer_with_a_broken_error_is_internal(void **state)
{
	struct fix *f = *state;
	char got[400], body[200];
	long long id;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(call_n(f, "x", 1, 0), 0);
		assert_int_equal(raw_read(f, got, sizeof(got)), 1);
		assert_int_equal(sscanf(got, "{\"jsonrpc\":\"2.0\",\"id\":%lld", &id), 1);
		(void)snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":%s}", id,
		    i == 0 ? "7" : "{\"code\":5,\"message\":9}");
		raw_write(f, body);
		wait_answers(f, (size_t)i + 1);
		assert_int_equal(f->got.err[i], E_INTERNAL);
	}
}

static void
every_failed_allocation_leaves_one_callback_a_call(void **state)
{
	long n;

	json_text_use_mem();
	for (n = 0;; n++) {
		struct fix *f;
		size_t accepted = 0;
		int hit;

		assert_int_equal(setup(state), 0);
		f = *state;
		mem_fault_arm(n);
		for (int i = 0; i < 20; i++)
			accepted += call_n(f, i % 2 ? "echo" : "fail", i, 50) == 0;
		while (f->got.n < accepted)
			(void)event_base_loop(f->base, EVLOOP_ONCE);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		step(f);
		assert_int_equal(f->got.n, accepted);
		teardown(state);
		if (!hit)
			break;
	}
	json_set_alloc_funcs(malloc, free);
	assert_true(n > 20);
}

int
main(void)
{
#define PAIR(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
#define RAW(t)  cmocka_unit_test_setup_teardown(t, setup_raw, teardown)
	static const struct CMUnitTest tests[] = {
		/* First, before jansson has made anything with other memory. */
		cmocka_unit_test(every_failed_allocation_leaves_one_callback_a_call),
		PAIR(a_call_is_answered_and_says_whose_it_is),
		PAIR(an_error_carries_its_number_text_and_data),
		PAIR(both_sides_may_call_at_once),
		PAIR(replies_out_of_order_reach_their_own_callers),
		PAIR(a_deadline_ends_the_wait_and_the_late_answer_is_dropped),
		PAIR(a_peer_that_owes_256_late_answers_is_given_up),
		PAIR(a_close_in_the_middle_fails_every_call_once),
		PAIR(a_callback_may_free_its_peer_and_may_call_again),
		PAIR(the_257th_call_is_refused_on_this_side),
		RAW(a_peer_that_never_reads_is_cut_at_the_limit),
		PAIR(notifications_have_no_answer),
		PAIR(an_answer_too_big_for_a_frame_is_an_error),
		PAIR(params_too_big_for_a_frame_are_not_sent),
		PAIR(finish_writes_what_is_queued),
		RAW(bad_requests_are_answered_and_the_connection_lives),
		RAW(requests_of_unusual_form_are_understood),
		RAW(answers_that_nobody_waits_for_are_counted),
		cmocka_unit_test(what_is_no_message_gets_one_error_and_the_end),
		cmocka_unit_test(nesting_of_64_is_fine),
		RAW(a_peer_with_257_requests_in_flight_is_cut),
		RAW(half_a_frame_and_the_end_is_a_lost_link),
		RAW(an_answer_with_a_broken_error_is_internal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
