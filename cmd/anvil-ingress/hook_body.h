/*
 * cmd/anvil-ingress/hook_body.h -- the body of a delivery in its one pass: digest, proof and
 * scan of the bytes as they come (webhooks 2, step 8).
 *
 * The plain secret is there while the pass begins, and wiped before the first byte comes.
 */
#ifndef CMD_ANVIL_INGRESS_HOOK_BODY_H
#define CMD_ANVIL_INGRESS_HOOK_BODY_H

#include "cmd/anvil-ingress/hook_cache.h"
#include "lib/webhook/webhook.h"

#define HOOK_KEPT_BYTES     (256u << 10) /* A longer body is not kept, ...       */
#define HOOK_KEPT_ALL_BYTES (64u << 20)  /* ... nor one beyond so many together. */

struct hook_body {
	/* Filled by the owner, once. */
	struct ingress *in;
	const struct webhook_forge *forge;
	enum webhook_media media;
	struct str_view proof; /* As the headers claim it; p may be NULL. */
	/* Results of a pass. */
	int secret_err;  /* 0, E_NOKEY, E_SEAL: the secret did not open. */
	int form_err;    /* 0 or E_PARSE, with `form_message`.           */
	int is_verified; /* The proof is the right one.                  */
	const char *form_message;
	int64_t nbytes;
	char sha256[VAULT_SHA256_HEX_SIZE];
	struct webhook_scan *scan; /* Owned. */
	/* Private. */
	struct vault_sha256 sha;
	struct vault_hmac hmac;
	struct webhook_form *form; /* Owned. */
	struct buf kept;           /* The body, as long as it is kept. */
	int is_kept;
};

/* Before the first byte.  ${length}: as declared; -1: not known.  0 or E_NOMEM. */
int hook_body_begin(struct hook_body *b, const struct hook_material *m, int64_t length);
void hook_body_feed(struct hook_body *b, const uint8_t *p, size_t n);
/* The results are there. */
void hook_body_end(struct hook_body *b);
/* Whether all of the body can be gone over once more. */
int hook_body_is_kept(const struct hook_body *b);
/* Another pass, over the kept body.  0 or E_NOMEM. */
int hook_body_again(struct hook_body *b, const struct hook_material *m);
/* Fine on a zeroed struct. */
void hook_body_done(struct hook_body *b);

#endif
