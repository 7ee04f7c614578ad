/* webhook.changed: what shards tell of their webhooks (webhooks 8). */
#include "cmd/anvil-ingress/hook_cache.h"
#include "gen/ingress.h"

int
webhook_changed(struct ingress *in, struct turn *t, const struct webhook_changed_params *p)
{
	(void)t;
	if (p->has_provider)
		hook_cache_drop(in->hook_cache, p->project_id, p->provider);
	else
		hook_cache_drop_project(in->hook_cache, p->project_id);
	return 0;
}
