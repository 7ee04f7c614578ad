#include "cmd/anvil-run/subscribe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "cmd/anvil-run/fetch.h"
#include "cmd/anvil-run/phases.h"
#include "cmd/anvil-run/window.h"
#include "gen/run.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define QUEUE_LOOK_MS  20   /* For a connection that does not take what it has. */
#define FETCH_AGAIN_MS 1000 /* After one that failed.                           */

struct subscription {
	TAILQ_ENTRY(subscription) entry;
	int64_t id;
	struct rpc_peer *peer; /* Borrowed until it has gone down. */
	struct parked *parked; /* The call, until it has been answered. */
	int64_t from;          /* As asked; 0: whatever is hot. */
	int anchored;          /* There was a store to find `next` in. */
	int64_t next;          /* Line that it gets next. */
	int64_t replay_end;    /* Line behind those that were there when it came. */
	int replayed;          /* It has been told a state behind them. */
	uint64_t told;         /* Version of the newest state that it has; 0: none. */
	struct window window;
};

TAILQ_HEAD(subscription_list, subscription);

struct subscribers {
	uint32_t magic;
#define SUBSCRIBERS_MAGIC 0x71c8ad35
	struct run_actor *run;
	struct subscription_list list; /* Who was served longest ago comes first. */
	size_t n;
	int64_t last_id;
	struct fetch *fetch;       /* On its way; NULL: none. */
	int ended;                 /* The process ends: no more of them. */
	struct actor_timer *pause; /* After a failure: until it fires nothing is tried. */
	struct actor_timer *look;  /* Somebody's connection is full. */
	/* What the newest fetch has found. */
	int absent;
	struct record_log log;
	struct buf state; /* Text of a message, but for its end. */
	int terminal;
	uint64_t version;   /* Of the state; 0: none yet. */
	int64_t version_at; /* Lines before this one come before it. */
	/* What may have changed since it left. */
	int news, stale;
};

static void go_on(struct subscribers *s);

/* ---- sending ---- */

/* What the connection holds for the socket. */
static size_t
queued(const struct rpc_peer *p)
{
	struct rpc_peer_stats stats;

	rpc_peer_stats(p, &stats);
	return stats.queued_bytes;
}

/* Open, and not full. */
static int
is_reachable(const struct subscription *sub)
{
	return rpc_peer_is_open(sub->peer) && queued(sub->peer) <= SUBSCRIBE_QUEUE_BYTES;
}

/* ${text} lacks its end, and does again afterwards.  0, E_LINK, E_NOMEM, E_BUSY: later. */
static int
send_text(struct subscribers *s, const struct subscription *sub, struct buf *text)
{
	size_t len = text->len;
	int err;

	if (!is_reachable(sub))
		return E_BUSY;
	(void)buf_add_int(text, sub->id);
	(void)buf_add_byte(text, '}');
	err = rpc_notify(sub->peer, "run.events", text, NULL);
	if (!text->failed)
		text->len = len;
	if (err == E_NOMEM)
		(void)actor_timer_set(s->pause, FETCH_AGAIN_MS);
	return err;
}

static int
is_through_replay(const struct subscription *sub)
{
	return sub->next >= sub->replay_end;
}

/* A state is told at once to somebody new, and then behind the lines that belong before it. */
static int
state_is_due(const struct subscribers *s, const struct subscription *sub)
{
	if (s->version == 0 || sub->told == 0)
		return s->version != 0;
	if (sub->next < s->version_at)
		return 0;
	return sub->told != s->version || (!sub->replayed && is_through_replay(sub));
}

static int
send_state(struct subscribers *s, struct subscription *sub)
{
	int first = sub->told == 0;
	int err = send_text(s, sub, &s->state);

	if (err < 0)
		return err;
	sub->told = s->version;
	sub->replayed |= !first && is_through_replay(sub);
	return 0;
}

static int
send_batch(struct subscribers *s, struct subscription *sub, struct fetch_batch *b)
{
	int err = b->bytes <= window_room(&sub->window) ? send_text(s, sub, &b->text) : E_BUSY;

	if (err < 0)
		return err;
	window_add(&sub->window, b->next - 1, b->bytes);
	sub->next = b->next;
	return 0;
}

static int
is_at_its_end(const struct subscribers *s, const struct subscription *sub)
{
	return s->terminal && sub->told == s->version && sub->replayed &&
	    sub->next >= s->version_at;
}

static int
send_end(struct subscribers *s, struct subscription *sub)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)buf_add_str(&text, "{\"items\":[{\"type\":\"end\"}],\"subscription\":");
	return send_text(s, sub, &text);
}

/* ---- subscriptions ---- */

static void
drop(struct subscribers *s, struct subscription *sub)
{
	TAILQ_REMOVE(&s->list, sub, entry);
	s->n--;
	if (sub->parked != NULL)
		parked_drop(sub->parked);
	free(sub);
	serve_touch(s->run);
}

