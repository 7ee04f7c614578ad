/* anvilctl cancel RUN. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/project.h"

static int
cancel_run(struct ctl *ctl, const struct args *args)
{
	struct project_cancel_run_result done = { .kind = 0 };
	struct project_cancel_run_params params;
	struct place run;
	int r = resolve_run(ctl, args->words[0], &run);

	if (r != 0)
		return r;
	params = (struct project_cancel_run_params) {
		.project_id = run.project_id, .run_id = run.run_id, .by = "operator"
	};
	r = PLACE_CALL(ctl, &run, project_cancel_run, PROJECT_CANCEL_RUN, &params, &done);
	if (r != 0)
		return r;
	if (done.kind != PROJECT_CANCEL_RUN_OK)
		return ctl_fail("%s does not have %s now; try again", run.shard, run.run_id);
	if (ctl->json)
		return ctl_print_member(ctl, "run");
	(void)printf("%s is %s\n", run.run_id, run_status_name(done.u.ok.run.status));
	return CTL_OK;
}

const struct command command_cancel = {
	.name = "cancel",
	.words = "RUN",
	.summary = "cancels a run; one that is over stays as it is",
	.more =
	    "A waiting run is canceled at once; an active one gets SIGTERM, and SIGKILL 30 s\n"
	    "later.",
	.min_words = 1,
	.max_words = 1,
	.run = cancel_run,
};
