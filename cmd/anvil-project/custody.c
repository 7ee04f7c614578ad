#include "cmd/anvil-project/custody.h"

#include <string.h>

#include "lib/webhook/webhook.h"

int
custody_read(struct turn *t, const char *project_id, struct custody *ret)
{
	int r = ledger_project_get(t->store, t->arena, project_id, &ret->project);

	return r < 0 ? r
		     : ledger_webhook_list(
			   t->store, t->arena, project_id, &ret->webhooks, &ret->nwebhooks);
}

int
custody_open(struct turn *t, const char *project_id, struct custody *ret)
{
	int r = custody_read(t, project_id, ret);

	/* A frozen one is still read here. */
	return r == 0 && strcmp(ret->project.phase, "live") != 0 &&
		strcmp(ret->project.phase, "frozen") != 0
	    ? E_NOENT
	    : r;
}

struct ledger_webhook *
custody_find(const struct custody *c, const char *provider)
{
	for (size_t i = 0; i < c->nwebhooks; i++)
		if (strcmp(c->webhooks[i].provider, provider) == 0)
			return &c->webhooks[i];
	return NULL;
}

int
custody_judge(struct turn *t, enum provider provider, const char *instance_url,
    const char *repo_url, const char **ret)
{
	const struct webhook_forge *f = webhook_forge_of(provider);
	const char *base = instance_url != NULL ? instance_url : f->base;

	*ret = NULL;
	if (f->instance == WEBHOOK_INSTANCE_NONE && instance_url != NULL)
		*ret = arena_format(t->arena,
		    "A webhook of %s takes no configuration: its repositories are under %s/.",
		    provider_name(provider), f->base);
	else if (f->instance == WEBHOOK_INSTANCE_REQUIRED && instance_url == NULL)
		*ret = arena_format(t->arena,
		    "A webhook of %s needs the address of the instance, as config.instanceUrl.",
		    provider_name(provider));
	else if (!webhook_config_fits(provider, instance_url, repo_url))
		*ret = arena_format(t->arena,
		    "The repository of the project is %.400s, and a webhook of %s for %.400s"
		    " needs one under %.100s/.",
		    repo_url, provider_name(provider), base, base);
	else
		return 0;
	return *ret == NULL ? E_NOMEM : 0;
}

int
custody_misfits(struct turn *t, const struct custody *c, const char *repo_url,
    const char *const **ret, size_t *ret_n)
{
	const char **names = arena_calloc(t->arena, c->nwebhooks, sizeof(*names));
	size_t n = 0;

	if (names == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < c->nwebhooks; i++) {
		const struct ledger_webhook *w = &c->webhooks[i];
		enum provider provider;

		if (provider_parse(w->provider, &provider) < 0)
			return E_CORRUPT;
		if (!webhook_config_fits(provider, w->instance_url, repo_url))
			names[n++] = w->provider;
	}
	*ret = names;
	*ret_n = n;
	return 0;
}
