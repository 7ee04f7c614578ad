/* project.* for runs: claim, heartbeat, commit, release, settlement; and the supervisor's word
 * that a runner has ended (spec project 6, 7, 9, 11, 12). */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/dispatcher.h"
#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/shard.h"
#include "cmd/anvil-project/takeover.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* ---- claim ---- */

static int
answer_claimed(struct shard *s, struct turn *t, const struct ledger_run *run,
    struct project_claim_run_claimed *ret)
{
	struct ledger_project project;
	int r = ledger_project_get(t->store, t->arena, run->project_id, &project);

	if (r < 0)
		return r == E_NOENT ? E_CORRUPT : r;
	ret->lease_id = run->lease_id;
	ret->lease_epoch = run->lease_epoch;
	ret->lease_ms = LEDGER_LEASE_MS;
	ret->heartbeat_ms = LEDGER_HEARTBEAT_MS;
	ret->has_cancel_requested_at = run->cancel_requested_at != 0;
	ret->cancel_requested_at = run->cancel_requested_at;
	if (project.token.ciphertext != NULL) {
		struct sealed_value *v = arena_alloc(t->arena, sizeof(*v));

		if (v == NULL)
			return E_NOMEM;
		*v = (struct sealed_value) { project.token.ciphertext, project.token.nonce,
			project.token.key_version };
		ret->repo_token = v;
	}
	r = convert_snapshot(run, &project, &ret->snapshot);
	/* In memory at once: should the batch be lost, it runs out and finds no row. */
	return r < 0 ? r : leases_grant(s->leases, run, t->peer);
}

int
project_claim_run(struct shard *s, struct turn *t, const struct project_claim_run_params *p,
    struct project_claim_run_result *ret)
{
	struct ledger_claim claim;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_CLAIM_RUN, ret))
		return r;
	r = ledger_claim_run(t->store, t->arena, p->run_id, p->spawn_id, t->now_ms, &claim);
	if (r < 0)
		return r;
	if (!claim.claimed) {
		log_event(LOG_LEVEL_INFO, "stale_claim", LOG_STR("runId", p->run_id),
		    LOG_STR("projectId", p->project_id),
		    LOG_STR("reason", ledger_stale_name(claim.stale)));
		ret->kind = PROJECT_CLAIM_RUN_STALE;
		return stale_reason_parse(ledger_stale_name(claim.stale), &ret->u.stale.reason);
	}
	ret->kind = PROJECT_CLAIM_RUN_CLAIMED;
	log_event(LOG_LEVEL_INFO, "run_claimed", LOG_STR("runId", p->run_id),
	    LOG_STR("projectId", p->project_id), LOG_INT("leaseEpoch", claim.run.lease_epoch));
	return answer_claimed(s, t, &claim.run, &ret->u.claimed);
}

/* ---- what a lease holder says ---- */

static int
answer_lost(const char *run_id, const char *method, enum ledger_lost reason, struct lost *ret)
{
	log_event(LOG_LEVEL_WARN, "lease_lost", LOG_STR("runId", run_id),
	    LOG_STR("reason", ledger_lost_name(reason)), LOG_STR("method", method));
	return convert_lost(reason, ret);
}

/* It counts although the commit of its batch may yet fail, and makes its connection the one over
 * which the run is told things. */
static int
renew(struct shard *s, const struct turn *t, const struct ledger_run *run)
{
	return leases_grant(s->leases, run, t->peer);
}

static int
answer_current(const struct ledger_run *run, struct project_heartbeat_current *ret)
{
	ret->lease_ms = LEDGER_LEASE_MS;
	ret->has_cancel_requested_at = run->cancel_requested_at != 0;
	ret->cancel_requested_at = run->cancel_requested_at;
	return ledger_status_parse(ledger_state_name(run->state), &ret->status) < 0 ? E_CORRUPT
										    : 0;
}

/* Of a frozen project nothing is written: what is new comes again with the next one. */
static int
hear(struct turn *t, const struct project_heartbeat_params *p, struct ledger_held *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_move here;
	enum ledger_public status;
	int r = ledger_move_get(t->store, p->project_id, &here);

	if (r < 0)
		return r;
	if (ledger_public_parse(run_status_name(p->status), &status) < 0)
		return E_PARAMS;
	return here.where == LEDGER_FROZEN
	    ? ledger_check_lease(t->store, t->arena, p->run_id, p->lease_id, ret)
	    : ledger_heartbeat(&at, p->run_id, p->lease_id, status,
		  p->has_started_at ? p->started_at : 0, ret);
}

