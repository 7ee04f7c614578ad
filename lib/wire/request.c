#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/wire/json.h"
#include "lib/wire/peer.h"

static void
add_error(struct buf *out, int err, const char *message, const char *data)
{
	if (message == NULL)
		message = err_text(err);
	buf_add_str(out, ",\"error\":{\"code\":");
	buf_add_int(out, err);
	buf_add_str(out, ",\"message\":");
	json_text_string(out, message, strlen(message));
	if (data != NULL) {
		buf_add_str(out, ",\"data\":");
		buf_add_str(out, data);
	}
	buf_add_str(out, "}}");
}

static size_t
begin_answer(struct buf *out, const char *id)
{
	size_t at = frame_begin(out);

	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_str(out, id);
	return at;
}

void
request_refuse(struct rpc_peer *p, const char *id, int err, const char *message)
{
	size_t at = begin_answer(&p->out, id);

	p->stats.bad_requests++;
	add_error(&p->out, err, message, NULL);
	if (peer_queue(p, at) < 0)
		rpc_peer_close(p, E_NOMEM);
}

/* Frees the request; its peer owes one answer less. */
static void
request_done(struct rpc_request *req)
{
	struct rpc_peer *p = req->peer;

	if (p->current == req)
		p->current = NULL;
	if (!req->notification)
		p->stats.calls_in--;
	req->magic = 0;
	free(req);
	rpc_peer_unref(p);
}

static int
send_error(struct rpc_request *req, int err, const char *message, const char *data)
{
	struct rpc_peer *p = req->peer;
	size_t at = begin_answer(&p->out, req->id);

	add_error(&p->out, err, message, data);
	return peer_queue(p, at);
}

static void
error_or_close(struct rpc_request *req, int err, const char *message, const char *data)
{
	int r = send_error(req, err, message, data);

	/* Without its data it is small; an answer that cannot be given ends the connection. */
	if (r < 0 && send_error(req, r, NULL, NULL) < 0)
		rpc_peer_close(req->peer, E_NOMEM);
}

void
rpc_reply(struct rpc_request *req, const char *result, size_t n)
{
	struct rpc_peer *p = req->peer;
	size_t at;
	int r;

	OBJ_CHECK(req, RPC_REQUEST_MAGIC);
	if (!req->notification && p->state == PEER_OPEN) {
		at = begin_answer(&p->out, req->id);
		buf_add_str(&p->out, ",\"result\":");
		buf_add(&p->out, result, n);
		buf_add_byte(&p->out, '}');
		r = peer_queue(p, at);
		if (r < 0)
			error_or_close(req, r, NULL, NULL);
	}
	request_done(req);
}

void
rpc_reply_error(struct rpc_request *req, int err, const char *message, const char *data)
{
	OBJ_CHECK(req, RPC_REQUEST_MAGIC);
	must(err < 0);
	if (!req->notification && req->peer->state == PEER_OPEN)
		error_or_close(req, err, message, data);
	request_done(req);
}

/* An integer, or a plain string; ${ret} is its JSON text. */
static int
take_id(struct span id, char ret[RPC_ID_SIZE])
{
	long long number;

	if (id.n >= RPC_ID_SIZE)
		return E_REQUEST;
	if (!envelope_int(id, &number) && (id.n < 2 || id.p[0] != '"'))
		return E_REQUEST;
	for (size_t i = 1; id.p[0] == '"' && i + 1 < id.n; i++)
		if (id.p[i] < 0x20 || id.p[i] > 0x7e || id.p[i] == '\\')
			return E_REQUEST;
	memcpy(ret, id.p, id.n);
	ret[id.n] = '\0';
	return 0;
}

static void
hand_over(struct rpc_peer *p, struct rpc_request *req)
{
	if (!req->notification)
		p->stats.calls_in++;
	if (p->ops.on_request == NULL) {
		rpc_reply_error(req, E_METHOD, NULL, NULL);
		return;
	}
	p->current = req;
	p->ops.on_request(p->arg, p, req);
	/* Still owned by somebody: what it borrowed ends here. */
	if (p->current != NULL) {
		p->current->method = NULL;
		p->current->params = NULL;
		p->current = NULL;
	}
}

/* Fills ${req} but for its params.  0 or an error that this request is refused with. */
static int
read_request(struct envelope *e, struct rpc_request *req)
{
	long long deadline_ms = 0;
	int r = 0;

	req->notification = e->id.p == NULL;
	if (!req->notification)
		r = take_id(e->id, req->id);
	if (r == 0)
		r = envelope_meta(
		    e->meta, req->request_id, sizeof(req->request_id), &deadline_ms);
	req->deadline_ms = deadline_ms;
	req->method = envelope_word(e->method);
	if (r == 0 &&
	    (req->method == NULL || e->result.p != NULL || e->error.p != NULL ||
		(e->nunknown != 0 && !req->notification)))
		r = E_REQUEST;
	return r;
}

static int
take_request(struct rpc_peer *p, struct envelope *e)
{
	CLEANUP(json_unrefp) json_t *params = NULL;
	struct rpc_request in, *req;
	int r;

	memset(&in, 0, sizeof(in));
	memcpy(in.id, "null", sizeof("null"));
	r = read_request(e, &in);
	if (r == 0 && e->params.p != NULL) {
		r = json_text_parse(e->params.p, e->params.n, RPC_DEPTH_MAX - 1, &params);
		if (r == 0 && !json_is_object(params) && !json_is_array(params))
			r = E_REQUEST;
	}
	if (r == E_PARSE || r == E_DEEP)
		return r;
	/* Both sides count alike, so an honest peer never comes here. */
	if (r == 0 && !in.notification && p->stats.calls_in == RPC_CALLS_MAX)
		return E_OVERLOADED;
	req = r == 0 ? mem_dup(&in, sizeof(in)) : NULL;
	if (req == NULL) {
		request_refuse(p, in.id, r == 0 ? E_NOMEM : r, NULL);
		return 0;
	}
	req->magic = RPC_REQUEST_MAGIC;
	req->peer = rpc_peer_ref(p);
	req->params = params;
	req->came = clock_mono();
	hand_over(p, req);
	return 0;
}

int
request_dispatch(struct rpc_peer *p, char *body, size_t n)
{
	struct envelope e;
	int r = envelope_read(body, n, &e);

	if (r == E_REQUEST)
		request_refuse(p, "null", r, NULL);
	if (r < 0)
		return r == E_REQUEST ? 0 : r;
	if (e.version.n != 5 || memcmp(e.version.p, "\"2.0\"", 5) != 0)
		request_refuse(p, "null", E_REQUEST, NULL);
	else if (e.method.p != NULL)
		r = take_request(p, &e);
	else if (e.id.p != NULL && (e.result.p != NULL) != (e.error.p != NULL))
		r = call_answer(p, &e);
	else
		request_refuse(p, "null", E_REQUEST, NULL);
	envelope_done(&e);
	return r;
}
