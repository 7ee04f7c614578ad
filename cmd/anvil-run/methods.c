/* What others may ask of a run (spec run 14), in both forms.  Reads are jobs of the recorder;
 * their answers are parked meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-run/phases.h"
#include "cmd/anvil-run/rows.h"
#include "gen/run_methods.h"
#include "lib/base/buf.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

struct question {
	struct job job;
	struct run_actor *r;
	struct parked *parked;
	struct arena *arena; /* Owned: what the answer points to. */
	struct buf text;     /* Owned: of run.readLog. */
	int64_t log_bytes;
	struct run_read_log_params range;
	int64_t lease_epoch;
	enum failure_code failure_code;
	char *message; /* Owned: of run.conclude. */
	union {
		struct run_get_detail_result detail;
		struct run_read_log_result log;
		struct run_conclude_result end;
	} answer;
};

static void
question_free(struct question *q)
{
	arena_free(q->arena);
	buf_done(&q->text);
	free(q->message);
	free(q);
}

static void
question_done(struct job *j, int err)
{
	struct question *q = (struct question *)j;

	if (err < 0)
		parked_error(q->parked, err, NULL);
	else
		parked_reply(q->parked, &q->answer);
	question_free(q);
}

static struct question *
question_new(struct run_actor *r, int (*work)(struct job *j, struct desk *d))
{
	struct question *q = mem_calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->job = (struct job) { .kind = JOB_READ, .work = work, .done = question_done };
	q->r = r;
	q->arena = arena_new();
	if (q->arena != NULL)
		return q;
	question_free(q);
	return NULL;
}

static int
ask(struct turn *t, struct question *q)
{
	serve_touch(q->r);
	q->parked = turn_park(t);
	if (q->parked == NULL) {
		question_free(q);
		return E_NOMEM;
	}
	recorder_post(q->r->recorder, &q->job);
	return TURN_PARKED;
}

/* ---- run.getDetail ---- */

static void
put_run(struct run_get_detail_detail *ret, const struct record_run *run)
{
	ret->run = (struct run_state) { .id = run->run_id,
		.project_id = run->project_id,
		.triggered_by_user_id = run->triggered_by_user_id,
		.trigger_type = run->trigger_type,
		.branch = run->branch,
		.commit_sha = run->commit_sha,
		.status = run->status,
		.queued_at = run->queued_at_ms,
		.has_started_at = run->started_at_ms.set,
		.started_at = run->started_at_ms.v,
		.has_finished_at = run->finished_at_ms.set,
		.finished_at = run->finished_at_ms.v,
		.has_exit_code = run->exit_code.set,
		.exit_code = run->exit_code.v,
		.has_failure_code = run->has_failure_code,
		.failure_code = run->failure_code };
	ret->has_current_step = run->current_step.set;
	ret->current_step = run->current_step.v;
	ret->error_message = run->error_message;
	ret->has_failure_code = run->has_failure_code;
	ret->failure_code = run->failure_code;
}

static int
put_lines(struct run_get_detail_detail *ret, struct arena *a, const char *run_id,
    const struct record_row *lines, size_t n)
{
	struct log_row *rows = arena_calloc(a, n + 1, sizeof(*rows));

	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		char *id = arena_alloc(a, ROWS_ID_SIZE);

		if (id == NULL)
			return E_NOMEM;
		rows[i] = rows_line(run_id, &lines[i], id);
	}
	ret->recent_logs = rows;
	ret->nrecent_logs = n;
	return 0;
}

static int
detail_work(struct job *j, struct desk *d)
{
	struct question *q = (struct question *)j;
	struct run_get_detail_detail *ret = &q->answer.detail.u.detail;
	struct record_run run = { 0 };
	struct record_step *steps = NULL;
	struct record_row *lines = NULL;
	struct record_log log = { 0 };
	size_t nsteps = 0, nlines = 0;
	int err = d->record != NULL ? 0 : E_NOENT;

	if (err == 0)
		err = record_run_get(d->record, q->arena, &run);
	if (err == 0)
		err = record_steps_get(d->record, q->arena, &steps, &nsteps);
	if (err == 0)
		err = record_log_get(d->record, &log);
	if (err == 0)
		err = record_rows_newest(
		    d->record, q->arena, (size_t)q->log_bytes, &lines, &nlines);
	if (err < 0)
		return err;
	q->answer.detail.kind = RUN_GET_DETAIL_DETAIL;
	put_run(ret, &run);
	ret->first_seq = log.first_seq;
	ret->next_seq = log.next_seq;
	ret->dropped_bytes = log.dropped_bytes;
	ret->log_bytes = log.total_bytes;
	ret->steps = rows_steps(q->arena, run.run_id, steps, nsteps);
	ret->nsteps = nsteps;
	return ret->steps == NULL ? E_NOMEM
				  : put_lines(ret, q->arena, run.run_id, lines, nlines);
}

int
run_get_detail(struct run_actor *r, struct turn *t, const struct run_get_detail_params *p,
    struct run_get_detail_result *ret)
{
	struct question *q = question_new(r, detail_work);

	(void)ret;
	if (q == NULL)
		return E_NOMEM;
	q->log_bytes = p->log_bytes;
	return ask(t, q);
}

/* ---- run.readLog ---- */

