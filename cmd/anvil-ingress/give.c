/* ingress.giveProject: a project goes to another user (project 14).
 *
 * Its new name is kept for it first, so that nobody else can have it; then its shard makes the
 * user its owner, which is what counts; the index follows, and lets the old name go.  Whoever
 * dies between these leaves the one owner or the other: settle.c lets go of a name that was kept
 * in vain, and the shard tells the index what it has not heard. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/after.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/rows.h"
#include "cmd/anvil-ingress/viewer.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct giving {
	struct ingress *in;
	struct parked *caller;
	struct arena *arena; /* Owned: all texts. */
	const char *project_id, *user_id, *user_slug;
	const char *former_id, *former_slug;
	char name_id[ID_SIZE]; /* Of the row that keeps the new name. */
	int keeps_name;        /* There is one.                       */
	char request_id[RPC_REQUEST_ID_SIZE];
	struct shard_call call;
	const struct project_set_owner_owned *owned; /* While the index follows. */
};

static void
giving_free(struct giving *g)
{
	g->arena = arena_free(g->arena);
	free(g);
}

static struct giving *
giving_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct giving, call);
}

/* ---- the end ---- */

static void
finish(struct giving *g, enum ingress_give_project_kind kind)
{
	struct ingress_give_project_result res = { .kind = kind };

	if (kind == INGRESS_GIVE_PROJECT_GIVEN) {
		res.u.given.project = g->owned->project;
		res.u.given.former_owner_user_id = g->former_id;
		res.u.given.former_owner_slug = g->former_slug;
	}
	parked_reply(g->caller, &res);
	giving_free(g);
}

static void
is_indexed(struct ingress *in, const char *former_id)
{
	CRASH_POINT("give_indexed");
	viewers_ask_again(in, former_id);
}

static int
follow_turn(void *arg, struct turn *t)
{
	const struct giving *g = arg;
	struct index_project row = rows_index_project(&g->owned->project, g->call.shard);
	int r;

	row.rev = g->owned->rev;
	r = index_project_upsert(t->store, &row);
	return r < 0 ? r : after_commit(g->in, t, is_indexed, g->former_id);
}

static int
let_go_turn(void *arg, struct turn *t)
{
	const struct giving *g = arg;

	return index_project_remove_unconfirmed(t->store, g->name_id);
}

/* It was not given.  Should the turn fail, settle.c lets the name go. */
static void
let_go(struct giving *g, enum ingress_give_project_kind kind)
{
	if (g->keeps_name)
		(void)actor_turn_for(g->in->actor, 1, g->request_id, let_go_turn, g);
	finish(g, kind);
}

/* ---- the shard ---- */

