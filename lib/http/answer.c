#include "lib/http/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"

#define LENGTH_UNKNOWN (-1)
#define BARE_500 \
	"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static const struct reason {
	int status;
	const char *text;
} reasons[] = {
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 503, "Service Unavailable" },
};

static const char *
reason_text(int status)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "";
}

/* ---- headers --------------------------------------------------------------------------- */

static int
is_line_safe(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (s[i] == '\r' || s[i] == '\n' || s[i] == '\0')
			return 0;
	return 1;
}

static void
answer_add_n(struct http_req *req, const char *name, const char *value, size_t n)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->answer == ANSWER_NONE);
	if (!is_line_safe(value, n)) {
		req->bad_header = 1;
		return;
	}
	buf_add_str(&req->added, name);
	buf_add_str(&req->added, ": ");
	buf_add(&req->added, value, n);
	buf_add_str(&req->added, "\r\n");
}

void
http_answer_add(struct http_req *req, const char *name, const char *value)
{
	answer_add_n(req, name, value, strlen(value));
}

void
http_answer_addf(struct http_req *req, const char *name, const char *fmt, ...)
{
	CLEANUP_FREE char *value = NULL;
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(text)) {
		answer_add_n(req, name, text, (size_t)n);
		return;
	}
	value = n < 0 ? NULL : mem_alloc((size_t)n + 1);
	if (value == NULL) {
		req->bad_header = 1;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(value, (size_t)n + 1, fmt, ap);
	va_end(ap);
	answer_add_n(req, name, value, (size_t)n);
}

int
http_answer_has(const struct http_req *req, const char *name)
{
	const char *p = (const char *)req->added.data;
	const char *end;
	size_t n = strlen(name);

	if (p == NULL)
		return 0;
	end = p + req->added.len;
	for (; p < end; p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1)
		if ((size_t)(end - p) > n && p[n] == ':' && strncasecmp(p, name, n) == 0)
			return 1;
	return 0;
}

void
http_answer_clear(struct http_req *req)
{
	buf_reset(&req->added);
	req->bad_header = 0;
}

/* ---- the head of an answer ------------------------------------------------------------- */

/* Whether the connection can go on behind this answer. */
static int
answer_keeps(const struct http_req *req, int64_t length)
{
	const struct http_server *s = req->srv;
	int64_t left = req->head.length;

	if (!req->head.keep_alive || req->close || s->stopping || req->conn->eof)
		return 0;
	if (length == LENGTH_UNKNOWN && !req->chunked && !req->no_body)
		return 0;
	if (req->body_over || left == 0)
		return 1;
	/* It may or may not send the body now; only a new connection is clear. */
	if (req->head.expects && !req->continued)
		return 0;
	if (left > 0)
		left -= (int64_t)req->body.total;
	return left <= (int64_t)s->limits.drop_bytes;
}

static void
answer_head(struct http_req *req, int64_t length, int keep)
{
	struct buf *b = &req->srv->head;

	buf_reset(b);
	buf_printf(b, "HTTP/1.1 %d %s\r\n", req->status, reason_text(req->status));
	if (req->status >= 200)
		buf_printf(b, "Date: %s\r\n", server_date(req->srv));
	if (req->added.len > 0)
		buf_add(b, req->added.data, req->added.len);
	if (length >= 0 && req->status != 204 && req->status != 304)
		buf_printf(b, "Content-Length: %lld\r\n", (long long)length);
	if (req->chunked)
		buf_add_str(b, "Transfer-Encoding: chunked\r\n");
	if (req->status >= 200 && !keep)
		buf_add_str(b, "Connection: close\r\n");
	else if (req->status >= 200 && req->head.minor == 0)
		buf_add_str(b, "Connection: keep-alive\r\n");
	buf_add_str(b, "\r\n");
}

/* Instead of an answer that cannot be made. */
static void
answer_bare_500(struct http_req *req)
{
	struct conn *c = req->conn;

	req->status = 500;
	req->spoilt = 1;
	req->no_body = 1;
	req->chunked = 0;
	c->close_after = 1;
	if (outq_add(&c->out, BARE_500, strlen(BARE_500)) < 0)
		c->broken = 1;
}

/* Queues the head.  ${length} of the body or LENGTH_UNKNOWN.  0: no body may follow. */
static int
answer_begin(struct http_req *req, int status, int64_t length)
{
	struct conn *c = req->conn;
	int keep;

	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->held && req->answer == ANSWER_NONE && status >= 101 && status <= 599);
	req->status = status;
	req->no_body = http_req_is_head(req) || status == 204 || status == 304;
	req->chunked = length == LENGTH_UNKNOWN && req->head.minor == 1 && status >= 200 &&
	    status != 204 && status != 304;
	if (c == NULL || req->srv == NULL)
		return 0;
	if (status >= 200 && req->srv->hooks.on_headers != NULL)
		req->srv->hooks.on_headers(req->srv->hooks.arg, req, status);
	keep = answer_keeps(req, length);
	answer_head(req, length, keep);
	if (!keep)
		c->close_after = 1;
	if (req->bad_header || req->added.failed || req->srv->head.failed ||
	    outq_add(&c->out, req->srv->head.data, req->srv->head.len) < 0)
		answer_bare_500(req);
	req->srv->count.answers[req->status / 100]++;
	return !req->no_body;
}

