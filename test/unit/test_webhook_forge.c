#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "test/support/forge_rig.h"
#include "test/support/unit.h"

#define GITHUB webhook_forge_of(PROVIDER_GITHUB)
#define GITLAB webhook_forge_of(PROVIDER_GITLAB)
#define GITEA  webhook_forge_of(PROVIDER_GITEA)

#define DIGITS  "00112233445566778899aabbccddeeff"
#define DIGITS2 DIGITS DIGITS

static void
every_forge_has_a_whole_row(void **state)
{
	(void)state;
	for (int i = 0; i < PROVIDER_COUNT; i++) {
		const struct webhook_forge *f = webhook_forge_of((enum provider)i);

		assert_int_equal((int)f->provider, i);
		assert_non_null(f->proof_header);
		assert_non_null(f->event_header);
		assert_non_null(f->id_headers[0]);
		assert_non_null(f->media_hint);
		assert_non_null(f->push);
		assert_true(f->nurls >= 1 && f->nurls <= WEBHOOK_URLS_MAX);
		for (size_t u = 0; u < f->nurls; u++)
			assert_true((f->members >> f->urls[u] & 1) != 0);
	}
}

static void
the_media_type_decides_how_a_body_is_read(void **state)
{
	static const struct {
		const char *type;
		enum webhook_media github, gitlab, gitea;
	} rows[] = {
#define JSON WEBHOOK_MEDIA_JSON
#define FORM WEBHOOK_MEDIA_FORM
#define NONE WEBHOOK_MEDIA_UNSUPPORTED
		{ "application/json", JSON, JSON, JSON },
		{ "Application/JSON", JSON, JSON, JSON },
		{ "application/json; charset=utf-8", JSON, JSON, JSON },
		{ "application/json;charset=latin1", JSON, JSON, JSON },
		{ " application/json ;", JSON, JSON, JSON },
		{ "application/x-www-form-urlencoded", FORM, NONE, FORM },
		{ "APPLICATION/X-WWW-FORM-URLENCODED ; a=b", FORM, NONE, FORM },
		{ "application/json, application/json", NONE, NONE, NONE },
		{ "application/jsonp", NONE, NONE, NONE },
		{ "application/jso", NONE, NONE, NONE },
		{ "application / json", NONE, NONE, NONE },
		{ "text/json", NONE, NONE, NONE },
		{ "multipart/form-data; boundary=x", NONE, NONE, NONE },
		{ ";application/json", NONE, NONE, NONE },
		{ "", NONE, NONE, NONE },
		{ NULL, NONE, NONE, NONE },
#undef JSON
#undef FORM
#undef NONE
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (webhook_media_of(GITHUB, rows[i].type) != rows[i].github ||
		    webhook_media_of(GITLAB, rows[i].type) != rows[i].gitlab ||
		    webhook_media_of(GITEA, rows[i].type) != rows[i].gitea)
			fail_msg("%s", rows[i].type != NULL ? rows[i].type : "(none)");
	}
}

/* ---- claims ---- */

#define LIST(...)                 \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

static struct webhook_claim
claim_of(const struct webhook_forge *f, const char *const *list)
{
	struct webhook_claim claim;

	webhook_claim_read(f, rig_header, (void *)(uintptr_t)list, &claim);
	return claim;
}

static void
view_is(struct str_view v, const char *want)
{
	if (want == NULL) {
		assert_null(v.p);
		return;
	}
	assert_non_null(v.p);
	assert_int_equal(v.n, strlen(want));
	assert_memory_equal(v.p, want, v.n);
}

static void
claims_are_trimmed_and_read_from_the_headers_of_their_forge(void **state)
{
	struct webhook_claim c;

	(void)state;
	c = claim_of(GITHUB,
	    LIST("X-Hub-Signature-256", " sha256=1 ", "X-GitHub-Event", "\tpush ",
		"X-GitHub-Delivery", " 72d3162e-cc78-11e3-81ab-4c9367dc0958"));
	assert_null(c.bad_header);
	view_is(c.proof, "sha256=1");
	view_is(c.event_name, "push");
	view_is(c.delivery_id, "72d3162e-cc78-11e3-81ab-4c9367dc0958");
	c = claim_of(GITLAB,
	    LIST("X-Gitlab-Token", "s3cret", "X-Gitlab-Event", "Push Hook",
		"X-Gitlab-Event-UUID", "uuid", "Idempotency-Key", "key"));
	assert_null(c.bad_header);
	view_is(c.proof, "s3cret");
	view_is(c.event_name, "Push Hook");
	view_is(c.delivery_id, "key");
}

