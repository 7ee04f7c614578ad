/* Connections over time: deadlines, slow readers, lost clients, take-over, stopping. */
#include <netinet/in.h>
#include <sys/un.h>

#include "lib/base/err.h"
#include "lib/http/http.h"
#include "test/support/http_rig.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

/* Deadlines that a test can wait for; the others never come. */
static struct http_limits
quick_limits(void)
{
	struct http_limits l = http_limits_default();

	l.head_ms = l.body_idle_ms = l.body_ms = l.idle_ms = l.write_ms = l.linger_ms = 1000000;
	return l;
}

static void
a_late_head_gets_408(void **state)
{
	struct http_limits l = quick_limits();
	struct rig *r;
	struct client *c;
	struct http_counters n;

	(void)state;
	l.head_ms = 30;
	r = rig_new(&l);
	c = client_new(r);
	client_send(c, GET("/ok"));
	client_expect(c, 200, "ok");
	client_send(c, "GET / HTTP/1.1\r\nHost");
	client_expect(c, 408, "request_timeout");
	shutdown(c->fd, SHUT_WR);
	client_expect_end(c);
	http_server_counters(r->srv, &n);
	assert_int_equal(n.timeouts, 1);
	client_free(c);
	rig_free(r);
}

static void
a_stalled_or_endless_body_gets_408(void **state)
{
	(void)state;
	for (int total = 0; total <= 1; total++) {
		struct http_limits l = quick_limits();
		struct rig *r;
		struct client *c;

		*(total ? &l.body_ms : &l.body_idle_ms) = 30;
		r = rig_new(&l);
		c = client_new(r);
		client_send(
		    c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nabc");
		client_expect(c, 408, "request_timeout");
		assert_int_equal(r->body_err, E_DEADLINE);
		client_free(c);

		/* While the handler makes up its mind nothing is late. */
		c = client_new(r);
		client_send(c, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
		RIG_WAIT(r, r->held != NULL);
		http_body_collect(r->held, 10, rig_echo, r);
		client_send(c, "abc");
		client_expect(c, 200, "abc");
		client_free(c);
		rig_free(r);
	}
}

static void
an_idle_connection_is_closed_without_words(void **state)
{
	struct http_limits l = quick_limits();
	struct rig *r;
	struct client *c, *fresh;

	(void)state;
	l.idle_ms = 30;
	r = rig_new(&l);
	c = client_new(r);
	fresh = client_new(r);
	client_send(c, GET("/ok"));
	client_expect(c, 200, "ok");
	client_expect_end(c);
	client_expect_end(fresh);
	client_free(c);
	client_free(fresh);
	rig_free(r);
}

static void
a_client_that_takes_nothing_is_cut_off_in_the_end(void **state)
{
	struct http_limits l = quick_limits();
	struct rig *r;
	struct client *c;

	(void)state;
	l.write_ms = 30;
	r = rig_new(&l);
	c = client_new(r);
	client_read(c, 0);
	r->stream_left = 100 * 1000 * 1000;
	client_send(c, GET("/pour"));
	RIG_WAIT(r, r->nended == 1);
	assert_string_equal(r->ended[0], "200 1");
	client_free(c);
	rig_free(r);
}

static void
one_connection_too_many_gets_503(void **state)
{
	struct http_limits l = quick_limits();
	struct rig *r;
	struct client *a, *b, *c;
	const struct reply *p;

	(void)state;
	l.max_conns = 2;
	r = rig_new(&l);
	a = client_new(r);
	b = client_new(r);
	c = client_new(r);
	p = client_reply(c);
	assert_int_equal(p->status, 503);
	assert_string_equal(p->body, "overloaded");
	assert_string_equal(reply_header(p, "Retry-After"), "1");
	client_expect_end(c);
	client_free(c);
	client_send(a, GET("/ok"));
	client_expect(a, 200, "ok");
	client_free(a);
	rig_settle(r);
	c = client_new(r);
	client_send(c, GET("/ok"));
	client_expect(c, 200, "ok");
	client_free(c);
	client_free(b);
	rig_free(r);
}

static void
more_refused_connections_than_that_are_just_closed(void **state)
{
	struct http_limits l = quick_limits();
	struct client *c[80];
	struct http_counters n;
	struct rig *r;

	(void)state;
	l.max_conns = 1;
	r = rig_new(&l);
	for (int i = 0; i < 80; i++)
		c[i] = client_new(r);
	RIG_WAIT(r, c[79]->eof != 0);
	assert_int_equal(c[79]->got.len, 0);
	client_expect(c[10], 503, "overloaded");
	http_server_counters(r->srv, &n);
	assert_int_equal(n.overloaded, 79);
	for (int i = 0; i < 80; i++)
		client_free(c[i]);
	rig_settle(r);
	http_server_counters(r->srv, &n);
	assert_int_equal(n.open, 0);
	assert_int_equal(n.in_flight, 0);
	rig_free(r);
}

static void
a_slow_reader_slows_only_itself_and_memory_stays_bounded(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *slow = client_new(r), *other = client_new(r);
	const struct reply *p;

	(void)state;
	client_read(slow, 0);
	r->stream_left = 3 * 1000 * 1000;
	client_send(slow, GET("/pour"));
	RIG_WAIT(r, r->held != NULL);
	rig_settle(r);
	for (int i = 0; i < 50; i++) {
		client_send(other, GET("/ok"));
		client_expect(other, 200, "ok");
	}
	assert_non_null(r->held);
	assert_true(http_stream_unsent(r->held) > 0);
	client_read(slow, 1);
	p = client_reply(slow);
	assert_int_equal(p->body_len, 3000000);
	assert_true(p->complete);
	assert_true(r->stream_most <= 4096 + 1000 + 32);
	client_send(slow, GET("/ok"));
	client_expect(slow, 200, "ok");
	client_free(slow);
	client_free(other);
	rig_free(r);
}

static void
a_broken_stream_has_no_final_chunk(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	client_send(c, GET("/stream"));
	RIG_WAIT(r, r->held != NULL);
	assert_int_equal(http_stream_write(r->held, "part", 4), 0);
	RIG_WAIT(r, c->got.len > 0 && memmem(c->got.data, c->got.len, "part", 4) != NULL);
	http_stream_break(r->held);
	RIG_WAIT(r, c->eof);
	p = client_reply(c);
	assert_false(p->complete);
	assert_string_equal(r->ended[0], "200 1");
	client_free(c);
	rig_free(r);
}

static int
listen_loopback(struct sockaddr_in *sin)
{
	socklen_t len = sizeof(*sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)sin, len), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)sin, &len), 0);
	return fd;
}

