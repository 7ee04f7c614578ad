/* TERM, grace, KILL of a step (spec run 11, 12). */
#include <signal.h>

#include "cmd/anvil-run/journal.h"
#include "cmd/anvil-run/phases.h"
#include "lib/base/log.h"

#define TIMEOUT_GRACE_MS    10000
#define END_GRACE_MS        5000
#define CANCEL_GRACE_MS     30000 /* From the request. */
#define CANCEL_GRACE_MIN_MS 2000  /* From TERM. */
#define SURVIVE_MS          5000  /* From KILL: what is left then is not going to end. */

static int64_t
grace_ms(const struct run_actor *r, enum stop_why why)
{
	int64_t left = r->cancel_at_ms + CANCEL_GRACE_MS - clock_wall_ms();

	switch (why) {
	case STOP_CANCEL: return min_i64(max_i64(left, CANCEL_GRACE_MIN_MS), CANCEL_GRACE_MS);
	case STOP_TIMEOUT: return TIMEOUT_GRACE_MS;
	case STOP_END: return END_GRACE_MS;
	case STOP_AT_ONCE: break;
	}
	return 0;
}

static void
kill_step(struct run_actor *r)
{
	r->stop.killed = 1;
	(void)r->driver->signal(r->sandbox, SIGKILL);
	(void)actor_timer_set(r->stop.timer, SURVIVE_MS);
}

static void
on_timer(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (r->process == NULL)
		return;
	if (r->stop.killed) {
		r->unkillable = 1;
		steps_drain(r);
		return;
	}
	if (r->cancel_at_ms != 0) {
		journal_note(r, "Cancellation grace window expired. Sending SIGKILL.");
		log_event(LOG_LEVEL_WARN, "run_cancel_hard_kill", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id));
	}
	kill_step(r);
}

int
stop_init(struct run_actor *r)
{
	r->stop.timer = actor_timer_new(r->actor, on_timer, r);
	return r->stop.timer != NULL ? 0 : -1;
}

void
stop_step(struct run_actor *r, enum stop_why why)
{
	struct stop *s = &r->stop;
	struct mono_time now = clock_mono(), at = mono_add_ms(now, grace_ms(r, why));

	if (r->process == NULL || s->killed)
		return;
	if (why == STOP_AT_ONCE) {
		kill_step(r);
		return;
	}
	if (!s->termed)
		(void)r->driver->signal(r->sandbox, SIGTERM);
	else if (mono_diff_us(s->kill_at, at) >= 0)
		return;
	s->termed = 1;
	s->kill_at = at;
	(void)actor_timer_set(s->timer, max_i64(mono_diff_ms(now, at), 0));
}

void
stop_is_over(struct run_actor *r)
{
	r->stop.termed = r->stop.killed = 0;
	actor_timer_stop(r->stop.timer);
}