static void
answer_end(struct http_req *req)
{
	req->answer = ANSWER_ENDED;
	req->want_fn = NULL;
	req_release(req);
}

/* ---- whole ----------------------------------------------------------------------------- */

void
http_answer(struct http_req *req, int status, const void *body, size_t len)
{
	if (answer_begin(req, status, (int64_t)len)) {
		if (outq_add(&req->conn->out, body, len) < 0)
			req->conn->broken = 1;
	}
	answer_end(req);
}

void
http_answer_blob(struct http_req *req, int status, struct http_blob *body)
{
	if (answer_begin(req, status, (int64_t)http_blob_len(body))) {
		if (outq_add_blob(&req->conn->out, body) < 0)
			req->conn->broken = 1;
	}
	answer_end(req);
}

/* ---- streamed -------------------------------------------------------------------------- */

void
http_stream_begin(struct http_req *req, int status)
{
	must(status >= 200);
	answer_begin(req, status, LENGTH_UNKNOWN);
	req->answer = ANSWER_STREAM;
	req_kick(req);
}

/* Is there anything to write, and where?  1: yes; 0: it vanishes; E_LINK. */
static int
stream_takes(struct http_req *req)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->held && (req->answer == ANSWER_STREAM || req->answer == ANSWER_RAW));
	if (http_req_is_gone(req) || req->spoilt)
		return E_LINK;
	return !req->no_body;
}

static int
stream_chunk_begin(struct http_req *req, size_t n)
{
	char line[24];

	if (!req->chunked)
		return 0;
	snprintf(line, sizeof(line), "%zx\r\n", n);
	return outq_add(&req->conn->out, line, strlen(line));
}

/* A chunk that is there in part cannot be gone on with. */
static int
stream_chunk_end(struct http_req *req, int r)
{
	if (r == 0 && req->chunked)
		r = outq_add(&req->conn->out, "\r\n", 2);
	if (r < 0) {
		req->conn->broken = 1;
		conn_kick(req->conn);
		return r;
	}
	conn_kick(req->conn);
	return 0;
}

int
http_stream_write(struct http_req *req, const void *p, size_t n)
{
	int r = stream_takes(req);

	if (r <= 0 || n == 0)
		return r < 0 ? r : 0;
	r = stream_chunk_begin(req, n);
	if (r == 0)
		r = outq_add(&req->conn->out, p, n);
	return stream_chunk_end(req, r);
}

int
http_stream_write_blob(struct http_req *req, struct http_blob *b)
{
	size_t n = http_blob_len(b);
	int r = stream_takes(req);

	if (r <= 0 || n == 0)
		return r < 0 ? r : 0;
	r = stream_chunk_begin(req, n);
	if (r == 0)
		r = outq_add_blob(&req->conn->out, b);
	return stream_chunk_end(req, r);
}

size_t
http_stream_unsent(const struct http_req *req)
{
	return req->conn != NULL ? req->conn->out.unsent : 0;
}

void
http_stream_want(
    struct http_req *req, size_t low, void (*fn)(void *arg, struct http_req *req), void *arg)
{
	(void)stream_takes(req);
	req->want_fn = fn;
	req->want_arg = arg;
	req->want_low = low;
	if (fn != NULL)
		req_kick(req);
}

void
http_stream_end(struct http_req *req)
{
	int r = stream_takes(req);

	if (r > 0 && req->chunked && outq_add(&req->conn->out, "0\r\n\r\n", 5) < 0)
		req->conn->broken = 1;
	answer_end(req);
}

void
http_stream_break(struct http_req *req)
{
	must(req->answer == ANSWER_STREAM || req->answer == ANSWER_RAW);
	http_req_abandon(req);
}

/* ---- taken over ------------------------------------------------------------------------ */

void
http_takeover(struct http_req *req, int status, http_input_fn *on_input, void *arg)
{
	must(status >= 101 && status <= 199 && on_input != NULL && req->body_fn == NULL);
	answer_begin(req, status, LENGTH_UNKNOWN);
	req->no_body = 0;
	req->answer = ANSWER_RAW;
	req->body_over = 1;
	req->input_fn = on_input;
	req->input_arg = arg;
	if (req->conn != NULL) {
		req->conn->close_after = 1;
		req->conn->need_linger = 1;
	}
	req_kick(req);
}

void
http_takeover_forget(struct http_req *req)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->held && req->answer == ANSWER_RAW);
	if (req->conn != NULL)
		outq_drop_rest(&req->conn->out);
}
