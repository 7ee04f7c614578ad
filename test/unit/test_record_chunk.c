#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/stream.h"

static void
fill(struct chunker *c, const char *unit, size_t bytes)
{
	struct buf *in = chunker_input(c);

	while (bytes >= strlen(unit)) {
		assert_int_equal(buf_add_str(in, unit), 0);
		bytes -= strlen(unit);
	}
}

static void
an_incomplete_chunk_waits_for_its_flush(void **state)
{
	struct chunker c;
	const char *text;

	(void)state;
	chunker_init(&c);
	assert_int_equal(chunker_next(&c, 1, &text), 0);
	fill(&c, "x", CHUNK_MAX_BYTES - 1);
	assert_int_equal(chunker_next(&c, 0, &text), 0);
	assert_int_equal(chunker_pending(&c), CHUNK_MAX_BYTES - 1);
	fill(&c, "x", 1);
	assert_int_equal(chunker_next(&c, 0, &text), CHUNK_MAX_BYTES);
	assert_int_equal(chunker_next(&c, 0, &text), 0);
	fill(&c, "y", 3);
	assert_int_equal(chunker_next(&c, 0, &text), 0);
	assert_int_equal(chunker_next(&c, 1, &text), 3);
	assert_memory_equal(text, "yyy", 3);
	assert_int_equal(chunker_pending(&c), 0);
	assert_int_equal(chunker_next(&c, 1, &text), 0);
	chunker_done(&c);
}

static void
no_chunk_ends_inside_a_character(void **state)
{
	static const char *const units[] = { "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x92\xa9" };

	(void)state;
	for (size_t u = 0; u < ARRAY_LEN(units); u++) {
		for (size_t before = 0; before < 4; before++) {
			struct chunker c;
			const char *text;
			size_t n, total = 0, all;

			chunker_init(&c);
			fill(&c, "x", before);
			fill(&c, units[u], (size_t)5 * CHUNK_MAX_BYTES);
			all = chunker_pending(&c);
			while (
			    (n = chunker_next(&c, total + CHUNK_MAX_BYTES > all, &text)) != 0) {
				assert_true(n <= CHUNK_MAX_BYTES);
				assert_true(n > CHUNK_MAX_BYTES - 4 || total + n == all);
				assert_true(utf8_valid(text, n));
				total += n;
			}
			assert_int_equal(total, all);
			chunker_done(&c);
		}
	}
}

/* The three stages together: whatever the reads, the chunks are the same text. */
static void
a_stream_yields_its_text_whatever_the_reads(void **state)
{
	static const char text[] = "one secret-token \xe2\x82\xac two \xff three";
	static const char want[] = "one [REDACTED] \xe2\x82\xac two " UTF8_REPLACEMENT " three";
	CLEANUP(redactor_freep) struct redactor *r = NULL;

	(void)state;
	assert_int_equal(redactor_new("secret-token", 12, &r), 0);
	for (size_t step = 1; step < sizeof(text); step++) {
		CLEANUP(buf_done) struct buf got = BUF_INIT;
		struct record_stream s;
		const char *p;
		size_t n;

		record_stream_init(&s);
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			n = min_size(step, sizeof(text) - 1 - at);
			assert_int_equal(record_stream_feed(&s, r, text + at, n), 0);
			while ((n = record_stream_next(&s, 1, &p)) != 0)
				assert_int_equal(buf_add(&got, p, n), 0);
		}
		assert_int_equal(record_stream_end(&s, r), 0);
		while ((n = record_stream_next(&s, 1, &p)) != 0)
			assert_int_equal(buf_add(&got, p, n), 0);
		assert_int_equal(record_stream_pending(&s), 0);
		assert_string_equal(buf_cstr(&got), want);
		record_stream_done(&s);
	}
}

static void
every_failed_allocation_of_a_stream_is_told(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = NULL;
	long n;

	(void)state;
	assert_int_equal(redactor_new("secret-token", 12, &r), 0);
	for (n = 0;; n++) {
		struct record_stream s;
		int err, hit;

		record_stream_init(&s);
		mem_fault_arm(n);
		err = record_stream_feed(&s, r, "a secr", 6);
		if (err == 0)
			err = record_stream_feed(&s, r, "et", 2);
		if (err == 0)
			err = record_stream_end(&s, r);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(err, hit ? E_NOMEM : 0);
		record_stream_done(&s);
		if (!hit)
			break;
	}
	assert_true(n >= 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incomplete_chunk_waits_for_its_flush),
		cmocka_unit_test(no_chunk_ends_inside_a_character),
		cmocka_unit_test(a_stream_yields_its_text_whatever_the_reads),
		cmocka_unit_test(every_failed_allocation_of_a_stream_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