int
project_heartbeat(struct shard *s, struct turn *t, const struct project_heartbeat_params *p,
    struct project_heartbeat_result *ret)
{
	struct ledger_held held;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_HEARTBEAT, ret))
		return r;
	r = hear(t, p, &held);
	if (r < 0)
		return r;
	if (held.lost) {
		ret->kind = PROJECT_HEARTBEAT_LOST;
		return answer_lost(p->run_id, "project.heartbeat", held.reason, &ret->u.lost);
	}
	r = renew(s, t, &held.run);
	if (r < 0)
		return r;
	ret->kind = PROJECT_HEARTBEAT_CURRENT;
	r = answer_current(&held.run, &ret->u.current);
	return r < 0 ? r : shard_wake_after(s, t);
}

int
project_record_commit(struct shard *s, struct turn *t,
    const struct project_record_commit_params *p, struct project_record_commit_result *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_held held;
	int conflict, r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_RECORD_COMMIT, ret))
		return r;
	r = ledger_record_commit(&at, p->run_id, p->lease_id, p->commit_sha, &held, &conflict);
	if (r < 0)
		return r;
	if (held.lost) {
		ret->kind = PROJECT_RECORD_COMMIT_LOST;
		return answer_lost(
		    p->run_id, "project.recordCommit", held.reason, &ret->u.lost);
	}
	r = renew(s, t, &held.run);
	if (r < 0)
		return r;
	if (conflict) {
		ret->kind = PROJECT_RECORD_COMMIT_COMMIT_CONFLICT;
		return 0;
	}
	ret->kind = PROJECT_RECORD_COMMIT_RECORDED;
	log_event(LOG_LEVEL_INFO, "commit_recorded", LOG_STR("runId", p->run_id),
	    LOG_STR("projectId", p->project_id), LOG_STR("commitSha", p->commit_sha));
	return shard_wake_after(s, t);
}

/* ---- the end of a lease ---- */

struct ended {
	struct shard *shard;
	char run_id[ID_SIZE];
	char lease_id[ID_HEX32_SIZE];
};

static void
forget_lease(void *arg)
{
	CLEANUP_FREE struct ended *e = arg;

	leases_drop(e->shard->leases, e->run_id, e->lease_id);
	shard_wake(e->shard);
}

static int
forget_after(struct shard *s, struct turn *t, const char *run_id, const char *lease_id)
{
	struct ended *e = mem_calloc(1, sizeof(*e));
	int r;

	if (e == NULL)
		return E_NOMEM;
	e->shard = s;
	(void)snprintf(e->run_id, sizeof(e->run_id), "%s", run_id);
	(void)snprintf(e->lease_id, sizeof(e->lease_id), "%s", lease_id);
	r = turn_after_commit(t, forget_lease, e, free);
	if (r < 0)
		free(e);
	return r;
}

int
project_release_run(struct shard *s, struct turn *t, const struct project_release_run_params *p,
    struct project_release_run_result *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	enum ledger_released released;
	enum ledger_lost lost;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_RELEASE_RUN, ret))
		return r;
	r = ledger_release_run(
	    &at, p->run_id, p->lease_id, release_reason_name(p->reason), &released, &lost);
	if (r < 0)
		return r;
	ret->kind = PROJECT_RELEASE_RUN_REFUSED;
	switch (released) {
	case LEDGER_RELEASED:
		ret->kind = PROJECT_RELEASE_RUN_RELEASED;
		log_event(LOG_LEVEL_INFO, "run_released", LOG_STR("runId", p->run_id),
		    LOG_STR("projectId", p->project_id));
		return forget_after(s, t, p->run_id, p->lease_id);
	case LEDGER_REFUSED_CANCEL_REQUESTED:
		ret->u.refused.reason = RELEASE_REFUSAL_CANCEL_REQUESTED;
		break;
	case LEDGER_REFUSED_STARTED: ret->u.refused.reason = RELEASE_REFUSAL_STARTED; break;
	case LEDGER_RELEASE_LOST:
		ret->kind = PROJECT_RELEASE_RUN_LOST;
		return answer_lost(p->run_id, "project.releaseRun", lost, &ret->u.lost);
	}
	return 0;
}

static int
end_of(const struct project_finalize_run_params *p, struct ledger_end *e)
{
	*e = (struct ledger_end) { .started_at = p->has_started_at ? p->started_at : 0,
		.finished_at = p->finished_at,
		.has_exit_code = p->has_exit_code,
		.exit_code = p->exit_code,
		.failure_code = p->has_failure_code ? failure_code_name(p->failure_code) : NULL,
		.error_message = p->error_message };
	switch (p->status) {
	case RUN_STATUS_PASSED: e->state = LEDGER_PASSED; break;
	case RUN_STATUS_FAILED: e->state = LEDGER_FAILED; break;
	case RUN_STATUS_CANCELED: e->state = LEDGER_CANCELED; break;
	default: return E_PARAMS;
	}
	return ledger_end_is_whole(e) ? 0 : E_PARAMS;
}

