#include <limits.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/json_text.h"
#include "lib/base/mem.h"
#include "lib/wire/json.h"
#include "lib/wire/peer.h"

#define SLOTS_FIRST     8
#define DEADLINE_MAX_MS (24ll * 3600 * 1000)

/* The callback of a call that is out of the table. */
static void
tell(rpc_answer_fn *cb, void *arg, int err, const char *message)
{
	struct rpc_answer a = { .err = err,
		.message = message != NULL ? message : err_text(err) };

	cb(arg, &a);
}

static int
grow(struct rpc_peer *p)
{
	size_t n = p->ncalls == 0 ? SLOTS_FIRST : p->ncalls * 2;
	struct call *calls;

	if (p->ncalls == RPC_CALLS_MAX)
		return E_OVERLOADED;
	calls = mem_realloc(p->calls, n * sizeof(*calls));
	if (calls == NULL)
		return E_NOMEM;
	memset(calls + p->ncalls, 0, (n - p->ncalls) * sizeof(*calls));
	p->calls = calls;
	p->next = (unsigned)p->ncalls;
	p->ncalls = n;
	return 0;
}

/* A free slot; the search goes on where the last one ended. */
static int
slot_find(struct rpc_peer *p, size_t *ret_slot)
{
	if (p->stats.calls_out == p->ncalls) {
		int r = grow(p);

		if (r < 0)
			return r;
	}
	while (p->calls[p->next].id != 0)
		p->next = (p->next + 1) & (unsigned)(p->ncalls - 1);
	*ret_slot = p->next;
	p->next = (p->next + 1) & (unsigned)(p->ncalls - 1);
	return 0;
}

static void
add_tail(struct buf *out, const struct buf *params, const struct rpc_call_opts *opts,
    int64_t deadline_ms)
{
	if (params != NULL) {
		buf_add_str(out, ",\"params\":");
		buf_add(out, params->data, params->len);
		out->failed |= params->failed;
	}
	buf_add_str(out, ",\"meta\":{");
	if (opts != NULL && opts->request_id != NULL && opts->request_id[0] != '\0') {
		buf_add_str(out, "\"requestId\":");
		json_text_string(out, opts->request_id, strlen(opts->request_id));
		if (deadline_ms != 0)
			buf_add_byte(out, ',');
	}
	if (deadline_ms != 0) {
		buf_add_str(out, "\"deadlineMs\":");
		buf_add_int(out, deadline_ms);
	}
	buf_add_str(out, "}}");
}

