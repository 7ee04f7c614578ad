#include "cmd/anvil-project/notice.h"

#include <stdio.h>

#include "cmd/anvil-project/shard.h"
#include "gen/ingress.h"
#include "lib/base/mem.h"

struct notice {
	struct shard *shard;
	char project_id[ID_SIZE];
	int has_provider;
	enum provider provider;
};

static void
tell(void *arg)
{
	CLEANUP_FREE struct notice *n = arg;
	struct webhook_changed_params params = { .project_id = n->project_id,
		.has_provider = n->has_provider,
		.provider = n->provider };
	struct rpc_peer *p = link_peer(n->shard->ingress);

	if (p != NULL)
		(void)webhook_changed_send(p, NULL, &params);
}

int
notice_webhook_after(
    struct shard *s, struct turn *t, const char *project_id, const enum provider *provider)
{
	struct notice *n = mem_calloc(1, sizeof(*n));
	int r;

	if (n == NULL)
		return E_NOMEM;
	n->shard = s;
	(void)snprintf(n->project_id, sizeof(n->project_id), "%s", project_id);
	n->has_provider = provider != NULL;
	if (provider != NULL)
		n->provider = *provider;
	r = turn_after_commit(t, tell, n, free);
	if (r < 0)
		free(n);
	return r;
}
