/* lib/actor/drain.c -- the way out: no new turns, what is owed goes out, then the end. */
#include "lib/actor/inside.h"
#include "lib/actor/worker.h"
#include "lib/base/err.h"

#define LOOK_MS 10

static size_t
owed_by(const struct rpc_peer *p)
{
	struct rpc_peer_stats stats;

	if (p == NULL)
		return 0;
	rpc_peer_stats(p, &stats);
	return stats.calls_in + (stats.queued_bytes != 0);
}

/* Answers that others wait for, on all connections. */
static size_t
owed(const struct actor *a)
{
	const struct out_link *o;
	const struct conn *c;
	size_t n = 0;

	LIST_FOREACH (c, &a->conns, entry)
		if (rpc_peer_is_open(c->peer))
			n += owed_by(c->peer);
	LIST_FOREACH (o, &a->links, entry)
		n += owed_by(link_peer(o->link));
	return n;
}

static void
look_again(struct actor *a)
{
	static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };

	if (evtimer_add(&a->ev_drain, &soon) < 0)
		actor_stop(a, 0);
}

static void
drain_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct actor *a = arg;
	int late;

	(void)fd;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	late = mono_diff_us(a->drain_until, clock_mono()) >= 0;
	if (late || (a->owner_done && !a->writing && actor_nwork(a) == 0 && owed(a) == 0))
		actor_stop(a, 0);
	else
		look_again(a);
}

void
drain_init(struct actor *a)
{
	evtimer_assign(&a->ev_drain, a->base, drain_on_timer, a);
}

void
actor_drain(struct actor *a)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->draining || a->ended)
		return;
	a->draining = 1;
	a->drain_until = mono_add_ms(clock_mono(), ACTOR_DRAIN_MS);
	listener_pause(a->listener);
	backup_stop(a);
	if (a->desc->on_drain != NULL)
		a->desc->on_drain(a->ctx);
	else
		a->owner_done = 1;
	/* From the loop: the round that asked for it is served to its end. */
	event_active(&a->ev_drain, EV_TIMEOUT, 0);
}

void
actor_drained(struct actor *a)
{
	a->owner_done = 1;
}

int
actor_is_draining(const struct actor *a)
{
	return a->draining;
}
