#include "cmd/anvil-ingress/hub.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/hub_row.h"
#include "cmd/anvil-ingress/merge.h"
#include "cmd/anvil-ingress/replay.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"

#define JUDGE_MS      50
#define ADDRESS_BEGIN "run/"

/* ---- viewers ---- */

static void
for_each(struct hub *h, void (*fn)(struct viewer *v))
{
	for (int f = 0; f < MESSAGE_FORMATS; f++) {
		struct viewer *v = TAILQ_FIRST(&h->channels[f].viewers), *next;

		for (; v != NULL; v = next) {
			next = TAILQ_NEXT(v, entry);
			fn(v);
		}
	}
}

void
hub_fill_all(struct hub *h)
{
	for_each(h, viewer_fill);
}

void
hub_end_all(struct hub *h, enum viewer_end why)
{
	for (int f = 0; f < MESSAGE_FORMATS; f++)
		while (!TAILQ_EMPTY(&h->channels[f].viewers))
			viewer_end(TAILQ_FIRST(&h->channels[f].viewers), why);
}

/* ---- flow ---- */

/* Even the fastest one is far behind. */
static int
is_held(const struct hub *h)
{
	const struct viewer *v;
	int n = 0;

	for (int f = 0; f < MESSAGE_FORMATS; f++) {
		TAILQ_FOREACH (v, &h->channels[f].viewers, entry) {
			if (v->dead || v->place == VIEWER_AWAY)
				continue;
			if (viewer_backlog(v) <= HUB_HOLD_BYTES)
				return 0;
			n++;
		}
	}
	return n != 0;
}

static void
acknowledge(struct hub *h)
{
	if (h->next - 1 <= h->acked || h->live.id == 0 || is_held(h))
		return;
	h->acked = h->next - 1;
	sub_ack(&h->live, h->acked);
}

void
hub_on_progress(struct hub *h)
{
	acknowledge(h);
}

static size_t
tail_max(const struct hub *h)
{
	size_t share = HUB_TAILS_BYTES / map_count(h->in->hubs);

	return share < HUB_TAIL_MIN_BYTES ? HUB_TAIL_MIN_BYTES
					  : min_size(share, HUB_TAIL_BYTES);
}

static void
trim(struct hub *h)
{
	size_t max = tail_max(h);

	for (int f = 0; f < MESSAGE_FORMATS; f++)
		if (h->channels[f].tail != NULL)
			tail_trim(h->channels[f].tail, max);
	for_each(h, viewer_on_trim);
}

static void
on_judge(void *arg)
{
	struct hub *h = arg;

	OBJ_CHECK(h, HUB_MAGIC);
	for_each(h, viewer_judge);
}

void
hub_on_lag(struct hub *h)
{
	if (!actor_timer_is_set(h->judge))
		(void)actor_timer_set(h->judge, JUDGE_MS);
}

/* ---- what the run tells ---- */

void
hub_set_state_take(struct hub *h, struct buf *json)
{
	int same = h->version != 0 && json->len == h->state.len &&
	    memcmp(json->data, h->state.data, json->len) == 0;

	if (json->failed || same) {
		buf_done(json);
		return;
	}
	buf_done(&h->state);
	h->state = *json;
	buf_init(json);
	h->version++;
	h->state_at = h->next;
}

struct http_blob *
hub_state_frame(struct hub *h, enum message_format f)
{
	struct channel *c = &h->channels[f];

	if (c->state != NULL && c->framed == h->version)
		return c->state;
	c->state = http_blob_unref(c->state);
	c->state = message_frame(f, "state", 0, &h->state);
	c->framed = h->version;
	return c->state;
}

static int
add_to_tails(struct hub *h, int64_t next, const struct log_row *row)
{
	for (int f = 0; f < MESSAGE_FORMATS; f++) {
		struct tail *t = h->channels[f].tail;
		struct http_blob *b;

		if (t == NULL)
			continue;
		b = row != NULL ? message_log_frame((enum message_format)f, row) : NULL;
		if ((row != NULL && b == NULL) || tail_add_take(t, next, b) < 0)
			return E_NOMEM;
	}
	h->next = next;
	h->end_seq = max_i64(h->end_seq, next);
	return 0;
}

/* A line that came before comes no second time; one that is missing is a gap. */
static int
take_log(struct hub *h, const struct log_row *row)
{
	int err = 0;

	if (row->seq < h->next)
		return 0;
	if (row->seq > h->next)
		err = add_to_tails(h, row->seq, NULL);
	return err < 0 ? err : add_to_tails(h, row->seq + 1, row);
}