static struct client *
client_connect(struct rig *r, const struct sockaddr_in *sin)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
	    connect(fd, (const struct sockaddr *)(const void *)sin, sizeof(*sin)), 0);
	return client_new_fd(r, fd);
}

static void
a_stream_to_http_1_0_ends_with_the_connection_and_breaks_with_a_reset(void **state)
{
	struct sockaddr_in sin;
	struct rig *r = rig_new(NULL);
	int lfd = listen_loopback(&sin);
	const struct reply *p;
	struct client *c;

	(void)state;
	assert_int_equal(http_server_listen(r->srv, lfd), 0);
	assert_int_equal(http_server_listen(r->srv, STDIN_FILENO), E_INVAL);
	c = client_connect(r, &sin);
	client_send(c, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	RIG_WAIT(r, r->held != NULL);
	assert_string_equal(http_req_client(r->held), "127.0.0.1");
	assert_true(http_req_client_is_local(r->held));
	assert_int_equal(http_stream_write(r->held, "abc", 3), 0);
	http_stream_end(r->held);
	RIG_WAIT(r, c->eof);
	assert_int_equal(c->eof, 1);
	p = client_reply(c);
	assert_null(reply_header(p, "Transfer-Encoding"));
	assert_string_equal(p->body, "abc");
	client_free(c);

	c = client_connect(r, &sin);
	client_send(c, "GET /stream HTTP/1.0\r\n\r\n");
	RIG_WAIT(r, r->held != NULL);
	http_stream_break(r->held);
	RIG_WAIT(r, c->eof);
	assert_int_equal(c->eof, -1);
	client_free(c);
	rig_free(r);
	close(lfd);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(int *)arg = 1;
}

/* With nothing to do the loop sleeps: few turns until a timer that is not the server's. */
static void
assert_no_spinning(struct rig *r)
{
	struct timeval tv = { 0, 20000 };
	struct event tick;
	int fired = 0, turns;

	rig_settle(r);
	evtimer_assign(&tick, r->base, on_tick, &fired);
	evtimer_add(&tick, &tv);
	for (turns = 0; !fired && turns < 1000; turns++)
		event_base_loop(r->base, EVLOOP_ONCE);
	event_del(&tick);
	assert_true(turns < 10);
}

static void
a_client_that_goes_in_the_middle_of_a_head_leaves_nothing(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	struct http_counters n;

	(void)state;
	client_send(c, "GET / HTTP/1.1\r\nHost");
	rig_settle(r);
	client_free(c);
	rig_settle(r);
	http_server_counters(r->srv, &n);
	assert_int_equal(n.open, 0);
	assert_int_equal(n.in_flight, 0);
	assert_int_equal(n.cut, 0);
	assert_int_equal(r->nended, 0);
	rig_free(r);
}

static void
a_client_that_resets_is_noticed_and_costs_no_spinning(void **state)
{
	struct sockaddr_in sin;
	struct rig *r = rig_new(NULL);
	struct linger rst = { 1, 0 };
	int lfd = listen_loopback(&sin);
	struct client *c;

	(void)state;
	assert_int_equal(http_server_listen(r->srv, lfd), 0);
	c = client_connect(r, &sin);
	client_send(c, GET("/later") "unread bytes");
	RIG_WAIT(r, r->held != NULL);
	assert_no_spinning(r);
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst));
	client_free(c);
	RIG_WAIT(r, r->ngone == 1);
	assert_true(http_req_is_gone(r->held));
	assert_no_spinning(r);
	/* The answer goes nowhere, and on_end is still told. */
	http_answer(r->held, 200, "late", 4);
	RIG_WAIT(r, r->nended == 1);
	assert_string_equal(r->ended[0], "200 1");
	rig_free(r);
	close(lfd);
}