/* Finds the place in the log where it begins.  One that came before there was a store keeps
 * what it asked for until there is. */
static void
anchor(const struct subscribers *s, struct subscription *sub)
{
	int64_t next = sub->from != 0 ? sub->from : s->log.first_seq;

	sub->anchored = !s->absent;
	sub->next = min_i64(next, s->log.next_seq);
	sub->replay_end = s->log.next_seq;
	sub->replayed = 0;
}

static void
answer(const struct subscribers *s, struct subscription *sub)
{
	struct run_subscribe_result res = { .kind = RUN_SUBSCRIBE_OK };

	res.u.ok = (struct run_subscribe_ok) { .subscription = sub->id,
		.first_seq = s->log.first_seq,
		.next_seq = s->log.next_seq,
		.dropped_bytes = s->log.dropped_bytes };
	parked_reply(TAKE_PTR(sub->parked), &res);
}

static struct subscription *
find(const struct subscribers *s, const struct rpc_peer *p, int64_t id)
{
	struct subscription *sub;

	TAILQ_FOREACH (sub, &s->list, entry)
		if (sub->id == id && sub->peer == p)
			return sub;
	return NULL;
}

/* ---- what a fetch has brought ---- */

/* 1: the subscription is over. */
static int
serve(struct subscribers *s, struct subscription *sub, struct fetch *f)
{
	struct fetch_batch *b;

	if (!rpc_peer_is_open(sub->peer))
		return 0; /* It is about to be forgotten. */
	if (!sub->anchored)
		anchor(s, sub);
	if (sub->parked != NULL)
		answer(s, sub);
	for (;;) {
		while (state_is_due(s, sub))
			if (send_state(s, sub) < 0)
				return 0;
		b = fetch_find(f, sub->next);
		if (b == NULL || send_batch(s, sub, b) < 0)
			break;
	}
	return is_at_its_end(s, sub) && send_end(s, sub) == 0;
}

static void
keep_state(struct subscribers *s, struct fetch *f)
{
	const struct fetch_result *res = fetch_result(f);
	struct buf text = fetch_take_state(f);
	int same = text.len == s->state.len && s->version != 0 &&
	    memcmp(text.data, s->state.data, text.len) == 0;

	if (text.len == 0 || same) {
		buf_done(&text);
		return;
	}
	buf_done(&s->state);
	s->state = text;
	s->terminal = res->terminal;
	s->version++;
	s->version_at = res->log.next_seq;
}

static void
serve_all(struct subscribers *s, struct fetch *f)
{
	struct subscription *sub = TAILQ_FIRST(&s->list);

	for (size_t n = s->n; n > 0; n--) {
		struct subscription *next = TAILQ_NEXT(sub, entry);
		int64_t before = sub->next;

		if (serve(s, sub, f)) {
			drop(s, sub);
		} else if (sub->next != before) {
			TAILQ_REMOVE(&s->list, sub, entry);
			TAILQ_INSERT_TAIL(&s->list, sub, entry);
		}
		sub = next;
	}
}

/* Who waits for an answer is told; who has one waits for better times. */
static void
fail_all(struct subscribers *s, int err)
{
	struct subscription *sub, *next;

	for (sub = TAILQ_FIRST(&s->list); sub != NULL; sub = next) {
		next = TAILQ_NEXT(sub, entry);
		if (sub->parked == NULL)
			continue;
		parked_error(TAKE_PTR(sub->parked), err, NULL);
		drop(s, sub);
	}
}

static void
on_fetched(void *arg, struct fetch *f, int err)
{
	struct subscribers *s = arg;

	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	s->fetch = NULL;
	if (err == 0 && fetch_result(f)->absent && s->run->serving)
		err = E_NOENT;
	if (err < 0) {
		s->ended |= err == E_CANCELED;
		s->news = s->stale = 1;
		fail_all(s, err);
		if (!s->ended && s->n != 0)
			(void)actor_timer_set(s->pause, FETCH_AGAIN_MS);
		return;
	}
	s->absent = fetch_result(f)->absent;
	s->log = fetch_result(f)->log;
	keep_state(s, f);
	serve_all(s, f);
	go_on(s);
}

/* ---- fetching ---- */

/* Bytes that it may be sent, if there may be lines for it. */
static size_t
wants(const struct subscribers *s, const struct subscription *sub)
{
	size_t room = window_room(&sub->window);

	if (!sub->anchored || room < FETCH_ITEM_BYTES || !is_reachable(sub))
		return 0;
	return s->news || sub->next < s->log.next_seq ? room : 0;
}

static int
is_needed(struct subscribers *s)
{
	const struct subscription *sub;
	int needed = s->stale;

	TAILQ_FOREACH (sub, &s->list, entry) {
		if (rpc_peer_is_open(sub->peer) && !is_reachable(sub))
			(void)actor_timer_set(s->look, QUEUE_LOOK_MS);
		else
			needed |= sub->parked != NULL || wants(s, sub) != 0 ||
			    state_is_due(s, sub) || is_at_its_end(s, sub);
	}
	return needed;
}

