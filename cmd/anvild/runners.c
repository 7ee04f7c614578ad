#include "cmd/anvild/runners.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvild/exits.h"
#include "cmd/anvild/holder.h"
#include "cmd/anvild/methods.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/sweep.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#define PUMP_AGAIN_MS 1000 /* while something but a slot is missing */

/* Exit statuses of anvil-run that mean it never came to work (spec run 1). */
#define EXIT_NOT_CLAIMED 75
#define EXIT_NO_EXEC     127

#define TRIAL_WELL_MS 30000 /* alive for so long, it has claimed */

struct waiter {
	STAILQ_ENTRY(waiter) entry;
	struct parked *parked;
};

struct runner {
	uint32_t magic;
#define RUNNER_MAGIC 0x62d8b40f
	struct runners *owner;
	struct process *process;
	struct exit_entry *end; /* Owned.  Room for how it ends. */
	struct slot_request
	    request;   /* what it was forked for; an adopted one has no queued_at */
	int trial;     /* shows whether an unhealthy pool works again   */
	int abandoned; /* as soon as the loop comes to it              */
	int killed;    /* SIGKILL was sent, then                       */
	struct mono_time killed_at;
	STAILQ_HEAD(, waiter) killers; /* wait for its end */
};

struct runners {
	struct supervisor *sup;
	struct map *by_run;    /* run id -> struct runner, owned              */
	struct map *abandoned; /* spawn ids of those that may go on for ever  */
	struct actor_timer *pump;
};

static void on_pump(void *arg);

struct runners *
runners_new(struct supervisor *s)
{
	struct runners *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->sup = s;
	r->by_run = map_new();
	r->abandoned = map_new();
	r->pump = actor_timer_new(s->actor, on_pump, r);
	return r->by_run != NULL && r->abandoned != NULL && r->pump != NULL ? r
									    : runners_free(r);
}

static void
runner_free(struct runner *ru)
{
	struct waiter *w;

	while ((w = STAILQ_FIRST(&ru->killers)) != NULL) {
		STAILQ_REMOVE_HEAD(&ru->killers, entry);
		parked_drop(w->parked);
		free(w);
	}
	process_free(ru->process);
	free(ru->end);
	ru->magic = 0;
	free(ru);
}

struct runners *
runners_free(struct runners *r)
{
	void *ru;

	if (r == NULL)
		return NULL;
	if (r->by_run != NULL)
		for (size_t at = 0; map_next(r->by_run, &at, NULL, &ru);)
			runner_free(ru);
	map_free(r->by_run);
	map_free(r->abandoned);
	actor_timer_free(r->pump);
	free(r);
	return NULL;
}

/* ---- the end of a runner ---- */

/* A runner that was told `stale`, or gave its run back, says nothing about the pool; one that
 * could not claim, or could not be executed, does (spec project 18). */
static void
judge_pool(struct runners *r, const struct runner *ru, const struct process_end *end)
{
	struct slots *s = &r->sup->slots;
	int failed = end->error[0] != '\0' ||
	    (end->exited &&
		(end->exit_status == EXIT_NOT_CLAIMED || end->exit_status == EXIT_NO_EXEC));

	if (ru->trial)
		slots_trial_over(s);
	if (end->unrecorded || end->abandoned)
		return; /* the store's fault, or the operator's word */
	if (failed && slots_note_failure(s, clock_mono()))
		log_event(LOG_LEVEL_ERROR, "pool_unhealthy", LOG_INT("failures", s->failures));
	else if (end->exited && !failed)
		slots_note_success(s);
}

/* It never ran: the request stands as it did before. */
static void
wait_again(struct runners *r, const struct runner *ru)
{
	int64_t ahead;

	(void)slots_wait(&r->sup->slots, &ru->request, &ahead);
	(void)actor_timer_set(r->pump, PUMP_AGAIN_MS);
}

static void
answer_killers(struct runner *ru, const struct process_end *end)
{
	struct waiter *w;

	while ((w = STAILQ_FIRST(&ru->killers)) != NULL) {
		STAILQ_REMOVE_HEAD(&ru->killers, entry);
		methods_answer_gone(w->parked, end);
		free(w);
	}
}

static void
note_exit(const struct process *p, const struct process_end *end)
{
	const struct process_id *id = process_id(p);
	char how[96];

	process_end_text(end, how);
	log_event(end->exited && end->exit_status == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
	    "actor_exited", LOG_STR("actor", id->address), LOG_STR("runId", id->run_id),
	    LOG_INT("childPid", process_pid(p)), LOG_STR("how", how),
	    LOG_INT("durationMs", mono_diff_ms(process_started(p), clock_mono())));
}

