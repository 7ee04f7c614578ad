/* GET /api/private/runs/{runId}/events: the log as Server-Sent Events (http-api 8.4). */
#include <stddef.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/run_find.h"
#include "cmd/anvil-ingress/viewer.h"
#include "cmd/anvil-ingress/watch.h"
#include "lib/base/err.h"

#define LAST_WORD_BYTES ((size_t)64 << 10) /* More than that stands before it: it is cut off. */

/* In the exchange's arena. */
struct stream {
	struct run_known known;
	struct viewer viewer;
};

/* ---- the transport ---- */

static int
send_blob(struct viewer *v, struct http_blob *b)
{
	return http_stream_write_blob(v->x->req, b);
}

static void
end(struct viewer *v, enum viewer_end why)
{
	struct exchange *x = v->x;
	CLEANUP(buf_done) struct buf json = BUF_INIT;
	CLEANUP(http_blob_unrefp) struct http_blob *last = NULL;

	x->answered = 1;
	message_end(&json, viewer_end_word(why));
	if (why != VIEWER_SLOW_CONSUMER &&
	    (why == VIEWER_RUN_FINISHED || watch_stream_unsent(v) <= LAST_WORD_BYTES))
		last = message_frame(MESSAGE_SSE, "end", 0, &json);
	if (last != NULL && http_stream_write_blob(x->req, last) == 0)
		http_stream_end(x->req);
	else
		http_stream_break(x->req);
}

static const struct viewer_ops stream_ops = { .format = MESSAGE_SSE,
	.send = send_blob,
	.unsent = watch_stream_unsent,
	.want = watch_stream_want,
	.end = end };

/* ---- the request ---- */

static void
on_gone(void *arg, struct http_req *req)
{
	struct stream *s = arg;

	if (s->viewer.x->answered)
		return;
	viewer_leave(&s->viewer);
	s->viewer.x->answered = 1;
	http_stream_break(req);
}

static void
stop(struct exchange *x)
{
	struct stream *s = x->work;

	viewer_end(&s->viewer, VIEWER_RESTARTING);
}

static void
drop(struct exchange *x)
{
	struct stream *s = x->work;

	viewer_leave(&s->viewer);
}

/* Resumes behind the last line that the client has seen. */
static int
read_last_id(struct exchange *x, int64_t *from)
{
	const char *text = http_req_header(x->req, "Last-Event-ID");
	int64_t last;

	if (text == NULL || text[0] == '\0')
		return 0;
	if (watch_read_seq(text, 0, &last) < 0) {
		answer_error_text(x, HTTP_CODE_INVALID_REQUEST,
		    "Last-Event-ID is not the decimal number of a line.");
		return E_INVAL;
	}
	*from = last + 1;
	return 0;
}

static void
on_found(struct exchange *x, struct run_known *k)
{
	struct stream *s = CONTAINER_OF(k, struct stream, known);
	int64_t from;

	if (watch_from(x, &from) < 0 || read_last_id(x, &from) < 0)
		return;
	http_answer_add(x->req, "Content-Type", "text/event-stream; charset=utf-8");
	http_answer_add(x->req, "X-Accel-Buffering", "no");
	http_stream_begin(x->req, 200);
	s->viewer = (struct viewer) { .ops = &stream_ops, .x = x };
	x->work = s;
	x->stop = stop;
	x->drop = drop;
	http_req_on_gone(x->req, on_gone, s);
	if (viewer_join(&s->viewer, x->in, k, from) < 0)
		end(&s->viewer, VIEWER_INTERNAL_ERROR);
}

void
route_stream_run(struct exchange *x)
{
	struct stream *s = arena_alloc(x->arena, sizeof(*s));

	if (s == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	run_find(x, &s->known, on_found);
}
