/* A run's log as JSON lines. */
#include <string.h>

#include "cmd/anvilctl/rows.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

static int
add(struct rows *r, int64_t seq, enum log_stream stream, const char *p, size_t n, struct buf *b)
{
	const struct log_row row = { .seq = seq,
		.stream = stream,
		.chunk = { p, n },
		.created_at = INT64_C(1769850307042) };

	return rows_add(r, &row, b);
}

static void
each_line_is_an_object_with_its_step(void **state)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	static const char nul[] = "a\0b\nrest";
	static const char head[] = "Step 2/12: build\n";
	struct rows r = { .step = 0 };

	(void)state;
	assert_int_equal(add(&r, 1, LOG_STREAM_SYSTEM, "Ready.\n", 7, &b), 0);
	/* Only the run itself begins a step. */
	assert_int_equal(add(&r, 2, LOG_STREAM_STDOUT, head, strlen(head), &b), 0);
	assert_int_equal(add(&r, 3, LOG_STREAM_SYSTEM, head, strlen(head), &b), 0);
	assert_int_equal(add(&r, 4, LOG_STREAM_STDERR, nul, sizeof(nul) - 1, &b), 0);
	assert_int_equal(rows_add_gap(5, 7, &b), 0);
	assert_string_equal(buf_cstr(&b),
	    "{\"seq\":1,\"time\":\"2026-01-31T09:05:07.042Z\",\"step\":null,"
	    "\"stream\":\"system\",\"text\":\"Ready.\\n\"}\n"
	    "{\"seq\":2,\"time\":\"2026-01-31T09:05:07.042Z\",\"step\":null,"
	    "\"stream\":\"stdout\",\"text\":\"Step 2/12: build\\n\"}\n"
	    "{\"seq\":3,\"time\":\"2026-01-31T09:05:07.042Z\",\"step\":2,"
	    "\"stream\":\"system\",\"text\":\"Step 2/12: build\\n\"}\n"
	    "{\"seq\":4,\"time\":\"2026-01-31T09:05:07.042Z\",\"step\":2,"
	    "\"stream\":\"stderr\",\"text\":\"a\\u0000b\\n\"}\n"
	    "{\"seq\":4,\"time\":\"2026-01-31T09:05:07.042Z\",\"step\":2,"
	    "\"stream\":\"stderr\",\"text\":\"rest\"}\n"
	    "{\"gap\":{\"fromSeq\":5,\"toSeq\":7}}\n");
}

static void
a_lack_of_memory_is_told(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;
		struct rows r = { .step = 0 };
		int err;

		mem_fault_arm(n);
		err = add(&r, 1, LOG_STREAM_SYSTEM, "one\ntwo\n", 8, &b);
		if (!mem_fault_hit())
			break;
		assert_int_equal(err, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_an_object_with_its_step),
		cmocka_unit_test(a_lack_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
