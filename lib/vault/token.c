#include <string.h>

#include "lib/base/enc.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/vault/vault.h"

#define TOKEN_BYTES 32

void
vault_token_make(char out[VAULT_TOKEN_SIZE])
{
	uint8_t bytes[TOKEN_BYTES];

	id_random(bytes, sizeof(bytes));
	base64url_encode(bytes, sizeof(bytes), out);
	mem_wipe(bytes, sizeof(bytes));
}

int
vault_token_check(const char *text)
{
	uint8_t bytes[TOKEN_BYTES];
	size_t n = 0;
	int ok = strnlen(text, VAULT_TOKEN_SIZE) == VAULT_TOKEN_SIZE - 1 &&
	    base64url_decode(text, VAULT_TOKEN_SIZE - 1, bytes, sizeof(bytes), &n) == 0;

	mem_wipe(bytes, sizeof(bytes));
	return ok;
}

void
vault_token_hash(const char *text, char out[VAULT_SHA256_HEX_SIZE])
{
	vault_sha256_hex(text, strlen(text), out);
}

/* All ones when ${i} < ${n}, else 0, without a branch. */
static size_t
below(size_t i, size_t n)
{
	return (size_t)0 - ((i - n) >> (8 * sizeof(size_t) - 1));
}

int
vault_equal(const void *a, size_t na, const void *b, size_t nb)
{
	static const uint8_t nothing[1];
	const volatile uint8_t *pa = na != 0 ? a : nothing, *pb = nb != 0 ? b : nothing;
	size_t diff = na ^ nb;

	diff |= ~below(0, na) | ~below(na, VAULT_EQUAL_MAX + 1);
	for (size_t i = 0; i < VAULT_EQUAL_MAX; i++) {
		size_t in_a = below(i, na), in_b = below(i, nb);

		diff |= (pa[i & in_a] & in_a) ^ (pb[i & in_b] & in_b);
	}
	return diff == 0;
}
