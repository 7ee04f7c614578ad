#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

#define PROJECT_A "prj_0123456789abcdefghijAB"
#define PROJECT_B "prj_0123456789abcdefghijAC"
#define BOUND     "project_config|" PROJECT_A "|repo_token"

static struct vault_keys *keys;

static int
make_keys(void **state)
{
	(void)state;
	keys = vault_keys_new();
	return keys == NULL ? -1 : vault_keys_rotate(keys);
}

static int
free_keys(void **state)
{
	(void)state;
	keys = vault_keys_free(keys);
	return 0;
}

static void
seal(const void *p, size_t n, struct vault_sealed *ret)
{
	assert_int_equal(vault_seal(keys, VAULT_REPO_TOKEN, PROJECT_A, BOUND, p, n, ret), 0);
}

static void
expect_open(const struct vault_keys *k, const struct vault_sealed *s, const void *p, size_t n)
{
	CLEANUP(buf_wipe) struct buf out = BUF_INIT;

	assert_int_equal(vault_open(k, VAULT_REPO_TOKEN, PROJECT_A, BOUND, s, &out), 0);
	assert_int_equal(out.len, n);
	assert_memory_equal(out.data, p, n);
}

static void
expect_closed(const struct vault_keys *k, const struct vault_sealed *s, int err)
{
	CLEANUP(buf_wipe) struct buf out = BUF_INIT;

	assert_int_equal(vault_open(k, VAULT_REPO_TOKEN, PROJECT_A, BOUND, s, &out), err);
	assert_int_equal(out.len, 0);
}

static void
what_was_sealed_opens_again_at_any_length(void **state)
{
	static uint8_t plain[VAULT_PLAIN_MAX];
	static const size_t sizes[] = { 0, 1, 2, 3, 40, 1023, 1024, VAULT_PLAIN_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };

		seal(plain, sizes[i], &s);
		assert_int_equal(s.key_version, 1);
		assert_int_equal(strlen(s.nonce), 32);
		expect_open(keys, &s, plain, sizes[i]);
	}
}

static void
a_secret_that_is_too_long_is_refused(void **state)
{
	static uint8_t plain[VAULT_PLAIN_MAX + 1];
	struct vault_sealed s = { 0 };

	(void)state;
	assert_int_equal(
	    vault_seal(keys, VAULT_REPO_TOKEN, PROJECT_A, BOUND, plain, sizeof(plain), &s),
	    E_RANGE);
	assert_null(s.ciphertext);
}

static void
two_seals_of_one_secret_differ(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed a = { 0 }, b = { 0 };

	(void)state;
	seal("secret", 6, &a);
	seal("secret", 6, &b);
	assert_string_not_equal(a.nonce, b.nonce);
	assert_string_not_equal(a.ciphertext, b.ciphertext);
}

static void
the_keys_of_the_project_alone_open_it(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };
	CLEANUP(vault_keys_freep) struct vault_keys *own = NULL, *other = NULL;

	(void)state;
	seal("secret", 6, &s);
	assert_int_equal(vault_keys_for_project(keys, PROJECT_A, &own), 0);
	assert_int_equal(vault_keys_for_project(keys, PROJECT_B, &other), 0);
	expect_open(own, &s, "secret", 6);
	expect_closed(other, &s, E_NOKEY);
}

static void
a_rotated_set_opens_old_seals_and_makes_new_ones(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed old = { 0 }, new = { 0 };
	CLEANUP(vault_keys_freep) struct vault_keys *before = NULL;

	(void)state;
	assert_int_equal(vault_keys_for_project(keys, PROJECT_A, &before), 0);
	seal("secret", 6, &old);
	assert_int_equal(vault_keys_rotate(keys), 0);
	seal("secret", 6, &new);
	assert_int_equal(new.key_version, 2);
	expect_open(keys, &old, "secret", 6);
	expect_open(keys, &new, "secret", 6);
	expect_closed(before, &new, E_NOKEY);
}

static void
a_seal_moved_to_another_place_stays_closed(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };
	CLEANUP(buf_wipe) struct buf out = BUF_INIT;

	(void)state;
	seal("secret", 6, &s);
	assert_int_equal(vault_open(keys, VAULT_REPO_TOKEN, PROJECT_A,
			     "project_config|" PROJECT_B "|repo_token", &s, &out),
	    E_SEAL);
	assert_int_equal(
	    vault_open(keys, VAULT_REPO_TOKEN, PROJECT_B, BOUND, &s, &out), E_SEAL);
	assert_int_equal(
	    vault_open(keys, VAULT_WEBHOOK_SECRET, PROJECT_A, BOUND, &s, &out), E_SEAL);
	assert_int_equal(out.len, 0);
}

static void
every_changed_character_is_noticed(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };

	(void)state;
	seal("secret", 6, &s);
	for (char *p = s.ciphertext; *p != '\0'; p++) {
		char was = *p;

		*p = was == 'A' ? 'B' : 'A';
		expect_closed(keys, &s, E_SEAL);
		*p = was;
	}
	for (char *p = s.nonce; *p != '\0'; p++) {
		char was = *p;

		*p = was == 'A' ? 'B' : 'A';
		expect_closed(keys, &s, E_SEAL);
		*p = was;
	}
	s.ciphertext[strlen(s.ciphertext) - 1] = '\0';
	expect_closed(keys, &s, E_SEAL);
	s.ciphertext[4] = '\0';
	expect_closed(keys, &s, E_SEAL);
	s.ciphertext[0] = '\0';
	expect_closed(keys, &s, E_SEAL);
}

static void
an_unknown_version_is_told_apart(void **state)
{
	CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };

	(void)state;
	seal("secret", 6, &s);
	s.key_version = 9;
	expect_closed(keys, &s, E_NOKEY);
}

static void
every_failed_allocation_is_told(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		CLEANUP(vault_sealed_done) struct vault_sealed s = { 0 };
		CLEANUP(buf_wipe) struct buf out = BUF_INIT;
		int r, hit;

		mem_fault_arm(n);
		r = vault_seal(keys, VAULT_REPO_TOKEN, PROJECT_A, BOUND, "secret", 6, &s);
		if (r == 0)
			r = vault_open(keys, VAULT_REPO_TOKEN, PROJECT_A, BOUND, &s, &out);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		if (!hit)
			break;
	}
	assert_int_equal(n, 2);
}

#define WITH_KEYS(t) cmocka_unit_test_setup_teardown(t, make_keys, free_keys)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_KEYS(what_was_sealed_opens_again_at_any_length),
		WITH_KEYS(a_secret_that_is_too_long_is_refused),
		WITH_KEYS(two_seals_of_one_secret_differ),
		WITH_KEYS(the_keys_of_the_project_alone_open_it),
		WITH_KEYS(a_rotated_set_opens_old_seals_and_makes_new_ones),
		WITH_KEYS(a_seal_moved_to_another_place_stays_closed),
		WITH_KEYS(every_changed_character_is_noticed),
		WITH_KEYS(an_unknown_version_is_told_apart),
		WITH_KEYS(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
