/* anvilctl project ...: projects, without a browser. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "cmd/anvilctl/secret.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "lib/base/mem.h"

#define PAGE      100
#define SHOW_RUNS 10

/* ---- create ---- */

static int
say_not_created(const struct ingress_create_project_params *p, int kind)
{
	switch (kind) {
	case INGRESS_CREATE_PROJECT_OWNER_NOT_FOUND:
		return ctl_fail(
		    "there is no user \"%s\"; `anvilctl user list` shows them", p->owner_slug);
	case INGRESS_CREATE_PROJECT_SLUG_TAKEN:
		return ctl_fail("%s/%s exists already", p->owner_slug, p->project_slug);
	case INGRESS_CREATE_PROJECT_NO_KEY:
		return ctl_fail("there is no key to seal the token with; see keys_file in "
				"anvil.yml(5)");
	default:
		return ctl_fail(
		    "the shard did not answer; whether %s/%s was made is not known: "
		    "`anvilctl project list`",
		    p->owner_slug, p->project_slug);
	}
}

static int
create_with(struct ctl *ctl, const struct args *args, const char *owner, const char *slug)
{
	CLEANUP(buf_wipe) struct buf token = BUF_INIT;
	const char *name = args_value(args, "--name"), *branch = args_value(args, "--branch");
	const char *path = args_value(args, "--config-path");
	struct ingress_create_project_params params = { .owner_slug = owner,
		.project_slug = slug,
		.name = name != NULL ? name : slug,
		.repo_url = args->words[1],
		.default_branch = branch != NULL ? branch : "main",
		.config_path = path != NULL ? path : ".anvil.yml" };
	struct ingress_create_project_result done = { .kind = 0 };
	int r = ctl_open(ctl);

	if (r == 0 && args_value(args, "--token") != NULL)
		r = secret_read("Repository token", 0, &token);
	if (r != 0)
		return r;
	params.repo_token = (const char *)token.data;
	r = CTL_CALL(ctl, "ingress", ingress_create_project, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != INGRESS_CREATE_PROJECT_CREATED)
		return say_not_created(&params, (int)done.kind);
	if (ctl->json)
		return ctl_print_member(ctl, "project");
	(void)printf("%s\n", done.u.created.project.project_id);
	return CTL_OK;
}

static int
create_run(struct ctl *ctl, const struct args *args)
{
	const char *slash = strchr(args->words[0], '/');
	CLEANUP_FREE char *owner = NULL;

	if (slash == NULL || slash == args->words[0] || slash[1] == '\0') {
		(void)ctl_fail("\"%s\" is no OWNER/PROJECT", args->words[0]);
		return CTL_USAGE;
	}
	owner = mem_strndup(args->words[0], (size_t)(slash - args->words[0]));
	return owner != NULL ? create_with(ctl, args, owner, slash + 1) : ctl_fail_nomem();
}

static const struct option_row create_options[] = {
	{ "--name", 'n', "NAME", "as people see it; the slug when not given" },
	{ "--branch", 'b', "BRANCH", "default branch; main when not given" },
	{ "--config-path", 0, "PATH", "of the pipeline; .anvil.yml when not given" },
	{ "--token", 't', NULL, "read an access token (prompt or standard input)" },
};

const struct command command_project_create = {
	.name = "project create",
	.words = "OWNER/PROJECT URL",
	.summary = "makes a project and prints its id",
	.more =
	    "OWNER is the slug of a user.  URL is https://host/path; others are allowed by\n"
	    "repositories.* in anvil.yml(5).",
	.min_words = 2,
	.max_words = 2,
	.options = create_options,
	.noptions = ARRAY_LEN(create_options),
	.run = create_run,
};

/* ---- list ---- */

static void
add_project(struct table *t, const struct project_row *row)
{
	const struct project_config *p = &row->project;

	table_add(t, TONE_PLAIN, "%s/%s", p->owner_slug, p->project_slug);
	if (row->has_last_run_status)
		table_add_word(t, run_status_name(row->last_run_status));
	else
		table_add(t, TONE_DIM, "-");
	table_add(t, TONE_PLAIN, "%s", p->default_branch);
	table_add(t, TONE_PLAIN, "%d", (int)row->shard);
	table_add(t, TONE_PLAIN, "%s", p->project_id);
	table_add(t, TONE_PLAIN, "%s", p->repo_url);
}

static int
list_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "PROJECT", "LAST RUN", "BRANCH", ">SHARD", "ID",
		"REPOSITORY" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(json_unrefp) json_t *list = json_array();
	struct ingress_list_projects_params params = { .limit = PAGE,
		.owner_slug = args->nwords > 0 ? args->words[0] : NULL };
	struct ingress_list_projects_result page;
	int r = ctl_open(ctl);

	if (t == NULL || list == NULL)
		return ctl_fail_nomem();
	if (r != 0)
		return r;
	do {
		page = (struct ingress_list_projects_result) { .kind = 0 };
		r = CTL_CALL(ctl, "ingress", ingress_list_projects, &params, &page);
		if (r != 0)
			return r;
		for (size_t i = 0; i < page.u.page.nprojects; i++)
			add_project(t, &page.u.page.projects[i]);
		if (json_array_extend(list,
			json_object_get((json_t *)(uintptr_t)ctl->reply.result, "projects")) <
		    0)
			return ctl_fail_nomem();
		params.cursor = page.u.page.next;
	} while (params.cursor != NULL);
	return ctl->json ? ctl_print_json(ctl, list) : ctl_print_table(ctl, t, "no projects");
}

