#include <string.h>

#include <sodium.h>

#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define SEALED_MAX  (VAULT_PLAIN_MAX + TAG_BYTES)

_Static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == VAULT_KEY_BYTES, "key size");

void
vault_sealed_done(struct vault_sealed *s)
{
	s->ciphertext = mem_free(s->ciphertext);
}

int
vault_seal(const struct vault_keys *k, enum vault_purpose purpose, const char *project_id,
    const char *bound, const void *plain, size_t n, struct vault_sealed *ret)
{
	uint8_t key[VAULT_KEY_BYTES], nonce[NONCE_BYTES], sealed[SEALED_MAX];
	int64_t version = vault_keys_current(k);
	char *text;
	int r;

	if (n > VAULT_PLAIN_MAX)
		return E_RANGE;
	text = mem_alloc(base64url_size(n + TAG_BYTES));
	if (text == NULL)
		return E_NOMEM;
	r = vault_keys_derive(k, version, purpose, project_id, key);
	if (r < 0) {
		mem_free(text);
		return r;
	}
	id_random(nonce, sizeof(nonce));
	(void)crypto_aead_xchacha20poly1305_ietf_encrypt(
	    sealed, NULL, plain, n, (const uint8_t *)bound, strlen(bound), NULL, nonce, key);
	mem_wipe(key, sizeof(key));
	base64url_encode(sealed, n + TAG_BYTES, text);
	ret->ciphertext = text;
	base64url_encode(nonce, sizeof(nonce), ret->nonce);
	ret->key_version = version;
	return 0;
}

int
vault_open(const struct vault_keys *k, enum vault_purpose purpose, const char *project_id,
    const char *bound, const struct vault_sealed *sealed, struct buf *out)
{
	uint8_t key[VAULT_KEY_BYTES], nonce[NONCE_BYTES], bytes[SEALED_MAX];
	size_t nnonce = 0, n = 0;
	int r;

	if (!vault_keys_have(k, sealed->key_version))
		return E_NOKEY;
	if (base64url_decode(sealed->nonce, strnlen(sealed->nonce, sizeof(sealed->nonce)),
		nonce, sizeof(nonce), &nnonce) < 0 ||
	    nnonce != sizeof(nonce) ||
	    base64url_decode(
		sealed->ciphertext, strlen(sealed->ciphertext), bytes, sizeof(bytes), &n) < 0 ||
	    n < TAG_BYTES)
		return E_SEAL;
	r = buf_reserve(out, n - TAG_BYTES + 1);
	if (r == 0)
		r = vault_keys_derive(k, sealed->key_version, purpose, project_id, key);
	if (r < 0)
		return r;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(out->data + out->len, NULL, NULL, bytes,
		n, (const uint8_t *)bound, strlen(bound), nonce, key) == 0)
		out->len += n - TAG_BYTES;
	else
		r = E_SEAL;
	mem_wipe(key, sizeof(key));
	return r;
}
