#include "lib/ledger/lease.h"

#include <string.h>
#include <strings.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

const char *
ledger_stale_name(enum ledger_stale r)
{
	static const char *const names[] = { "run_missing", "canceled", "run_active",
		"already_terminal", "superseded", "not_currently_executable" };

	return names[r];
}

const char *
ledger_lost_name(enum ledger_lost r)
{
	static const char *const names[] = { "run_missing", "taken_over", "released",
		"terminal" };

	return names[r];
}

/* ---- claim ---- */

/* Why a run that is not executable cannot be claimed by this process. */
static enum ledger_stale
stale_reason(const struct ledger_run *r, int other_head)
{
	if (r->state == LEDGER_CANCELED)
		return LEDGER_STALE_CANCELED;
	if (ledger_is_claimed(r->state))
		return LEDGER_STALE_RUN_ACTIVE;
	if (ledger_is_terminal(r->state))
		return LEDGER_STALE_ALREADY_TERMINAL;
	return other_head ? LEDGER_STALE_SUPERSEDED : LEDGER_STALE_NOT_CURRENTLY_EXECUTABLE;
}

static int
claim_now(struct store *s, struct arena *a, struct ledger_run *r, const char *spawn_id,
    int64_t now_ms)
{
	char lease[ID_HEX32_SIZE];
	int rc;

	id_hex32(lease);
	r->lease_id = arena_strdup(a, lease);
	if (r->lease_id == NULL)
		return E_NOMEM;
	r->state = LEDGER_ACTIVE;
	r->dispatch = LEDGER_DISPATCH_STARTED;
	r->dispatch_retry_at = 0;
	r->position = 0;
	r->lease_epoch++;
	r->lease_expires_at = now_ms + LEDGER_LEASE_MS;
	r->spawn_id = spawn_id;
	r->claimed_at = now_ms;
	rc = ledger_run_save(s, r);
	return rc < 0 ? rc
		      : ledger_event_text(s, r->run_id, now_ms, "claimed", "spawnId", spawn_id);
}

int
ledger_claim_run(struct store *s, struct arena *a, const char *run_id, const char *spawn_id,
    int64_t now_ms, struct ledger_claim *ret)
{
	struct ledger_run *r = &ret->run, head;
	int rc;

	*ret = (struct ledger_claim) { 0 };
	rc = ledger_run_get(s, a, run_id, r);
	if (rc == E_NOENT) {
		ret->stale = LEDGER_STALE_RUN_MISSING;
		return 0;
	}
	if (rc < 0)
		return rc;
	if (ledger_is_claimed(r->state) && strcmp(r->spawn_id, spawn_id) == 0) {
		ret->claimed = ret->again = 1;
		return 0;
	}
	if (r->state == LEDGER_EXECUTABLE) {
		ret->claimed = 1;
		return claim_now(s, a, r, spawn_id, now_ms);
	}
	rc = ledger_run_head(s, a, r->project_id, &head);
	if (rc < 0 && rc != E_NOENT)
		return rc;
	ret->stale = stale_reason(r, rc == 0 && strcmp(head.run_id, run_id) != 0);
	return 0;
}

/* ---- the lease ---- */

/* The row as it is says how a lease ended: only a takeover leaves a claimed row without one,
 * and another lease, or none, comes after a release alone. */
static enum ledger_lost
lost_reason(const struct ledger_run *r, const char *lease_id)
{
	if (!ledger_is_terminal(r->state))
		return LEDGER_LOST_RELEASED;
	if (r->lease_id != NULL && strcmp(r->lease_id, lease_id) == 0)
		return LEDGER_LOST_TERMINAL;
	return r->lease_id == NULL && r->claimed_at != 0 ? LEDGER_LOST_TAKEN_OVER
							 : LEDGER_LOST_RELEASED;
}

int
ledger_check_lease(struct store *s, struct arena *a, const char *run_id, const char *lease_id,
    struct ledger_held *ret)
{
	int r;

	*ret = (struct ledger_held) { 0 };
	r = ledger_run_get(s, a, run_id, &ret->run);
	if (r == E_NOENT) {
		ret->lost = 1;
		ret->reason = LEDGER_LOST_RUN_MISSING;
		return 0;
	}
	if (r < 0)
		return r;
	if (!ledger_is_claimed(ret->run.state) || strcmp(ret->run.lease_id, lease_id) != 0) {
		ret->lost = 1;
		ret->reason = lost_reason(&ret->run, lease_id);
	}
	return 0;
}

