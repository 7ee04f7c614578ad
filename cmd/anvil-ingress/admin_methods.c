/* ingress.*: the directory, projects and runs, for anvilctl. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/accept.h"
#include "cmd/anvil-ingress/create.h"
#include "cmd/anvil-ingress/cursor.h"
#include "cmd/anvil-ingress/ingress.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/rows.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* ---- resolve ---- */

static int
resolved_project(int r, const struct index_project *p, struct ingress_resolve_result *ret)
{
	if (r == E_NOENT || (r == 0 && !p->confirmed)) {
		ret->kind = INGRESS_RESOLVE_NOT_FOUND;
		return 0;
	}
	ret->kind = INGRESS_RESOLVE_PROJECT;
	if (r == 0)
		ret->u.project = (struct ingress_resolve_project) { .project_id = p->id,
			.owner_user_id = p->owner_user_id,
			.owner_slug = p->owner_slug,
			.project_slug = p->slug,
			.shard = p->shard };
	return r;
}

static int
resolve_run(struct turn *t, const char *prefix, struct ingress_resolve_result *ret)
{
	const char **ids = arena_calloc(t->arena, 2, sizeof(*ids));
	struct index_project p;
	struct index_run run;
	size_t n;
	int r = ids != NULL ? index_run_find(t->store, t->arena, prefix, ids, &n) : E_NOMEM;

	if (r < 0)
		return r;
	ret->kind = n == 0 ? INGRESS_RESOLVE_NOT_FOUND : INGRESS_RESOLVE_AMBIGUOUS;
	if (n > 1) {
		ret->u.ambiguous.run_ids = ids;
		ret->u.ambiguous.nrun_ids = n;
	}
	if (n != 1)
		return 0;
	r = index_run_get(t->store, t->arena, ids[0], &run);
	if (r == 0)
		r = index_project_get(t->store, t->arena, run.project_id, &p);
	ret->kind = r == E_NOENT ? INGRESS_RESOLVE_NOT_FOUND : INGRESS_RESOLVE_RUN;
	if (r == 0)
		ret->u.run = (struct ingress_resolve_run) {
			.run_id = run.id, .project_id = p.id, .shard = p.shard
		};
	return r == E_NOENT ? 0 : r;
}

static int
resolve(
    struct turn *t, const struct ingress_resolve_params *p, struct ingress_resolve_result *ret)
{
	const char *slash = strchr(p->name, '/');
	struct index_project project;
	char *owner;

	if (slash != NULL) {
		owner = arena_strndup(t->arena, p->name, (size_t)(slash - p->name));
		if (owner == NULL)
			return E_NOMEM;
		return resolved_project(
		    index_project_by_slug(t->store, t->arena, owner, slash + 1, &project),
		    &project, ret);
	}
	if (id_check(ID_PROJECT, p->name))
		return resolved_project(
		    index_project_get(t->store, t->arena, p->name, &project), &project, ret);
	return resolve_run(t, p->name, ret);
}

int
ingress_resolve(struct ingress *in, struct turn *t, const struct ingress_resolve_params *p,
    struct ingress_resolve_result *ret)
{
	int r = resolve(t, p, ret);

	if (r == 0 && ret->kind == INGRESS_RESOLVE_NOT_FOUND && rebuild_may_lack(in->rebuild))
		return turn_fail(
		    t, E_BUSY, "not in the index, which is being filled from the shards");
	return r;
}

/* ---- lists ---- */

int
ingress_list_projects(struct ingress *in, struct turn *t,
    const struct ingress_list_projects_params *p, struct ingress_list_projects_result *ret)
{
	size_t first = p->cursor != NULL ? (size_t)strtoul(p->cursor, NULL, 10) : 0, n,
	       count = 0;
	const char *owner = NULL;
	struct index_project *all;
	struct project_row *rows;
	struct index_user u;
	int r = 0;

	(void)in;
	ret->kind = INGRESS_LIST_PROJECTS_PAGE;
	if (p->owner_slug != NULL) {
		r = index_user_find(t->store, t->arena, p->owner_slug, &u);
		if (r < 0)
			return r == E_NOENT ? 0 : r;
		owner = u.id;
	}
	r = index_project_list(t->store, t->arena, owner, &all, &n);
	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, (size_t)p->limit, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = first; i < n && count < (size_t)p->limit; i++, count++) {
		rows[count].project = rows_project_config(&all[i]);
		rows[count].shard = all[i].shard;
		rows[count].has_last_run_status = all[i].last_run_status != NULL &&
		    run_status_parse(all[i].last_run_status, &rows[count].last_run_status) == 0;
	}
	ret->u.page.projects = rows;
	ret->u.page.nprojects = count;
	if (first + count < n) {
		ret->u.page.next = arena_format(t->arena, "%zu", first + count);
		return ret->u.page.next != NULL ? 0 : E_NOMEM;
	}
	return 0;
}

