/* Rows 6 to 11 of spec run 4, and the control points between all rows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/anvil-run/journal.h"
#include "cmd/anvil-run/phases.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

/* ---- control ---- */

static void
set_failure(struct run_actor *r, enum failure_code code, int64_t exit_code, char *message)
{
	if (r->failure.set || r->ending_posted) {
		free(message);
		return;
	}
	r->failure = (struct failure) { 1, code, exit_code, message };
}

void
life_fail(struct run_actor *r, enum failure_code code, int64_t exit_code, const char *fmt, ...)
{
	char *message;
	va_list ap;

	/* Whole: the store redacts it, and cuts it then. */
	va_start(ap, fmt);
	message = mem_vformat(fmt, ap);
	va_end(ap);
	set_failure(r, code, exit_code, message);
	finish(r);
}

void
life_fail_internal(struct run_actor *r, const char *what, int err)
{
	char event[ID_DIGITS + 1];

	id_request(event);
	log_event(LOG_LEVEL_ERROR, "internal_unexpected", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("what", what),
	    LOG_STR("errorCode", err_symbol(err)), LOG_STR("eventId", event));
	life_fail(r, FAILURE_CODE_INTERNAL_UNEXPECTED, 1, "Internal error: %s: %s (event %s)",
	    what, err_text(err), event);
}

static void
time_is_up(struct run_actor *r)
{
	if (r->life >= LIFE_RELEASE || r->failure.set || r->cancel_at_ms != 0)
		return;
	log_event(LOG_LEVEL_WARN, "run_timeout", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_INT("timeoutSeconds", r->timeout_s));
	journal_note(r, "Run exceeded its timeout of %lld s.", (long long)r->timeout_s);
	stop_step(r, STOP_TIMEOUT);
	life_fail(r, FAILURE_CODE_RUN_TIMEOUT, 1, "Run exceeded its timeout of %lld s.",
	    (long long)r->timeout_s);
}

static void
on_deadline(void *arg)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	time_is_up(r);
}

static int
is_late(const struct run_actor *r)
{
	struct mono_time until = mono_add_ms(r->checkout_at, r->timeout_s * 1000);

	return r->timeout_s != 0 && mono_diff_us(until, clock_mono()) >= 0;
}

/* The clock runs from the start of the checkout; a timeout that is known later counts from
 * there as well. */
static int
set_deadline(struct run_actor *r, int64_t timeout_s)
{
	int64_t gone = mono_diff_ms(r->checkout_at, clock_mono());

	r->timeout_s = timeout_s;
	if (r->deadline == NULL)
		r->deadline = actor_timer_new(r->actor, on_deadline, r);
	if (r->deadline == NULL)
		return E_NOMEM;
	return actor_timer_set(r->deadline, max_i64(timeout_s * 1000 - gone, 0));
}

/* The store, then the processes, then the store again. */
void
life_tell_of_cancel(struct run_actor *r)
{
	if (r->cancel_told || r->cancel_at_ms == 0)
		return;
	r->cancel_told = 1;
	journal_cancel_requested(r);
	if (!r->last_asked) /* Else the log is complete. */
		journal_note(r, "Cancellation requested. Sending SIGTERM.");
	stop_step(r, STOP_CANCEL);
	if (r->git != NULL)
		git_stop(r->git, 0);
	CRASH_POINT("run_told_to_end");
	journal_canceling(r);
}

int
life_diverted(struct run_actor *r)
{
	if (r->life >= LIFE_RELEASE)
		return 1;
	if (!r->lost && r->cancel_at_ms != 0)
		life_tell_of_cancel(r);
	else if (!r->lost && !r->failure.set && is_late(r))
		time_is_up(r);
	if (!r->lost && r->cancel_at_ms == 0 && !r->failure.set)
		return 0;
	finish(r);
	return 1;
}

