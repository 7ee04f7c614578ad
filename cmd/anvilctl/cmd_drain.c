/* anvilctl drain, anvilctl resume: whether new runs are started. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/supervisor.h"

static int
drain_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_drain_params params = { 0 };
	struct supervisor_drain_result done;
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_drain, &params, &done);
	if (r == 0 && ctl->json)
		return ctl_print_json(ctl, NULL);
	if (r == 0)
		(void)printf("no new runs are started; `anvilctl resume` ends that\n");
	return r;
}

static int
resume_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_resume_params params = { 0 };
	struct supervisor_resume_result done;
	int r = ctl_open(ctl);

	(void)args;
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_resume, &params, &done);
	if (r == 0 && ctl->json)
		return ctl_print_json(ctl, NULL);
	if (r == 0)
		(void)printf("runs are started again\n");
	return r;
}

const struct command command_drain = {
	.name = "drain",
	.words = "",
	.summary = "starts no new runs; those that run go on, more are accepted",
	.run = drain_run,
};

const struct command command_resume = {
	.name = "resume",
	.words = "",
	.summary = "starts runs again",
	.run = resume_run,
};
