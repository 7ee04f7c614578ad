/* Requests and answers on a connection: framing, order, bodies, refusals. */
#include "lib/base/err.h"
#include "lib/http/http.h"
#include "test/support/http_rig.h"

static void
any_chunking_of_the_input_gives_the_same_answers(void **state)
{
	static const char input[] =
	    "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n"
	    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	    "\r\nPOST /echo HTTP/1.1\r\nhost:a\r\ntransfer-encoding:\tchunked \r\n\r\n"
	    "3;ext=\"v\"\r\nabc\r\n0a\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n"
	    "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 64\r\n\r\n"
	    "0123456789012345678901234567890123456789012345678901234567890123"
	    "GET http://A/ok?x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz"
	    "HEAD /ok HTTP/1.1\r\nHost: a\r\n\r\n"
	    "GET /ok HTTP/1.0\r\n\r\n";
	static const size_t steps[] = { 1, 2, 3, 5, 17, 63, 64, 200, SIZE_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct rig *r = rig_new(NULL);
		struct client *c = client_new(r);
		const struct reply *p;

		client_send_n(c, input, sizeof(input) - 1, steps[i]);
		client_expect(c, 200, "ok");
		client_expect(c, 200, "hello");
		client_expect(c, 200, "abc0123456789");
		client_expect(c, 200, "64");
		client_expect(c, 200, "ok");
		p = client_reply_of(c, 1);
		assert_string_equal(reply_header(p, "Content-Length"), "2");
		p = client_reply(c);
		assert_int_equal(p->status, 200);
		assert_string_equal(reply_header(p, "Connection"), "close");
		client_expect_end(c);
		assert_int_equal(r->nrequests, 7);
		assert_int_equal(r->nended, 7);
		client_free(c);
		rig_free(r);
	}
}

static void
malformed_requests_get_400_and_nothing_behind_them_is_looked_at(void **state)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
		"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\xfc\x03\x03 tls\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rig *r = rig_new(NULL);
		struct client *c = client_new(r);
		struct http_counters n;
		const struct reply *p;

		client_send(c, bad[i]);
		client_send(c, "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
		p = client_reply(c);
		assert_int_equal(p->status, 400);
		assert_string_equal(p->body, "bad_request");
		assert_int_equal(strlen(reply_header(p, "X-Request-Id")), 22);
		assert_string_equal(reply_header(p, "Connection"), "close");
		client_expect_end(c);
		assert_int_equal(r->nrequests, 0);
		http_server_counters(r->srv, &n);
		assert_int_equal(n.malformed, 1);
		assert_int_equal(n.in_flight, 0);
		client_free(c);
		rig_free(r);
	}
}

