#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

#define PROJECT_A "prj_0123456789abcdefghijAB"
#define PROJECT_B "prj_0123456789abcdefghijAC"
#define ZERO_KEY  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static struct vault_keys *
parsed(const char *text)
{
	char why[VAULT_WHY_SIZE] = "";
	struct vault_keys *k = NULL;

	if (vault_keys_parse(text, strlen(text), &k, why) < 0)
		fail_msg("%s: %s", text, why);
	return k;
}

static void
a_set_survives_its_text_form(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *a = vault_keys_new(), *b = NULL;
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;

	(void)state;
	for (int i = 0; i < 12; i++)
		assert_int_equal(vault_keys_rotate(a), 0);
	assert_int_equal(vault_keys_current(a), 12);
	assert_int_equal(vault_keys_format(a, &text), 0);
	assert_int_equal(vault_keys_parse((const char *)text.data, text.len, &b, NULL), 0);
	assert_int_equal(vault_keys_count(b), 12);
	assert_int_equal(vault_keys_current(b), 12);
	assert_memory_equal(a->keys, b->keys, sizeof(a->keys));
}

static void
a_set_covers_what_it_has_every_key_of(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *old = vault_keys_new(), *new = NULL;
	CLEANUP(vault_keys_freep)
	struct vault_keys *other = parsed("{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"}}");
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;

	(void)state;
	assert_int_equal(vault_keys_rotate(old), 0);
	assert_int_equal(vault_keys_format(old, &text), 0);
	assert_int_equal(vault_keys_parse((const char *)text.data, text.len, &new, NULL), 0);
	assert_true(vault_keys_cover(new, old));
	assert_int_equal(vault_keys_rotate(new), 0);
	assert_true(vault_keys_cover(new, old));
	assert_false(vault_keys_cover(old, new));
	/* The number alone is not enough. */
	assert_false(vault_keys_cover(new, other));
}

static void
versions_come_in_any_order_and_are_listed_ascending(void **state)
{
	CLEANUP(vault_keys_freep)
	struct vault_keys *k = parsed(
	    " {\n\t\"keys\" : {\"7\":\"" ZERO_KEY "\" , \"2\": \"" ZERO_KEY
	    "\",\"2147483647\":\"" ZERO_KEY "\"},\r\n\"current\":7} ");

	(void)state;
	assert_int_equal(vault_keys_count(k), 3);
	assert_int_equal(vault_keys_version(k, 0), 2);
	assert_int_equal(vault_keys_version(k, 1), 7);
	assert_int_equal(vault_keys_version(k, 2), INT32_MAX);
	assert_true(vault_keys_have(k, 2));
	assert_false(vault_keys_have(k, 3));
}

static void
a_text_that_is_wrong_is_refused_and_the_reason_named(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *says;
	} rows[] = {
		{ "", E_PARSE, "not JSON at byte 1" },
		{ "[]", E_PARSE, "not JSON" },
		{ "{", E_PARSE, "not JSON at byte 2" },
		{ "{}", E_INVAL, "at least one key" },
		{ "{\"current\":1}", E_INVAL, "at least one key" },
		{ "{\"current\":1,\"keys\":{}}", E_INVAL, "at least one key" },
		{ "{\"keys\":{\"1\":\"" ZERO_KEY "\"}}", E_INVAL, "current: missing" },
		{ "{\"current\":2,\"keys\":{\"1\":\"" ZERO_KEY "\"}}", E_INVAL,
		    "current: version 2 is not among the keys" },
		{ "{\"current\":0,\"keys\":{\"1\":\"" ZERO_KEY "\"}}", E_INVAL,
		    "current: expected" },
		{ "{\"current\":\"1\",\"keys\":{\"1\":\"" ZERO_KEY "\"}}", E_INVAL, "current" },
		{ "{\"current\":1,\"current\":1,\"keys\":{}}", E_INVAL,
		    "\"current\" is unknown" },
		{ "{\"current\":1,\"keys\":{\"1\":\"AAAA\"}}", E_INVAL,
		    "version 1 has 4 characters, expected 43" },
		{ "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "A\"}}", E_INVAL,
		    "44 characters" },
		{ "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\",\"1\":\"" ZERO_KEY "\"}}",
		    E_INVAL, "version 1 is given twice" },
		{ "{\"current\":1,\"keys\":{\"01\":\"" ZERO_KEY "\"}}", E_INVAL,
		    "\"01\" is not a key version" },
		{ "{\"current\":1,\"keys\":{\"2147483648\":\"" ZERO_KEY "\"}}", E_INVAL,
		    "not a key" },
		{ "{\"current\":1,\"keys\":{\"1\":17}}", E_PARSE, "not JSON" },
		{ "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"},}", E_PARSE, "not JSON" },
		{ "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"}} x", E_PARSE, "not JSON" },
		{ "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"},\"x\":1}", E_INVAL,
		    "\"x\" is unknown" },
		{ "{\"project\":\"prj_short\",\"current\":1,\"keys\":{}}", E_INVAL, "project" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char why[VAULT_WHY_SIZE] = "";
		struct vault_keys *k = NULL;

		assert_int_equal(
		    vault_keys_parse(rows[i].text, strlen(rows[i].text), &k, why), rows[i].err);
		assert_null(k);
		if (strstr(why, rows[i].says) == NULL)
			fail_msg(
			    "%s: \"%s\" does not say \"%s\"", rows[i].text, why, rows[i].says);
	}
}

