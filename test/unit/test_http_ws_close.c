/* How WebSockets end: by either side, in order or not, and with memory failing. */
#include "test/support/ws_rig.h"

#define MASK 0x5ac3f017

/* ---- by the client ---- */

static void
a_close_is_echoed_and_the_connection_ends(void **state)
{
	static const struct {
		const char *payload;
		int code, told;
		const char *reason;
	} cases[] = {
		{ "", 0, WS_CLOSE_NONE, "" },
		{ "\x03\xe8", 1000, 1000, "" },
		{ "\x03\xe9tab closed", 1001, 1001, "tab closed" },
		{ "\x0f\xa0gr\xc3\xbc\xc3\x9f", 4000, 4000, "gr\xc3\xbc\xc3\x9f" },
	};
	static const size_t steps[] = { 1, 3, SIZE_MAX };
	struct rig *r = rig_new(NULL);
	struct buf b = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases) * ARRAY_LEN(steps); i++) {
		struct desk *d = desk_new(r, NULL);
		size_t k = i / ARRAY_LEN(steps);

		ws_put_text(&b, WS_CLOSE, cases[k].payload);
		ws_put_text(&b, WS_TEXT, "never read");
		desk_send(d, &b, steps[i % ARRAY_LEN(steps)]);
		desk_expect_close(d, cases[k].code, cases[k].reason);
		shutdown(d->client->fd, SHUT_WR);
		desk_expect_end(d, cases[k].told);
		assert_int_equal(d->texts.len, 0);
		desk_free(d);
	}
	buf_done(&b);
	rig_free(r);
}

static void
what_breaks_the_protocol_gets_its_code_and_ends(void **state)
{
	static const struct {
		int code, first;
		const char *payload;
		size_t n;
		uint32_t mask;
	} cases[] = {
		{ 1002, WS_TEXT, "ping", 4, 0 },
		{ 1002, WS_TEXT | 0x40, "ping", 4, MASK },
		{ 1002, WS_FIN | 3, "", 0, MASK },
		{ 1002, 9, "", 0, MASK },
		{ 1002, WS_FIN, "more", 4, MASK },
		{ 1002, WS_CLOSE, "\x03", 1, MASK },
		{ 1002, WS_CLOSE, "\x03\xed", 2, MASK }, /* 1005 */
		{ 1002, WS_CLOSE, "\x03\xee", 2, MASK }, /* 1006 */
		{ 1007, WS_TEXT, "\xc3", 1, MASK },
		{ 1007, WS_CLOSE, "\x03\xe8\xff", 3, MASK },
	};
	struct rig *r = rig_new(NULL);
	struct buf b = BUF_INIT;

	(void)state;
	for (size_t i = 0; i <= ARRAY_LEN(cases); i++) {
		struct desk *d = desk_new(r, NULL);
		int code = i < ARRAY_LEN(cases) ? cases[i].code : 1009;

		ws_put_text(&b, WS_TEXT, "good");
		if (i < ARRAY_LEN(cases))
			ws_put(&b, cases[i].first, cases[i].payload, cases[i].n, cases[i].mask);
		else
			ws_put_head(&b, WS_TEXT, 4097, 2, MASK);
		ws_put_text(&b, WS_TEXT, "never read");
		desk_send(d, &b, i % 2 == 0 ? 1 : SIZE_MAX);
		desk_expect_close(d, code, "");
		shutdown(d->client->fd, SHUT_WR);
		desk_expect_end(d, code);
		assert_string_equal(buf_cstr(&d->texts), "[good]");
		desk_free(d);
	}
	buf_done(&b);
	rig_free(r);
}

static void
a_client_that_leaves_without_a_word_is_noticed_once(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);

	(void)state;
	shutdown(d->client->fd, SHUT_WR);
	RIG_WAIT(r, d->ngone == 1);
	assert_int_equal(d->code, WS_CLOSE_LOST);
	RIG_WAIT(r, d->client->eof);
	rig_settle(r);
	assert_int_equal(d->ngone, 1);
	desk_free(d);

	/* With something unsent. */
	d = desk_new(r, NULL);
	client_read(d->client, 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ws_send_text(d->ws, "0123456789", 10), 0);
	ws_want(d->ws, 0, desk_on_room, d);
	close(d->client->fd);
	d->client->fd = -1;
	RIG_WAIT(r, d->ngone == 1);
	assert_int_equal(d->nroom, 0);
	desk_free(d);
	rig_free(r);
}

