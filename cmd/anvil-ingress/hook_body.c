#include "cmd/anvil-ingress/hook_body.h"

#include "cmd/anvil-ingress/seal.h"
#include "lib/base/enc.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* What is signed are the raw bytes, and not a form's decoded field. */
static int
signs_raw(const struct hook_body *b)
{
	return b->media != WEBHOOK_MEDIA_FORM || b->forge->forms != WEBHOOK_FORMS_PAYLOAD;
}

static void
on_decoded(void *arg, const void *p, size_t n)
{
	struct hook_body *b = arg;

	webhook_scan_feed(b->scan, p, n);
	if (b->secret_err == 0 && b->forge->proof == WEBHOOK_PROOF_HMAC && !signs_raw(b))
		vault_hmac_update(&b->hmac, p, n);
}

/* ---- the secret ---- */

/* A token is judged while the secret is here; a digest goes on without it. */
static void
use_secret(struct hook_body *b, const struct buf *secret)
{
	if (b->forge->proof == WEBHOOK_PROOF_HMAC)
		vault_hmac_init(&b->hmac, secret->data, secret->len);
	else
		b->is_verified = vault_equal(
		    secret->data, secret->len, b->proof.p, b->proof.p != NULL ? b->proof.n : 0);
}

/* 0, E_NOKEY, E_SEAL, E_NOMEM. */
static int
open_secret(struct hook_body *b, const struct hook_material *m)
{
	CLEANUP(buf_wipe) struct buf secret = BUF_INIT;
	int r = seal_open_webhook_secret(
	    b->in, m->project_id, m->webhook_id, &m->secret, &secret);

	/* An empty one is the key to everything. */
	if (r == 0 && secret.len == 0)
		r = E_SEAL;
	if (r == 0)
		use_secret(b, &secret);
	return r;
}

/* ---- a pass ---- */

static void
end_pass(struct hook_body *b)
{
	b->scan = webhook_scan_free(b->scan);
	b->form = webhook_form_free(b->form);
	mem_wipe(&b->hmac, sizeof(b->hmac));
	b->is_verified = 0;
	b->form_err = 0;
	b->nbytes = 0;
}

static int
begin_pass(struct hook_body *b, const struct hook_material *m)
{
	end_pass(b);
	b->scan = webhook_scan_new(b->forge);
	if (b->media == WEBHOOK_MEDIA_FORM)
		b->form = webhook_form_new(on_decoded, b);
	if (b->scan == NULL || (b->media == WEBHOOK_MEDIA_FORM && b->form == NULL))
		return E_NOMEM;
	vault_sha256_init(&b->sha);
	b->secret_err = open_secret(b, m);
	return b->secret_err == E_NOMEM ? E_NOMEM : 0;
}

static void
feed_pass(struct hook_body *b, const uint8_t *p, size_t n)
{
	b->nbytes += (int64_t)n;
	vault_sha256_update(&b->sha, p, n);
	if (b->secret_err == 0 && b->forge->proof == WEBHOOK_PROOF_HMAC && signs_raw(b))
		vault_hmac_update(&b->hmac, p, n);
	if (b->form != NULL)
		webhook_form_feed(b->form, p, n);
	else
		webhook_scan_feed(b->scan, p, n);
}

/* ---- the body, kept for another pass ---- */

static void
forget_kept(struct hook_body *b)
{
	b->in->hook_kept_bytes -= b->kept.cap;
	buf_done(&b->kept);
	b->is_kept = 0;
}

static void
keep(struct hook_body *b, const uint8_t *p, size_t n)
{
	size_t before = b->kept.cap;
	int r = n <= HOOK_KEPT_BYTES - b->kept.len ? buf_add(&b->kept, p, n) : E_RANGE;

	b->in->hook_kept_bytes += b->kept.cap - before;
	if (r < 0 || b->in->hook_kept_bytes > HOOK_KEPT_ALL_BYTES)
		forget_kept(b);
}

int
hook_body_is_kept(const struct hook_body *b)
{
	return b->is_kept;
}

/* ---- from outside ---- */

int
hook_body_begin(struct hook_body *b, const struct hook_material *m, int64_t length)
{
	b->is_kept = length <= (int64_t)HOOK_KEPT_BYTES;
	return begin_pass(b, m);
}

void
hook_body_feed(struct hook_body *b, const uint8_t *p, size_t n)
{
	feed_pass(b, p, n);
	if (b->is_kept)
		keep(b, p, n);
}

static void
judge_digest(struct hook_body *b)
{
	uint8_t right[VAULT_SHA256_BYTES], claimed[WEBHOOK_DIGEST_BYTES];

	vault_hmac_final(&b->hmac, right);
	b->is_verified = b->proof.p != NULL &&
	    webhook_proof_digest(b->forge, b->proof, claimed) == 0 &&
	    vault_equal(right, sizeof(right), claimed, sizeof(claimed));
	mem_wipe(right, sizeof(right));
}

void
hook_body_end(struct hook_body *b)
{
	uint8_t sha[VAULT_SHA256_BYTES];

	vault_sha256_final(&b->sha, sha);
	hex_encode(sha, sizeof(sha), b->sha256);
	if (b->form != NULL)
		b->form_err = webhook_form_end(b->form, &b->form_message);
	if (b->secret_err == 0 && b->forge->proof == WEBHOOK_PROOF_HMAC)
		judge_digest(b);
	/* There is nothing that could be signed. */
	if (b->form_err < 0 && !signs_raw(b))
		b->is_verified = 0;
}

int
hook_body_again(struct hook_body *b, const struct hook_material *m)
{
	int r;

	must(b->is_kept);
	r = begin_pass(b, m);
	if (r < 0)
		return r;
	if (b->kept.len > 0)
		feed_pass(b, b->kept.data, b->kept.len);
	hook_body_end(b);
	return 0;
}

void
hook_body_done(struct hook_body *b)
{
	if (b->in == NULL)
		return;
	end_pass(b);
	forget_kept(b);
}
