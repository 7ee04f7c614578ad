/* test/unit/test_wire_frame.c -- frames in every chunking, lying lengths, starved of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/wire/frame.h"

/* Feeds bytes in chunks and collects what comes out, bodies ended by '|'. */
static int
feed(const uint8_t *bytes, size_t n, size_t chunk, struct buf *ret_bodies)
{
	struct frame_in f;
	int r = 0;

	frame_in_init(&f);
	for (size_t at = 0; at < n && r == 0;) {
		size_t room, len;
		uint8_t *to = frame_in_room(&f, &room);
		char *body;

		if (to == NULL) {
			r = E_NOMEM;
			break;
		}
		len = min_size(min_size(chunk, room), n - at);
		memcpy(to, bytes + at, len);
		at += len;
		frame_in_add(&f, len);
		while ((r = frame_in_next(&f, &body, &len)) == 1) {
			buf_add(ret_bodies, body, len);
			buf_add_byte(ret_bodies, '|');
		}
		frame_in_idle(&f);
	}
	frame_in_done(&f);
	return r;
}

static void
add_frame(struct buf *out, const char *body, size_t n)
{
	size_t at = frame_begin(out);

	buf_add(out, body, n);
	assert_int_equal(frame_end(out, at), 0);
}

static void
frames_come_out_whole_in_every_chunking(void **state)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT;

	(void)state;
	add_frame(&in, "{}", 2);
	add_frame(&in, "", 0);
	add_frame(&in, "[1,2,3]", 7);
	add_frame(&in, "\"a longer text of some forty bytes or so\"", 41);
	for (size_t chunk = 1; chunk <= in.len; chunk++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		assert_int_equal(feed(in.data, in.len, chunk, &out), 0);
		assert_string_equal(
		    buf_cstr(&out), "{}||[1,2,3]|\"a longer text of some forty bytes or so\"|");
	}
}

static void
large_frames_come_out_whole_and_their_storage_goes(void **state)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT;
	CLEANUP_FREE char *body = mem_calloc(1, FRAME_MAX_BYTES);
	static const size_t chunks[] = { 1000, 4096, 65537, 1u << 20 };
	struct frame_in f;
	size_t room, n, at = 0;
	char *got;

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < FRAME_MAX_BYTES; i++)
		body[i] = (char)('a' + i % 23);
	add_frame(&in, body, FRAME_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		assert_int_equal(feed(in.data, in.len, chunks[i], &out), 0);
		assert_int_equal(out.len, FRAME_MAX_BYTES + 1);
		assert_memory_equal(out.data, body, FRAME_MAX_BYTES);
	}
	frame_in_init(&f);
	while (at < in.len) {
		uint8_t *to = frame_in_room(&f, &room);

		assert_non_null(to);
		n = min_size(room, in.len - at);
		memcpy(to, in.data + at, n);
		frame_in_add(&f, n);
		at += n;
	}
	assert_int_equal(frame_in_next(&f, &got, &n), 1);
	frame_in_idle(&f);
	assert_int_equal(f.cap, 0);
	frame_in_done(&f);
}

static void
a_promised_length_reserves_nothing(void **state)
{
	static const uint8_t lie[] = { 0x01, 0x00, 0x00, 0x00, '{' }; /* exactly the limit */
	struct frame_in f;
	size_t room, n;
	char *body;

	(void)state;
	frame_in_init(&f);
	memcpy(frame_in_room(&f, &room), lie, sizeof(lie));
	frame_in_add(&f, sizeof(lie));
	assert_int_equal(frame_in_next(&f, &body, &n), 0);
	assert_non_null(frame_in_room(&f, &room));
	assert_true(f.cap < 65536);
	frame_in_done(&f);
}

static void
a_length_over_the_limit_is_refused_at_once(void **state)
{
	static const uint8_t heads[][4] = { { 0x01, 0x00, 0x00, 0x01 },
		{ 0xff, 0xff, 0xff, 0xff }, { 0x80, 0, 0, 0 }, { '{', '"', 'j', 's' } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		assert_int_equal(feed(heads[i], 3, 1, &out), 0);
		assert_int_equal(feed(heads[i], 4, 1, &out), E_TOO_BIG);
		assert_int_equal(out.len, 0);
	}
}

static void
a_frame_too_big_to_send_leaves_the_buffer_as_it_was(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP_FREE char *body = mem_calloc(1, FRAME_MAX_BYTES + 1);
	size_t at;

	(void)state;
	assert_non_null(body);
	add_frame(&out, "{}", 2);
	at = frame_begin(&out);
	buf_add(&out, body, FRAME_MAX_BYTES + 1);
	assert_int_equal(frame_end(&out, at), E_TOO_BIG);
	assert_int_equal(out.len, 6);
	add_frame(&out, "[]", 2);
	assert_memory_equal(out.data, "\0\0\0\2{}\0\0\0\2[]", 12);
}

static void
the_reader_survives_every_failed_allocation(void **state)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT;
	char body[20000];
	long n;

	(void)state;
	memset(body, 'x', sizeof(body));
	add_frame(&in, "{}", 2);
	add_frame(&in, body, sizeof(body));
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		int r;

		/* Room for the result first: only the reader is to starve. */
		assert_int_equal(buf_reserve(&out, 65536), 0);
		mem_fault_arm(n);
		r = feed(in.data, in.len, 1500, &out);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 2);
}

static void
the_writer_survives_every_failed_allocation(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		size_t at;
		int r;

		mem_fault_arm(n);
		at = frame_begin(&out);
		for (int i = 0; i < 100; i++)
			buf_add_str(&out, "0123456789");
		r = frame_end(&out, at);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
		assert_int_equal(out.len, 0);
		assert_int_equal(out.failed, 0);
	}
	mem_fault_arm(-1);
	assert_true(n > 1);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_out_whole_in_every_chunking),
		cmocka_unit_test(large_frames_come_out_whole_and_their_storage_goes),
		cmocka_unit_test(a_promised_length_reserves_nothing),
		cmocka_unit_test(a_length_over_the_limit_is_refused_at_once),
		cmocka_unit_test(a_frame_too_big_to_send_leaves_the_buffer_as_it_was),
		cmocka_unit_test(the_reader_survives_every_failed_allocation),
		cmocka_unit_test(the_writer_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
