/*
 * lib/vault/vault.h -- keys, sealed secrets, tokens, digests, passwords.
 *
 * The only folder that knows libsodium and libcrypto.  Everything is a plain function that
 * blocks for as long as it computes: a caller with a loop runs passwords on a worker thread.
 * Key material lives in locked pages that are not dumped, and is wiped when freed.
 */
#ifndef LIB_VAULT_VAULT_H
#define LIB_VAULT_VAULT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"

#define VAULT_KEY_BYTES    32
#define VAULT_VERSIONS_MAX 64  /* Key versions that may live at once.              */
#define VAULT_WHY_SIZE     512 /* Text that says what is wrong with a keys file.   */
#define VAULT_PLAIN_MAX    4096

/* What a derived key is for; the words enter the derivation and never change. */
enum vault_purpose { VAULT_REPO_TOKEN, VAULT_WEBHOOK_SECRET };

/* ---- keys ---- */

/* Keys by version: the master keys, or (vault_keys_for_project) the derived ones of one
 * project and purpose.  Both kinds seal and open; only master keys derive and can be saved. */
struct vault_keys;

struct vault_keys *vault_keys_free(struct vault_keys *k);
DEFINE_CLEANUP(struct vault_keys *, vault_keys_free)

/* Master keys from the file `{"current": 1, "keys": {"1": "<32 bytes in base64url>"}}`.
 * The file belongs to root, the caller, or ${owner}, and nobody else may touch it (0600).
 * 0, E_NOENT, E_DENIED (cannot be read; owner; mode), E_PARSE (not JSON), E_INVAL (what it
 * says), E_NOMEM, E_SYS; then ${why} says which file, what is wrong, what would be right. */
int vault_keys_load(
    const char *path, uid_t owner, struct vault_keys **ret, char why[VAULT_WHY_SIZE]);
/* Makes the file, 0600 and on disk before the return, with one random key as version 1.
 * 0, E_EXISTS (never overwritten), E_NOENT (its folder), E_DENIED, E_FULL, E_NOMEM, E_SYS. */
int vault_keys_create(const char *path, struct vault_keys **ret, char why[VAULT_WHY_SIZE]);
/* Adds a random key under the next version and makes it current; vault_keys_save() follows.
 * 0, E_RANGE when there are VAULT_VERSIONS_MAX. */
int vault_keys_rotate(struct vault_keys *k);
/* Replaces the file whole or not at all; it stays its owner's.  On disk before the return.
 * 0, E_DENIED (its folder takes no file of ours; an owner whom we cannot keep), E_FULL, E_NOMEM,
 * E_SYS, with ${why}. */
int vault_keys_save(const struct vault_keys *k, const char *path, char why[VAULT_WHY_SIZE]);
/* Writes over the file where it is, for a folder that takes none of ours: whole unless the
 * machine goes down meanwhile, for which there has to be a copy elsewhere.  As above; only
 * E_DENIED has surely left it as it was. */
int
vault_keys_overwrite(const struct vault_keys *k, const char *path, char why[VAULT_WHY_SIZE]);

/* The same JSON text, for a child's descriptor; a derived set has `project` for `current`.
 * The text is secret: buf_wipe() it.  0 or E_NOMEM. */
int vault_keys_format(const struct vault_keys *k, struct buf *out);
/* Strict: no other member, none twice.  0, E_PARSE, E_INVAL, E_NOMEM; ${why} may be NULL. */
int
vault_keys_parse(const char *text, size_t n, struct vault_keys **ret, char why[VAULT_WHY_SIZE]);
/* The text in a memory file that can no longer change; the caller closes.  0, E_NOMEM, E_SYS. */
int vault_keys_to_memfd(const struct vault_keys *k, int *ret_fd);
/* Reads ${fd} to its end and parses; the descriptor stays the caller's. */
int vault_keys_read_fd(int fd, struct vault_keys **ret, char why[VAULT_WHY_SIZE]);

/* Version that new seals use. */
int64_t vault_keys_current(const struct vault_keys *k);
size_t vault_keys_count(const struct vault_keys *k);
/* Version ${i} < count, in ascending order. */
int64_t vault_keys_version(const struct vault_keys *k, size_t i);
int vault_keys_have(const struct vault_keys *k, int64_t version);
/* 1 when ${k} has every key of ${part}: version and bytes. */
int vault_keys_cover(const struct vault_keys *k, const struct vault_keys *part);

