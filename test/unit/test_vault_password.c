#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/vault/keys.h"

static void
a_password_verifies_and_another_does_not(void **state)
{
	char a[VAULT_PASSWORD_SIZE], b[VAULT_PASSWORD_SIZE];

	(void)state;
	assert_int_equal(vault_password_hash("correct horse", 13, a), 0);
	assert_int_equal(vault_password_hash("correct horse", 13, b), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(strncmp(a, "$argon2id$", 10), 0);
	assert_int_equal(vault_password_verify(a, "correct horse", 13), 1);
	assert_int_equal(vault_password_verify(b, "correct horse", 13), 1);
	assert_int_equal(vault_password_verify(a, "correct horsf", 13), 0);
	assert_int_equal(vault_password_verify(a, "correct horse", 12), 0);
	assert_int_equal(vault_password_verify(a, "", 0), 0);
}

static void
the_longest_password_works_and_a_longer_one_never_does(void **state)
{
	static char password[VAULT_PASSWORD_MAX + 1];
	char hash[VAULT_PASSWORD_SIZE];

	(void)state;
	memset(password, 'p', sizeof(password));
	assert_int_equal(vault_password_hash(password, VAULT_PASSWORD_MAX, hash), 0);
	assert_int_equal(vault_password_verify(hash, password, VAULT_PASSWORD_MAX), 1);
	assert_int_equal(vault_password_verify(hash, password, VAULT_PASSWORD_MAX + 1), 0);
	assert_int_equal(vault_password_hash(password, VAULT_PASSWORD_MAX + 1, hash), E_RANGE);
}

static void
nobody_and_damaged_hashes_verify_nothing(void **state)
{
	char long_hash[2 * VAULT_PASSWORD_SIZE];

	(void)state;
	assert_int_equal(vault_password_verify(NULL, "password", 8), 0);
	assert_int_equal(vault_password_verify("", "", 0), 0);
	assert_int_equal(vault_password_verify("$argon2id$", "password", 8), 0);
	memset(long_hash, '$', sizeof(long_hash));
	assert_int_equal(vault_password_verify(long_hash, "password", 8), 0);
}

/* The work for an unknown user is that of a known one: same algorithm, memory and passes. */
static void
the_dummy_asks_for_the_same_work_as_a_real_hash(void **state)
{
	char hash[VAULT_PASSWORD_SIZE];
	const char *dummy = vault_password_dummy();

	(void)state;
	assert_int_equal(vault_password_hash("password", 8, hash), 0);
	assert_int_equal(strlen(hash), strlen(dummy));
	assert_memory_equal(hash, dummy, strlen("$argon2id$v=19$m=65536,t=2,p=1$"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_password_verifies_and_another_does_not),
		cmocka_unit_test(the_longest_password_works_and_a_longer_one_never_does),
		cmocka_unit_test(nobody_and_damaged_hashes_verify_nothing),
		cmocka_unit_test(the_dummy_asks_for_the_same_work_as_a_real_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
