#include "cmd/anvil-ingress/runlink.h"

#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#define IDLE_MS      20000
#define AGAIN_MS     50 /* to the next question to the supervisor, twice as long each time, ... */
#define AGAIN_MAX_MS 400 /* ... up to this, while somebody waits */

struct runlink {
	uint32_t magic;
#define RUNLINK_MAGIC 0x93ab10d7
	struct ingress *in;
	char run_id[ID_SIZE];
	LIST_HEAD(, runlink_want) wants;
	struct link *link;         /* The actor's; NULL while the supervisor is asked. */
	struct actor_timer *timer; /* Nobody has used it for a while, or ask again.   */
	int64_t again_ms;          /* Until it is asked the next time.                 */
	int asking;                /* The supervisor owes an answer that points here.  */
	int closed;                /* Only waits for that answer to be freed.          */
};

static void
want_done(struct runlink_want *w, enum runlink_verdict v, struct rpc_peer *peer)
{
	LIST_REMOVE(w, entry);
	w->timer = actor_timer_free(w->timer);
	w->done(w, v, peer);
}

/* Those who ask again from inside their callback find no link, and make a new one. */
static void
runlink_close(struct runlink *l, enum runlink_verdict v)
{
	if (!l->closed) {
		l->closed = 1;
		(void)map_remove(l->in->runlinks, l->run_id);
		l->timer = actor_timer_free(l->timer);
		if (l->link != NULL)
			l->link = actor_unlink(l->in->actor, l->link);
		while (!LIST_EMPTY(&l->wants))
			want_done(LIST_FIRST(&l->wants), v, NULL);
	}
	if (l->asking)
		return;
	l->magic = 0;
	free(l);
}

static void
on_up(void *arg, struct link *link, struct rpc_peer *peer)
{
	struct runlink *l = arg;

	(void)link;
	OBJ_CHECK(l, RUNLINK_MAGIC);
	(void)actor_timer_set(l->timer, IDLE_MS);
	l->again_ms = AGAIN_MS;
	/* A callback only sends; nothing closes from inside. */
	while (!LIST_EMPTY(&l->wants))
		want_done(LIST_FIRST(&l->wants), RUNLINK_UP, peer);
}

/* A run that is about to listen, or about to end, is not there for a moment, and neither is a
 * supervisor that starts again; places get free: the supervisor is asked again for those who
 * wait, until they do not any more. */
static void
ask_later(struct runlink *l)
{
	if (LIST_EMPTY(&l->wants) || actor_timer_set(l->timer, l->again_ms) < 0)
		runlink_close(l, RUNLINK_SILENT);
	else
		l->again_ms = min_i64(2 * l->again_ms, AGAIN_MAX_MS);
}

static void
on_down(void *arg, struct link *link, int err)
{
	struct runlink *l = arg;

	(void)link;
	(void)err;
	OBJ_CHECK(l, RUNLINK_MAGIC);
	l->link = actor_unlink(l->in->actor, l->link);
	ask_later(l);
}

static void
open_link(struct runlink *l)
{
	static const struct link_ops ops = { .on_up = on_up, .on_down = on_down };
	char address[ID_SIZE + 8];

	(void)snprintf(address, sizeof(address), "run/%s", l->run_id);
	l->link = actor_link(l->in->actor, address, &ops, l);
	if (l->link == NULL)
		runlink_close(l, RUNLINK_SILENT);
}

static void
on_serving(void *arg, int err, const struct supervisor_serve_run_result *res)
{
	struct runlink *l = arg;

	OBJ_CHECK(l, RUNLINK_MAGIC);
	l->asking = 0;
	if (l->closed)
		runlink_close(l, RUNLINK_SILENT);
	else if (err < 0 || res->kind == SUPERVISOR_SERVE_RUN_BUSY)
		ask_later(l);
	else if (res->kind == SUPERVISOR_SERVE_RUN_ABSENT)
		runlink_close(l, RUNLINK_ABSENT);
	else
		open_link(l);
}

static void
ask(struct runlink *l)
{
	const struct runlink_want *w = LIST_FIRST(&l->wants);
	struct supervisor_serve_run_params p = { .run_id = l->run_id };
	struct rpc_call_opts opts = { .deadline_ms = w->deadline_ms,
		.request_id = w->request_id };
	struct rpc_peer *peer = links_supervisor(l->in);

	l->asking = peer != NULL &&
	    supervisor_serve_run_call(peer, &opts, &p, on_serving, l) == 0;
	if (!l->asking)
		ask_later(l);
}

static void
on_timer(void *arg)
{
	struct runlink *l = arg;

	OBJ_CHECK(l, RUNLINK_MAGIC);
	if (l->link == NULL && !l->asking && !LIST_EMPTY(&l->wants))
		ask(l);
	else
		runlink_close(l, RUNLINK_SILENT);
}

static void
on_late(void *arg)
{
	want_done(arg, RUNLINK_SILENT, NULL);
}

static struct runlink *
runlink_new(struct ingress *in, const char *run_id)
{
	struct runlink *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->magic = RUNLINK_MAGIC;
	l->in = in;
	l->again_ms = AGAIN_MS;
	(void)snprintf(l->run_id, sizeof(l->run_id), "%s", run_id);
	l->timer = actor_timer_new(in->actor, on_timer, l);
	if (l->timer == NULL || map_set(in->runlinks, run_id, l) < 0) {
		l->timer = actor_timer_free(l->timer);
		return mem_free(l);
	}
	(void)actor_timer_set(l->timer, IDLE_MS);
	return l;
}

void
runlink_get(struct runlink_want *w)
{
	struct runlink *l = map_get(w->in->runlinks, w->run_id);
	int fresh = l == NULL;

	if (!fresh && l->link != NULL && link_peer(l->link) != NULL) {
		(void)actor_timer_set(l->timer, IDLE_MS);
		w->done(w, RUNLINK_UP, link_peer(l->link));
		return;
	}
	if (fresh)
		l = runlink_new(w->in, w->run_id);
	w->timer = l != NULL ? actor_timer_new(w->in->actor, on_late, w) : NULL;
	if (w->timer == NULL || actor_timer_set(w->timer, w->deadline_ms) < 0) {
		w->timer = actor_timer_free(w->timer);
		if (fresh && l != NULL)
			runlink_close(l, RUNLINK_SILENT);
		w->done(w, RUNLINK_SILENT, NULL);
		return;
	}
	LIST_INSERT_HEAD(&l->wants, w, entry);
	if (fresh)
		ask(l);
}

void
runlink_free_all(struct ingress *in)
{
	void *value;

	for (size_t at = 0; map_next(in->runlinks, &at, NULL, &value);) {
		runlink_close(value, RUNLINK_SILENT);
		at = 0;
	}
}
