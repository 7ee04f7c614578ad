/*
 * lib/vault/keys.h -- a set of keys as the files of this folder see it.
 */
#ifndef LIB_VAULT_KEYS_H
#define LIB_VAULT_KEYS_H

#include "lib/base/id.h"
#include "lib/vault/vault.h"

#define VAULT_KEYS_TEXT_MAX 65536

struct vault_key {
	int64_t version; /* 1..INT32_MAX */
	uint8_t bytes[VAULT_KEY_BYTES];
};

/* One locked allocation, so that no key is ever copied when the set grows. */
struct vault_keys {
	uint32_t magic;
#define VAULT_KEYS_MAGIC 0x7b3e19d4
	int64_t current;
	char project[ID_SIZE]; /* "": master keys; else derived for this one. */
	size_t nkeys;
	struct vault_key keys[VAULT_VERSIONS_MAX]; /* Ascending by version. */
} __attribute__((aligned(16)));

/* libsodium is ready, or the process ends. */
void vault_ready(void);
/* Empty and locked; NULL: out of memory. */
struct vault_keys *vault_keys_new(void);
const struct vault_key *vault_keys_find(const struct vault_keys *k, int64_t version);
/* Keeps the order.  0, E_EXISTS, E_RANGE. */
int vault_keys_add(struct vault_keys *k, int64_t version, const uint8_t bytes[VAULT_KEY_BYTES]);
/* The key that seals for ${purpose} and ${project_id} under ${version}; the caller wipes it.
 * 0 or E_NOKEY. */
int vault_keys_derive(const struct vault_keys *k, int64_t version, enum vault_purpose purpose,
    const char *project_id, uint8_t out[VAULT_KEY_BYTES]);

/* The hash that stands in for one that is not there. */
const char *vault_password_dummy(void);

#endif
