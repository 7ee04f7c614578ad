#include "cmd/anvil-ingress/create.h"

#include <stddef.h>
#include <stdio.h>

#include "cmd/anvil-ingress/seal.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

#define LOOK_MS 2000 /* to find out what an unanswered create has done */

static struct create *
create_of(struct shard_call *call)
{
	return CONTAINER_OF(call, struct create, call);
}

static void
finish(struct create *c, enum create_verdict v)
{
	vault_sealed_done(&c->sealed);
	c->done(c, v);
}

static void
finish_failed(struct create *c, enum http_code why)
{
	c->why = why;
	finish(c, CREATE_FAILED);
}

/* ---- turns, each of which ends with the effect that goes on ---- */

static void
lost(void *arg)
{
	struct create *c = arg;

	c->in->storage_lost = clock_mono();
	finish_failed(c, HTTP_CODE_STORAGE_UNAVAILABLE);
}

/* One turn, and what goes on when its writes are on disk. */
struct step {
	struct create *c;
	int (*fn)(struct create *c, struct turn *t);
	void (*then)(void *create);
	int ordered; /* `then` or lost() will tell the end. */
};

static int
step_turn(void *arg, struct turn *t)
{
	struct step *s = arg;
	int r = s->fn(s->c, t);

	if (r == 0)
		r = turn_after_commit(t, s->then, s->c, lost);
	s->ordered = r == 0;
	return r;
}

static void
turn(struct create *c, int (*fn)(struct create *c, struct turn *t), void (*then)(void *create))
{
	struct step s = { .c = c, .fn = fn, .then = then };
	/* ${c} and all that it borrows may be gone before the turn has ended. */
	char request_id[RPC_REQUEST_ID_SIZE];
	int r;

	(void)snprintf(request_id, sizeof(request_id), "%s", c->request_id);
	r = actor_turn_for(c->in->actor, 1, request_id, step_turn, &s);
	if (s.ordered)
		return;
	if (r == E_EXISTS)
		finish(c, CREATE_SLUG_TAKEN);
	else
		finish_failed(
		    c, r == E_NOMEM ? HTTP_CODE_OVERLOADED : HTTP_CODE_STORAGE_UNAVAILABLE);
}

static void
on_confirmed(void *arg)
{
	struct create *c = arg;

	CRASH_POINT("create_confirmed");
	log_event(LOG_LEVEL_INFO, "project_confirmed", LOG_STR("projectId", c->id),
	    LOG_STR("userId", c->owner_user_id), LOG_INT("shard", c->project.shard));
	finish(c, CREATE_CREATED);
}

static int
confirm_turn(struct create *c, struct turn *t)
{
	return index_project_confirm(t->store, c->id, c->project.shard);
}

static void
on_taken_back(void *arg)
{
	struct create *c = arg;

	finish_failed(c, c->why);
}

static int
take_back_turn(struct create *c, struct turn *t)
{
	return index_project_remove_unconfirmed(t->store, c->id);
}

static void
take_back(struct create *c, enum http_code why)
{
	c->why = why;
	turn(c, take_back_turn, on_taken_back);
}

/* ---- nobody knows: look ---- */

