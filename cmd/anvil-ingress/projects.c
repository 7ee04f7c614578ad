/* Projects: list, one in detail, a new one, changes (http-api 6). */
#include <string.h>

#include "cmd/anvil-ingress/accepted.h"
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/create.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

/* ---- list ---- */

static int
list_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct http_list_projects_answer answer = { .projects = NULL };
	struct http_project_summary *out;
	struct index_project *rows;
	size_t n;
	int r = index_project_list(t->store, t->arena, x->user.id, &rows, &n);

	if (r < 0)
		return r;
	out = arena_calloc(t->arena, n, sizeof(*out));
	if (out == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++)
		out[i] = answer_project(&rows[i]);
	answer.projects = out;
	answer.nprojects = n;
	r = answer_prepare(x, &http_list_projects_answer_codec, &answer);
	return r < 0 ? r : exchange_answer_after(x, t, 200);
}

void
route_list_projects(struct exchange *x)
{
	accepted_flush(x->in->accepted);
	exchange_do(x, 0, list_turn);
}

/* ---- detail ---- */

struct detail {
	struct exchange *x;
	struct shard_call call;
};

/* The status of the newest run, as the queue of the shard shows it. */
static void
set_last_status(struct http_project_summary *s, const struct project_get_detail_detail *d)
{
	if (d->active_run != NULL) {
		s->has_last_run_status = 1;
		s->last_run_status = d->active_run->status;
	} else if (d->npending_runs > 0) {
		s->has_last_run_status = 1;
		s->last_run_status = RUN_STATUS_QUEUED;
	}
}

static void
answer_detail(struct exchange *x, const struct project_get_detail_detail *d)
{
	struct http_get_project_answer answer = { .npending_runs = d->npending_runs };
	struct http_pending_run *pending = arena_calloc(
	    x->arena, d->npending_runs, sizeof(*pending));
	struct index_project p = rows_index_project(&d->project, x->project.shard);
	struct http_run_summary active;

	if (pending == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	p.last_run_status = x->project.last_run_status;
	answer.project = answer_project(&p);
	set_last_status(&answer.project, d);
	if (d->active_run != NULL) {
		active = rows_summary(d->active_run);
		answer.active_run = &active;
	}
	for (size_t i = 0; i < d->npending_runs; i++)
		pending[i] = (struct http_pending_run) { .run_id = d->pending_runs[i].run_id,
			.branch = d->pending_runs[i].branch,
			.queued_at = d->pending_runs[i].queued_at };
	answer.pending_runs = pending;
	answer_value(x, 200, &http_get_project_answer_codec, &answer);
}

static void
on_detail(void *arg, int err, const struct project_get_detail_result *res)
{
	struct detail *d = arg;
	struct exchange *x = d->x;

	if (err < 0) {
		shard_call_error(&d->call, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_GET_DETAIL_MOVED: shard_call_moved(&d->call, res->u.moved.shard); return;
	case PROJECT_GET_DETAIL_MOVING:
		shard_call_moving(&d->call, res->u.moving.retry_ms);
		return;
	case PROJECT_GET_DETAIL_DETAIL:
		shard_call_done(&d->call);
		answer_detail(x, &res->u.detail);
		return;
	case PROJECT_GET_DETAIL_NOT_FOUND: break;
	}
	shard_call_done(&d->call);
	log_event(LOG_LEVEL_ERROR, "project_unknown_to_shard",
	    LOG_STR("projectId", x->project.id), LOG_INT("shard", d->call.shard));
	answer_error(x, HTTP_CODE_PROJECT_NOT_FOUND);
}

static struct detail *
detail_of(struct shard_call *c)
{
	return CONTAINER_OF(c, struct detail, call);
}

static int
send_detail(struct shard_call *c, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct detail *d = detail_of(c);
	struct project_get_detail_params p = { .project_id = d->x->project.id };

	return project_get_detail_call(peer, opts, &p, on_detail, d);
}

static void
detail_failed(struct shard_call *c, enum http_code why, int sent)
{
	(void)sent;
	answer_error(detail_of(c)->x, why);
}

void
route_get_project(struct exchange *x)
{
	struct detail *d;

	accepted_flush(x->in->accepted);
	if (routes_find_project(x) < 0)
		return;
	d = arena_alloc(x->arena, sizeof(*d));
	if (d == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	d->x = x;
	d->call = (struct shard_call) { .in = x->in,
		.shard = x->project.shard,
		.deadline_ms = CALL_OTHER_MS,
		.request_id = http_req_id(x->req),
		.send = send_detail,
		.failed = detail_failed };
	shard_call_start(&d->call);
}

/* ---- create ---- */

static void
on_create_done(struct create *c, enum create_verdict v)
{
	struct exchange *x = c->arg;
	struct http_create_project_answer answer;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	switch (v) {
	case CREATE_CREATED:
		answer.project = answer_project(&c->project);
		answer_value(x, 201, &http_create_project_answer_codec, &answer);
		break;
	case CREATE_SLUG_TAKEN: answer_error(x, HTTP_CODE_PROJECT_SLUG_TAKEN); break;
	case CREATE_FAILED: answer_error(x, c->why); break;
	}
}

static void
on_create_body(struct exchange *x)
{
	struct http_create_project_body b = { .name = NULL };
	struct create *c = arena_alloc(x->arena, sizeof(*c));

	if (c == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	if (exchange_shapes(x, &http_create_project_body_codec, &b) < 0 ||
	    exchange_rules(x, &http_create_project_body_codec, &b) < 0)
		return;
	*c = (struct create) { .in = x->in,
		.owner_user_id = x->user.id,
		.owner_slug = x->user.slug,
		.slug = b.project_slug,
		.name = b.name,
		.repo_url = b.repo_url,
		.default_branch = b.default_branch,
		.config_path = b.config_path,
		.repo_token = b.has_repo_token ? b.repo_token : NULL,
		.badge_public = b.badge_public,
		.request_id = http_req_id(x->req),
		.done = on_create_done,
		.arg = x };
	create_start(c);
}

void
route_create_project(struct exchange *x)
{
	exchange_read_body(x, on_create_body);
}