void
life_cancel(struct run_actor *r, int64_t requested_at_ms)
{
	OBJ_CHECK(r, RUN_MAGIC);
	if (r->cancel_at_ms != 0 || r->lost || r->ending_posted || r->life >= LIFE_SETTLE)
		return;
	CRASH_POINT("run_cancel_seen");
	r->cancel_at_ms = requested_at_ms;
	log_event(LOG_LEVEL_INFO, "run_cancel_seen", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id));
	/* Before there is a store nobody can be told; a release in flight is refused. */
	if (r->life <= LIFE_STORE || r->life == LIFE_RELEASE)
		return;
	life_tell_of_cancel(r);
	finish(r);
}

void
life_lose(struct run_actor *r, const char *reason)
{
	OBJ_CHECK(r, RUN_MAGIC);
	if (r->lost || r->ending_posted || r->life >= LIFE_SETTLE)
		return;
	r->lost = 1;
	(void)snprintf(r->lost_reason, sizeof(r->lost_reason), "%s", reason);
	log_event(LOG_LEVEL_ERROR, "lease_lost", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("reason", reason));
	lease_be_silent(r->lease);
	lease_forget(r->lease);
	stop_step(r, STOP_AT_ONCE);
	if (r->git != NULL)
		git_stop(r->git, 1);
	if (r->life < LIFE_FINISH)
		r->life = LIFE_FINISH;
	finish(r);
}

int
life_release(struct run_actor *r)
{
	OBJ_CHECK(r, RUN_MAGIC);
	if (r->life == LIFE_RELEASE)
		return 1;
	if (r->life >= LIFE_BEGIN || r->lost || r->failure.set || r->cancel_at_ms != 0)
		return 0;
	r->releasing = 1;
	/* A claim whose answer is on its way is given back when it comes. */
	if (r->life == LIFE_CLAIM)
		return 1;
	r->life = LIFE_RELEASE;
	lease_forget(r->lease);
	finish(r);
	return 1;
}

/* ---- what is redacted here, since it is cut before the store sees it ---- */

/* A ytree_clean_fn.  Before the claim is answered there is no secret, and no redactor. */
static int
clean(const void *redactor, const char *p, size_t n, struct buf *out)
{
	return redactor != NULL ? redact_text(redactor, p, n, out) : buf_add(out, p, n);
}

/* ---- rows 10 and 11: running ---- */

static void
start(struct run_actor *r)
{
	if (r->life != LIFE_BEGIN || !r->begun || !git_is_gone(r->git))
		return;
	r->life = LIFE_STEPS;
	if (life_diverted(r))
		return;
	if (r->pipeline->nsteps == 0) {
		finish(r);
		return;
	}
	r->step = 1;
	steps_start(r);
}

static void
has_begun(struct run_actor *r)
{
	CRASH_POINT("run_running");
	r->begun = 1;
	start(r);
}

/* ---- rows 8 and 9: config and workspace ---- */

static struct pipeline_terms
terms_of(const struct run_actor *r)
{
	return (struct pipeline_terms) { r->config->runs_max_timeout_seconds,
		{ clean, r->redactor } };
}

static void
refuse_config(struct run_actor *r, const struct pipeline_report *report)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	enum failure_code code = FAILURE_CODE_CONFIG_INVALID;
	size_t nlines;

	if (report == NULL) {
		life_fail_internal(r, "config", E_NOMEM);
		return;
	}
	nlines = pipeline_report_nlines(report);
	(void)failure_code_parse(pipeline_failure_code(report), &code);
	log_event(LOG_LEVEL_INFO, "config_invalid", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("errorCode", failure_code_name(code)),
	    LOG_INT("issues", report->nissues + report->nmore));
	for (size_t i = 0; i < nlines; i++) {
		buf_reset(&text);
		if (pipeline_report_line(report, i, &text) == 0 && buf_cstr(&text) != NULL)
			journal_note(r, "%s", buf_cstr(&text));
	}
	buf_reset(&text);
	if (pipeline_report_message(report, &text) < 0 || buf_cstr(&text) == NULL)
		life_fail_internal(r, "config", E_NOMEM);
	else
		life_fail(r, code, 1, "%s", buf_cstr(&text));
}