static void
a_client_that_closes_one_direction_is_told_of_and_still_answered(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	client_send(c, GET("/later") GET("/ok"));
	shutdown(c->fd, SHUT_WR);
	RIG_WAIT(r, r->ngone == 1);
	assert_false(http_req_is_gone(r->held));
	assert_no_spinning(r);
	http_answer(r->held, 200, "half", 4);
	client_expect(c, 200, "half");
	client_expect(c, 200, "ok");
	client_expect_end(c);
	client_free(c);
	rig_free(r);
}

static void
a_client_that_goes_in_the_middle_of_a_body_ends_the_request(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	client_send(c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nabc");
	RIG_WAIT(r, r->nrequests == 1);
	client_free(c);
	RIG_WAIT(r, r->nended == 1);
	assert_int_equal(r->body_err, E_EOF);
	assert_string_equal(r->ended[0], "0 1");
	rig_free(r);
}

static void
a_request_outlives_its_connection_and_its_server(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	struct http_req *held;

	(void)state;
	client_send(c, GET("/later"));
	RIG_WAIT(r, r->held != NULL);
	held = r->held;
	r->srv = http_server_free(r->srv);
	assert_int_equal(r->ngone, 1);
	assert_true(http_req_is_gone(held));
	assert_string_equal(http_req_path(held), "/later");
	assert_string_equal(http_req_client(held), "unix");
	http_answer_add(held, "X", "y");
	http_stream_begin(held, 200);
	assert_int_equal(http_stream_write(held, "x", 1), E_LINK);
	http_stream_end(held);
	client_free(c);
	rig_free(r);
}

static void
a_request_can_be_abandoned_before_any_answer(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);

	(void)state;
	client_send(c, GET("/later"));
	RIG_WAIT(r, r->held != NULL);
	http_req_abandon(r->held);
	client_expect_end(c);
	assert_string_equal(r->ended[0], "0 1");
	client_free(c);
	rig_free(r);
}

