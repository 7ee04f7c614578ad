#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/forms.h"
#include "lib/record/redact.h"

static struct redactor *
redactor_of(const char *token)
{
	struct redactor *r = NULL;

	assert_int_equal(redactor_new(token, strlen(token), &r), 0);
	return r;
}

static void
expect_text(const struct redactor *r, const char *text, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	assert_int_equal(redact_text(r, text, strlen(text), &out), 0);
	assert_string_equal(buf_cstr(&out), want);
}

static void
every_named_form_of_a_token_is_taken_out(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("ghp_Ab/9+x~Q3?z");
	static const char *const forms[] = {
		"ghp_Ab/9+x~Q3?z",
		"Z2hwX0FiLzkreH5RMz96",                     /* base64 */
		"eC1hY2Nlc3MtdG9rZW46Z2hwX0FiLzkreH5RMz96", /* x-access-token:token */
		"b2F1dGgyOmdocF9BYi85K3h+UTM/eg==",         /* oauth2:token */
		"b2F1dGgyOmdocF9BYi85K3h-UTM_eg",           /* ... in base64url */
		"ghp_Ab%2F9%2Bx~Q3%3Fz",
		"ghp_Ab%2f9%2bx~Q3%3fz",
		"ghp_Ab/9%2Bx~Q3%3Fz",
		"ghp_Ab%2F9%2Bx%7EQ3%3Fz",
		"ghp_Ab%2f9%2bx%7eQ3%3fz",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		char text[128], want[128];

		(void)snprintf(text, sizeof(text), "a %s b", forms[i]);
		(void)snprintf(want, sizeof(want), "a %s b", REDACT_MARK);
		expect_text(r, text, want);
	}
	expect_text(r, "Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hwX0FiLzkreH5RMz96\r\n",
	    "Authorization: Basic [REDACTED]\r\n");
}

static void
both_parts_of_a_pair_are_secrets(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("deploy-bot:s3cr3t-pass");

	(void)state;
	expect_text(r, "deploy-bot:s3cr3t-pass", "[REDACTED]");
	expect_text(r, "user deploy-bot, s3cr3t-pass", "user [REDACTED], [REDACTED]");
	expect_text(r, "https://deploy-bot:s3cr3t-pass@host/", "https://[REDACTED]@host/");
	expect_text(r, "Basic ZGVwbG95LWJvdDpzM2NyM3QtcGFzcw==", "Basic [REDACTED]");
	expect_text(r, "Basic ZGVwbG95LWJvdDpzM2NyM3QtcGFzcw", "Basic [REDACTED]");
	expect_text(r, "deploy-bot%3As3cr3t-pass", "[REDACTED]");
}

static void
the_fixed_user_names_are_no_secrets(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("x-access-token:0123456789");
	CLEANUP(redactor_freep) struct redactor *o = redactor_of("oauth2:0123456789");

	(void)state;
	expect_text(r, "user x-access-token", "user x-access-token");
	expect_text(o, "user oauth2", "user oauth2");
	expect_text(o, "oauth2:0123456789", "[REDACTED]");
	expect_text(o, "oauth2 0123456789", "oauth2 [REDACTED]");
}

static void
forms_below_six_bytes_stay(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("git:12345");
	CLEANUP(redactor_freep) struct redactor *none = NULL;

	(void)state;
	expect_text(r, "git 12345", "git 12345");
	expect_text(r, "git:12345", "[REDACTED]");
	assert_int_equal(redactor_new(NULL, 0, &none), 0);
	expect_text(none, "git:12345", "git:12345");
	expect_text(none, "", "");
}

/* printf 'u:ghp_0123456789' | base64 and the like: an unknown user in front. */
static void
a_token_inside_longer_base64_is_found(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("ghp_0123456789");

	(void)state;
	expect_text(r, "dTpnaHBfMDEyMzQ1Njc4OQ==", "dTp[REDACTED]Q==");
	expect_text(r, "dXU6Z2hwXzAxMjM0NTY3ODkh", "dXU6[REDACTED]h");
	expect_text(r, "dXV1OmdocF8wMTIzNDU2Nzg5Cg==", "dXV1Om[REDACTED]Cg==");
}

