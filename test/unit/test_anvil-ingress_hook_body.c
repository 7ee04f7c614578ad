/* cmd/anvil-ingress/hook_body.c: digest, proof and scan in one pass, and once more over what was
 * kept. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hook_body.h"
#include "cmd/anvil-ingress/seal.h"
#include "gen/project.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define PROJECT "prj_0123456789abcdefghijAB"
#define WEBHOOK "whk_0123456789abcdefghijAB"
#define KEYS    "{\"current\":1,\"keys\":{\"1\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\"}}"

struct fix {
	struct ingress in;
	struct hook_body body;
	char proof[128];
};

/* ---- material ---- */

static struct hook_material *
material(const struct ingress *in, enum provider provider, const char *secret)
{
	struct vault_sealed sealed = { .ciphertext = NULL };
	struct webhook_get_verification_found found = { .webhook_id = WEBHOOK,
		.version = 7,
		.repo_url = "https://github.com/a/b",
		.default_branch = "main" };
	struct hook_material *m;

	assert_int_equal(
	    seal_webhook_secret(in, PROJECT, WEBHOOK, secret, strlen(secret), &sealed), 0);
	found.sealed_secret = (struct sealed_value) { sealed.ciphertext, sealed.nonce,
		sealed.key_version };
	m = hook_material_new(PROJECT, provider, 0, &found);
	assert_non_null(m);
	vault_sealed_done(&sealed);
	return m;
}

static void
sign(struct fix *f, const char *secret, const char *text)
{
	const struct webhook_forge *forge = f->body.forge;
	uint8_t digest[VAULT_SHA256_BYTES];
	struct vault_hmac h;
	size_t n = strlen(forge->proof_prefix);

	if (forge->proof == WEBHOOK_PROOF_TOKEN) {
		n = (size_t)snprintf(f->proof, sizeof(f->proof), "%s", secret);
	} else {
		vault_hmac_init(&h, secret, strlen(secret));
		vault_hmac_update(&h, text, strlen(text));
		vault_hmac_final(&h, digest);
		memcpy(f->proof, forge->proof_prefix, n);
		hex_encode(digest, sizeof(digest), f->proof + n);
		n += 2 * sizeof(digest);
	}
	f->body.proof = (struct str_view) { f->proof, n };
}

static struct fix *
fix_of(void **state, enum provider provider, enum webhook_media media)
{
	struct fix *f = *state;

	f->body = (struct hook_body) {
		.in = &f->in, .forge = webhook_forge_of(provider), .media = media
	};
	return f;
}

/* A whole pass in pieces of ${piece}. */
static int
pass(struct hook_body *b, const struct hook_material *m, const char *text, size_t n,
    size_t piece)
{
	int r = hook_body_begin(b, m, (int64_t)n);

	if (r < 0)
		return r;
	for (size_t at = 0; at < n; at += piece)
		hook_body_feed(b, (const uint8_t *)text + at, min_size(piece, n - at));
	hook_body_end(b);
	return 0;
}

/* ---- proofs ---- */

static void
each_forge_proves_itself_in_pieces_of_any_size(void **state)
{
	static const char text[] = "{\"ref\":\"refs/heads/main\"}";
	char digits[VAULT_SHA256_HEX_SIZE];

	vault_sha256_hex(text, sizeof(text) - 1, digits);
	for (int p = 0; p < PROVIDER_COUNT; p++)
		for (size_t piece = 1; piece < sizeof(text); piece++) {
			struct fix *f = fix_of(state, (enum provider)p, WEBHOOK_MEDIA_JSON);
			CLEANUP(hook_material_unrefp)
			struct hook_material *m = material(&f->in, (enum provider)p, "s3cret");
			struct webhook_fault fault;

			sign(f, "s3cret", text);
			assert_int_equal(pass(&f->body, m, text, sizeof(text) - 1, piece), 0);
			assert_int_equal(f->body.secret_err, 0);
			assert_true(f->body.is_verified);
			assert_string_equal(f->body.sha256, digits);
			assert_int_equal(f->body.nbytes, sizeof(text) - 1);
			assert_int_equal(webhook_scan_end(f->body.scan, &fault), 0);
			hook_body_done(&f->body);

			sign(f, "s3creT", text);
			assert_int_equal(pass(&f->body, m, text, sizeof(text) - 1, piece), 0);
			assert_false(f->body.is_verified);
			hook_body_done(&f->body);
		}
}

static void
a_proof_that_is_not_there_proves_nothing(void **state)
{
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		struct fix *f = fix_of(state, (enum provider)p, WEBHOOK_MEDIA_JSON);
		CLEANUP(hook_material_unrefp)
		struct hook_material *m = material(&f->in, (enum provider)p, "s3cret");

		assert_int_equal(pass(&f->body, m, "{}", 2, 2), 0);
		assert_false(f->body.is_verified);
		f->body.proof = (struct str_view) { "", 0 };
		assert_int_equal(hook_body_again(&f->body, m), 0);
		assert_false(f->body.is_verified);
		hook_body_done(&f->body);
	}
}