/* A child that has gone says so itself, with how it ended. */
static void
told_git(struct run_actor *r, int err)
{
	if (err < 0 && err != E_LINK)
		life_fail_internal(r, "checkout", err);
}

static void
ask_for_workspace(struct run_actor *r)
{
	if (r->life == LIFE_WORKSPACE && r->commit_stored && !life_diverted(r))
		told_git(r, git_workspace(r->git, r->pipeline->depth));
}

static void
judge_config(struct run_actor *r, const struct checkout_message *m)
{
	const struct pipeline_terms t = terms_of(r);
	const struct pipeline_report *report = NULL;
	const char *file = r->config_path;
	int err = E_INVAL;

	if (r->life != LIFE_CONFIG || life_diverted(r))
		return;
	switch (m->config) {
	case CHECKOUT_CONFIG_FOUND:
		err = pipeline_parse(
		    r->arena, file, m->text, m->text_len, &t, &r->pipeline, &report);
		break;
	case CHECKOUT_CONFIG_TOO_BIG: report = pipeline_too_big(r->arena, file, m->size); break;
	case CHECKOUT_CONFIG_NOT_FOUND: report = pipeline_not_found(r->arena, file); break;
	case CHECKOUT_CONFIG_NOT_REGULAR: report = pipeline_not_regular(r->arena, file); break;
	}
	if (err == 0)
		err = set_deadline(r, r->pipeline->timeout_seconds);
	if (err < 0) {
		refuse_config(r, report);
		return;
	}
	r->life = LIFE_WORKSPACE;
	CRASH_POINT("run_config_read");
	ask_for_workspace(r);
}

static int
directory_is_there(const struct run_actor *r)
{
	CLEANUP(io_closep)
	int fd = sandbox_open_beneath(r->place.ws, r->pipeline->working_directory);

	return fd >= 0;
}

static void
judge_workspace(struct run_actor *r, const struct checkout_message *m)
{
	const struct pipeline_terms t = terms_of(r);

	if (r->life != LIFE_WORKSPACE || life_diverted(r))
		return;
	log_event(LOG_LEVEL_INFO, "checkout_done", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("commitSha", r->sha),
	    LOG_INT("durationMs", mono_diff_ms(r->checkout_at, clock_mono())),
	    LOG_INT("bytes", m->size));
	if (strcasecmp(m->sha, r->sha) != 0) {
		life_fail(r, FAILURE_CODE_CHECKOUT_FAILED, 1,
		    CHECKOUT_FAILED_PREFIX "HEAD is %s instead of %s", m->sha, r->sha);
		return;
	}
	if (!directory_is_there(r)) {
		refuse_config(
		    r, pipeline_no_directory(r->arena, r->config_path, r->pipeline, &t));
		return;
	}
	r->life = LIFE_BEGIN;
	CRASH_POINT("run_workspace_made");
	git_dismiss(r->git);
	journal_begin(r, has_begun);
}

/* ---- row 7: the commit ---- */

static void
commit_is_stored(struct run_actor *r)
{
	CRASH_POINT("run_commit_stored");
	r->commit_stored = 1;
	ask_for_workspace(r);
}

static void
on_recorded(void *arg, enum lease_verdict v, const char *reason)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	if (v == LEASE_LOST) {
		life_lose(r, reason);
		return;
	}
	if (r->life != LIFE_COMMIT || life_diverted(r))
		return;
	if (v == LEASE_COMMIT_CONFLICT) {
		life_fail_internal(r, "another commit is recorded for this run", E_ILLEGAL);
		return;
	}
	r->life = LIFE_CONFIG;
	CRASH_POINT("run_commit_recorded");
	journal_commit(r, commit_is_stored);
	told_git(r, git_go_on(r->git));
}

static void
record_the_commit(struct run_actor *r)
{
	if (r->life != LIFE_CHECKOUT || r->sha[0] == '\0' || life_diverted(r))
		return;
	r->life = LIFE_COMMIT;
	CRASH_POINT("run_commit_known");
	lease_record_commit(r->lease, r->sha, on_recorded, r);
	/* Likely to be needed, and slow to make: while the shard writes and git reads. */
	r->driver->prepare(r->sandbox);
}