/* ---- by us ---- */

static void
our_close_waits_for_the_client(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);

	(void)state;
	assert_int_equal(ws_send_text(d->ws, "last", 4), 0);
	ws_want(d->ws, 0, desk_on_room, d);
	ws_close(d->ws, WS_CLOSE_NORMAL, "run_finished");
	ws_close(d->ws, WS_CLOSE_INTERNAL, "does nothing");
	ws_close_now(d->ws, WS_CLOSE_INTERNAL, "nor this");
	assert_int_equal(ws_send_text(d->ws, "late", 4), E_LINK);
	ws_want(d->ws, 0, desk_on_room, d);
	desk_expect(d, WS_TEXT, "last");
	desk_expect_close(d, 1000, "run_finished");
	/* What was under way is of no interest any more. */
	desk_send_text(d, WS_TEXT, "ping");
	desk_send_text(d, WS_PING, "?");
	rig_settle(r);
	assert_int_equal(d->client->eof, 0);
	assert_int_equal(d->ngone, 0);
	desk_send_text(d, WS_CLOSE, "\x03\xe8");
	shutdown(d->client->fd, SHUT_WR);
	desk_expect_end(d, 1000);
	assert_int_equal(d->texts.len, 0);
	assert_int_equal(d->nroom, 0);
	assert_string_equal(r->ended[0], "101 0");
	desk_free(d);
	rig_free(r);
}

static void
a_client_that_does_not_answer_our_close_is_left(void **state)
{
	struct ws_limits l = desk_patient();
	struct rig *r = rig_new(NULL);
	struct desk *d;

	(void)state;
	l.close_ms = 30;
	d = desk_new(r, &l);
	ws_close(d->ws, WS_CLOSE_POLICY, "user_disabled");
	desk_expect_close(d, 1008, "user_disabled");
	desk_expect_end(d, 1008);
	desk_free(d);

	/* Nor does nonsense keep it open. */
	d = desk_new(r, NULL);
	ws_close(d->ws, WS_CLOSE_GOING_AWAY, "restarting");
	desk_expect_close(d, 1001, "restarting");
	desk_send_text(d, 3, "");
	desk_expect_end(d, 1001);
	desk_free(d);

	/* Nor one that hangs up instead. */
	d = desk_new(r, NULL);
	ws_close(d->ws, WS_CLOSE_GOING_AWAY, "restarting");
	desk_expect_close(d, 1001, "restarting");
	shutdown(d->client->fd, SHUT_WR);
	desk_expect_end(d, 1001);
	desk_free(d);
	rig_free(r);
}

/* Makes ${n} bytes unsent.  Number of frames that were sent. */
static int
stuff(struct desk *d, size_t n)
{
	char text[1000];
	int nframes = 0;

	client_read(d->client, 0);
	memset(text, 's', sizeof(text));
	for (; ws_unsent(d->ws) < n; nframes++) {
		assert_int_equal(ws_send_text(d->ws, text, sizeof(text)), 0);
		rig_settle(d->rig);
	}
	return nframes;
}

/* Reads up to the close frame.  Number of frames before it, each whole. */
static int
unstuff(struct desk *d, int code, const char *reason)
{
	const struct frame *f;
	int nframes = 0;

	client_read(d->client, 1);
	while ((f = desk_frame(d))->first == WS_TEXT) {
		assert_int_equal(f->len, 1000);
		nframes++;
	}
	assert_int_equal(f->first, WS_CLOSE);
	assert_int_equal(f->data[0] << 8 | f->data[1], code);
	assert_string_equal((const char *)f->data + 2, reason);
	return nframes;
}

static void
a_close_goes_behind_what_is_unsent_or_instead_of_it(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	for (int now = 0; now <= 1; now++) {
		struct desk *d = desk_new(r, NULL);
		int nframes = stuff(d, 300000), got;

		if (now)
			ws_close_now(d->ws, WS_CLOSE_TRY_LATER, "slow_consumer");
		else
			ws_close(d->ws, WS_CLOSE_NORMAL, "run_finished");
		assert_true(now ? ws_unsent(d->ws) < 2000 : ws_unsent(d->ws) > 300000);
		got = unstuff(d, now ? 1013 : 1000, now ? "slow_consumer" : "run_finished");
		assert_true(now ? got <= nframes - 297 : got == nframes);
		desk_send_text(d, WS_CLOSE, "");
		shutdown(d->client->fd, SHUT_WR);
		desk_expect_end(d, now ? 1013 : 1000);
		desk_free(d);
	}
	rig_free(r);
}

