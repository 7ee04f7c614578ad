#include "lib/actor/timer.h"

#include <stdlib.h>

#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

struct actor_timer {
	uint32_t magic;
#define ACTOR_TIMER_MAGIC 0x71a3e25d
	struct event ev;
	void (*fn)(void *arg);
	void *arg;
};

struct actor_watch {
	uint32_t magic;
#define ACTOR_WATCH_MAGIC 0x58b10c9f
	struct event ev;
	void (*fn)(void *arg, int fd, enum watch_what what);
	void *arg;
};

static void
timer_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct actor_timer *t = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(t, ACTOR_TIMER_MAGIC);
	t->fn(t->arg);
}

struct actor_timer *
actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg)
{
	struct actor_timer *t = mem_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->magic = ACTOR_TIMER_MAGIC;
	t->fn = fn;
	t->arg = arg;
	evtimer_assign(&t->ev, a->base, timer_on_event, t);
	return t;
}

struct actor_timer *
actor_timer_free(struct actor_timer *t)
{
	if (t == NULL)
		return NULL;
	OBJ_CHECK(t, ACTOR_TIMER_MAGIC);
	(void)event_del(&t->ev);
	t->magic = 0;
	free(t);
	return NULL;
}

int
actor_timer_set(struct actor_timer *t, int64_t ms)
{
	struct timeval tv = { .tv_sec = (time_t)(max_i64(ms, 0) / 1000),
		.tv_usec = (suseconds_t)(max_i64(ms, 0) % 1000 * 1000) };

	OBJ_CHECK(t, ACTOR_TIMER_MAGIC);
	return evtimer_add(&t->ev, &tv) < 0 ? E_NOMEM : 0;
}

void
actor_timer_stop(struct actor_timer *t)
{
	OBJ_CHECK(t, ACTOR_TIMER_MAGIC);
	(void)event_del(&t->ev);
}

int
actor_timer_is_set(const struct actor_timer *t)
{
	return evtimer_pending(&t->ev, NULL) != 0;
}

static void
watch_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct actor_watch *w = arg;

	OBJ_CHECK(w, ACTOR_WATCH_MAGIC);
	w->fn(w->arg, fd,
	    (enum watch_what)(
		(what & EV_READ ? WATCH_READ : 0) | (what & EV_WRITE ? WATCH_WRITE : 0)));
}

struct actor_watch *
actor_watch_new(struct actor *a, int fd, enum watch_what what,
    void (*fn)(void *arg, int fd, enum watch_what what), void *arg)
{
	struct actor_watch *w = mem_calloc(1, sizeof(*w));
	short events = (short)(EV_PERSIST | ((what & WATCH_READ) != 0 ? EV_READ : 0) |
	    ((what & WATCH_WRITE) != 0 ? EV_WRITE : 0));

	if (w == NULL)
		return NULL;
	w->magic = ACTOR_WATCH_MAGIC;
	w->fn = fn;
	w->arg = arg;
	event_assign(&w->ev, a->base, fd, events, watch_on_event, w);
	if (event_add(&w->ev, NULL) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

struct actor_watch *
actor_watch_free(struct actor_watch *w)
{
	if (w == NULL)
		return NULL;
	OBJ_CHECK(w, ACTOR_WATCH_MAGIC);
	(void)event_del(&w->ev);
	w->magic = 0;
	free(w);
	return NULL;
}

void
actor_watch_pause(struct actor_watch *w)
{
	OBJ_CHECK(w, ACTOR_WATCH_MAGIC);
	(void)event_del(&w->ev);
}

int
actor_watch_resume(struct actor_watch *w)
{
	OBJ_CHECK(w, ACTOR_WATCH_MAGIC);
	return event_add(&w->ev, NULL) < 0 ? E_NOMEM : 0;
}
