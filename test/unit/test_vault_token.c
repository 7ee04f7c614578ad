#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/vault/vault.h"

static void
tokens_are_43_characters_and_never_the_same(void **state)
{
	char a[VAULT_TOKEN_SIZE], b[VAULT_TOKEN_SIZE];

	(void)state;
	vault_token_make(a);
	vault_token_make(b);
	assert_int_equal(strlen(a), 43);
	assert_true(vault_token_check(a));
	assert_true(vault_token_check(b));
	assert_string_not_equal(a, b);
}

static void
other_shapes_are_no_tokens(void **state)
{
	(void)state;
	assert_false(vault_token_check(""));
	assert_false(vault_token_check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
	assert_true(vault_token_check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
	assert_false(vault_token_check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
	assert_false(vault_token_check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
	assert_false(vault_token_check("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+"));
}

static void
the_stored_form_is_the_sha256_of_the_text(void **state)
{
	char hex[VAULT_SHA256_HEX_SIZE];

	(void)state;
	vault_token_hash("abc", hex);
	assert_string_equal(
	    hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Exact-size copies, so that a read past an end is seen. */
static int
equal(const char *a, size_t na, const char *b, size_t nb)
{
	CLEANUP_FREE char *ca = mem_dup(a, na);
	CLEANUP_FREE char *cb = mem_dup(b, nb);

	return vault_equal(ca, na, cb, nb);
}

static void
equal_means_same_length_and_bytes(void **state)
{
	static char long_a[VAULT_EQUAL_MAX + 1], long_b[VAULT_EQUAL_MAX + 1];

	(void)state;
	assert_true(equal("secret", 6, "secret", 6));
	assert_false(equal("secret", 6, "secreT", 6));
	assert_false(equal("secret", 6, "secre", 5));
	assert_false(equal("secre", 5, "secret", 6));
	assert_false(equal("secret\0", 7, "secret", 6));
	assert_false(equal("", 0, "secret", 6));
	assert_false(equal("", 0, "", 0));
	assert_false(vault_equal(NULL, 0, NULL, 0));
	for (size_t i = 0; i < VAULT_EQUAL_MAX; i++) {
		assert_true(equal(long_a, i + 1, long_b, i + 1));
		long_b[i] = 1;
		assert_false(equal(long_a, VAULT_EQUAL_MAX, long_b, VAULT_EQUAL_MAX));
		long_b[i] = 0;
	}
	assert_false(equal(long_a, VAULT_EQUAL_MAX + 1, long_b, VAULT_EQUAL_MAX + 1));
	assert_false(equal(long_a, VAULT_EQUAL_MAX, long_b, VAULT_EQUAL_MAX + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_43_characters_and_never_the_same),
		cmocka_unit_test(other_shapes_are_no_tokens),
		cmocka_unit_test(the_stored_form_is_the_sha256_of_the_text),
		cmocka_unit_test(equal_means_same_length_and_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