static int
take_item(struct hub *h, const struct run_item *item)
{
	struct buf json = BUF_INIT;
	int err;

	switch (item->type) {
	case RUN_ITEM_TYPE_LOG: return item->event != NULL ? take_log(h, item->event) : 0;
	case RUN_ITEM_TYPE_GAP:
		return item->to_seq >= h->next ? add_to_tails(h, item->to_seq + 1, NULL) : 0;
	case RUN_ITEM_TYPE_STATE:
		if (item->run == NULL)
			return 0;
		message_state(&json, item->run, item->steps, item->nsteps);
		err = json.failed ? E_NOMEM : 0;
		hub_set_state_take(h, &json);
		return err;
	case RUN_ITEM_TYPE_END:
		h->ended = 1;
		sub_close(&h->live, 0);
		return 0;
	default: return 0;
	}
}

static void
live_on_items(struct sub *s, const struct run_item *items, size_t n)
{
	struct hub *h = CONTAINER_OF(s, struct hub, live);
	int err = 0;

	h->heard = clock_mono();
	for (size_t i = 0; err == 0 && i < n; i++)
		err = take_item(h, &items[i]);
	if (err < 0) {
		hub_end_all(h, VIEWER_INTERNAL_ERROR);
		return;
	}
	hub_fill_all(h);
	trim(h);
	acknowledge(h);
	/* Whoever is behind the tail still needs it. */
	if (h->ended && TAILQ_EMPTY(&h->replays))
		source_rest(h->source);
}

int
run_events(struct ingress *in, struct turn *t, const struct run_events_params *p)
{
	const char *address = rpc_peer_address(t->peer);
	struct hub *h;

	if (strncmp(address, ADDRESS_BEGIN, strlen(ADDRESS_BEGIN)) != 0)
		return 0;
	h = map_get(in->hubs, address + strlen(ADDRESS_BEGIN));
	if (h == NULL)
		return 0;
	if (sub_owns(&h->live, t->peer, p->subscription))
		live_on_items(&h->live, p->items, p->nitems);
	else
		(void)replays_take(h, t->peer, p->subscription, p->items, p->nitems);
	return 0;
}

/* ---- where the log begins ---- */

static int
begin_tail(struct hub *h, struct channel *c, int from_start)
{
	c->tail = tail_new(h->next);
	c->from_start = from_start;
	return c->tail != NULL ? 0 : E_NOMEM;
}

static void
anchor(struct hub *h, const struct run_subscribe_ok *ok)
{
	int err = 0;

	h->anchored = 1;
	h->next = h->asked == 0 ? ok->first_seq : min_i64(h->asked, ok->next_seq);
	h->end_seq = ok->next_seq;
	h->acked = h->next - 1;
	for (int f = 0; f < MESSAGE_FORMATS; f++)
		if (!TAILQ_EMPTY(&h->channels[f].viewers) && err == 0)
			err = begin_tail(h, &h->channels[f], h->asked == 0);
	if (err < 0)
		hub_end_all(h, VIEWER_INTERNAL_ERROR);
	else
		for_each(h, viewer_anchor);
	hub_fill_all(h);
}

static void
live_on_answer(struct sub *s, int err, const struct run_subscribe_ok *ok)
{
	struct hub *h = CONTAINER_OF(s, struct hub, live);

	h->heard = clock_mono();
	if (err == E_NOENT && !hub_on_absent(h))
		source_rest(h->source);
	else if (err < 0) {
		replays_stop(h);
		source_drop(h->source);
	} else if (!h->anchored) {
		anchor(h, ok);
	} else {
		h->end_seq = max_i64(h->end_seq, ok->next_seq);
		h->acked = h->next - 1;
	}
}

static void
subscribe(struct hub *h)
{
	static const struct sub_ops ops = { live_on_answer, live_on_items };
	struct rpc_peer *peer = source_peer(h->source);

	if (h->ended || peer == NULL || sub_is_open(&h->live))
		return;
	h->asked = h->anchored ? h->next : h->from;
	if (sub_open(&h->live, &ops, peer, h->asked) < 0)
		(void)actor_timer_set(h->again, HUB_AGAIN_MS);
}

static void
on_again(void *arg)
{
	struct hub *h = arg;

	OBJ_CHECK(h, HUB_MAGIC);
	subscribe(h);
	replays_go_on(h);
}

/* ---- the connection ---- */

static void
on_up(void *arg, struct rpc_peer *peer)
{
	(void)peer;
	on_again(arg);
}

static void
on_down(void *arg)
{
	struct hub *h = arg;

	OBJ_CHECK(h, HUB_MAGIC);
	sub_close(&h->live, 0);
	replays_stop(h);
}

