#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/webhook/webhook.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

static void
collect(void *arg, const void *p, size_t n)
{
	assert_true(n > 0);
	assert_int_equal(buf_add(arg, p, n), 0);
}

/* In pieces of ${piece} bytes; 0: at once. */
static int
decode(const char *text, size_t n, size_t piece, struct buf *out)
{
	CLEANUP(webhook_form_freep) struct webhook_form *f = webhook_form_new(collect, out);
	const char *say = NULL;
	int r;

	if (f == NULL)
		return E_NOMEM;
	if (piece == 0)
		piece = n;
	for (size_t at = 0; at < n; at += piece)
		webhook_form_feed(f, text + at, min_size(piece, n - at));
	r = webhook_form_end(f, &say);
	assert_true(r == 0 ? say == NULL : say != NULL);
	return r;
}

static void
payload_is(const char *text, const char *want)
{
	for (size_t piece = 0; piece <= 4; piece++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		if (decode(text, strlen(text), piece, &out) != 0)
			fail_msg("refused: %s", text);
		if (out.len != strlen(want) ||
		    (out.len > 0 && memcmp(out.data, want, out.len) != 0))
			fail_msg("%s: %s", text, buf_cstr(&out));
	}
}

static void
the_payload_is_decoded(void **state)
{
	(void)state;
	payload_is("payload={}", "{}");
	payload_is("payload=", "");
	payload_is("payload", "");
	payload_is("payload=%7B%22a%22%3A+1%7d", "{\"a\": 1}");
	payload_is("payload=a=b=c", "a=b=c");
	payload_is("payload=%26%3D%2B%25", "&=+%");
	payload_is("payload=\xc3\xbc%C3%BC\r\n", "\xc3\xbc\xc3\xbc\r\n");
}

static void
other_fields_are_passed_over(void **state)
{
	(void)state;
	payload_is("a=b&payload=x", "x");
	payload_is("payload=x&a=b", "x");
	payload_is("&&payload=x&&", "x");
	payload_is("a&=&payload=x&payload2=y&payloa=z&Payload=q", "x");
	payload_is("a=payload&payload=x&b=%70ayload", "x");
	payload_is("payload+=y&+payload=z&payload=x", "x");
	payload_is("a=payload=y&payload=x", "x");
}

static void
names_may_be_encoded(void **state)
{
	(void)state;
	payload_is("%70ayload=x", "x");
	payload_is("%70%61%79%6c%6F%61%64=x", "x");
	payload_is("payload%3D=y&payload=x", "x");
	payload_is("payload%00=y&payload=x", "x");
}

static void
a_nul_is_a_byte_like_others(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(decode("payload=a%00b\0c", 15, 0, &out), 0);
	assert_int_equal(out.len, 5);
	assert_memory_equal(out.data, "a\0b\0c", 5);
}

static void
forms_without_one_sound_payload_are_refused(void **state)
{
	static const char *const bad[] = { "", "a=b", "Payload=x", "payload=x&payload=x",
		"payload=x&%70ayload=x", "payload&payload=x", "payload=x&payload",
		"payload=x&payload=y&payload=z", "payload=%", "payload=%2", "payload=%2g",
		"payload=%g2", "payload=%%41", "payload=% 41", "payload=x&a=%zz",
		"%zz=1&payload=x", "payload=x%", "payload=x&a%2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t piece = 0; piece <= 3; piece++) {
			CLEANUP(buf_done) struct buf out = BUF_INIT;

			if (decode(bad[i], strlen(bad[i]), piece, &out) != E_PARSE)
				fail_msg("accepted: %s", bad[i]);
		}
}

static void
a_second_payload_is_not_handed_out(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	static const char text[] = "payload=first&payload=second";

	(void)state;
	assert_int_equal(decode(text, sizeof(text) - 1, 0, &out), E_PARSE);
	assert_string_equal(buf_cstr(&out), "first");
}

struct digest {
	size_t n, sum, most;
};

static void
add_up(void *arg, const void *p, size_t n)
{
	struct digest *d = arg;
	const uint8_t *bytes = p;

	d->n += n;
	if (n > d->most)
		d->most = n;
	for (size_t i = 0; i < n; i++)
		d->sum += bytes[i];
}

static void
big_forms_come_in_small_pieces(void **state)
{
	struct digest d = { 0 };
	CLEANUP(webhook_form_freep) struct webhook_form *f = webhook_form_new(add_up, &d);
	char piece[30000];
	const char *say = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(piece); i += 3)
		memcpy(piece + i, "%01", 3);
	webhook_form_feed(f, "payload=", 8);
	for (size_t n = 0; n < 25u << 20; n += sizeof(piece))
		webhook_form_feed(f, piece, sizeof(piece));
	assert_int_equal(webhook_form_end(f, &say), 0);
	assert_true(d.n > 8u << 20);
	assert_int_equal(d.sum, d.n);
	assert_true(d.most <= 4096);
}

static int
decode_one(void *arg)
{
	CLEANUP(webhook_form_freep) struct webhook_form *f = webhook_form_new(add_up, arg);
	const char *say = NULL;

	if (f == NULL)
		return E_NOMEM;
	webhook_form_feed(f, "payload=%7B%7D", 14);
	return webhook_form_end(f, &say);
}

static void
a_failed_allocation_is_told(void **state)
{
	struct digest d = { 0 };

	(void)state;
	assert_int_equal(starve(decode_one, &d), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_payload_is_decoded),
		cmocka_unit_test(other_fields_are_passed_over),
		cmocka_unit_test(names_may_be_encoded),
		cmocka_unit_test(a_nul_is_a_byte_like_others),
		cmocka_unit_test(forms_without_one_sound_payload_are_refused),
		cmocka_unit_test(a_second_payload_is_not_handed_out),
		cmocka_unit_test(big_forms_come_in_small_pieces),
		cmocka_unit_test(a_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
