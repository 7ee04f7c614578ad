/* Runs of a project: pages of the list, and a new one (http-api 6). */
#include <string.h>

#include "cmd/anvil-ingress/accept.h"
#include "cmd/anvil-ingress/accepted.h"
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/cursor.h"
#include "cmd/anvil-ingress/query.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "lib/base/err.h"

#define PAGE_DEFAULT 20
#define PAGE_MAX     100

/* ---- list ---- */

static int
list_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct http_list_runs_answer answer = { .runs = NULL };
	struct http_run_summary *out;
	struct index_run *rows;
	char next[CURSOR_SIZE];
	int more;
	int r = index_run_list(t->store, t->arena, x->work, &rows, &answer.nruns, &more);

	if (r < 0)
		return r;
	out = arena_calloc(t->arena, answer.nruns, sizeof(*out));
	if (out == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < answer.nruns; i++) {
		struct run_row row = rows_run_row(&rows[i]);

		out[i] = rows_summary(&row);
	}
	if (more) {
		const struct index_run *last = &rows[answer.nruns - 1];

		cursor_format(last->queued_at, last->id, next);
		answer.next_cursor = next;
	}
	answer.runs = out;
	r = answer_prepare(x, &http_list_runs_answer_codec, &answer);
	return r < 0 ? r : exchange_answer_after(x, t, 200);
}

void
route_list_runs(struct exchange *x)
{
	const char *limit_text, *cursor;
	int64_t limit = PAGE_DEFAULT;
	char before[ID_SIZE];
	struct index_run_page page = { .before_id = NULL };

	accepted_flush(x->in->accepted);
	if (routes_find_project(x) < 0 ||
	    routes_query(x, "limit", "Integer", &limit_text) < 0 ||
	    routes_query(x, "cursor", "String", &cursor) < 0)
		return;
	if (limit_text != NULL && query_number(limit_text, 1, PAGE_MAX, &limit) < 0) {
		answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, "limit", "Integer",
		    "A whole number from 1 to 100.");
		return;
	}
	if (cursor != NULL && cursor[0] != '\0') {
		if (cursor_parse(cursor, &page.before_queued_at, before) < 0) {
			answer_bad_query(x, HTTP_CODE_INVALID_CURSOR, "cursor", "String",
			    "A cursor is the nextCursor of the page before.");
			return;
		}
		page.before_id = before;
	}
	page.project_id = x->project.id;
	page.limit = (size_t)limit;
	x->work = &page;
	exchange_do(x, 0, list_turn);
	x->work = NULL;
}

/* ---- trigger ---- */

static void
on_accept_done(struct accept *a, enum accept_verdict v, const struct run_row *run)
{
	struct exchange *x = a->arg;
	struct http_trigger_run_answer answer = { .run_id = a->run_id };

	(void)run;
	OBJ_CHECK(x, EXCHANGE_MAGIC);
	switch (v) {
	case ACCEPT_ACCEPTED:
		answer_value(x, 202, &http_trigger_run_answer_codec, &answer);
		break;
	case ACCEPT_QUEUE_FULL: answer_error(x, HTTP_CODE_PROJECT_QUEUE_FULL); break;
	case ACCEPT_NOT_FOUND: answer_error(x, HTTP_CODE_PROJECT_NOT_FOUND); break;
	case ACCEPT_FAILED: answer_error(x, a->why); break;
	}
}

static void
on_trigger_body(struct exchange *x)
{
	struct http_trigger_run_body b = { .branch = NULL };
	struct accept *a = arena_alloc(x->arena, sizeof(*a));

	if (a == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	if (exchange_shapes(x, &http_trigger_run_body_codec, &b) < 0 ||
	    exchange_rules(x, &http_trigger_run_body_codec, &b) < 0)
		return;
	*a = (struct accept) { .in = x->in,
		.project_id = x->project.id,
		.user_id = x->user.id,
		.branch = b.branch,
		.shard = x->project.shard,
		.request_id = http_req_id(x->req),
		.done = on_accept_done,
		.arg = x };
	accept_start(a);
}

void
route_trigger_run(struct exchange *x)
{
	if (routes_find_project(x) == 0)
		exchange_read_body(x, on_trigger_body);
}
