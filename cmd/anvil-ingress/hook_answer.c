/* What a delivery is answered, and what is told of it in the log and to the owner (webhooks 7.1,
 * 9, 13). */
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/hook.h"
#include "cmd/anvil-ingress/hook_refusal.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

/* ---- refusals ---- */

void
hook_log_refused(const char *project_id, enum provider provider, enum refusal_reason reason,
    enum http_code code)
{
	log_event(LOG_LEVEL_INFO, "webhook_delivery_refused", LOG_STR("projectId", project_id),
	    LOG_STR("provider", provider_name(provider)),
	    LOG_STR("reason", refusal_reason_name(reason)),
	    LOG_INT("status", http_code_status(code)),
	    LOG_STR("errorCode", http_code_name(code)));
}

void
hook_note_refusal(struct hook *h, enum refusal_reason reason, enum http_code code,
    const char *hint, int64_t nbytes)
{
	char event_name[WEBHOOK_CLAIM_SIZE], delivery_id[WEBHOOK_CLAIM_SIZE];
	struct refusal_row row = { .reason = reason,
		.hint = hint,
		.event_name = webhook_claim_text(h->claim.event_name, event_name),
		.delivery_id = webhook_claim_text(h->claim.delivery_id, delivery_id),
		.has_body_bytes = 1,
		.body_bytes = nbytes,
		.client_address = http_req_client(h->x->req) };

	hook_log_refused(h->project_id, h->body.forge->provider, reason, code);
	hook_refusals_add(h->x->in->hook_refusals, h->material, &row);
}

static void
answer_issues(struct exchange *x, const struct hook_verdict *v)
{
	CLEANUP(buf_done) struct buf details = BUF_INIT;

	if (codec_issues_text(&x->codec, &details) < 0 || buf_cstr(&details) == NULL)
		exchange_fail(x, E_NOMEM);
	else
		answer_error_details(x, v->code,
		    v->message != NULL ? v->message : "Some fields are not valid.",
		    (const char *)details.data);
}

void
hook_refuse(struct hook *h, const struct hook_verdict *v)
{
	if (v->is_kept)
		hook_note_refusal(h, v->reason, v->code, v->hint, h->body.nbytes);
	if (v->has_issues)
		answer_issues(h->x, v);
	else
		answer_error_text(h->x, v->code, v->message);
}

/* ---- step 14 ---- */

static void
processed(struct hook *h, enum outcome outcome, int duplicate, const char *run_id)
{
	struct exchange *x = h->x;
	struct http_delivery_answer a = { .outcome = outcome,
		.has_duplicate = outcome != OUTCOME_ACCEPTED || duplicate,
		.duplicate = duplicate,
		.run_id = run_id };

	log_event(LOG_LEVEL_INFO, "webhook_delivery_processed",
	    LOG_STR("projectId", h->project_id),
	    LOG_STR("provider", provider_name(h->body.forge->provider)),
	    LOG_STR("deliveryId", h->payload.delivery_id),
	    LOG_STR("outcome", outcome_name(outcome)), LOG_INT("duplicate", duplicate),
	    LOG_STR("runId", run_id),
	    LOG_INT("durationMs", mono_diff_ms(http_req_started(x->req), clock_mono())));
	if (outcome == OUTCOME_QUEUE_FULL)
		answer_error(x, HTTP_CODE_QUEUE_FULL);
	else
		answer_value(x, a.has_duplicate ? 200 : 202, &http_delivery_answer_codec, &a);
}

void
hook_answer(struct hook *h, const struct webhook_record_result *res)
{
	static const struct hook_verdict conflict = { .code = HTTP_CODE_DELIVERY_CONFLICT,
		.is_kept = 1,
		.reason = REFUSAL_REASON_DELIVERY_CONFLICT,
		.hint = "Another delivery with this id, but another body, was here before." };

	if (res == NULL) {
		answer_error(h->x, h->record.why);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_RECORD_ACCEPTED:
		processed(h, OUTCOME_ACCEPTED, 0, res->u.accepted.run.run_id);
		break;
	case WEBHOOK_RECORD_RECORDED: processed(h, res->u.recorded.outcome, 0, NULL); break;
	case WEBHOOK_RECORD_REPLAYED:
		processed(h, res->u.replayed.outcome, 1, res->u.replayed.run_id);
		break;
	case WEBHOOK_RECORD_QUEUE_FULL: processed(h, OUTCOME_QUEUE_FULL, 0, NULL); break;
	case WEBHOOK_RECORD_DELIVERY_CONFLICT: hook_refuse(h, &conflict); break;
	case WEBHOOK_RECORD_NOT_FOUND: answer_error(h->x, HTTP_CODE_WEBHOOK_NOT_FOUND); break;
	default: answer_error(h->x, HTTP_CODE_INTERNAL_ERROR);
	}
}
