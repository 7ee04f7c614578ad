#include "cmd/anvil-run/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-run/phases.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct entry {
	struct job job;
	struct run_actor *r;
	journal_fn *then, *ended;
	int always; /* `then` runs whatever comes. */
	int64_t now_ms;
	/* What is to be written; texts borrowed from the run, but for `text`. */
	char *text; /* Owned. */
	int64_t step;
	int passed;
	struct record_exit how;
	struct record_outcome outcome;
	const struct redactor *redactor; /* The run's. */
	const struct place *place;
	/* What came of it. */
	int stage; /* Parts that are done, for a repeat. */
	int had_ended;
	struct ending ending;
	enum run_status status; /* Of the run afterwards; QUEUED: as before. */
};

/* ---- jobs in general ---- */

static void
entry_free(struct entry *e)
{
	free(e->ending.error_message);
	free(e->text);
	free(e);
}

static void
impossible(struct run_actor *r, int err)
{
	if (err == E_STALE)
		life_lose(r, "superseded");
	else
		life_fail_internal(r, "store", err);
}

static void
entry_done(struct job *j, int err)
{
	struct entry *e = (struct entry *)j;
	struct run_actor *r = e->r;
	journal_fn *then = e->had_ended && e->ended != NULL ? e->ended : e->then;

	OBJ_CHECK(r, RUN_MAGIC);
	if (err == E_CANCELED) {
		entry_free(e);
		return;
	}
	if (err == 0 && e->status != RUN_STATUS_QUEUED) {
		r->status = e->status;
		lease_report(r->lease, r->status, r->started_at_ms);
	}
	if (e->ending.status != RUN_STATUS_QUEUED) {
		free(r->ending.error_message);
		r->ending = e->ending;
		e->ending.error_message = NULL;
	}
	if (err < 0 && !e->always)
		impossible(r, err);
	else if (then != NULL)
		then(r);
	entry_free(e);
}

/* Without memory the run cannot even say so: the takeover will. */
static struct entry *
entry_new(struct run_actor *r, enum job_kind kind, int (*work)(struct job *j, struct desk *d),
    journal_fn *then)
{
	struct entry *e = mem_calloc(1, sizeof(*e));

	if (e == NULL) {
		finish_exit(r, EXIT_INTERNAL);
		return NULL;
	}
	e->job = (struct job) { .kind = kind, .work = work, .done = entry_done };
	e->r = r;
	e->then = then;
	e->now_ms = clock_wall_ms();
	return e;
}

static void
post(struct run_actor *r, struct entry *e)
{
	if (r->output != NULL)
		output_push(r->output);
	recorder_post(r->recorder, &e->job);
}

/* What a terminal store says. */
static int
read_ending(struct desk *d, struct ending *ret)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct record_run run;
	int err = a != NULL ? record_run_get(d->record, a, &run) : E_NOMEM;

	if (err < 0)
		return err;
	*ret = (struct ending) { .status = run.status,
		.started_at_ms = run.started_at_ms,
		.finished_at_ms = run.finished_at_ms,
		.exit_code = run.exit_code,
		.has_failure_code = run.has_failure_code,
		.failure_code = run.failure_code };
	if (run.error_message == NULL)
		return 0;
	ret->error_message = mem_strdup(run.error_message);
	if (ret->error_message != NULL)
		return 0;
	ret->status = RUN_STATUS_QUEUED;
	return E_NOMEM;
}

/* ---- claim ---- */

static int
forget_restored(const struct run_actor *r, const struct desk *d)
{
	CLEANUP_FREE char *aside = NULL;
	int forgotten = 0, err = record_forget_restored(d->dir, &forgotten, &aside);

	if (aside != NULL)
		desk_tell_set_aside(d, aside);
	if (forgotten)
		log_event(LOG_LEVEL_WARN, "restored_run_begun_anew",
		    LOG_STR("runId", r->run_id), LOG_STR("projectId", r->project_id));
	return err;
}

