/* project.* about the queue: accept, find, cancel, list, why (spec project 5, 8, 15). */
#include <string.h>

#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/push.h"
#include "cmd/anvil-project/shard.h"
#include "gen/supervisor.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- accept ---- */

int
project_accept_run(struct shard *s, struct turn *t, const struct project_accept_run_params *p,
    struct project_accept_run_result *ret)
{
	struct ledger_accept q = { .project_id = p->project_id,
		.run_id = p->run_id,
		.branch = p->branch,
		.user_id = p->user_id };
	struct ledger_run run;
	enum ledger_accepted kind;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_ACCEPT_RUN, ret))
		return r;
	r = ledger_accept_run(t->store, t->arena, &q, t->now_ms, &kind, &run);
	if (r == E_NOENT) {
		ret->kind = PROJECT_ACCEPT_RUN_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	switch (kind) {
	case LEDGER_QUEUE_FULL: ret->kind = PROJECT_ACCEPT_RUN_QUEUE_FULL; return 0;
	case LEDGER_ACCEPT_CONFLICT: ret->kind = PROJECT_ACCEPT_RUN_CONFLICT; return 0;
	case LEDGER_ACCEPTED: break;
	}
	ret->kind = PROJECT_ACCEPT_RUN_ACCEPTED;
	r = convert_run(&run, &ret->u.accepted.run);
	if (r < 0)
		return r;
	log_event(LOG_LEVEL_INFO, "run_accepted", LOG_STR("runId", run.run_id),
	    LOG_STR("projectId", run.project_id), LOG_INT("position", run.accept_seq),
	    LOG_STR("trigger", run.trigger_type));
	return shard_wake_after(s, t);
}

int
project_find_run(struct shard *s, struct turn *t, const struct project_find_run_params *p,
    struct project_find_run_result *ret)
{
	struct ledger_move here;
	struct ledger_run run;
	int r = ledger_run_get(t->store, t->arena, p->run_id, &run);

	(void)s;
	if (r == E_NOENT) {
		ret->kind = PROJECT_FIND_RUN_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = ledger_move_get(t->store, run.project_id, &here);
	if (r < 0)
		return r;
	/* Neither is it missing nor is this row to be relied on. */
	if (here.where == LEDGER_INCOMING)
		return turn_fail(t, E_BUSY, "its project is on its way here");
	ret->kind = here.where == LEDGER_MOVED ? PROJECT_FIND_RUN_NOT_FOUND
					       : PROJECT_FIND_RUN_FOUND;
	return here.where == LEDGER_MOVED ? 0 : convert_run(&run, &ret->u.found.run);
}

/* ---- cancel ---- */

struct drop {
	struct shard *shard;
	char run_id[ID_SIZE];
};

static void
on_dropped(void *arg, int err, const struct supervisor_drop_run_result *res)
{
	(void)arg;
	(void)err;
	(void)res;
}

static void
drop_hint(void *arg)
{
	CLEANUP_FREE struct drop *d = arg;
	struct supervisor_drop_run_params params = { .run_id = d->run_id };
	struct rpc_peer *p = shard_supervisor(d->shard);

	if (p != NULL)
		(void)supervisor_drop_run_call(p, NULL, &params, on_dropped, NULL);
}

/* Its place in the slot queue is of no use any more; a runner on its way finds out. */
static int
drop_after(struct shard *s, struct turn *t, const char *run_id)
{
	struct drop *d = mem_calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return E_NOMEM;
	d->shard = s;
	(void)snprintf(d->run_id, sizeof(d->run_id), "%s", run_id);
	r = turn_after_commit(t, drop_hint, d, free);
	if (r < 0)
		free(d);
	return r;
}

int
project_cancel_run(struct shard *s, struct turn *t, const struct project_cancel_run_params *p,
    struct project_cancel_run_result *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_promoted promoted;
	struct ledger_run run;
	int push, r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_CANCEL_RUN, ret))
		return r;
	/* Another project's run is not even touched. */
	r = ledger_run_get(t->store, t->arena, p->run_id, &run);
	if (r == E_NOENT || (r == 0 && strcmp(run.project_id, p->project_id) != 0)) {
		ret->kind = PROJECT_CANCEL_RUN_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = ledger_cancel_run(&at, p->run_id, p->by, &run, &push, &promoted);
	if (r < 0)
		return r;
	ret->kind = PROJECT_CANCEL_RUN_OK;
	r = convert_run(&run, &ret->u.ok.run);
	if (r == 0)
		r = push ? push_cancel_after(s, t, &run) : drop_after(s, t, p->run_id);
	shard_note_promoted(&promoted);
	log_event(LOG_LEVEL_INFO, "run_cancel_requested", LOG_STR("runId", run.run_id),
	    LOG_STR("projectId", run.project_id), LOG_STR("by", p->by),
	    LOG_STR("status", ledger_state_name(run.state)));
	return r < 0 ? r : shard_wake_after(s, t);
}

/* ---- listing ---- */

static int
fill_head(const struct shard *s, struct turn *t, struct queue_project *q)
{
	struct queue_run *row = arena_alloc(t->arena, sizeof(*row));
	struct ledger_run head;
	int r = ledger_run_head(t->store, t->arena, q->project_id, &head);

	if (row == NULL)
		return E_NOMEM;
	if (r == 0)
		r = convert_queue_run(&head, row);
	if (r == E_CORRUPT)
		broken_tell(s->broken, q->project_id, q->project_id);
	if (r < 0)
		return r == E_NOENT || r == E_CORRUPT ? 0 : r;
	*(ledger_is_claimed(head.state) ? &q->active : &q->executable) = row;
	return 0;
}