static void
an_empty_secret_does_not_count_as_one(void **state)
{
	for (int p = 0; p < PROVIDER_COUNT; p++) {
		struct fix *f = fix_of(state, (enum provider)p, WEBHOOK_MEDIA_JSON);
		CLEANUP(hook_material_unrefp)
		struct hook_material *m = material(&f->in, (enum provider)p, "");

		sign(f, "", "{}");
		assert_int_equal(pass(&f->body, m, "{}", 2, 1), 0);
		assert_int_equal(f->body.secret_err, E_SEAL);
		assert_false(f->body.is_verified);
		hook_body_done(&f->body);
	}
}

static void
a_secret_that_does_not_open_verifies_nothing(void **state)
{
	struct fix *f = fix_of(state, PROVIDER_GITHUB, WEBHOOK_MEDIA_JSON);
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = material(&f->in, PROVIDER_GITHUB, "s3cret");
	struct vault_keys *keys = f->in.keys;

	sign(f, "s3cret", "{}");
	/* Of another webhook, of a version that is gone, without any key. */
	m->webhook_id[ID_SIZE - 2] = 'C';
	assert_int_equal(pass(&f->body, m, "{}", 2, 1), 0);
	assert_int_equal(f->body.secret_err, E_SEAL);
	assert_false(f->body.is_verified);
	m->webhook_id[ID_SIZE - 2] = 'B';
	m->secret.key_version = 2;
	assert_int_equal(hook_body_again(&f->body, m), 0);
	assert_int_equal(f->body.secret_err, E_NOKEY);
	assert_false(f->body.is_verified);
	m->secret.key_version = 1;
	f->in.keys = NULL;
	assert_int_equal(hook_body_again(&f->body, m), 0);
	f->in.keys = keys;
	assert_int_equal(f->body.secret_err, E_NOKEY);
	assert_false(f->body.is_verified);
	assert_int_equal(hook_body_again(&f->body, m), 0);
	assert_true(f->body.is_verified);
	hook_body_done(&f->body);
}

static void
a_form_is_signed_raw_or_decoded(void **state)
{
	static const char form[] = "a=b&payload=%7b%22x%22:+1%7D&c", json[] = "{\"x\": 1}";
	static const struct {
		enum provider provider;
		const char *is_signed;
	} rows[] = { { PROVIDER_GITHUB, form }, { PROVIDER_GITEA, json } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t piece = 1; piece < sizeof(form); piece++) {
			struct fix *f = fix_of(state, rows[i].provider, WEBHOOK_MEDIA_FORM);
			CLEANUP(hook_material_unrefp)
			struct hook_material *m = material(&f->in, rows[i].provider, "s");
			struct webhook_fault fault;

			sign(f, "s", rows[i].is_signed);
			assert_int_equal(pass(&f->body, m, form, sizeof(form) - 1, piece), 0);
			assert_int_equal(f->body.form_err, 0);
			assert_true(f->body.is_verified);
			assert_int_equal(f->body.nbytes, sizeof(form) - 1);
			assert_int_equal(webhook_scan_end(f->body.scan, &fault), 0);
			sign(f, "s", rows[!i].is_signed);
			assert_int_equal(hook_body_again(&f->body, m), 0);
			assert_false(f->body.is_verified);
			hook_body_done(&f->body);
		}
}

static void
a_broken_form_is_verified_where_the_raw_bytes_are_signed(void **state)
{
	static const char form[] = "payload={}&payload={}";

	for (int p = 0; p < PROVIDER_COUNT; p++) {
		struct fix *f = fix_of(state, (enum provider)p, WEBHOOK_MEDIA_FORM);
		CLEANUP(hook_material_unrefp)
		struct hook_material *m = material(&f->in, (enum provider)p, "s");

		if (f->body.forge->forms == WEBHOOK_FORMS_NONE)
			continue;
		sign(f, "s", f->body.forge->forms == WEBHOOK_FORMS_BODY ? form : "{}");
		assert_int_equal(pass(&f->body, m, form, sizeof(form) - 1, 3), 0);
		assert_int_equal(f->body.form_err, E_PARSE);
		assert_non_null(f->body.form_message);
		assert_int_equal(
		    f->body.is_verified, f->body.forge->forms == WEBHOOK_FORMS_BODY);
		hook_body_done(&f->body);
	}
}

/* ---- what is kept ---- */

static void
a_body_is_kept_up_to_its_bound(void **state)
{
	static const size_t sizes[] = { 1, HOOK_KEPT_BYTES - 1, HOOK_KEPT_BYTES,
		HOOK_KEPT_BYTES + 1 };
	static char text[HOOK_KEPT_BYTES + 1];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int declared = 0; declared < 2; declared++) {
			struct fix *f = fix_of(state, PROVIDER_GITHUB, WEBHOOK_MEDIA_JSON);
			CLEANUP(hook_material_unrefp)
			struct hook_material *m = material(&f->in, PROVIDER_GITHUB, "s");
			int is_kept = sizes[i] <= HOOK_KEPT_BYTES;

			assert_int_equal(
			    hook_body_begin(&f->body, m, declared ? (int64_t)sizes[i] : -1), 0);
			for (size_t at = 0; at < sizes[i]; at += 1000)
				hook_body_feed(&f->body, (const uint8_t *)text + at,
				    min_size(1000, sizes[i] - at));
			hook_body_end(&f->body);
			assert_int_equal(hook_body_is_kept(&f->body), is_kept);
			assert_true(is_kept ? f->in.hook_kept_bytes >= sizes[i]
					    : f->in.hook_kept_bytes == 0);
			assert_true(f->in.hook_kept_bytes <= HOOK_KEPT_BYTES);
			hook_body_done(&f->body);
			assert_int_equal(f->in.hook_kept_bytes, 0);
		}
}