static void
on_owned(void *arg, int err, const struct project_set_owner_result *res)
{
	struct giving *g = arg;

	if (err < 0) {
		shard_call_error(&g->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_SET_OWNER_MOVED: shard_call_moved(&g->call, res->u.moved.shard); return;
	case PROJECT_SET_OWNER_MOVING:
		shard_call_moving(&g->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&g->call);
	if (res->kind == PROJECT_SET_OWNER_NOT_FOUND) {
		log_event(LOG_LEVEL_ERROR, "project_unknown_to_shard",
		    LOG_STR("projectId", g->project_id), LOG_INT("shard", g->call.shard));
		let_go(g, INGRESS_GIVE_PROJECT_NOT_FOUND);
		return;
	}
	CRASH_POINT("give_answered");
	g->owned = &res->u.owned;
	/* Should it fail, the shard tells the index itself. */
	(void)actor_turn_for(g->in->actor, 1, g->request_id, follow_turn, g);
	finish(g, INGRESS_GIVE_PROJECT_GIVEN);
}

static int
send(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct giving *g = giving_of(c);
	struct project_set_owner_params p = { .project_id = g->project_id,
		.owner_user_id = g->user_id,
		.owner_slug = g->user_slug };

	return project_set_owner_call(peer, opts, &p, on_owned, g);
}

/* Once it was sent nobody knows, and the name is kept until the shard has been asked. */
static void
failed(struct shard_call *c, enum http_code why, int sent)
{
	struct giving *g = giving_of(c);

	(void)why;
	if (sent)
		finish(g, INGRESS_GIVE_PROJECT_UNAVAILABLE);
	else
		let_go(g, INGRESS_GIVE_PROJECT_UNAVAILABLE);
}

/* ---- the beginning ---- */

static void
give_now(void *arg)
{
	struct giving *g = arg;

	CRASH_POINT("give_promised");
	shard_call_start(&g->call);
}

static void
give_never(void *arg)
{
	struct giving *g = arg;

	parked_error(g->caller, E_STORAGE, NULL);
	giving_free(g);
}

static struct giving *
giving_new(struct ingress *in, struct turn *t, const struct index_project *project,
    const struct index_user *user)
{
	struct giving *g = mem_calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->in = in;
	id_make(ID_PROJECT, g->name_id);
	(void)snprintf(g->request_id, sizeof(g->request_id), "%s", t->request_id);
	g->call = (struct shard_call) { .in = in,
		.shard = project->shard,
		.deadline_ms = CALL_OTHER_MS,
		.repeats = 1,
		.request_id = g->request_id,
		.send = send,
		.failed = failed };
	g->arena = arena_new();
	if (g->arena != NULL) {
		g->project_id = arena_strdup(g->arena, project->id);
		g->user_id = arena_strdup(g->arena, user->id);
		g->user_slug = arena_strdup(g->arena, user->slug);
		g->former_id = arena_strdup(g->arena, project->owner_user_id);
		g->former_slug = arena_strdup(g->arena, project->owner_slug);
	}
	if (g->project_id != NULL && g->user_id != NULL && g->user_slug != NULL &&
	    g->former_id != NULL && g->former_slug != NULL)
		return g;
	giving_free(g);
	return NULL;
}

/* Parks the caller; takes ${g}. */
static int
start_take(struct giving *g, struct turn *t)
{
	g->caller = turn_park(t);
	if (g->caller == NULL) {
		giving_free(g);
		return E_NOMEM;
	}
	if (turn_after_commit(t, give_now, g, give_never) < 0) {
		parked_error(g->caller, E_NOMEM, NULL);
		giving_free(g);
	}
	return TURN_PARKED;
}

static int
begin(struct ingress *in, struct turn *t, const struct index_project *project,
    const struct index_user *user)
{
	struct giving *g = giving_new(in, t, project, user);
	struct index_project given = *project;
	int r = 0;

	if (g == NULL)
		return E_NOMEM;
	given.owner_user_id = user->id;
	given.owner_slug = user->slug;
	g->keeps_name = strcmp(project->owner_slug, user->slug) != 0;
	if (g->keeps_name)
		r = index_project_keep_name(t->store, &given, g->name_id, t->now_ms);
	if (r == 0)
		return start_take(g, t);
	giving_free(g);
	return r;
}

int
ingress_give_project(struct ingress *in, struct turn *t,
    const struct ingress_give_project_params *p, struct ingress_give_project_result *ret)
{
	struct index_project project;
	struct index_user user;
	int r = index_user_find(t->store, t->arena, p->user, &user);

	if (r == E_NOENT || (r == 0 && user.disabled_at != 0)) {
		ret->kind = r == 0 ? INGRESS_GIVE_PROJECT_USER_DISABLED
				   : INGRESS_GIVE_PROJECT_USER_NOT_FOUND;
		return 0;
	}
	/* A project that is not in the index yet may have the name. */
	if (r == 0 && rebuild_may_lack(in->rebuild))
		return turn_fail(t, E_BUSY, "the index is being filled from the shards");
	if (r == 0)
		r = index_project_get(t->store, t->arena, p->project_id, &project);
	if (r == E_NOENT || (r == 0 && !project.confirmed)) {
		ret->kind = INGRESS_GIVE_PROJECT_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = begin(in, t, &project, &user);
	if (r == E_EXISTS) {
		ret->kind = INGRESS_GIVE_PROJECT_SLUG_TAKEN;
		ret->u.slug_taken.owner_slug = user.slug;
		return 0;
	}
	return r;
}
