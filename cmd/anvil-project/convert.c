#include "cmd/anvil-project/convert.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/rules.h"
#include "lib/base/utf8.h"

/* A word that the ledger knows and the contract does not is a store from elsewhere. */
#define WORD(parse, word, ret) (parse((word), (ret)) < 0 ? E_CORRUPT : 0)

/* ---- what the contract allows, and a damaged store may hold all the same ---- */

#define BRANCH_MAX_BYTES  244
#define MESSAGE_MAX_BYTES 4096
#define URL_MAX_BYTES     2048
#define PATH_MAX_BYTES    1024

/* A text that others would refuse, or another than it was once it has been sent. */
static int
is_text(const char *text, size_t min, size_t max)
{
	size_t n = text != NULL ? strlen(text) : 0;

	return text != NULL && n >= min && n <= max && utf8_valid(text, n);
}

static int
is_text_or_null(const char *text, size_t max)
{
	return text == NULL || is_text(text, 0, max);
}

int
convert_fits_run(const struct ledger_run *r)
{
	return !r->broken && id_check(ID_RUN, r->run_id) &&
	    id_check(ID_PROJECT, r->project_id) &&
	    (r->triggered_by_user_id == NULL || id_check(ID_USER, r->triggered_by_user_id)) &&
	    is_text(r->branch, 1, BRANCH_MAX_BYTES) &&
	    is_text_or_null(r->error_message, MESSAGE_MAX_BYTES) &&
	    is_text_or_null(r->last_error, PATH_MAX_BYTES) && r->index_rev >= 1 &&
	    r->queued_at >= 0 && r->started_at >= 0 && r->finished_at >= 0 &&
	    r->dispatch_attempts >= 0;
}

static int
obeys(rule_fn *rule, struct arena *a, const char *text)
{
	const char *out, *message;

	return rule(NULL, a, text, strlen(text), &out, &message) == 0;
}

int
convert_fits_project(const struct ledger_project *p, struct arena *a)
{
	return id_check(ID_PROJECT, p->project_id) && id_check(ID_USER, p->owner_user_id) &&
	    obeys(rule_slug, a, p->owner_slug) && obeys(rule_slug, a, p->project_slug) &&
	    obeys(rule_project_name, a, p->name) &&
	    obeys(rule_branch_name, a, p->default_branch) &&
	    is_text(p->repo_url, 1, URL_MAX_BYTES) &&
	    is_text(p->config_path, 1, PATH_MAX_BYTES) && p->index_rev >= 1 &&
	    p->created_at >= 0 && p->updated_at >= 0;
}

/* ---- rows ---- */

int
convert_run(const struct ledger_run *r, struct run_row *ret)
{
	int err;

	if (!convert_fits_run(r))
		return E_CORRUPT;
	*ret = (struct run_row) { .run_id = r->run_id,
		.project_id = r->project_id,
		.rev = r->index_rev,
		.triggered_by_user_id = r->triggered_by_user_id,
		.branch = r->branch,
		.commit_sha = r->commit_sha,
		.queued_at = r->queued_at,
		.has_started_at = r->started_at != 0,
		.started_at = r->started_at,
		.has_finished_at = r->finished_at != 0,
		.finished_at = r->finished_at,
		.has_exit_code = r->has_exit_code,
		.exit_code = r->exit_code,
		.has_failure_code = r->failure_code != NULL,
		.error_message = r->error_message,
		.has_position = r->position != 0,
		.position = r->position };
	err = WORD(trigger_type_parse, r->trigger_type, &ret->trigger_type);
	if (err == 0)
		err = WORD(run_status_parse, ledger_public_name(r->public_state), &ret->status);
	if (err == 0 && r->failure_code != NULL)
		err = WORD(failure_code_parse, r->failure_code, &ret->failure_code);
	return err;
}

int
convert_queue_run(const struct ledger_run *r, struct queue_run *ret)
{
	int err;

	if (!convert_fits_run(r))
		return E_CORRUPT;
	*ret = (struct queue_run) { .run_id = r->run_id,
		.has_position = r->position != 0,
		.position = r->position,
		.branch = r->branch,
		.queued_at = r->queued_at,
		.has_claimed_at = r->claimed_at != 0,
		.claimed_at = r->claimed_at,
		.dispatch_attempts = r->dispatch_attempts,
		.has_dispatch_retry_at = r->dispatch_retry_at != 0,
		.dispatch_retry_at = r->dispatch_retry_at,
		.last_error = r->last_error,
		.spawn_id = r->spawn_id,
		.lease_epoch = r->lease_epoch,
		.has_lease_expires_at = r->lease_expires_at != 0,
		.lease_expires_at = r->lease_expires_at,
		.has_cancel_requested_at = r->cancel_requested_at != 0,
		.cancel_requested_at = r->cancel_requested_at,
		.cancel_by = r->cancel_by,
		.index_rev = r->index_rev,
		.index_attempt = r->index_attempt,
		.has_index_retry_at = r->index_retry_at != 0,
		.index_retry_at = r->index_retry_at };
	err = WORD(ledger_status_parse, ledger_state_name(r->state), &ret->status);
	if (err == 0)
		err = WORD(
		    run_status_parse, ledger_public_name(r->public_state), &ret->public_status);
	if (err == 0)
		err = WORD(dispatch_status_parse, ledger_dispatch_name(r->dispatch),
		    &ret->dispatch_status);
	if (err == 0)
		err = WORD(index_sync_parse, ledger_sync_name(r->sync), &ret->index_sync);
	return err;
}

