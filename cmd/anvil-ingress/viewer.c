#include "cmd/anvil-ingress/viewer.h"

#include <string.h>

#include "cmd/anvil-ingress/hub.h"
#include "cmd/anvil-ingress/replay.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/http/http.h"

#define ROOM_LOW_BYTES ((size_t)128 << 10)
#define SILENCE_MS     30000

const char *
viewer_end_word(enum viewer_end why)
{
	static const char *const words[] = { "run_finished", "restarting", "user_disabled",
		"internal_error", "slow_consumer" };

	return words[why];
}

static struct channel *
channel_of(const struct viewer *v)
{
	return &v->hub->channels[v->ops->format];
}

static int
is_text(const struct viewer *v)
{
	return v->ops->format == MESSAGE_TEXT;
}

/* ---- sending ---- */

static void
send_blob(struct viewer *v, struct http_blob *b)
{
	v->dead |= b == NULL || v->ops->send(v, b) < 0;
	v->last = clock_mono();
}

static void
send_gap(struct viewer *v, int64_t from, int64_t next)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT;
	CLEANUP(http_blob_unrefp) struct http_blob *b = NULL;

	message_gap(&json, from, next - 1);
	b = message_frame(v->ops->format, "gap", 0, &json);
	send_blob(v, b);
}

/* One is told at once to somebody new, and then behind the lines that belong before it. */
static int
state_is_due(const struct viewer *v)
{
	const struct hub *h = v->hub;

	if (v->told == 0)
		return 1;
	if (h->gone)
		return v->told != h->version;
	if (v->next < h->state_at)
		return 0;
	return v->told != h->version || (!v->replayed && v->next >= v->replay_end);
}

static void
send_state(struct viewer *v)
{
	int first = v->told == 0;

	v->told = v->hub->version;
	v->replayed |= !first && v->next >= v->replay_end;
	if (!is_text(v))
		send_blob(v, hub_state_frame(v->hub, v->ops->format));
}

/* The lines of one entry, of which the viewer may have had the first ones. */
static void
send_entry(struct viewer *v)
{
	const struct tail_entry *e = tail_at(channel_of(v)->tail, v->index);

	if (e->blob == NULL && is_text(v)) {
		v->place = VIEWER_AWAY;
		v->ops->behind(v);
		return;
	}
	v->index++;
	if (e->next <= v->next)
		return;
	if (e->blob != NULL)
		send_blob(v, e->blob);
	else
		send_gap(v, max_i64(v->next, e->first), e->next);
	v->next = e->next;
}

static int
is_at_tail_end(const struct viewer *v)
{
	return v->place == VIEWER_TAIL && v->index == tail_end(channel_of(v)->tail);
}

static int
is_over(const struct viewer *v)
{
	const struct hub *h = v->hub;

	if (h->gone)
		return v->told == h->version;
	return h->ended && is_at_tail_end(v) && v->told == h->version &&
	    (v->replayed || is_text(v)) && v->next >= h->state_at;
}

/* 1: something was sent, there may be more. */
static int
send_next(struct viewer *v)
{
	const struct hub *h = v->hub;

	if (v->dead || h->version == 0)
		return 0;
	if (state_is_due(v)) {
		send_state(v);
		return 1;
	}
	if (!h->gone && v->place == VIEWER_TAIL && !is_at_tail_end(v)) {
		send_entry(v);
		return 1;
	}
	if (is_over(v))
		viewer_end(v, VIEWER_RUN_FINISHED);
	return 0;
}

static void
want_room(struct viewer *v)
{
	if (v->wanting)
		return;
	v->wanting = 1;
	v->ops->want(v, ROOM_LOW_BYTES);
}

void
viewer_fill(struct viewer *v)
{
	/* A transport that is told to read elsewhere may find that it cannot, and leave. */
	while (v->hub != NULL && v->ops->unsent(v) < VIEWER_UNSENT_BYTES && send_next(v))
		;
	if (v->hub == NULL || v->dead)
		return;
	if (is_at_tail_end(v) && v->next >= v->replay_end)
		v->caught_up = 1;
	if (v->ops->unsent(v) >= VIEWER_UNSENT_BYTES) {
		want_room(v);
		if (v->caught_up && viewer_backlog(v) > VIEWER_BEHIND_BYTES)
			hub_on_lag(v->hub);
	} else if (v->place == VIEWER_BEHIND && v->hub->version != 0) {
		if (v->ops->unsent(v) > ROOM_LOW_BYTES)
			want_room(v);
		else if (replay_join(v) < 0)
			viewer_end(v, VIEWER_INTERNAL_ERROR);
	}
}

void
viewer_on_room(struct viewer *v)
{
	v->wanting = 0;
	if (v->hub == NULL)
		return;
	viewer_fill(v);
	if (v->hub != NULL)
		hub_on_progress(v->hub);
}

/* ---- its place ---- */

/* Puts it at v->next. */
static void
find_place(struct viewer *v)
{
	const struct tail *t = channel_of(v)->tail;

	if (v->next != 0 && v->next >= tail_first_seq(t)) {
		v->place = VIEWER_TAIL;
		v->index = tail_find(t, v->next);
	} else if (is_text(v)) {
		v->place = VIEWER_AWAY;
		v->ops->behind(v);
	} else {
		v->place = VIEWER_BEHIND;
	}
}

