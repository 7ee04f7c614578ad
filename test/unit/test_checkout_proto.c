/*
 * Frames between a run and its checkout child, in every chunking and cut everywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/checkout/checkout.h"

static const struct checkout_request sample = {
	.mirror = "/d/cache/p.git",
	.lock = "/d/cache/p.lock",
	.workspace = "/d/runs/r/ws",
	.url = "https://example.com/a/b",
	.branch = "main",
	.token = "user:secret",
	.config = ".anvil.yml",
	.ca_file = "",
	.allow_private_hosts = 1,
};

/* What the child writes: a line, the commit, a config with a NUL in it, done, failed. */
static const char results[] = "\0\0\0\x0b"
			      "l\0\0\0\5hello\0"
			      "\0\0\0\x0a"
			      "c\0\0\0\4abcd\0"
			      "\0\0\0\x15"
			      "f\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\3x\0y\0"
			      "\0\0\0\x16"
			      "d\0\0\0\4abcd\0\0\0\0\0\0\0\1\0\0\0\0\x33"
			      "\0\0\0\x0d"
			      "x\0\0\0\2\0\0\0\3no!\0";

static void
request_comes_out_as_it_went_in(void **state)
{
	struct checkout_request got;
	struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(checkout_put_request(&b, &sample), 0);
	assert_int_equal(checkout_get_request(b.data + 4, b.len - 4, &got), 0);
	assert_string_equal(got.mirror, sample.mirror);
	assert_string_equal(got.lock, sample.lock);
	assert_string_equal(got.workspace, sample.workspace);
	assert_null(got.alternates);
	assert_string_equal(got.url, sample.url);
	assert_string_equal(got.branch, sample.branch);
	assert_null(got.commit);
	assert_string_equal(got.token, sample.token);
	assert_string_equal(got.config, sample.config);
	assert_string_equal(got.ca_file, "");
	assert_int_equal(got.allow_http, 0);
	assert_int_equal(got.allow_private_hosts, 1);
	assert_int_equal(got.allow_local, 0);
	buf_done(&b);
}

static void
request_cut_anywhere_is_refused(void **state)
{
	struct checkout_request got;
	struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(checkout_put_request(&b, &sample), 0);
	for (size_t n = 0; n < b.len - 4; n++) {
		uint8_t *cut = n != 0 ? mem_dup(b.data + 4, n) : NULL;

		assert_int_equal(checkout_get_request(cut, n, &got), E_FRAME);
		(void)mem_free(cut);
	}
	(void)buf_add_byte(&b, 0);
	assert_int_equal(checkout_get_request(b.data + 4, b.len - 4, &got), E_FRAME);
	buf_done(&b);
}