static int
claim_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int err;

	if (e->redactor != NULL)
		d->redactor = e->redactor;
	err = d->record == NULL ? forget_restored(e->r, d) : 0;
	if (err == 0)
		err = desk_open(d);
	if (err == 0)
		err = record_claim(d->record, &e->r->claim, e->now_ms);
	if (err == 1) {
		e->had_ended = 1;
		e->status = RUN_STATUS_QUEUED;
		return read_ending(d, &e->ending);
	}
	if (err == 0 && e->text != NULL)
		err = record_note(d->record, 0, e->text, e->now_ms);
	/* The last mebibyte is put by while there is one; without it the run goes on. */
	if (err == 0)
		(void)record_reserve_make(d->dir);
	CRASH_POINT("run_reserve_made");
	return err;
}

void
journal_claim(struct run_actor *r, const char *lines, journal_fn *then, journal_fn *ended)
{
	struct entry *e = entry_new(r, JOB_STATE, claim_work, then);

	if (e == NULL)
		return;
	e->ended = ended;
	e->text = lines != NULL ? mem_strdup(lines) : NULL;
	e->redactor = r->redactor;
	e->status = RUN_STATUS_STARTING;
	r->started_at_ms = e->now_ms;
	post(r, e);
}

static int
commit_work(struct job *j, struct desk *d)
{
	return record_set_commit(d->record, ((struct entry *)j)->r->sha);
}

void
journal_commit(struct run_actor *r, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_STATE, commit_work, then);

	if (e != NULL)
		post(r, e);
}

/* ---- steps ---- */

static int
begin_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	const struct pipeline *p = e->r->pipeline;
	struct record_plan_step steps[PIPELINE_STEPS_MAX];
	int err = 0;

	for (size_t i = 0; i < p->nsteps; i++)
		steps[i] = (struct record_plan_step) { p->steps[i].name, p->steps[i].command };
	if (e->stage == 0)
		err = record_plan(d->record, steps, p->nsteps, p->timeout_seconds);
	if (err < 0)
		return err;
	e->stage = 1;
	CRASH_POINT("run_steps_planned");
	return record_begin(d->record, clock_wall_ms());
}

void
journal_begin(struct run_actor *r, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_STATE, begin_work, then);

	if (e == NULL)
		return;
	e->status = RUN_STATUS_RUNNING;
	post(r, e);
}

static int
end_step_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int64_t next = 0;

	return record_end_step(d->record, e->step, e->passed, e->how, e->now_ms, &next);
}

void
journal_end_step(struct run_actor *r, int passed, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_STATE, end_step_work, then);

	if (e == NULL)
		return;
	e->step = (int64_t)r->step;
	e->passed = passed;
	e->how = r->last_exit;
	r->last_exit = (struct record_exit) { .signal = 0 }; /* The next step is another. */
	post(r, e);
}

/* ---- cancel ---- */

/* 1 from the store: it has ended before, so there is nothing to cancel. */
static int
request_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int err = d->record == NULL ? E_NOENT
				    : record_request_cancel(d->record, e->r->cancel_at_ms);

	e->status = err == 0 ? RUN_STATUS_CANCEL_REQUESTED : RUN_STATUS_QUEUED;
	return err < 0 ? err : 0;
}

static int
canceling_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int err = d->record == NULL ? E_NOENT : record_begin_canceling(d->record);

	e->status = err == 0 ? RUN_STATUS_CANCELING : RUN_STATUS_QUEUED;
	return err;
}

void
journal_cancel_requested(struct run_actor *r)
{
	struct entry *e = entry_new(r, JOB_STATE, request_work, NULL);

	if (e != NULL)
		post(r, e);
}

void
journal_canceling(struct run_actor *r)
{
	struct entry *e = entry_new(r, JOB_STATE, canceling_work, NULL);

	if (e != NULL)
		post(r, e);
}

/* ---- lines ---- */

static int
note_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;

	return d->record != NULL ? record_note(d->record, e->step, e->text, e->now_ms) : 0;
}