void
viewer_anchor(struct viewer *v)
{
	const struct hub *h = v->hub;
	const struct channel *c = channel_of(v);

	v->replay_end = max_i64(h->end_seq, h->next);
	v->next = min_i64(v->from, v->replay_end);
	if (v->from == 0 && c->from_start && tail_is_whole(c->tail) && !is_text(v))
		v->next = tail_first_seq(c->tail);
	find_place(v);
}

int
viewer_move(struct viewer *v, int64_t seq)
{
	const struct tail *t = channel_of(v)->tail;

	/* Without a tail there is no log yet, and its beginning will tell. */
	if (t == NULL || seq < tail_first_seq(t))
		return E_NOENT;
	v->next = seq;
	v->place = VIEWER_TAIL;
	v->index = tail_find(t, seq);
	v->wanting = 0;
	viewer_fill(v);
	return 0;
}

void
viewer_on_trim(struct viewer *v)
{
	if (v->place != VIEWER_TAIL || v->index >= tail_begin(channel_of(v)->tail))
		return;
	if (v->caught_up && !is_text(v)) {
		viewer_end(v, VIEWER_SLOW_CONSUMER);
		return;
	}
	find_place(v);
}

void
viewer_on_replayed(struct viewer *v)
{
	find_place(v);
	viewer_fill(v);
}

/* ---- how far behind ---- */

size_t
viewer_backlog(const struct viewer *v)
{
	if (v->place != VIEWER_TAIL)
		return SIZE_MAX;
	return v->ops->unsent(v) + tail_bytes_from(channel_of(v)->tail, v->index);
}

void
viewer_judge(struct viewer *v)
{
	struct mono_time now = clock_mono();

	if (!v->caught_up || is_text(v) || viewer_backlog(v) <= VIEWER_BEHIND_BYTES) {
		v->over_since.us = 0;
		return;
	}
	if (v->over_since.us == 0)
		v->over_since = now;
	if (mono_diff_ms(v->over_since, now) < VIEWER_GRACE_MS)
		hub_on_lag(v->hub);
	else
		viewer_end(v, VIEWER_SLOW_CONSUMER);
}

/* ---- life ---- */

static void
on_timer(void *arg)
{
	static const struct buf hb = { .data = (uint8_t *)(uintptr_t) "{\"type\":\"hb\"}",
		.len = sizeof("{\"type\":\"hb\"}") - 1 };
	struct viewer *v = arg;
	int64_t silent = mono_diff_ms(v->last, clock_mono());

	/* One that takes nothing needs no sign of life. */
	if (silent >= SILENCE_MS && !is_text(v) && !v->dead &&
	    v->ops->unsent(v) < VIEWER_UNSENT_BYTES) {
		CLEANUP(http_blob_unrefp)
		struct http_blob *b = message_frame(v->ops->format, "hb", 0, &hb);

		send_blob(v, b);
		silent = 0;
	}
	(void)actor_timer_set(v->timer, max_i64(SILENCE_MS - silent, 1000));
}

int
viewer_join(struct viewer *v, struct ingress *in, const struct run_known *k, int64_t from)
{
	struct hub *h;

	v->timer = actor_timer_new(in->actor, on_timer, v);
	if (v->timer == NULL || actor_timer_set(v->timer, SILENCE_MS) < 0 ||
	    (h = hub_get(in, k)) == NULL) {
		v->timer = actor_timer_free(v->timer);
		return E_NOMEM;
	}
	v->last = clock_mono();
	v->hub = h;
	v->from = from;
	v->replay_end = INT64_MAX;
	hub_on_join(h, v);
	return 0;
}

void
viewer_leave(struct viewer *v)
{
	struct hub *h = v->hub;

	v->timer = actor_timer_free(v->timer);
	if (h == NULL)
		return;
	if (v->place == VIEWER_REPLAY)
		replay_leave(v);
	v->place = VIEWER_AWAY;
	v->hub = NULL;
	hub_on_leave(h, v);
}

void
viewer_end(struct viewer *v, enum viewer_end why)
{
	viewer_leave(v);
	v->ops->end(v, why);
}

static void
end_all_of(struct ingress *in, const char *user_id, enum viewer_end why)
{
	void *each;

	for (size_t at = 0; map_next(in->hubs, &at, NULL, &each);) {
		struct hub *h = each;

		for (int f = 0; f < MESSAGE_FORMATS; f++) {
			struct viewer *v = TAILQ_FIRST(&h->channels[f].viewers), *next;

			for (; v != NULL; v = next) {
				next = TAILQ_NEXT(v, entry);
				if (strcmp(v->x->user.id, user_id) == 0)
					viewer_end(v, why);
			}
		}
	}
}

void
viewers_expel(struct ingress *in, const char *user_id)
{
	end_all_of(in, user_id, VIEWER_USER_DISABLED);
}

void
viewers_ask_again(struct ingress *in, const char *user_id)
{
	end_all_of(in, user_id, VIEWER_RESTARTING);
}