const struct command command_project_list = {
	.name = "project list",
	.words = "[OWNER]",
	.summary = "lists projects with the status of their newest run",
	.max_words = 1,
	.run = list_run,
};

/* ---- show ---- */

static void
print_project(const struct project_config *p, const char *shard)
{
	char text[TEXT_SIZE];

	text_time(p->created_at, text);
	(void)printf("%s/%s  %s  %s\n", p->owner_slug, p->project_slug, p->project_id, shard);
	(void)printf("name: %s\nrepository: %s\nbranch: %s\npipeline: %s\nbadge: %s\n"
		     "created: %s\n\n",
	    p->name, p->repo_url, p->default_branch, p->config_path,
	    p->badge_public ? "public" : "off", text);
}

static void
add_run(struct table *t, const struct run_row *run)
{
	int64_t end = run->has_finished_at ? run->finished_at : clock_wall_ms();

	table_add(t, TONE_PLAIN, "%s", run->run_id);
	table_add_word(t, run_status_name(run->status));
	table_add(t, TONE_PLAIN, "%s", run->branch);
	table_add(t, TONE_PLAIN, "%.12s", run->commit_sha != NULL ? run->commit_sha : "-");
	table_add_time(t, run->queued_at);
	table_add_duration(t, run->has_started_at ? end - run->started_at : -1);
	table_add(t, TONE_PLAIN, "%s",
	    run->has_failure_code ? failure_code_name(run->failure_code) : "");
}

/* The two answers as one value. */
static int
show_json(struct ctl *ctl, const json_t *detail, const json_t *runs)
{
	CLEANUP(json_unrefp)
	json_t *j = json_pack("{s:O, s:O, s:O, s:O}", "project",
	    json_object_get(detail, "project"), "activeRun",
	    json_object_get(detail, "activeRun"), "pendingRuns",
	    json_object_get(detail, "pendingRuns"), "runs", json_object_get(runs, "runs"));

	return j != NULL ? ctl_print_json(ctl, j) : ctl_fail_nomem();
}

static int
show_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "RUN", "STATUS", "BRANCH", "COMMIT", "QUEUED",
		">TIME", "FAILURE" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	struct project_get_detail_result detail = { .kind = 0 };
	struct ingress_list_runs_result runs = { .kind = 0 };
	struct ingress_list_runs_params runs_params = { .limit = SHOW_RUNS };
	struct project_get_detail_params params;
	const json_t *detail_json;
	struct place where;
	int r = resolve_project(ctl, args->words[0], &where);

	params.project_id = runs_params.project_id = where.project_id;
	if (r == 0)
		r = PLACE_CALL(
		    ctl, &where, project_get_detail, PROJECT_GET_DETAIL, &params, &detail);
	if (r != 0)
		return r;
	if (detail.kind != PROJECT_GET_DETAIL_DETAIL)
		return ctl_fail("%s does not have %s now; try again", where.shard, where.name);
	detail_json = ctl->reply.result;
	r = CTL_CALL(ctl, "ingress", ingress_list_runs, &runs_params, &runs);
	if (r != 0)
		return r;
	if (ctl->json)
		return show_json(ctl, detail_json, ctl->reply.result);
	print_project(&detail.u.detail.project, where.shard);
	for (size_t i = 0;
	     t != NULL && runs.kind == INGRESS_LIST_RUNS_PAGE && i < runs.u.page.nruns; i++)
		add_run(t, &runs.u.page.runs[i]);
	return ctl_print_table(ctl, t, "no runs");
}

const struct command command_project_show = {
	.name = "project show",
	.words = "PROJECT",
	.summary = "shows a project and its newest runs",
	.min_words = 1,
	.max_words = 1,
	.run = show_run,
};

/* ---- rm ---- */

/* Whoever does not say is asked to remove it all the same. */
static int
has_active_run(struct ctl *ctl, const struct place *where)
{
	struct project_get_detail_params params = { .project_id = where->project_id };
	struct project_get_detail_result detail = { .kind = 0 };

	return CTL_TRY(ctl, where->shard, project_get_detail, &params, &detail) == 0 &&
	    detail.kind == PROJECT_GET_DETAIL_DETAIL && detail.u.detail.active_run != NULL;
}

static int
rm_run(struct ctl *ctl, const struct args *args)
{
	struct project_remove_result done = { .kind = 0 };
	struct project_remove_params params;
	char question[RESOLVE_NAME_SIZE + 80];
	struct place where;
	int r = resolve_project(ctl, args->words[0], &where), active;

	if (r != 0)
		return r;
	(void)snprintf(question, sizeof(question),
	    "Removes %s with its runs and logs, for good.", where.name);
	if (args_value(args, "--yes") == NULL && !secret_confirm(question, where.name))
		return ctl_fail("nothing was removed");
	params.project_id = where.project_id;
	active = has_active_run(ctl, &where);
	r = PLACE_CALL(ctl, &where, project_remove, PROJECT_REMOVE, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != PROJECT_REMOVE_REMOVING)
		return ctl_fail("%s does not have %s now; try again", where.shard, where.name);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	(void)printf("%s is being removed%s\n", where.name,
	    active ? "; its active run is ended first" : "");
	return CTL_OK;
}

static const struct option_row rm_options[] = {
	{ "--yes", 'y', NULL, "do not ask" },
};

const struct command command_project_rm = {
	.name = "project rm",
	.words = "PROJECT",
	.summary = "removes a project with its runs and logs",
	.min_words = 1,
	.max_words = 1,
	.options = rm_options,
	.noptions = ARRAY_LEN(rm_options),
	.run = rm_run,
};
