/* Frames of WebSocket clients: every rule, at every split, in one piece and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/http/ws_in.h"
#include "test/unit/http_ws_frames.h"

#define MASK 0x5ac3f017

/* Writes what comes of ${in} as text: "text(hello) ping() bad(1002)". */
static void
read_pieces(struct buf *out, const struct buf *in, size_t first, size_t step)
{
	static const char *const names[] = { "more", "text", "ping", "pong", "close", "bad" };
	struct ws_in w;
	struct ws_message m;
	enum ws_in_result r = WS_IN_MORE;
	size_t at = 0, used;

	buf_reset(out);
	assert_int_equal(ws_in_init(&w), 0);
	while (at < in->len && r != WS_IN_BAD) {
		size_t take = at < first ? first - at : step;
		uint8_t *piece;

		take = take < in->len - at ? take : in->len - at;
		piece = malloc(take); /* exactly, so that a read past it is seen */
		memcpy(piece, in->data + at, take);
		r = ws_in_feed(&w, piece, take, &used, &m);
		assert_true(used <= take);
		assert_true(r != WS_IN_MORE || used == take);
		free(piece);
		at += used;
		if (r == WS_IN_MORE)
			continue;
		(void)buf_printf(out, "%s%s(", out->len > 0 ? " " : "", names[r]);
		if (r == WS_IN_BAD || (r == WS_IN_CLOSE && m.len == 0))
			(void)buf_add_int(out, m.code);
		else if (m.len > 300)
			(void)buf_add_int(out, (int64_t)m.len);
		else
			(void)buf_add(out, m.data, m.len);
		(void)buf_add_str(out, ")");
	}
	if (r == WS_IN_BAD) {
		r = ws_in_feed(&w, in->data, in->len, &used, &m);
		assert_int_equal(r, WS_IN_BAD);
		assert_int_equal(used, 0);
	}
	ws_in_done(&w);
}

/* The same at every split and in steps of every small size. */
static void
expect(struct buf *in, const char *wanted)
{
	struct buf out = BUF_INIT;
	size_t i, splits = in->len < 600 ? in->len : 600;

	for (i = 0; i <= splits; i++) {
		read_pieces(&out, in, i, SIZE_MAX);
		assert_string_equal(buf_cstr(&out), wanted);
	}
	for (i = 1; i <= 9; i++) {
		read_pieces(&out, in, 0, i);
		assert_string_equal(buf_cstr(&out), wanted);
	}
	buf_done(&out);
	buf_reset(in);
}

static void
text_pings_pongs_and_close_come_out_in_order(void **state)
{
	struct buf in = BUF_INIT;

	(void)state;
	ws_put_text(&in, WS_TEXT, "ping");
	ws_put_text(&in, WS_PING, "");
	ws_put_text(&in, WS_TEXT, "");
	ws_put_text(&in, WS_PING, "abc");
	ws_put_text(&in, WS_PONG, "xy");
	ws_put_text(&in, WS_TEXT, "gr\xc3\xbc\xc3\x9f");
	ws_put_text(&in, WS_CLOSE,
	    "\x03\xe8"
	    "bye");
	expect(&in,
	    "text(ping) ping() text() ping(abc) pong(xy) text(gr\xc3\xbc\xc3\x9f) "
	    "close(\x03\xe8"
	    "bye)");
	buf_done(&in);
}

static void
any_masking_key_is_taken_off(void **state)
{
	static const uint32_t masks[] = { 1, 0xff000000, 0x00ff00ff, 0xffffffff, 0x12345678 };
	struct buf in = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(masks); i++)
		ws_put(&in, WS_TEXT, "0123456", 7, masks[i]);
	/* The key of all zeros is one too. */
	ws_put_head(&in, WS_TEXT, 2, 0, 1);
	in.data[in.len - 1] = 0;
	(void)buf_add_str(&in, "ok");
	expect(&in,
	    "text(0123456) text(0123456) text(0123456) text(0123456) text(0123456) "
	    "text(ok)");
	buf_done(&in);
}

static void
fragments_become_one_message_with_control_frames_in_between(void **state)
{
	struct buf in = BUF_INIT;

	(void)state;
	ws_put_text(&in, 1, "he");
	ws_put_text(&in, WS_PING, "1");
	ws_put_text(&in, 0, "");
	ws_put_text(&in, 0, "l");
	ws_put_text(&in, WS_PONG, "2");
	ws_put_text(&in, WS_FIN, "lo");
	/* A character may be split over fragments. */
	ws_put_text(&in, 1, "\xe2\x82");
	ws_put_text(&in, WS_FIN, "\xac");
	ws_put_text(&in, 1, "");
	ws_put_text(&in, WS_FIN, "");
	expect(&in, "ping(1) pong(2) text(hello) text(\xe2\x82\xac) text()");
	ws_put_text(&in, 1, "never");
	ws_put_text(&in, WS_CLOSE, "");
	expect(&in, "close(1005)");
	buf_done(&in);
}

