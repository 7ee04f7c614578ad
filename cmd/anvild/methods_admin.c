/* supervisor.* for anvilctl and ingress: who runs, what happened, how it is. */
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/drain.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "gen/supervisor.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static struct run_process
run_process_of(const struct process *p, enum run_mode mode)
{
	const struct process_id *id = process_id(p);
	int runner = id->kind == PROCESS_RUNNER;

	return (struct run_process) { .run_id = id->run_id,
		.project_id = runner ? id->project_id : NULL,
		.spawn_id = id->spawn_id,
		.pid = process_pid(p),
		.has_shard = runner,
		.shard = id->shard,
		.since = process_started_ms(p),
		.mode = mode };
}

int
supervisor_list_runs(struct supervisor *s, struct turn *t,
    const struct supervisor_list_runs_params *p, struct supervisor_list_runs_result *ret)
{
	size_t nruns = runners_count(s->runners) + serves_count(s->serves), n = 0;
	struct run_process *runs = arena_calloc(t->arena, nruns, sizeof(*runs));
	struct waiting_run *queue = arena_calloc(t->arena, s->slots.nqueued, sizeof(*queue));
	enum slot_wait why = slots_check(&s->slots, clock_mono());
	const struct slot_request *req;
	const struct process *each;

	(void)p;
	if (runs == NULL || queue == NULL)
		return E_NOMEM;
	for (size_t at = 0; n < nruns && (each = runners_next(s->runners, &at)) != NULL; n++) {
		runs[n] = run_process_of(each, RUN_MODE_EXECUTE);
		runs[n].has_slot = 1;
		runs[n].slot = (int64_t)n;
	}
	for (size_t at = 0; n < nruns && (each = serves_next(s->serves, &at)) != NULL; n++)
		runs[n] = run_process_of(each, RUN_MODE_SERVE);
	ret->runs = runs;
	ret->nruns = n;
	TAILQ_FOREACH (req, &s->slots.queue, entry) {
		queue[ret->nqueue] = (struct waiting_run) { .run_id = req->run_id,
			.project_id = req->project_id,
			.shard = req->shard,
			.queued_at = req->queued_at_ms };
		if (why != SLOT_FREE)
			(void)queue_reason_parse(
			    slot_wait_name(why), &queue[ret->nqueue].reason);
		ret->nqueue++;
	}
	ret->queue = queue;
	return 0;
}

int
supervisor_drain(struct supervisor *s, struct turn *t, const struct supervisor_drain_params *p,
    struct supervisor_drain_result *ret)
{
	(void)p;
	ret->kind = SUPERVISOR_DRAIN_OK;
	return drain_set(s, t, 1);
}

int
supervisor_resume(struct supervisor *s, struct turn *t,
    const struct supervisor_resume_params *p, struct supervisor_resume_result *ret)
{
	(void)p;
	ret->kind = SUPERVISOR_RESUME_OK;
	return drain_set(s, t, 0);
}

/* A pidfd delivers SIGKILL until the kernel lets the process go; what is given up here is
 * only that its project waits for that. */
int
supervisor_abandon(struct supervisor *s, struct turn *t,
    const struct supervisor_abandon_params *p, struct supervisor_abandon_result *ret)
{
	const struct process *live = runners_find(s->runners, p->run_id);
	char spawn_id[ID_HEX32_SIZE];
	int64_t pid;

	if (live == NULL) {
		ret->kind = SUPERVISOR_ABANDON_ABSENT;
		return 0;
	}
	pid = process_pid(live);
	log_event(LOG_LEVEL_WARN, "run_abandoned", LOG_STR("runId", p->run_id),
	    LOG_INT("childPid", pid));
	ret->kind = SUPERVISOR_ABANDON_ABANDONED;
	(void)snprintf(spawn_id, sizeof(spawn_id), "%s", process_id(live)->spawn_id);
	ret->u.abandoned.spawn_id = arena_strdup(t->arena, spawn_id);
	runners_abandon(s->runners, p->run_id);
	return 0;
}

/* ---- ps ---- */

/* Of what an earlier supervisor started only the time of day is known, and the clock may have
 * been set back since. */
static int64_t
since(const struct turn *t, int64_t at_ms)
{
	return max_i64(0, t->now_ms - at_ms);
}

