/* Row 13 of spec run 4: everything stopped, the outcome stored, the shard told, the process
 * ended (spec run 12). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-run/journal.h"
#include "cmd/anvil-run/phases.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CLOSE_AGAIN_MS 10
#define CLOSE_MS       5000 /* For what outlives KILL. */
#define PIDS_TOLD      8
#define EXIT_READS_MS  2000 /* For answers that are being read, and for subscribers. */
#define EXIT_LOOK_MS   10

static void advance(struct run_actor *r);

/* ---- the way out ---- */

static int
is_owed_nothing(const struct run_actor *r)
{
	return recorder_njobs(r->recorder) == 0 && subscribers_are_served(r->subscribers);
}

static void
on_exit_timer(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (!is_owed_nothing(r) && mono_diff_us(clock_mono(), r->teardown_until) > 0)
		(void)actor_timer_set(r->teardown, EXIT_LOOK_MS);
	else
		actor_stop(r->actor, r->exit_status);
}

void
finish_exit(struct run_actor *r, int status)
{
	if (r->life == LIFE_OVER)
		return;
	r->life = LIFE_OVER;
	r->exit_status = status;
	if (r->lease != NULL) {
		lease_be_silent(r->lease);
		lease_forget(r->lease);
	}
	r->teardown = actor_timer_free(r->teardown);
	/* Somebody who reads just now gets the answer, and who watches the end. */
	r->teardown = actor_timer_new(r->actor, on_exit_timer, r);
	r->teardown_until = mono_add_ms(clock_mono(), EXIT_READS_MS);
	if (status > EXIT_NOT_SETTLED || r->teardown == NULL || is_owed_nothing(r) ||
	    actor_timer_set(r->teardown, 0) < 0)
		actor_stop(r->actor, status);
}

static void
exit_settled(struct run_actor *r)
{
	CRASH_POINT("run_trees_removed");
	finish_exit(r, r->exit_status);
}

/* What it left goes, then the process. */
static void
leave(struct run_actor *r, int status)
{
	r->exit_status = status;
	lease_be_silent(r->lease);
	journal_remove_trees(r, exit_settled);
}

/* ---- every process stopped ---- */

static void
tell_survivors(struct run_actor *r, const pid_t pids[PIDS_TOLD])
{
	char text[PIDS_TOLD * 12] = "";

	r->nsurvivors = 0;
	for (size_t i = 0; i < PIDS_TOLD && pids[i] != 0; i++) {
		size_t at = strlen(text);

		(void)snprintf(
		    text + at, sizeof(text) - at, "%s%d", i == 0 ? "" : " ", (int)pids[i]);
		r->nsurvivors++;
	}
	log_event(LOG_LEVEL_ERROR, "sandbox_teardown_failed", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("pids", text));
}

static void
on_teardown(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	advance(r);
}

/* 1: closed, or given up. */
static int
close_sandbox(struct run_actor *r)
{
	pid_t pids[PIDS_TOLD] = { 0 };
	int err;

	if (r->sandbox == NULL)
		return 1;
	r->process_watch = actor_watch_free(r->process_watch);
	err = r->driver->close(r->sandbox, pids, PIDS_TOLD);
	if (err == E_BUSY && r->teardown == NULL) {
		r->teardown = actor_timer_new(r->actor, on_teardown, r);
		r->teardown_until = mono_add_ms(clock_mono(), r->unkillable ? 0 : CLOSE_MS);
	}
	if (err == E_BUSY && r->teardown != NULL &&
	    mono_diff_us(clock_mono(), r->teardown_until) > 0) {
		(void)actor_timer_set(r->teardown, CLOSE_AGAIN_MS);
		return 0;
	}
	if (err == E_BUSY) {
		r->unproven = 1;
		tell_survivors(r, pids);
		r->driver->abandon(r->sandbox);
	}
	r->sandbox = NULL;
	r->process = NULL; /* It went with the sandbox. */
	return 1;
}

/* 1: nothing of the run lives any more, and its output is on its way to the store. */
static int
tear_down(struct run_actor *r)
{
	if (r->torn_down)
		return 1;
	if (r->git != NULL && !git_is_gone(r->git)) {
		git_stop(r->git, r->life == LIFE_RELEASE);
		return 0;
	}
	if (r->process != NULL && !r->unkillable) {
		if (!r->stop.termed)
			stop_step(r, STOP_END);
		return 0;
	}
	if (r->draining || !close_sandbox(r))
		return 0;
	actor_timer_stop(r->stop.timer);
	r->torn_down = 1;
	CRASH_POINT("run_torn_down");
	return 1;
}

/* ---- a release ---- */

static void
goes_to_its_end(struct run_actor *r)
{
	r->life = LIFE_FINISH;
	advance(r);
}

static void
on_released(void *arg, enum lease_verdict v, const char *reason)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	CRASH_POINT("run_release_answered");
	switch (v) {
	case LEASE_RELEASED:
		log_event(LOG_LEVEL_INFO, "run_released", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id));
		leave(r, EXIT_SETTLED);
		return;
	case LEASE_REFUSED_CANCEL:
		if (r->cancel_at_ms == 0)
			r->cancel_at_ms = clock_wall_ms();
		if (!r->store_begun) {
			claim_store_alone(r, goes_to_its_end);
			return;
		}
		r->life = LIFE_FINISH;
		break;
	default:
		r->life = LIFE_FINISH;
		r->lost = 1;
		(void)snprintf(r->lost_reason, sizeof(r->lost_reason), "%s", reason);
		log_event(LOG_LEVEL_ERROR, "lease_lost", LOG_STR("runId", r->run_id),
		    LOG_STR("projectId", r->project_id), LOG_STR("reason", reason));
		break;
	}
	advance(r);
}