/* From master keys, what a run of this project gets: its repository-token key of each
 * version, and nothing that leads back.  0, E_INVAL (not master keys, not an id), E_NOMEM. */
int vault_keys_for_project(
    const struct vault_keys *master, const char *project_id, struct vault_keys **ret);

/* ---- sealed secrets ---- */

/* As it travels and is stored: base64url texts without padding. */
struct vault_sealed {
	char *ciphertext; /* Owned.  Secret and 16 bytes of tag. */
	char nonce[33];   /* 24 bytes. */
	int64_t key_version;
};

/* Frees the text; fine on a zeroed struct. */
void vault_sealed_done(struct vault_sealed *s);

/* XChaCha20-Poly1305 with a random nonce under KDF(current key, ${purpose}, ${project_id}).
 * ${bound} is the associated data `<table>|<row id>|<column>`: elsewhere it will not open.
 * 0, E_NOKEY (derived keys of another project or purpose), E_RANGE (n > VAULT_PLAIN_MAX),
 * E_NOMEM. */
int vault_seal(const struct vault_keys *k, enum vault_purpose purpose, const char *project_id,
    const char *bound, const void *plain, size_t n, struct vault_sealed *ret);
/* Appends the secret to ${out}, which the caller wipes.
 * 0, E_NOKEY (its version is not here), E_SEAL (changed, moved, or not a seal), E_NOMEM. */
int vault_open(const struct vault_keys *k, enum vault_purpose purpose, const char *project_id,
    const char *bound, const struct vault_sealed *sealed, struct buf *out);

/* ---- digests ---- */

#define VAULT_SHA256_BYTES    32
#define VAULT_SHA256_HEX_SIZE 65

/* Plain values: a copy goes on from the same point.  Final wipes it. */
struct vault_sha256 {
	uint64_t opaque[14];
};
struct vault_hmac {
	struct vault_sha256 inner, outer;
};

void vault_sha256_init(struct vault_sha256 *h);
void vault_sha256_update(struct vault_sha256 *h, const void *p, size_t n);
void vault_sha256_final(struct vault_sha256 *h, uint8_t out[VAULT_SHA256_BYTES]);
void vault_sha256(const void *p, size_t n, uint8_t out[VAULT_SHA256_BYTES]);
/* Lower-case digits. */
void vault_sha256_hex(const void *p, size_t n, char out[VAULT_SHA256_HEX_SIZE]);

/* HMAC-SHA256 (RFC 2104); the key may be of any length. */
void vault_hmac_init(struct vault_hmac *h, const void *key, size_t key_len);
void vault_hmac_update(struct vault_hmac *h, const void *p, size_t n);
void vault_hmac_final(struct vault_hmac *h, uint8_t out[VAULT_SHA256_BYTES]);

#define VAULT_EQUAL_MAX 1024
/* 1 when both are the same 1..VAULT_EQUAL_MAX bytes, else 0: an empty secret equals nothing.
 * Takes the same time whatever the contents and the lengths are. */
int vault_equal(const void *a, size_t na, const void *b, size_t nb);

/* ---- tokens and passwords ---- */

#define VAULT_TOKEN_SIZE 44 /* 32 random bytes in base64url, and a NUL */

void vault_token_make(char out[VAULT_TOKEN_SIZE]);
/* 1 when ${text} has the shape of a token. */
int vault_token_check(const char *text);
/* What is stored of a token: SHA-256 of its text, in lower-case digits. */
void vault_token_hash(const char *text, char out[VAULT_SHA256_HEX_SIZE]);

#define VAULT_PASSWORD_SIZE 128
#define VAULT_PASSWORD_MAX  1024

/* Argon2id, interactive limits: some 64 MiB and 0.1 s.  0, E_RANGE (over
 * VAULT_PASSWORD_MAX bytes), E_NOMEM. */
int vault_password_hash(const char *password, size_t n, char out[VAULT_PASSWORD_SIZE]);
/* 1 it is the password, 0 it is not, E_NOMEM.  ${stored} NULL (no such user, no password
 * set) and an overlong password cost the same work and answer 0. */
int vault_password_verify(const char *stored, const char *password, size_t n);

#endif
