/* anvilctl why RUN: the chain of a run, from what started it to what ended it. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/project.h"

static void
print_head(const struct ctl *ctl, const struct project_why_history *h)
{
	const struct run_row *run = &h->run;
	char text[TEXT_SIZE];

	(void)printf("%s  ", run->run_id);
	ctl_print_tone(
	    ctl, text_tone(run_status_name(run->status)), run_status_name(run->status));
	(void)printf("  %s", run->branch);
	if (run->commit_sha != NULL)
		(void)printf("  %.12s", run->commit_sha);
	(void)printf("\n");
	if (run->has_failure_code)
		(void)printf("%s: %s\n", failure_code_name(run->failure_code),
		    run->error_message != NULL ? run->error_message : "");
	if (h->delivery != NULL) {
		text_time(h->delivery->received_at, text);
		(void)printf("started by %s delivery %s, received %s\n", h->delivery->provider,
		    h->delivery->delivery_id, text);
	}
	(void)printf("\n");
}

static int
print_events(const struct ctl *ctl, const struct project_why_history *h)
{
	static const char *const heads[] = { "TIME", ">AFTER", "EVENT", "DETAIL" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));

	for (size_t i = 0; t != NULL && i < h->nevents; i++) {
		const struct why_event *e = &h->events[i];
		CLEANUP(buf_done) struct buf detail = BUF_INIT;

		if (e->detail != NULL && json_object_size(e->detail) > 0)
			(void)json_text_dump(&detail, e->detail);
		table_add_time(t, e->at);
		table_add_duration(t, i > 0 ? e->at - h->events[i - 1].at : -1);
		table_add(t, TONE_STRONG, "%s", e->event);
		table_add(t, TONE_PLAIN, "%s", detail.len > 0 ? buf_cstr(&detail) : "");
	}
	return ctl_print_table(ctl, t, "no events");
}

static int
why_run(struct ctl *ctl, const struct args *args)
{
	struct project_why_result why = { .kind = 0 };
	struct project_why_params params;
	struct place run;
	int r = resolve_run(ctl, args->words[0], &run);

	if (r != 0)
		return r;
	params = (struct project_why_params) { .project_id = run.project_id,
		.run_id = run.run_id };
	r = CTL_CALL(ctl, run.shard, project_why, &params, &why);
	if (r != 0)
		return r;
	if (why.kind != PROJECT_WHY_HISTORY)
		return ctl_fail("%s no longer has the history of %s", run.shard, run.run_id);
	if (ctl->json)
		return ctl_print_json(ctl, NULL);
	print_head(ctl, &why.u.history);
	return print_events(ctl, &why.u.history);
}

const struct command command_why = {
	.name = "why",
	.words = "RUN",
	.summary = "tells the history of a run: what started it, what ended it",
	.min_words = 1,
	.max_words = 1,
	.run = why_run,
};
