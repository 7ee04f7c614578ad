/* anvilctl run PROJECT: triggers a run, and may follow it to its end. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/follow.h"
#include "gen/ingress.h"
#include "gen/supervisor.h"

/* A shard that has no store to write to has accepted nothing, and its supervisor knows why. */
static int
say_storage(struct ctl *ctl, const struct place *project)
{
	struct supervisor_list_params params = { 0 };
	struct supervisor_list_result actors = { .nactors = 0 };
	int r = CTL_TRY(ctl, "supervisor", supervisor_list, &params, &actors);

	for (size_t i = 0; r == 0 && i < actors.nactors; i++) {
		const struct actor_process *a = &actors.actors[i];

		if (a->outage != NULL && strcmp(a->address, project->shard) == 0)
			return ctl_fail("%s: nothing was accepted, for %s cannot serve: %s",
			    project->name, project->shard, a->outage);
	}
	return ctl_fail("%s: the store of %s did not take it (`anvilctl health` may tell why); "
			"whether the run was accepted after all: `anvilctl queue %s`",
	    project->name, project->shard, project->name);
}

static int
say_unavailable(struct ctl *ctl, const struct place *project, const char *why)
{
	if (why != NULL && strcmp(why, "storage_unavailable") == 0)
		return say_storage(ctl, project);
	if (why != NULL && strcmp(why, "project_moving") == 0)
		return ctl_fail(
		    "%s: nothing was accepted, for it is being moved to another shard; try again",
		    project->name);
	return ctl_fail("%s: %s did not answer; whether the run was accepted is not known: "
			"`anvilctl queue %s`",
	    project->name, project->shard, project->name);
}

static int
trigger(struct ctl *ctl, const struct place *project, const char *branch, struct place *ret_run)
{
	struct ingress_trigger_run_params params = { .project_id = project->project_id,
		.branch = branch };
	struct ingress_trigger_run_result done = { .kind = 0 };
	int r = CTL_CALL(ctl, "ingress", ingress_trigger_run, &params, &done);

	if (r != 0)
		return r;
	switch (done.kind) {
	case INGRESS_TRIGGER_RUN_ACCEPTED: break;
	case INGRESS_TRIGGER_RUN_QUEUE_FULL:
		return ctl_fail("%s: the queue is full; `anvilctl queue %s` shows it",
		    project->name, project->name);
	case INGRESS_TRIGGER_RUN_UNAVAILABLE:
		return say_unavailable(ctl, project, done.u.unavailable.reason);
	default: return ctl_fail("%s is gone", project->name);
	}
	*ret_run = (struct place) { .name = "" };
	(void)snprintf(ret_run->run_id, ID_SIZE, "%s", done.u.accepted.run.run_id);
	(void)snprintf(ret_run->project_id, ID_SIZE, "%s", project->project_id);
	(void)snprintf(
	    ret_run->shard, sizeof(ret_run->shard), "project/%d", (int)done.u.accepted.shard);
	return 0;
}

static int
run_run(struct ctl *ctl, const struct args *args)
{
	int watch = args_value(args, "--watch") != NULL;
	struct place project, run;
	enum run_status status;
	int r = resolve_project(ctl, args->words[0], &project);

	if (r == 0)
		r = trigger(ctl, &project, args_value(args, "--branch"), &run);
	if (r != 0)
		return r;
	if (!watch) {
		if (ctl->json)
			return ctl_print_member(ctl, "run");
		(void)printf("%s\n", run.run_id);
		return CTL_OK;
	}
	r = follow_log(ctl, &run, 1, &status);
	return r != 0 ? r : follow_outcome(ctl, &run);
}

static const struct option_row options[] = {
	{ "--branch", 'b', "BRANCH", "instead of the project's default branch" },
	{ "--watch", 'w', NULL, "follow the log, then exit with the result" },
};

const struct command command_run = {
	.name = "run",
	.words = "PROJECT",
	.summary = "starts a run and prints its id",
	.more = "With --watch the exit status is 0 when the run passed and 1 when it did not.",
	.min_words = 1,
	.max_words = 1,
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = run_run,
};
