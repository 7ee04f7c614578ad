#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/http/conn.h"

static const struct refusal {
	int status;
	const char *code;
} refusals[] = {
	{ 400, "bad_request" },
	{ 408, "request_timeout" },
	{ 413, "payload_too_large" },
	{ 414, "uri_too_long" },
	{ 431, "headers_too_large" },
	{ 503, "overloaded" },
};

int
serve_wants_input(const struct conn *c)
{
	const struct http_req *req = c->req;

	if (c->phase != CONN_BUSY)
		return 0;
	if (req->answer == ANSWER_RAW)
		return 1;
	return req->body_mode != BODY_UNDECIDED && !req->body_over && req->body_err == 0;
}

/* ---- refusing -------------------------------------------------------------------------- */

static const char *
refusal_code(int status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return refusals[i].code;
	return "internal_error";
}

void
serve_refuse(struct conn *c, int status)
{
	struct http_server *s = c->srv;
	struct http_req *req = c->req;

	if (!req->in_flight) {
		req->in_flight = 1;
		s->count.in_flight++;
		/* Half of a head, or a bad one, is not for anybody's eyes. */
		head_done(&req->head);
		head_init(&req->head);
	}
	if (status == 400 || status == 414 || status == 431)
		s->count.malformed++;
	c->phase = CONN_BUSY;
	c->need_linger = 1;
	req->held = 1;
	req->close = 1;
	req->body_over = 1;
	http_answer_clear(req);
	if (status == 503)
		http_answer_add(req, "Retry-After", "1");
	if (s->hooks.on_refusal != NULL)
		s->hooks.on_refusal(s->hooks.arg, req, status, refusal_code(status));
	if (!req->held)
		return;
	if (req->answer == ANSWER_NONE)
		http_answer(req, status, NULL, 0);
	else
		http_stream_break(req);
}

static int
body_fail_status(int err)
{
	switch (err) {
	case E_TOO_BIG: return 413;
	case E_DEADLINE: return 408;
	case E_FRAME: return 400;
	default: return 503;
	}
}

void
serve_body_fail(struct conn *c, int err)
{
	struct http_req *req = c->req;
	http_body_fn *fn = req->body_fn;

	req->body_err = 0;
	req->body_over = 1;
	req->body_fn = NULL;
	req->close = 1;
	c->close_after = 1;
	c->need_linger = 1;
	if (err == E_DEADLINE)
		c->srv->count.timeouts++;
	if (fn != NULL && req->held)
		fn(req->body_arg, req, err, NULL, 0);
	/* Without a receiver the answer has begun already; it goes on to its end. */
	if (!req->held || fn == NULL)
		return;
	if (req->answer == ANSWER_NONE)
		serve_refuse(c, body_fail_status(err));
	else
		http_stream_break(req);
}

/* ---- input ----------------------------------------------------------------------------- */

static void
serve_head_done(struct conn *c)
{
	struct http_server *s = c->srv;
	struct http_req *req = c->req;

	c->phase = CONN_BUSY;
	c->close_after = 0;
	s->count.requests++;
	s->count.in_flight++;
	req->in_flight = 1;
	body_init(&req->body, req->head.length);
	req->held = 1;
	s->hooks.on_request(s->hooks.arg, req);
}

static size_t
serve_head(struct conn *c, const uint8_t *p, size_t n)
{
	const struct http_limits *l = &c->srv->limits;
	size_t used = 0;
	int r;

	if (n == 0)
		return 0;
	if (c->phase == CONN_IDLE) {
		c->req = req_new(c);
		if (c->req == NULL) {
			c->broken = 1;
			return 0;
		}
		c->phase = CONN_HEAD;
	}
	r = head_feed(&c->req->head, p, n, l->target_bytes, l->header_bytes, &used);
	if (r == HEAD_DONE)
		serve_head_done(c);
	else if (r != HEAD_MORE)
		serve_refuse(c, r);
	return used;
}

/* Answered before the body was wanted to its end: the rest only has to go by. */
static void
serve_body_unwanted(struct http_req *req)
{
	if (req->body_fn == NULL || req->answer == ANSWER_NONE)
		return;
	req->body_fn = NULL;
	req->body_mode = BODY_DROP;
	req->body_max = (size_t)req->body.total + req->srv->limits.drop_bytes;
}

static void
serve_piece(struct conn *c, const uint8_t *piece, size_t len)
{
	struct http_req *req = c->req;

	if (req->body.total > req->body_max)
		serve_body_fail(c, E_TOO_BIG);
	else if (req->body_mode == BODY_COLLECT && buf_add(&req->collected, piece, len) < 0)
		serve_body_fail(c, E_NOMEM);
	else if (req->body_mode == BODY_STREAM)
		req->body_fn(req->body_arg, req, 0, piece, len);
}

