/* webhook.* about deliveries: recorded once, listed, and those that were refused (spec webhooks
 * 7, 9, 10). */
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/custody.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/shard.h"
#include "lib/base/log.h"

/* ---- record ---- */

static struct ledger_offer
offer_of(const struct webhook_record_params *p)
{
	const struct verified_payload *v = &p->payload;

	return (struct ledger_offer) { .webhook_id = p->webhook_id,
		.version = p->webhook_version,
		.delivery = { .project_id = p->project_id,
		    .provider = provider_name(v->provider),
		    .delivery_id = v->delivery_id,
		    .event_kind = event_kind_name(v->event_kind),
		    .event_name = v->event_name,
		    .repository_url = v->repository_url,
		    .ref = v->ref,
		    .branch = v->branch,
		    .commit_sha = v->commit_sha,
		    .before_sha = v->before_sha,
		    .body_sha256 = v->body_sha256,
		    .body_bytes = v->body_bytes,
		    .outcome = outcome_name(p->candidate.outcome),
		    .reason = p->candidate.reason,
		    .run_id = p->run_id } };
}

static int
answer_accepted(struct shard *s, struct turn *t, const struct ledger_recorded *rec,
    struct webhook_record_accepted *ret)
{
	const struct ledger_run *run = &rec->run;

	if (!rec->again)
		log_event(LOG_LEVEL_INFO, "run_accepted", LOG_STR("runId", run->run_id),
		    LOG_STR("projectId", run->project_id), LOG_INT("position", run->accept_seq),
		    LOG_STR("trigger", run->trigger_type));
	if (convert_run(run, &ret->run) < 0)
		return E_CORRUPT;
	return shard_wake_after(s, t);
}

int
webhook_record(struct shard *s, struct turn *t, const struct webhook_record_params *p,
    struct webhook_record_result *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	const struct ledger_offer offer = offer_of(p);
	struct ledger_recorded rec;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, WEBHOOK_RECORD, ret))
		return r;
	r = ledger_record(&at, &offer, &rec);
	if (r == E_NOENT) {
		ret->kind = WEBHOOK_RECORD_NOT_FOUND;
		return 0;
	}
	if (r == E_INVAL)
		return turn_fail(t, E_PARAMS,
		    "expected a candidate other than queue_full; accepted is a push with branch"
		    " and commit, and a run id of its own");
	if (r < 0)
		return r;
	switch (rec.kind) {
	case LEDGER_RECORD_ACCEPTED:
		ret->kind = WEBHOOK_RECORD_ACCEPTED;
		return answer_accepted(s, t, &rec, &ret->u.accepted);
	case LEDGER_RECORD_STALE: ret->kind = WEBHOOK_RECORD_STALE; break;
	case LEDGER_RECORD_CONFLICT: ret->kind = WEBHOOK_RECORD_DELIVERY_CONFLICT; break;
	case LEDGER_RECORD_QUEUE_FULL: ret->kind = WEBHOOK_RECORD_QUEUE_FULL; break;
	case LEDGER_RECORD_REPLAYED:
		ret->kind = WEBHOOK_RECORD_REPLAYED;
		ret->u.replayed.run_id = rec.run_id;
		return outcome_parse(rec.outcome, &ret->u.replayed.outcome);
	case LEDGER_RECORD_RECORDED:
		ret->kind = WEBHOOK_RECORD_RECORDED;
		return outcome_parse(rec.outcome, &ret->u.recorded.outcome);
	}
	return 0;
}

/* ---- attempts that were refused ---- */

static int
add_refusals(struct turn *t, const struct webhook_refused_params *p)
{
	int r = 0;

	for (size_t i = 0; i < p->nentries && r == 0; i++) {
		const struct refusal_row *e = &p->entries[i];
		const struct ledger_refusal f = { .at = e->at,
			.reason = refusal_reason_name(e->reason),
			.hint = e->hint,
			.event_name = e->event_name,
			.delivery_id = e->delivery_id,
			.has_body_bytes = e->has_body_bytes,
			.body_bytes = e->body_bytes,
			.client_address = e->client_address,
			.count = e->count };

		r = ledger_refusal_add(t->store, p->webhook_id, &f);
	}
	return r < 0 ? r : ledger_prune_deliveries(t->store, t->now_ms, NULL);
}

