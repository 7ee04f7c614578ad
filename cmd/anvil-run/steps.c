/* Row 12 of spec run 4: the steps, one after the other. */
#include <stdio.h>

#include "cmd/anvil-run/journal.h"
#include "cmd/anvil-run/phases.h"
#include "cmd/anvil-run/stepenv.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"

#define WAIT_AGAIN_MS 10  /* For leftovers that take their time. */
#define TEND_MS       200 /* For those that end before the step. */

static const struct pipeline_step *
step_of(const struct run_actor *r)
{
	return &r->pipeline->steps[r->step - 1];
}

/* ---- the end of one ---- */

static void
step_is_stored(struct run_actor *r)
{
	CRASH_POINT("run_step_stored");
	if (r->life != LIFE_STEPS || life_diverted(r))
		return;
	if (r->step == r->pipeline->nsteps) {
		finish(r);
		return;
	}
	r->step++;
	steps_start(r);
}

static void
note_leftovers(struct run_actor *r)
{
	char line[1024];

	if (r->result.nleft == 0)
		return;
	log_event(LOG_LEVEL_INFO, "step_leftovers_killed", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_INT("position", r->step),
	    LOG_INT("count", r->result.nleft));
	step_left_line(&r->result, step_of(r)->name, line, sizeof(line));
	journal_note(r, "%s", line);
}

/* All of its output is stored or on its way.  A step that was told to end is left `running`:
 * finalisation ends it together with the run. */
static void
on_drained(void *arg)
{
	struct run_actor *r = arg;
	CLEANUP(step_end_done) struct step_end end = { .passed = 0 };

	OBJ_CHECK(r, RUN_MAGIC);
	r->draining = 0;
	if (r->unkillable) {
		finish(r);
		return;
	}
	CRASH_POINT("run_step_drained");
	note_leftovers(r);
	step_end_judge(&r->result, step_of(r)->name, r->pipeline->working_directory,
	    r->config->runs_step_memory_bytes, &end);
	r->last_exit = end.exit;
	log_event(LOG_LEVEL_INFO, "step_finished", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_INT("position", r->step),
	    LOG_INT("exitCode", end.exit.code.v), LOG_INT("signal", end.exit.signal),
	    LOG_INT("durationMs", mono_diff_ms(r->step_at, clock_mono())));
	if (r->life != LIFE_STEPS) {
		finish(r);
		return;
	}
	if (life_diverted(r))
		return;
	journal_end_step(r, end.passed, end.passed ? step_is_stored : NULL);
	if (!end.passed)
		life_fail(r, end.code, end.exit.code.v, "%s",
		    end.message != NULL ? end.message : "out of memory");
	else if (r->step < r->pipeline->nsteps)
		r->driver->prepare(r->sandbox);
}

void
steps_drain(struct run_actor *r)
{
	r->draining = 1;
	output_drain(r->output, on_drained, r);
}

static void
look(struct run_actor *r)
{
	int err = r->driver->wait(r->sandbox, r->process, &r->result);

	r->step_ended = 1;
	if (err == E_BUSY) {
		actor_watch_pause(r->process_watch);
		(void)actor_timer_set(r->process_timer, WAIT_AGAIN_MS);
		return;
	}
	r->process = NULL;
	r->process_watch = actor_watch_free(r->process_watch);
	actor_timer_stop(r->process_timer);
	stop_is_over(r);
	steps_drain(r);
}

static void
on_process(void *arg, int fd, enum watch_what what)
{
	struct run_actor *r = arg;

	(void)fd;
	(void)what;
	OBJ_CHECK(r, RUN_MAGIC);
	look(r);
}

static void
on_again(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (r->process == NULL)
		return;
	if (r->step_ended) {
		look(r);
		return;
	}
	r->driver->tend(r->sandbox);
	(void)actor_timer_set(r->process_timer, TEND_MS);
}

/* ---- the beginning of one ---- */

static int
open_pipes(struct run_actor *r, int *out_fd, int *err_fd)
{
	int err = output_open(r->output, LOG_STREAM_STDOUT, (int64_t)r->step, out_fd);

	if (err == 0)
		err = output_open(r->output, LOG_STREAM_STDERR, (int64_t)r->step, err_fd);
	return err;
}

/* 0; E_NOENT: no such directory; else r->result.problem says why. */
static int
spawn(struct run_actor *r, int out_fd, int err_fd)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct stepenv e = { .claim = &r->claim,
		.commit_sha = r->sha,
		.name = step_of(r)->name,
		.position = r->step,
		.home = r->driver->home_at != NULL ? r->driver->home_at : r->place.home,
		.tmp = r->driver->tmp_at != NULL ? r->driver->tmp_at : r->place.tmp };
	const char *argv[SANDBOX_SHELL_ARGS], *env[STEPENV_MAX];
	struct sandbox_problem *problem = &r->result.problem;
	struct sandbox_step step = { argv, env, r->pipeline->working_directory, out_fd,
		err_fd };
	int err = a != NULL ? stepenv_make(a, &e, env) : E_NOMEM;

	if (err < 0) {
		(void)snprintf(problem->reason, sizeof(problem->reason), "out of memory");
		return err;
	}
	if (sandbox_shell_argv(step_of(r)->command, argv) < 0) {
		(void)snprintf(problem->reason, sizeof(problem->reason),
		    "there is neither bash nor sh on this host");
		(void)snprintf(problem->remedy, sizeof(problem->remedy), "Install bash.");
		return E_SANDBOX;
	}
	return r->driver->spawn(r->sandbox, &step, &r->process, problem);
}

/* Its end is not noticed without these; then there is nothing for it but to stop. */
static int
watch(struct run_actor *r)
{
	if (r->process_timer == NULL)
		r->process_timer = actor_timer_new(r->actor, on_again, r);
	r->process_watch = actor_watch_new(
	    r->actor, sandbox_process_fd(r->process), WATCH_READ, on_process, r);
	if (r->process_timer == NULL || r->process_watch == NULL)
		return E_NOMEM;
	r->step_ended = 0;
	return r->driver->tend == NULL ? 0 : actor_timer_set(r->process_timer, TEND_MS);
}

void
steps_start(struct run_actor *r)
{
	CLEANUP(io_closep) int out_fd = -1;
	CLEANUP(io_closep) int err_fd = -1;
	int err;

	r->result = (struct sandbox_result) { .end = SANDBOX_BROKEN };
	r->step_at = clock_mono();
	journal_note(r, "Step %zu/%zu: %s", r->step, r->pipeline->nsteps, step_of(r)->name);
	log_event(LOG_LEVEL_INFO, "step_started", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_INT("position", r->step));
	CRASH_POINT("run_before_step");
	err = open_pipes(r, &out_fd, &err_fd);
	if (err < 0)
		(void)snprintf(r->result.problem.reason, sizeof(r->result.problem.reason),
		    "no pipes for the step: %s", err_text(err));
	else
		err = spawn(r, out_fd, err_fd);
	CRASH_POINT("run_step_spawned");
	if (err == E_NOENT)
		r->result.end = SANDBOX_NO_DIRECTORY;
	if (err < 0) {
		/* The pipes end with our ends of them. */
		steps_drain(r);
		return;
	}
	if (watch(r) < 0)
		finish_exit(r, EXIT_INTERNAL);
}
