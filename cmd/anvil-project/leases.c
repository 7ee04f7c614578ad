#include "cmd/anvil-project/leases.h"

#include <string.h>
#include <sys/queue.h>

#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/shard.h"
#include "cmd/anvil-project/takeover.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define RETURN_MS     250  /* for a run to come back after its connection ended */
#define ASK_AGAIN_MS  1000 /* when the supervisor did not answer                */
#define ASK_DEADLINE  5000
#define KILL_DEADLINE 60000 /* parked until the process has been reaped          */
#define HOW_FENCED    "stopped answering and was killed"

struct leases {
	struct shard *shard;
	LIST_HEAD(, ask) asks;       /* in flight */
	struct map *by_run;          /* run id -> struct lease, owned */
	struct actor_timer *returns; /* runs without a channel are asked about then */
};

static void on_returns(void *arg);

struct leases *
leases_new(struct shard *s)
{
	struct leases *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->shard = s;
	LIST_INIT(&l->asks);
	l->by_run = map_new();
	l->returns = actor_timer_new(s->actor, on_returns, l);
	return l->by_run != NULL && l->returns != NULL ? l : leases_free(l);
}

/* What an answer is about: the lease may have gone, or be another one, when it comes. */
struct ask {
	LIST_ENTRY(ask) entry;
	struct leases *owner; /* NULL: the shard has gone */
	char run_id[ID_SIZE];
	char lease_id[ID_HEX32_SIZE];
	int kill;
};

struct leases *
leases_free(struct leases *l)
{
	struct ask *q;
	void *each;

	if (l == NULL)
		return NULL;
	while ((q = LIST_FIRST(&l->asks)) != NULL) {
		LIST_REMOVE(q, entry);
		q->owner = NULL;
	}
	if (l->by_run != NULL)
		for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);)
			free(each);
	map_free(l->by_run);
	actor_timer_free(l->returns);
	free(l);
	return NULL;
}

int
leases_grant(struct leases *l, const struct ledger_run *run, struct rpc_peer *channel)
{
	struct lease *le = map_get(l->by_run, run->run_id);
	int r;

	if (le == NULL) {
		le = mem_calloc(1, sizeof(*le));
		if (le == NULL)
			return E_NOMEM;
		r = map_set(l->by_run, run->run_id, le);
		if (r < 0) {
			free(le);
			return r;
		}
	}
	/* What is still out about an earlier lease will not be taken for an answer about this
	 * one, so it must not keep this one from being asked about. */
	if (strcmp(le->lease_id, run->lease_id) != 0)
		le->asking = 0;
	le->magic = LEASE_MAGIC;
	le->shard = l->shard;
	(void)snprintf(le->run_id, sizeof(le->run_id), "%s", run->run_id);
	(void)snprintf(le->project_id, sizeof(le->project_id), "%s", run->project_id);
	(void)snprintf(le->lease_id, sizeof(le->lease_id), "%s", run->lease_id);
	(void)snprintf(le->spawn_id, sizeof(le->spawn_id), "%s", run->spawn_id);
	le->until = mono_add_ms(clock_mono(), LEDGER_LEASE_MS);
	le->channel = channel;
	if (channel == NULL && !actor_timer_is_set(l->returns))
		(void)actor_timer_set(l->returns, ASK_AGAIN_MS);
	return 0;
}

struct lease *
leases_find(const struct leases *l, const char *run_id)
{
	return map_get(l->by_run, run_id);
}

void
leases_drop(struct leases *l, const char *run_id, const char *lease_id)
{
	struct lease *le = map_get(l->by_run, run_id);

	if (le == NULL || strcmp(le->lease_id, lease_id) != 0)
		return;
	(void)map_remove(l->by_run, run_id);
	le->magic = 0;
	free(le);
}

void
leases_drop_project(struct leases *l, const char *project_id)
{
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		struct lease *le = each;

		if (strcmp(le->project_id, project_id) == 0)
			leases_drop(l, le->run_id, le->lease_id);
	}
}

int
leases_busy(const struct leases *l, const char *project_id)
{
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		const struct lease *le = each;

		if (le->asking && strcmp(le->project_id, project_id) == 0)
			return 1;
	}
	return 0;
}

size_t
leases_count(const struct leases *l)
{
	return map_count(l->by_run);
}

/* ---- asking the supervisor ---- */

static struct ask *
ask_new(struct leases *l, const struct lease *le, int kill)
{
	struct ask *q = mem_calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->owner = l;
	LIST_INSERT_HEAD(&l->asks, q, entry);
	memcpy(q->run_id, le->run_id, sizeof(q->run_id));
	memcpy(q->lease_id, le->lease_id, sizeof(q->lease_id));
	q->kill = kill;
	return q;
}

