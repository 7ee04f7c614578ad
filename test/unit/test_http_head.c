/* The grammar of heads and bodies, at every split of the input and every failed allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/http/body.h"
#include "lib/http/head.h"
#include "test/unit/http_oracle.h"

#define TARGET_MAX 64
#define FIELDS_MAX 256

/* Feeds in pieces of ${step}; HEAD_DONE, HEAD_MORE or a status. */
static int
read_head(struct head *h, const char *p, size_t n, size_t step, size_t *ret_used)
{
	size_t at = 0, used;
	int r = HEAD_MORE;

	head_init(h);
	while (r == HEAD_MORE && at < n) {
		size_t take = n - at < step ? n - at : step;

		r = head_feed(h, (const uint8_t *)p + at, take, TARGET_MAX, FIELDS_MAX, &used);
		assert_true(used <= take);
		assert_true(r != HEAD_MORE || used == take);
		at += used;
	}
	*ret_used = at;
	return r;
}

static int
status_of(const char *p, size_t n, size_t step)
{
	struct head h;
	size_t used;
	int r = read_head(&h, p, n, step, &used);

	head_done(&h);
	return r;
}

struct text {
	const char *p;
	size_t n;
};
#define T(s)                     \
	{                        \
		s, sizeof(s) - 1 \
	}

