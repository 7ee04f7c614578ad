#include "cmd/anvild/stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/notify.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "gen/project.h"
#include "gen/run.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define ASK_AGAIN_MS 1000 /* runs that are to end, whatever has become of the question */

struct stop {
	uint32_t magic;
#define STOP_MAGIC 0x57c0ffb2
	struct supervisor *sup;
	int nsignals;
	int hard;                    /* nobody is waited for        */
	struct actor_timer *overdue; /* then it becomes hard        */
	struct actor_timer *again;   /* runs are asked to end again */
};

/* ---- ending runs ---- */

/* A question on its way; what it is about may be gone when the answer comes. */
struct question {
	struct stop *stop;
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
};

static void
cancel_at(struct stop *p, const char *project_id, const char *run_id, int64_t shard);

static void
on_canceled(void *arg, int err, const struct project_cancel_run_result *res)
{
	CLEANUP_FREE struct question *q = arg;

	/* Everything else is asked again, or has come true. */
	if (err == 0 && res->kind == PROJECT_CANCEL_RUN_MOVED)
		cancel_at(q->stop, q->project_id, q->run_id, res->u.moved.shard);
}

static struct question *
question_new(struct stop *p, const char *project_id, const char *run_id)
{
	struct question *q = mem_calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->stop = p;
	(void)snprintf(q->run_id, sizeof(q->run_id), "%s", run_id);
	(void)snprintf(q->project_id, sizeof(q->project_id), "%s", project_id);
	return q;
}

static void
cancel_at(struct stop *p, const char *project_id, const char *run_id, int64_t shard)
{
	struct project_cancel_run_params params = { project_id, run_id, "shutdown" };
	struct question *q = question_new(p, project_id, run_id);
	struct rpc_peer *peer;
	char address[32];

	(void)snprintf(address, sizeof(address), "project/%lld", (long long)shard);
	peer = actor_peer(p->sup->actor, address);
	if (q == NULL || peer == NULL ||
	    project_cancel_run_call(peer, NULL, &params, on_canceled, q) < 0)
		free(q);
}

/* A run whose connection has ended is about to be reaped, or comes back and is asked again:
 * one that has given itself back must not be canceled. */
static void
on_released(void *arg, int err, const struct run_release_result *res)
{
	CLEANUP_FREE struct question *q = arg;
	const struct process *run;

	if (err == E_LINK || (err == 0 && res->kind == RUN_RELEASE_RELEASING))
		return;
	/* At the very end the runners are still there: they are freed after all callbacks. */
	run = runners_find(q->stop->sup->runners, q->run_id);
	if (run != NULL)
		cancel_at(q->stop, q->project_id, q->run_id, process_id(run)->shard);
}

static void
release(struct stop *p, const struct process *run)
{
	static const struct run_release_params params;
	const struct process_id *id = process_id(run);
	struct rpc_peer *peer = actor_peer(p->sup->actor, id->address);
	struct question *q;

	/* Not connected yet: whether it has started a step is for it to say. */
	if (peer == NULL)
		return;
	q = question_new(p, id->project_id, id->run_id);
	if (q == NULL || run_release_call(peer, NULL, &params, on_released, q) < 0)
		free(q);
}

/* Every question may be repeated. */
static void
ask_runs(void *arg)
{
	struct stop *p = arg;
	const struct process *run;

	OBJ_CHECK(p, STOP_MAGIC);
	for (size_t at = 0; (run = runners_next(p->sup->runners, &at)) != NULL;)
		release(p, run);
	if (runners_count(p->sup->runners) != 0)
		(void)actor_timer_set(p->again, ASK_AGAIN_MS);
}

/* With the shards gone nobody could take a run's word that it gives itself back. */
static int
shards_serve(const struct supervisor *s)
{
	for (size_t i = 0; i + 1 < s->nresidents; i++)
		if (child_state(s->residents[i]) == CH_STOPPING ||
		    child_state(s->residents[i]) == CH_DOWN)
			return 0;
	return 1;
}

static void
end_runs(struct stop *p)
{
	struct supervisor *s = p->sup;

	s->stop_runs = shards_serve(s);
	if (!s->stop_runs) {
		log_event(
		    LOG_LEVEL_WARN, "runs_go_on", LOG_INT("runs", runners_count(s->runners)));
		return;
	}
	log_event(LOG_LEVEL_INFO, "runs_are_ended", LOG_INT("runs", runners_count(s->runners)));
	(void)actor_timer_set(p->overdue, STOP_RUNS_MS);
	ask_runs(p);
}

