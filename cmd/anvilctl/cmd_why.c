/* anvilctl why RUN: the chain of a run, from what started it to what ended it. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "cmd/anvilctl/why.h"
#include "gen/supervisor.h"

/* The steps, of a process that is there or can be started; the history goes without them. */
static const struct run_get_detail_detail *
find_steps(struct ctl *ctl, const struct place *run, struct run_get_detail_result *detail,
    const json_t **ret_json)
{
	struct supervisor_serve_run_params wake = { .run_id = run->run_id };
	struct supervisor_serve_run_result woken = { .kind = 0 };
	struct run_get_detail_params params = { .log_bytes = 0 };
	char address[RPC_ADDRESS_SIZE];

	(void)snprintf(address, sizeof(address), "run/%s", run->run_id);
	if (client_connect(ctl->client, address) < 0 &&
	    (CTL_TRY(ctl, "supervisor", supervisor_serve_run, &wake, &woken) < 0 ||
		(woken.kind != SUPERVISOR_SERVE_RUN_LIVE &&
		    woken.kind != SUPERVISOR_SERVE_RUN_SERVING)))
		return NULL;
	if (CTL_TRY(ctl, address, run_get_detail, &params, detail) < 0)
		return NULL;
	*ret_json = json_object_get(ctl->reply.result, "steps");
	return &detail->u.detail;
}

/* ---- output ---- */

static void
print_head(const struct ctl *ctl, const struct project_why_history *h)
{
	const struct run_row *run = &h->run;

	(void)printf("%s  ", run->run_id);
	ctl_print_tone(
	    ctl, text_tone(run_status_name(run->status)), run_status_name(run->status));
	(void)printf("  %s", run->branch);
	if (run->commit_sha != NULL)
		(void)printf("  %.12s", run->commit_sha);
	(void)printf("\nstarted by ");
	if (run->trigger_type == TRIGGER_TYPE_MANUAL)
		(void)printf("%s",
		    run->triggered_by_user_id != NULL ? run->triggered_by_user_id : "somebody");
	else if (h->delivery != NULL)
		(void)printf("%s delivery %s", provider_name(h->delivery->payload.provider),
		    h->delivery->payload.delivery_id);
	else
		(void)printf("a delivery that is no longer kept");
	(void)printf("\n");
}

static int
print_why(const struct ctl *ctl, const struct why *w)
{
	CLEANUP(table_freep) struct table *t = why_table(w);
	CLEANUP(buf_done) struct buf end = BUF_INIT;
	const char *text = why_end(w, &end) == 0 ? buf_cstr(&end) : NULL;

	if (t == NULL || text == NULL)
		return ctl_fail_nomem();
	print_head(ctl, w->history);
	ctl_print_tone(ctl, TONE_PLAIN, text);
	(void)printf("\n\n");
	return ctl_print_table(ctl, t, "no events");
}

/* The history, with what the run itself knows besides. */
static int
print_json(const struct ctl *ctl, const json_t *history, const json_t *steps)
{
	CLEANUP(json_unrefp) json_t *j = json_copy((json_t *)(uintptr_t)history);
	json_t *value = steps != NULL ? (json_t *)(uintptr_t)steps : json_null();

	if (j == NULL || json_object_set(j, "steps", value) < 0)
		return ctl_fail_nomem();
	return ctl_print_json(ctl, j);
}

static int
why_run(struct ctl *ctl, const struct args *args)
{
	struct project_why_result why = { .kind = 0 };
	struct run_get_detail_result detail = { .kind = 0 };
	const json_t *history, *steps = NULL;
	struct project_why_params params;
	struct why w = { .history = NULL };
	struct place run;
	int r = resolve_run(ctl, args->words[0], &run);

	if (r != 0)
		return r;
	params = (struct project_why_params) { .project_id = run.project_id,
		.run_id = run.run_id };
	r = PLACE_CALL(ctl, &run, project_why, PROJECT_WHY, &params, &why);
	if (r != 0)
		return r;
	if (why.kind != PROJECT_WHY_HISTORY)
		return ctl_fail("%s no longer has the history of %s", run.shard, run.run_id);
	history = ctl->reply.result;
	w.history = &why.u.history;
	if (w.history->run.has_started_at)
		w.detail = find_steps(ctl, &run, &detail, &steps);
	return ctl->json ? print_json(ctl, history, steps) : print_why(ctl, &w);
}

const struct command command_why = {
	.name = "why",
	.words = "RUN",
	.summary = "tells the history of a run: what started it, what ended it",
	.more =
	    "From the delivery of a webhook over acceptance, attempts to start it, lease and\n"
	    "steps to who or what ended it.",
	.min_words = 1,
	.max_words = 1,
	.run = why_run,
};
