#include "cmd/anvilctl/forge.h"

#include <string.h>

#include "cmd/anvilctl/ctl.h"

/* The words of each forge's own form; NULL: it has no such field. */
static const struct form {
	const char *name, *where, *url, *type, *secret, *events;
} forms[PROVIDER_COUNT] = {
	[PROVIDER_GITHUB] = { "GitHub", "Settings > Webhooks > Add webhook", "Payload URL",
	    "Content type", "Secret", "just the push event" },
	[PROVIDER_GITLAB] = { "GitLab", "Settings > Webhooks > Add new webhook", "URL", NULL,
	    "Secret token", "push events" },
	[PROVIDER_GITEA] = { "Gitea", "Settings > Webhooks > Add webhook > Gitea", "Target URL",
	    "POST content type", "Secret", "push events" },
};

const char *
forge_name(enum provider p)
{
	return forms[p].name;
}

int
forge_parse(const char *word, enum provider *ret)
{
	if (provider_parse(word, ret) == 0)
		return 0;
	(void)ctl_fail("\"%s\" is no forge; there are github, gitlab and gitea", word);
	return CTL_USAGE;
}

static void
tell_field(FILE *out, const char *name, const char *value)
{
	if (name != NULL)
		(void)fprintf(out, "  %s:%*s%s\n", name, (int)(20 - strlen(name)), "", value);
}

void
forge_tell_form(FILE *out, enum provider p, const char *delivery_url, const char *secret)
{
	const struct form *f = &forms[p];

	(void)fprintf(out, "Enter this in %s, in the repository's %s:\n", f->name, f->where);
	tell_field(out, f->url, delivery_url);
	tell_field(out, f->type, "application/json");
	tell_field(out, f->secret, secret != NULL ? secret : "the one that you gave");
	tell_field(out, "Events", f->events);
}

void
forge_tell_secret(FILE *out, enum provider p, const char *secret)
{
	const struct form *f = &forms[p];

	(void)fprintf(out,
	    "Enter this in the webhook that %s has; the old secret is good no more:\n",
	    f->name);
	tell_field(out, f->secret, secret);
}