static void
release(struct run_actor *r)
{
	if (r->release_asked)
		return;
	r->release_asked = 1;
	CRASH_POINT("run_releasing");
	lease_release(r->lease,
	    r->keyless ? RELEASE_REASON_KEY_VERSION : RELEASE_REASON_SHUTDOWN, on_released, r);
}

/* ---- settlement ---- */

static void
on_settled(void *arg, enum lease_verdict v, const char *reason)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	CRASH_POINT("run_settled");
	if (v == LEASE_SETTLED) {
		leave(r, EXIT_SETTLED);
		return;
	}
	log_event(LOG_LEVEL_ERROR, v == LEASE_CONFLICT ? "settlement_conflict" : "lease_lost",
	    LOG_STR("runId", r->run_id), LOG_STR("projectId", r->project_id),
	    LOG_STR("reason", reason));
	leave(r, v == LEASE_CONFLICT ? EXIT_NOT_SETTLED : EXIT_LOST);
}

static void
settle(struct run_actor *r)
{
	const struct ending *e = &r->ending;
	struct project_finalize_run_params p = { .status = e->status,
		.has_started_at = e->started_at_ms.set,
		.started_at = e->started_at_ms.v,
		.finished_at = e->finished_at_ms.v,
		.has_exit_code = e->exit_code.set,
		.exit_code = e->exit_code.v,
		.has_failure_code = e->has_failure_code,
		.failure_code = e->failure_code,
		.error_message = e->error_message };

	r->life = LIFE_SETTLE;
	CRASH_POINT("run_terminal");
	log_event(LOG_LEVEL_INFO, "run_finished", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("status", run_status_name(e->status)),
	    LOG_STR(
		"errorCode", e->has_failure_code ? failure_code_name(e->failure_code) : NULL),
	    LOG_INT("durationMs",
		e->started_at_ms.set ? e->finished_at_ms.v - e->started_at_ms.v : 0));
	if (r->unproven)
		leave(r, EXIT_NOT_SETTLED);
	else
		lease_finalize(r->lease, &p, on_settled, r);
}

/* ---- the outcome ---- */

static void
store_outcome(struct run_actor *r)
{
	struct record_outcome o = { .status = RUN_STATUS_PASSED, .last_step = r->last_exit };
	char message[128];

	if (r->cancel_at_ms != 0 && r->unproven) {
		(void)snprintf(message, sizeof(message),
		    "The run was canceled, but %zu processes could not be stopped.",
		    r->nsurvivors);
		o.status = RUN_STATUS_FAILED;
		o.failure_code = FAILURE_CODE_CANCEL_CLEANUP_FAILED;
		o.exit_code = 1;
		o.error_message = message;
	} else if (r->cancel_at_ms != 0) {
		o.status = RUN_STATUS_CANCELED;
	} else if (r->failure.set) {
		o.status = RUN_STATUS_FAILED;
		o.failure_code = r->failure.code;
		o.exit_code = r->failure.exit_code;
		o.error_message = r->failure.message != NULL ? r->failure.message
							     : "out of memory";
	}
	r->ending_posted = 1;
	journal_finish(r, &o, settle);
}

static void
log_is_finished(struct run_actor *r)
{
	CRASH_POINT("run_log_finished");
	r->log_finished = 1;
	advance(r);
}

static void
on_last_answer(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	CRASH_POINT("run_last_answered");
	r->last_answered = 1;
	advance(r);
}

/* The log and the last control point go side by side. */
static int
last_look(struct run_actor *r)
{
	if (!r->last_asked) {
		r->last_asked = 1;
		journal_finish_log(r, log_is_finished);
		lease_report_last(r->lease, on_last_answer, r);
	}
	return r->log_finished && r->last_answered;
}

static void
lose(struct run_actor *r)
{
	char message[128];

	(void)snprintf(message, sizeof(message),
	    "The lease of this run was lost (%s); its steps were stopped.", r->lost_reason);
	r->ending_posted = 1;
	CRASH_POINT("run_lost");
	r->exit_status = EXIT_LOST;
	journal_lose(r, message, NULL);
	leave(r, EXIT_LOST);
}

static void
advance(struct run_actor *r)
{
	if (r->life >= LIFE_SETTLE || !tear_down(r))
		return;
	if (r->life == LIFE_RELEASE) {
		release(r);
	} else if (r->ending.status != RUN_STATUS_QUEUED) {
		settle(r); /* It had ended in an earlier life. */
	} else if (r->ending_posted) {
		return;
	} else if (r->lost) {
		lose(r);
	} else if (last_look(r)) {
		life_tell_of_cancel(r);
		store_outcome(r);
	}
}

void
finish(struct run_actor *r)
{
	OBJ_CHECK(r, RUN_MAGIC);
	if (r->life < LIFE_FINISH && r->life != LIFE_RELEASE) {
		r->life = LIFE_FINISH;
		lease_forget(r->lease);
	}
	if (r->deadline != NULL)
		actor_timer_stop(r->deadline);
	advance(r);
}
