#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

#define MESSAGE_MAX_BYTES 4096

int
ledger_end_is_whole(const struct ledger_end *e)
{
	const char *code = e->failure_code, *text = e->error_message;

	if (e->finished_at <= 0)
		return 0;
	switch (e->state) {
	case LEDGER_PASSED:
		return e->has_exit_code && e->exit_code == 0 && code == NULL && text == NULL;
	case LEDGER_FAILED:
		return e->has_exit_code && code != NULL && text != NULL &&
		    strlen(text) <= MESSAGE_MAX_BYTES;
	case LEDGER_CANCELED:
		return !e->has_exit_code && code != NULL &&
		    strcmp(code, "runtime_cancelled") == 0 && text == NULL;
	case LEDGER_PENDING:
	case LEDGER_EXECUTABLE:
	case LEDGER_ACTIVE:
	case LEDGER_CANCEL_REQUESTED: break;
	}
	return 0;
}

/* What a settlement meets when the lease is not current any more (spec project 9). */
static void
judge_repeat(const struct ledger_run *r, const char *lease_id, const struct ledger_end *e,
    struct ledger_settlement *ret)
{
	int same_lease = r->lease_id != NULL && strcmp(r->lease_id, lease_id) == 0;

	if (!ledger_is_terminal(r->state) || !same_lease) {
		ret->kind = LEDGER_SETTLE_LOST;
	} else if (r->state == e->state) {
		ret->kind = LEDGER_SETTLED;
		ret->again = 1;
	} else {
		ret->kind = LEDGER_SETTLE_CONFLICT;
	}
}

static int
end_run(struct store *s, struct arena *a, struct ledger_run *r, const struct ledger_end *e,
    int64_t now_ms, struct ledger_promoted *ret_promoted)
{
	int rc;

	ledger_end_row(r, e, now_ms);
	rc = ledger_run_save(s, r);
	return rc < 0 ? rc : ledger_promote(s, a, r->project_id, now_ms, ret_promoted);
}

int
ledger_finalize_run(struct store *s, struct arena *a, const char *run_id, const char *lease_id,
    const struct ledger_end *e, int64_t now_ms, struct ledger_settlement *ret)
{
	struct ledger_held held;
	int rc = ledger_check_lease(s, a, run_id, lease_id, &held);

	*ret = (struct ledger_settlement) { .run = held.run };
	if (rc < 0)
		return rc;
	if (held.lost) {
		ret->lost = held.reason;
		ret->kind = LEDGER_SETTLE_LOST;
		if (held.reason != LEDGER_LOST_RUN_MISSING)
			judge_repeat(&held.run, lease_id, e, ret);
		return 0;
	}
	/* A run does not cancel itself. */
	if (e->state == LEDGER_CANCELED && held.run.state != LEDGER_CANCEL_REQUESTED) {
		ret->kind = LEDGER_SETTLE_CONFLICT;
		return 0;
	}
	ret->kind = LEDGER_SETTLED;
	rc = end_run(s, a, &ret->run, e, now_ms, &ret->promoted);
	return rc < 0 ? rc
		      : ledger_event_text(s, run_id, now_ms, "settled", "status",
			    ledger_state_name(e->state));
}

int
ledger_take_over(const struct ledger_at *at, const char *run_id, const char *lease_id,
    const struct ledger_end *e, const char *how, int *ret_done,
    struct ledger_promoted *ret_promoted)
{
	struct ledger_held held;
	struct ledger_run *r = &held.run;
	int rc = ledger_check_lease(at->store, at->arena, run_id, lease_id, &held);

	*ret_done = 0;
	ret_promoted->run_id[0] = '\0';
	if (rc < 0 || held.lost)
		return rc;
	/* Its store says canceled, and the request never reached this ledger: it comes to it
	 * by the way that every cancel takes. */
	if (e->state == LEDGER_CANCELED && r->state == LEDGER_ACTIVE) {
		r->state = LEDGER_CANCEL_REQUESTED;
		r->public_state = LEDGER_PUBLIC_CANCEL_REQUESTED;
		r->cancel_requested_at = at->now_ms;
		r->cancel_by = "operator";
		ledger_touch(r, at->now_ms);
		rc = ledger_run_save(at->store, r);
		if (rc < 0)
			return rc;
	}
	r->lease_id = NULL;
	rc = end_run(at->store, at->arena, r, e, at->now_ms, ret_promoted);
	if (rc == 0)
		rc = ledger_event_text(at->store, run_id, at->now_ms, "taken_over", "how", how);
	*ret_done = rc == 0;
	return rc;
}