static void
runner_on_end(void *arg, struct process *p, const struct process_end *end)
{
	struct runner *ru = arg;
	struct runners *r = ru->owner;
	const struct process_id *id = process_id(p);
	struct run_exit e = { .shard = id->shard, .attempt = id->attempt, .end = *end };

	OBJ_CHECK(ru, RUNNER_MAGIC);
	memcpy(e.spawn_id, id->spawn_id, sizeof(e.spawn_id));
	memcpy(e.run_id, id->run_id, sizeof(e.run_id));
	memcpy(e.project_id, id->project_id, sizeof(e.project_id));
	note_exit(p, end);
	(void)map_remove(r->by_run, e.run_id);
	r->sup->slots.live--;
	judge_pool(r, ru, end);
	if (end->unrecorded) {
		wait_again(r, ru);
	} else {
		sweep_orphans(r->sup->sweep);
		exits_add_take(r->sup->exits, TAKE_PTR(ru->end), &e);
		sweep_leftovers(r->sup->sweep, e.run_id);
	}
	answer_killers(ru, end);
	ru->process = NULL; /* it frees itself */
	runner_free(ru);
	if (r->sup->stopping)
		sup_resident_changed(r->sup); /* the shards may have waited for it */
	else if (!end->unrecorded)
		runners_pump(r);
}

/* ---- the beginning ---- */

static struct runner *
runner_new(struct runners *r)
{
	struct runner *ru = mem_calloc(1, sizeof(*ru));

	if (ru == NULL)
		return NULL;
	ru->magic = RUNNER_MAGIC;
	ru->owner = r;
	STAILQ_INIT(&ru->killers);
	ru->end = exits_reserve();
	if (ru->end == NULL) {
		runner_free(ru);
		return NULL;
	}
	return ru;
}

static int
fork_runner(struct runners *r, struct turn *t, struct runner *ru, const struct process_id *id)
{
	struct supervisor *s = r->sup;
	CLEANUP(vault_keys_freep) struct vault_keys *keys = NULL;
	CLEANUP_FREE char *program = sup_program(s, "anvil-run");
	CLEANUP(io_closep) int start = -1;
	const struct process_owner owner = { runner_on_end, ru };
	struct spawn_desc d = { .program = program, .lifeline_fd = -1 };
	char shard[24];
	int rc = vault_keys_for_project(s->keys, id->project_id, &keys);

	if (rc < 0)
		return rc;
	start = sup_start_fd(s, keys);
	if (start < 0 || program == NULL)
		return E_NOMEM;
	(void)snprintf(shard, sizeof(shard), "%lld", (long long)id->shard);
	d.start_fd = start;
	d.argv[0] = program;
	d.argv[1] = id->run_id;
	d.argv[2] = "--project";
	d.argv[3] = id->project_id;
	d.argv[4] = "--shard";
	d.argv[5] = shard;
	d.argv[6] = "--spawn";
	d.argv[7] = id->spawn_id;
	return process_start(s, t, id, &d, &owner, &ru->process);
}

static int
start_runner(
    struct runners *r, struct turn *t, const struct slot_request *req, struct process_id *id)
{
	struct runner *ru = runner_new(r);
	int rc;

	*id = (struct process_id) {
		.kind = PROCESS_RUNNER, .shard = req->shard, .attempt = req->attempt
	};
	id_hex32(id->spawn_id);
	memcpy(id->run_id, req->run_id, sizeof(id->run_id));
	memcpy(id->project_id, req->project_id, sizeof(id->project_id));
	(void)snprintf(id->address, sizeof(id->address), "run/%s", req->run_id);
	if (ru == NULL)
		return E_NOMEM;
	ru->request = *req;
	rc = map_set(r->by_run, id->run_id, ru);
	if (rc == 0)
		rc = fork_runner(r, t, ru, id);
	if (rc < 0) {
		(void)map_remove(r->by_run, id->run_id);
		runner_free(ru);
		return rc;
	}
	r->sup->slots.live++;
	ru->trial = slots_begin_trial(&r->sup->slots);
	return 0;
}

static int
queue(struct runners *r, const struct slot_request *req, enum slot_wait why,
    struct spawn_answer *ret)
{
	ret->verdict = SPAWN_QUEUED;
	ret->why = why;
	/* With a slot free somebody else stands before it: let both go from the queue. */
	if (slots_check(&r->sup->slots, clock_mono()) == SLOT_FREE)
		(void)actor_timer_set(r->pump, 0);
	else if (!actor_timer_is_set(r->pump))
		(void)actor_timer_set(r->pump, PUMP_AGAIN_MS);
	return slots_wait(&r->sup->slots, req, &ret->ahead);
}

int
runners_spawn(
    struct runners *r, struct turn *t, const struct slot_request *req, struct spawn_answer *ret)
{
	const struct process *live;
	enum slot_wait why;
	struct process_id id;
	int rc = runners_look(r, req->run_id, &live);