static void
a_client_that_leaves_or_errs_need_not_read_what_is_unsent(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	for (int errs = 0; errs <= 1; errs++) {
		struct desk *d = desk_new(r, NULL);
		int nframes = stuff(d, 300000);

		desk_send_text(d, WS_CLOSE, errs ? "\x03" : "\x03\xe9");
		RIG_WAIT(r, d->ngone == 1);
		assert_true(unstuff(d, errs ? 1002 : 1001, "") <= nframes - 297);
		shutdown(d->client->fd, SHUT_WR);
		desk_expect_end(d, errs ? 1002 : 1001);
		desk_free(d);
	}
	rig_free(r);
}

static void
a_client_that_takes_nothing_does_not_hold_up_the_end(void **state)
{
	struct ws_limits l = desk_patient();
	struct rig *r = rig_new(NULL);
	struct desk *d;
	char *text = calloc(1, 1000000);

	(void)state;
	l.silence_ms = 1000;
	d = desk_new(r, &l);
	client_read(d->client, 0);
	memset(text, 's', 1000000);
	assert_int_equal(ws_send_text(d->ws, text, 1000000), 0);
	free(text);
	ws_close(d->ws, WS_CLOSE_NORMAL, "run_finished");
	RIG_WAIT(r, d->ngone == 1);
	assert_int_equal(d->code, 1000);
	assert_string_equal(r->ended[0], "101 1");
	desk_free(d);
	rig_free(r);
}

static void
a_reason_is_cut_off_between_two_characters(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	char reason[200];

	(void)state;
	memset(reason, 'r', sizeof(reason));
	memcpy(reason + 122, "\xc3\xbc", 3);
	ws_close(d->ws, WS_CLOSE_INTERNAL, reason);
	reason[122] = '\0';
	desk_expect_close(d, 1011, reason);
	desk_free(d);
	rig_free(r);
}

static void
an_owner_that_drops_it_hears_no_more(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	struct buf b = BUF_INIT;

	(void)state;
	ws_drop(d->ws);
	d->ws = NULL;
	RIG_WAIT(r, d->client->eof);
	rig_settle(r);
	assert_int_equal(d->ngone, 0);
	desk_free(d);

	/* From inside a callback, with more to come in the same piece. */
	d = desk_new(r, NULL);
	d->drop_on_text = 1;
	ws_put_text(&b, WS_TEXT, "one");
	ws_put_text(&b, WS_TEXT, "two");
	desk_send(d, &b, SIZE_MAX);
	RIG_WAIT(r, d->client->eof);
	rig_settle(r);
	assert_string_equal(buf_cstr(&d->texts), "[one]");
	assert_int_equal(d->ngone, 0);
	desk_free(d);

	/* Closing from inside. */
	d = desk_new(r, NULL);
	d->close_on_text = 1;
	ws_put_text(&b, WS_TEXT, "one");
	ws_put_text(&b, WS_TEXT, "two");
	ws_put_text(&b, WS_CLOSE, "");
	desk_send(d, &b, SIZE_MAX);
	desk_expect_close(d, 1000, "enough");
	shutdown(d->client->fd, SHUT_WR);
	desk_expect_end(d, 1000);
	assert_string_equal(buf_cstr(&d->texts), "[one]");
	desk_free(d);
	buf_done(&b);
	rig_free(r);
}

/* ---- the server ---- */

static void
on_stopped(void *arg, struct http_server *s)
{
	struct rig *r = arg;

	(void)s;
	r->nstopped++;
}

static void
a_server_that_stops_waits_for_its_sockets_to_be_closed(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);

	(void)state;
	http_server_stop(r->srv, on_stopped, r);
	rig_settle(r);
	assert_int_equal(r->nstopped, 0);
	ws_close_now(d->ws, WS_CLOSE_GOING_AWAY, "restarting");
	desk_expect_close(d, 1001, "restarting");
	desk_send_text(d, WS_CLOSE, "\x03\xe9");
	shutdown(d->client->fd, SHUT_WR);
	desk_expect_end(d, 1001);
	RIG_WAIT(r, r->nstopped == 1);
	desk_free(d);
	rig_free(r);
}