static void
a_connection_can_be_taken_over_both_ways(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	const struct reply *p;

	(void)state;
	client_send(c, GET("/raw") "left over");
	p = client_reply(c);
	assert_int_equal(p->status, 101);
	assert_string_equal(reply_header(p, "Upgrade"), "raw");
	assert_null(reply_header(p, "Date"));
	RIG_WAIT(r, r->raw.len == 9);
	client_send(c, " and more");
	RIG_WAIT(r, r->raw.len == 18);
	assert_memory_equal(r->raw.data, "left over and more", 18);
	assert_int_equal(http_stream_write(r->held, "\x81\x00", 2), 0);
	RIG_WAIT(r, c->got.len - c->at == 2);
	assert_memory_equal(c->got.data + c->at, "\x81\x00", 2);
	c->at += 2;
	shutdown(c->fd, SHUT_WR);
	RIG_WAIT(r, r->raw_ended == 1);
	assert_no_spinning(r);
	assert_int_equal(http_stream_write(r->held, "bye", 3), 0);
	http_stream_end(r->held);
	RIG_WAIT(r, c->eof);
	assert_memory_equal(c->got.data + c->at, "bye", 3);
	assert_string_equal(r->ended[0], "101 0");
	client_free(c);

	/* Lost instead of closed. */
	c = client_new(r);
	client_send(c, GET("/raw"));
	client_expect(c, 101, NULL);
	client_free(c);
	RIG_WAIT(r, r->raw_ended == 2);
	http_stream_break(r->held);
	RIG_WAIT(r, r->nended == 2);
	rig_free(r);
}

static void
on_stopped(void *arg, struct http_server *s)
{
	struct rig *r = arg;

	(void)s;
	r->nstopped++;
	r->srv = http_server_free(r->srv);
}

static void
stopping_waits_for_what_is_in_flight(void **state)
{
	struct sockaddr_in sin;
	struct rig *r = rig_new(NULL);
	int lfd = listen_loopback(&sin);
	struct client *idle = client_new(r), *used = client_new(r), *busy = client_new(r);
	const struct reply *p;

	(void)state;
	assert_int_equal(http_server_listen(r->srv, lfd), 0);
	client_send(used, GET("/ok"));
	client_expect(used, 200, "ok");
	client_send(busy, GET("/later") GET("/never"));
	RIG_WAIT(r, r->held != NULL);
	http_server_stop(r->srv, on_stopped, r);
	http_server_stop(r->srv, on_stopped, r);
	assert_int_equal(r->nstopped, 0);
	client_expect_end(idle);
	client_expect_end(used);
	rig_settle(r);
	assert_int_equal(r->nstopped, 0);
	http_answer(r->held, 200, "last", 4);
	p = client_reply(busy);
	assert_string_equal(p->body, "last");
	assert_string_equal(reply_header(p, "Connection"), "close");
	client_free(busy);
	RIG_WAIT(r, r->nstopped == 1);
	assert_int_equal(r->nrequests, 2);
	client_free(idle);
	client_free(used);
	rig_free(r);
	close(lfd);
}

static void
stopping_an_idle_server_is_told_from_the_loop(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	http_server_stop(r->srv, on_stopped, r);
	assert_int_equal(r->nstopped, 0);
	RIG_WAIT(r, r->nstopped == 1);
	rig_free(r);
}