static void
gitea_is_not_taken_for_github_whose_headers_it_sends_too(void **state)
{
	const char *const *all = LIST("X-Hub-Signature-256", "sha256=11", "X-GitHub-Event", "a",
	    "X-GitHub-Delivery", "1", "X-Gitea-Signature", "22", "X-Gitea-Event", "b",
	    "X-Gitea-Delivery", "2");
	struct webhook_claim c;

	(void)state;
	c = claim_of(GITEA, all);
	assert_null(c.bad_header);
	view_is(c.proof, "22");
	view_is(c.event_name, "b");
	view_is(c.delivery_id, "2");
	c = claim_of(GITHUB, all);
	view_is(c.proof, "sha256=11");
	view_is(c.event_name, "a");
	view_is(c.delivery_id, "1");
	c = claim_of(GITEA,
	    LIST("X-Hub-Signature-256", "sha256=1", "X-GitHub-Event", "push",
		"X-GitHub-Delivery", "1"));
	assert_string_equal(c.bad_header, "X-Gitea-Signature");
}

static void
the_first_bad_header_is_named(void **state)
{
	struct webhook_claim c;

	(void)state;
	c = claim_of(GITLAB, LIST("X-Gitlab-Event", "Push Hook", "Idempotency-Key", "k"));
	assert_string_equal(c.bad_header, "X-Gitlab-Token");
	view_is(c.event_name, "Push Hook");
	view_is(c.delivery_id, "k");
	c = claim_of(GITLAB, LIST("X-Gitlab-Token", " \t ", "X-Gitlab-Event", ""));
	assert_string_equal(c.bad_header, "X-Gitlab-Token");
	view_is(c.proof, NULL);
	c = claim_of(GITLAB, LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", " "));
	assert_string_equal(c.bad_header, "X-Gitlab-Event");
	c = claim_of(GITLAB, LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", "Push Hook"));
	assert_string_equal(c.bad_header, "Idempotency-Key");
	view_is(c.delivery_id, NULL);
}

static void
gitlabs_second_choice_of_id_counts_when_the_first_is_missing(void **state)
{
	struct webhook_claim c;

	(void)state;
	c = claim_of(GITLAB,
	    LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID",
		"uuid"));
	assert_null(c.bad_header);
	view_is(c.delivery_id, "uuid");
	c = claim_of(GITLAB,
	    LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", "Push Hook", "Idempotency-Key", "  ",
		"X-Gitlab-Event-UUID", "uuid"));
	assert_null(c.bad_header);
	view_is(c.delivery_id, "uuid");
	c = claim_of(GITLAB,
	    LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID",
		"\x01"));
	assert_string_equal(c.bad_header, "X-Gitlab-Event-UUID");
	c = claim_of(GITLAB,
	    LIST("X-Gitlab-Token", "t", "X-Gitlab-Event", "Push Hook", "Idempotency-Key",
		"\xc3\xbc", "X-Gitlab-Event-UUID", "uuid"));
	assert_string_equal(c.bad_header, "Idempotency-Key");
}

static const char *
bad_header_of(const char *event, const char *id)
{
	return claim_of(GITEA,
	    LIST("X-Gitea-Signature", "x", "X-Gitea-Event", event, "X-Gitea-Delivery", id))
	    .bad_header;
}

static void
names_and_ids_have_their_bounds(void **state)
{
	char text[WEBHOOK_ID_MAX + 2];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[WEBHOOK_ID_MAX] = '\0';
	assert_null(bad_header_of("push", text));
	text[WEBHOOK_ID_MAX] = 'a';
	text[WEBHOOK_ID_MAX + 1] = '\0';
	assert_string_equal(bad_header_of("push", text), "X-Gitea-Delivery");
	text[WEBHOOK_EVENT_NAME_MAX + 1] = '\0';
	assert_string_equal(bad_header_of(text, "1"), "X-Gitea-Event");
	text[WEBHOOK_EVENT_NAME_MAX] = '\0';
	assert_null(bad_header_of(text, "1"));
	assert_null(bad_header_of("\xc3\xbc", "a b~!"));
	assert_string_equal(bad_header_of("\xc3", "1"), "X-Gitea-Event");
	assert_string_equal(bad_header_of("a\x7f", "1"), "X-Gitea-Event");
	assert_string_equal(bad_header_of("a", "a\x7f"), "X-Gitea-Delivery");
	assert_string_equal(bad_header_of("a", "a\tb"), "X-Gitea-Delivery");
}

