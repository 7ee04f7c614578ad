/* The records of runs that nobody has open: read by one process of anvil, and compared. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

#define POLL_MS    50
#define LINE_DEPTH 6

/* ---- the report ---- */

static const char *
text_of(struct arena *a, const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text != NULL ? arena_strdup(a, text) : NULL;
}

static int
read_problems(struct arena *a, const json_t *list, struct record_seen *seen)
{
	struct check_problem *rows = arena_calloc(a, json_array_size(list) + 1, sizeof(*rows));
	const json_t *p;
	size_t i;

	if (rows == NULL)
		return E_NOMEM;
	json_array_foreach (list, i, p) {
		rows[i] = (struct check_problem) { .code = text_of(a, p, "code"),
			.subject = text_of(a, p, "subject"),
			.text = text_of(a, p, "text") };
		if (rows[i].code == NULL || rows[i].subject == NULL || rows[i].text == NULL)
			return E_NOMEM;
	}
	seen->problems = rows;
	seen->nproblems = json_array_size(list);
	return 0;
}

static int
read_run(struct records *r, const json_t *j, const char *run_id)
{
	struct record_seen *seen = arena_alloc(r->arena, sizeof(*seen));
	int err;

	if (seen == NULL)
		return E_NOMEM;
	*seen = (struct record_seen) { .state = text_of(r->arena, j, "state"),
		.project_id = text_of(r->arena, j, "projectId"),
		.status = text_of(r->arena, j, "status"),
		.failure_code = text_of(r->arena, j, "failureCode"),
		.epoch = json_integer_value(json_object_get(j, "epoch")),
		.finished_at = json_integer_value(json_object_get(j, "finishedAt")),
		.has_exit_code = json_object_get(j, "exitCode") != NULL,
		.exit_code = json_integer_value(json_object_get(j, "exitCode")) };
	err = seen->state != NULL
	    ? read_problems(r->arena, json_object_get(j, "problems"), seen)
	    : E_NOMEM;
	return err < 0 ? err : map_set(r->by_run, run_id, seen);
}

static int
read_line(struct records *r, const char *line, size_t n)
{
	CLEANUP(json_unrefp) json_t *j = NULL;
	const char *run_id, *why;
	int err = json_text_parse(line, n, LINE_DEPTH, &j);

	if (err < 0)
		return err == E_NOMEM
		    ? ctl_fail_nomem()
		    : ctl_fail("the report on runs is none: %s", err_text(err));
	why = json_string_value(json_object_get(j, "failed"));
	if (why != NULL)
		return ctl_fail("the records of runs could not all be looked at: %s", why);
	if (json_object_get(j, "total") != NULL)
		r->total = (size_t)json_integer_value(json_object_get(j, "total"));
	run_id = json_string_value(json_object_get(j, "runId"));
	if (run_id != NULL && read_run(r, j, run_id) < 0)
		return ctl_fail_nomem();
	return 0;
}

static int
read_lines(struct records *r, const char *text)
{
	int status = 0;

	while (status == 0 && *text != '\0') {
		size_t n = strcspn(text, "\n");

		status = read_line(r, text, n);
		text += n + (text[n] == '\n');
	}
	return status;
}

/* ---- the process ---- */

static void
say_progress(const struct ctl *ctl, const struct records *r)
{
	if (ctl->color && r->total > 0)
		(void)fprintf(
		    stderr, "\rrecords of runs: %zu of %zu ", map_count(r->by_run), r->total);
}

/* Somebody else's pass may have begun before what we have seen since. */
static int
start(struct ctl *ctl)
{
	struct supervisor_check_runs_params params = { 0 };
	struct supervisor_check_runs_result result = { .kind = 0 };

	for (;;) {
		int r = CTL_CALL(ctl, "supervisor", supervisor_check_runs, &params, &result);

		if (r != 0 || result.kind == SUPERVISOR_CHECK_RUNS_STARTED)
			return r;
		client_pause(ctl->client, POLL_MS);
	}
}