static void
request_lacking_a_string_is_not_written(void **state)
{
	struct checkout_request req = sample;
	struct buf b = BUF_INIT;

	(void)state;
	req.branch = NULL;
	assert_int_equal(checkout_put_request(&b, &req), E_INVAL);
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

static void
oversized_request_leaves_the_buffer_alone(void **state)
{
	struct checkout_request req = sample;
	struct buf b = BUF_INIT;
	char *huge = mem_alloc(CHECKOUT_FRAME_MAX + 10);

	(void)state;
	assert_non_null(huge);
	memset(huge, 'x', CHECKOUT_FRAME_MAX + 9);
	huge[CHECKOUT_FRAME_MAX + 9] = '\0';
	req.branch = huge;
	assert_int_equal(checkout_put_go_on(&b), 0);
	assert_int_equal(checkout_put_request(&b, &req), E_TOO_BIG);
	assert_int_equal(b.len, 5);
	buf_done(&b);
	(void)mem_free(huge);
}

static void
check_message(int i, const struct checkout_message *m)
{
	static const enum checkout_kind kinds[] = { CHECKOUT_LINE, CHECKOUT_COMMIT,
		CHECKOUT_CONFIG, CHECKOUT_DONE, CHECKOUT_FAILED };

	assert_true(i < 5);
	assert_int_equal(m->kind, kinds[i]);
	switch (m->kind) {
	case CHECKOUT_LINE: assert_string_equal(m->text, "hello"); break;
	case CHECKOUT_COMMIT: assert_string_equal(m->sha, "abcd"); break;
	case CHECKOUT_CONFIG:
		assert_int_equal(m->config, CHECKOUT_CONFIG_FOUND);
		assert_int_equal(m->size, 3);
		assert_int_equal(m->text_len, 3);
		assert_memory_equal(m->text, "x\0y", 4);
		break;
	case CHECKOUT_DONE:
		assert_string_equal(m->sha, "abcd");
		assert_int_equal(m->size, 256);
		assert_int_equal(m->nfiles, 51);
		break;
	case CHECKOUT_FAILED:
		assert_int_equal(m->failure, CHECKOUT_CREDENTIAL_REFUSED);
		assert_string_equal(m->text, "no!");
		break;
	}
}

static void
results_come_out_in_any_chunking(void **state)
{
	(void)state;
	for (size_t chunk = 1; chunk < sizeof(results); chunk++) {
		struct checkout_decoder d;
		struct checkout_message m;
		int n = 0;

		checkout_decoder_init(&d);
		for (size_t at = 0; at < sizeof(results) - 1; at += chunk) {
			size_t len = min_size(chunk, sizeof(results) - 1 - at);

			assert_int_equal(checkout_decoder_feed(&d, results + at, len), 0);
			while (checkout_decoder_next(&d, &m) == 1)
				check_message(n++, &m);
		}
		assert_int_equal(n, 5);
		assert_int_equal(checkout_decoder_next(&d, &m), 0);
		checkout_decoder_done(&d);
	}
}

struct bad {
	const char *bytes;
	size_t n;
	int err;
};

static void
bad_results_are_refused(void **state)
{
	static const struct bad rows[] = {
		{ "\0\0\0\0", 4, E_FRAME },                  /* empty body      */
		{ "\0\0\0\1z", 5, E_FRAME },                 /* unknown type    */
		{ "\xff\0\0\0", 4, E_TOO_BIG },              /* lying length    */
		{ "\0\2\0\1", 4, E_TOO_BIG },                /* one too many    */
		{ "\0\0\0\5l\0\0\0\1", 9, E_FRAME },         /* string cut      */
		{ "\0\0\0\5l\xff\xff\xff\xff", 9, E_FRAME }, /* no string       */
		{ "\0\0\0\7l\0\0\0\1ab", 11, E_FRAME },      /* no NUL behind   */
		{ "\0\0\0\x8l\0\0\0\1a\0z", 12, E_FRAME },   /* bytes left      */
		{ "\0\0\0\x0a"
		  "c\0\0\0\4ab\0d\0",
		    14, E_FRAME }, /* NUL in a string */
		{ "\0\0\0\x0a"
		  "x\0\0\0\x9\0\0\0\0\0",
		    14, E_FRAME }, /* no such failure */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct checkout_decoder d;
		struct checkout_message m;

		checkout_decoder_init(&d);
		assert_int_equal(checkout_decoder_feed(&d, rows[i].bytes, rows[i].n), 0);
		assert_int_equal(checkout_decoder_next(&d, &m), rows[i].err);
		checkout_decoder_done(&d);
	}
}

static void
every_failed_allocation_is_told(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		struct checkout_decoder d;
		struct buf b = BUF_INIT;
		int r;

		checkout_decoder_init(&d);
		mem_fault_arm(n);
		r = checkout_put_request(&b, &sample);
		if (r == 0)
			r = checkout_decoder_feed(&d, results, sizeof(results));
		buf_done(&b);
		checkout_decoder_done(&d);
		if (!mem_fault_hit())
			break;
		assert_int_equal(r, E_NOMEM);
	}
	mem_fault_arm(-1);
	assert_true(n > 0);
}

static void
every_failure_has_its_code(void **state)
{
	(void)state;
	assert_string_equal(checkout_failure_code(CHECKOUT_CHECKOUT_FAILED), "checkout_failed");
	assert_string_equal(
	    checkout_failure_code(CHECKOUT_COMMIT_UNREACHABLE), "commit_unreachable");
	assert_string_equal(
	    checkout_failure_code(CHECKOUT_CREDENTIAL_REFUSED), "credential_refused");
	assert_string_equal(checkout_failure_code(CHECKOUT_DISK_FULL), "disk_full");
	assert_string_equal(checkout_failure_code(CHECKOUT_INTERNAL), "internal_unexpected");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_comes_out_as_it_went_in),
		cmocka_unit_test(request_cut_anywhere_is_refused),
		cmocka_unit_test(request_lacking_a_string_is_not_written),
		cmocka_unit_test(oversized_request_leaves_the_buffer_alone),
		cmocka_unit_test(results_come_out_in_any_chunking),
		cmocka_unit_test(bad_results_are_refused),
		cmocka_unit_test(every_failed_allocation_is_told),
		cmocka_unit_test(every_failure_has_its_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
