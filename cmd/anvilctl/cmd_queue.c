/* anvilctl queue [PROJECT]: what runs and what waits, as the ledgers have it. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/project.h"
#include "gen/supervisor.h"

#define PAGE 100

static void
add_run(struct table *t, const struct queue_project *p, const struct queue_run *q)
{
	const struct deadline *next = p->ndeadlines > 0 ? &p->deadlines[0] : NULL;

	table_add(t, TONE_PLAIN, "%s/%s", p->owner_slug, p->project_slug);
	table_add(t, TONE_PLAIN, "%s", q->run_id);
	table_add_word(t, ledger_status_name(q->status));
	if (q->has_position)
		table_add(t, TONE_PLAIN, "%lld", (long long)q->position);
	else
		table_add(t, TONE_PLAIN, "-");
	table_add(t, TONE_PLAIN, "%s", q->branch);
	table_add_duration(t, max_i64(0, clock_wall_ms() - q->queued_at));
	table_add(t, TONE_PLAIN, "%s/%lld", dispatch_status_name(q->dispatch_status),
	    (long long)q->dispatch_attempts);
	table_add(t, TONE_PLAIN, "%s", index_sync_name(q->index_sync));
	table_add_time(t, next != NULL ? next->at : -1);
	if (q->last_error != NULL)
		table_add(t, TONE_BAD, "%s", q->last_error);
	else
		table_add(t, TONE_PLAIN, "%s", next != NULL ? next->what : "");
}

static void
add_project(struct table *t, const struct queue_project *p)
{
	if (p->active != NULL)
		add_run(t, p, p->active);
	if (p->executable != NULL)
		add_run(t, p, p->executable);
	for (size_t i = 0; i < p->npending; i++)
		add_run(t, p, &p->pending[i]);
}

static int
add_page(struct ctl *ctl, const struct project_queue_result *page, const char *shard,
    struct table *t, json_t *list)
{
	if (page->kind != PROJECT_QUEUE_PAGE)
		return ctl_fail("%s does not have the project now; try again", shard);
	for (size_t i = 0; i < page->u.page.nprojects; i++)
		add_project(t, &page->u.page.projects[i]);
	return json_array_extend(list,
		   json_object_get((json_t *)(uintptr_t)ctl->reply.result, "projects")) < 0
	    ? ctl_fail_nomem()
	    : 0;
}

/* All pages of one shard. */
static int
ask_shard(struct ctl *ctl, const char *shard, struct table *t, json_t *list)
{
	struct project_queue_params params = { .limit = PAGE };
	struct project_queue_result page;
	int r;

	do {
		page = (struct project_queue_result) { .kind = 0 };
		r = CTL_CALL(ctl, shard, project_queue, &params, &page);
		if (r == 0)
			r = add_page(ctl, &page, shard, t, list);
		params.cursor = r == 0 ? page.u.page.next : NULL;
	} while (params.cursor != NULL);
	return r;
}

static int
ask_project(struct ctl *ctl, struct place *where, struct table *t, json_t *list)
{
	struct project_queue_params params = { .project_id = where->project_id, .limit = 1 };
	struct project_queue_result page;
	int r = PLACE_CALL(ctl, where, project_queue, PROJECT_QUEUE, &params, &page);

	return r != 0 ? r : add_page(ctl, &page, where->shard, t, list);
}

static int
ask_all(struct ctl *ctl, struct table *t, json_t *list)
{
	struct supervisor_list_params params = { 0 };
	struct supervisor_list_result actors = { .nactors = 0 };
	int r = ctl_open(ctl);

	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_list, &params, &actors);
	for (size_t i = 0; r == 0 && i < actors.nactors; i++)
		if (strncmp(actors.actors[i].address, "project/", 8) == 0)
			r = ask_shard(ctl, actors.actors[i].address, t, list);
	return r;
}

static int
queue_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "PROJECT", "RUN", "STATUS", ">POS", "BRANCH",
		">AGE", "DISPATCH", "INDEX", "NEXT", "FOR" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	CLEANUP(json_unrefp) json_t *list = json_array();
	struct place project;
	int r;

	if (t == NULL || list == NULL)
		return ctl_fail_nomem();
	if (args->nwords == 0) {
		r = ask_all(ctl, t, list);
	} else {
		r = resolve_project(ctl, args->words[0], &project);
		if (r == 0)
			r = ask_project(ctl, &project, t, list);
	}
	if (r != 0)
		return r;
	return ctl->json ? ctl_print_json(ctl, list)
			 : ctl_print_table(ctl, t, "nothing runs, nothing waits");
}

const struct command command_queue = {
	.name = "queue",
	.words = "[PROJECT]",
	.summary = "shows what runs and what waits, in order",
	.more =
	    "DISPATCH is how far the run's process has come, with the attempts; INDEX whether\n"
	    "lists show its newest state; NEXT the deadline that the shard waits for, and FOR what,\n"
	    "or the last error of the run.",
	.max_words = 1,
	.run = queue_run,
};