int
rpc_send(struct rpc_peer *p, const char *method, const struct buf *params,
    const struct rpc_call_opts *opts, rpc_answer_fn *cb, void *arg)
{
	int64_t deadline_ms = RPC_DEADLINE_MS, id;
	size_t slot, at;
	int r;

	OBJ_CHECK(p, RPC_PEER_MAGIC);
	must(cb != NULL);
	if (p->state != PEER_OPEN)
		return E_LINK;
	r = slot_find(p, &slot);
	if (r < 0)
		return r;
	if (opts != NULL && opts->deadline_ms > 0)
		deadline_ms = min_i64(opts->deadline_ms, DEADLINE_MAX_MS);
	id = (p->last_id + 1) << CALL_SLOT_BITS | (int64_t)slot;
	at = frame_begin(&p->out);
	buf_add_str(&p->out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add_int(&p->out, id);
	buf_add_str(&p->out, ",\"method\":");
	json_text_string(&p->out, method, strlen(method));
	add_tail(&p->out, params, opts, deadline_ms);
	/* In the table before the queue: a full queue closes the peer, and then tells. */
	p->calls[slot] = (struct call) { .id = id,
		.deadline_us = mono_add_ms(clock_mono(), deadline_ms).us,
		.cb = cb,
		.arg = arg };
	r = peer_queue(p, at);
	if (r < 0) {
		p->calls[slot].id = 0;
		return r;
	}
	p->last_id++;
	p->stats.calls_out++;
	if (p->state == PEER_OPEN)
		peer_timer(p, p->calls[slot].deadline_us);
	return 0;
}

int
rpc_notify(struct rpc_peer *p, const char *method, const struct buf *params,
    const struct rpc_call_opts *opts)
{
	size_t at;

	OBJ_CHECK(p, RPC_PEER_MAGIC);
	if (p->state != PEER_OPEN)
		return E_LINK;
	at = frame_begin(&p->out);
	buf_add_str(&p->out, "{\"jsonrpc\":\"2.0\",\"method\":");
	json_text_string(&p->out, method, strlen(method));
	add_tail(&p->out, params, opts, 0);
	return peer_queue(p, at);
}

/* The error member of an answer; a malformed one is E_INTERNAL. */
static void
read_error(const json_t *error, struct rpc_answer *ret)
{
	const char *message = json_string_value(json_object_get(error, "message"));
	json_int_t code = json_integer_value(json_object_get(error, "code"));

	ret->err = code < 0 && code > INT_MIN && err_known((int)code) ? (int)code : E_INTERNAL;
	ret->message = message != NULL ? message : err_text(ret->err);
	ret->data = json_object_get(error, "data");
}

int
call_answer(struct rpc_peer *p, struct envelope *e)
{
	struct rpc_answer a = { .sent_by_peer = 1 };
	struct span value = e->result.p != NULL ? e->result : e->error;
	CLEANUP(json_unrefp) json_t *tree = NULL;
	struct call call, *slot;
	long long id;
	int r;

	/* Parsed before it is known whose it is: a text that is none ends the connection. */
	r = json_text_parse(value.p, value.n, RPC_DEPTH_MAX - 1, &tree);
	if (r < 0 && r != E_NOMEM)
		return r;
	slot = envelope_int(e->id, &id) && id > 0 ? &p->calls[id & CALL_SLOT_MASK] : NULL;
	if (slot == NULL || (size_t)(id & CALL_SLOT_MASK) >= p->ncalls || slot->id != id) {
		p->stats.stray_answers++;
		return 0;
	}
	call = *slot;
	slot->id = 0;
	p->stats.calls_out--;
	if (call.cb == NULL) {
		p->nlate--;
		p->stats.stray_answers++;
		return 0;
	}
	if (r == E_NOMEM)
		tell(call.cb, call.arg, E_NOMEM, NULL);
	else if (e->result.p != NULL) {
		a.result = tree;
		call.cb(call.arg, &a);
	} else {
		read_error(tree, &a);
		call.cb(call.arg, &a);
	}
	return 0;
}

void
call_expire(struct rpc_peer *p)
{
	int64_t now = clock_mono().us, next = INT64_MAX;

	for (size_t i = 0; i < p->ncalls && p->state == PEER_OPEN; i++) {
		struct call call = p->calls[i];

		if (call.id == 0 || call.cb == NULL || call.deadline_us > now)
			continue;
		p->calls[i].cb = NULL;
		p->nlate++;
		tell(call.cb, call.arg, E_DEADLINE, NULL);
	}
	/* Nothing but silence in every slot: nobody is there. */
	if (p->nlate == RPC_CALLS_MAX)
		rpc_peer_close(p, E_LINK);
	if (p->state != PEER_OPEN)
		return;
	for (size_t i = 0; i < p->ncalls; i++)
		if (p->calls[i].id != 0 && p->calls[i].cb != NULL)
			next = min_i64(next, p->calls[i].deadline_us);
	if (next != INT64_MAX)
		peer_timer(p, next);
}

void
call_fail_all(struct rpc_peer *p, int err)
{
	/* Nothing is added meanwhile: the peer has closed. */
	for (size_t i = 0; i < p->ncalls; i++) {
		struct call call = p->calls[i];

		if (call.id == 0)
			continue;
		p->calls[i].id = 0;
		p->stats.calls_out--;
		if (call.cb != NULL)
			tell(call.cb, call.arg, E_LINK, err == E_LINK ? NULL : err_text(err));
	}
	p->nlate = 0;
}
