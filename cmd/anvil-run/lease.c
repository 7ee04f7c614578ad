#include "cmd/anvil-run/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum want { WANT_NOTHING, WANT_COMMIT, WANT_RELEASE, WANT_FINALIZE };

struct lease {
	uint32_t magic;
#define LEASE_MAGIC 0x1f6ac9d3
	struct actor *actor;
	struct lease_who who;
	struct lease_ops ops;
	void *arg;
	struct link *link; /* The actor's. */
	int64_t moved_to;  /* Shard to turn to, from the loop; -1: stay. */
	struct actor_timer *turn;
	/* The claim. */
	char id[ID_HEX32_SIZE]; /* "" before it. */
	int claiming;           /* A claim is wanted. */
	int claim_sent;
	int failures; /* In a row. */
	int doubt;    /* One of them may be committed: the ledger has a lease of ours. */
	struct mono_time doubt_since;
	struct actor_timer *retry;
	/* Heartbeats. */
	enum run_status status;
	int64_t started_at_ms;
	int64_t every_ms; /* 0: none yet, or no more. */
	struct actor_timer *beat, *last;
	void (*last_fn)(void *arg);
	void *last_arg;
	unsigned last_serial;
	int outage;
	struct mono_time outage_since;
	/* What is repeated until it is answered. */
	enum want want;
	unsigned serial; /* Tells answers to an earlier one. */
	int sent;
	int64_t wait_ms;
	int64_t attempt;
	struct actor_timer *again;
	lease_answer_fn *fn;
	void *fn_arg;
	char sha[72];
	enum release_reason reason;
	struct project_finalize_run_params end;
};

/* A call under way; it may outlive what it was made for. */
struct call {
	struct lease *lease;
	unsigned serial;
};

static const struct rpc_call_opts patience = { .deadline_ms = LEASE_ANSWER_MS };

static void send_claim(struct lease *l);
static void push(struct lease *l);
static void connect_to(struct lease *l, int64_t shard);

static struct call *
call_new(struct lease *l, unsigned serial)
{
	struct call *c = mem_alloc(sizeof(*c));

	if (c != NULL)
		*c = (struct call) { l, serial };
	return c;
}

/* ---- where the project is ---- */

/* The link is not ended from inside one of its own callbacks. */
static void
turn_to(struct lease *l, int64_t shard)
{
	l->moved_to = shard;
	(void)actor_timer_set(l->turn, 0);
}

static struct rpc_peer *
peer(const struct lease *l)
{
	return l->link != NULL ? link_peer(l->link) : NULL;
}

static void
on_turn(void *arg)
{
	struct lease *l = arg;
	int64_t shard = l->moved_to;

	OBJ_CHECK(l, LEASE_MAGIC);
	l->moved_to = -1;
	if (shard >= 0 && (l->link == NULL || shard != l->who.shard))
		connect_to(l, shard);
}

/* ---- the claim ---- */

static const int64_t claim_waits_ms[LEASE_CLAIM_TRIES - 1] = { 100, 500, 1000, 2000 };

/* Who ends after a claim that came true costs the run its result, though nothing was executed. */
static int
may_try_again(const struct lease *l)
{
	return l->failures < LEASE_CLAIM_TRIES ||
	    (l->doubt && mono_diff_ms(l->doubt_since, clock_mono()) < LEASE_DOUBT_MS);
}

static void
claim_failed(struct lease *l, int err)
{
	size_t wait = ARRAY_LEN(claim_waits_ms) - 1;

	if ((size_t)l->failures < wait)
		wait = (size_t)l->failures;
	l->failures++;
	log_event(LOG_LEVEL_WARN, "claim_failed", LOG_STR("runId", l->who.run_id),
	    LOG_STR("projectId", l->who.project_id), LOG_INT("attempt", l->failures),
	    LOG_STR("errorCode", err_symbol(err)));
	if (may_try_again(l) && actor_timer_set(l->retry, claim_waits_ms[wait]) == 0)
		return;
	l->claiming = 0;
	l->ops.on_unclaimed(l->arg);
}