	*ret = (struct spawn_answer) { .verdict = SPAWN_SPAWNED };
	if (rc < 0 && rc != E_BUSY)
		return rc;
	if (live != NULL) {
		ret->verdict = SPAWN_LIVE;
		memcpy(ret->spawn_id, process_id(live)->spawn_id, sizeof(ret->spawn_id));
		return 0;
	}
	why = slots_check(&r->sup->slots, clock_mono());
	/* Whoever waits longer goes first; the store's lock must be free as well. */
	if (why == SLOT_FREE && !TAILQ_EMPTY(&r->sup->slots.queue))
		why = SLOT_NONE_FREE;
	if (serves_stop(r->sup->serves, req->run_id) && why == SLOT_FREE)
		why = SLOT_NONE_FREE;
	if (why != SLOT_FREE)
		return queue(r, req, why, ret);
	rc = t->store != NULL ? start_runner(r, t, req, &id) : E_STORAGE;
	switch (rc) {
	case 0: memcpy(ret->spawn_id, id.spawn_id, sizeof(ret->spawn_id)); return 0;
	case E_STORAGE:
	case E_FULL:
	case E_CORRUPT: return queue(r, req, SLOT_STORAGE, ret);
	default:
		(void)slots_note_failure(&r->sup->slots, clock_mono());
		ret->verdict = SPAWN_FAILED;
		ret->error = rc == E_BUSY ? "no more processes can be made on this host"
					  : err_text(rc);
		return 0;
	}
}

/* ---- from the queue ---- */

struct pump_turn {
	struct runners *r;
	const struct slot_request *req;
	struct process_id id;
};

static int
pump_turn(void *arg, struct turn *t)
{
	struct pump_turn *p = arg;

	return start_runner(p->r, t, p->req, &p->id);
}

/* The shard hears of a fork that failed as of a runner that ended at once. */
static void
tell_failure(struct runners *r, const struct pump_turn *p, int err)
{
	struct run_exit e = { .shard = p->req->shard, .attempt = p->req->attempt };
	struct exit_entry *room = exits_reserve();

	(void)slots_note_failure(&r->sup->slots, clock_mono());
	if (room == NULL)
		return; /* it asks again at its re-check */
	memcpy(e.spawn_id, p->id.spawn_id, sizeof(e.spawn_id));
	memcpy(e.run_id, p->req->run_id, sizeof(e.run_id));
	memcpy(e.project_id, p->req->project_id, sizeof(e.project_id));
	(void)snprintf(e.end.error, sizeof(e.end.error), "%s", err_text(err));
	exits_add_take(r->sup->exits, room, &e);
}

void
runners_pump(struct runners *r)
{
	struct slots *s = &r->sup->slots;
	struct slot_request *req;

	if (r->sup->stopping)
		return;
	while ((req = slots_take(s, clock_mono())) != NULL) {
		CLEANUP_FREE struct slot_request *owned = req;
		struct pump_turn p = { .r = r, .req = owned };
		int64_t ahead;
		int rc;

		if (runners_find(r, req->run_id) != NULL)
			continue;
		if (serves_stop(r->sup->serves, req->run_id)) {
			(void)slots_wait(s, req, &ahead);
			break; /* its end pumps again */
		}
		rc = sup_write(r->sup, pump_turn, &p);
		if (rc == E_STORAGE || rc == E_FULL || rc == E_CORRUPT) {
			(void)slots_wait(s, req, &ahead);
			break;
		}
		if (rc < 0)
			tell_failure(r, &p, rc);
	}
	if ((s->nqueued != 0 && slots_check(s, clock_mono()) != SLOT_NONE_FREE) || s->trying)
		(void)actor_timer_set(r->pump, PUMP_AGAIN_MS);
}

int
runners_adopt(struct runners *r, const struct process_id *id, const struct process_birth *birth)
{
	struct runner *ru = runner_new(r);
	const struct process_owner owner = { runner_on_end, ru };
	int rc;

	if (ru == NULL)
		return E_NOMEM;
	rc = map_set(r->by_run, id->run_id, ru);
	if (rc == 0)
		rc = process_adopt(r->sup, id, birth, &owner, &ru->process);
	if (rc < 0) {
		(void)map_remove(r->by_run, id->run_id);
		runner_free(ru);
		return rc;
	}
	r->sup->slots.live++;
	return 0;
}

/* ---- looking, killing ---- */

/* One that holds its store's lock and is in no row: they were lost, it was not.  It needs none
 * now, for the next look finds it again. */
static int
adopt_holder(struct runners *r, const struct holder *h)
{
	int rc = runners_adopt(r, &h->id, &h->birth);

	if (rc == E_NOENT)
		return 0;
	if (rc == 0)
		log_event(LOG_LEVEL_WARN, "runner_found", LOG_STR("runId", h->id.run_id),
		    LOG_INT("childPid", h->birth.pid));
	return rc;
}

