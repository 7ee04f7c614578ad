/*
 * cmd/anvil-run/main.c -- one run, from claim to settlement; with --serve, what is left of it.
 * Opens run.db and log.zst of that run and nothing else.  Git is in a child that is started
 * before this process has read anything; the project's token lives until that child has it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "cmd/anvil-run/check.h"
#include "cmd/anvil-run/copy.h"
#include "cmd/anvil-run/run.h"
#include "cmd/anvil-run/setup.h"
#include "lib/base/crash.h"
#include "lib/base/id.h"

static const struct proc_option options[] = {
	{ "RUN_ID", NULL, "the run; not with --copy or --check-all", 0 },
	{ "--project", "PRJ", "its project", 0 },
	{ "--shard", "N", "number of the shard that has the project", 0 },
	{ "--spawn", "SPAWN_ID", "names this process in its claim", 0 },
	{ "--serve", NULL, "answers for a run that has ended", 0 },
	{ "--check-all", NULL, "looks at the records of runs that nobody has open", 0 },
	{ "--copy", "FOLDER", "copies the records of runs that nobody has open", 0 },
};
static const struct proc_role role = { "anvil-run", "one run, from claim to settlement",
	options, ARRAY_LEN(options), 1 };

/* The environment of a process that will hold a token: nothing of it can be read or dumped,
 * and what its steps leave behind becomes its child. */
static int
confine(void)
{
	static const struct rlimit none = { 0, 0 };

	return prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
		setrlimit(RLIMIT_CORE, &none) < 0
	    ? -1
	    : 0;
}

/* The form that executes is the one that names its claim. */
static int
executes(int argc, char *argv[])
{
	int spawn = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--check") == 0 || strcmp(argv[i], "--serve") == 0 ||
		    strcmp(argv[i], "--copy") == 0 || strcmp(argv[i], "--check-all") == 0)
			return 0;
		spawn |= strcmp(argv[i], "--spawn") == 0;
	}
	return spawn;
}

static void
check_options(struct proc *p, int serving)
{
	int whole = proc_option(p, "--project") != NULL && proc_option(p, "--shard") != NULL &&
	    proc_option(p, "--spawn") != NULL;

	if (proc_option(p, "RUN_ID") == NULL || !id_check(ID_RUN, proc_option(p, "RUN_ID")))
		proc_die(p, "RUN_ID is no run's id");
	if (serving || proc_wants_check(p))
		return;
	if (!whole || !id_check(ID_PROJECT, proc_option(p, "--project")) ||
	    !id_hex32_check(proc_option(p, "--spawn")))
		proc_die(p, "--project, --shard and --spawn belong together");
}

int
main(int argc, char *argv[])
{
	struct git_child child = GIT_CHILD_NONE;
	struct run_actor *r;
	struct proc *p;
	int serving;

	if (executes(argc, argv) && git_start(&child) < 0)
		return EXIT_NOT_CLAIMED;
	CRASH_POINT("run_begun");
	p = proc_start(&role, argc, argv);
	if (proc_option(p, "--copy") != NULL)
		return copy_runs(p);
	if (proc_option(p, "--check-all") != NULL)
		return check_runs(p);
	serving = proc_option(p, "--serve") != NULL;
	check_options(p, serving);
	if (confine() < 0)
		proc_die(p, "the process cannot be confined");
	if (proc_wants_check(p))
		return check_run(p);
	r = setup_run(p, serving, &child);
	return proc_run(p, r);
}