static void
serve_body_end(struct http_req *req)
{
	http_body_fn *fn = req->body_fn;

	req->body_over = 1;
	req->body_fn = NULL;
	if (fn != NULL)
		fn(req->body_arg, req, 0, req->collected.data, req->collected.len);
}

static size_t
serve_body(struct conn *c, const uint8_t *p, size_t n)
{
	struct http_req *req = c->req;
	size_t used = 0, got, len = 0;
	const uint8_t *piece = NULL;

	if (req->body_err != 0) {
		serve_body_fail(c, req->body_err);
		return 0;
	}
	if (n > 0)
		req->body_last_us = conn_now_us();
	while (!req->body_over && !c->broken) {
		int r = body_feed(&req->body, p + used, n - used, &got, &piece, &len);

		used += got;
		if (r == BODY_PIECE)
			serve_piece(c, piece, len);
		else if (r == BODY_DONE)
			serve_body_end(req);
		else if (r == BODY_BAD)
			serve_body_fail(c, E_FRAME);
		else
			break;
		serve_body_unwanted(req);
	}
	return used;
}

static void
serve_raw(struct conn *c, const uint8_t *p, size_t n)
{
	struct http_req *req = c->req;

	if (n > 0)
		req->input_fn(req->input_arg, req, p, n);
	if (c->eof && req->held && !req->input_told) {
		req->input_told = 1;
		req->input_fn(req->input_arg, req, NULL, 0);
	}
}

size_t
serve_input(struct conn *c, const uint8_t *p, size_t n)
{
	struct http_req *req = c->req;
	size_t used = 0;

	if (c->phase == CONN_IDLE && c->out.unsent > HTTP_PIPELINE_BYTES)
		return 0;
	if (c->phase == CONN_IDLE || c->phase == CONN_HEAD) {
		used = serve_head(c, p, n);
		req = c->req;
	}
	if (c->phase == CONN_LINGER || c->phase == CONN_DEAD) {
		/* Closing with unread bytes would be a reset, which may overtake the answer. */
		c->need_linger |= n > 0;
		return n;
	}
	if (c->phase != CONN_BUSY || c->broken)
		return used;
	if (req->answer == ANSWER_RAW) {
		serve_raw(c, p + used, n - used);
		return n;
	}
	if (req->body_mode != BODY_UNDECIDED && !req->body_over)
		used += serve_body(c, p + used, n - used);
	return used;
}

/* ---- from one request to the next ------------------------------------------------------ */

static void
serve_finish(struct conn *c)
{
	struct http_req *req = c->req;

	c->req = NULL;
	c->srv->count.in_flight--;
	req_free(req, 1);
	if (c->close_after) {
		conn_begin_linger(c);
		return;
	}
	c->phase = CONN_IDLE;
	c->since_us = conn_now_us();
}

int
serve_advance(struct conn *c)
{
	struct http_req *req = c->req;

	if (c->phase != CONN_BUSY || c->broken || req->answer != ANSWER_ENDED)
		return 0;
	if (req->body_mode == BODY_UNDECIDED && !req->body_over && !c->close_after) {
		req->body_mode = BODY_DROP;
		req->body_max = c->srv->limits.drop_bytes;
		req->body_begin_us = req->body_last_us = conn_now_us();
		return 1;
	}
	serve_body_unwanted(req);
	if (!req->body_over && !c->close_after)
		return 0;
	if (!req->body_over && req->head.length != 0)
		c->need_linger = 1;
	serve_finish(c);
	return 1;
}

int
serve_is_ready(const struct conn *c, size_t left)
{
	const struct http_req *req = c->req;

	if (c->broken)
		return 0;
	if (c->phase == CONN_IDLE)
		return left > 0 && c->out.unsent <= HTTP_PIPELINE_BYTES;
	if (c->phase != CONN_BUSY)
		return 0;
	if (req->answer == ANSWER_ENDED)
		return req->body_over || c->close_after || req->body_mode == BODY_UNDECIDED;
	return req->body_err != 0;
}

void
serve_lost(struct conn *c)
{
	struct http_req *req = c->req;

	if (req == NULL)
		return;
	c->req = NULL;
	if (!req->in_flight) {
		req_free(req, 0);
		return;
	}
	req->conn = NULL;
	c->srv->count.in_flight--;
	if (req->answer != ANSWER_ENDED) {
		req->cut = 1;
		c->srv->count.cut++;
	}
	LIST_INSERT_HEAD(&c->srv->orphans, req, orphan);
	server_later(c->srv);
}
