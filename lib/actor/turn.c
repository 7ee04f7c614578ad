#include "lib/actor/turn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/actor/crash.h"
#include "lib/actor/inside.h"
#include "lib/actor/trace.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CHECKPOINT_IDLE_MS 30000
#define ITEMS_FIRST        16
#define TEXT_KEEP_BYTES    (64u << 10)

/* ---- what leaves after the commit ---- */

static struct item *
item_add(struct actor *a)
{
	struct round *r = &a->round;

	if (r->nitems == r->cap) {
		size_t cap = r->cap == 0 ? ITEMS_FIRST : r->cap * 2;
		struct item *items = mem_realloc(r->items, cap * sizeof(*items));

		if (items == NULL)
			return NULL;
		r->items = items;
		r->cap = cap;
	}
	r->items[r->nitems] = (struct item) { .kind = ITEM_NONE };
	return &r->items[r->nitems++];
}

void
round_done(struct actor *a)
{
	free(a->round.items);
	buf_done(&a->round.text);
	a->round = (struct round) { .items = NULL };
}

/* Answers at once. */
static void
answer(struct method_entry *m, struct rpc_request *req, int err, const char *text, size_t n)
{
	method_count(m, req, err);
	if (err < 0)
		rpc_reply_error(req, err, text, NULL);
	else
		rpc_reply(req, text, n);
}

/* What was written for it into the round's text; NULL: nothing. */
static const char *
reply_text(const struct item *it, const struct round *r)
{
	return it->u.reply.n != 0 ? (const char *)r->text.data + it->u.reply.at : NULL;
}

static void
item_apply(struct item *it, const struct round *r)
{
	switch (it->kind) {
	case ITEM_EFFECT: it->u.effect.fn(it->u.effect.arg); break;
	case ITEM_RESULT:
		answer(
		    it->u.reply.method, it->u.reply.req, 0, reply_text(it, r), it->u.reply.n);
		break;
	case ITEM_ERROR:
		answer(
		    it->u.reply.method, it->u.reply.req, it->u.reply.err, reply_text(it, r), 0);
		break;
	case ITEM_PARKED:
	case ITEM_NONE: break;
	}
}

/* ${err} instead of what was promised. */
static void
item_lose(struct item *it, int err)
{
	switch (it->kind) {
	case ITEM_EFFECT:
		if (it->u.effect.drop != NULL)
			it->u.effect.drop(it->u.effect.arg);
		break;
	case ITEM_RESULT:
	case ITEM_ERROR: answer(it->u.reply.method, it->u.reply.req, err, NULL, 0); break;
	case ITEM_PARKED:
		answer(it->u.parked->method, it->u.parked->req, err, NULL, 0);
		it->u.parked->req = NULL;
		break;
	case ITEM_NONE: break;
	}
	it->kind = ITEM_NONE;
}

/* Effects may start turns, whose items belong to a round of their own. */
static void
round_leave(struct actor *a, int err)
{
	struct round r = a->round;

	a->round = (struct round) { .items = NULL };
	for (size_t i = 0; i < r.nitems; i++) {
		if (err < 0)
			item_lose(&r.items[i], err);
		else
			item_apply(&r.items[i], &r);
	}
	/* The storage serves the next round, unless it has grown or is replaced. */
	r.nitems = 0;
	if (a->round.items == NULL && a->round.text.data == NULL &&
	    r.text.cap <= TEXT_KEEP_BYTES) {
		buf_reset(&r.text);
		a->round = r;
	} else {
		free(r.items);
		buf_done(&r.text);
	}
}

/* ---- the batch ---- */

/* The whole transaction is gone, and everything that was promised with it. */
static void
batch_lost(struct actor *a)
{
	/* Answers for it, so that the next one may begin. */
	(void)batch_commit(a->batch);
	a->nlost++;
	a->writing = 0;
	(void)event_del(&a->ev_commit);
	round_leave(a, E_STORAGE);
}

/* The first commit shows that the store will be written: now the log needs its keeper. */
static void
keep_log_short(struct actor *a)
{
	if (a->checkpointer == NULL &&
	    checkpointer_start(a->store, CHECKPOINT_IDLE_MS, &a->checkpointer) < 0)
		a->checkpointer = NULL;
	if (a->checkpointer != NULL)
		checkpointer_poke(a->checkpointer);
}