static void
claimed(struct lease *l, const struct project_claim_run_claimed *c)
{
	l->claiming = 0;
	(void)snprintf(l->id, sizeof(l->id), "%s", c->lease_id);
	l->every_ms = c->heartbeat_ms;
	/* It is alive, whatever it has to wait for before it can say `starting`. */
	l->status = RUN_STATUS_QUEUED;
	(void)actor_timer_set(l->beat, l->every_ms);
	l->ops.on_claimed(l->arg, c);
}

static int
is_doubtful(int err)
{
	return err == E_STORAGE || err == E_LINK || err == E_DEADLINE;
}

static void
on_claim(void *arg, int err, const struct project_claim_run_result *res)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	l->claim_sent = 0;
	if (!l->claiming)
		return;
	if (err < 0) {
		if (!l->doubt && is_doubtful(err)) {
			l->doubt = 1;
			l->doubt_since = clock_mono();
		}
		claim_failed(l, err);
		return;
	}
	switch (res->kind) {
	case PROJECT_CLAIM_RUN_CLAIMED: claimed(l, &res->u.claimed); break;
	case PROJECT_CLAIM_RUN_MOVED: turn_to(l, res->u.moved.shard); break;
	case PROJECT_CLAIM_RUN_MOVING:
		(void)actor_timer_set(l->retry, res->u.moving.retry_ms);
		break;
	case PROJECT_CLAIM_RUN_STALE:
		l->claiming = 0;
		l->ops.on_stale(l->arg, stale_reason_name(res->u.stale.reason));
		break;
	case PROJECT_CLAIM_RUN_NOT_FOUND:
		l->claiming = 0;
		l->ops.on_stale(l->arg, stale_reason_name(STALE_REASON_RUN_MISSING));
		break;
	}
}

static void
send_claim(struct lease *l)
{
	struct project_claim_run_params params = { l->who.project_id, l->who.run_id,
		l->who.spawn_id, (int64_t)getpid() };
	struct rpc_peer *p = peer(l);
	int err = E_LINK;

	if (l->claim_sent)
		return;
	if (p != NULL)
		err = project_claim_run_call(p, &patience, &params, on_claim, l);
	if (err < 0)
		claim_failed(l, err);
	else
		l->claim_sent = 1;
}

static void
on_retry(void *arg)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	if (l->claiming)
		send_claim(l);
}

void
lease_claim(struct lease *l)
{
	OBJ_CHECK(l, LEASE_MAGIC);
	l->claiming = 1;
	connect_to(l, l->who.shard);
}

const char *
lease_id(const struct lease *l)
{
	return l->id;
}

/* ---- heartbeats ---- */

static void
outage_begins(struct lease *l, int err)
{
	if (l->outage)
		return;
	l->outage = 1;
	l->outage_since = clock_mono();
	log_event(LOG_LEVEL_WARN, "heartbeat_outage", LOG_STR("runId", l->who.run_id),
	    LOG_STR("projectId", l->who.project_id), LOG_STR("errorCode", err_symbol(err)));
}

static void
outage_ends(struct lease *l)
{
	if (!l->outage)
		return;
	l->outage = 0;
	log_event(LOG_LEVEL_INFO, "heartbeat_restored", LOG_STR("runId", l->who.run_id),
	    LOG_STR("projectId", l->who.project_id),
	    LOG_INT("durationMs", mono_diff_ms(l->outage_since, clock_mono())));
}

static void
last_is_over(struct lease *l)
{
	void (*fn)(void *arg) = l->last_fn;

	actor_timer_stop(l->last);
	l->last_fn = NULL;
	if (fn != NULL)
		fn(l->last_arg);
}

static void
judge_heartbeat(struct lease *l, const struct project_heartbeat_result *res)
{
	switch (res->kind) {
	case PROJECT_HEARTBEAT_CURRENT:
		if (res->u.current.has_cancel_requested_at)
			l->ops.on_cancel(l->arg, res->u.current.cancel_requested_at);
		break;
	case PROJECT_HEARTBEAT_LOST:
		l->ops.on_lost(l->arg, lost_reason_name(res->u.lost.reason));
		break;
	case PROJECT_HEARTBEAT_NOT_FOUND:
		l->ops.on_lost(l->arg, lost_reason_name(LOST_REASON_RUN_MISSING));
		break;
	case PROJECT_HEARTBEAT_MOVED: turn_to(l, res->u.moved.shard); break;
	case PROJECT_HEARTBEAT_MOVING: break; /* the next one will do */
	}
}