static int
on_absent(void *arg)
{
	return hub_on_absent(arg);
}

static void
on_silent(void *arg)
{
	hub_end_all(arg, VIEWER_INTERNAL_ERROR);
}

static int
is_queued(void *arg)
{
	return hub_is_queued(arg);
}

static const struct source_ops source_ops = { .on_up = on_up,
	.on_down = on_down,
	.on_absent = on_absent,
	.on_silent = on_silent,
	.is_queued = is_queued };

/* ---- life ---- */

static struct hub *
hub_free(struct hub *h)
{
	if (h == NULL)
		return NULL;
	OBJ_CHECK(h, HUB_MAGIC);
	must(h->nviewers == 0 && TAILQ_EMPTY(&h->replays));
	if (map_get(h->in->hubs, h->run_id) == h)
		(void)map_remove(h->in->hubs, h->run_id);
	sub_close(&h->live, 1);
	h->source = source_free(h->source);
	h->reaper = actor_timer_free(h->reaper);
	h->judge = actor_timer_free(h->judge);
	h->settle = actor_timer_free(h->settle);
	h->again = actor_timer_free(h->again);
	h->arena = arena_free(h->arena);
	buf_done(&h->state);
	h->magic = 0;
	return mem_free(h);
}

static void
on_reap(void *arg)
{
	struct hub *h = arg;

	OBJ_CHECK(h, HUB_MAGIC);
	if (h->nviewers == 0)
		(void)hub_free(h);
}

static struct hub *
hub_new(struct ingress *in, const struct run_known *k)
{
	struct hub *h = mem_calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->magic = HUB_MAGIC;
	h->in = in;
	(void)snprintf(h->run_id, sizeof(h->run_id), "%s", k->row.run_id);
	for (int f = 0; f < MESSAGE_FORMATS; f++)
		TAILQ_INIT(&h->channels[f].viewers);
	TAILQ_INIT(&h->replays);
	h->arena = arena_new();
	h->source = source_new(in, h->run_id, &source_ops, h);
	h->reaper = actor_timer_new(in->actor, on_reap, h);
	h->judge = actor_timer_new(in->actor, on_judge, h);
	h->settle = actor_timer_new(in->actor, hub_on_settle, h);
	h->again = actor_timer_new(in->actor, on_again, h);
	if (h->arena == NULL || h->source == NULL || h->reaper == NULL || h->judge == NULL ||
	    h->settle == NULL || h->again == NULL || hub_keep_row(h, k) < 0 ||
	    map_set(in->hubs, h->run_id, h) < 0)
		return hub_free(h);
	return h;
}

struct hub *
hub_get(struct ingress *in, const struct run_known *k)
{
	struct hub *h = map_get(in->hubs, k->row.run_id);

	return h != NULL ? h : hub_new(in, k);
}

void
hub_on_join(struct hub *h, struct viewer *v)
{
	struct channel *c = &h->channels[v->ops->format];
	int err = 0;

	if (h->nviewers == 0 || v->from < h->from)
		h->from = v->from;
	TAILQ_INSERT_TAIL(&c->viewers, v, entry);
	h->nviewers++;
	if (h->anchored && c->tail == NULL)
		err = begin_tail(h, c, 0);
	if (err < 0) {
		viewer_end(v, VIEWER_INTERNAL_ERROR);
		return;
	}
	if (!h->ended)
		source_want(h->source);
	if (h->anchored && !h->gone)
		viewer_anchor(v);
	viewer_fill(v);
}

void
hub_on_leave(struct hub *h, struct viewer *v)
{
	struct channel *c = &h->channels[v->ops->format];

	TAILQ_REMOVE(&c->viewers, v, entry);
	h->nviewers--;
	if (TAILQ_EMPTY(&c->viewers)) {
		c->tail = tail_free(c->tail);
		c->state = http_blob_unref(c->state);
	}
	if (h->nviewers == 0)
		(void)actor_timer_set(h->reaper, 0);
	else
		acknowledge(h);
}

void
hub_free_all(struct ingress *in)
{
	void *value;

	for (size_t at = 0; map_next(in->hubs, &at, NULL, &value);) {
		on_down(value);
		hub_end_all(value, VIEWER_RESTARTING);
		(void)hub_free(value);
		at = 0;
	}
}

size_t
hub_count_viewers(const struct ingress *in)
{
	void *value;
	size_t n = 0;

	for (size_t at = 0; map_next(in->hubs, &at, NULL, &value);)
		n += ((const struct hub *)value)->nviewers;
	return n;
}
