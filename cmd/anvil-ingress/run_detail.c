/* GET /api/private/runs/{runId}: ledger, index and run actor in one picture (http-api 7).
 *
 * One after the other: the row of the index, the shard's newer word unless the run has ended,
 * the run actor.  Whatever does not answer leaves the picture with less in it. */
#include "cmd/anvil-ingress/run_detail.h"

#include <stddef.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/query.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "gen/project.h"
#include "lib/base/err.h"

#define LOG_BYTES_DEFAULT 262144
#define LOG_BYTES_MAX     2097152

/* In the exchange's arena. */
struct detail {
	struct exchange *x;
	struct run_known known;
	int64_t log_bytes;
	struct runlink_want want;
};

static struct detail *
detail_of(struct runlink_want *w)
{
	return CONTAINER_OF(w, struct detail, want);
}

/* ---- the run actor ---- */

static void
answer(struct detail *d, enum runlink_verdict store, const struct run_get_detail_detail *of_run)
{
	struct exchange *x = d->x;
	struct http_run_step *steps = NULL;
	struct http_log_event *events = NULL;
	struct http_run_detail merged;

	if (of_run != NULL) {
		steps = arena_calloc(x->arena, of_run->nsteps, sizeof(*steps));
		events = arena_calloc(x->arena, of_run->nrecent_logs, sizeof(*events));
		if (steps == NULL || events == NULL) {
			exchange_fail(x, E_NOMEM);
			return;
		}
	}
	merged = merge_detail(&d->known.row, store, of_run, steps, events);
	answer_value(x, 200, &http_run_detail_codec, &merged);
}

static void
on_detail(void *arg, int err, const struct run_get_detail_result *res)
{
	struct detail *d = arg;

	/* A run that was killed before its first words has a store with nothing in it. */
	if (err < 0)
		answer(d, err == E_NOENT ? RUNLINK_ABSENT : RUNLINK_SILENT, NULL);
	else
		answer(d, RUNLINK_UP, &res->u.detail);
}

static void
on_link(struct runlink_want *w, enum runlink_verdict v, struct rpc_peer *peer)
{
	struct detail *d = detail_of(w);
	struct run_get_detail_params p = { .log_bytes = d->log_bytes };
	struct rpc_call_opts opts = { .deadline_ms = CALL_DETAIL_MS,
		.request_id = http_req_id(d->x->req) };

	if (v != RUNLINK_UP)
		answer(d, v, NULL);
	else if (run_get_detail_call(peer, &opts, &p, on_detail, d) < 0)
		answer(d, RUNLINK_SILENT, NULL);
}

static void
ask_run(struct detail *d)
{
	d->want = (struct runlink_want) { .in = d->x->in,
		.run_id = d->known.row.run_id,
		.request_id = http_req_id(d->x->req),
		.deadline_ms = CALL_DETAIL_MS,
		.done = on_link };
	runlink_get(&d->want);
}

/* ---- the shard ---- */

static void
on_ledger(void *arg, int err, const struct project_find_run_result *res)
{
	struct detail *d = arg;
	const struct run_row *newer;

	if (err == 0 && res->kind == PROJECT_FIND_RUN_FOUND) {
		newer = merge_newer(&res->u.found.run, &d->known.row);
		if (newer != &d->known.row &&
		    rows_copy_run(d->x->arena, newer, &d->known.row) < 0) {
			exchange_fail(d->x, E_NOMEM);
			return;
		}
	}
	ask_run(d);
}

static void
ask_ledger(struct detail *d)
{
	struct project_find_run_params p = { .run_id = d->known.row.run_id };
	struct rpc_call_opts opts = { .deadline_ms = CALL_DETAIL_MS,
		.request_id = http_req_id(d->x->req) };
	struct rpc_peer *peer = links_shard(d->x->in, d->x->project.shard);

	if (peer == NULL || project_find_run_call(peer, &opts, &p, on_ledger, d) < 0)
		ask_run(d);
}

void
run_detail_answer(struct exchange *x, const struct run_known *k)
{
	struct detail *d = arena_alloc(x->arena, sizeof(*d));

	if (d == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	d->x = x;
	d->known = *k;
	d->log_bytes = LOG_BYTES_DEFAULT;
	ask_run(d);
}

/* ---- the request ---- */

static void
on_found(struct exchange *x, struct run_known *k)
{
	struct detail *d = CONTAINER_OF(k, struct detail, known);
	const char *text;

	if (routes_query(x, "logBytes", "Integer", &text) < 0)
		return;
	if (text != NULL && query_number(text, 0, LOG_BYTES_MAX, &d->log_bytes) < 0) {
		answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, "logBytes", "Integer",
		    "A whole number from 0 to 2097152.");
		return;
	}
	if (k->of_ledger || merge_is_terminal(k->row.status))
		ask_run(d);
	else
		ask_ledger(d);
}

void
route_get_run(struct exchange *x)
{
	struct detail *d = arena_alloc(x->arena, sizeof(*d));

	if (d == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	d->x = x;
	d->log_bytes = LOG_BYTES_DEFAULT;
	run_find(x, &d->known, on_found);
}
