/* WebSockets that are open: what goes out, what comes in, pings, pace. */
#include "lib/base/clock.h"
#include "test/support/ws_rig.h"

static void
the_answer_is_101_with_nothing_but_its_own_headers(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_ask(r);
	const struct reply *p;
	char wanted[512];

	(void)state;
	http_answer_add(r->held, "X-Meant-For", "another answer");
	snprintf(wanted, sizeof(wanted),
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-Request-Id: %s\r\n\r\n",
	    http_req_id(r->held));
	assert_non_null(desk_accept(d, NULL));
	p = client_reply(d->client);
	assert_string_equal(p->head, wanted);
	desk_free(d);
	assert_string_equal(r->ended[0], "101 1");
	rig_free(r);
}

static void
text_of_any_length_is_one_frame(void **state)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 127, 65535, 65536, 200000 };
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	char *text = malloc(200000);

	(void)state;
	for (size_t i = 0; i < 200000; i++)
		text[i] = (char)('a' + i % 26);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const struct frame *f;

		assert_int_equal(ws_send_text(d->ws, text, sizes[i]), 0);
		f = desk_frame(d);
		assert_int_equal(f->first, WS_TEXT);
		assert_int_equal(f->len, sizes[i]);
		assert_memory_equal(f->data, text, sizes[i]);
	}
	free(text);
	desk_free(d);
	rig_free(r);
}

static void
a_frame_made_once_goes_to_any_number_of_clients(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d[5];
	struct http_blob *one = ws_frame_text("one", 3), *two;
	char *big = calloc(1, 100000);

	(void)state;
	memset(big, 'b', 99999);
	two = ws_frame_text(big, 99999);
	assert_int_equal(http_blob_len(one), 2 + 3);
	assert_int_equal(http_blob_len(two), 10 + 99999);
	for (size_t i = 0; i < ARRAY_LEN(d); i++)
		d[i] = desk_new(r, NULL);
	for (size_t i = 0; i < ARRAY_LEN(d); i++) {
		assert_int_equal(ws_send_frame(d[i]->ws, one), 0);
		assert_int_equal(ws_send_frame(d[i]->ws, two), 0);
		assert_int_equal(ws_send_text(d[i]->ws, "own", 3), 0);
		assert_int_equal(ws_send_frame(d[i]->ws, one), 0);
		assert_int_equal(ws_unsent(d[i]->ws), 5 + 10 + 99999 + 5 + 5);
	}
	http_blob_unref(one);
	http_blob_unref(two);
	for (size_t i = 0; i < ARRAY_LEN(d); i++) {
		desk_expect(d[i], WS_TEXT, "one");
		desk_expect(d[i], WS_TEXT, big);
		desk_expect(d[i], WS_TEXT, "own");
		desk_expect(d[i], WS_TEXT, "one");
		desk_free(d[i]);
	}
	free(big);
	rig_free(r);
}

static void
messages_reach_the_owner_in_any_pieces(void **state)
{
	static const size_t steps[] = { 1, 2, 3, 7, SIZE_MAX };
	struct rig *r = rig_new(NULL);
	struct buf b = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct desk *d = desk_new(r, NULL);

		d->answer = 1;
		ws_put_text(&b, WS_TEXT, "ping");
		ws_put_text(&b, 1, "in ");
		ws_put_text(&b, WS_PING, "between");
		ws_put_text(&b, WS_PONG, "noted");
		ws_put_text(&b, WS_FIN, "parts");
		ws_put_text(&b, WS_BIN, "ignored");
		ws_put_text(&b, WS_TEXT, "");
		desk_send(d, &b, steps[i]);
		desk_expect(d, WS_TEXT, "ping");
		desk_expect(d, WS_PONG, "between");
		desk_expect(d, WS_TEXT, "in parts");
		desk_expect(d, WS_TEXT, "");
		assert_string_equal(buf_cstr(&d->texts), "[ping][in parts][]");
		desk_free(d);
	}
	buf_done(&b);
	rig_free(r);
}

static void
frames_behind_the_request_are_not_lost(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_ask(r);

	(void)state;
	desk_send_text(d, WS_TEXT, "early");
	rig_settle(r);
	assert_non_null(desk_accept(d, NULL));
	client_expect(d->client, 101, NULL);
	RIG_WAIT(r, d->texts.len > 0);
	assert_string_equal(buf_cstr(&d->texts), "[early]");
	desk_free(d);
	rig_free(r);
}

static void
each_of_some_pings_is_answered_in_order(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	struct buf b = BUF_INIT;
	char text[126] = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "payload %d", i);
		ws_put_text(&b, WS_PING, text);
	}
	memset(text, 'p', 125);
	desk_send(d, &b, SIZE_MAX);
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "payload %d", i);
		desk_expect(d, WS_PONG, text);
	}
	memset(text, 'p', 125);
	desk_send_text(d, WS_PING, text);
	desk_expect(d, WS_PONG, text);
	desk_send_text(d, WS_PING, "");
	desk_expect(d, WS_PONG, "");
	buf_done(&b);
	desk_free(d);
	rig_free(r);
}

