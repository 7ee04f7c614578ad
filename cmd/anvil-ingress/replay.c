#include "cmd/anvil-ingress/replay.h"

#include <stdlib.h>

#include "cmd/anvil-ingress/hub.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"

/* Its viewers go on from where it has brought them. */
static void
finish(struct replay *r, int tell)
{
	struct hub *h = r->hub;
	struct viewer *v;

	sub_close(&r->sub, tell);
	TAILQ_REMOVE(&h->replays, r, entry);
	while ((v = TAILQ_FIRST(&r->viewers)) != NULL) {
		TAILQ_REMOVE(&r->viewers, v, replay_entry);
		v->replay = NULL;
		v->place = VIEWER_BEHIND;
		viewer_on_replayed(v);
	}
	free(r);
	replays_go_on(h);
}

/* ---- what comes ---- */

static void
send_all(struct replay *r, struct http_blob *b, int64_t next)
{
	struct viewer *v;

	TAILQ_FOREACH (v, &r->viewers, replay_entry) {
		v->dead |= v->ops->send(v, b) < 0;
		v->last = clock_mono();
		v->next = next;
	}
	r->next = next;
	r->bytes += http_blob_len(b);
}

static int
take_item(struct replay *r, const struct run_item *item)
{
	CLEANUP(http_blob_unrefp) struct http_blob *b = NULL;
	CLEANUP(buf_done) struct buf json = BUF_INIT;
	int64_t next;

	if (item->type == RUN_ITEM_TYPE_LOG && item->event != NULL &&
	    item->event->seq >= r->next) {
		next = item->event->seq + 1;
		b = message_log_frame(r->format, item->event);
	} else if (item->type == RUN_ITEM_TYPE_GAP && item->to_seq >= r->next) {
		next = item->to_seq + 1;
		message_gap(&json, max_i64(item->from_seq, r->next), item->to_seq);
		b = message_frame(r->format, "gap", 0, &json);
	} else {
		return 0;
	}
	if (b == NULL)
		return E_NOMEM;
	send_all(r, b, next);
	return 0;
}

/* A run that has lost lines in a crash has nothing where others have been: what is missing is a
 * gap, up to where the tail begins. */
static int
skip_lost(struct replay *r)
{
	int64_t first = tail_first_seq(r->hub->channels[r->format].tail);
	const struct run_item gap = {
		.type = RUN_ITEM_TYPE_GAP, .from_seq = r->next, .to_seq = first - 1
	};

	return r->end < first && r->next >= r->end && r->next < first ? take_item(r, &gap) : 0;
}

static int
has_enough(const struct replay *r)
{
	const struct tail *t = r->hub->channels[r->format].tail;

	return r->bytes >= REPLAY_BYTES || r->next >= r->end || r->next >= tail_first_seq(t);
}

static void
end_all(struct replay *r)
{
	struct viewer *v, *next;

	for (v = TAILQ_FIRST(&r->viewers); v != NULL; v = next) {
		next = TAILQ_NEXT(v, replay_entry);
		viewer_end(v, VIEWER_INTERNAL_ERROR);
	}
}

/* The last viewer that leaves takes the replay along. */
static void
on_items(struct sub *s, const struct run_item *items, size_t n)
{
	struct replay *r = CONTAINER_OF(s, struct replay, sub);
	int err = 0;

	for (size_t i = 0; err == 0 && i < n; i++)
		err = take_item(r, &items[i]);
	if (err < 0)
		end_all(r);
	else if (has_enough(r))
		finish(r, 1);
}

static void
on_answer(struct sub *s, int err, const struct run_subscribe_ok *ok)
{
	struct replay *r = CONTAINER_OF(s, struct replay, sub);
	struct viewer *v;

	if (err < 0) {
		/* Too many at once, perhaps. */
		(void)actor_timer_set(r->hub->again, HUB_AGAIN_MS);
		return;
	}
	r->end = ok->next_seq;
	if (r->next == 0)
		r->next = ok->first_seq;
	TAILQ_FOREACH (v, &r->viewers, replay_entry)
		v->next = r->next;
	if (skip_lost(r) < 0)
		end_all(r);
	else if (has_enough(r))
		finish(r, 1);
}

static const struct sub_ops replay_ops = { .on_answer = on_answer, .on_items = on_items };

/* ---- who asks ---- */

static struct replay *
find(struct hub *h, const struct viewer *v)
{
	struct replay *r;

	TAILQ_FOREACH (r, &h->replays, entry)
		if (r->format == v->ops->format && r->next == v->next && r->sub.id == 0)
			return r;
	return NULL;
}

static struct replay *
replay_new(struct hub *h, const struct viewer *v)
{
	struct replay *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->hub = h;
	r->format = v->ops->format;
	r->next = v->next;
	TAILQ_INIT(&r->viewers);
	TAILQ_INSERT_TAIL(&h->replays, r, entry);
	return r;
}

int
replay_join(struct viewer *v)
{
	struct hub *h = v->hub;
	struct replay *r = find(h, v);

	if (r == NULL)
		r = replay_new(h, v);
	if (r == NULL)
		return E_NOMEM;
	TAILQ_INSERT_TAIL(&r->viewers, v, replay_entry);
	v->replay = r;
	v->place = VIEWER_REPLAY;
	replays_go_on(h);
	return 0;
}

void
replay_leave(struct viewer *v)
{
	struct replay *r = v->replay;

	TAILQ_REMOVE(&r->viewers, v, replay_entry);
	v->replay = NULL;
	if (!TAILQ_EMPTY(&r->viewers))
		return;
	sub_close(&r->sub, 1);
	TAILQ_REMOVE(&r->hub->replays, r, entry);
	free(r);
}

/* ---- the hub's ---- */

void
replays_go_on(struct hub *h)
{
	struct rpc_peer *peer = source_peer(h->source);
	struct replay *r;
	int n = 0;

	if (TAILQ_EMPTY(&h->replays))
		return;
	source_want(h->source);
	TAILQ_FOREACH (r, &h->replays, entry) {
		if (peer == NULL || n++ == REPLAY_MAX)
			return;
		if (!sub_is_open(&r->sub) &&
		    sub_open(&r->sub, &replay_ops, peer, r->next) < 0) {
			(void)actor_timer_set(h->again, HUB_AGAIN_MS);
			return;
		}
	}
}

void
replays_stop(struct hub *h)
{
	struct replay *r;

	TAILQ_FOREACH (r, &h->replays, entry) {
		sub_close(&r->sub, 0);
		r->bytes = 0;
	}
}

int
replays_take(struct hub *h, const struct rpc_peer *peer, int64_t id,
    const struct run_item *items, size_t n)
{
	struct replay *r;

	TAILQ_FOREACH (r, &h->replays, entry) {
		if (!sub_owns(&r->sub, peer, id))
			continue;
		r->sub.ops->on_items(&r->sub, items, n);
		return 1;
	}
	return 0;
}
