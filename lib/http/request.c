#include "lib/http/request.h"

#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/conn.h"

#define CONTINUE_LINE "HTTP/1.1 100 Continue\r\n\r\n"

/* ---- life ------------------------------------------------------------------------------ */

struct http_req *
req_new(struct conn *c)
{
	struct http_req *req = mem_calloc(1, sizeof(*req));

	if (req == NULL)
		return NULL;
	req->magic = HTTP_REQ_MAGIC;
	req->conn = c;
	req->srv = c->srv;
	req->peer = c->peer;
	req->started = clock_mono();
	req->nsegments = SEGMENTS_UNKNOWN;
	head_init(&req->head);
	id_request(req->id);
	return req;
}

void
req_free(struct http_req *req, int tell)
{
	struct http_server *s = req->srv;

	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	if (tell && s != NULL && s->hooks.on_end != NULL)
		s->hooks.on_end(s->hooks.arg, req);
	if (req->conn == NULL && s != NULL)
		LIST_REMOVE(req, orphan);
	head_done(&req->head);
	free(req->path);
	/* Tickets, passwords and secrets come in these as well. */
	mem_wipe(req->query, req->query_len);
	free(req->query);
	buf_wipe(&req->collected);
	buf_done(&req->added);
	req->magic = 0;
	free(req);
}

void
req_release(struct http_req *req)
{
	req->held = 0;
	if (req->conn != NULL)
		conn_kick(req->conn);
	else if (req->srv != NULL)
		server_later(req->srv);
	else
		req_free(req, 0);
}

void
req_kick(struct http_req *req)
{
	if (req->conn != NULL)
		conn_kick(req->conn);
	else if (req->srv != NULL)
		server_later(req->srv);
}

/* ---- parts ----------------------------------------------------------------------------- */

const char *
http_req_method(const struct http_req *req)
{
	return req->head.done ? head_text(&req->head, 0) : "";
}

int
http_req_is_head(const struct http_req *req)
{
	return strcmp(http_req_method(req), "HEAD") == 0;
}

const char *
http_req_path(const struct http_req *req)
{
	return req->head.done ? head_text(&req->head, req->head.path) : "";
}

const char *
http_req_query_text(const struct http_req *req)
{
	return req->head.done ? head_text(&req->head, req->head.query) : "";
}

const char *
http_req_host(const struct http_req *req)
{
	return req->head.has_host ? head_text(&req->head, req->head.host) : "";
}

const char *
http_req_id(const struct http_req *req)
{
	return req->id;
}

struct mono_time
http_req_started(const struct http_req *req)
{
	return req->started;
}

static void
req_resolve_client(struct http_req *req)
{
	static const struct client_proxies none;
	struct client_addr a;

	if (req->client[0] != '\0')
		return;
	client_resolve(
	    req->srv != NULL ? &req->srv->proxies : &none, &req->peer, &req->head, &a);
	client_addr_format(&a, req->client);
	req->client_local = (uint8_t)client_addr_is_local(&a);
}

const char *
http_req_client(struct http_req *req)
{
	req_resolve_client(req);
	return req->client;
}

int
http_req_client_is_local(struct http_req *req)
{
	req_resolve_client(req);
	return req->client_local;
}

const char *
http_req_header(const struct http_req *req, const char *name)
{
	return head_get(&req->head, name, 0);
}

const char *
http_req_header_once(const struct http_req *req, const char *name)
{
	return head_get(&req->head, name, 1) == NULL ? head_get(&req->head, name, 0) : NULL;
}

size_t
http_req_header_count(const struct http_req *req, const char *name)
{
	const struct head *h = &req->head;
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < h->nfields; i++)
		n += strcasecmp(head_text(h, h->fields[i].name), name) == 0;
	return n;
}

int
http_req_header_has(const struct http_req *req, const char *name, const char *token)
{
	return head_has_token(&req->head, name, token);
}

int
http_req_is_identity(const struct http_req *req)
{
	const struct head *h = &req->head;
	uint32_t i;

	for (i = 0; i < h->nfields; i++)
		if (strcasecmp(head_text(h, h->fields[i].name), "Content-Encoding") == 0 &&
		    strcasecmp(head_text(h, h->fields[i].value), "identity") != 0)
			return 0;
	return 1;
}

void
http_req_set_data(struct http_req *req, void *data)
{
	req->data = data;
}

void *
http_req_data(const struct http_req *req)
{
	return req->data;
}

/* ---- body ------------------------------------------------------------------------------ */

int64_t
http_req_body_length(const struct http_req *req)
{
	return req->head.length;
}

uint64_t
http_req_body_read(const struct http_req *req)
{
	return req->body.total;
}

static void
req_want_body(
    struct http_req *req, enum body_mode mode, size_t max, http_body_fn *fn, void *arg)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(fn != NULL && req->held && req->answer == ANSWER_NONE);
	must(req->body_mode == BODY_UNDECIDED && !req->body_over);
	req->body_mode = (uint8_t)mode;
	req->body_max = max;
	req->body_fn = fn;
	req->body_arg = arg;
	req->body_begin_us = req->body_last_us = conn_now_us();
	if (req->head.length > 0 && (uint64_t)req->head.length > max) {
		req->body_err = E_TOO_BIG;
	} else if (req->conn != NULL && req->head.expects && req->head.length != 0) {
		req->continued = 1;
		if (outq_add(&req->conn->out, CONTINUE_LINE, strlen(CONTINUE_LINE)) < 0)
			req->body_err = E_NOMEM;
	}
	req_kick(req);
}

void
http_body_collect(struct http_req *req, size_t max, http_body_fn *fn, void *arg)
{
	req_want_body(req, BODY_COLLECT, max, fn, arg);
}

void
http_body_stream(struct http_req *req, size_t max, http_body_fn *fn, void *arg)
{
	req_want_body(req, BODY_STREAM, max, fn, arg);
}

void
http_body_drop(struct http_req *req, size_t max, http_body_fn *fn, void *arg)
{
	req_want_body(req, BODY_DROP, max, fn, arg);
}

/* ---- the client ------------------------------------------------------------------------ */

void
http_req_on_gone(struct http_req *req, void (*fn)(void *arg, struct http_req *req), void *arg)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->held);
	req->gone_fn = fn;
	req->gone_arg = arg;
	if (fn == NULL)
		return;
	if (req->conn == NULL)
		req_kick(req);
	else if (req->conn->hup)
		conn_again(req->conn);
}

int
http_req_is_gone(const struct http_req *req)
{
	return req->conn == NULL || req->conn->broken;
}

void
http_req_abandon(struct http_req *req)
{
	OBJ_CHECK(req, HTTP_REQ_MAGIC);
	must(req->held);
	req->answer = ANSWER_ENDED;
	req->cut = 1;
	if (req->conn != NULL) {
		req->srv->count.cut++;
		req->conn->broken = 1;
		/* Where the end of the connection is the end of the body, only a reset tells. */
		req->conn->reset = req->status != 0 && !req->chunked;
	}
	req_release(req);
}

int
http_req_status(const struct http_req *req)
{
	return req->status;
}

int
http_req_was_cut(const struct http_req *req)
{
	return req->cut;
}
