#include "lib/ledger/queue.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

/* ---- accept ---- */

/* The phase, and the number that the next run will have. */
static int
state_get(struct store *s, const char *project_id, int *ret_live, int64_t *ret_seq)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_GET);
	int r = stmt_bind(st, "s", project_id);

	if (r == 0)
		r = stmt_step(st);
	if (r <= 0)
		return r == 0 ? E_NOENT : r;
	*ret_live = strcmp(stmt_text(st, 0), "live") == 0;
	*ret_seq = stmt_int(st, 1);
	return 0;
}

static int
count_queued(struct store *s, const char *project_id, int64_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_COUNT_QUEUED);
	int r = stmt_bind(st, "s", project_id);

	if (r == 0)
		r = stmt_step(st);
	if (r < 0)
		return r;
	*ret_n = stmt_int(st, 0);
	return 0;
}

static int
same_text(const char *a, const char *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* A repeat names the same project and delivery, or the same user and branch. */
static int
is_repeat(const struct ledger_accept *q, const struct ledger_run *r)
{
	if (strcmp(q->project_id, r->project_id) != 0)
		return 0;
	if (q->provider != NULL || r->provider != NULL)
		return same_text(q->provider, r->provider) &&
		    same_text(q->delivery_id, r->delivery_id);
	return same_text(q->user_id, r->triggered_by_user_id) &&
	    (q->branch == NULL || strcmp(q->branch, r->branch) == 0);
}

static int
run_insert(struct store *s, const struct ledger_accept *q, const struct ledger_project *p,
    int64_t seq, int head, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_ADD);
	int manual = q->provider == NULL;
	int bound = stmt_bind(st, "ssiisssissssssssiii", q->run_id, q->project_id, seq, seq,
	    ledger_state_name(head ? LEDGER_PENDING : LEDGER_EXECUTABLE),
	    ledger_public_name(LEDGER_PUBLIC_QUEUED),
	    ledger_dispatch_name(head ? LEDGER_DISPATCH_BLOCKED : LEDGER_DISPATCH_PENDING),
	    (int64_t)0, manual ? "manual" : "webhook", manual ? q->user_id : NULL, q->provider,
	    q->delivery_id, q->branch != NULL ? q->branch : p->default_branch, p->repo_url,
	    p->config_path, q->commit_sha, now_ms, (int64_t)1, now_ms);

	return ledger_run_stmt(st, bound);
}

static int
take_seq(struct store *s, const char *project_id, int64_t seq)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_SEQ);

	return ledger_run_stmt(st, stmt_bind(st, "si", project_id, seq + 1));
}

int
ledger_accept_run(struct store *s, struct arena *a, const struct ledger_accept *q,
    int64_t now_ms, enum ledger_accepted *ret_kind, struct ledger_run *ret)
{
	struct ledger_project p;
	struct ledger_run head;
	int64_t seq, nqueued;
	int live, has_head, r = state_get(s, q->project_id, &live, &seq);

	if (r < 0 || !live)
		return r < 0 ? r : E_NOENT;
	r = ledger_run_get(s, a, q->run_id, ret);
	if (r == 0) {
		*ret_kind = is_repeat(q, ret) ? LEDGER_ACCEPTED : LEDGER_ACCEPT_CONFLICT;
		return 0;
	}
	if (r != E_NOENT || (r = count_queued(s, q->project_id, &nqueued)) < 0)
		return r;
	if (nqueued >= LEDGER_QUEUE_MAX) {
		*ret_kind = LEDGER_QUEUE_FULL;
		return 0;
	}
	r = ledger_project_get(s, a, q->project_id, &p);
	if (r < 0)
		return r;
	r = ledger_run_head(s, a, q->project_id, &head);
	if (r < 0 && r != E_NOENT)
		return r;
	has_head = r == 0;
	r = run_insert(s, q, &p, seq, has_head, now_ms);
	if (r == 0)
		r = take_seq(s, q->project_id, seq);
	if (r == 0)
		r = ledger_event_int(s, q->run_id, now_ms, "accepted", "position", seq);
	*ret_kind = LEDGER_ACCEPTED;
	return r < 0 ? r : ledger_run_get(s, a, q->run_id, ret);
}

/* ---- promotion ---- */

int
ledger_promote(struct store *s, struct arena *a, const char *project_id, int64_t now_ms,
    struct ledger_promoted *ret)
{
	struct ledger_run run;
	int r = ledger_run_head(s, a, project_id, &run);

	ret->run_id[0] = '\0';
	if (r != E_NOENT)
		return r;
	r = ledger_run_one(s, a, LG_RUN_FIRST, project_id, &run);
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	run.state = LEDGER_EXECUTABLE;
	run.dispatch = LEDGER_DISPATCH_PENDING;
	r = ledger_run_save(s, &run);
	if (r == 0)
		r = ledger_event_add(s, run.run_id, now_ms, "promoted", "{}");
	if (r == 0)
		memcpy(ret->run_id, run.run_id, sizeof(ret->run_id));
	return r;
}

/* ---- cancel ---- */

static int
cancel_queued(struct store *s, struct arena *a, struct ledger_run *run, int64_t now_ms,
    struct ledger_promoted *ret_promoted)
{
	static const struct ledger_end end = { .state = LEDGER_CANCELED,
		.failure_code = "runtime_cancelled" };
	struct ledger_end e = end;
	int r;

	e.finished_at = now_ms;
	run->last_error = NULL;
	ledger_end_row(run, &e, now_ms);
	r = ledger_run_save(s, run);
	return r < 0 ? r : ledger_promote(s, a, run->project_id, now_ms, ret_promoted);
}

int
ledger_cancel_run(const struct ledger_at *at, const char *run_id, const char *by,
    struct ledger_run *ret, int *ret_push, struct ledger_promoted *ret_promoted)
{
	int r = ledger_run_get(at->store, at->arena, run_id, ret);

	*ret_push = 0;
	ret_promoted->run_id[0] = '\0';
	if (r < 0 || ledger_is_terminal(ret->state))
		return r;
	if (ret->state == LEDGER_CANCEL_REQUESTED) {
		*ret_push = 1; /* the first request's time and author stay */
		return 0;
	}
	ret->cancel_requested_at = at->now_ms;
	ret->cancel_by = by;
	r = ledger_event_text(at->store, run_id, at->now_ms, "cancel_requested", "by", by);
	if (r < 0)
		return r;
	if (ret->state != LEDGER_ACTIVE)
		return cancel_queued(at->store, at->arena, ret, at->now_ms, ret_promoted);
	ret->state = LEDGER_CANCEL_REQUESTED;
	ret->public_state = LEDGER_PUBLIC_CANCEL_REQUESTED;
	ledger_touch(ret, at->now_ms);
	*ret_push = 1;
	return ledger_run_save(at->store, ret);
}

int
ledger_queue_list(struct store *s, struct arena *a, const char *project_id,
    struct ledger_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_RUN_QUEUED);

	return ledger_run_rows(st, stmt_bind(st, "s", project_id), a, ret, ret_n);
}