static void
the_longest_match_at_the_leftmost_place_wins(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("abcabc:abcabcd");

	(void)state;
	expect_text(r, "abcabcd", "[REDACTED]");
	expect_text(r, "abcabc", "[REDACTED]");
	expect_text(r, "xabcabcabcd", "x[REDACTED]abcd");
	expect_text(r, "abcabc:abcabcd", "[REDACTED]");
	expect_text(r, "abcabc:abcabce", "[REDACTED]:[REDACTED]e");
	expect_text(r, "abcababcabcd", "abcab[REDACTED]");
}

static void
a_beginning_is_held_until_it_is_decided(void **state)
{
	CLEANUP(redactor_freep) struct redactor *r = redactor_of("secret-token");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct redact_stream s;

	(void)state;
	redact_stream_init(&s);
	assert_int_equal(redact_feed(r, &s, "say: secret-tok", 15, &out), 0);
	assert_string_equal(buf_cstr(&out), "say: ");
	assert_int_equal(redact_feed(r, &s, "", 0, &out), 0);
	assert_string_equal(buf_cstr(&out), "say: ");
	assert_int_equal(redact_feed(r, &s, "o", 1, &out), 0);
	assert_string_equal(buf_cstr(&out), "say: secret-toko");
	assert_int_equal(redact_feed(r, &s, " secret-token", 13, &out), 0);
	assert_string_equal(buf_cstr(&out), "say: secret-toko [REDACTED]");
	assert_int_equal(redact_feed(r, &s, "secret", 6, &out), 0);
	assert_int_equal(redact_end(r, &s, &out), 0);
	assert_string_equal(buf_cstr(&out), "say: secret-toko [REDACTED]secret");
	redact_stream_done(&s);
}

/* What the matcher must do, in the plainest way. */
static void
naive(const struct forms *f, const char *p, size_t n, struct buf *out)
{
	const uint32_t *ends = (const uint32_t *)(const void *)f->ends.data;
	size_t nforms = f->ends.len / sizeof(*ends);

	for (size_t at = 0; at < n;) {
		size_t best = 0;

		for (size_t i = 0; i < nforms; i++) {
			size_t from = i != 0 ? ends[i - 1] : 0, len = ends[i] - from;

			if (len > best && len <= n - at &&
			    memcmp(f->bytes.data + from, p + at, len) == 0)
				best = len;
		}
		if (best != 0)
			(void)buf_add_str(out, REDACT_MARK);
		else
			(void)buf_add_byte(out, (uint8_t)p[at]);
		at += best != 0 ? best : 1;
	}
}

/* Forms, pieces of forms and noise. */
static void
make_text(const struct forms *f, unsigned *seed, struct buf *text)
{
	const uint32_t *ends = (const uint32_t *)(const void *)f->ends.data;
	size_t nforms = f->ends.len / sizeof(*ends);

	for (int piece = 0; piece < 12; piece++) {
		size_t i = (size_t)rand_r(seed) % nforms, from = i != 0 ? ends[i - 1] : 0;
		size_t len = ends[i] - from, kind = (size_t)rand_r(seed) % 4;

		if (kind == 0)
			(void)buf_add(text, f->bytes.data + from, len);
		else if (kind == 1)
			(void)buf_add(
			    text, f->bytes.data + from, (size_t)rand_r(seed) % (len + 1));
		else if (kind == 2)
			(void)buf_add_byte(text, f->bytes.data[from + len - 1]);
		else
			(void)buf_add(text, "noise\0:=%2", (size_t)rand_r(seed) % 11);
	}
}

static void
any_split_gives_what_the_naive_matcher_gives(void **state)
{
	static const char *const tokens[] = { "ghp_0123456789abcdef", "aaaaaa",
		"aaaaaaa:aaaaaaaa", "user:pa%ss w\xc3\xb6rd/+", "ababab:abababab",
		"oauth2:tokentokentoken", ":leading", "trailing:" };
	unsigned seed = 17;

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(tokens); t++) {
		CLEANUP(redactor_freep) struct redactor *r = redactor_of(tokens[t]);
		struct forms f = { BUF_INIT, BUF_INIT };

		assert_int_equal(forms_make(tokens[t], strlen(tokens[t]), &f), 0);
		for (int round = 0; round < 300; round++) {
			CLEANUP(buf_done)
			struct buf text = BUF_INIT, want = BUF_INIT, got = BUF_INIT;
			struct redact_stream s;
			size_t at = 0,
			       most = 1 + (size_t)rand_r(&seed) % (round % 3 != 0 ? 40 : 400);

			make_text(&f, &seed, &text);
			naive(&f, (const char *)text.data, text.len, &want);
			redact_stream_init(&s);
			while (at < text.len) {
				size_t n = min_size(
				    text.len - at, 1 + (size_t)rand_r(&seed) % most);

				assert_int_equal(
				    redact_feed(r, &s, text.data + at, n, &got), 0);
				at += n;
			}
			assert_int_equal(redact_end(r, &s, &got), 0);
			assert_int_equal(got.len, want.len);
			assert_memory_equal(got.data, want.data, want.len);
		}
		buf_wipe(&f.bytes);
		buf_wipe(&f.ends);
	}
}