static void
log_settled(const struct ledger_run *run)
{
	log_event(LOG_LEVEL_INFO, "run_settled", LOG_STR("runId", run->run_id),
	    LOG_STR("projectId", run->project_id),
	    LOG_STR("status", ledger_state_name(run->state)),
	    LOG_STR("errorCode", run->failure_code),
	    LOG_INT("durationMs", run->finished_at - run->queued_at));
}

int
project_finalize_run(struct shard *s, struct turn *t,
    const struct project_finalize_run_params *p, struct project_finalize_run_result *ret)
{
	struct ledger_settlement st;
	struct ledger_end e;
	int r = end_of(p, &e);

	if (r < 0)
		return turn_fail(
		    t, r, "expected passed, failed or canceled, with what belongs to it");
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_FINALIZE_RUN, ret))
		return r;
	r = ledger_finalize_run(t->store, t->arena, p->run_id, p->lease_id, &e, t->now_ms, &st);
	if (r < 0)
		return r;
	switch (st.kind) {
	case LEDGER_SETTLED:
		ret->kind = PROJECT_FINALIZE_RUN_SETTLED;
		if (!st.again) {
			log_settled(&st.run);
			shard_note_promoted(&st.promoted);
		}
		return forget_after(s, t, p->run_id, p->lease_id);
	case LEDGER_SETTLE_CONFLICT:
		log_event(LOG_LEVEL_ERROR, "settlement_conflict", LOG_STR("runId", p->run_id),
		    LOG_STR("status", ledger_state_name(st.run.state)),
		    LOG_STR("wanted", run_status_name(p->status)));
		ret->kind = PROJECT_FINALIZE_RUN_CONFLICT;
		return run_status_parse(
		    ledger_public_name(st.run.public_state), &ret->u.conflict.status);
	case LEDGER_SETTLE_LOST: break;
	}
	ret->kind = PROJECT_FINALIZE_RUN_LOST;
	return answer_lost(p->run_id, "project.finalizeRun", st.lost, &ret->u.lost);
}

/* ---- the supervisor's word ---- */

struct gone {
	struct shard *shard;
	char run_id[ID_SIZE];
	char lease_id[ID_HEX32_SIZE];
	char how[TAKEOVER_HOW_SIZE];
};

static void
begin_takeover(void *arg)
{
	CLEANUP_FREE struct gone *g = arg;

	takeover_begin(g->shard->takeovers, g->run_id, g->lease_id, g->how);
}

static int
takeover_after(struct shard *s, struct turn *t, const struct ledger_run *run, const char *how)
{
	struct gone *g = mem_calloc(1, sizeof(*g));
	int r;

	if (g == NULL)
		return E_NOMEM;
	r = ledger_event_text(t->store, run->run_id, t->now_ms, "runner_gone", "how", how);
	g->shard = s;
	(void)snprintf(g->run_id, sizeof(g->run_id), "%s", run->run_id);
	(void)snprintf(g->lease_id, sizeof(g->lease_id), "%s", run->lease_id);
	(void)snprintf(g->how, sizeof(g->how), "%s", how);
	if (r == 0)
		r = turn_after_commit(t, begin_takeover, g, free);
	if (r < 0)
		free(g);
	return r;
}

int
project_runner_exited(struct shard *s, struct turn *t,
    const struct project_runner_exited_params *p, struct project_runner_exited_result *ret)
{
	char how[TAKEOVER_HOW_SIZE];
	struct ledger_exit e = { .run_id = p->run_id,
		.spawn_id = p->spawn_id,
		.attempt = p->attempt,
		.rebooted = p->how.has_rebooted,
		.how = how };
	struct ledger_failure f;
	struct ledger_run run;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_RUNNER_EXITED, ret))
		return r;
	r = ledger_run_get(t->store, t->arena, p->run_id, &run);
	ret->kind = PROJECT_RUNNER_EXITED_OK;
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	convert_how_text(&p->how, how, sizeof(how));
	if (ledger_is_claimed(run.state) && strcmp(run.spawn_id, p->spawn_id) == 0)
		return takeover_after(s, t, &run, how);
	dispatcher_release(s->dispatcher, p->run_id);
	r = ledger_runner_exited(t->store, t->arena, &e, t->now_ms, &f);
	if (r == 0 && f.failed)
		shard_note_promoted(&f.promoted);
	if (r == 0 && f.counted)
		log_event(LOG_LEVEL_WARN, "run_dispatch_failed", LOG_STR("runId", p->run_id),
		    LOG_STR("projectId", p->project_id), LOG_INT("attempt", f.attempt),
		    LOG_STR("reason", how));
	return r < 0 ? r : shard_wake_after(s, t);
}