static const struct text bad_heads[] = {
	T("GET / HTTP/1.1\nHost: a\n\n"),
	T("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\n\n"),
	T("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"),
	T("GET / HTTP/1.1\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
	T("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n"),
	T("GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xa9: b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n"),
	T("GET / HTTP/1.1\r\nHost: a\r\nX: a\x7f\r\n\r\n"),
	T("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
	T(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET *a HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	T("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET /\r\n\r\n"),
	T("GET\r\n\r\n"),
	T("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
	T("GET / http/1.1\r\nHost: a\r\n\r\n"),
	T("GET / HTTP/1,1\r\nHost: a\r\n\r\n"),
	T("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("AVERYLONGMETHODINDEEDITIS / HTTP/1.1\r\nHost: a\r\n\r\n"),
	T("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 2\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"),
	T("P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n"),
	T("P / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
};

static void
what_is_not_strictly_a_request_is_refused_at_any_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_heads) / sizeof(bad_heads[0]); i++)
		for (size_t step = 1; step <= bad_heads[i].n; step++)
			if (status_of(bad_heads[i].p, bad_heads[i].n, step) != 400)
				fail_msg("accepted in steps of %zu: %s", step, bad_heads[i].p);
}

static void
good_heads_are_read_alike_at_any_split_and_by_another_parser(void **state)
{
	static const struct {
		struct text text;
		const char *method, *path, *query;
		int64_t length;
		unsigned nfields;
	} good[] = {
		{ T("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "GET", "/", "", 0, 1 },
		{ T("\r\nGET /a/b?c=d?e HTTP/1.1\r\nHost: [::1]:80\r\nX:\r\nY:  v v\t\r\n\r\n"),
		    "GET", "/a/b", "c=d?e", 0, 3 },
		{ T("GET /x? HTTP/1.0\r\n\r\n"), "GET", "/x", "", 0, 0 },
		{ T("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "OPTIONS", "*", "", 0, 1 },
		{ T("POST /%41 HTTP/1.1\r\nhOST: a\r\ncontent-LENGTH: 007\r\n\r\n"), "POST",
		    "/%41", "", 7, 2 },
		{ T("PUT / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked\r\n\r\n"), "PUT",
		    "/", "", -1, 2 },
		{ T("GET http://A.b:1/p?q HTTP/1.1\r\nHost: a.B:1\r\n\r\n"), "GET", "/p", "q",
		    0, 1 },
		{ T("GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n"), "GET", "/", "", 0, 1 },
		{ T("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n"), "GET", "/", "q", 0, 1 },
		{ T("GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\r\n\r\n"), "GET", "/", "", 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct oracle o;

		assert_true(oracle_read(&o, good[i].text.p, good[i].text.n) >= 0);
		assert_true(o.head_over);
		assert_int_equal(o.nfields, good[i].nfields);
		oracle_done(&o);
		for (size_t step = 1; step <= good[i].text.n; step++) {
			struct head h;
			size_t used;

			assert_int_equal(
			    read_head(&h, good[i].text.p, good[i].text.n, step, &used),
			    HEAD_DONE);
			assert_int_equal(used, good[i].text.n);
			assert_string_equal(head_text(&h, 0), good[i].method);
			assert_string_equal(head_text(&h, h.path), good[i].path);
			assert_string_equal(head_text(&h, h.query), good[i].query);
			assert_int_equal(h.length, good[i].length);
			assert_int_equal(h.nfields, good[i].nfields);
			head_done(&h);
		}
	}
}

static void
headers_are_found_by_name_number_and_token(void **state)
{
	static const char text[] =
	    "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nx:  2 \r\nE:\r\n"
	    "Connection: keep-alive , Upgrade\r\nCONNECTION:,,\tClose,\r\n\r\n";
	struct head h;
	size_t used;

	(void)state;
	assert_int_equal(read_head(&h, text, sizeof(text) - 1, 1, &used), HEAD_DONE);
	assert_string_equal(head_get(&h, "x", 0), "1");
	assert_string_equal(head_get(&h, "X", 1), "2");
	assert_null(head_get(&h, "X", 2));
	assert_string_equal(head_get(&h, "e", 0), "");
	assert_true(head_has_token(&h, "Connection", "UPGRADE"));
	assert_true(head_has_token(&h, "Connection", "close"));
	assert_false(head_has_token(&h, "Connection", "keep"));
	assert_false(head_has_token(&h, "Connection", ""));
	assert_false(h.keep_alive);
	head_done(&h);
}

static void
limits_hold_at_any_split(void **state)
{
	char text[1024];
	size_t n;

	(void)state;
	for (size_t step = 1; step < 600; step += step < 20 ? 1 : 57) {
		n = (size_t)sprintf(text, "GET /%063d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
		assert_int_equal(status_of(text, n, step), HEAD_DONE);
		n = (size_t)sprintf(text, "GET /%064d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
		assert_int_equal(status_of(text, n, step), 414);
		n = (size_t)sprintf(text, "GET /%0600d HTTP/1.1\r\n", 0);
		assert_int_equal(status_of(text, n, step), 414);
		n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0242d\r\n\r\n", 0);
		assert_int_equal(status_of(text, n, step), HEAD_DONE);
		n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0243d\r\n\r\n", 0);
		assert_int_equal(status_of(text, n, step), 431);
		n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0500d", 0);
		assert_int_equal(status_of(text, n, step), 431);
	}
}

static void
a_head_survives_every_failed_allocation(void **state)
{
	static const char text[] =
	    "GET / HTTP/1.1\r\nHost: a\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n"
	    "10:\r\n11:\r\n12:\r\n13:\r\n14:\r\n15:\r\n16:\r\n17:\r\n\r\n";
	long n;

	(void)state;
	for (n = 0;; n++) {
		int r;

		mem_fault_arm(n);
		r = status_of(text, sizeof(text) - 1, 3);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, 503);
	}
	mem_fault_arm(-1);
	assert_true(n >= 3);
}

/* ---- bodies -------------------------------------------------------------------------- */

/* Reads a body in pieces of ${step}: BODY_DONE, BODY_MORE or BODY_BAD; what it says in ${out}. */
static int
read_body(int64_t length, const char *p, size_t n, size_t step, struct buf *out, size_t *ret_at)
{
	const uint8_t *piece;
	struct body b;
	size_t at = 0, used, len;
	int r = BODY_MORE;

	body_init(&b, length);
	while (r == BODY_MORE || r == BODY_PIECE) {
		size_t take = n - at < step ? n - at : step;

		r = body_feed(&b, (const uint8_t *)p + at, take, &used, &piece, &len);
		at += used;
		if (r == BODY_PIECE)
			assert_int_equal(buf_add(out, piece, len), 0);
		else if (r == BODY_MORE && at == n)
			break;
	}
	assert_true(r == BODY_BAD || b.total == out->len);
	*ret_at = at;
	return r;
}

static void
bodies_are_read_alike_at_any_split(void **state)
{
	static const struct {
		int64_t length;
		struct text text;
		const char *out;
		size_t left; /* bytes of the next request */
		int r;
	} cases[] = {
		{ 0, T("GET"), "", 3, BODY_DONE },
		{ 5, T("helloGET"), "hello", 3, BODY_DONE },
		{ 5, T("hell"), "hell", 0, BODY_MORE },
		{ -1, T("0\r\n\r\nGET"), "", 3, BODY_DONE },
		{ -1, T("5\r\nhello\r\n0\r\n\r\nGET"), "hello", 3, BODY_DONE },
		{ -1,
		    T("0000000A;x=\"y z\"\r\n0123456789\r\n1\r\na\r\n00\r\nA: b\r\nC:\r\n\r\nG"),
		    "0123456789a", 1, BODY_DONE },
		{ -1, T("5\r\nhello\r\n0\r\n\r"), "hello", 0, BODY_MORE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t step = 1; step <= cases[i].text.n; step++) {
			struct buf out = BUF_INIT;
			size_t at;

			assert_int_equal(read_body(cases[i].length, cases[i].text.p,
					     cases[i].text.n, step, &out, &at),
			    cases[i].r);
			assert_int_equal(cases[i].text.n - at, cases[i].left);
			assert_string_equal(buf_cstr(&out), cases[i].out);
			buf_done(&out);
		}
}

static void
loose_chunks_are_refused_at_any_split(void **state)
{
	static const struct text bad[] = {
		T("5\nhello\r\n0\r\n\r\n"),
		T("5\r\nhello\n0\r\n\r\n"),
		T("5\r\nhelloZZ0\r\n\r\n"),
		T("5\r\nhello0\r\n\r\n"),
		T("5\r\nhello\r\n0\n\r\n"),
		T("5\r\nhello\r\n0\r\n\n"),
		T("0\r\n\rX"),
		T("0x5\r\nhello\r\n"),
		T("+5\r\nhello\r\n"),
		T("-5\r\nhello\r\n"),
		T(" 5\r\nhello\r\n"),
		T("5 \r\nhello\r\n"),
		T("5\t;a\r\nhello\r\n"),
		T("5,\r\nhello\r\n"),
		T(";a\r\nhello\r\n"),
		T("\r\nhello\r\n"),
		T("g\r\n"),
		T("100000000\r\n"),
		T("000000005\r\nhello\r\n"),
		T("5;a\nb\r\nhello\r\n"),
		T("5;a\rb\r\nhello\r\n"),
		T("5;a\0\r\nhello\r\n"),
		T("5\r\rhello\r\n"),
		T("0\r\nA : b\r\n\r\n"),
		T("0\r\n A: b\r\n\r\n"),
		T("0\r\nA\r\n\r\n"),
		T("0\r\nA: \x01\r\n\r\n"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (size_t step = 1; step <= bad[i].n; step++) {
			struct buf out = BUF_INIT;
			size_t at;

			if (read_body(-1, bad[i].p, bad[i].n, step, &out, &at) != BODY_BAD)
				fail_msg("accepted in steps of %zu: %s", step, bad[i].p);
			buf_done(&out);
		}
}

static void
extensions_and_trailers_are_bounded(void **state)
{
	struct buf text = BUF_INIT, out = BUF_INIT;
	size_t at;

	(void)state;
	for (int i = 0; i < 20000; i++)
		buf_add_str(&text, "1;x\r\na\r\n");
	assert_int_equal(read_body(-1, (char *)text.data, text.len, 4096, &out, &at), BODY_BAD);
	buf_reset(&text);
	buf_reset(&out);
	buf_add_str(&text, "0\r\n");
	for (int i = 0; i < 20000; i++)
		buf_add_str(&text, "a: b\r\n");
	assert_int_equal(read_body(-1, (char *)text.data, text.len, 4096, &out, &at), BODY_BAD);
	buf_done(&text);
	buf_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_strictly_a_request_is_refused_at_any_split),
		cmocka_unit_test(good_heads_are_read_alike_at_any_split_and_by_another_parser),
		cmocka_unit_test(headers_are_found_by_name_number_and_token),
		cmocka_unit_test(limits_hold_at_any_split),
		cmocka_unit_test(a_head_survives_every_failed_allocation),
		cmocka_unit_test(bodies_are_read_alike_at_any_split),
		cmocka_unit_test(loose_chunks_are_refused_at_any_split),
		cmocka_unit_test(extensions_and_trailers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