static void
ask_free(struct ask *q)
{
	if (q->owner != NULL)
		LIST_REMOVE(q, entry);
	free(q);
}
DEFINE_CLEANUP(struct ask *, ask_free)

/* The lease that was asked about, if it is still the same. */
static struct lease *
ask_lease(const struct ask *q)
{
	struct lease *le = q->owner != NULL ? leases_find(q->owner, q->run_id) : NULL;

	if (le == NULL || strcmp(le->lease_id, q->lease_id) != 0)
		return NULL;
	le->asking = 0;
	return le;
}

static void
is_gone(struct lease *le, const struct runner_how *how, int killed)
{
	char text[TAKEOVER_HOW_SIZE];

	if (killed && how->has_signal)
		(void)snprintf(text, sizeof(text), "%s", HOW_FENCED);
	else
		convert_how_text(how, text, sizeof(text));
	takeover_begin(le->shard->takeovers, le->run_id, le->lease_id, text);
}

static void
ask_later(struct leases *l)
{
	if (!actor_timer_is_set(l->returns))
		(void)actor_timer_set(l->returns, ASK_AGAIN_MS);
}

static void
on_status(void *arg, int err, const struct supervisor_run_status_result *res)
{
	CLEANUP(ask_freep) struct ask *q = arg;
	struct lease *le = ask_lease(q);

	CRASH_POINT("lease_holder_known");
	if (le == NULL)
		return;
	/* While it was asked about, its expiry did not count: it does again. */
	shard_wake(q->owner->shard);
	if (err < 0)
		ask_later(q->owner);
	else if (res->kind == SUPERVISOR_RUN_STATUS_GONE)
		is_gone(le, &res->u.gone.how, 0);
}

static void
on_killed(void *arg, int err, const struct supervisor_kill_run_result *res)
{
	CLEANUP(ask_freep) struct ask *q = arg;
	struct lease *le = ask_lease(q);

	CRASH_POINT("lease_holder_killed");
	if (le == NULL)
		return;
	shard_wake(q->owner->shard);
	if (err < 0)
		ask_later(q->owner);
	else
		is_gone(le, &res->u.gone.how, 1);
}

static void
ask(struct leases *l, struct lease *le, int kill)
{
	struct rpc_peer *p = shard_supervisor(l->shard);
	struct rpc_call_opts opts = { .deadline_ms = kill ? KILL_DEADLINE : ASK_DEADLINE };
	struct supervisor_run_status_params status = { le->run_id, le->spawn_id };
	struct supervisor_kill_run_params killing = { le->run_id, le->spawn_id };
	struct ask *q;
	int r;

	if (le->asking)
		return;
	if (moves_holds(l->shard->moves, le->project_id)) {
		ask_later(l); /* or who has it by then does */
		return;
	}
	q = p != NULL ? ask_new(l, le, kill) : NULL;
	if (q == NULL) {
		ask_later(l);
		return;
	}
	r = kill ? supervisor_kill_run_call(p, &opts, &killing, on_killed, q)
		 : supervisor_run_status_call(p, &opts, &status, on_status, q);
	if (r < 0) {
		ask_free(q);
		ask_later(l);
		return;
	}
	le->asking = 1;
}

static void
on_returns(void *arg)
{
	struct leases *l = arg;
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		struct lease *le = each;

		if (le->channel == NULL)
			ask(l, le, 0);
	}
}

void
leases_channel_gone(struct leases *l, const struct rpc_peer *channel)
{
	int any = 0;
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		struct lease *le = each;

		if (le->channel != channel)
			continue;
		le->channel = NULL;
		any = 1;
	}
	if (any)
		(void)actor_timer_set(l->returns, RETURN_MS);
}

void
leases_ask_all(struct leases *l)
{
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);)
		ask(l, each, 0);
}

/* ---- time ---- */

void
leases_excuse_all(struct leases *l)
{
	struct mono_time until = mono_add_ms(clock_mono(), LEDGER_LEASE_MS);
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);)
		((struct lease *)each)->until = until;
}

void
leases_expire(struct leases *l, struct mono_time now)
{
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		struct lease *le = each;

		if (now.us >= le->until.us)
			ask(l, le, 1);
	}
}

int
leases_next(const struct leases *l, struct mono_time *ret)
{
	int any = 0;
	void *each;

	for (size_t at = 0; map_next(l->by_run, &at, NULL, &each);) {
		const struct lease *le = each;

		if (le->asking)
			continue;
		if (!any || le->until.us < ret->us)
			*ret = le->until;
		any = 1;
	}
	return any;
}