/* A cancel request is never unsaid. */
static int
contradicts(const struct ledger_run *r, enum ledger_public status)
{
	return r->state == LEDGER_CANCEL_REQUESTED && status < LEDGER_PUBLIC_CANCEL_REQUESTED;
}

/* Within a state the public word only moves forward. */
static int
moves_forward(const struct ledger_run *r, enum ledger_public status)
{
	if (status <= r->public_state)
		return 0;
	if (r->state == LEDGER_ACTIVE)
		return status <= LEDGER_PUBLIC_RUNNING;
	return status == LEDGER_PUBLIC_CANCELING;
}

int
ledger_heartbeat(const struct ledger_at *at, const char *run_id, const char *lease_id,
    enum ledger_public status, int64_t started_at, struct ledger_held *ret)
{
	struct ledger_run *r = &ret->run;
	int rc = ledger_check_lease(at->store, at->arena, run_id, lease_id, ret), news = 0;

	if (rc < 0 || ret->lost || contradicts(r, status))
		return rc;
	if (moves_forward(r, status)) {
		r->public_state = status;
		news = 1;
	}
	if (r->started_at == 0 && started_at != 0 && status >= LEDGER_PUBLIC_STARTING) {
		r->started_at = started_at;
		news = 1;
	}
	if (!news)
		return 0;
	r->lease_expires_at = at->now_ms + LEDGER_LEASE_MS;
	ledger_touch(r, at->now_ms);
	return ledger_run_save(at->store, r);
}

/* ---- commit ---- */

int
ledger_record_commit(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const char *commit_sha, struct ledger_held *ret, int *ret_conflict)
{
	struct ledger_run *r = &ret->run;
	int rc = ledger_check_lease(at->store, at->arena, run_id, lease_id, ret);
	size_t known;

	*ret_conflict = 0;
	if (rc < 0 || ret->lost)
		return rc;
	known = r->commit_sha != NULL ? strlen(r->commit_sha) : 0;
	if (known != 0 && strcasecmp(r->commit_sha, commit_sha) == 0)
		return 0;
	if (known != 0 &&
	    (known >= strlen(commit_sha) || strncmp(r->commit_sha, commit_sha, known) != 0)) {
		*ret_conflict = 1;
		return 0;
	}
	r->commit_sha = commit_sha;
	ledger_touch(r, at->now_ms);
	rc = ledger_run_save(at->store, r);
	return rc < 0 ? rc
		      : ledger_event_text(at->store, run_id, at->now_ms, "commit_recorded",
			    "commitSha", commit_sha);
}

/* ---- release ---- */

int
ledger_release_run(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const char *reason, enum ledger_released *ret, enum ledger_lost *ret_lost)
{
	struct ledger_held held;
	struct ledger_run *r = &held.run;
	int rc = ledger_check_lease(at->store, at->arena, run_id, lease_id, &held);

	if (rc < 0)
		return rc;
	if (held.lost) {
		*ret = LEDGER_RELEASE_LOST;
		*ret_lost = held.reason;
		return 0;
	}
	if (r->state == LEDGER_CANCEL_REQUESTED) {
		*ret = LEDGER_REFUSED_CANCEL_REQUESTED;
		return 0;
	}
	if (r->public_state > LEDGER_PUBLIC_STARTING) {
		*ret = LEDGER_REFUSED_STARTED;
		return 0;
	}
	*ret = LEDGER_RELEASED;
	if (r->public_state != LEDGER_PUBLIC_QUEUED || r->started_at != 0)
		ledger_touch(r, at->now_ms);
	r->state = LEDGER_EXECUTABLE;
	r->position = r->accept_seq;
	r->dispatch = LEDGER_DISPATCH_PENDING;
	r->public_state = LEDGER_PUBLIC_QUEUED;
	r->lease_id = NULL;
	r->lease_expires_at = r->claimed_at = r->started_at = 0;
	rc = ledger_run_save(at->store, r);
	return rc < 0
	    ? rc
	    : ledger_event_text(at->store, run_id, at->now_ms, "released", "reason", reason);
}