int
runners_look(struct runners *r, const char *run_id, const struct process **ret)
{
	struct holder h;
	int rc;

	*ret = runners_find(r, run_id);
	if (*ret != NULL || serves_has(r->sup->serves, run_id))
		return 0;
	rc = holder_find(r->sup->config->data_dir, run_id, &h);
	if (rc < 0)
		return rc;
	switch (h.kind) {
	case HOLDER_NONE: return 0;
	case HOLDER_RUNNER:
		if (map_get(r->abandoned, h.id.spawn_id) != NULL)
			return E_LOCKED;
		rc = adopt_holder(r, &h);
		break;
	case HOLDER_SERVE: /* it only reads, and nobody waits for it */
		process_kill_born(&h.birth);
		return E_BUSY;
	case HOLDER_OTHER: return E_BUSY;
	}
	*ret = runners_find(r, run_id);
	return rc;
}

const struct process *
runners_find(const struct runners *r, const char *run_id)
{
	const struct runner *ru = map_get(r->by_run, run_id);

	return ru != NULL ? ru->process : NULL;
}

size_t
runners_count(const struct runners *r)
{
	return map_count(r->by_run);
}

const struct process *
runners_next(const struct runners *r, size_t *at)
{
	void *ru;

	return map_next(r->by_run, at, NULL, &ru) ? ((const struct runner *)ru)->process : NULL;
}

static void
kill_runner(struct runner *ru)
{
	if (!ru->killed)
		ru->killed_at = clock_mono();
	ru->killed = 1;
	process_signal(ru->process, SIGKILL);
}

int
runners_kill(struct runners *r, const char *run_id, const char *spawn_id, struct parked *waiter)
{
	struct runner *ru = map_get(r->by_run, run_id);
	struct waiter *w;

	if (ru == NULL || strcmp(process_id(ru->process)->spawn_id, spawn_id) != 0)
		return E_NOENT;
	w = mem_calloc(1, sizeof(*w));
	if (w == NULL)
		return E_NOMEM;
	w->parked = waiter;
	STAILQ_INSERT_TAIL(&ru->killers, w, entry);
	kill_runner(ru);
	return 0;
}

void
runners_stuck(
    const struct runners *r, void (*fn)(void *arg, const struct process *p), void *arg)
{
	struct mono_time now = clock_mono();
	void *each;

	for (size_t at = 0; map_next(r->by_run, &at, NULL, &each);) {
		const struct runner *ru = each;

		if (ru->killed && mono_diff_ms(ru->killed_at, now) >= RUNNER_STUCK_MS)
			fn(arg, ru->process);
	}
}

void
runners_abandon(struct runners *r, const char *run_id)
{
	struct runner *ru = map_get(r->by_run, run_id);

	if (ru == NULL)
		return;
	kill_runner(ru);
	ru->abandoned = 1;
	runners_wake(r);
}

static struct runner *
next_abandoned(const struct runners *r)
{
	void *each;

	for (size_t at = 0; map_next(r->by_run, &at, NULL, &each);)
		if (((const struct runner *)each)->abandoned)
			return each;
	return NULL;
}

static void
give_up_abandoned(struct runners *r)
{
	static const struct process_end abandoned = { .abandoned = 1 };
	struct runner *ru;

	while ((ru = next_abandoned(r)) != NULL) {
		struct process *p = ru->process;

		ru->abandoned = 0;
		/* Without memory it is found again by its lock, and given up again. */
		(void)map_set(r->abandoned, process_id(p)->spawn_id, r);
		runner_on_end(ru, p, &abandoned);
		process_free(p);
	}
}

/* A trial that lives has claimed: nobody tells the supervisor of that. */
static void
watch_trial(struct runners *r)
{
	struct mono_time now = clock_mono();
	void *each;

	for (size_t at = 0; map_next(r->by_run, &at, NULL, &each);) {
		struct runner *ru = each;

		if (!ru->trial ||
		    mono_diff_ms(process_started(ru->process), now) < TRIAL_WELL_MS)
			continue;
		ru->trial = 0;
		slots_trial_over(&r->sup->slots);
		slots_note_success(&r->sup->slots);
	}
}

void
runners_wake(struct runners *r)
{
	(void)actor_timer_set(r->pump, 0);
}

static void
on_pump(void *arg)
{
	struct runners *r = arg;

	give_up_abandoned(r);
	watch_trial(r);
	runners_pump(r);
}

void
runners_kill_all(struct runners *r)
{
	void *each;

	for (size_t at = 0; map_next(r->by_run, &at, NULL, &each);)
		kill_runner(each);
}