/* Fills what the kernel holds for a client that does not read, and then some. */
static void
stuff(struct desk *d, size_t unsent)
{
	char text[1000];

	client_read(d->client, 0);
	memset(text, 's', sizeof(text));
	while (ws_unsent(d->ws) < unsent) {
		assert_int_equal(ws_send_text(d->ws, text, sizeof(text)), 0);
		rig_settle(d->rig);
	}
}

static void
a_flood_of_pings_queues_little_and_the_last_one_is_answered(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	const struct frame *f;
	struct buf b = BUF_INIT;
	size_t before;
	char text[126];
	int pongs = 0;

	(void)state;
	stuff(d, 5000);
	before = ws_unsent(d->ws);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "%0120d", i);
		ws_put_text(&b, WS_PING, text);
		if (i % 100 == 99)
			desk_send(d, &b, SIZE_MAX);
	}
	RIG_WAIT(r, (rig_settle(r), ws_unsent(d->ws) > before));
	desk_send_text(d, WS_TEXT, "still listening");
	RIG_WAIT(r, d->texts.len > 0);
	assert_true(ws_unsent(d->ws) <= before + 2048);
	/* More text does not let more pongs in. */
	assert_int_equal(ws_send_text(d->ws, "x", 1), 0);
	assert_true(ws_unsent(d->ws) <= before + 2048 + 3);
	client_read(d->client, 1);
	do {
		f = desk_frame(d);
		pongs += f->first == WS_PONG;
	} while (f->first != WS_PONG || strcmp((const char *)f->data, text) != 0);
	assert_in_range(pongs, 2, 100);
	/* And so it goes on. */
	desk_send_text(d, WS_PING, "again");
	desk_expect(d, WS_PONG, "again");
	buf_done(&b);
	desk_free(d);
	rig_free(r);
}

static void
a_pong_is_not_starved_by_a_writer_that_fills_up(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);
	struct buf b = BUF_INIT;
	const struct frame *f;
	int pongs = 0;

	(void)state;
	stuff(d, 5000);
	for (int i = 0; i < 2000; i++)
		ws_put_text(&b, WS_PING, "ping");
	ws_put_text(&b, WS_PING, "the last");
	ws_put_text(&b, WS_TEXT, "seen");
	desk_send(d, &b, SIZE_MAX);
	RIG_WAIT(r, d->texts.len > 0);
	client_read(d->client, 1);
	/* Whatever leaves is made up for at once: the queue is never short. */
	do {
		while (ws_unsent(d->ws) < 100000)
			assert_int_equal(ws_send_text(d->ws, "............", 12), 0);
		f = desk_frame(d);
		pongs += f->first == WS_PONG;
	} while (strcmp((const char *)f->data, "the last") != 0);
	assert_int_equal(f->first, WS_PONG);
	assert_true(pongs < 2000);
	buf_done(&b);
	desk_free(d);
	rig_free(r);
}

static void
a_writer_is_called_when_there_is_room(void **state)
{
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, NULL);

	(void)state;
	ws_want(d->ws, 0, desk_on_room, d);
	assert_int_equal(d->nroom, 0); /* not from inside the call */
	RIG_WAIT(r, d->nroom == 1);
	stuff(d, 50000);
	ws_want(d->ws, 20000, desk_on_room, d);
	rig_settle(r);
	assert_int_equal(d->nroom, 1);
	client_read(d->client, 1);
	RIG_WAIT(r, d->nroom == 2);
	assert_true(d->room_left <= 20000);
	/* The last wish counts, or none. */
	client_read(d->client, 0);
	stuff(d, 50000);
	ws_want(d->ws, 0, desk_on_room, d);
	ws_want(d->ws, 0, NULL, NULL);
	client_read(d->client, 1);
	RIG_WAIT(r, ws_unsent(d->ws) == 0);
	rig_settle(r);
	assert_int_equal(d->nroom, 2);
	desk_free(d);
	rig_free(r);
}

static void
pings_go_out_while_the_client_shows_signs_of_life(void **state)
{
	struct ws_limits l = { .ping_ms = 1, .silence_ms = 60000, .close_ms = 1000000 };
	struct rig *r = rig_new(NULL);
	struct desk *d;

	(void)state;
	clock_shift_for_test(0, 0);
	d = desk_new(r, &l);
	for (int i = 1; i <= 3; i++) {
		/* Nearly too late ... */
		clock_shift_for_test(0, i * 40000);
		d->client->at = d->client->got.len;
		for (int k = 0; k < 3; k++)
			desk_expect(d, WS_PING, "");
		/* ... and any frame will do. */
		desk_send_text(d, i == 1 ? WS_PONG : i == 2 ? WS_BIN : WS_TEXT, "");
		rig_settle(r);
		assert_int_equal(d->ngone, 0);
	}
	/* Half of a frame will not. */
	client_send(d->client, "\x89\x80");
	clock_shift_for_test(0, 3 * 40000 + 61000);
	RIG_WAIT(r, d->ngone == 1);
	assert_int_equal(d->code, WS_CLOSE_LOST);
	RIG_WAIT(r, d->client->eof);
	clock_shift_for_test(0, 0);
	desk_free(d);
	rig_free(r);
}

