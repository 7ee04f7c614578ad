/* GET /api/private/runs/{runId}/log: the whole text, piece by piece (http-api 9).
 *
 * One piece is asked for when the client has taken the one before, so that memory stays bounded
 * and a slow reader slows only itself.  Who follows goes on with the lines that the hub of the
 * run has, and reads again when these are too new. */
#include <stddef.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/query.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/rows.h"
#include "cmd/anvil-ingress/run_find.h"
#include "cmd/anvil-ingress/watch.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"

#define PIECE_BYTES     262144
#define UNSENT_LOW      65536
#define BEHIND_PAUSE_MS 20   /* The hub has newer lines than we do.           */
#define IDLE_PAUSE_MS   1000 /* between two looks at a run that has no store. */
#define LOST_PAUSE_MS   100  /* after the connection to the run has gone      */
#define LOST_MAX        20   /* Looks in a row that were lost before it is given up. */

/* In the exchange's arena. */
struct textlog {
	struct exchange *x;
	struct run_known known;
	int follow, download;
	int begun;   /* The headers have left.                          */
	int reading; /* A look is under way, whose callback points here. */
	int over;    /* It ends with that look.                          */
	int64_t from_byte;
	int nlost;
	struct runlink_want want;
	struct actor_timer *timer; /* Owned. */
	/* Of who follows. */
	int joined; /* Has been in the hub. */
	struct viewer viewer;
};

static void look(struct textlog *l);

static void
drop(struct exchange *x)
{
	struct textlog *l = x->work;

	l->timer = actor_timer_free(l->timer);
	viewer_leave(&l->viewer);
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
	actor_timer_stop(l->timer);
	viewer_leave(&l->viewer);
	l->x->answered = 1;
	http_stream_end(l->x->req);
}

/* Before the first byte an error can be told, after it only be shown. */
static void
give_up(struct textlog *l, enum http_code code)
{
	actor_timer_stop(l->timer);
	viewer_leave(&l->viewer);
	if (!l->begun) {
		answer_error(l->x, code);
		return;
	}
	l->x->answered = 1;
	http_stream_break(l->x->req);
}

/* Nothing may end the exchange while a callback of a look points into it. */
static void
give_up_soon(struct textlog *l)
{
	if (l->reading)
		l->over = 1;
	else
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
}

static void
stop(struct exchange *x)
{
	give_up_soon(x->work);
}

static void
on_gone(void *arg, struct http_req *req)
{
	struct textlog *l = arg;

	(void)req;
	if (!l->x->answered)
		give_up_soon(l);
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
	if (actor_timer_set(l->timer, ms) < 0)
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

/* ---- following ---- */

static struct textlog *
textlog_of_viewer(const struct viewer *v)
{
	return CONTAINER_OF(v, struct textlog, viewer);
}

static int
viewer_send(struct viewer *v, struct http_blob *b)
{
	struct textlog *l = textlog_of_viewer(v);

	l->from_byte += (int64_t)http_blob_len(b);
	return http_stream_write_blob(l->x->req, b);
}

static void
viewer_ended(struct viewer *v, enum viewer_end why)
{
	struct textlog *l = textlog_of_viewer(v);

	/* A look finds out for itself that the run has ended. */
	if (why != VIEWER_RUN_FINISHED)
		give_up_soon(l);
	else if (!l->reading)
		end(l);
}

static void
viewer_behind(struct viewer *v)
{
	struct textlog *l = textlog_of_viewer(v);

	if (!l->reading)
		look_after(l, BEHIND_PAUSE_MS);
}

static const struct viewer_ops follow_ops = { .format = MESSAGE_TEXT,
	.send = viewer_send,
	.unsent = watch_stream_unsent,
	.want = watch_stream_want,
	.end = viewer_ended,
	.behind = viewer_behind };

/* Goes on with the line ${seq}; 0: waits for the first one. */
static void
follow_from(struct textlog *l, int64_t seq)
{
	if (l->joined && l->viewer.hub == NULL) {
		end(l);
	} else if (l->joined) {
		if (viewer_move(&l->viewer, seq) < 0)
			look_after(l, BEHIND_PAUSE_MS);
	} else {
		l->joined = 1;
		if (viewer_join(&l->viewer, l->x->in, &l->known, seq) < 0)
			give_up(l, HTTP_CODE_OVERLOADED);
	}
}

/* ---- reading ---- */

static void
on_taken(void *arg, struct http_req *req)
{
	(void)req;
	look(arg);
}

static void
take_text(struct textlog *l, const struct run_read_log_text *t)
{
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
	l->from_byte = t->next_byte;
	if (t->complete || (t->has_next_seq && !l->follow))
		end(l);
	else if (t->has_next_seq)
		follow_from(l, t->next_seq);
	else
		http_stream_want(l->x->req, UNSENT_LOW, on_taken, l);
}

static void
on_text(void *arg, int err, const struct run_read_log_result *res)
{
	struct textlog *l = arg;

	l->reading = 0;
	if (l->over || http_req_is_gone(l->x->req))
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
	else if (err < 0)
		lost(l);
	else
		take_text(l, &res->u.text);
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
		begin(l);
		/* One that has just ended is looked at once more. */
		if (ended || l->joined)
			look_after(l, IDLE_PAUSE_MS);
		else
			follow_from(l, 0);
	}
}

static struct textlog *
textlog_of(struct runlink_want *w)
{
	return CONTAINER_OF(w, struct textlog, want);
}

static void
on_link(struct runlink_want *w, enum runlink_verdict v, struct rpc_peer *peer)
{
	struct textlog *l = textlog_of(w);
	struct run_read_log_params p = { .from_byte = l->from_byte, .max_bytes = PIECE_BYTES };
	struct rpc_call_opts opts = { .deadline_ms = CALL_OTHER_MS,
		.request_id = http_req_id(l->x->req) };

	if (v == RUNLINK_UP && run_read_log_call(peer, &opts, &p, on_text, l) == 0)
		return;
	l->reading = 0;
	if (l->over)
		give_up(l, HTTP_CODE_RUN_UNAVAILABLE);
	else if (v == RUNLINK_ABSENT)
		no_store(l);
	else
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
	l->reading = 1;
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
	struct textlog *l = CONTAINER_OF(k, struct textlog, known);

	if (read_flag(x, "follow", &l->follow) < 0 ||
	    read_flag(x, "download", &l->download) < 0)
		return;
	l->timer = actor_timer_new(x->in->actor, on_timer, l);
	if (l->timer == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	l->viewer = (struct viewer) { .ops = &follow_ops, .x = x };
	x->work = l;
	x->drop = drop;
	x->stop = stop;
	http_req_on_gone(x->req, on_gone, l);
	look(l);
}

static void
find_run(struct exchange *x)
{
	struct textlog *l = arena_alloc(x->arena, sizeof(*l));

	if (l == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	l->x = x;
	run_find(x, &l->known, on_found);
}

void
route_get_run_log(struct exchange *x)
{
	const char *run_id = http_req_param(x->req, 0), *ticket;
	int flag;

	if (routes_query(x, "ticket", "String", &ticket) < 0)
		return;
	if (ticket == NULL) {
		if (auth_check(x) == 0)
			find_run(x);
	} else if (!id_check(ID_RUN, run_id)) {
		answer_error(x, HTTP_CODE_RUN_NOT_FOUND);
	} else if (read_flag(x, "follow", &flag) == 0 && read_flag(x, "download", &flag) == 0) {
		auth_use_ticket(x, ticket, run_id, find_run);
	}
}