static void
counters_tell_what_happened(void **state)
{
	struct rig *r = rig_new(NULL);
	struct client *c = client_new(r);
	struct http_counters n;

	(void)state;
	client_send(c, GET("/ok") GET("/204") GET("/later"));
	client_expect(c, 200, "ok");
	client_expect(c, 204, "");
	RIG_WAIT(r, r->held != NULL);
	http_server_counters(r->srv, &n);
	assert_int_equal(n.accepted, 1);
	assert_int_equal(n.open, 1);
	assert_int_equal(n.in_flight, 1);
	assert_int_equal(n.requests, 3);
	assert_int_equal(n.answers[2], 2);
	assert_int_equal(n.bytes_in, strlen(GET("/ok") GET("/204") GET("/later")));
	assert_int_equal(n.bytes_out, c->got.len);
	client_free(c);
	RIG_WAIT(r, r->ngone == 1);
	http_req_abandon(r->held);
	RIG_WAIT(r, r->nended == 3);
	http_server_counters(r->srv, &n);
	assert_int_equal(n.open, 0);
	assert_int_equal(n.in_flight, 0);
	assert_int_equal(n.cut, 1);
	rig_free(r);
}

/* One of everything; with a failed allocation it may end early, but it ends. */
static void
exchange(struct rig *r)
{
	static const char input[] =
	    "GET /ok HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n"
	    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
	    "hello" GET("/pour") GET("/later");
	int sv[2];
	struct client *c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	c = client_new_fd(r, sv[1]);
	r->stream_left = 5000;
	(void)buf_reserve(&c->got, 65536);
	if (http_server_serve_take(r->srv, sv[0]) == 0) {
		client_send_n(c, input, sizeof(input) - 1, 50);
		RIG_WAIT(r, c->eof || r->held != NULL);
	}
	if (r->held != NULL)
		http_answer(r->held, 200, "end", 3);
	r->held = NULL;
	rig_settle(r);
	client_free(c);
	rig_settle(r);
}

static void
every_failed_allocation_ends_in_an_answer_or_a_closed_connection(void **state)
{
	struct rig *r = rig_new(NULL);
	struct http_counters count;
	long n, hits = 0;

	(void)state;
	for (n = 1;; n++) { /* the first is the test's own buffer */
		mem_fault_arm(n);
		exchange(r);
		hits += mem_fault_hit();
		if (!mem_fault_hit())
			break;
	}
	mem_fault_arm(-1);
	assert_true(hits > 10);
	http_server_counters(r->srv, &count);
	assert_int_equal(count.open, 0);
	assert_int_equal(count.in_flight, 0);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_head_gets_408),
		cmocka_unit_test(a_stalled_or_endless_body_gets_408),
		cmocka_unit_test(an_idle_connection_is_closed_without_words),
		cmocka_unit_test(a_client_that_takes_nothing_is_cut_off_in_the_end),
		cmocka_unit_test(one_connection_too_many_gets_503),
		cmocka_unit_test(more_refused_connections_than_that_are_just_closed),
		cmocka_unit_test(a_slow_reader_slows_only_itself_and_memory_stays_bounded),
		cmocka_unit_test(a_broken_stream_has_no_final_chunk),
		cmocka_unit_test(
		    a_stream_to_http_1_0_ends_with_the_connection_and_breaks_with_a_reset),
		cmocka_unit_test(a_client_that_goes_in_the_middle_of_a_head_leaves_nothing),
		cmocka_unit_test(a_client_that_resets_is_noticed_and_costs_no_spinning),
		cmocka_unit_test(
		    a_client_that_closes_one_direction_is_told_of_and_still_answered),
		cmocka_unit_test(a_client_that_goes_in_the_middle_of_a_body_ends_the_request),
		cmocka_unit_test(a_request_outlives_its_connection_and_its_server),
		cmocka_unit_test(a_request_can_be_abandoned_before_any_answer),
		cmocka_unit_test(a_connection_can_be_taken_over_both_ways),
		cmocka_unit_test(stopping_waits_for_what_is_in_flight),
		cmocka_unit_test(stopping_an_idle_server_is_told_from_the_loop),
		cmocka_unit_test(counters_tell_what_happened),
		cmocka_unit_test(
		    every_failed_allocation_ends_in_an_answer_or_a_closed_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