void
convert_project(const struct ledger_project *p, struct project_config *ret)
{
	*ret = (struct project_config) { .project_id = p->project_id,
		.owner_user_id = p->owner_user_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->project_slug,
		.name = p->name,
		.repo_url = p->repo_url,
		.default_branch = p->default_branch,
		.config_path = p->config_path,
		.badge_public = p->badge_public,
		.created_at = p->created_at,
		.updated_at = p->updated_at };
}

int
convert_snapshot(
    const struct ledger_run *r, const struct ledger_project *p, struct run_snapshot *ret)
{
	*ret = (struct run_snapshot) { .run_id = r->run_id,
		.project_id = r->project_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->project_slug,
		.triggered_by_user_id = r->triggered_by_user_id,
		.branch = r->branch,
		.commit_sha = r->commit_sha,
		.repo_url = r->repo_url,
		.config_path = r->config_path,
		.queued_at = r->queued_at };
	return WORD(trigger_type_parse, r->trigger_type, &ret->trigger_type);
}

int
convert_webhook(
    const struct ledger_webhook *w, struct webhook_config *config, struct webhook_row *ret)
{
	*config = (struct webhook_config) { .instance_url = w->instance_url };
	*ret = (struct webhook_row) { .webhook_id = w->webhook_id,
		.enabled = w->enabled,
		.config = w->instance_url != NULL ? config : NULL,
		.created_at = w->created_at,
		.updated_at = w->updated_at };
	return WORD(provider_parse, w->provider, &ret->provider);
}

int
convert_delivery(const struct ledger_delivery *d, struct delivery_row *ret)
{
	int err;

	*ret = (struct delivery_row) { .payload = { .delivery_id = d->delivery_id,
					   .event_name = d->event_name,
					   .repository_url = d->repository_url,
					   .ref = d->ref,
					   .branch = d->branch,
					   .commit_sha = d->commit_sha,
					   .before_sha = d->before_sha,
					   .body_sha256 = d->body_sha256,
					   .body_bytes = d->body_bytes },
		.reason = d->reason,
		.run_id = d->run_id,
		.received_at = d->received_at };
	err = WORD(provider_parse, d->provider, &ret->payload.provider);
	if (err == 0)
		err = WORD(event_kind_parse, d->event_kind, &ret->payload.event_kind);
	if (err == 0)
		err = WORD(outcome_parse, d->outcome, &ret->outcome);
	return err;
}

int
convert_refusal(const struct ledger_refusal *f, struct refusal_row *ret)
{
	*ret = (struct refusal_row) { .at = f->at,
		.hint = f->hint,
		.event_name = f->event_name,
		.delivery_id = f->delivery_id,
		.has_body_bytes = f->has_body_bytes,
		.body_bytes = f->body_bytes,
		.client_address = f->client_address,
		.count = f->count };
	return WORD(refusal_reason_parse, f->reason, &ret->reason);
}

int
convert_lost(enum ledger_lost reason, struct lost *ret)
{
	return WORD(lost_reason_parse, ledger_lost_name(reason), &ret->reason);
}

void
convert_how_text(const struct runner_how *how, char *out, size_t size)
{
	if (how->has_signal) {
		const char *name = sigabbrev_np((int)how->signal);

		(void)snprintf(out, size, "signal %d (SIG%s)", (int)how->signal,
		    name != NULL ? name : "?");
	} else if (how->has_exit_status) {
		(void)snprintf(out, size, "exit status %d", (int)how->exit_status);
	} else if (how->has_rebooted) {
		(void)snprintf(out, size, "machine restarted");
	} else if (how->has_abandoned) {
		(void)snprintf(out, size, "given up by the operator");
	} else if (how->error != NULL) {
		(void)snprintf(out, size, "%s", how->error);
	} else {
		(void)snprintf(out, size, "ended while not watched");
	}
}
