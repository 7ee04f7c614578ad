#include "cmd/anvil-ingress/seal.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/id.h"

#define BOUND_SIZE (ID_SIZE + 32)

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