int
turn_commit(struct actor *a)
{
	size_t nturns;
	int r;

	must(a->turn == NULL);
	if (!a->writing)
		return 0;
	nturns = batch_nturns(a->batch);
	r = batch_commit(a->batch);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "commit_failed", LOG_STR("errorCode", err_symbol(r)),
		    LOG_STR("why", store_error(a->store)), LOG_INT("turns", nturns));
		(void)outage_look(a);
		batch_lost(a);
		outage_after_commit(a);
		if (r == E_FULL)
			full_begin(a);
		return E_STORAGE;
	}
	if (trace_on(TRACE_BATCH))
		log_event(LOG_LEVEL_INFO, "trace_batch", LOG_INT("turns", nturns),
		    LOG_INT("us", mono_diff_us(a->batch_from, clock_mono())));
	a->ncommits++;
	a->ncommitted += nturns;
	a->writing = 0;
	(void)event_del(&a->ev_commit);
	keep_log_short(a);
	round_leave(a, 0);
	CRASH_POINT_OF(a->address, "after_replies");
	return 0;
}

void
turn_on_commit(evutil_socket_t fd, short what, void *arg)
{
	struct actor *a = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	(void)turn_commit(a);
}

/* Reads need no savepoint: they see what the batch has written so far, and wait with it. */
static int
batch_open(struct actor *a, int write)
{
	int r;

	if (a->outage != NULL || batch_must_restart(a->batch))
		return E_STORAGE;
	if (!write)
		return 0;
	r = batch_turn_begin(a->batch);
	if (batch_is_open(a->batch) && !a->writing) {
		a->writing = 1;
		a->batch_from = clock_mono();
		/* Runs when all that is ready now has been served. */
		event_active(&a->ev_commit, EV_TIMEOUT, 0);
	}
	if (r < 0 && batch_is_lost(a->batch))
		batch_lost(a);
	return r < 0 ? E_STORAGE : 0;
}

/* Commits a batch that is large or old enough; lets a turn without one go. */
static void
batch_pace(struct actor *a)
{
	if (!a->writing)
		round_leave(a, 0);
	else if (batch_nturns(a->batch) >= ACTOR_BATCH_TURNS ||
	    mono_diff_us(a->batch_from, clock_mono()) >= a->batch_us)
		(void)turn_commit(a);
}

/* ---- a turn ---- */

int
turn_fail(struct turn *t, int err, const char *fmt, ...)
{
	va_list ap;

	must(err < 0);
	va_start(ap, fmt);
	(void)vsnprintf(t->message, sizeof(t->message), fmt, ap);
	va_end(ap);
	return err;
}

int
turn_after_commit(struct turn *t, void (*fn)(void *arg), void *arg, void (*drop)(void *arg))
{
	struct item *it = item_add(t->actor);

	if (it == NULL)
		return E_NOMEM;
	it->kind = ITEM_EFFECT;
	it->u.effect.fn = fn;
	it->u.effect.drop = drop;
	it->u.effect.arg = arg;
	return 0;
}

/* Undoes what a failed turn has promised from item ${from} on: effects are dropped, parked
 * callers that it answered get its error. */
static void
turn_undo(struct actor *a, size_t from, int err)
{
	for (size_t i = from; i < a->round.nitems; i++) {
		struct item *it = &a->round.items[i];

		if (it->kind == ITEM_RESULT || it->kind == ITEM_ERROR) {
			it->kind = ITEM_ERROR;
			it->u.reply.err = err;
			it->u.reply.n = 0;
		} else {
			item_lose(it, err);
		}
	}
}

static void
turn_begin(struct actor *a, struct turn *t, const char *request_id)
{
	t->actor = a;
	t->store = a->store;
	t->arena = a->arena;
	t->now_ms = clock_wall_ms();
	t->request_id = request_id;
	log_set_request(request_id);
	a->turn = t;
}