static void
every_prefix_of_a_text_is_refused(void **state)
{
	static const char text[] = "{\"current\": 1, \"keys\": {\"1\": \"" ZERO_KEY "\"}}";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		CLEANUP_FREE char *cut = mem_dup(text, n);
		struct vault_keys *k = NULL;

		assert_true(vault_keys_parse(cut, n, &k, NULL) < 0);
	}
}

static void
there_is_a_last_version(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = vault_keys_new();

	(void)state;
	for (int i = 0; i < VAULT_VERSIONS_MAX; i++)
		assert_int_equal(vault_keys_rotate(k), 0);
	assert_int_equal(vault_keys_rotate(k), E_RANGE);
	assert_int_equal(vault_keys_current(k), VAULT_VERSIONS_MAX);
}

/* Computed with an independent BLAKE2b: hashlib.blake2b(b"anvil key derivation 1\0"
 * b"repo_token\0" PROJECT_A b"\0", key=bytes(32), digest_size=32). */
static void
the_derivation_never_changes(void **state)
{
	CLEANUP(vault_keys_freep)
	struct vault_keys *k = parsed("{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"}}");
	uint8_t key[VAULT_KEY_BYTES];
	char hex[2 * VAULT_KEY_BYTES + 1];

	(void)state;
	assert_int_equal(vault_keys_derive(k, 1, VAULT_REPO_TOKEN, PROJECT_A, key), 0);
	hex_encode(key, sizeof(key), hex);
	assert_string_equal(
	    hex, "87b3da9c502a3aadec587f415bc94bb0ee9e86be17d3e75802104ea17133a5dd");
}

static void
a_derived_key_depends_on_master_purpose_and_project(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = vault_keys_new();
	uint8_t keys[4][VAULT_KEY_BYTES];

	(void)state;
	assert_int_equal(vault_keys_rotate(k), 0);
	assert_int_equal(vault_keys_rotate(k), 0);
	assert_int_equal(vault_keys_derive(k, 1, VAULT_REPO_TOKEN, PROJECT_A, keys[0]), 0);
	assert_int_equal(vault_keys_derive(k, 2, VAULT_REPO_TOKEN, PROJECT_A, keys[1]), 0);
	assert_int_equal(vault_keys_derive(k, 1, VAULT_WEBHOOK_SECRET, PROJECT_A, keys[2]), 0);
	assert_int_equal(vault_keys_derive(k, 1, VAULT_REPO_TOKEN, PROJECT_B, keys[3]), 0);
	assert_int_equal(
	    vault_keys_derive(k, 3, VAULT_REPO_TOKEN, PROJECT_A, keys[3]), E_NOKEY);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(keys[i], keys[j], VAULT_KEY_BYTES);
}

static void
a_run_gets_the_keys_of_its_project_and_no_others(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *master = vault_keys_new();
	CLEANUP(vault_keys_freep) struct vault_keys *own = NULL, *copy = NULL;
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	uint8_t want[VAULT_KEY_BYTES], got[VAULT_KEY_BYTES];

	(void)state;
	assert_int_equal(vault_keys_rotate(master), 0);
	assert_int_equal(vault_keys_rotate(master), 0);
	assert_int_equal(vault_keys_for_project(master, "prj_x", &own), E_INVAL);
	assert_int_equal(vault_keys_for_project(master, PROJECT_A, &own), 0);
	assert_int_equal(vault_keys_format(own, &text), 0);
	assert_int_equal(vault_keys_parse((const char *)text.data, text.len, &copy, NULL), 0);
	assert_int_equal(vault_keys_count(copy), 2);
	for (int64_t v = 1; v <= 2; v++) {
		assert_int_equal(
		    vault_keys_derive(master, v, VAULT_REPO_TOKEN, PROJECT_A, want), 0);
		assert_int_equal(
		    vault_keys_derive(copy, v, VAULT_REPO_TOKEN, PROJECT_A, got), 0);
		assert_memory_equal(want, got, sizeof(want));
	}
	assert_int_equal(vault_keys_derive(copy, 1, VAULT_REPO_TOKEN, PROJECT_B, got), E_NOKEY);
	assert_int_equal(
	    vault_keys_derive(copy, 1, VAULT_WEBHOOK_SECRET, PROJECT_A, got), E_NOKEY);
	assert_int_equal(vault_keys_for_project(copy, PROJECT_A, &own), E_INVAL);
}

static void
every_failed_allocation_is_told(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *master = vault_keys_new();
	long n;

	(void)state;
	assert_int_equal(vault_keys_rotate(master), 0);
	for (n = 0;; n++) {
		struct vault_keys *own = NULL, *copy = NULL;
		struct buf text = BUF_INIT;
		int r;

		mem_fault_arm(n);
		r = vault_keys_for_project(master, PROJECT_A, &own);
		if (r == 0)
			r = vault_keys_format(own, &text);
		if (r == 0)
			r = vault_keys_parse((const char *)text.data, text.len, &copy, NULL);
		int hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		vault_keys_free(own);
		vault_keys_free(copy);
		buf_wipe(&text);
		if (!hit)
			break;
	}
	assert_int_equal(n, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_survives_its_text_form),
		cmocka_unit_test(a_set_covers_what_it_has_every_key_of),
		cmocka_unit_test(versions_come_in_any_order_and_are_listed_ascending),
		cmocka_unit_test(a_text_that_is_wrong_is_refused_and_the_reason_named),
		cmocka_unit_test(every_prefix_of_a_text_is_refused),
		cmocka_unit_test(there_is_a_last_version),
		cmocka_unit_test(the_derivation_never_changes),
		cmocka_unit_test(a_derived_key_depends_on_master_purpose_and_project),
		cmocka_unit_test(a_run_gets_the_keys_of_its_project_and_no_others),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