static void
on_heartbeat(void *arg, int err, const struct project_heartbeat_result *res)
{
	struct call *c = arg;
	struct lease *l = c->lease;
	unsigned serial = c->serial;

	free(c);
	OBJ_CHECK(l, LEASE_MAGIC);
	if (err < 0) {
		outage_begins(l, err);
	} else {
		outage_ends(l);
		judge_heartbeat(l, res);
	}
	if (l->last_fn != NULL && serial == l->last_serial)
		last_is_over(l);
}

/* 0: it is on its way. */
static int
send_heartbeat(struct lease *l, unsigned serial)
{
	struct project_heartbeat_params params = { l->who.project_id, l->who.run_id, l->id,
		l->status, l->started_at_ms != 0, l->started_at_ms };
	struct rpc_peer *p = peer(l);
	struct call *c = p != NULL ? call_new(l, serial) : NULL;
	int err = p == NULL ? E_LINK : c == NULL ? E_NOMEM : 0;

	if (err == 0)
		err = project_heartbeat_call(p, &patience, &params, on_heartbeat, c);
	if (err == 0)
		return 0;
	free(c);
	outage_begins(l, err);
	return err;
}

static void
on_beat(void *arg)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	if (l->every_ms == 0)
		return;
	(void)send_heartbeat(l, 0);
	(void)actor_timer_set(l->beat, l->every_ms);
}

void
lease_report(struct lease *l, enum run_status status, int64_t started_at_ms)
{
	l->status = status;
	l->started_at_ms = started_at_ms;
	on_beat(l);
}

static void
on_last(void *arg)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	last_is_over(l);
}

void
lease_report_last(struct lease *l, void (*fn)(void *arg), void *arg)
{
	must(l->last_fn == NULL);
	l->last_fn = fn;
	l->last_arg = arg;
	l->last_serial++;
	/* Without a connection it may yet come back within the time. */
	(void)send_heartbeat(l, l->last_serial);
	if (actor_timer_set(l->last, LEASE_LAST_MS) < 0)
		last_is_over(l);
}

void
lease_be_silent(struct lease *l)
{
	l->every_ms = 0;
	actor_timer_stop(l->beat);
}

/* ---- calls that are repeated ---- */

static void
answer(struct lease *l, enum lease_verdict v, const char *reason)
{
	lease_answer_fn *fn = l->fn;

	l->want = WANT_NOTHING;
	fn(l->fn_arg, v, reason);
}

static void
push_later(struct lease *l, int64_t ms)
{
	(void)actor_timer_set(l->again, ms);
}

static void
unanswered(struct lease *l, int err)
{
	if (l->want == WANT_FINALIZE)
		log_event(LOG_LEVEL_WARN, "settlement_unanswered",
		    LOG_STR("runId", l->who.run_id), LOG_STR("projectId", l->who.project_id),
		    LOG_INT("attempt", l->attempt), LOG_STR("errorCode", err_symbol(err)));
	push_later(l, l->wait_ms);
	l->wait_ms = min_i64(l->wait_ms * 2, LEASE_AGAIN_MAX_MS);
}

/* Whose answer is it?  NULL: nobody's any more. */
static struct lease *
heard(struct call *c, int err)
{
	struct lease *l = c->lease;
	int mine = l->want != WANT_NOTHING && c->serial == l->serial;

	free(c);
	OBJ_CHECK(l, LEASE_MAGIC);
	if (!mine)
		return NULL;
	l->sent = 0;
	if (err == 0)
		return l;
	unanswered(l, err);
	return NULL;
}

