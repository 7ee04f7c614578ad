/* anvilctl history: starts, ends and restarts, newest last. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/supervisor.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     500

static void
add_event(struct table *t, const struct history_event *e)
{
	const char *event = history_word_name(e->event);

	table_add_time(t, e->at);
	table_add(t, TONE_PLAIN, "%s", e->address);
	table_add_word(t, event);
	if (e->has_pid)
		table_add(t, TONE_PLAIN, "%lld", (long long)e->pid);
	else
		table_add(t, TONE_PLAIN, "-");
	table_add_duration(t, e->has_uptime_ms ? e->uptime_ms : -1);
	if (e->has_signal)
		table_add(t, TONE_PLAIN, "signal %lld", (long long)e->signal);
	else if (e->has_exit_status)
		table_add(t, TONE_PLAIN, "status %lld", (long long)e->exit_status);
	else
		table_add(t, TONE_PLAIN, "-");
	table_add(t, TONE_PLAIN, "%s", e->reason != NULL ? e->reason : "");
}

static int
history_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "TIME", "ADDRESS", "EVENT", ">PID", ">UPTIME",
		"END", "REASON" };
	CLEANUP(table_freep) struct table *t = table_new(heads, ARRAY_LEN(heads));
	struct supervisor_history_params params = { .limit = LIMIT_DEFAULT };
	struct supervisor_history_result events = { .nevents = 0 };
	const char *limit = args_value(args, "--limit");
	long n = LIMIT_DEFAULT;
	int r;

	if (limit != NULL && args_number(limit, 1, LIMIT_MAX, &n) < 0) {
		(void)ctl_fail("--limit: a number from 1 to %d", LIMIT_MAX);
		return CTL_USAGE;
	}
	params.limit = n;
	r = ctl_open(ctl);
	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_history, &params, &events);
	if (r != 0)
		return r;
	if (ctl->json)
		return ctl_print_member(ctl, "events");
	for (size_t i = events.nevents; t != NULL && i > 0; i--)
		add_event(t, &events.events[i - 1]);
	return ctl_print_table(ctl, t, "no events");
}

static const struct option_row options[] = {
	{ "--limit", 'n', "N", "of the newest events; 50 when not given, at most 500" },
};

const struct command command_history = {
	.name = "history",
	.words = "",
	.summary = "shows starts, ends and restarts, and their reasons",
	.options = options,
	.noptions = ARRAY_LEN(options),
	.run = history_run,
};