int
ingress_list_runs(struct ingress *in, struct turn *t, const struct ingress_list_runs_params *p,
    struct ingress_list_runs_result *ret)
{
	struct index_run_page page = { .project_id = p->project_id, .limit = (size_t)p->limit };
	char before[ID_SIZE], next[CURSOR_SIZE];
	struct index_project project;
	struct index_run *found;
	struct run_row *rows;
	int more, r;

	(void)in;
	r = index_project_get(t->store, t->arena, p->project_id, &project);
	if (r == E_NOENT) {
		ret->kind = INGRESS_LIST_RUNS_NOT_FOUND;
		return 0;
	}
	if (p->cursor != NULL && p->cursor[0] != '\0') {
		if (cursor_parse(p->cursor, &page.before_queued_at, before) < 0)
			return turn_fail(t, E_INVAL, "not a cursor that was given here");
		page.before_id = before;
	}
	if (r == 0)
		r = index_run_list(
		    t->store, t->arena, &page, &found, &ret->u.page.nruns, &more);
	if (r < 0)
		return r;
	ret->kind = INGRESS_LIST_RUNS_PAGE;
	rows = arena_calloc(t->arena, ret->u.page.nruns, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < ret->u.page.nruns; i++)
		rows[i] = rows_run_row(&found[i]);
	ret->u.page.runs = rows;
	if (more) {
		cursor_format(found[ret->u.page.nruns - 1].queued_at,
		    found[ret->u.page.nruns - 1].id, next);
		ret->u.page.next = arena_strdup(t->arena, next);
		return ret->u.page.next != NULL ? 0 : E_NOMEM;
	}
	return 0;
}

/* ---- a new project ---- */

struct creating {
	struct create create;
	struct parked *caller;
	struct arena *arena; /* Owned. */
	char request_id[RPC_REQUEST_ID_SIZE];
};

static void
creating_free(struct creating *c)
{
	c->arena = arena_free(c->arena);
	free(c);
}

static void
on_created(struct create *create, enum create_verdict v)
{
	struct creating *c = create->arg;
	struct ingress_create_project_result res = { .kind =
							 INGRESS_CREATE_PROJECT_UNAVAILABLE };

	if (v == CREATE_CREATED) {
		res.kind = INGRESS_CREATE_PROJECT_CREATED;
		res.u.created.project = rows_project_config(&create->project);
		res.u.created.shard = create->project.shard;
	} else if (v == CREATE_SLUG_TAKEN) {
		res.kind = INGRESS_CREATE_PROJECT_SLUG_TAKEN;
	} else if (create->why == HTTP_CODE_ENCRYPTION_NOT_CONFIGURED) {
		res.kind = INGRESS_CREATE_PROJECT_NO_KEY;
	}
	parked_reply(c->caller, &res);
	creating_free(c);
}

static void
create_now(void *arg)
{
	struct creating *c = arg;

	create_start(&c->create);
}

static void
create_never(void *arg)
{
	struct creating *c = arg;

	parked_error(c->caller, E_STORAGE, NULL);
	creating_free(c);
}

static struct creating *
creating_new(struct ingress *in, struct turn *t, const struct index_user *owner,
    const struct ingress_create_project_params *p)
{
	const char *const from[] = { owner->id, owner->slug, p->project_slug, p->name,
		p->repo_url, p->default_branch, p->config_path, p->repo_token };
	const char *to[ARRAY_LEN(from)];
	struct creating *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->arena = arena_new();
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		to[i] = c->arena != NULL && from[i] != NULL ? arena_strdup(c->arena, from[i])
							    : NULL;
		if (from[i] != NULL && to[i] == NULL) {
			creating_free(c);
			return NULL;
		}
	}
	(void)snprintf(c->request_id, sizeof(c->request_id), "%s", t->request_id);
	c->create = (struct create) { .in = in,
		.owner_user_id = to[0],
		.owner_slug = to[1],
		.slug = to[2],
		.name = to[3],
		.repo_url = to[4],
		.default_branch = to[5],
		.config_path = to[6],
		.repo_token = to[7],
		.badge_public = p->badge_public,
		.request_id = c->request_id,
		.done = on_created,
		.arg = c };
	return c;
}