static void
on_looked(void *arg, int err, const struct project_get_detail_result *res)
{
	struct create *c = arg;

	if (err < 0) {
		shard_call_error(&c->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_GET_DETAIL_MOVED: shard_call_moved(&c->call, res->u.moved.shard); return;
	case PROJECT_GET_DETAIL_MOVING:
		shard_call_moving(&c->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&c->call);
	if (res->kind == PROJECT_GET_DETAIL_DETAIL) {
		c->project.shard = c->call.shard;
		turn(c, confirm_turn, on_confirmed);
	} else {
		take_back(c, c->why);
	}
}

static int
send_look(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct create *c = create_of(call);
	struct project_get_detail_params p = { .project_id = c->id };

	return project_get_detail_call(peer, opts, &p, on_looked, c);
}

/* The row stays unconfirmed; settle.c asks again. */
static void
look_failed(struct shard_call *call, enum http_code why, int sent)
{
	struct create *c = create_of(call);

	(void)why;
	(void)sent;
	finish_failed(c, c->why);
}

static void
look(struct create *c, enum http_code why)
{
	c->why = why;
	c->call = (struct shard_call) { .in = c->in,
		.shard = c->call.shard,
		.deadline_ms = LOOK_MS,
		.repeats = 1,
		.request_id = c->request_id,
		.send = send_look,
		.failed = look_failed };
	shard_call_start(&c->call);
}

/* ---- ask the shard ---- */

static void
on_created(void *arg, int err, const struct project_create_result *res)
{
	struct create *c = arg;

	if (err < 0) {
		shard_call_error(&c->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_CREATE_MOVED: shard_call_moved(&c->call, res->u.moved.shard); return;
	case PROJECT_CREATE_MOVING: shard_call_moving(&c->call, res->u.moving.retry_ms); return;
	default: break;
	}
	shard_call_done(&c->call);
	if (res->kind == PROJECT_CREATE_CONFLICT) {
		/* The id is ours and fresh: nobody else can have it. */
		log_event(LOG_LEVEL_ERROR, "project_id_conflict", LOG_STR("projectId", c->id));
		take_back(c, HTTP_CODE_INTERNAL_ERROR);
		return;
	}
	CRASH_POINT("create_answered");
	c->project.shard = c->call.shard;
	turn(c, confirm_turn, on_confirmed);
}

static int
send_create(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct create *c = create_of(call);
	struct sealed_value token = { .ciphertext = c->sealed.ciphertext,
		.nonce = c->sealed.nonce,
		.key_version = c->sealed.key_version };
	struct project_create_params p = { .project_id = c->id,
		.owner_user_id = c->owner_user_id,
		.owner_slug = c->owner_slug,
		.project_slug = c->slug,
		.name = c->name,
		.repo_url = c->repo_url,
		.default_branch = c->default_branch,
		.config_path = c->config_path,
		.badge_public = c->badge_public,
		.repo_token = c->repo_token != NULL ? &token : NULL,
		.created_at = c->project.created_at };

	return project_create_call(peer, opts, &p, on_created, c);
}

static void
create_failed(struct shard_call *call, enum http_code why, int sent)
{
	struct create *c = create_of(call);

	if (sent && why != HTTP_CODE_INTERNAL_ERROR)
		look(c, why);
	else
		take_back(c, why);
}

static void
on_added(void *arg)
{
	struct create *c = arg;

	CRASH_POINT("create_inserted");
	c->call = (struct shard_call) { .in = c->in,
		.shard = c->project.shard,
		.deadline_ms = CALL_OTHER_MS,
		.request_id = c->request_id,
		.send = send_create,
		.failed = create_failed };
	shard_call_start(&c->call);
}

static int
add_turn(struct create *c, struct turn *t)
{
	int64_t shard;
	int r = index_project_choose_shard(t->store, (int64_t)c->in->nshards, &shard);

	if (r < 0)
		return r;
	c->project = (struct index_project) { .id = c->id,
		.owner_user_id = c->owner_user_id,
		.owner_slug = c->owner_slug,
		.slug = c->slug,
		.name = c->name,
		.repo_url = c->repo_url,
		.default_branch = c->default_branch,
		.config_path = c->config_path,
		.badge_public = c->badge_public,
		.shard = shard,
		.created_at = t->now_ms,
		.updated_at = t->now_ms };
	return index_project_add(t->store, &c->project);
}

static void
begin(struct create *c)
{
	int r = 0;

	id_make(ID_PROJECT, c->id);
	c->sealed = (struct vault_sealed) { .ciphertext = NULL };
	if (c->repo_token != NULL)
		r = seal_repo_token(c->in, c->id, c->repo_token, &c->sealed);
	if (r == E_NOKEY)
		finish_failed(c, HTTP_CODE_ENCRYPTION_NOT_CONFIGURED);
	else if (r < 0)
		finish_failed(c, HTTP_CODE_OVERLOADED);
	else
		turn(c, add_turn, on_added);
}

static void
on_index_whole(struct rebuild_wait *w, int err)
{
	struct create *c = CONTAINER_OF(w, struct create, wait);

	if (err < 0)
		finish_failed(c, HTTP_CODE_SHARD_UNAVAILABLE);
	else
		begin(c);
}

void
create_start(struct create *c)
{
	if (!rebuild_may_lack(c->in->rebuild)) {
		begin(c);
		return;
	}
	/* A project that is not in the index yet may have the slug. */
	c->wait.done = on_index_whole;
	rebuild_wait(c->in->rebuild, &c->wait);
}
