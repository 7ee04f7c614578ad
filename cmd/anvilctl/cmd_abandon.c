/* anvilctl abandon RUN: gives up a process that no signal ends. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"
#include "lib/base/id.h"

#define KILL_MS 5000 /* What a process takes that SIGKILL does end. */

struct runner {
	char spawn_id[ID_HEX32_SIZE];
	int64_t pid;
};

/* CTL_REFUSED, said, when none executes it. */
static int
find_runner(struct ctl *ctl, const char *run_id, struct runner *ret)
{
	struct supervisor_list_runs_params params = { 0 };
	struct supervisor_list_runs_result live = { .nruns = 0 };
	int r = CTL_CALL(ctl, "supervisor", supervisor_list_runs, &params, &live);

	for (size_t i = 0; r == 0 && i < live.nruns; i++) {
		const struct run_process *p = &live.runs[i];

		if (p->mode == RUN_MODE_SERVE || strcmp(p->run_id, run_id) != 0)
			continue;
		(void)snprintf(ret->spawn_id, sizeof(ret->spawn_id), "%s", p->spawn_id);
		ret->pid = p->pid;
		return 0;
	}
	return r != 0 ? r
		      : ctl_fail("no process executes %s, so there is none to give up; "
				 "`anvilctl why %s` tells what became of it",
			    run_id, run_id);
}

/* 1: SIGKILL has ended it; 0: it lives on; below 0: an error. */
static int
ends_by_kill(struct ctl *ctl, const char *run_id, const struct runner *p)
{
	struct supervisor_kill_run_params params = { run_id, p->spawn_id };
	struct supervisor_kill_run_result done = { .kind = 0 };
	int64_t deadline_ms = ctl->deadline_ms;
	int r;

	ctl->deadline_ms = KILL_MS;
	r = CTL_TRY(ctl, "supervisor", supervisor_kill_run, &params, &done);
	ctl->deadline_ms = deadline_ms;
	return r == 0 ? 1 : r == E_DEADLINE ? 0 : r;
}

static int
tell(const struct ctl *ctl, const char *run_id, const struct runner *p, int killed)
{
	if (ctl->json)
		(void)printf("{\"runId\":\"%s\",\"pid\":%lld,\"outcome\":\"%s\"}\n", run_id,
		    (long long)p->pid, killed ? "killed" : "abandoned");
	else if (killed)
		(void)printf(
		    "%s: its process %lld has ended by SIGKILL; nothing had to be given up\n",
		    run_id, (long long)p->pid);
	else
		(void)printf(
		    "%s is given up, and its project goes on; process %lld stays until "
		    "the kernel lets it go\n",
		    run_id, (long long)p->pid);
	return CTL_OK;
}

static int
abandon_run(struct ctl *ctl, const struct args *args)
{
	struct supervisor_abandon_params params;
	struct supervisor_abandon_result done = { .kind = 0 };
	struct runner p;
	struct place run;
	int r = resolve_run(ctl, args->words[0], &run);

	if (r == 0)
		r = find_runner(ctl, run.run_id, &p);
	if (r != 0)
		return r;
	r = ends_by_kill(ctl, run.run_id, &p);
	if (r < 0)
		return ctl_explain(ctl, "supervisor", r);
	if (r == 0) {
		params = (struct supervisor_abandon_params) { .run_id = run.run_id };
		r = CTL_CALL(ctl, "supervisor", supervisor_abandon, &params, &done);
		if (r != 0)
			return r;
		return tell(ctl, run.run_id, &p, done.kind == SUPERVISOR_ABANDON_ABSENT);
	}
	return tell(ctl, run.run_id, &p, 1);
}

const struct command command_abandon = {
	.name = "abandon",
	.words = "RUN",
	.summary = "gives up a run whose process no signal ends",
	.more =
	    "For a process that hangs in the kernel (state D), on a disk that does not answer\n"
	    "for instance.  It is sent SIGKILL once more, and only when it is there 5 s later\n"
	    "it is given up: the run ends as lost, the next one of its project starts.  If the\n"
	    "process ever wakes up it finds that it has lost its run, and ends.",
	.min_words = 1,
	.max_words = 1,
	.run = abandon_run,
};