static void
pings_do_not_pile_up_for_a_client_that_does_not_read(void **state)
{
	struct ws_limits l = { .ping_ms = 1, .silence_ms = 1000000, .close_ms = 1000000 };
	struct rig *r = rig_new(NULL);
	struct desk *d = desk_new(r, &l);
	struct buf b = BUF_INIT;
	char text[126] = { 0 };
	size_t before;

	(void)state;
	stuff(d, 5000);
	before = ws_unsent(d->ws);
	/* The room is filled but for a few bytes, so that the end is soon reached. */
	memset(text, 'p', 125);
	for (int i = 0; i < 15; i++)
		ws_put_text(&b, WS_PING, text);
	desk_send(d, &b, SIZE_MAX);
	for (int i = 0; i < 200; i++)
		event_base_loop(r->base, EVLOOP_ONCE);
	assert_in_range(ws_unsent(d->ws), before + 1000, before + 2048);
	buf_done(&b);
	desk_free(d);
	rig_free(r);
}

/* ---- shared bytes on a plain stream ---- */

static void
a_blob_on_a_stream_is_one_chunk_for_each_reader(void **state)
{
	static const char *const heads[] = { "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /stream HTTP/1.1\r\nHost: b\r\n\r\n", "GET /stream HTTP/1.0\r\n\r\n" };
	struct rig *r = rig_new(NULL);
	struct http_blob *b = http_blob_new_copy("data: shared\n\n", 14);
	struct http_blob *none = http_blob_new_copy(NULL, 0);
	struct http_req *req[3];
	struct client *c[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		c[i] = client_new(r);
		r->held = NULL;
		client_send(c[i], heads[i]);
		RIG_WAIT(r, r->held != NULL);
		req[i] = r->held;
		assert_int_equal(http_stream_write_blob(req[i], b), 0);
		assert_int_equal(http_stream_write_blob(req[i], none), 0);
		assert_int_equal(http_stream_write(req[i], "data: own\n\n", 11), 0);
		for (int k = 0; k < 100; k++)
			assert_int_equal(http_stream_write_blob(req[i], b), 0);
		http_stream_end(req[i]);
	}
	http_blob_unref(b);
	http_blob_unref(none);
	for (size_t i = 0; i < 3; i++) {
		const struct reply *p;

		if (i == 2)
			RIG_WAIT(r, c[i]->eof);
		p = client_reply(c[i]);
		assert_true(p->complete);
		assert_int_equal(p->body_len, 101 * 14 + 11);
		assert_memory_equal(
		    p->body, "data: shared\n\ndata: own\n\ndata: shared\n\n", 39);
		client_free(c[i]);
	}
	rig_free(r);
}

static void
a_blob_vanishes_for_head_and_for_a_client_that_is_gone(void **state)
{
	struct rig *r = rig_new(NULL);
	struct http_blob *b = http_blob_new_copy("bytes", 5);
	struct client *c = client_new(r);

	(void)state;
	client_send(c, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	RIG_WAIT(r, r->held != NULL);
	assert_int_equal(http_stream_write_blob(r->held, b), 0);
	http_stream_end(r->held);
	assert_int_equal(client_reply_of(c, 1)->status, 200);
	r->held = NULL;
	client_send(c, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	RIG_WAIT(r, r->held != NULL);
	assert_int_equal(http_stream_write_blob(r->held, b), 0);
	r->srv = http_server_free(r->srv);
	assert_int_equal(http_stream_write_blob(r->held, b), E_LINK);
	http_stream_end(r->held);
	http_blob_unref(b);
	client_free(c);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_is_101_with_nothing_but_its_own_headers),
		cmocka_unit_test(text_of_any_length_is_one_frame),
		cmocka_unit_test(a_frame_made_once_goes_to_any_number_of_clients),
		cmocka_unit_test(messages_reach_the_owner_in_any_pieces),
		cmocka_unit_test(frames_behind_the_request_are_not_lost),
		cmocka_unit_test(each_of_some_pings_is_answered_in_order),
		cmocka_unit_test(a_flood_of_pings_queues_little_and_the_last_one_is_answered),
		cmocka_unit_test(a_pong_is_not_starved_by_a_writer_that_fills_up),
		cmocka_unit_test(a_writer_is_called_when_there_is_room),
		cmocka_unit_test(pings_go_out_while_the_client_shows_signs_of_life),
		cmocka_unit_test(pings_do_not_pile_up_for_a_client_that_does_not_read),
		cmocka_unit_test(a_blob_on_a_stream_is_one_chunk_for_each_reader),
		cmocka_unit_test(a_blob_vanishes_for_head_and_for_a_client_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
