#include "cmd/anvil-ingress/merge.h"

#include <string.h>
#include <strings.h>

#include "cmd/anvil-ingress/rows.h"

int
merge_is_terminal(enum run_status s)
{
	return s == RUN_STATUS_PASSED || s == RUN_STATUS_FAILED || s == RUN_STATUS_CANCELED;
}

const struct run_row *
merge_newer(const struct run_row *a, const struct run_row *b)
{
	int a_ended = merge_is_terminal(a->status), b_ended = merge_is_terminal(b->status);

	if (a_ended != b_ended)
		return a_ended ? a : b;
	return b->rev > a->rev ? b : a;
}

/* Within the life of a run statuses only go this way; all ends are alike. */
static int
rank(enum run_status s)
{
	return merge_is_terminal(s) ? (int)RUN_STATUS_PASSED : (int)s;
}

/* The full name of a commit over its beginning. */
static const char *
longer_commit(const char *truth, const char *store)
{
	if (truth == NULL)
		return store;
	if (store != NULL && strncasecmp(truth, store, strlen(truth)) == 0)
		return store;
	return truth;
}

static void
take_store_state(struct http_run_summary *run, const struct run_state *s)
{
	run->status = s->status;
	if (s->has_started_at) {
		run->has_started_at = 1;
		run->started_at = s->started_at;
	}
	run->has_finished_at = s->has_finished_at;
	run->finished_at = s->finished_at;
	run->has_exit_code = s->has_exit_code;
	run->exit_code = s->exit_code;
	run->has_failure_code = s->has_failure_code;
	run->failure_code = s->failure_code;
}

/* A run that ledger or index call queued has been given back; one that they call ended may have
 * a store that nobody could reach.  In between, the further one is the newer one. */
static int
store_is_newer(const struct run_row *truth, const struct run_state *s)
{
	if (truth->status == RUN_STATUS_QUEUED || merge_is_terminal(truth->status))
		return 0;
	return rank(s->status) >= rank(truth->status);
}

static void
take_lists(struct http_run_detail *ret, const struct run_get_detail_detail *d,
    struct http_run_step *steps, struct http_log_event *events)
{
	for (size_t i = 0; i < d->nsteps; i++)
		steps[i] = rows_step(&d->steps[i]);
	for (size_t i = 0; i < d->nrecent_logs; i++)
		events[i] = rows_line(&d->recent_logs[i]);
	ret->steps = steps;
	ret->nsteps = d->nsteps;
	ret->recent_logs = events;
	ret->nrecent_logs = d->nrecent_logs;
}

static void
set_sizes(struct http_run_detail *ret, int64_t first_seq, int64_t dropped, int64_t bytes)
{
	ret->has_first_seq = ret->has_dropped_bytes = ret->has_log_bytes = 1;
	ret->first_seq = first_seq;
	ret->dropped_bytes = dropped;
	ret->log_bytes = bytes;
	ret->detail_available = 1;
}

static void
take_detail(struct http_run_detail *ret, const struct run_row *truth,
    const struct run_get_detail_detail *d, struct http_run_step *steps,
    struct http_log_event *events)
{
	if (store_is_newer(truth, &d->run))
		take_store_state(&ret->run, &d->run);
	else if (!ret->run.has_started_at && truth->status != RUN_STATUS_QUEUED &&
	    !merge_is_terminal(truth->status)) {
		ret->run.has_started_at = d->run.has_started_at;
		ret->run.started_at = d->run.started_at;
	}
	ret->run.commit_sha = longer_commit(truth->commit_sha, d->run.commit_sha);
	if (d->error_message != NULL && ret->run.status != RUN_STATUS_QUEUED)
		ret->error_message = d->error_message;
	ret->has_current_step = d->has_current_step && ret->run.status != RUN_STATUS_QUEUED &&
	    !merge_is_terminal(ret->run.status);
	ret->current_step = d->current_step;
	take_lists(ret, d, steps, events);
	set_sizes(ret, d->first_seq, d->dropped_bytes, d->log_bytes);
}

struct http_run_detail
merge_detail(const struct run_row *truth, enum runlink_verdict store,
    const struct run_get_detail_detail *detail, struct http_run_step *steps,
    struct http_log_event *events)
{
	struct http_run_detail ret = { .run = rows_summary(truth),
		.error_message = truth->error_message };
	/* Waiting in its queue, a run has no process and needs none. */
	int waits = truth->status == RUN_STATUS_QUEUED && truth->has_position;

	if (detail != NULL)
		take_detail(&ret, truth, detail, steps, events);
	else if ((store == RUNLINK_ABSENT && !truth->has_started_at) || waits)
		set_sizes(&ret, 1, 0, 0);
	ret.has_failure_code = ret.run.has_failure_code;
	ret.failure_code = ret.run.failure_code;
	return ret;
}
