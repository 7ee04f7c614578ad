/* anvilctl ps: every actor and every process of a run. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/ctl.h"
#include "gen/actor.h"
#include "gen/supervisor.h"

/* What the supervisor and the actor itself say of one process. */
struct ps_row {
	const char *address, *state;
	int64_t pid, uptime_ms, restarts; /* -1: unknown. */
	int has_info;
	struct actor_info_result info;
};

static void
ask(struct ctl *ctl, struct ps_row *row)
{
	struct actor_info_params params = { 0 };

	if (row->pid < 0)
		return;
	ctl->deadline_ms = CTL_QUICK_DEADLINE_MS;
	row->has_info = CTL_TRY(ctl, row->address, actor_info, &params, &row->info) == 0;
	ctl->deadline_ms = CTL_DEADLINE_MS;
}

static void
add_number(struct table *t, int64_t n)
{
	if (n < 0)
		table_add(t, TONE_PLAIN, "-");
	else
		table_add(t, TONE_PLAIN, "%lld", (long long)n);
}

static void
add_row(struct table *t, const struct ps_row *row)
{
	const struct actor_info_result *info = row->has_info ? &row->info : NULL;

	table_add(t, TONE_PLAIN, "%s", row->address);
	add_number(t, row->pid);
	table_add_word(t, row->state);
	table_add_duration(t, row->pid >= 0 ? row->uptime_ms : -1);
	add_number(t, row->restarts);
	table_add_bytes(t, info != NULL ? info->rss_bytes : -1);
	table_add_bytes(t, info != NULL && info->has_store_bytes ? info->store_bytes : -1);
	add_number(t, info != NULL ? info->in_flight : -1);
	table_add(t, TONE_PLAIN, "%s", info != NULL ? info->doing : row->pid >= 0 ? "?" : "");
}

static int
add_json(json_t *list, const struct ps_row *row)
{
	const struct actor_info_result *info = &row->info;
	json_t *j = json_pack("{s:s, s:s}", "address", row->address, "state", row->state);
	int r = 0;

	r |= json_object_set_new(
	    j, "pid", row->pid >= 0 ? json_integer(row->pid) : json_null());
	r |= json_object_set_new(
	    j, "uptimeMs", row->pid >= 0 ? json_integer(row->uptime_ms) : json_null());
	r |= json_object_set_new(
	    j, "restarts", row->restarts >= 0 ? json_integer(row->restarts) : json_null());
	r |= json_object_set_new(
	    j, "rssBytes", row->has_info ? json_integer(info->rss_bytes) : json_null());
	r |= json_object_set_new(j, "storeBytes",
	    row->has_info && info->has_store_bytes ? json_integer(info->store_bytes)
						   : json_null());
	r |= json_object_set_new(
	    j, "inFlight", row->has_info ? json_integer(info->in_flight) : json_null());
	r |= json_object_set_new(
	    j, "doing", row->has_info ? json_string(info->doing) : json_null());
	return r | json_array_append_new(list, j);
}

/* ${t} or ${list}, whichever is there, gets one more. */
static int
add(struct ctl *ctl, struct table *t, json_t *list, struct ps_row *row)
{
	ask(ctl, row);
	if (t != NULL)
		add_row(t, row);
	return list != NULL ? add_json(list, row) : 0;
}

static int
add_all(struct ctl *ctl, struct table *t, json_t *list)
{
	struct supervisor_list_params list_params = { 0 };
	struct supervisor_list_result actors = { .nactors = 0 };
	struct supervisor_list_runs_params runs_params = { 0 };
	struct supervisor_list_runs_result runs = { .nruns = 0 };
	int r = CTL_CALL(ctl, "supervisor", supervisor_list, &list_params, &actors);

	if (r == 0)
		r = CTL_CALL(ctl, "supervisor", supervisor_list_runs, &runs_params, &runs);
	for (size_t i = 0; r == 0 && i < actors.nactors; i++) {
		const struct actor_process *a = &actors.actors[i];
		struct ps_row row = { .address = a->address,
			.state = actor_state_name(a->state),
			.pid = a->has_pid ? a->pid : -1,
			.uptime_ms = a->uptime_ms,
			.restarts = a->restarts };

		/* Processes of runs come below, where it is known what they are for. */
		if (strncmp(a->address, "run/", 4) != 0 && add(ctl, t, list, &row) != 0)
			r = ctl_fail_nomem();
	}
	for (size_t i = 0; r == 0 && i < runs.nruns; i++) {
		const struct run_process *p = &runs.runs[i];
		char address[RPC_ADDRESS_SIZE];
		struct ps_row row = { .address = address,
			.state = p->mode == RUN_MODE_SERVE ? "serve" : "running",
			.pid = p->pid,
			.uptime_ms = max_i64(0, clock_wall_ms() - p->since),
			.restarts = -1 };

		(void)snprintf(address, sizeof(address), "run/%s", p->run_id);
		r = add(ctl, t, list, &row) != 0 ? ctl_fail_nomem() : 0;
	}
	return r;
}

static int
ps_run(struct ctl *ctl, const struct args *args)
{
	static const char *const heads[] = { "ADDRESS", ">PID", "STATE", ">UPTIME", ">RESTARTS",
		">RSS", ">STORE", ">IN-FLIGHT", "DOING" };
	CLEANUP(table_freep) struct table *t = NULL;
	CLEANUP(json_unrefp) json_t *list = NULL;
	int r = ctl_open(ctl);

	(void)args;
	if (ctl->json)
		list = json_array();
	else
		t = table_new(heads, ARRAY_LEN(heads));
	if (list == NULL && t == NULL)
		return ctl_fail_nomem();
	if (r == 0)
		r = add_all(ctl, t, list);
	if (r != 0)
		return r;
	return ctl->json ? ctl_print_json(ctl, list) : ctl_print_table(ctl, t, "no actors");
}

const struct command command_ps = {
	.name = "ps",
	.words = "",
	.summary = "lists every actor: process, state, sizes, what it is doing",
	.more =
	    "IN-FLIGHT counts requests that are owed an answer.  A process in state `serve`\n"
	    "answers for a run that has ended.  `?`: the process did not answer in 2 s.",
	.run = ps_run,
};
