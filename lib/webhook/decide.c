#include "lib/webhook/decide.h"

#include <string.h>

#include "lib/base/ascii.h"
#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/utf8.h"
#include "lib/webhook/forge.h"

/* Where the path of a normalised URL begins. */
static const char *
path_of(const char *url)
{
	const char *authority = strstr(url, "://");

	must(authority != NULL);
	return strchrnul(authority + 3, '/');
}

int
webhook_same_repository(const char *a, const char *b)
{
	const char *path_a = path_of(a), *path_b = path_of(b);

	if (path_a - a != path_b - b || memcmp(a, b, (size_t)(path_a - a)) != 0)
		return 0;
	while (*path_a != '\0' && ascii_lower(*path_a) == ascii_lower(*path_b)) {
		path_a++;
		path_b++;
	}
	return *path_a == *path_b;
}

int
webhook_config_fits(enum provider provider, const char *instance_url, const char *repo_url)
{
	const struct webhook_forge *f = webhook_forge_of(provider);
	const char *base = instance_url != NULL ? instance_url : f->base;
	size_t n;

	if (base == NULL || (instance_url != NULL && f->instance == WEBHOOK_INSTANCE_NONE))
		return 0;
	n = strlen(base);
	return strncmp(repo_url, base, n) == 0 && repo_url[n] == '/';
}

/* ---- what it comes to ---- */

static int
candidate(struct arena *arena, enum outcome outcome, const char *reason,
    struct delivery_candidate *ret)
{
	char *text;

	if (reason == NULL)
		return E_NOMEM;
	text = arena_strndup(
	    arena, reason, utf8_cut(reason, strlen(reason), WEBHOOK_REASON_MAX));
	if (text == NULL)
		return E_NOMEM;
	*ret = (struct delivery_candidate) { .outcome = outcome, .reason = text };
	return 0;
}

static const char *
no_branch(struct arena *arena, const struct verified_payload *v)
{
	if (v->ref == NULL)
		return "the push names no ref";
	return arena_format(arena, "ref \"%s\" is not a branch", v->ref);
}

int
webhook_classify(struct arena *arena, const struct verified_payload *v,
    const char *default_branch, struct delivery_candidate *ret)
{
	if (v->event_kind == EVENT_KIND_PING)
		return candidate(arena, OUTCOME_IGNORED_PING, "ping", ret);
	if (v->event_kind != EVENT_KIND_PUSH)
		return candidate(arena, OUTCOME_IGNORED_EVENT,
		    arena_format(arena, "event \"%s\" starts no run", v->event_name), ret);
	if (v->branch == NULL)
		return candidate(arena, OUTCOME_IGNORED_EVENT, no_branch(arena, v), ret);
	if (strcmp(v->branch, default_branch) != 0)
		return candidate(arena, OUTCOME_IGNORED_BRANCH,
		    arena_format(arena, "branch \"%s\" is not the default branch \"%s\"",
			v->branch, default_branch),
		    ret);
	if (v->commit_sha == NULL)
		return candidate(arena, OUTCOME_IGNORED_EVENT, "branch was deleted", ret);
	return candidate(arena, OUTCOME_ACCEPTED, "run created", ret);
}
