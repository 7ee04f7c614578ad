/* GET /api/private/runs/{runId}/log: the whole text, piece by piece (http-api 9).
 *
 * One piece is asked for when the client has taken the one before, so that memory stays bounded
 * and a slow reader slows only itself. */
#include <stddef.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/query.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "cmd/anvil-ingress/run_find.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

#define PIECE_BYTES   262144
#define UNSENT_LOW    65536
#define LIVE_PAUSE_MS 250  /* between two looks at a run that has nothing new   */
#define IDLE_PAUSE_MS 1000 /* ... that has not started                          */
#define LOST_PAUSE_MS 100  /* after the connection to the run has gone          */
#define LOST_MAX      20   /* Looks in a row that were lost before it is given up. */

/* In the exchange's arena. */
struct textlog {
	struct exchange *x;
	struct run_known known;
	int follow, download;
	int begun;   /* The headers have left.             */
	int stopped; /* Ingress ends.                      */
	int64_t from_byte;
	int nlost;
	struct runlink_want want;
	struct actor_timer *timer; /* Owned. */
};

static void look(struct textlog *l);

static void
drop(struct exchange *x)
{
	struct textlog *l = x->work;

	l->timer = actor_timer_free(l->timer);
}

/* ---- the answer ---- */

static void
begin(struct textlog *l)
{
	struct http_req *req = l->x->req;

	if (l->begun)
		return;
	l->begun = 1;
	http_answer_add(req, "Content-Type", "text/plain; charset=utf-8");
	http_answer_addf(req, "Content-Disposition", "%s; filename=\"%s.log\"",
	    l->download ? "attachment" : "inline", l->known.row.run_id);
	http_stream_begin(req, 200);
}

static void
end(struct textlog *l)
{
	begin(l);
	l->x->answered = 1;
	http_stream_end(l->x->req);
}

/* Before the first byte an error can be told, after it only be shown. */
static void
give_up(struct textlog *l, enum http_code code)
{
	if (!l->begun) {
		answer_error(l->x, code);
		return;
	}
	l->x->answered = 1;
	http_stream_break(l->x->req);
}

static void
stop(struct exchange *x)
{
	struct textlog *l = x->work;

	l->stopped = 1;
	if (actor_timer_is_set(l->timer)) {
		actor_timer_stop(l->timer);
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
	}
}

/* ---- waiting ---- */

static void
on_timer(void *arg)
{
	look(arg);
}

static void
look_after(struct textlog *l, int64_t ms)
{
	if (l->stopped || http_req_is_gone(l->x->req) || actor_timer_set(l->timer, ms) < 0)
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
}

static void
lost(struct textlog *l)
{
	if (++l->nlost > (l->begun ? LOST_MAX : 1))
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
	else
		look_after(l, LOST_PAUSE_MS);
}

/* ---- reading ---- */

static void
on_taken(void *arg, struct http_req *req)
{
	struct textlog *l = arg;

	if (l->stopped || http_req_is_gone(req))
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
	else
		look(l);
}

static void
on_text(void *arg, int err, const struct run_read_log_result *res)
{
	struct textlog *l = arg;
	const struct run_read_log_text *t;

	if (err < 0) {
		lost(l);
		return;
	}
	t = &res->u.text;
	l->nlost = 0;
	begin(l);
	if (http_req_is_head(l->x->req)) {
		end(l);
		return;
	}
	if (t->text.n > 0 && http_stream_write(l->x->req, t->text.p, t->text.n) < 0) {
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
		return;
	}
	if (t->complete || (t->next_byte == l->from_byte && !l->follow)) {
		end(l);
	} else if (t->next_byte == l->from_byte) {
		look_after(l, LIVE_PAUSE_MS);
	} else {
		l->from_byte = t->next_byte;
		http_stream_want(l->x->req, UNSENT_LOW, on_taken, l);
	}
}

/* ---- there is no store ---- */

static int
again_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct textlog *l = x->work;
	struct index_run row;
	int r = index_run_get(t->store, t->arena, l->known.row.run_id, &row);

	if (r == E_NOENT)
		return 0; /* known to its shard alone: as it was */
	if (r < 0)
		return r;
	l->known.row.status = rows_run_row(&row).status;
	l->known.row.has_started_at = row.started_at != 0;
	return 0;
}

/* It has not started, it never began, or what it wrote is not kept any more. */
static void
no_store(struct textlog *l)
{
	int was_ended = merge_is_terminal(l->known.row.status);
	int r = actor_turn_for(l->x->in->actor, 0, http_req_id(l->x->req), again_turn, l->x);
	int ended = merge_is_terminal(l->known.row.status);

	if (r < 0)
		give_up(l, HTTP_CODE_STORAGE_UNAVAILABLE);
	else if (was_ended && l->known.row.has_started_at && !l->begun)
		give_up(l, HTTP_CODE_LOG_EXPIRED);
	else if ((ended && was_ended) || !l->follow || http_req_is_head(l->x->req))
		end(l);
	else {
		/* One that has just ended is looked at once more. */
		begin(l);
		look_after(l, IDLE_PAUSE_MS);
	}
}

static struct textlog *
textlog_of(struct runlink_want *w)
{
	char *p = (char *)w - offsetof(struct textlog, want);

	return (struct textlog *)(void *)p;
}

static void
on_link(struct runlink_want *w, enum runlink_verdict v, struct rpc_peer *peer)
{
	struct textlog *l = textlog_of(w);
	struct run_read_log_params p = { .from_byte = l->from_byte, .max_bytes = PIECE_BYTES };
	struct rpc_call_opts opts = { .deadline_ms = CALL_OTHER_MS,
		.request_id = http_req_id(l->x->req) };

	if (v == RUNLINK_ABSENT)
		no_store(l);
	else if (v != RUNLINK_UP || run_read_log_call(peer, &opts, &p, on_text, l) < 0)
		lost(l);
}

static void
look(struct textlog *l)
{
	l->want = (struct runlink_want) { .in = l->x->in,
		.run_id = l->known.row.run_id,
		.request_id = http_req_id(l->x->req),
		.deadline_ms = CALL_DETAIL_MS,
		.done = on_link };
	runlink_get(&l->want);
}

/* ---- the request ---- */

static int
read_flag(struct exchange *x, const char *name, int *ret)
{
	const char *text;

	if (routes_query(x, name, "String", &text) < 0)
		return E_INVAL;
	if (text == NULL || query_flag(text, ret) == 0)
		return 0;
	answer_bad_query(x, HTTP_CODE_INVALID_REQUEST, name, "String", "Either 0 or 1.");
	return E_INVAL;
}

static void
on_found(struct exchange *x, struct run_known *k)
{
	char *p = (char *)k - offsetof(struct textlog, known);
	struct textlog *l = (struct textlog *)(void *)p;

	if (read_flag(x, "follow", &l->follow) < 0 ||
	    read_flag(x, "download", &l->download) < 0)
		return;
	l->timer = actor_timer_new(x->in->actor, on_timer, l);
	if (l->timer == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	x->work = l;
	x->drop = drop;
	x->stop = stop;
	look(l);
}

void
route_get_run_log(struct exchange *x)
{
	struct textlog *l;

	if (auth_check(x) < 0)
		return;
	l = arena_alloc(x->arena, sizeof(*l));
	if (l == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	l->x = x;
	run_find(x, &l->known, on_found);
}