/* Nobody can tell what a damaged store has kept of the batch that came upon it. */
static int
give_up_damaged(struct actor *a, size_t from, int r)
{
	if (outage_look(a) == 0)
		return r;
	if (a->writing) {
		store_rollback(a->store);
		batch_lost(a);
	} else {
		turn_undo(a, from, E_STORAGE);
	}
	return E_STORAGE;
}

/* Ends the savepoint.  Returns the verdict of the turn; E_STORAGE when the batch is lost. */
static int
turn_end(struct actor *a, int write, size_t from, int r)
{
	a->turn = NULL;
	if (write && a->batch != NULL && batch_turn_end(a->batch, r >= 0) < 0) {
		batch_lost(a);
		r = E_STORAGE;
	} else if (r < 0) {
		turn_undo(a, from, r);
	}
	return give_up_damaged(a, from, r);
}

static void
item_reply(struct item *it, enum item_kind kind, struct method_entry *m,
    struct rpc_request *req, int err)
{
	it->kind = kind;
	it->u.reply.req = req;
	it->u.reply.method = m;
	it->u.reply.err = err;
}

/* Queues a result.  0 or E_NOMEM: then nothing is queued. */
static int
queue_result(
    struct actor *a, struct method_entry *m, struct rpc_request *req, const void *result)
{
	struct buf *text = &a->round.text;
	size_t at = text->len;
	struct item *it;

	if (m->row->encode != NULL)
		(void)m->row->encode(text, result);
	it = text->failed ? NULL : item_add(a);
	if (it == NULL) {
		text->len = at;
		text->failed = 0;
		return E_NOMEM;
	}
	item_reply(it, ITEM_RESULT, m, req, 0);
	it->u.reply.at = at;
	it->u.reply.n = text->len - at;
	return 0;
}

/* Queues an error, or gives it at once when there is no memory to queue it. */
static void
queue_error(struct actor *a, struct method_entry *m, struct rpc_request *req, int err,
    const char *message)
{
	struct buf *text = &a->round.text;
	size_t at = text->len;
	struct item *it = item_add(a);

	if (it == NULL) {
		answer(m, req, err, message, 0);
		return;
	}
	item_reply(it, ITEM_ERROR, m, req, err);
	if (message == NULL || message[0] == '\0')
		return;
	if (buf_add(text, message, strlen(message) + 1) < 0) {
		text->len = at;
		text->failed = 0;
		return;
	}
	it->u.reply.at = at;
	it->u.reply.n = text->len - at;
}

static void
note(struct actor *a, const char *name, const char *request_id, int r, struct mono_time from)
{
	uint32_t us = (uint32_t)mono_diff_us(from, clock_mono());

	crash_note_turn(name, request_id, r, us);
	if (trace_on(TRACE_TURN))
		log_event(LOG_LEVEL_INFO, "trace_turn", LOG_STR("method", name),
		    LOG_INT("us", us), LOG_STR("verdict", r > 0 ? "parked" : err_symbol(r)));
	arena_reset(a->arena);
	log_set_request("");
}

static int
serve(struct actor *a, struct method_entry *m, int has_store, struct turn *t,
    const void *params, void *result)
{
	if (has_store)
		return m->row->run(m->builtin ? (void *)a : a->ctx, t, params, result);
	t->store = NULL;
	return a->desc->without_store(a->ctx, t, params, result);
}

