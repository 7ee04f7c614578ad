#include <string.h>

#include "lib/base/base.h"
#include "lib/base/sha256.h"
#include "test/support/unit.h"

static void
digest_in_pieces(const char *text, size_t n, size_t piece, char out[SHA256_HEX_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	for (size_t at = 0; at < n; at += piece)
		sha256_add(&s, text + at, min_size(piece, n - at));
	sha256_end_hex(&s, out);
}

/* The examples of FIPS 180-4 and of the text around a block's end. */
static void
known_texts_have_their_known_digests_in_any_pieces(void **state)
{
	static const struct {
		const char *text;
		const char *digest;
	} known[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnop"
		  "jklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	char out[SHA256_HEX_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		for (size_t piece = 1; piece < 130; piece++) {
			digest_in_pieces(known[i].text, strlen(known[i].text), piece, out);
			assert_string_equal(out, known[i].digest);
		}
}

static void
a_million_letters_have_their_known_digest(void **state)
{
	static char letters[1000000];
	char out[SHA256_HEX_SIZE];

	(void)state;
	memset(letters, 'a', sizeof(letters));
	digest_in_pieces(letters, sizeof(letters), 777, out);
	assert_string_equal(
	    out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_have_their_known_digests_in_any_pieces),
		cmocka_unit_test(a_million_letters_have_their_known_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