static void
on_commit(void *arg, int err, const struct project_record_commit_result *res)
{
	struct lease *l = heard(arg, err);

	if (l == NULL)
		return;
	switch (res->kind) {
	case PROJECT_RECORD_COMMIT_RECORDED: answer(l, LEASE_RECORDED, ""); break;
	case PROJECT_RECORD_COMMIT_COMMIT_CONFLICT: answer(l, LEASE_COMMIT_CONFLICT, ""); break;
	case PROJECT_RECORD_COMMIT_LOST:
		answer(l, LEASE_LOST, lost_reason_name(res->u.lost.reason));
		break;
	case PROJECT_RECORD_COMMIT_NOT_FOUND:
		answer(l, LEASE_LOST, lost_reason_name(LOST_REASON_RUN_MISSING));
		break;
	case PROJECT_RECORD_COMMIT_MOVED: turn_to(l, res->u.moved.shard); break;
	case PROJECT_RECORD_COMMIT_MOVING: push_later(l, res->u.moving.retry_ms); break;
	}
}

static void
on_release(void *arg, int err, const struct project_release_run_result *res)
{
	struct lease *l = heard(arg, err);

	if (l == NULL)
		return;
	switch (res->kind) {
	case PROJECT_RELEASE_RUN_RELEASED: answer(l, LEASE_RELEASED, ""); break;
	case PROJECT_RELEASE_RUN_REFUSED:
		answer(l,
		    res->u.refused.reason == RELEASE_REFUSAL_CANCEL_REQUESTED
			? LEASE_REFUSED_CANCEL
			: LEASE_REFUSED_STARTED,
		    release_refusal_name(res->u.refused.reason));
		break;
	case PROJECT_RELEASE_RUN_LOST:
		/* A repeat of one whose answer did not come. */
		answer(l,
		    res->u.lost.reason == LOST_REASON_RELEASED ? LEASE_RELEASED : LEASE_LOST,
		    lost_reason_name(res->u.lost.reason));
		break;
	case PROJECT_RELEASE_RUN_NOT_FOUND:
		answer(l, LEASE_LOST, lost_reason_name(LOST_REASON_RUN_MISSING));
		break;
	case PROJECT_RELEASE_RUN_MOVED: turn_to(l, res->u.moved.shard); break;
	case PROJECT_RELEASE_RUN_MOVING: push_later(l, res->u.moving.retry_ms); break;
	}
}

static void
on_finalize(void *arg, int err, const struct project_finalize_run_result *res)
{
	struct lease *l = heard(arg, err);

	if (l == NULL)
		return;
	switch (res->kind) {
	case PROJECT_FINALIZE_RUN_SETTLED: answer(l, LEASE_SETTLED, ""); break;
	case PROJECT_FINALIZE_RUN_CONFLICT:
		answer(l, LEASE_CONFLICT, run_status_name(res->u.conflict.status));
		break;
	case PROJECT_FINALIZE_RUN_LOST:
		answer(l, LEASE_LOST, lost_reason_name(res->u.lost.reason));
		break;
	case PROJECT_FINALIZE_RUN_NOT_FOUND:
		answer(l, LEASE_LOST, lost_reason_name(LOST_REASON_RUN_MISSING));
		break;
	case PROJECT_FINALIZE_RUN_MOVED: turn_to(l, res->u.moved.shard); break;
	case PROJECT_FINALIZE_RUN_MOVING: push_later(l, res->u.moving.retry_ms); break;
	}
}

static int
send_wanted(struct lease *l, struct rpc_peer *p, struct call *c)
{
	struct project_record_commit_params commit = { l->who.project_id, l->who.run_id, l->id,
		l->sha };
	struct project_release_run_params release = { l->who.project_id, l->who.run_id, l->id,
		l->reason };

	switch (l->want) {
	case WANT_COMMIT:
		return project_record_commit_call(p, &patience, &commit, on_commit, c);
	case WANT_RELEASE:
		return project_release_run_call(p, &patience, &release, on_release, c);
	case WANT_FINALIZE:
		return project_finalize_run_call(p, &patience, &l->end, on_finalize, c);
	case WANT_NOTHING: break;
	}
	base_bug(__FILE__, __LINE__, "nothing is wanted");
}