static void
bad_chunks_end_the_request_and_the_connection(void **state)
{
	static const char *const bad[] = { "5\nhello\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n",
		"0x5\r\nhello\r\n", "-1\r\n", "\r\n", "5 \r\nhello\r\n", " 5\r\nhello\r\n",
		"100000005\r\nhello\r\n", "5;a\nb\r\nhello\r\n",
		"5\r\nhello\r\n0\r\nbad trailer\r\n", "0\r\n\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rig *r = rig_new(NULL);
		struct client *c = client_new(r);

		client_send(
		    c, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
		client_send(c, bad[i]);
		client_send(c, "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
		client_expect(c, 400, "bad_request");
		client_expect_end(c);
		assert_int_equal(r->nrequests, 1);
		assert_int_equal(r->nbody_errors, 1);
		assert_int_equal(r->body_err, E_FRAME);
		client_free(c);
		rig_free(r);
	}
}

static void
send_sized(struct client *c, const char *before, size_t n, const char *after)
{
	char *fill = malloc(n);

	memset(fill, 'a', n);
	client_send(c, before);
	client_send_n(c, fill, n, SIZE_MAX);
	client_send(c, after);
	free(fill);
}

static void
targets_and_headers_have_their_limits_to_the_byte(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	send_sized(c, "GET /", 8191, " HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 200, "ok");
	send_sized(c, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 32768 - 9 - 5, "\r\n\r\n");
	client_expect(c, 200, "ok");
	send_sized(c, "GET /", 8192, " HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 414, "uri_too_long");
	client_expect_end(c);
	client_free(c);

	c = client_new(r);
	send_sized(c, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 32768 - 9 - 4, "\r\n\r\n");
	client_expect(c, 431, "headers_too_large");
	client_expect_end(c);
	client_free(c);

	/* Without an end in sight they are refused as well. */
	c = client_new(r);
	send_sized(c, "GET /", 20000, "");
	client_expect(c, 414, "uri_too_long");
	client_free(c);
	c = client_new(r);
	send_sized(c, "", 20000, "");
	client_expect(c, 400, "bad_request");
	client_free(c);
	c = client_new(r);
	send_sized(c, "GET / HTTP/1.1\r\n", 100000, "");
	client_expect(c, 431, "headers_too_large");
	client_free(c);
	rig_free(r);
}

static void
pipelined_requests_are_answered_in_order_and_one_at_a_time(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	char one[64];

	(void)state;
	client_send(c,
	    "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
	    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
	RIG_WAIT(r, r->held != NULL);
	rig_settle(r);
	assert_int_equal(r->nrequests, 1);
	assert_int_equal(c->got.len, 0);
	http_answer(r->held, 202, "first", 5);
	client_expect(c, 202, "first");
	client_expect(c, 200, "hi");
	for (int i = 0; i < 500; i++) {
		snprintf(one, sizeof(one), "GET /n%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
		client_send_n(c, one, strlen(one), 1000);
	}
	for (int i = 0; i < 500; i++)
		client_expect(c, 200, "ok");
	assert_string_equal(r->last_path, "/n499");
	client_free(c);
	rig_free(r);
}

static void
a_body_over_its_limit_is_refused_when_declared_else_when_counted(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	client_send(c,
	    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n"
	    "Expect: 100-continue\r\n\r\n");
	client_expect(c, 413, "payload_too_large");
	client_expect_end(c);
	assert_int_equal(r->body_err, E_TOO_BIG);
	client_free(c);

	c = client_new(r);
	client_send(c, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 16; i++)
		client_send_n(c, "4\r\nabcd\r\n", 9, 1);
	rig_settle(r);
	assert_int_equal(c->got.len, 0);
	assert_int_equal(r->body_bytes, 64);
	client_send(c, "1\r\na\r\n");
	client_expect(c, 413, "payload_too_large");
	client_expect_end(c);
	assert_int_equal(r->body_bytes, 64);
	assert_int_equal(r->nbody_errors, 2);
	client_free(c);
	rig_free(r);
}

static void
expect_gets_its_100_when_the_body_is_wanted(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	client_send(c,
	    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
	    "Expect: 100-Continue\r\n\r\n");
	client_expect(c, 100, NULL);
	client_send(c, "hi");
	client_expect(c, 200, "hi");

	/* Refused early: nobody can know whether the body comes, so the connection ends. */
	client_send(c,
	    "POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
	    "Expect: 100-continue\r\n\r\n");
	p = client_reply(c);
	assert_int_equal(p->status, 200);
	assert_string_equal(reply_header(p, "Connection"), "close");
	client_expect_end(c);
	client_free(c);
	rig_free(r);
}

static void
a_body_that_nobody_wants_is_dropped_within_the_limit(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	send_sized(
	    c, "POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n", 65536, "");
	client_expect(c, 200, "ok");
	client_send(c, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 200, "ok");
	assert_string_equal(r->last_path, "/next");
	client_send(c, "POST /drop HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
	client_expect(c, 200, "");
	client_send(c, "POST /drop HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 200, "");

	/* A larger one is refused before it is sent, and the answer gets through all the same. */
	client_send(c, "POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
	send_sized(c, "", 1000000, "");
	p = client_reply(c);
	assert_int_equal(p->status, 200);
	assert_string_equal(reply_header(p, "Connection"), "close");
	client_expect_end(c);
	client_free(c);

	/* Chunked: counted while it goes by. */
	c = client_new(r);
	client_send(c, "POST /ok HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	client_expect(c, 200, "ok");
	send_sized(c, "11000\r\n", 0x11000, "\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect_end(c);
	assert_string_not_equal(r->last_path, "/x");
	client_free(c);
	rig_free(r);
}

static void
a_sink_that_answers_gets_no_more_pieces(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	client_send(
	    c, "POST /sink401 HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n0123456789");
	client_expect(c, 401, "no");
	assert_int_equal(r->body_bytes, 10);
	client_send(c, "0123456789GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 200, "ok");
	assert_int_equal(r->body_bytes, 10);
	client_free(c);
	rig_free(r);
}

static void
answers_without_a_body_have_none(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	r->blob = http_blob_new_static("static", 6);
	client_send(c,
	    "GET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\n"
	    "HEAD /blob HTTP/1.1\r\nHost: a\r\n\r\nGET /blob HTTP/1.1\r\nHost: a\r\n\r\n"
	    "HEAD /pour HTTP/1.1\r\nHost: a\r\n\r\n");
	p = client_reply(c);
	assert_int_equal(p->status, 204);
	assert_null(reply_header(p, "Content-Length"));
	p = client_reply(c);
	assert_int_equal(p->status, 304);
	assert_null(reply_header(p, "Content-Length"));
	p = client_reply_of(c, 1);
	assert_string_equal(reply_header(p, "Content-Length"), "6");
	client_expect(c, 200, "static");
	r->stream_left = 5000;
	p = client_reply_of(c, 1);
	assert_string_equal(reply_header(p, "Transfer-Encoding"), "chunked");
	client_send(c, "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
	client_expect(c, 200, "ok");
	client_free(c);
	rig_free(r);
}

static void
keep_alive_follows_version_and_connection_header(void **state)
{
	static const struct {
		const char *request, *connection;
		int closes;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", NULL, 0 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", "close", 1 },
		{ "GET / HTTP/1.0\r\n\r\n", "close", 1 },
		{ "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "keep-alive", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig *r = rig_new(NULL);
		struct client *c = client_new(r);
		const struct reply *p;
		const char *value;

		client_send(c, cases[i].request);
		p = client_reply(c);
		value = reply_header(p, "Connection");
		if (cases[i].connection == NULL)
			assert_null(value);
		else
			assert_string_equal(value, cases[i].connection);
		if (cases[i].closes)
			client_expect_end(c);
		rig_settle(r);
		assert_int_equal(c->eof, cases[i].closes);
		client_free(c);
		rig_free(r);
	}
}

static void
a_header_value_cannot_begin_another_line(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	client_send(c, "GET /inject HTTP/1.1\r\nHost: a\r\n\r\n");
	p = client_reply(c);
	assert_int_equal(p->status, 500);
	assert_null(reply_header(p, "Set-Cookie"));
	assert_int_equal(p->body_len, 0);
	client_expect_end(c);
	client_free(c);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_chunking_of_the_input_gives_the_same_answers),
		cmocka_unit_test(
		    malformed_requests_get_400_and_nothing_behind_them_is_looked_at),
		cmocka_unit_test(bad_chunks_end_the_request_and_the_connection),
		cmocka_unit_test(targets_and_headers_have_their_limits_to_the_byte),
		cmocka_unit_test(pipelined_requests_are_answered_in_order_and_one_at_a_time),
		cmocka_unit_test(
		    a_body_over_its_limit_is_refused_when_declared_else_when_counted),
		cmocka_unit_test(expect_gets_its_100_when_the_body_is_wanted),
		cmocka_unit_test(a_body_that_nobody_wants_is_dropped_within_the_limit),
		cmocka_unit_test(a_sink_that_answers_gets_no_more_pieces),
		cmocka_unit_test(answers_without_a_body_have_none),
		cmocka_unit_test(keep_alive_follows_version_and_connection_header),
		cmocka_unit_test(a_header_value_cannot_begin_another_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