static void
all_bodies_together_are_kept_up_to_their_bound(void **state)
{
	struct fix *f = fix_of(state, PROVIDER_GITLAB, WEBHOOK_MEDIA_JSON);
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = material(&f->in, PROVIDER_GITLAB, "s");

	f->in.hook_kept_bytes = HOOK_KEPT_ALL_BYTES - 100;
	assert_int_equal(pass(&f->body, m, "{}", 2, 2), 0);
	assert_true(hook_body_is_kept(&f->body));
	hook_body_done(&f->body);
	assert_int_equal(f->in.hook_kept_bytes, HOOK_KEPT_ALL_BYTES - 100);
	f->in.hook_kept_bytes = HOOK_KEPT_ALL_BYTES;
	sign(f, "s", "{}");
	assert_int_equal(pass(&f->body, m, "{}", 2, 2), 0);
	assert_false(hook_body_is_kept(&f->body));
	assert_true(f->body.is_verified);
	hook_body_done(&f->body);
	assert_int_equal(f->in.hook_kept_bytes, HOOK_KEPT_ALL_BYTES);
	f->in.hook_kept_bytes = 0;
}

static void
an_empty_body_can_be_gone_over_again(void **state)
{
	struct fix *f = fix_of(state, PROVIDER_GITHUB, WEBHOOK_MEDIA_JSON);
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = material(&f->in, PROVIDER_GITHUB, "s");
	CLEANUP(hook_material_unrefp)
	struct hook_material *other = material(&f->in, PROVIDER_GITHUB, "t");
	char sha256[VAULT_SHA256_HEX_SIZE];

	sign(f, "t", "");
	assert_int_equal(pass(&f->body, m, "", 0, 1), 0);
	assert_false(f->body.is_verified);
	memcpy(sha256, f->body.sha256, sizeof(sha256));
	assert_int_equal(hook_body_again(&f->body, other), 0);
	assert_true(f->body.is_verified);
	assert_string_equal(f->body.sha256, sha256);
	hook_body_done(&f->body);
	/* Nothing was begun. */
	hook_body_done(&f->body);
	f->body = (struct hook_body) { .in = NULL };
	hook_body_done(&f->body);
}

/* ---- without memory ---- */

struct scarce {
	struct fix *f;
	struct hook_material *m;
};

static int
try_passes(void *arg)
{
	static const char form[] = "payload=%7b%22ref%22:%22x%22%7d";
	struct scarce *s = arg;
	struct webhook_fault fault;
	int r = pass(&s->f->body, s->m, form, sizeof(form) - 1, 5);

	if (r == 0)
		r = webhook_scan_end(s->f->body.scan, &fault);
	if (r == 0 && !hook_body_is_kept(&s->f->body))
		r = E_NOMEM;
	if (r == 0)
		r = hook_body_again(&s->f->body, s->m);
	if (r == 0)
		r = webhook_scan_end(s->f->body.scan, &fault);
	hook_body_done(&s->f->body);
	assert_int_equal(s->f->in.hook_kept_bytes, 0);
	return r;
}

static void
a_pass_survives_every_failed_allocation(void **state)
{
	struct fix *f = fix_of(state, PROVIDER_GITHUB, WEBHOOK_MEDIA_FORM);
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = material(&f->in, PROVIDER_GITHUB, "s");
	struct scarce s = { f, m };

	assert_true(starve(try_passes, &s) >= 5);
}

static int
setup(void **state)
{
	static struct fix f;

	*state = &f;
	return vault_keys_parse(KEYS, strlen(KEYS), &f.in.keys, NULL);
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	f->in.keys = vault_keys_free(f->in.keys);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_forge_proves_itself_in_pieces_of_any_size),
		cmocka_unit_test(a_proof_that_is_not_there_proves_nothing),
		cmocka_unit_test(an_empty_secret_does_not_count_as_one),
		cmocka_unit_test(a_secret_that_does_not_open_verifies_nothing),
		cmocka_unit_test(a_form_is_signed_raw_or_decoded),
		cmocka_unit_test(a_broken_form_is_verified_where_the_raw_bytes_are_signed),
		cmocka_unit_test(a_body_is_kept_up_to_its_bound),
		cmocka_unit_test(all_bodies_together_are_kept_up_to_their_bound),
		cmocka_unit_test(an_empty_body_can_be_gone_over_again),
		cmocka_unit_test(a_pass_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
