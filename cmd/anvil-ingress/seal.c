#include "cmd/anvil-ingress/seal.h"

#include <stdio.h>
#include <string.h>

#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

#define BOUND_SIZE     (ID_SIZE + 32)
#define ROW_BOUND_SIZE (3 * 64 + 3) /* The contract allows 64 bytes for each. */

int
seal_repo_token(const struct ingress *in, const char *project_id, const char *token,
    struct vault_sealed *ret)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	/* What the run says when it opens it. */
	(void)snprintf(bound, sizeof(bound), "project_config|%s|repo_token", project_id);
	return vault_seal(
	    in->keys, VAULT_REPO_TOKEN, project_id, bound, token, strlen(token), ret);
}

static void
bind_webhook(char bound[BOUND_SIZE], const char *webhook_id)
{
	(void)snprintf(bound, BOUND_SIZE, "project_webhooks|%s|secret", webhook_id);
}

int
seal_webhook_secret(const struct ingress *in, const char *project_id, const char *webhook_id,
    const char *secret, size_t n, struct vault_sealed *ret)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	bind_webhook(bound, webhook_id);
	return vault_seal(in->keys, VAULT_WEBHOOK_SECRET, project_id, bound, secret, n, ret);
}

int
seal_open_webhook_secret(const struct ingress *in, const char *project_id,
    const char *webhook_id, const struct vault_sealed *sealed, struct buf *out)
{
	char bound[BOUND_SIZE];

	if (in->keys == NULL)
		return E_NOKEY;
	bind_webhook(bound, webhook_id);
	return vault_open(in->keys, VAULT_WEBHOOK_SECRET, project_id, bound, sealed, out);
}

static int
purpose_of(const struct sealed_secret *s, enum vault_purpose *ret)
{
	if (strcmp(s->table, "project_config") == 0 && strcmp(s->column, "repo_token") == 0)
		*ret = VAULT_REPO_TOKEN;
	else if (strcmp(s->table, "project_webhooks") == 0 && strcmp(s->column, "secret") == 0)
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

static void
bind_row(char bound[ROW_BOUND_SIZE], const struct sealed_secret *row)
{
	(void)snprintf(bound, ROW_BOUND_SIZE, "%s|%s|%s", row->table, row->row_id, row->column);
}

int
seal_check(const struct ingress *in, const struct sealed_secret *row)
{
	CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
	char bound[ROW_BOUND_SIZE];
	enum vault_purpose purpose;
	int r = purpose_of(row, &purpose);

	bind_row(bound, row);
	return r < 0 ? r : open_row(in, row, purpose, bound, &plain);
}

int
seal_anew(const struct ingress *in, const struct sealed_secret *row, struct vault_sealed *ret)
{
	CLEANUP(buf_wipe) struct buf plain = BUF_INIT;
	char bound[ROW_BOUND_SIZE];
	enum vault_purpose purpose;
	int r = purpose_of(row, &purpose);

	bind_row(bound, row);
	if (r == 0)
		r = open_row(in, row, purpose, bound, &plain);
	if (r == 0)
		r = vault_seal(
		    in->keys, purpose, row->project_id, bound, plain.data, plain.len, ret);
	return r;
}
