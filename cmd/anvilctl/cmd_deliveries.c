/* anvilctl deliveries PROJECT: what forges have sent, what came of it, what was refused. */
#include <stdlib.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/deliveries.h"
#include "cmd/anvilctl/resolve.h"
#include "lib/base/mem.h"

#define ROWS      20
#define ROWS_MAX  500
#define ROWS_PAGE 100

/* What the pages have in all, for people and for programs. */
struct found {
	struct webhook_deliveries_page all;
	struct delivery_row *rows; /* Owned; room for as many as were asked for. */
	json_t *deliveries, *refusals;
};

static void
found_done(struct found *f)
{
	free(f->rows);
	json_decref(f->deliveries);
	json_decref(f->refusals);
}

static int
add_page(struct found *f, const struct webhook_deliveries_page *page, const json_t *result)
{
	json_t *list = json_object_get(result, "deliveries");

	for (size_t i = 0; i < page->ndeliveries; i++)
		f->rows[f->all.ndeliveries++] = page->deliveries[i];
	if (f->refusals == NULL) { /* The first page has them all. */
		f->all.refusals = page->refusals;
		f->all.nrefusals = page->nrefusals;
		f->refusals = json_incref(json_object_get(result, "refusals"));
	}
	return json_array_extend(f->deliveries, list);
}

static int
ask_pages(struct ctl *ctl, struct place *where, size_t max, struct found *f)
{
	struct webhook_deliveries_params params = { .project_id = where->project_id };
	struct webhook_deliveries_result page;
	int r;

	do {
		params.limit = (int64_t)min_size(max - f->all.ndeliveries, ROWS_PAGE);
		r = PLACE_CALL(
		    ctl, where, webhook_deliveries, WEBHOOK_DELIVERIES, &params, &page);
		if (r != 0)
			return r;
		if (page.kind != WEBHOOK_DELIVERIES_PAGE)
			return ctl_fail(
			    "%s does not have %s now; try again", where->shard, where->name);
		if (page.u.page.ndeliveries > (size_t)params.limit)
			return ctl_fail("%s says more than it was asked", where->shard);
		if (add_page(f, &page.u.page, ctl->reply.result) < 0)
			return ctl_fail_nomem();
		params.cursor = page.u.page.next;
	} while (params.cursor != NULL && f->all.ndeliveries < max);
	return 0;
}

static int
print_found(struct ctl *ctl, const struct found *f, size_t max)
{
	CLEANUP(table_freep) struct table *t = deliveries_table();
	CLEANUP(json_unrefp) json_t *whole = NULL;

	whole = json_pack("{s:O, s:O}", "deliveries", f->deliveries, "refusals", f->refusals);
	if (t == NULL || whole == NULL)
		return ctl_fail_nomem();
	if (ctl->json)
		return ctl_print_json(ctl, whole);
	deliveries_fill(t, &f->all, max);
	return ctl_print_table(ctl, t, "no deliveries in the last 72 hours");
}

static int
deliveries_run(struct ctl *ctl, const struct args *args)
{
	const char *limit = args_value(args, "--limit");
	struct found f = { .rows = NULL };
	struct place where;
	long n = ROWS;
	int r;

	if (limit != NULL && args_number(limit, 1, ROWS_MAX, &n) < 0) {
		(void)ctl_fail("--limit: a number from 1 to %d", ROWS_MAX);
		return CTL_USAGE;
	}
	r = resolve_project(ctl, args->words[0], &where);
	if (r != 0)
		return r;
	f.rows = mem_calloc((size_t)n, sizeof(*f.rows));
	f.all.deliveries = f.rows;
	f.deliveries = json_array();
	r = f.rows != NULL && f.deliveries != NULL ? ask_pages(ctl, &where, (size_t)n, &f)
						   : ctl_fail_nomem();
	if (r == 0)
		r = print_found(ctl, &f, (size_t)n);
	found_done(&f);
	return r;
}

static const struct option_row options[] = {
	{ "--limit", 'n', "N", "how many at most; 20 when not given" },
};

const struct command command_deliveries = {
	.name = "deliveries",
	.words = "PROJECT",
	.summary = "shows what webhooks delivered and what was refused",
	.more =
	    "The newest come first.  Deliveries are kept for 72 hours, the newest 20 refused\n"
	    "attempts of a webhook as long as it is there.",
	.min_words = 1,
	.max_words = 1,
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = deliveries_run,
};