static int
log_work(struct job *j, struct desk *d)
{
	struct question *q = (struct question *)j;
	struct run_read_log_text *ret = &q->answer.log.u.text;
	struct record_text text = { 0 };
	int err = d->record != NULL ? 0 : E_NOENT;

	if (err == 0)
		err = record_text_get(
		    d->record, q->range.from_byte, (size_t)q->range.max_bytes, &q->text, &text);
	if (err < 0)
		return err;
	q->answer.log.kind = RUN_READ_LOG_TEXT;
	*ret = (struct run_read_log_text) {
		.text = { q->text.data != NULL ? (const char *)q->text.data : "", q->text.len },
		.next_byte = text.next_byte,
		.has_next_seq = text.next_seq != 0,
		.next_seq = text.next_seq,
		.complete = text.complete
	};
	return 0;
}

int
run_read_log(struct run_actor *r, struct turn *t, const struct run_read_log_params *p,
    struct run_read_log_result *ret)
{
	struct question *q = question_new(r, log_work);

	(void)ret;
	if (q == NULL)
		return E_NOMEM;
	q->range = *p;
	return ask(t, q);
}

/* ---- run.cancel and run.release ---- */

int
run_cancel(struct run_actor *r, struct turn *t, const struct run_cancel_params *p,
    struct run_cancel_result *ret)
{
	(void)t;
	if (r->serving || r->lease == NULL || strcmp(lease_id(r->lease), p->lease_id) != 0) {
		ret->kind = RUN_CANCEL_NOT_CURRENT;
		return 0;
	}
	life_cancel(r, p->requested_at);
	ret->kind = RUN_CANCEL_OK;
	ret->u.ok.status = r->ending.status != RUN_STATUS_QUEUED ? r->ending.status : r->status;
	/* What it is about to be, when the store's thread has not come to it. */
	if (r->cancel_at_ms != 0 && ret->u.ok.status < RUN_STATUS_CANCEL_REQUESTED)
		ret->u.ok.status = RUN_STATUS_CANCEL_REQUESTED;
	return 0;
}

int
run_release(struct run_actor *r, struct turn *t, const struct run_release_params *p,
    struct run_release_result *ret)
{
	(void)t;
	(void)p;
	ret->kind = !r->serving && life_release(r) ? RUN_RELEASE_RELEASING : RUN_RELEASE_KEPT;
	return 0;
}

/* ---- run.conclude ---- */

static int
put_end(struct question *q, struct desk *d)
{
	struct run_conclude_terminal *ret = &q->answer.end.u.terminal;
	struct record_run run = { 0 };
	int err = record_run_get(d->record, q->arena, &run);

	if (err < 0)
		return err;
	q->answer.end.kind = RUN_CONCLUDE_TERMINAL;
	*ret = (struct run_conclude_terminal) { .status = run.status,
		.has_started_at = run.started_at_ms.set,
		.started_at = run.started_at_ms.v,
		.finished_at = run.finished_at_ms.v,
		.has_exit_code = run.exit_code.set,
		.exit_code = run.exit_code.v,
		.has_failure_code = run.has_failure_code,
		.failure_code = run.failure_code,
		.error_message = run.error_message };
	return 0;
}

static int
conclude_work(struct job *j, struct desk *d)
{
	struct question *q = (struct question *)j;
	enum record_conclusion c = RECORD_CONCLUDED;
	int err = d->record != NULL ? 0 : E_NOENT;

	CRASH_POINT("serve_concluding");
	if (err == 0)
		err = record_conclude(d->record, q->lease_epoch, q->failure_code, q->message,
		    clock_wall_ms(), &c);
	CRASH_POINT("serve_concluded");
	if (err < 0)
		return err;
	if (c == RECORD_CONCLUDED) {
		(void)record_reserve_drop(d->dir);
		return put_end(q, d);
	}
	q->answer.end.kind = RUN_CONCLUDE_NEWER_EPOCH;
	return 0;
}

static void
conclude_done(struct job *j, int err)
{
	struct run_actor *r = ((struct question *)j)->r;

	question_done(j, err);
	if (err == 0)
		subscribers_stored(r->subscribers, JOB_STATE);
}

int
run_conclude(struct run_actor *r, struct turn *t, const struct run_conclude_params *p,
    struct run_conclude_result *ret)
{
	struct question *q;

	if (!r->serving) {
		ret->kind = RUN_CONCLUDE_LIVE;
		return 0;
	}
	q = question_new(r, conclude_work);
	if (q == NULL)
		return E_NOMEM;
	q->job.done = conclude_done;
	q->lease_epoch = p->lease_epoch;
	q->failure_code = p->failure_code;
	q->message = mem_strdup(p->message);
	if (q->message == NULL) {
		question_free(q);
		return E_NOMEM;
	}
	return ask(t, q);
}

/* ---- run.subscribe, run.ack and run.unsubscribe ---- */

int
run_subscribe(struct run_actor *r, struct turn *t, const struct run_subscribe_params *p,
    struct run_subscribe_result *ret)
{
	(void)ret;
	return subscribers_add(r->subscribers, t, p->has_from_seq ? p->from_seq : 0);
}

int
run_ack(struct run_actor *r, struct turn *t, const struct run_ack_params *p)
{
	subscribers_ack(r->subscribers, t->peer, p->subscription, p->seq);
	return 0;
}

int
run_unsubscribe(struct run_actor *r, struct turn *t, const struct run_unsubscribe_params *p,
    struct run_unsubscribe_result *ret)
{
	subscribers_remove(r->subscribers, t->peer, p->subscription);
	ret->kind = RUN_UNSUBSCRIBE_OK;
	return 0;
}