static void
push(struct lease *l)
{
	struct rpc_peer *p = peer(l);
	struct call *c;
	int err;

	if (l->want == WANT_NOTHING || l->sent)
		return;
	actor_timer_stop(l->again);
	l->attempt++;
	c = p != NULL ? call_new(l, l->serial) : NULL;
	err = p == NULL ? E_LINK : c == NULL ? E_NOMEM : send_wanted(l, p, c);
	if (err == 0) {
		l->sent = 1;
		return;
	}
	free(c);
	unanswered(l, err);
}

static void
on_again(void *arg)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	push(l);
}

static void
begin(struct lease *l, enum want want, lease_answer_fn *fn, void *arg)
{
	lease_forget(l);
	l->want = want;
	l->fn = fn;
	l->fn_arg = arg;
	l->wait_ms = LEASE_AGAIN_MS;
	l->attempt = 0;
	push(l);
}

void
lease_forget(struct lease *l)
{
	l->want = WANT_NOTHING;
	l->serial++;
	l->sent = 0;
	actor_timer_stop(l->again);
}

void
lease_record_commit(struct lease *l, const char *sha, lease_answer_fn *fn, void *arg)
{
	(void)snprintf(l->sha, sizeof(l->sha), "%s", sha);
	begin(l, WANT_COMMIT, fn, arg);
}

void
lease_release(struct lease *l, enum release_reason reason, lease_answer_fn *fn, void *arg)
{
	l->reason = reason;
	begin(l, WANT_RELEASE, fn, arg);
}

void
lease_finalize(struct lease *l, const struct project_finalize_run_params *end,
    lease_answer_fn *fn, void *arg)
{
	l->end = *end;
	l->end.project_id = l->who.project_id;
	l->end.run_id = l->who.run_id;
	l->end.lease_id = l->id;
	begin(l, WANT_FINALIZE, fn, arg);
}

/* ---- the link ---- */

static void
on_up(void *arg, struct link *link, struct rpc_peer *p)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	(void)link;
	(void)p;
	if (l->claiming) {
		actor_timer_stop(l->retry);
		send_claim(l);
		return;
	}
	/* Not only for the lease: it makes this connection the one for pushes. */
	if (l->every_ms != 0)
		on_beat(l);
	push(l);
}

static void
on_down(void *arg, struct link *link, int err)
{
	struct lease *l = arg;

	OBJ_CHECK(l, LEASE_MAGIC);
	(void)link;
	/* A claim that was under way is told by its own callback. */
	if (l->claiming && !l->claim_sent && !actor_timer_is_set(l->retry))
		claim_failed(l, err);
}

static void
connect_to(struct lease *l, int64_t shard)
{
	static const struct link_ops ops = { .on_up = on_up, .on_down = on_down };
	char address[32];

	l->who.shard = shard;
	(void)snprintf(address, sizeof(address), "project/%lld", (long long)shard);
	l->link = actor_unlink(l->actor, l->link);
	l->link = actor_link(l->actor, address, &ops, l);
	if (l->link != NULL)
		return;
	l->moved_to = shard;
	(void)actor_timer_set(l->turn, LINK_BACKOFF_MAX_MS);
}

/* ---- life ---- */

struct lease *
lease_new(struct actor *a, const struct lease_who *who, const struct lease_ops *ops, void *arg)
{
	struct lease *l = mem_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->magic = LEASE_MAGIC;
	l->actor = a;
	l->who = *who;
	l->ops = *ops;
	l->arg = arg;
	l->moved_to = -1;
	l->turn = actor_timer_new(a, on_turn, l);
	l->retry = actor_timer_new(a, on_retry, l);
	l->beat = actor_timer_new(a, on_beat, l);
	l->last = actor_timer_new(a, on_last, l);
	l->again = actor_timer_new(a, on_again, l);
	if (l->turn == NULL || l->retry == NULL || l->beat == NULL || l->last == NULL ||
	    l->again == NULL)
		return lease_free(l);
	return l;
}

struct lease *
lease_free(struct lease *l)
{
	if (l == NULL)
		return NULL;
	OBJ_CHECK(l, LEASE_MAGIC);
	actor_timer_free(l->turn);
	actor_timer_free(l->retry);
	actor_timer_free(l->beat);
	actor_timer_free(l->last);
	actor_timer_free(l->again);
	l->magic = 0;
	return mem_free(l);
}