/* ---- proofs and names ---- */

static int
digest_of(const struct webhook_forge *f, const char *proof, uint8_t out[32])
{
	return webhook_proof_digest(f, (struct str_view) { proof, strlen(proof) }, out);
}

static void
a_digest_is_64_digits_of_any_case_behind_its_prefix(void **state)
{
	static const char *const bad[] = { "", "sha256=", DIGITS2, "sha256=" DIGITS,
		"SHA256=" DIGITS2, "Sha256=" DIGITS2, "sha1=" DIGITS2, "sha256=" DIGITS2 "0",
		"sha256= " DIGITS2, "sha256:" DIGITS2,
		"sha256=" DIGITS "00112233445566778899aabbccddeefg",
		"sha256=" DIGITS "0x112233445566778899aabbccddeeff" };
	static const uint8_t want[32] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55,
		0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	uint8_t out[32];

	(void)state;
	assert_int_equal(digest_of(GITHUB, "sha256=" DIGITS2, out), 0);
	assert_memory_equal(out, want, 32);
	assert_int_equal(
	    digest_of(GITHUB, "sha256=" DIGITS "00112233445566778899AABBCCddEEff", out), 0);
	assert_memory_equal(out, want, 32);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(digest_of(GITHUB, bad[i], out), E_INVAL);
	assert_int_equal(digest_of(GITEA, DIGITS2, out), 0);
	assert_memory_equal(out, want, 32);
	assert_int_equal(digest_of(GITEA, "sha256=" DIGITS2, out), E_INVAL);
	assert_int_equal(digest_of(GITEA, DIGITS, out), E_INVAL);
	assert_int_equal(digest_of(GITEA, "", out), E_INVAL);
	assert_int_equal(
	    webhook_proof_digest(GITHUB, (struct str_view) { NULL, 0 }, out), E_INVAL);
	assert_int_equal(
	    webhook_proof_digest(GITEA, (struct str_view) { NULL, 0 }, out), E_INVAL);
}

static void
claimed_names_are_shown_with_their_odd_bytes_escaped(void **state)
{
	char out[WEBHOOK_CLAIM_SIZE], text[400];

	(void)state;
	assert_null(webhook_claim_text((struct str_view) { NULL, 0 }, out));
	assert_string_equal(
	    webhook_claim_text((struct str_view) { "push \\", 6 }, out), "push \\");
	assert_string_equal(
	    webhook_claim_text((struct str_view) { "a\0\x1b[\xc3\xbc\x7f", 7 }, out),
	    "a\\x00\\x1b[\\xc3\\xbc\\x7f");
	memset(text, 'a', sizeof(text));
	assert_int_equal(
	    strlen(webhook_claim_text((struct str_view) { text, sizeof(text) }, out)), 128);
	text[125] = '\n';
	webhook_claim_text((struct str_view) { text, sizeof(text) }, out);
	assert_int_equal(strlen(out), 125);
	text[125] = 'a';
	text[124] = '\n';
	webhook_claim_text((struct str_view) { text, sizeof(text) }, out);
	assert_int_equal(strlen(out), 128);
	assert_string_equal(out + 124, "\\x0a");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_forge_has_a_whole_row),
		cmocka_unit_test(the_media_type_decides_how_a_body_is_read),
		cmocka_unit_test(claims_are_trimmed_and_read_from_the_headers_of_their_forge),
		cmocka_unit_test(gitea_is_not_taken_for_github_whose_headers_it_sends_too),
		cmocka_unit_test(the_first_bad_header_is_named),
		cmocka_unit_test(gitlabs_second_choice_of_id_counts_when_the_first_is_missing),
		cmocka_unit_test(names_and_ids_have_their_bounds),
		cmocka_unit_test(a_digest_is_64_digits_of_any_case_behind_its_prefix),
		cmocka_unit_test(claimed_names_are_shown_with_their_odd_bytes_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
