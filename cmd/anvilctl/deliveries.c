#include "cmd/anvilctl/deliveries.h"

#include <stdio.h>

static const char *
or_dash(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : "-";
}

static void
add_delivery(struct table *t, const struct delivery_row *d)
{
	const struct verified_payload *p = &d->payload;
	enum tone tone = d->outcome == OUTCOME_ACCEPTED ? TONE_GOOD
	    : d->outcome == OUTCOME_QUEUE_FULL          ? TONE_WAITS
							: TONE_DIM;

	table_add_time(t, d->received_at);
	table_add(t, TONE_PLAIN, "%s", provider_name(p->provider));
	table_add(t, TONE_PLAIN, "%s", p->event_name);
	table_add(t, TONE_PLAIN, "%s", or_dash(p->branch != NULL ? p->branch : p->ref));
	table_add(t, TONE_PLAIN, "%.12s", or_dash(p->commit_sha));
	table_add(t, tone, "%s", outcome_name(d->outcome));
	table_add(t, TONE_PLAIN, "%s", or_dash(d->run_id));
	table_add(t, TONE_PLAIN, "%s", p->delivery_id);
	table_add(t, TONE_PLAIN, "%s", d->reason);
}

static void
add_refusal(struct table *t, const struct provider_refusal *pr)
{
	const struct refusal_row *r = &pr->refusal;
	char times[40] = "";

	if (r->count > 1)
		(void)snprintf(times, sizeof(times), ", %lld times", (long long)r->count);
	table_add_time(t, r->at);
	table_add(t, TONE_PLAIN, "%s", provider_name(pr->provider));
	table_add(t, TONE_PLAIN, "%s", or_dash(r->event_name));
	table_add(t, TONE_PLAIN, "-");
	table_add(t, TONE_PLAIN, "-");
	table_add(t, TONE_BAD, "refused");
	table_add(t, TONE_PLAIN, "-");
	table_add(t, TONE_PLAIN, "%s", or_dash(r->delivery_id));
	table_add(t, TONE_PLAIN, "%s (from %s%s)%s%s", refusal_reason_name(r->reason),
	    r->client_address, times, r->hint != NULL ? ": " : "",
	    r->hint != NULL ? r->hint : "");
}

struct table *
deliveries_table(void)
{
	static const char *const heads[] = { "TIME", "PROVIDER", "EVENT", "BRANCH", "COMMIT",
		"OUTCOME", "RUN", "DELIVERY", "REASON" };

	return table_new(heads, ARRAY_LEN(heads));
}

void
deliveries_fill(struct table *t, const struct webhook_deliveries_page *page, size_t max)
{
	size_t d = 0, r = 0;

	while (d + r < max && (d < page->ndeliveries || r < page->nrefusals)) {
		if (r == page->nrefusals ||
		    (d < page->ndeliveries &&
			page->deliveries[d].received_at >= page->refusals[r].refusal.at))
			add_delivery(t, &page->deliveries[d++]);
		else
			add_refusal(t, &page->refusals[r++]);
	}
}