static int
actor_of_child(struct turn *t, const struct child *c, struct actor_process *ret)
{
	struct child_view v;
	struct last_exit *last = NULL;
	int r;

	child_view(c, &v);
	if (v.last_exit[0] != '\0') {
		last = arena_alloc(t->arena, sizeof(*last));
		if (last == NULL)
			return E_NOMEM;
		last->at = v.last_exit_ms;
		last->reason = v.last_exit;
	}
	*ret = (struct actor_process) { .address = v.address,
		.has_pid = v.pid != 0,
		.pid = v.pid,
		.has_started_at = v.pid != 0,
		.started_at = v.started_ms,
		.uptime_ms = v.pid != 0 ? since(t, v.started_ms) : 0,
		.restarts = v.restarts,
		.last_exit = last,
		.outage = child_outage(c) };
	r = actor_state_parse(v.state, &ret->state);
	return r;
}

static struct actor_process
actor_of_process(struct turn *t, const struct process *p)
{
	return (struct actor_process) { .address = process_id(p)->address,
		.state = ACTOR_STATE_UP,
		.has_pid = 1,
		.pid = process_pid(p),
		.has_started_at = 1,
		.started_at = process_started_ms(p),
		.uptime_ms = since(t, process_started_ms(p)) };
}

static int
actor_of_supervisor(const struct supervisor *s, struct turn *t, struct actor_process *ret)
{
	CLEANUP_FREE char *outage = actor_outage_text(s->actor);

	*ret = (struct actor_process) { .address = "supervisor",
		.state = s->stopping ? ACTOR_STATE_STOPPING : ACTOR_STATE_UP,
		.has_pid = 1,
		.pid = getpid(),
		.has_started_at = 1,
		.started_at = s->started_ms,
		.uptime_ms = since(t, s->started_ms),
		.outage = outage != NULL ? arena_strdup(t->arena, outage) : NULL };
	return outage != NULL && ret->outage == NULL ? E_NOMEM : 0;
}

int
supervisor_list(struct supervisor *s, struct turn *t, const struct supervisor_list_params *p,
    struct supervisor_list_result *ret)
{
	size_t cap = 1 + s->nresidents + runners_count(s->runners) + serves_count(s->serves);
	struct actor_process *rows = arena_calloc(t->arena, cap, sizeof(*rows));
	const struct process *each;
	size_t n = 0;
	int r;

	(void)p;
	if (rows == NULL)
		return E_NOMEM;
	r = actor_of_supervisor(s, t, &rows[n++]);
	for (size_t i = 0; r == 0 && i < s->nresidents; i++)
		r = actor_of_child(t, s->residents[i], &rows[n++]);
	if (r < 0)
		return r;
	for (size_t at = 0; n < cap && (each = runners_next(s->runners, &at)) != NULL;)
		rows[n++] = actor_of_process(t, each);
	for (size_t at = 0; n < cap && (each = serves_next(s->serves, &at)) != NULL;)
		rows[n++] = actor_of_process(t, each);
	ret->actors = rows;
	ret->nactors = n;
	return 0;
}

/* ---- history ---- */

static int
history_row(struct stmt *st, struct arena *a, struct history_event *e)
{
	const char *reason = stmt_text(st, 7);

	*e = (struct history_event) { .at = stmt_int(st, 0),
		.address = arena_strdup(a, stmt_text(st, 1)),
		.has_pid = !stmt_is_null(st, 3),
		.pid = stmt_int(st, 3),
		.has_uptime_ms = !stmt_is_null(st, 4),
		.uptime_ms = stmt_int(st, 4),
		.has_exit_status = !stmt_is_null(st, 5),
		.exit_status = stmt_int(st, 5),
		.has_signal = !stmt_is_null(st, 6),
		.signal = stmt_int(st, 6),
		.reason = reason != NULL ? arena_strdup(a, reason) : NULL };
	if (e->address == NULL || (reason != NULL && e->reason == NULL))
		return E_NOMEM;
	return history_word_parse(stmt_text(st, 2), &e->event);
}

int
supervisor_history(struct supervisor *s, struct turn *t,
    const struct supervisor_history_params *p, struct supervisor_history_result *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_HISTORY_LIST);
	struct history_event *rows = arena_calloc(t->arena, (size_t)p->limit, sizeof(*rows));
	size_t n = 0;
	int r = stmt_bind(st, "i", p->limit);

	(void)s;
	if (rows == NULL)
		return E_NOMEM;
	while (r == 0 && n < (size_t)p->limit && (r = stmt_step(st)) == 1)
		r = history_row(st, t->arena, &rows[n++]);
	ret->events = rows;
	ret->nevents = n;
	return r < 0 ? r : 0;
}

