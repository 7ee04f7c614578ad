/* SHA-256 by libcrypto's own functions for it: six times as fast as libsodium's where the
 * processor has instructions for it, and linked statically some 20 KB without any set-up.
 * The EVP interface does the same work and costs 2 MiB of tables at its first use; hence
 * the functions that its authors would rather see in no new program. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <string.h>

#include <openssl/sha.h>

#include "lib/base/enc.h"
#include "lib/base/mem.h"
#include "lib/vault/vault.h"

#define BLOCK_BYTES 64

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct vault_sha256), "state fits");

static SHA256_CTX *
ctx_of(struct vault_sha256 *h)
{
	return (SHA256_CTX *)(void *)h->opaque;
}

void
vault_sha256_init(struct vault_sha256 *h)
{
	(void)SHA256_Init(ctx_of(h));
}

void
vault_sha256_update(struct vault_sha256 *h, const void *p, size_t n)
{
	(void)SHA256_Update(ctx_of(h), p, n);
}

void
vault_sha256_final(struct vault_sha256 *h, uint8_t out[VAULT_SHA256_BYTES])
{
	(void)SHA256_Final(out, ctx_of(h));
	mem_wipe(h, sizeof(*h));
}

void
vault_sha256(const void *p, size_t n, uint8_t out[VAULT_SHA256_BYTES])
{
	struct vault_sha256 h;

	vault_sha256_init(&h);
	vault_sha256_update(&h, p, n);
	vault_sha256_final(&h, out);
}

void
vault_sha256_hex(const void *p, size_t n, char out[VAULT_SHA256_HEX_SIZE])
{
	uint8_t digest[VAULT_SHA256_BYTES];

	vault_sha256(p, n, digest);
	hex_encode(digest, sizeof(digest), out);
}

void
vault_hmac_init(struct vault_hmac *h, const void *key, size_t key_len)
{
	uint8_t block[BLOCK_BYTES] = { 0 };

	if (key_len > sizeof(block))
		vault_sha256(key, key_len, block);
	else if (key_len != 0)
		memcpy(block, key, key_len);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	vault_sha256_init(&h->inner);
	vault_sha256_update(&h->inner, block, sizeof(block));
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	vault_sha256_init(&h->outer);
	vault_sha256_update(&h->outer, block, sizeof(block));
	mem_wipe(block, sizeof(block));
}

void
vault_hmac_update(struct vault_hmac *h, const void *p, size_t n)
{
	vault_sha256_update(&h->inner, p, n);
}

void
vault_hmac_final(struct vault_hmac *h, uint8_t out[VAULT_SHA256_BYTES])
{
	vault_sha256_final(&h->inner, out);
	vault_sha256_update(&h->outer, out, VAULT_SHA256_BYTES);
	vault_sha256_final(&h->outer, out);
}
