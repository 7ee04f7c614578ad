#include "lib/vault/keys.h"

#include <string.h>

#include <sodium.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

/* Part of every derivation: a change of the scheme changes this word. */
#define KDF_DOMAIN "anvil key derivation 1"

static const char *const purpose_words[] = {
	[VAULT_REPO_TOKEN] = "repo_token",
	[VAULT_WEBHOOK_SECRET] = "webhook_secret",
};

void
vault_ready(void)
{
	must(sodium_init() >= 0);
}

struct vault_keys *
vault_keys_new(void)
{
	struct vault_keys *k;
	void *probe = mem_alloc(1);

	/* sodium_malloc() is out of reach of ordered faults; this stands in for it. */
	if (probe == NULL)
		return NULL;
	mem_free(probe);
	vault_ready();
	k = sodium_malloc(sizeof(*k));
	if (k == NULL)
		return NULL;
	memset(k, 0, sizeof(*k));
	k->magic = VAULT_KEYS_MAGIC;
	return k;
}

struct vault_keys *
vault_keys_free(struct vault_keys *k)
{
	if (k == NULL)
		return NULL;
	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	k->magic = 0;
	sodium_free(k); /* Overwrites it first. */
	return NULL;
}

const struct vault_key *
vault_keys_find(const struct vault_keys *k, int64_t version)
{
	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	for (size_t i = 0; i < k->nkeys; i++)
		if (k->keys[i].version == version)
			return &k->keys[i];
	return NULL;
}

int
vault_keys_add(struct vault_keys *k, int64_t version, const uint8_t bytes[VAULT_KEY_BYTES])
{
	size_t at = k->nkeys;

	if (version < 1 || version > INT32_MAX || k->nkeys == VAULT_VERSIONS_MAX)
		return E_RANGE;
	if (vault_keys_find(k, version) != NULL)
		return E_EXISTS;
	while (at > 0 && k->keys[at - 1].version > version) {
		k->keys[at] = k->keys[at - 1];
		at--;
	}
	k->keys[at].version = version;
	memcpy(k->keys[at].bytes, bytes, VAULT_KEY_BYTES);
	k->nkeys++;
	return 0;
}

int
vault_keys_rotate(struct vault_keys *k)
{
	uint8_t bytes[VAULT_KEY_BYTES];
	int64_t version;
	int r;

	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	must(k->project[0] == '\0');
	version = k->nkeys != 0 ? k->keys[k->nkeys - 1].version + 1 : 1;
	id_random(bytes, sizeof(bytes));
	r = vault_keys_add(k, version, bytes);
	mem_wipe(bytes, sizeof(bytes));
	if (r == 0)
		k->current = version;
	return r;
}

int64_t
vault_keys_current(const struct vault_keys *k)
{
	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	return k->current;
}

size_t
vault_keys_count(const struct vault_keys *k)
{
	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	return k->nkeys;
}

int64_t
vault_keys_version(const struct vault_keys *k, size_t i)
{
	OBJ_CHECK(k, VAULT_KEYS_MAGIC);
	must(i < k->nkeys);
	return k->keys[i].version;
}

int
vault_keys_have(const struct vault_keys *k, int64_t version)
{
	return vault_keys_find(k, version) != NULL;
}

int
vault_keys_cover(const struct vault_keys *k, const struct vault_keys *part)
{
	OBJ_CHECK(part, VAULT_KEYS_MAGIC);
	for (size_t i = 0; i < part->nkeys; i++) {
		const struct vault_key *mine = vault_keys_find(k, part->keys[i].version);

		if (mine == NULL ||
		    sodium_memcmp(mine->bytes, part->keys[i].bytes, VAULT_KEY_BYTES) != 0)
			return 0;
	}
	return 1;
}

/* BLAKE2b keyed with the master key, over domain, purpose and project, each with its NUL so
 * that no two triples make the same bytes. */
static void
kdf(const uint8_t master[VAULT_KEY_BYTES], enum vault_purpose purpose, const char *project_id,
    uint8_t out[VAULT_KEY_BYTES])
{
	const char *word = purpose_words[purpose];
	crypto_generichash_state st;

	must(crypto_generichash_init(&st, master, VAULT_KEY_BYTES, VAULT_KEY_BYTES) == 0);
	(void)crypto_generichash_update(&st, (const uint8_t *)KDF_DOMAIN, sizeof(KDF_DOMAIN));
	(void)crypto_generichash_update(&st, (const uint8_t *)word, strlen(word) + 1);
	(void)crypto_generichash_update(
	    &st, (const uint8_t *)project_id, strlen(project_id) + 1);
	(void)crypto_generichash_final(&st, out, VAULT_KEY_BYTES);
	mem_wipe(&st, sizeof(st));
}

int
vault_keys_derive(const struct vault_keys *k, int64_t version, enum vault_purpose purpose,
    const char *project_id, uint8_t out[VAULT_KEY_BYTES])
{
	const struct vault_key *key = vault_keys_find(k, version);

	if (key == NULL)
		return E_NOKEY;
	if (k->project[0] == '\0') {
		kdf(key->bytes, purpose, project_id, out);
		return 0;
	}
	if (purpose != VAULT_REPO_TOKEN || strcmp(k->project, project_id) != 0)
		return E_NOKEY;
	memcpy(out, key->bytes, VAULT_KEY_BYTES);
	return 0;
}

int
vault_keys_for_project(
    const struct vault_keys *master, const char *project_id, struct vault_keys **ret)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;

	OBJ_CHECK(master, VAULT_KEYS_MAGIC);
	if (master->project[0] != '\0' || !id_check(ID_PROJECT, project_id))
		return E_INVAL;
	if ((k = vault_keys_new()) == NULL)
		return E_NOMEM;
	k->nkeys = master->nkeys;
	k->current = master->current;
	memcpy(k->project, project_id, strlen(project_id) + 1);
	for (size_t i = 0; i < k->nkeys; i++) {
		k->keys[i].version = master->keys[i].version;
		kdf(master->keys[i].bytes, VAULT_REPO_TOKEN, project_id, k->keys[i].bytes);
	}
	*ret = TAKE_PTR(k);
	return 0;
}