int
webhook_refused(struct shard *s, struct turn *t, const struct webhook_refused_params *p,
    struct webhook_refused_result *ret)
{
	struct custody c;
	int r;

	(void)s;
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, WEBHOOK_REFUSED, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	ret->kind = WEBHOOK_REFUSED_NOT_FOUND;
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	for (size_t i = 0; i < c.nwebhooks; i++) {
		if (strcmp(c.webhooks[i].webhook_id, p->webhook_id) != 0)
			continue;
		ret->kind = WEBHOOK_REFUSED_OK;
		/* Those of a disabled one are not kept. */
		return c.webhooks[i].enabled ? add_refusals(t, p) : 0;
	}
	return 0;
}

/* ---- lists ---- */

int
custody_deliveries(
    struct turn *t, const struct ledger_delivery_query *q, struct custody_page *ret)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_delivery_page list;
	struct delivery_row *rows;
	int r = ledger_deliveries(&at, q, &list);

	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, list.n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < list.n && r == 0; i++)
		r = convert_delivery(&list.rows[i], &rows[i]);
	*ret = (struct custody_page) { rows, list.n, list.next };
	return r;
}

/* Newest first; a stable order for those of one moment. */
static int
by_time(const void *a, const void *b)
{
	const struct provider_refusal *x = a, *y = b;

	if (x->refusal.at != y->refusal.at)
		return x->refusal.at > y->refusal.at ? -1 : 1;
	return (int)x->provider - (int)y->provider;
}

static int
add_provider_refusals(
    struct turn *t, const struct ledger_webhook *w, struct provider_refusal *rows, size_t *n)
{
	struct ledger_refusal *list;
	enum provider provider;
	size_t nlist;
	int r = ledger_refusals(t->store, t->arena, w->webhook_id, &list, &nlist);

	if (r == 0 && provider_parse(w->provider, &provider) < 0)
		r = E_CORRUPT;
	for (size_t i = 0; r == 0 && i < nlist && i < LEDGER_REFUSALS_KEPT; i++) {
		rows[*n].provider = provider;
		r = convert_refusal(&list[i], &rows[*n].refusal);
		(*n)++;
	}
	return r;
}

/* Of all webhooks of the project, or of that provider alone. */
static int
fill_refusals(struct turn *t, const struct custody *c, const struct ledger_delivery_query *q,
    struct webhook_deliveries_page *page)
{
	struct provider_refusal *rows = arena_calloc(
	    t->arena, c->nwebhooks * LEDGER_REFUSALS_KEPT, sizeof(*rows));
	size_t n = 0;
	int r = 0;

	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < c->nwebhooks && r == 0; i++)
		if (q->provider == NULL || strcmp(c->webhooks[i].provider, q->provider) == 0)
			r = add_provider_refusals(t, &c->webhooks[i], rows, &n);
	qsort(rows, n, sizeof(*rows), by_time);
	page->refusals = rows;
	page->nrefusals = min_size(n, q->limit);
	return r;
}

int
webhook_deliveries(struct shard *s, struct turn *t, const struct webhook_deliveries_params *p,
    struct webhook_deliveries_result *ret)
{
	const struct ledger_delivery_query q = { .project_id = p->project_id,
		.provider = p->has_provider ? provider_name(p->provider) : NULL,
		.cursor = p->cursor,
		.limit = (size_t)p->limit };
	struct custody_page page;
	struct custody c;
	int r;

	(void)s;
	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, WEBHOOK_DELIVERIES, ret))
		return r;
	r = custody_open(t, p->project_id, &c);
	if (r == E_NOENT) {
		ret->kind = WEBHOOK_DELIVERIES_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = custody_deliveries(t, &q, &page);
	if (r == E_INVAL)
		return turn_fail(t, E_PARAMS, "cursor: expected one of an earlier page");
	if (r < 0)
		return r;
	ret->kind = WEBHOOK_DELIVERIES_PAGE;
	ret->u.page.deliveries = page.rows;
	ret->u.page.ndeliveries = page.n;
	ret->u.page.next = page.next;
	return p->cursor != NULL ? 0 : fill_refusals(t, &c, &q, &ret->u.page);
}