/* ---- health ---- */

struct health {
	struct supervisor_health_result *ret;
	enum health_reason *reasons;
	const char **notes; /* each of a reason that has more to say */
	struct arena *arena;
	size_t nnotes_max;
	int stuck;
};

static void
note_stuck(void *arg, const struct process *p)
{
	struct health *h = arg;
	char *text;

	h->stuck = 1;
	if (h->ret->nnotes == h->nnotes_max)
		return;
	text = arena_format(h->arena,
	    "The process %d of %s does not die of SIGKILL; its project waits. "
	    "anvilctl abandon %s gives it up.",
	    (int)process_pid(p), process_id(p)->address, process_id(p)->run_id);
	if (text != NULL)
		h->notes[h->ret->nnotes++] = text;
}

static void
note_outage(struct health *h, const char *address, const char *what, const char *why)
{
	char *text = why != NULL && h->ret->nnotes < h->nnotes_max
	    ? arena_format(h->arena, "%s cannot %s: %s", address, what, why)
	    : NULL;

	if (text != NULL)
		h->notes[h->ret->nnotes++] = text;
}

static void
add_reason(struct health *h, int holds, enum health_reason reason)
{
	if (holds)
		h->reasons[h->ret->nreasons++] = reason;
}

static void
health_reasons(const struct supervisor *s, struct health *h)
{
	CLEANUP_FREE char *own = actor_outage_text(s->actor);
	CLEANUP_FREE char *own_full = actor_full_text(s->actor);
	int failing = 0, down = 0, full = own_full != NULL;

	note_outage(h, "supervisor", "serve", own);
	note_outage(h, "supervisor", "write", own_full);
	for (size_t i = 0; i < s->nresidents; i++) {
		const struct child *c = s->residents[i];

		failing |= child_is_failing(c);
		down |= child_state(c) != CH_UP;
		full |= child_full(c) != NULL;
		note_outage(h, child_address(c), "serve", child_outage(c));
		note_outage(h, child_address(c), "write", child_full(c));
	}
	runners_stuck(s->runners, note_stuck, h);
	add_reason(h, failing, HEALTH_REASON_ACTOR_FAILING);
	add_reason(h, down, HEALTH_REASON_ACTOR_DOWN);
	add_reason(h, slots_unhealthy(&s->slots), HEALTH_REASON_POOL_UNHEALTHY);
	add_reason(h, s->slots.low_disk, HEALTH_REASON_LOW_DISK);
	add_reason(h, s->slots.draining, HEALTH_REASON_DRAINING);
	add_reason(h, s->storage_failed || full, HEALTH_REASON_STORAGE_UNAVAILABLE);
	add_reason(h, h->stuck, HEALTH_REASON_RUN_UNKILLABLE);
}

int
supervisor_health(struct supervisor *s, struct turn *t,
    const struct supervisor_health_params *p, struct supervisor_health_result *ret)
{
	struct health h = { .ret = ret, .arena = t->arena };
	struct statvfs vfs;

	(void)p;
	h.nnotes_max = runners_count(s->runners) + 2 * (s->nresidents + 1);
	h.reasons = arena_calloc(t->arena, HEALTH_REASON_COUNT, sizeof(*h.reasons));
	h.notes = arena_calloc(t->arena, h.nnotes_max, sizeof(*h.notes));
	if (h.reasons == NULL || h.notes == NULL)
		return E_NOMEM;
	health_reasons(s, &h);
	ret->reasons = h.reasons;
	ret->notes = h.notes;
	ret->status = ret->nreasons == 0 ? HEALTH_STATUS_OK : HEALTH_STATUS_DEGRADED;
	ret->draining = s->slots.draining;
	ret->slots_max = s->slots.max;
	ret->slots_used = s->slots.live;
	ret->slots_waiting = (int64_t)s->slots.nqueued;
	ret->pool_failures = s->slots.failures;
	if (statvfs(s->config->data_dir, &vfs) == 0)
		ret->free_bytes = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize;
	ret->min_free_bytes = s->config->runs_min_free_bytes;
	ret->has_shards_wanted = s->shards_wanted > 0;
	ret->shards_wanted = s->shards_wanted;
	return 0;
}