static void
a_server_that_is_freed_tells_every_owner(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *open = desk_new(r, NULL), *closing = desk_new(r, NULL);
	struct desk *late = desk_ask(r);
	struct http_req *held = r->held;

	(void)state;
	ws_close(closing->ws, WS_CLOSE_NORMAL, "");
	r->srv = http_server_free(r->srv);
	assert_int_equal(open->ngone, 1);
	assert_int_equal(open->code, WS_CLOSE_LOST);
	assert_int_equal(closing->ngone, 1);
	assert_int_equal(closing->code, 1000);
	/* A request that outlives it cannot be accepted, and still has to be answered. */
	r->held = held;
	assert_null(desk_accept(late, NULL));
	http_answer(held, 503, NULL, 0);
	desk_free(open);
	desk_free(closing);
	desk_free(late);
	rig_free(r);
}

static void
a_client_that_has_left_before_it_was_accepted_is_told_of_afterwards(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_ask(r);

	(void)state;
	shutdown(d->client->fd, SHUT_WR);
	RIG_WAIT(r, r->ngone == 1);
	assert_non_null(desk_accept(d, NULL));
	assert_int_equal(d->ngone, 0);
	RIG_WAIT(r, d->ngone == 1);
	assert_int_equal(d->code, WS_CLOSE_LOST);
	assert_int_equal(r->ngone, 1);
	desk_free(d);
	rig_free(r);
}

/* ---- want of memory ---- */

/* A conversation with one of everything, as far as it goes; then everybody leaves. */
static void
converse(struct desk *d, struct buf *b)
{
	struct rig *r = d->rig;
	int was_accepted;

	desk_request(d);
	was_accepted = r->held != NULL && desk_accept(d, NULL) != NULL;
	if (r->held != NULL && !was_accepted)
		http_answer(r->held, 503, NULL, 0);
	d->answer = 1;
	desk_send(d, b, SIZE_MAX);
	rig_settle(r);
	if (d->ws != NULL)
		(void)ws_send_text(d->ws, "text", 4);
	if (d->ws != NULL)
		ws_close(d->ws, WS_CLOSE_NORMAL, "end");
	rig_settle(r);
	desk_send_text(d, WS_CLOSE, "");
	rig_settle(r);
	shutdown(d->client->fd, SHUT_RDWR);
	rig_settle(r);
	assert_int_equal(d->ngone, was_accepted);
	assert_null(d->ws);
}

static void
every_failed_allocation_ends_in_an_answer_or_in_on_gone(void **state)
{
	struct rig *r = rig_new(NULL);
	struct http_counters count;
	struct buf b = BUF_INIT;
	long n, hits = 0;
	int hit = 1;

	(void)state;
	for (n = 0; hit; n++) {
		struct desk *d = desk_connect(r);

		ws_put_text(&b, WS_TEXT, "ping");
		ws_put_text(&b, WS_PING, "abc");
		mem_fault_arm(n);
		converse(d, &b);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		hits += hit;
		desk_free(d);
	}
	assert_true(hits > 8);
	http_server_counters(r->srv, &count);
	assert_int_equal(count.open, 0);
	assert_int_equal(count.in_flight, 0);
	buf_done(&b);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_close_is_echoed_and_the_connection_ends),
		cmocka_unit_test(what_breaks_the_protocol_gets_its_code_and_ends),
		cmocka_unit_test(a_client_that_leaves_without_a_word_is_noticed_once),
		cmocka_unit_test(our_close_waits_for_the_client),
		cmocka_unit_test(a_client_that_does_not_answer_our_close_is_left),
		cmocka_unit_test(a_close_goes_behind_what_is_unsent_or_instead_of_it),
		cmocka_unit_test(a_client_that_leaves_or_errs_need_not_read_what_is_unsent),
		cmocka_unit_test(a_client_that_takes_nothing_does_not_hold_up_the_end),
		cmocka_unit_test(a_reason_is_cut_off_between_two_characters),
		cmocka_unit_test(an_owner_that_drops_it_hears_no_more),
		cmocka_unit_test(a_server_that_stops_waits_for_its_sockets_to_be_closed),
		cmocka_unit_test(a_server_that_is_freed_tells_every_owner),
		cmocka_unit_test(
		    a_client_that_has_left_before_it_was_accepted_is_told_of_afterwards),
		cmocka_unit_test(every_failed_allocation_ends_in_an_answer_or_in_on_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