/* One fetch for all, when there is something to be had for somebody. */
static void
go_on(struct subscribers *s)
{
	const struct subscription *sub;
	size_t room;

	if (s->fetch != NULL || s->ended || s->n == 0 || actor_timer_is_set(s->pause) ||
	    !is_needed(s))
		return;
	s->fetch = fetch_new(s->run->run_id, on_fetched, s);
	if (s->fetch == NULL) {
		(void)actor_timer_set(s->pause, FETCH_AGAIN_MS);
		return;
	}
	if (s->stale)
		fetch_want_state(s->fetch);
	fetch_cut_at(s->fetch, s->version_at);
	TAILQ_FOREACH (sub, &s->list, entry)
		if ((room = wants(s, sub)) != 0)
			fetch_add(s->fetch, sub->next, room);
	s->stale = s->news = 0;
	fetch_post(s->fetch, s->run->recorder);
}

static void
on_time(void *arg)
{
	struct subscribers *s = arg;

	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	go_on(s);
}

void
subscribers_stored(struct subscribers *s, enum job_kind kind)
{
	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	s->news = 1;
	s->stale |= kind == JOB_STATE;
	go_on(s);
}

/* ---- calls ---- */

int
subscribers_add(struct subscribers *s, struct turn *t, int64_t from_seq)
{
	struct subscription *sub;

	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	if (s->n == SUBSCRIBERS_MAX)
		return turn_fail(t, E_OVERLOADED, "%d subscriptions are open", SUBSCRIBERS_MAX);
	sub = mem_calloc(1, sizeof(*sub));
	if (sub == NULL)
		return E_NOMEM;
	sub->parked = turn_park(t);
	if (sub->parked == NULL) {
		free(sub);
		return E_NOMEM;
	}
	sub->id = ++s->last_id;
	sub->peer = t->peer;
	sub->from = from_seq;
	TAILQ_INSERT_TAIL(&s->list, sub, entry);
	s->n++;
	serve_touch(s->run);
	go_on(s);
	return TURN_PARKED;
}

void
subscribers_ack(struct subscribers *s, const struct rpc_peer *p, int64_t id, int64_t seq)
{
	struct subscription *sub = find(s, p, id);

	if (sub == NULL)
		return;
	window_ack(&sub->window, seq);
	go_on(s);
}

void
subscribers_remove(struct subscribers *s, const struct rpc_peer *p, int64_t id)
{
	struct subscription *sub = find(s, p, id);

	if (sub != NULL)
		drop(s, sub);
}

void
subscribers_forget(struct subscribers *s, const struct rpc_peer *p)
{
	struct subscription *sub, *next;

	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	for (sub = TAILQ_FIRST(&s->list); sub != NULL; sub = next) {
		next = TAILQ_NEXT(sub, entry);
		if (sub->peer == p)
			drop(s, sub);
	}
}

size_t
subscribers_count(const struct subscribers *s)
{
	return s->n;
}

/* 1 when no connection of a viewer holds anything for its socket. */
static int
all_is_out(const struct subscribers *s)
{
	const struct rpc_peer *p;

	for (size_t at = 0; (p = actor_peer_next(s->run->actor, &at)) != NULL;)
		if (rpc_peer_role(p) & (ROLE_INGRESS | ROLE_CTL) && rpc_peer_is_open(p) &&
		    queued(p) != 0)
			return 0;
	return 1;
}

int
subscribers_are_served(const struct subscribers *s)
{
	const struct subscription *sub;

	if (s->n != 0 && (s->fetch != NULL || s->stale || s->news))
		return 0;
	TAILQ_FOREACH (sub, &s->list, entry)
		if (sub->next < s->log.next_seq || state_is_due(s, sub) ||
		    is_at_its_end(s, sub))
			return 0;
	return all_is_out(s);
}

/* ---- life ---- */

struct subscribers *
subscribers_new(struct run_actor *r)
{
	struct subscribers *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->magic = SUBSCRIBERS_MAGIC;
	s->run = r;
	s->news = s->stale = 1;
	TAILQ_INIT(&s->list);
	s->pause = actor_timer_new(r->actor, on_time, s);
	s->look = actor_timer_new(r->actor, on_time, s);
	return s->pause != NULL && s->look != NULL ? s : subscribers_free(s);
}

struct subscribers *
subscribers_free(struct subscribers *s)
{
	if (s == NULL)
		return NULL;
	OBJ_CHECK(s, SUBSCRIBERS_MAGIC);
	must(s->fetch == NULL);
	while (!TAILQ_EMPTY(&s->list))
		drop(s, TAILQ_FIRST(&s->list));
	buf_done(&s->state);
	actor_timer_free(s->pause);
	actor_timer_free(s->look);
	s->magic = 0;
	return mem_free(s);
}
