/* The form --serve: answers for a run that has ended, and leaves when nobody asks any more
 * (spec run 15).  It has no key, no network, and changes nothing but by run.conclude. */
#include <stdlib.h>

#include "cmd/anvil-run/phases.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#define IDLE_MS 60000

static void
on_idle(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	/* The end of the last subscription begins the time anew. */
	if (subscribers_count(r->subscribers) == 0)
		actor_drain(r->actor);
}

void
serve_touch(struct run_actor *r)
{
	if (r->idle != NULL)
		(void)actor_timer_set(r->idle, IDLE_MS);
}

/* ---- the store ---- */

struct opening {
	struct job job;
	struct run_actor *r;
};

/* Questions that come before it is open wait behind it.  A store that is not there is not
 * made: there is nothing to serve, and conclude says so. */
static int
open_work(struct job *j, struct desk *d)
{
	(void)j;
	return record_exists(d->dir) ? desk_open(d) : 0;
}

static void
open_done(struct job *j, int err)
{
	struct opening *o = (struct opening *)j;
	struct run_actor *r = o->r;

	free(o);
	CRASH_POINT("serve_opened");
	if (err < 0 && err != E_CANCELED)
		actor_stop(r->actor, EXIT_INTERNAL);
}

void
serve_begin(struct run_actor *r)
{
	struct opening *o = mem_calloc(1, sizeof(*o));

	r->idle = actor_timer_new(r->actor, on_idle, r);
	if (o == NULL || r->idle == NULL) {
		free(o);
		actor_stop(r->actor, EXIT_INTERNAL);
		return;
	}
	serve_touch(r);
	o->job = (struct job) { .kind = JOB_READ, .work = open_work, .done = open_done };
	o->r = r;
	recorder_post(r->recorder, &o->job);
}