/* Takes pieces until it has had enough of them. */
struct taker {
	struct buf out;
	int left;
};

static int
take_piece(void *arg, const void *p, size_t n)
{
	struct taker *t = arg;

	assert_true(n != 0);
	return t->left-- > 0 ? buf_add(&t->out, p, n) : E_FULL;
}

static void
a_refused_piece_ends_the_pass(void **state)
{
	static const char text[] = "one secret-token two secret-token three secr";

	(void)state;
	for (int left = 0; left <= 5; left++) {
		CLEANUP(redactor_freep) struct redactor *r = redactor_of("secret-token");
		struct taker t = { BUF_INIT, left };
		struct redact_stream s;

		redact_stream_init(&s);
		assert_int_equal(redact_pass(r, &s, text, sizeof(text) - 1, take_piece, &t),
		    left < 5 ? E_FULL : 0);
		assert_null(t.out.len != 0 ? memmem(t.out.data, t.out.len, "secret", 6) : NULL);
		if (left == 5)
			assert_string_equal(
			    buf_cstr(&t.out), "one [REDACTED] two [REDACTED] three ");
		redact_stream_done(&s);
		buf_done(&t.out);
	}
}

static void
a_token_of_the_greatest_length_works(void **state)
{
	char token[4097];
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(redactor_freep) struct redactor *r = NULL;
	struct redact_stream s;

	(void)state;
	for (size_t i = 0; i < 4096; i++)
		token[i] = (char)('!' + i * 31 % 90);
	token[4096] = '\0';
	r = redactor_of(token);
	redact_stream_init(&s);
	for (size_t i = 0; i < 4096; i++)
		assert_int_equal(redact_feed(r, &s, token + i, 1, &out), 0);
	assert_int_equal(redact_end(r, &s, &out), 0);
	assert_string_equal(buf_cstr(&out), REDACT_MARK);
}

static void
every_failed_allocation_is_told_and_shows_nothing(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		struct buf out = BUF_INIT;
		struct redactor *r = NULL;
		struct redact_stream s;
		int err, hit;

		redact_stream_init(&s);
		mem_fault_arm(n);
		err = redactor_new("user:secret-token", 17, &r);
		if (err == 0)
			err = redact_feed(r, &s, "x secret-to", 11, &out);
		if (err == 0)
			err = redact_feed(r, &s, "ken y secret", 12, &out);
		if (err == 0)
			err = redact_end(r, &s, &out);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(err, hit ? E_NOMEM : 0);
		assert_null(out.len != 0 ? memmem(out.data, out.len, "secret-t", 8) : NULL);
		buf_done(&out);
		redact_stream_done(&s);
		redactor_free(r);
		if (!hit)
			break;
	}
	assert_true(n > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_named_form_of_a_token_is_taken_out),
		cmocka_unit_test(both_parts_of_a_pair_are_secrets),
		cmocka_unit_test(the_fixed_user_names_are_no_secrets),
		cmocka_unit_test(forms_below_six_bytes_stay),
		cmocka_unit_test(a_token_inside_longer_base64_is_found),
		cmocka_unit_test(the_longest_match_at_the_leftmost_place_wins),
		cmocka_unit_test(a_beginning_is_held_until_it_is_decided),
		cmocka_unit_test(any_split_gives_what_the_naive_matcher_gives),
		cmocka_unit_test(a_refused_piece_ends_the_pass),
		cmocka_unit_test(a_token_of_the_greatest_length_works),
		cmocka_unit_test(every_failed_allocation_is_told_and_shows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