void
journal_note(struct run_actor *r, const char *fmt, ...)
{
	struct entry *e = entry_new(r, JOB_LOG, note_work, NULL);
	va_list ap;

	if (e == NULL)
		return;
	/* Whole: what is cut before it is redacted may show the better part of a secret. */
	va_start(ap, fmt);
	e->text = mem_vformat(fmt, ap);
	va_end(ap);
	e->always = 1;
	if (r->life == LIFE_STEPS || (r->life == LIFE_FINISH && !r->torn_down))
		e->step = (int64_t)r->step;
	if (e->text == NULL)
		entry_free(e);
	else
		post(r, e);
}

/* ---- the end ---- */

static int
finish_log_work(struct job *j, struct desk *d)
{
	(void)j;
	return d->record != NULL ? record_finish_log(d->record) : 0;
}

void
journal_finish_log(struct run_actor *r, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_LOG, finish_log_work, then);

	if (e == NULL)
		return;
	e->always = 1;
	post(r, e);
}

static int
finish_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int err = d->record != NULL ? 0 : E_NOENT; /* the claim could not open it */

	if (err == 0 && e->stage == 0)
		err = record_finish(d->record, &e->outcome, e->now_ms);
	if (err < 0)
		return err;
	e->stage = 1;
	CRASH_POINT("run_outcome_stored");
	(void)record_reserve_drop(d->dir);
	return read_ending(d, &e->ending);
}

static void
finish_done(struct job *j, int err)
{
	struct entry *e = (struct entry *)j;
	struct run_actor *r = e->r;

	if (err == 0 || err == E_CANCELED) {
		entry_done(j, err);
		return;
	}
	/* Nothing is settled on a store that does not say so; the takeover reads what it can. */
	log_event(LOG_LEVEL_ERROR, err == E_STALE ? "lease_lost" : "store_not_terminal",
	    LOG_STR("runId", r->run_id), LOG_STR("projectId", r->project_id),
	    LOG_STR("errorCode", err_symbol(err)));
	entry_free(e);
	finish_exit(r, err == E_STALE ? EXIT_LOST : EXIT_INTERNAL);
}

void
journal_finish(struct run_actor *r, const struct record_outcome *o, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_STATE, finish_work, then);

	if (e == NULL)
		return;
	e->job.done = finish_done;
	e->outcome = *o;
	if (o->error_message != NULL) {
		e->text = mem_strdup(o->error_message);
		e->outcome.error_message = e->text != NULL ? e->text : "out of memory";
	}
	post(r, e);
}

static int
lose_work(struct job *j, struct desk *d)
{
	struct entry *e = (struct entry *)j;
	int err = d->record != NULL ? record_lose(d->record, e->text, e->now_ms) : 0;

	if (err < 0)
		return err;
	(void)record_reserve_drop(d->dir);
	return 0;
}

void
journal_lose(struct run_actor *r, const char *message, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_STATE, lose_work, then);

	if (e == NULL)
		return;
	e->always = 1;
	e->text = mem_strdup(message);
	if (e->text == NULL) {
		entry_free(e);
		finish_exit(r, EXIT_LOST);
		return;
	}
	post(r, e);
}

static int
remove_work(struct job *j, struct desk *d)
{
	(void)d;
	return place_remove_trees(((struct entry *)j)->place);
}

static void
remove_done(struct job *j, int err)
{
	struct entry *e = (struct entry *)j;

	if (err < 0 && err != E_CANCELED)
		log_event(LOG_LEVEL_WARN, "workspace_removal_failed",
		    LOG_STR("runId", e->r->run_id), LOG_STR("projectId", e->r->project_id),
		    LOG_STR("errorCode", err_symbol(err)));
	entry_done(j, err);
}

void
journal_remove_trees(struct run_actor *r, journal_fn *then)
{
	struct entry *e = entry_new(r, JOB_LOG, remove_work, then);

	if (e == NULL)
		return;
	e->job.done = remove_done;
	e->place = &r->place;
	e->always = 1;
	post(r, e);
}