/* ---- in order ---- */

static struct child *
ingress_of(const struct supervisor *s)
{
	return s->residents[s->nresidents - 1];
}

static int
all_down(const struct supervisor *s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (child_state(s->residents[i]) != CH_DOWN)
			return 0;
	return 1;
}

/* In state CH_STOPPING it dies of it; another one first gets there. */
static void
end_child(const struct stop *p, struct child *c)
{
	if (child_state(c) != CH_STOPPING && child_state(c) != CH_DOWN)
		child_event(c, ON_STOP);
	if (p->hard && child_state(c) == CH_STOPPING)
		child_event(c, ON_TIMEOUT);
}

/* Ingress first, so that nobody is let in whom the shards could not serve, and who is being
 * served may see it through; the shards wait for runs that are to end; those that only read
 * for others go last. */
void
stop_look(struct stop *p)
{
	struct supervisor *s = p->sup;
	size_t last = s->nresidents - 1;

	if (!s->stopping || !all_down(s, last, s->nresidents))
		return;
	if (s->stop_runs && runners_count(s->runners) != 0)
		return;
	for (size_t i = 0; i < last; i++)
		end_child(p, s->residents[i]);
	if (!all_down(s, 0, s->nresidents))
		return;
	serves_stop_all(s->serves, p->hard ? SIGKILL : SIGTERM);
	if (serves_count(s->serves) == 0 && !actor_is_draining(s->actor))
		actor_drain(s->actor);
}

/* Nothing is lost that was promised: it only is not waited for. */
static void
become_hard(struct stop *p)
{
	struct supervisor *s = p->sup;

	log_event(LOG_LEVEL_WARN, "stop_hard",
	    LOG_INT("runs", s->stop_runs ? runners_count(s->runners) : 0));
	p->hard = 1;
	(void)actor_timer_set(p->overdue, STOP_HARD_MS);
	if (s->stop_runs)
		runners_kill_all(s->runners);
	end_child(p, ingress_of(s));
	for (size_t i = 0; i + 1 < s->nresidents; i++)
		if (child_state(s->residents[i]) == CH_STOPPING)
			end_child(p, s->residents[i]);
	stop_look(p);
}

/* What does not even die of SIGKILL is left to the next supervisor. */
static void
on_overdue(void *arg)
{
	struct stop *p = arg;

	OBJ_CHECK(p, STOP_MAGIC);
	if (!p->hard) {
		become_hard(p);
		return;
	}
	log_event(LOG_LEVEL_ERROR, "stop_incomplete",
	    LOG_INT("runs", runners_count(p->sup->runners)));
	actor_stop(p->sup->actor, 1);
}

void
stop_begin(struct stop *p)
{
	struct supervisor *s = p->sup;

	if (s->stopping) {
		stop_look(p);
		return;
	}
	s->stopping = 1;
	notify_send("STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", LOG_INT("runs", runners_count(s->runners)));
	(void)actor_timer_set(p->overdue, STOP_MS);
	child_event(ingress_of(s), ON_STOP);
	if (s->stop_runs)
		end_runs(p);
	stop_look(p);
}

void
stop_asked(struct stop *p)
{
	OBJ_CHECK(p, STOP_MAGIC);
	switch (++p->nsignals) {
	case 1: stop_begin(p); break;
	case 2:
		if (!p->sup->stop_runs)
			end_runs(p);
		break;
	default: become_hard(p); break;
	}
}

/* ---- life ---- */

struct stop *
stop_new(struct supervisor *s)
{
	struct stop *p = mem_calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->magic = STOP_MAGIC;
	p->sup = s;
	p->overdue = actor_timer_new(s->actor, on_overdue, p);
	p->again = actor_timer_new(s->actor, ask_runs, p);
	return p->overdue != NULL && p->again != NULL ? p : stop_free(p);
}

struct stop *
stop_free(struct stop *p)
{
	if (p == NULL)
		return NULL;
	actor_timer_free(p->overdue);
	actor_timer_free(p->again);
	p->magic = 0;
	free(p);
	return NULL;
}