void
turn_serve(struct actor *a, struct rpc_peer *p, struct rpc_request *req, struct method_entry *m,
    const void *params, void *result)
{
	struct turn t = { .from = rpc_peer_address(p),
		.from_role = rpc_peer_role(p),
		.peer = p,
		.method = m->row,
		.request = req,
		.entry = m };
	struct mono_time from = clock_mono();
	char request_id[RPC_REQUEST_ID_SIZE];
	size_t first = a->round.nitems;
	int write = m->row->turn == RPC_TURN_WRITE;
	int r = 0, told = 0;

	must(a->turn == NULL);
	memcpy(request_id, req->request_id, sizeof(request_id));
	if (req->deadline_ms > 0)
		t.deadline_ms = max_i64(1, req->deadline_ms - mono_diff_ms(req->came, from));
	if (m->row->turn != RPC_TURN_NONE && a->desc->store != NULL)
		r = batch_open(a, write);
	if (r < 0 && a->desc->without_store == NULL) {
		answer(m, req, r, actor_outage(a), 0);
		return;
	}
	write &= r == 0;
	turn_begin(a, &t, request_id);
	crash_note_now(m->row->name);
	r = serve(a, m, r == 0, &t, params, result);
	must((r == TURN_PARKED) == (t.request == NULL));
	/* Before the savepoint ends: what cannot be told is not done either. */
	if (r == 0 && (r = queue_result(a, m, req, result)) == 0)
		told = 1;
	r = turn_end(a, write, first, r);
	crash_note_now(NULL);
	if (r < 0 && t.request != NULL && !told)
		queue_error(a, m, req, r, r == E_STORAGE ? NULL : t.message);
	note(a, m->row->name, request_id, r, from);
	batch_pace(a);
}

int
actor_turn_for(struct actor *a, int write, const char *request_id,
    int (*fn)(void *arg, struct turn *t), void *arg)
{
	struct turn t = { .from = "" };
	struct mono_time from = clock_mono();
	char id[RPC_REQUEST_ID_SIZE]; /* ${fn} may free what the caller's belongs to */
	size_t first = a->round.nitems;
	int r = 0;

	OBJ_CHECK(a, ACTOR_MAGIC);
	must(a->turn == NULL);
	(void)snprintf(id, sizeof(id), "%s", request_id);
	if (a->desc->store != NULL)
		r = batch_open(a, write);
	if (r < 0)
		return r;
	turn_begin(a, &t, id);
	r = fn(arg, &t);
	must(r != TURN_PARKED);
	r = turn_end(a, write, first, r);
	note(a, "(internal)", id, r, from);
	batch_pace(a);
	return r;
}

int
actor_turn(struct actor *a, int write, int (*fn)(void *arg, struct turn *t), void *arg)
{
	return actor_turn_for(a, write, "", fn, arg);
}

/* ---- parked replies ---- */

struct parked *
turn_park(struct turn *t)
{
	struct actor *a = t->actor;
	struct item *it = NULL;
	struct parked *p;

	must(t->request != NULL);
	p = mem_calloc(1, sizeof(*p));
	if (p != NULL && a->writing && (it = item_add(a)) == NULL)
		p = mem_free(p);
	if (p == NULL)
		return NULL;
	if (it != NULL) {
		it->kind = ITEM_PARKED;
		it->u.parked = p;
	}
	p->magic = PARKED_MAGIC;
	p->actor = a;
	p->req = t->request;
	p->method = t->entry;
	t->request = NULL;
	return p;
}

/* Takes the request out and frees the handle. */
static struct rpc_request *
unpark(struct parked *p)
{
	struct actor *a = p->actor;
	struct rpc_request *req = p->req;

	OBJ_CHECK(p, PARKED_MAGIC);
	for (size_t i = 0; i < a->round.nitems; i++) {
		struct item *it = &a->round.items[i];

		if (it->kind == ITEM_PARKED && it->u.parked == p)
			it->kind = ITEM_NONE;
	}
	p->magic = 0;
	free(p);
	return req;
}

static void
parked_answer(struct parked *p, int err, const char *message, const void *result)
{
	struct method_entry *m = p->method;
	struct actor *a = p->actor;
	struct rpc_request *req = unpark(p);

	if (req == NULL)
		return;
	if (err == 0)
		err = queue_result(a, m, req, result);
	if (err < 0)
		queue_error(a, m, req, err, message);
	/* Outside of turns and batches nothing else will send it. */
	if (a->turn == NULL && !a->writing)
		round_leave(a, 0);
}

void
parked_reply(struct parked *p, const void *result)
{
	parked_answer(p, 0, NULL, result);
}

void
parked_error(struct parked *p, int err, const char *message)
{
	must(err < 0);
	parked_answer(p, err, message, NULL);
}

int
parked_is_wanted(const struct parked *p)
{
	OBJ_CHECK(p, PARKED_MAGIC);
	return p->req != NULL && rpc_peer_is_open(p->req->peer);
}
