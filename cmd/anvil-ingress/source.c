#include "cmd/anvil-ingress/source.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmd/anvil-ingress/links.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

#define PAUSE_MS     20 /* The first one between two looks; doubles ... */
#define PAUSE_MAX_MS 1000

struct source {
	uint32_t magic;
#define SOURCE_MAGIC 0x50c4e11b
	struct ingress *in;
	const struct source_ops *ops;
	void *arg;
	char run_id[ID_SIZE];
	int wanted;
	struct link *link;         /* The actor's, who may have freed it at its end. */
	struct rpc_peer *peer;     /* A reference, while the link is up.         */
	int waiting;               /* The link is to a run that has not started. */
	int asking;                /* The supervisor owes an answer.             */
	int again;                 /* ... which is void: look once more.         */
	int closed;                /* Only waits for that answer to be freed.    */
	struct actor_timer *timer; /* Owned.  Set: the next look.                */
	int64_t pause_ms;
	struct mono_time trouble; /* Since when nobody answers; 0: it is well.  */
};

/* ---- failure ---- */

static void
look_after(struct source *s, int64_t ms)
{
	/* Without memory for it, the next change of the run looks. */
	if (s->wanted)
		(void)actor_timer_set(s->timer, ms);
}

static void
pause_a_while(struct source *s)
{
	int64_t ms = s->pause_ms;

	s->pause_ms = min_i64(2 * ms, PAUSE_MAX_MS);
	look_after(s, ms);
}

static void
in_trouble(struct source *s)
{
	struct mono_time now = clock_mono();

	if (s->trouble.us == 0)
		s->trouble = now;
	pause_a_while(s);
	if (mono_diff_ms(s->trouble, now) < SOURCE_PATIENCE_MS)
		return;
	s->trouble = now;
	s->ops->on_silent(s->arg);
}

/* ---- the connection ---- */

static void
on_up(void *arg, struct link *l, struct rpc_peer *peer)
{
	struct source *s = arg;

	(void)l;
	OBJ_CHECK(s, SOURCE_MAGIC);
	s->waiting = 0;
	s->trouble.us = 0;
	s->pause_ms = PAUSE_MS;
	s->peer = rpc_peer_ref(peer);
	s->ops->on_up(s->arg, peer);
}

static void
unlink_it(struct source *s)
{
	if (s->peer != NULL)
		s->peer = rpc_peer_unref(s->peer);
	if (s->link != NULL)
		s->link = actor_unlink(s->in->actor, s->link);
	s->waiting = 0;
}

/* A run that has not started is not there: the link goes on trying, by and by. */
static void
on_down(void *arg, struct link *l, int err)
{
	struct source *s = arg;

	(void)l;
	(void)err;
	OBJ_CHECK(s, SOURCE_MAGIC);
	if (s->waiting)
		return;
	unlink_it(s);
	s->ops->on_down(s->arg);
	if (s->wanted)
		in_trouble(s);
}

static void
open_link(struct source *s, int waiting)
{
	static const struct link_ops ops = { .on_up = on_up, .on_down = on_down };
	char address[ID_SIZE + 8];

	(void)snprintf(address, sizeof(address), "run/%s", s->run_id);
	s->waiting = waiting;
	s->link = actor_link(s->in->actor, address, &ops, s);
	if (s->link == NULL)
		in_trouble(s);
}

/* ---- the supervisor ---- */

static void
really_free(struct source *s)
{
	s->magic = 0;
	free(s);
}

static void
on_serving(void *arg, int err, const struct supervisor_serve_run_result *res)
{
	struct source *s = arg;

	OBJ_CHECK(s, SOURCE_MAGIC);
	s->asking = 0;
	if (s->closed) {
		really_free(s);
		return;
	}
	if (!s->wanted)
		return;
	if (s->again) {
		s->again = 0;
		look_after(s, 0);
	} else if (err < 0 || res->kind == SUPERVISOR_SERVE_RUN_BUSY) {
		in_trouble(s);
	} else if (res->kind == SUPERVISOR_SERVE_RUN_ABSENT) {
		s->trouble.us = 0;
		if (s->ops->on_absent(s->arg))
			pause_a_while(s);
		else
			s->wanted = 0;
	} else {
		open_link(s, 0);
	}
}

static void
ask(struct source *s)
{
	struct supervisor_serve_run_params p = { .run_id = s->run_id };
	struct rpc_call_opts opts = { .deadline_ms = CALL_OTHER_MS };
	struct rpc_peer *peer = links_supervisor(s->in);

	s->again = 0;
	s->asking = peer != NULL &&
	    supervisor_serve_run_call(peer, &opts, &p, on_serving, s) == 0;
	if (!s->asking)
		in_trouble(s);
}

/* ---- looking ---- */

static void
look(struct source *s)
{
	if (s->ops->is_queued(s->arg))
		open_link(s, 1);
	else
		ask(s);
}

static void
on_timer(void *arg)
{
	struct source *s = arg;

	OBJ_CHECK(s, SOURCE_MAGIC);
	if (s->wanted && s->link == NULL && !s->asking)
		look(s);
}

void
source_want(struct source *s)
{
	OBJ_CHECK(s, SOURCE_MAGIC);
	if (s->wanted)
		return;
	s->wanted = 1;
	s->pause_ms = PAUSE_MS;
	s->trouble.us = 0;
	if (s->link == NULL && !s->asking)
		look_after(s, 0);
}

void
source_rest(struct source *s)
{
	s->wanted = 0;
	actor_timer_stop(s->timer);
}

void
source_drop(struct source *s)
{
	unlink_it(s);
	if (s->wanted)
		in_trouble(s);
}

void
source_kick(struct source *s)
{
	OBJ_CHECK(s, SOURCE_MAGIC);
	if (!s->wanted || source_peer(s) != NULL)
		return;
	s->pause_ms = PAUSE_MS;
	if (s->asking) {
		s->again = 1;
	} else if (s->waiting || s->link == NULL) {
		unlink_it(s);
		look_after(s, 0);
	}
}

struct rpc_peer *
source_peer(const struct source *s)
{
	return s->peer != NULL && rpc_peer_is_open(s->peer) ? s->peer : NULL;
}

struct source *
source_new(struct ingress *in, const char *run_id, const struct source_ops *ops, void *arg)
{
	struct source *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->magic = SOURCE_MAGIC;
	s->in = in;
	s->ops = ops;
	s->arg = arg;
	s->pause_ms = PAUSE_MS;
	(void)snprintf(s->run_id, sizeof(s->run_id), "%s", run_id);
	s->timer = actor_timer_new(in->actor, on_timer, s);
	return s->timer != NULL ? s : mem_free(s);
}

struct source *
source_free(struct source *s)
{
	if (s == NULL)
		return NULL;
	OBJ_CHECK(s, SOURCE_MAGIC);
	s->closed = 1;
	s->timer = actor_timer_free(s->timer);
	unlink_it(s);
	if (!s->asking)
		really_free(s);
	return NULL;
}
