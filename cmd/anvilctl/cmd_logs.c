/* anvilctl logs RUN: the whole text of its log. */
#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/follow.h"

static int
logs_run(struct ctl *ctl, const struct args *args)
{
	int result = args_value(args, "--result") != NULL;
	int until_end = result || args_value(args, "--follow") != NULL;
	enum run_status status;
	struct place run;
	int r = resolve_run(ctl, args->words[0], &run);

	if (r == 0 && ctl->json && !result)
		r = follow_rows(ctl, &run, until_end, &status);
	else if (r == 0)
		r = follow_log(ctl, &run, until_end, &status);
	return r == 0 && result ? follow_outcome(ctl, &run) : r;
}

static const struct option_row options[] = {
	{ "--follow", 'f', NULL, "go on until the run is over" },
	{ "--result", 'r', NULL, "the same; then the steps, and exit with the run's result" },
};

const struct command command_logs = {
	.name = "logs",
	.words = "RUN",
	.summary = "prints the log of a run",
	.more =
	    "All streams in the order in which they came.  `anvilctl run --watch` exits with the\n"
	    "run's result; this does not.\n"
	    "\n"
	    "With --json each line of the log is an object: seq, time, step (null before the\n"
	    "first), stream (stdout, stderr, system) and text, which ends with its newline unless\n"
	    "the line goes on in a later object of its stream.  {\"gap\": {\"fromSeq\", \"toSeq\"}}\n"
	    "stands for older lines of a long log, which are in the plain text alone.  --result\n"
	    "with --json prints one object, the run with its steps, and no log.",
	.min_words = 1,
	.max_words = 1,
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = logs_run,
};
