#include "cmd/anvil-ingress/seal.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/id.h"

int
seal_repo_token(const struct ingress *in, const char *project_id, const char *token,
    struct vault_sealed *ret)
{
	char bound[ID_SIZE + 32];

	if (in->keys == NULL)
		return E_NOKEY;
	/* What the run says when it opens it. */
	(void)snprintf(bound, sizeof(bound), "project_config|%s|repo_token", project_id);
	return vault_seal(
	    in->keys, VAULT_REPO_TOKEN, project_id, bound, token, strlen(token), ret);
}
