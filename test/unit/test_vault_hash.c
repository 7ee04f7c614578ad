#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/enc.h"
#include "lib/vault/vault.h"

static void
expect_hex(const uint8_t digest[VAULT_SHA256_BYTES], const char *want)
{
	char hex[VAULT_SHA256_HEX_SIZE];

	hex_encode(digest, VAULT_SHA256_BYTES, hex);
	assert_string_equal(hex, want);
}

/* FIPS 180-4, examples of the standard. */
static void
digests_are_those_of_the_standard(void **state)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char hex[VAULT_SHA256_HEX_SIZE];

		vault_sha256_hex(rows[i].text, strlen(rows[i].text), hex);
		assert_string_equal(hex, rows[i].hex);
	}
}

static void
a_million_letters_in_pieces_of_any_size(void **state)
{
	static char letters[1000];
	uint8_t digest[VAULT_SHA256_BYTES];

	(void)state;
	memset(letters, 'a', sizeof(letters));
	for (size_t piece = 1; piece <= sizeof(letters); piece = piece * 3 + 1) {
		struct vault_sha256 h;
		size_t left = 1000000;

		vault_sha256_init(&h);
		while (left != 0) {
			size_t n = min_size(piece, left);

			vault_sha256_update(&h, letters, n);
			left -= n;
		}
		vault_sha256_final(&h, digest);
		expect_hex(
		    digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

static void
a_copied_state_goes_on_by_itself(void **state)
{
	struct vault_sha256 a, b;
	uint8_t da[VAULT_SHA256_BYTES], db[VAULT_SHA256_BYTES];

	(void)state;
	vault_sha256_init(&a);
	vault_sha256_update(&a, "ab", 2);
	b = a;
	vault_sha256_update(&a, "c", 1);
	vault_sha256_update(&b, "c", 1);
	vault_sha256_final(&a, da);
	vault_sha256_final(&b, db);
	assert_memory_equal(da, db, sizeof(da));
}

/* RFC 4231, test cases 1, 2, 4, 6 and 7. */
static void
hmacs_are_those_of_rfc_4231(void **state)
{
	static const uint8_t aa[131] = { [0 ... 130] = 0xaa }, ob[20] = { [0 ... 19] = 0x0b };
	static const uint8_t cd[50] = { [0 ... 49] = 0xcd };
	static const uint8_t counted[25] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25 };
	static const char large[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	static const char larger[] =
	    "This is a test using a larger than block-size key and a larger than block-size data. "
	    "The key needs to be hashed before being used by the HMAC algorithm.";
	const struct {
		const void *key;
		size_t nkey;
		const void *data;
		size_t ndata;
		const char *hex;
	} rows[] = {
		{ ob, 20, "Hi There", 8,
		    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", 4, "what do ya want for nothing?", 28,
		    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ counted, 25, cd, 50,
		    "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ aa, 131, large, sizeof(large) - 1,
		    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ aa, 131, larger, sizeof(larger) - 1,
		    "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t cut = 0; cut <= rows[i].ndata; cut++) {
			struct vault_hmac h;
			uint8_t mac[VAULT_SHA256_BYTES];
			const char *data = rows[i].data;

			vault_hmac_init(&h, rows[i].key, rows[i].nkey);
			vault_hmac_update(&h, data, cut);
			vault_hmac_update(&h, data + cut, rows[i].ndata - cut);
			vault_hmac_final(&h, mac);
			expect_hex(mac, rows[i].hex);
		}
	}
}

static void
an_empty_hmac_key_works(void **state)
{
	struct vault_hmac h;
	uint8_t mac[VAULT_SHA256_BYTES];

	(void)state;
	vault_hmac_init(&h, NULL, 0);
	vault_hmac_final(&h, mac);
	expect_hex(mac, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standard),
		cmocka_unit_test(a_million_letters_in_pieces_of_any_size),
		cmocka_unit_test(a_copied_state_goes_on_by_itself),
		cmocka_unit_test(hmacs_are_those_of_rfc_4231),
		cmocka_unit_test(an_empty_hmac_key_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