static int
fill_pending(const struct shard *s, struct turn *t, struct queue_project *q)
{
	struct ledger_run *runs;
	struct queue_run *pending;
	size_t n;
	int r = ledger_queue_list(t->store, t->arena, q->project_id, &runs, &n);

	if (r < 0)
		return r;
	pending = arena_calloc(t->arena, n, sizeof(*pending));
	if (pending == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!convert_fits_run(&runs[i]))
			broken_tell(s->broken, runs[i].run_id, q->project_id);
		else if (runs[i].state == LEDGER_PENDING &&
		    convert_queue_run(&runs[i], &pending[q->npending]) == 0)
			q->npending++;
	}
	q->pending = pending;
	return 0;
}

static int
fill_deadlines(const struct shard *s, struct turn *t, struct queue_project *q)
{
	const struct lease *le = q->active != NULL ? leases_find(s->leases, q->active->run_id)
						   : NULL;
	struct deadline *d = arena_calloc(t->arena, 2, sizeof(*d));

	if (d == NULL)
		return E_NOMEM;
	q->deadlines = d;
	if (q->executable != NULL && q->executable->has_dispatch_retry_at)
		d[q->ndeadlines++] = (struct deadline) { "dispatch",
			q->executable->dispatch_retry_at };
	/* What is stored follows behind: a heartbeat without news writes nothing. */
	if (le != NULL)
		d[q->ndeadlines++] = (struct deadline) { "lease",
			t->now_ms + mono_diff_ms(clock_mono(), le->until) };
	return 0;
}

static int
fill_project(const struct shard *s, struct turn *t, const struct ledger_project *p,
    struct queue_project *q)
{
	int r;

	*q = (struct queue_project) { .project_id = p->project_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->project_slug,
		.index_sync = p->index_current ? INDEX_SYNC_CURRENT : INDEX_SYNC_NEEDS_UPDATE };
	if (project_phase_parse(p->phase, &q->phase) < 0)
		return E_CORRUPT;
	r = fill_head(s, t, q);
	if (r == 0)
		r = fill_pending(s, t, q);
	return r < 0 ? r : fill_deadlines(s, t, q);
}

int
project_queue(struct shard *s, struct turn *t, const struct project_queue_params *p,
    struct project_queue_result *ret)
{
	const char *after = p->cursor != NULL ? p->cursor : "";
	struct ledger_project *list, one;
	struct queue_project *rows;
	size_t n = 1;
	int r;

	if (p->project_id != NULL &&
	    MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_QUEUE, ret))
		return r;
	if (p->project_id != NULL) {
		list = &one;
		r = ledger_project_get(t->store, t->arena, p->project_id, &one);
	} else {
		r = ledger_project_list(t->store, t->arena, after, (size_t)p->limit, &list, &n);
	}
	if (r == E_NOENT) {
		ret->kind = PROJECT_QUEUE_NOT_FOUND;
		return 0;
	}
	rows = r < 0 ? NULL : arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return r < 0 ? r : E_NOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (convert_fits_project(&list[i], t->arena))
			r = fill_project(s, t, &list[i], &rows[ret->u.page.nprojects++]);
		else
			broken_tell(s->broken, list[i].project_id, list[i].project_id);
	}
	ret->kind = PROJECT_QUEUE_PAGE;
	ret->u.page.projects = rows;
	if (p->project_id == NULL && n == (size_t)p->limit)
		ret->u.page.next = list[n - 1].project_id;
	return r;
}

/* The delivery that the run came of, while it is kept. */
static int
fill_delivery(struct turn *t, const struct ledger_run *run, struct project_why_history *h)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_delivery d;
	struct delivery_row *row;
	int r;

	if (run->provider == NULL)
		return 0;
	r = ledger_delivery_get(&at, run->project_id, run->provider, run->delivery_id, &d);
	/* The id may have come again since, for another run. */
	if (r == E_NOENT ||
	    (r == 0 && (d.run_id == NULL || strcmp(d.run_id, run->run_id) != 0)))
		return 0;
	row = r < 0 ? NULL : arena_alloc(t->arena, sizeof(*row));
	if (row == NULL)
		return r < 0 ? r : E_NOMEM;
	h->delivery = row;
	return convert_delivery(&d, row);
}

int
project_why(struct shard *s, struct turn *t, const struct project_why_params *p,
    struct project_why_result *ret)
{
	struct project_why_history *h = &ret->u.history;
	struct ledger_event *events;
	struct why_event *rows;
	struct ledger_run run;
	size_t n;
	int r;

	(void)s;
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_WHY, ret))
		return r;
	r = ledger_run_get(t->store, t->arena, p->run_id, &run);
	if (r == E_NOENT) {
		ret->kind = PROJECT_WHY_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = ledger_events(t->store, t->arena, p->run_id, &events, &n);
	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct why_event) { .seq = (int64_t)i + 1,
			.at = events[i].at,
			.event = events[i].event,
			.detail_text = events[i].detail };
	ret->kind = PROJECT_WHY_HISTORY;
	h->events = rows;
	h->nevents = n;
	r = convert_run(&run, &h->run);
	if (r == 0)
		r = fill_delivery(t, &run, h);
	return r < 0 ? r : convert_queue_run(&run, &h->ledger);
}

static void
recheck(void *arg)
{
	shard_recheck(arg);
}

int
project_kick(struct shard *s, struct turn *t, const struct project_kick_params *p,
    struct project_kick_result *ret)
{
	int r;

	if (p->project_id != NULL &&
	    MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_KICK, ret))
		return r;
	ret->kind = PROJECT_KICK_OK;
	return turn_after_commit(t, recheck, s, NULL);
}
