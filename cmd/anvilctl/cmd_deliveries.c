/* anvilctl deliveries PROJECT: what forges have sent, what came of it, what was refused. */
#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/deliveries.h"
#include "cmd/anvilctl/resolve.h"

#define ROWS     20
#define ROWS_MAX 500

static int
deliveries_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(table_freep) struct table *t = deliveries_table();
	const char *limit = args_value(args, "--limit");
	struct webhook_deliveries_result page = { .kind = 0 };
	struct webhook_deliveries_params params;
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
	params = (struct webhook_deliveries_params) { .project_id = where.project_id,
		.limit = n };
	r = CTL_CALL(ctl, where.shard, webhook_deliveries, &params, &page);
	if (r != 0)
		return r;
	if (page.kind != WEBHOOK_DELIVERIES_PAGE)
		return ctl_fail("%s does not have %s now; try again", where.shard, where.name);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	if (t != NULL)
		deliveries_fill(t, &page.u.page, (size_t)n);
	return ctl_print_table(ctl, t, "no deliveries in the last 72 hours");
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
