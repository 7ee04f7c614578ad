#include "cmd/anvil-ingress/run_find.h"

#include <string.h>

#include "cmd/anvil-ingress/accepted.h"
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/rows.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

/* One question to all shards; lives until the last one has answered. */
struct finder {
	struct exchange *x; /* NULL once its answer is decided. */
	struct run_known *k;
	run_find_fn *next;
	size_t waiting;
	int silent; /* A shard did not answer. */
};

static int
index_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct run_known *k = x->work;
	struct index_run row;
	int r = index_run_get(t->store, x->arena, http_req_param(x->req, 0), &row);

	if (r < 0)
		return r;
	k->row = rows_run_row(&row);
	return index_project_get(t->store, x->arena, row.project_id, &x->project);
}

static int
project_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const struct run_known *k = x->work;

	return index_project_get(t->store, x->arena, k->row.project_id, &x->project);
}

static void
not_found(struct exchange *x)
{
	x->project = (struct index_project) { .id = NULL };
	answer_error(x, HTTP_CODE_RUN_NOT_FOUND);
}

/* What the turn that looked for the project has found. */
static void
judge(struct exchange *x, struct run_known *k, int r, run_find_fn *next)
{
	if (r == E_NOENT && rebuild_may_lack(x->in->rebuild))
		answer_error(x, HTTP_CODE_SHARD_UNAVAILABLE);
	else if (r == E_NOENT ||
	    (r == 0 &&
		(!x->project.confirmed || strcmp(x->project.owner_user_id, x->user.id) != 0)))
		not_found(x);
	else if (r < 0)
		exchange_fail(x, r);
	else
		next(x, k);
}

/* ---- all shards ---- */

static void
on_found(struct finder *f, const struct run_row *row)
{
	struct exchange *x = TAKE_PTR(f->x);
	int r = rows_copy_run(x->arena, row, &f->k->row);

	if (r == 0) {
		f->k->of_ledger = 1;
		x->work = f->k;
		r = exchange_turn(x, 0, project_turn);
		x->work = NULL;
	}
	judge(x, f->k, r, f->next);
}

static void
one_less(struct finder *f)
{
	if (--f->waiting > 0)
		return;
	if (f->x != NULL && f->silent)
		answer_error(f->x, HTTP_CODE_SHARD_UNAVAILABLE);
	else if (f->x != NULL)
		not_found(f->x);
	free(f);
}

static void
on_answer(void *arg, int err, const struct project_find_run_result *res)
{
	struct finder *f = arg;

	if (err < 0)
		f->silent = 1;
	else if (res->kind == PROJECT_FIND_RUN_FOUND && f->x != NULL)
		on_found(f, &res->u.found.run);
	one_less(f);
}

static void
ask_all(struct exchange *x, struct run_known *k, run_find_fn *next)
{
	struct project_find_run_params p = { .run_id = http_req_param(x->req, 0) };
	struct rpc_call_opts opts = { .deadline_ms = CALL_OTHER_MS,
		.request_id = http_req_id(x->req) };
	struct finder *f = mem_calloc(1, sizeof(*f));

	if (f == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	f->x = x;
	f->k = k;
	f->next = next;
	f->waiting = 1; /* this loop */
	for (size_t i = 0; i < x->in->nshards; i++) {
		struct rpc_peer *peer = links_shard(x->in, (int64_t)i);

		if (peer != NULL && project_find_run_call(peer, &opts, &p, on_answer, f) == 0)
			f->waiting++;
		else
			f->silent = 1;
	}
	one_less(f);
}

void
run_find(struct exchange *x, struct run_known *k, run_find_fn *next)
{
	int r;

	if (!id_check(ID_RUN, http_req_param(x->req, 0))) {
		not_found(x);
		return;
	}
	accepted_flush(x->in->accepted);
	x->work = k;
	r = exchange_turn(x, 0, index_turn);
	x->work = NULL;
	if (r == E_NOENT && k->row.run_id == NULL)
		ask_all(x, k, next);
	else
		judge(x, k, r, next);
}
