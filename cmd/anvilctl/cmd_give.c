/* anvilctl project give: makes another user the owner of a project, or of all of an owner. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/ingress.h"
#include "lib/base/base.h"
#include "lib/base/err.h"

#define PAGE 100

struct giver {
	struct ctl *ctl;
	const char *user;
	json_t *given; /* Borrowed: answers, for --json. */
};

static int
say_not_given(const struct giver *g, const char *name, const char *slug,
    const struct ingress_give_project_result *res)
{
	switch (res->kind) {
	case INGRESS_GIVE_PROJECT_USER_NOT_FOUND:
		return ctl_fail(
		    "there is no user \"%s\"; `anvilctl user list` shows them", g->user);
	case INGRESS_GIVE_PROJECT_USER_DISABLED:
		return ctl_fail(
		    "%s is disabled; `anvilctl user enable %s` ends that", g->user, g->user);
	case INGRESS_GIVE_PROJECT_SLUG_TAKEN:
		return ctl_fail("%s stays where it is: there is a %s/%s already", name,
		    res->u.slug_taken.owner_slug, slug);
	case INGRESS_GIVE_PROJECT_NOT_FOUND:
		return ctl_fail("no shard has %s now; try again", name);
	default:
		return ctl_fail("the shard of %s did not answer; whether it was given is not "
				"known: repeat the order",
		    name);
	}
}

/* What others have to know by its old name. */
static void
say_given(const struct ingress_give_project_given *given)
{
	const struct project_config *p = &given->project;

	if (strcmp(p->owner_user_id, given->former_owner_user_id) == 0) {
		(void)printf("%s/%s belongs to %s (%s) already\n", p->owner_slug,
		    p->project_slug, p->owner_slug, p->owner_user_id);
		return;
	}
	(void)printf("%s/%s belongs to %s (%s) now, and to %s (%s) no more\n", p->owner_slug,
	    p->project_slug, p->owner_slug, p->owner_user_id, given->former_owner_slug,
	    given->former_owner_user_id);
	if (strcmp(p->owner_slug, given->former_owner_slug) != 0)
		(void)printf("%s/%s is no name any more: webhooks have to be sent to "
			     "/api/public/hooks/PROVIDER/%s/%s, and its badge is at "
			     "/badge/%s/%s.svg\n",
		    given->former_owner_slug, p->project_slug, p->owner_slug, p->project_slug,
		    p->owner_slug, p->project_slug);
}

/* ${name} is "owner/project". */
static int
give(struct giver *g, const char *project_id, const char *name)
{
	struct ingress_give_project_params params = { .project_id = project_id,
		.user = g->user };
	struct ingress_give_project_result res = { .kind = 0 };
	int r = CTL_CALL(g->ctl, "ingress", ingress_give_project, &params, &res);

	if (r != 0)
		return r;
	if (res.kind != INGRESS_GIVE_PROJECT_GIVEN)
		return say_not_given(g, name, strchr(name, '/') + 1, &res);
	if (g->ctl->json)
		return json_array_append(g->given, (json_t *)(uintptr_t)g->ctl->reply.result) ==
			0
		    ? CTL_OK
		    : ctl_fail_nomem();
	say_given(&res.u.given);
	return CTL_OK;
}

static int
give_one(struct giver *g, const char *word)
{
	struct place where;
	int r = resolve_project(g->ctl, word, &where);

	if (r == 0)
		r = give(g, where.project_id, where.name);
	return r == 0 && g->ctl->json ? ctl_print_json(g->ctl, json_array_get(g->given, 0)) : r;
}

/* ---- all of an owner ---- */

static const char *
text_of(const json_t *project, const char *name)
{
	const char *text = json_string_value(json_object_get(project, name));

	return text != NULL ? text : "";
}

/* All projects, as ingress.listProjects tells them. */
static int
read_projects(struct giver *g, json_t *list)
{
	struct ingress_list_projects_params params = { .limit = PAGE };
	struct ingress_list_projects_result page;
	int r = ctl_open(g->ctl);

	if (r != 0)
		return r;
	do {
		page = (struct ingress_list_projects_result) { .kind = 0 };
		r = CTL_CALL(g->ctl, "ingress", ingress_list_projects, &params, &page);
		if (r != 0)
			return r;
		if (json_array_extend(list,
			json_object_get(
			    (json_t *)(uintptr_t)g->ctl->reply.result, "projects")) < 0)
			return ctl_fail_nomem();
		params.cursor = page.u.page.next;
	} while (params.cursor != NULL);
	return 0;
}

/* All is read before anything is given, since that changes the order.  One that is refused does
 * not keep the others back. */
static int
give_all(struct giver *g, const char *owner)
{
	CLEANUP(json_unrefp) json_t *list = json_array();
	int r = list != NULL ? read_projects(g, list) : ctl_fail_nomem(), status = CTL_OK;
	char name[RESOLVE_NAME_SIZE];
	const json_t *row;
	size_t i, n = 0;

	if (r != 0)
		return r;
	json_array_foreach (list, i, row) {
		const json_t *p = json_object_get(row, "project");

		if (strcmp(text_of(p, "ownerUserId"), owner) != 0 &&
		    strcmp(text_of(p, "ownerSlug"), owner) != 0)
			continue;
		n++;
		(void)snprintf(name, sizeof(name), "%s/%s", text_of(p, "ownerSlug"),
		    text_of(p, "projectSlug"));
		r = give(g, text_of(p, "projectId"), name);
		if (r != CTL_OK)
			status = r;
		if (r == CTL_UNREACHABLE)
			return r;
	}
	if (n == 0)
		return ctl_fail(
		    "\"%s\" has no projects; `anvilctl project list` shows all", owner);
	if (!g->ctl->json)
		return status;
	r = ctl_print_json(g->ctl, g->given);
	return status != CTL_OK ? status : r;
}

static int
give_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(json_unrefp) json_t *given = json_array();
	const char *owner = args_value(args, "--all-of");
	struct giver g = { .ctl = ctl, .given = given };

	if (given == NULL)
		return ctl_fail_nomem();
	if ((owner != NULL) != (args->nwords == 1)) {
		(void)ctl_fail("either a PROJECT, or --all-of OWNER, and then the USER");
		return CTL_USAGE;
	}
	if (owner != NULL && owner[0] == '\0') {
		(void)ctl_fail("--all-of: the slug or id of an owner is needed");
		return CTL_USAGE;
	}
	g.user = args->words[args->nwords - 1];
	return owner != NULL ? give_all(&g, owner) : give_one(&g, args->words[0]);
}

static const struct option_row options[] = {
	{ "--all-of", 0, "OWNER", "every project of that slug or id instead of one" },
};

const struct command command_project_give = {
	.name = "project give",
	.words = "[PROJECT] USER",
	.summary = "makes another user the owner of a project",
	.more =
	    "USER is a slug, an address or an id.  The project, with its runs, webhooks and\n"
	    "tokens, belongs to USER from then on, and its name begins with the slug of USER:\n"
	    "when that is another, the URLs of its webhooks and its badge change, and have to\n"
	    "be entered anew where they stand.  OWNER may be an id that is no user any more,\n"
	    "as after the loss of ingress.db: `anvilctl check` names such projects.",
	.min_words = 1,
	.max_words = 2,
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = give_run,
};