static void
binary_messages_are_swallowed(void **state)
{
	struct buf in = BUF_INIT;

	(void)state;
	ws_put(&in, WS_BIN, "\xff\xfe\x00", 3, MASK);
	ws_put(&in, 2, "\xff", 1, MASK);
	ws_put_text(&in, WS_PING, "p");
	ws_put(&in, WS_FIN, "\xff", 1, MASK);
	ws_put(&in, WS_BIN, "", 0, MASK);
	ws_put_text(&in, WS_TEXT, "after");
	expect(&in, "ping(p) text(after)");
	buf_done(&in);
}

static void
a_malformed_frame_is_1002(void **state)
{
	static const struct {
		uint64_t n;
		size_t digits;
		int first;
		uint32_t mask;
	} bad[] = {
		{ 4, 0, WS_TEXT, 0 },          /* unmasked */
		{ 0, 0, WS_TEXT, 0 },          /* also without payload */
		{ 0, 0, WS_PING, 0 },          /* and in control frames */
		{ 0, 0, WS_CLOSE, 0 },         /* of every kind */
		{ 4, 0, WS_TEXT | 0x40, 1 },   /* reserved bits */
		{ 4, 0, WS_TEXT | 0x20, 1 },   /* */
		{ 4, 0, WS_TEXT | 0x10, 1 },   /* */
		{ 0, 0, WS_PING | 0x40, 1 },   /* */
		{ 4, 0, WS_FIN | 3, 1 },       /* opcodes that are none */
		{ 0, 0, WS_FIN | 7, 1 },       /* */
		{ 4, 0, WS_FIN | 11, 1 },      /* */
		{ 0, 0, WS_FIN | 15, 1 },      /* */
		{ 4, 0, WS_FIN, 1 },           /* nothing to go on with */
		{ 0, 0, 0, 1 },                /* */
		{ 1, 0, 9, 1 },                /* control in fragments */
		{ 0, 0, 8, 1 },                /* */
		{ 126, 2, WS_PING, 1 },        /* control that is too long */
		{ 125, 2, WS_PONG, 1 },        /* */
		{ 70000, 8, WS_CLOSE, 1 },     /* */
		{ 125, 2, WS_TEXT, 1 },        /* length not in its shortest form */
		{ 65535, 8, WS_TEXT, 1 },      /* */
		{ 5, 8, WS_TEXT, 1 },          /* */
		{ 1ull << 63, 8, WS_TEXT, 1 }, /* beyond 63 bits */
		{ UINT64_MAX, 8, WS_BIN, 1 },  /* */
	};
	struct buf in = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		ws_put_text(&in, WS_TEXT, "good");
		/* The header alone is enough. */
		ws_put_head(&in, bad[i].first, bad[i].n, bad[i].digits, bad[i].mask);
		expect(&in, "text(good) bad(1002)");
	}
	buf_done(&in);
}

static void
messages_do_not_begin_in_each_other(void **state)
{
	static const int kinds[] = { 1, 2 };
	struct buf in = BUF_INIT;
	size_t i, j;

	(void)state;
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			ws_put_text(&in, kinds[i], "a");
			ws_put_text(&in, WS_FIN | kinds[j], "b");
			expect(&in, "bad(1002)");
		}
	}
	buf_done(&in);
}

static void
a_message_may_have_4096_bytes_and_no_more(void **state)
{
	static const uint64_t giant[] = { 4097, 65535, 65536, 1ull << 32, (1ull << 63) - 1 };
	struct buf in = BUF_INIT;
	char *fill = malloc(4096);
	size_t i;

	(void)state;
	memset(fill, 'x', 4096);
	ws_put(&in, WS_TEXT, fill, 4096, MASK);
	ws_put(&in, WS_BIN, fill, 4096, MASK);
	ws_put(&in, 1, fill, 4000, MASK);
	ws_put(&in, 0, fill, 96, MASK);
	ws_put(&in, WS_FIN, fill, 0, MASK);
	expect(&in, "text(4096) text(4096)");
	/* Judged by the header; not one byte of it has to come. */
	for (i = 0; i < ARRAY_LEN(giant); i++) {
		ws_put_head(&in, WS_TEXT, giant[i], giant[i] > 65535 ? 8 : 2, 1);
		expect(&in, "bad(1009)");
		ws_put_head(&in, 2, giant[i], giant[i] > 65535 ? 8 : 2, 1);
		expect(&in, "bad(1009)");
	}
	for (i = 1; i <= 2; i++) {
		ws_put(&in, (int)i, fill, 4000, MASK);
		ws_put(&in, 0, fill, 96, MASK);
		ws_put_text(&in, WS_PING, "p");
		ws_put_head(&in, WS_FIN, 1, 0, 1);
		expect(&in, "ping(p) bad(1009)");
	}
	free(fill);
	buf_done(&in);
}