static int
follow(struct records *r, struct ctl *ctl)
{
	struct supervisor_check_status_params params = { .from = 0 };
	struct supervisor_check_status_result page;
	int status, more = 1;

	while (more) {
		page = (struct supervisor_check_status_result) { .kind = 0 };
		status = CTL_CALL(ctl, "supervisor", supervisor_check_status, &params, &page);
		if (status == 0 && page.kind != SUPERVISOR_CHECK_STATUS_STATUS)
			status = ctl_fail("the supervisor has begun anew; try again");
		if (status == 0)
			status = read_lines(r, page.u.status.lines);
		if (status != 0)
			return status;
		say_progress(ctl, r);
		more = page.u.status.running || page.u.status.next != params.from;
		if (more && page.u.status.next == params.from)
			client_pause(ctl->client, POLL_MS);
		params.from = page.u.status.next;
		if (!more && page.u.status.failed != NULL)
			return ctl_fail("the records of runs could not all be looked at: %s",
			    page.u.status.failed);
		client_forget(ctl->client);
	}
	return 0;
}

int
records_read(struct records *r, struct ctl *ctl)
{
	int status;

	records_done(r);
	*r = (struct records) { .arena = arena_new(), .by_run = map_new() };
	if (r->arena == NULL || r->by_run == NULL)
		return ctl_fail_nomem();
	status = start(ctl);
	return status != 0 ? status : follow(r, ctl);
}

void
records_done(struct records *r)
{
	r->by_run = map_free(r->by_run);
	r->arena = arena_free(r->arena);
}

/* ---- against the ledgers ---- */

static int
is_ended(const struct record_seen *seen)
{
	return seen->status != NULL &&
	    (strcmp(seen->status, "passed") == 0 || strcmp(seen->status, "failed") == 0 ||
		strcmp(seen->status, "canceled") == 0);
}

/* A takeover that cannot reach a store ends the run without it, and a run that was not
 * claimed, or was given back, has ended without it as well. */
static int
ends_with_its_record(const struct ledger_run_row *run)
{
	const struct run_row *row = &run->row;

	if (row->has_failure_code &&
	    (row->failure_code == FAILURE_CODE_RUNNER_LOST ||
		row->failure_code == FAILURE_CODE_DISPATCH_FAILED))
		return 0;
	return run->has_claimed_at;
}

static int
same_end(const struct record_seen *seen, const struct run_row *row)
{
	const char *code = row->has_failure_code ? failure_code_name(row->failure_code) : NULL;
	int same_code = code == NULL || seen->failure_code == NULL
	    ? code == seen->failure_code
	    : strcmp(code, seen->failure_code) == 0;

	return strcmp(seen->status, run_status_name(row->status)) == 0 && same_code &&
	    seen->has_exit_code == row->has_exit_code &&
	    (!seen->has_exit_code || seen->exit_code == row->exit_code);
}

static void
compare_record(struct look *l, const char *run_id, const struct record_seen *seen)
{
	const struct ledger_seen *ledger = map_get(l->ledger_runs, run_id);
	const char *place = arena_format(l->arena, "run/%s", run_id);
	const struct ledger_run_row *run = ledger != NULL ? ledger->run : NULL;

	if (place == NULL || run == NULL || seen->status == NULL)
		return;
	if (seen->project_id != NULL && strcmp(seen->project_id, run->row.project_id) != 0)
		finding_add(l->found, "record_of_project", place, run_id,
		    "is of %s in its own store and of %s in the ledger", seen->project_id,
		    run->row.project_id);
	if (run->status < LEDGER_STATUS_PASSED)
		return;
	if (!is_ended(seen) && ends_with_its_record(run))
		finding_add(l->found, "record_unfinished", place, run_id,
		    "is %s in its own store and %s in the ledger", seen->status,
		    ledger_status_name(run->status));
	else if (is_ended(seen) && !same_end(seen, &run->row))
		finding_add(l->found, "record_end_differs", place, run_id,
		    "is %s (%s) in its own store and %s (%s) in the ledger", seen->status,
		    seen->failure_code != NULL ? seen->failure_code : "no failure",
		    ledger_status_name(run->status),
		    run->row.has_failure_code ? failure_code_name(run->row.failure_code)
					      : "no failure");
}

void
look_records(struct look *l)
{
	const char *id;
	void *value;

	if (l->records == NULL || l->records->by_run == NULL)
		return;
	for (size_t at = 0; map_next(l->records->by_run, &at, &id, &value);) {
		const struct record_seen *seen = value;
		const char *place = arena_format(l->arena, "run/%s", id);

		for (size_t i = 0; place != NULL && i < seen->nproblems; i++)
			finding_add_own(l->found, place, &seen->problems[i]);
		compare_record(l, id, seen);
	}
}