int
ingress_create_project(struct ingress *in, struct turn *t,
    const struct ingress_create_project_params *p, struct ingress_create_project_result *ret)
{
	struct index_user owner;
	struct creating *c;
	int r = index_user_find(t->store, t->arena, p->owner_slug, &owner);

	if (r == E_NOENT) {
		ret->kind = INGRESS_CREATE_PROJECT_OWNER_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	c = creating_new(in, t, &owner, p);
	if (c == NULL)
		return E_NOMEM;
	c->caller = turn_park(t);
	/* Its own turns begin when this one is over. */
	if (c->caller != NULL && turn_after_commit(t, create_now, c, create_never) == 0)
		return TURN_PARKED;
	if (c->caller != NULL) {
		parked_error(c->caller, E_NOMEM, NULL);
		creating_free(c);
		return TURN_PARKED;
	}
	creating_free(c);
	return E_NOMEM;
}

/* ---- a new run ---- */

struct triggering {
	struct accept accept;
	struct parked *caller;
	struct arena *arena; /* Owned. */
	char request_id[RPC_REQUEST_ID_SIZE];
};

static void
triggering_free(struct triggering *g)
{
	g->arena = arena_free(g->arena);
	free(g);
}

static void
on_accepted(struct accept *a, enum accept_verdict v, const struct run_row *run)
{
	static const enum ingress_trigger_run_kind kinds[] = {
		[ACCEPT_ACCEPTED] = INGRESS_TRIGGER_RUN_ACCEPTED,
		[ACCEPT_QUEUE_FULL] = INGRESS_TRIGGER_RUN_QUEUE_FULL,
		[ACCEPT_NOT_FOUND] = INGRESS_TRIGGER_RUN_NOT_FOUND,
		[ACCEPT_FAILED] = INGRESS_TRIGGER_RUN_UNAVAILABLE,
	};
	struct triggering *g = a->arg;
	struct ingress_trigger_run_result res = { .kind = kinds[v] };

	if (v == ACCEPT_ACCEPTED) {
		res.u.accepted.run = *run;
		res.u.accepted.shard = a->call.shard;
	} else if (v == ACCEPT_FAILED) {
		res.u.unavailable.reason = http_code_name(a->why);
	}
	parked_reply(g->caller, &res);
	triggering_free(g);
}

static void
trigger_now(void *arg)
{
	struct triggering *g = arg;

	accept_start(&g->accept);
}

static void
trigger_never(void *arg)
{
	struct triggering *g = arg;

	parked_error(g->caller, E_STORAGE, NULL);
	triggering_free(g);
}

static struct triggering *
triggering_new(
    struct ingress *in, struct turn *t, const struct index_project *project, const char *branch)
{
	struct triggering *g = mem_calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	(void)snprintf(g->request_id, sizeof(g->request_id), "%s", t->request_id);
	g->arena = arena_new();
	if (g->arena != NULL)
		g->accept = (struct accept) { .in = in,
			.project_id = arena_strdup(g->arena, project->id),
			.user_id = arena_strdup(g->arena, project->owner_user_id),
			.branch = branch != NULL ? arena_strdup(g->arena, branch) : NULL,
			.shard = project->shard,
			.request_id = g->request_id,
			.done = on_accepted,
			.arg = g };
	if (g->accept.project_id != NULL && g->accept.user_id != NULL &&
	    (branch == NULL || g->accept.branch != NULL))
		return g;
	triggering_free(g);
	return NULL;
}

int
ingress_trigger_run(struct ingress *in, struct turn *t,
    const struct ingress_trigger_run_params *p, struct ingress_trigger_run_result *ret)
{
	struct index_project project;
	struct triggering *g;
	int r = index_project_get(t->store, t->arena, p->project_id, &project);

	if (r == E_NOENT || (r == 0 && !project.confirmed)) {
		ret->kind = INGRESS_TRIGGER_RUN_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	g = triggering_new(in, t, &project, p->branch);
	if (g == NULL)
		return E_NOMEM;
	g->caller = turn_park(t);
	if (g->caller != NULL && turn_after_commit(t, trigger_now, g, trigger_never) == 0)
		return TURN_PARKED;
	if (g->caller != NULL) {
		parked_error(g->caller, E_NOMEM, NULL);
		triggering_free(g);
		return TURN_PARKED;
	}
	triggering_free(g);
	return E_NOMEM;
}