static void
text_that_is_not_utf_8_is_1007(void **state)
{
	static const char *const bad[] = { "\xff", "a\xc0\xaf", "\xed\xa0\x80",
		"\xf4\x90\x80\x80", "cut \xe2\x82", "\x80" };
	struct buf in = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		ws_put_text(&in, WS_TEXT, bad[i]);
		expect(&in, "bad(1007)");
		ws_put_text(&in, 1, bad[i]);
		ws_put_text(&in, WS_FIN, "");
		expect(&in, "bad(1007)");
		ws_put(&in, WS_CLOSE, "\x03\xe8", 2, MASK);
		in.data[1] = (uint8_t)(0x80 | (2 + strlen(bad[i])));
		for (size_t k = 0; bad[i][k] != '\0'; k++)
			(void)buf_add_byte(&in,
			    (uint8_t)(bad[i][k] ^ (uint8_t)(MASK >> (24 - 8 * ((k + 2) % 4)))));
		expect(&in, "bad(1007)");
	}
	buf_done(&in);
}

static void
close_codes_are_those_that_an_endpoint_may_send(void **state)
{
	static const int good[] = { 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012,
		1013, 1014, 3000, 3999, 4000, 4999 };
	static const int bad[] = { 0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000,
		65535 };
	struct buf in = BUF_INIT;
	struct ws_message m;
	struct ws_in w;
	size_t i, used;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		uint8_t code[2] = { (uint8_t)(good[i] >> 8), (uint8_t)good[i] };

		buf_reset(&in);
		ws_put(&in, WS_CLOSE, code, 2, MASK);
		assert_int_equal(ws_in_init(&w), 0);
		assert_int_equal(ws_in_feed(&w, in.data, in.len, &used, &m), WS_IN_CLOSE);
		assert_int_equal(m.code, good[i]);
		assert_int_equal(m.len, 2);
		assert_memory_equal(m.data, code, 2);
		ws_in_done(&w);
	}
	buf_reset(&in);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		uint8_t code[2] = { (uint8_t)(bad[i] >> 8), (uint8_t)bad[i] };

		ws_put(&in, WS_CLOSE, code, 2, MASK);
		expect(&in, "bad(1002)");
	}
	/* Half of a code is none. */
	ws_put(&in, WS_CLOSE, "\x03", 1, MASK);
	expect(&in, "bad(1002)");
	buf_done(&in);
}

static void
only_complete_frames_count_as_a_sign_of_life(void **state)
{
	struct buf in = BUF_INIT;
	struct ws_message m;
	struct ws_in w;
	size_t used;

	(void)state;
	ws_put_text(&in, 1, "ab");
	ws_put_text(&in, WS_FIN, "");
	assert_int_equal(ws_in_init(&w), 0);
	(void)ws_in_feed(&w, in.data, 7, &used, &m);
	assert_int_equal(w.nframes, 0);
	(void)ws_in_feed(&w, in.data + 7, 1, &used, &m);
	assert_int_equal(w.nframes, 1);
	ws_in_done(&w);
	buf_done(&in);
}

static void
want_of_memory_is_1011(void **state)
{
	struct buf in = BUF_INIT;
	struct ws_message m;
	struct ws_in w;
	size_t used;

	(void)state;
	ws_put_text(&in, WS_TEXT, "hello");
	assert_int_equal(ws_in_init(&w), 0);
	mem_fault_arm(0);
	assert_int_equal(ws_in_feed(&w, in.data, in.len, &used, &m), WS_IN_BAD);
	assert_int_equal(mem_fault_hit(), 1);
	mem_fault_arm(-1);
	assert_int_equal(m.code, 1011);
	ws_in_done(&w);
	buf_done(&in);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_pings_pongs_and_close_come_out_in_order),
		cmocka_unit_test(any_masking_key_is_taken_off),
		cmocka_unit_test(fragments_become_one_message_with_control_frames_in_between),
		cmocka_unit_test(binary_messages_are_swallowed),
		cmocka_unit_test(a_malformed_frame_is_1002),
		cmocka_unit_test(messages_do_not_begin_in_each_other),
		cmocka_unit_test(a_message_may_have_4096_bytes_and_no_more),
		cmocka_unit_test(text_that_is_not_utf_8_is_1007),
		cmocka_unit_test(close_codes_are_those_that_an_endpoint_may_send),
		cmocka_unit_test(only_complete_frames_count_as_a_sign_of_life),
		cmocka_unit_test(want_of_memory_is_1011),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
