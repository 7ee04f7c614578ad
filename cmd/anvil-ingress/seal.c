#include "cmd/anvil-ingress/seal.h"

#include <stdio.h>
#include <string.h>

#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

/* Where secrets are, in the words of the shards. */
#define TOKEN_TABLE    "project_config"
#define TOKEN_COLUMN   "repo_token"
#define WEBHOOK_TABLE  "project_webhooks"
#define WEBHOOK_COLUMN "secret"

#define BOUND_SIZE (3 * 64 + 3) /* The contract allows 64 bytes for each word. */

/* What a secret is sealed for, as whoever opens it says it too. */
static void
bind_to(char bound[BOUND_SIZE], const char *table, const char *row_id, const char *column)
{
	(void)snprintf(bound, BOUND_SIZE, "%s|%s|%s", table, row_id, column);
}

int
seal_repo_token(const struct ingress *in, const char *project_id, const char *token,
    struct vault_sealed *ret)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	bind_to(bound, TOKEN_TABLE, project_id, TOKEN_COLUMN);
	return vault_seal(
	    in->keys, VAULT_REPO_TOKEN, project_id, bound, token, strlen(token), ret);
}

int
seal_webhook_secret(const struct ingress *in, const char *project_id, const char *webhook_id,
    const char *secret, size_t n, struct vault_sealed *ret)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	bind_to(bound, WEBHOOK_TABLE, webhook_id, WEBHOOK_COLUMN);
	return vault_seal(in->keys, VAULT_WEBHOOK_SECRET, project_id, bound, secret, n, ret);
}

int
seal_open_webhook_secret(const struct ingress *in, const char *project_id,
    const char *webhook_id, const struct vault_sealed *sealed, struct buf *out)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	bind_to(bound, WEBHOOK_TABLE, webhook_id, WEBHOOK_COLUMN);
	return vault_open(in->keys, VAULT_WEBHOOK_SECRET, project_id, bound, sealed, out);
}

static int
purpose_of(const struct sealed_secret *s, enum vault_purpose *ret)
{
	if (strcmp(s->table, TOKEN_TABLE) == 0 && strcmp(s->column, TOKEN_COLUMN) == 0)
		*ret = VAULT_REPO_TOKEN;
	else if (strcmp(s->table, WEBHOOK_TABLE) == 0 && strcmp(s->column, WEBHOOK_COLUMN) == 0)
		*ret = VAULT_WEBHOOK_SECRET;
	else
		return E_UNSUPPORTED;
	return 0;
}

static int
open_row(const struct ingress *in, const struct sealed_secret *row, enum vault_purpose purpose,
    const char *bound, struct buf *out)
{
	CLEANUP(vault_sealed_done) struct vault_sealed s = { .key_version = 0 };

	if (in->keys == NULL)
		return E_NOKEY;
	s.ciphertext = mem_strdup(row->sealed.ciphertext);
	if (s.ciphertext == NULL)
		return E_NOMEM;
	(void)snprintf(s.nonce, sizeof(s.nonce), "%s", row->sealed.nonce);
	s.key_version = row->sealed.key_version;
	return vault_open(in->keys, purpose, row->project_id, bound, &s, out);
}

int
seal_check(const struct ingress *in, const struct sealed_secret *row)
{
	CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
	char bound[BOUND_SIZE];
	enum vault_purpose purpose;
	int r = purpose_of(row, &purpose);

	bind_to(bound, row->table, row->row_id, row->column);
	return r < 0 ? r : open_row(in, row, purpose, bound, &plain);
}

int
seal_anew(const struct ingress *in, const struct sealed_secret *row, struct vault_sealed *ret)
{
	CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
	char bound[BOUND_SIZE];
	enum vault_purpose purpose;
	int r = purpose_of(row, &purpose);

	bind_to(bound, row->table, row->row_id, row->column);
	if (r == 0)
		r = open_row(in, row, purpose, bound, &plain);
	if (r == 0)
		r = vault_seal(
		    in->keys, purpose, row->project_id, bound, plain.data, plain.len, ret);
	return r;
}