/* ---- row 6: the checkout ---- */

static enum failure_code
code_of(enum checkout_failure failure)
{
	enum failure_code code = FAILURE_CODE_INTERNAL_UNEXPECTED;

	(void)failure_code_parse(checkout_failure_code(failure), &code);
	return code;
}

/* The reason may quote a server that was given the token. */
static const char *
make_message(struct run_actor *r, const char *text, struct buf *out)
{
	size_t max = strlen(CHECKOUT_FAILED_PREFIX) + CHECKOUT_TEXT_MAX;

	if (clean(r->redactor, text, strlen(text), out) < 0)
		return NULL;
	out->len = utf8_cut((const char *)out->data, out->len, max);
	return buf_cstr(out);
}

static void
checkout_failed(struct run_actor *r, enum failure_code code, const char *text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const char *message;

	if (r->life >= LIFE_RELEASE)
		return;
	message = make_message(r, text, &out);
	if (message == NULL) {
		life_fail_internal(r, "checkout", E_NOMEM);
		return;
	}
	log_event(LOG_LEVEL_WARN, "checkout_failed", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id), LOG_STR("errorCode", failure_code_name(code)));
	journal_note(r, "%s", message);
	life_fail(r, code, 1, "%s", message);
}

static void
on_message(void *arg, const struct checkout_message *m)
{
	struct run_actor *r = arg;

	OBJ_CHECK(r, RUN_MAGIC);
	switch (m->kind) {
	case CHECKOUT_LINE: journal_note(r, "%s", m->text); break;
	case CHECKOUT_COMMIT:
		(void)snprintf(r->sha, sizeof(r->sha), "%s", m->sha);
		record_the_commit(r);
		break;
	case CHECKOUT_CONFIG: judge_config(r, m); break;
	case CHECKOUT_DONE: judge_workspace(r, m); break;
	case CHECKOUT_FAILED: checkout_failed(r, code_of(m->failure), m->text); break;
	}
}

static void
on_gone(void *arg, const char *how)
{
	struct run_actor *r = arg;
	char message[128];

	OBJ_CHECK(r, RUN_MAGIC);
	if (r->life >= LIFE_RELEASE) {
		finish(r);
	} else if (how != NULL && r->life < LIFE_BEGIN) {
		(void)snprintf(message, sizeof(message),
		    CHECKOUT_FAILED_PREFIX "its process ended unexpectedly (%s)", how);
		checkout_failed(r, FAILURE_CODE_CHECKOUT_FAILED, message);
	} else {
		start(r);
	}
}

const struct git_ops life_git_ops = { on_message, on_gone };

void
life_checkout(struct run_actor *r)
{
	const struct config *c = r->config;
	struct checkout_request req = { .mirror = r->place.mirror,
		.lock = r->place.mirror_lock,
		.workspace = r->place.ws,
		.alternates = r->driver->objects_at,
		.url = r->repo_url,
		.branch = r->claim.branch,
		.commit = r->claim.commit_sha,
		.config = r->config_path,
		.ca_file = c->repositories_ca_file,
		.allow_http = c->repositories_allow_http,
		.allow_private_hosts = c->repositories_allow_private_hosts,
		.allow_local = c->repositories_allow_local };
	int err;

	r->checkout_at = clock_mono();
	log_event(LOG_LEVEL_INFO, "checkout_started", LOG_STR("runId", r->run_id),
	    LOG_STR("projectId", r->project_id));
	err = set_deadline(r, c->runs_max_timeout_seconds);
	if (err == 0 && r->token.len != 0 && (req.token = buf_cstr(&r->token)) == NULL)
		err = E_NOMEM;
	if (err == 0)
		err = git_request(r->git, &req);
	buf_wipe(&r->token);
	told_git(r, err);
}

void
life_has_store(struct run_actor *r)
{
	if (r->timeout_s == 0)
		life_checkout(r);
	record_the_commit(r);
}
