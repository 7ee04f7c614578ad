/* What ledgers, index and processes say of each other (spec project 19). */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/base.h"

#define KEPT_MS (7 * INT64_C(86400000)) /* a ledger row, after it is done */

static int
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const char *
shard_address(struct look *l, int shard)
{
	const char *text = arena_format(l->arena, "project/%d", shard);

	return text != NULL ? text : "project";
}

/* ---- projects ---- */

static int
owns(const struct owner_seen *o)
{
	enum project_phase phase = o->project->phase;

	return phase == PROJECT_PHASE_LIVE || phase == PROJECT_PHASE_FROZEN ||
	    phase == PROJECT_PHASE_REMOVING;
}

static int
is_in_shard(const struct owner_seen *o, int64_t shard)
{
	for (; o != NULL; o = o->next)
		if (o->shard == shard)
			return 1;
	return 0;
}

/* Whoever gave it away does not hear that it was removed where it went.  A shard that is left out
 * held none, or anvild would not have started. */
static int
was_removed(struct look *l, int64_t shard, const char *project_id)
{
	struct project_was_removed_params params = { .project_id = project_id };
	struct project_was_removed_result res = { 0 };
	const char *to = shard_address(l, (int)shard);

	return shard >= l->nshards ||
	    (CTL_TRY(l->ctl, to, project_was_removed, &params, &res) == 0 && res.removed);
}

static int
is_homeless(struct look *l, const struct owner_seen *all, const struct owner_seen *o)
{
	if (o->project->phase == PROJECT_PHASE_INCOMING)
		return 1;
	return !is_in_shard(all, o->project->move_to) &&
	    !was_removed(l, o->project->move_to, o->project->project_id);
}

/* One owner; and whoever gave it away gave it to somebody who has it. */
static void
compare_owners(struct look *l, const char *project_id, const struct owner_seen *all)
{
	const struct owner_seen *owner = NULL;

	for (const struct owner_seen *o = all; o != NULL; o = o->next) {
		if (!owns(o))
			continue;
		if (owner != NULL)
			finding_add(l->found, "project_owners", "project", project_id,
			    "is owned by shards %d and %d", owner->shard, o->shard);
		owner = o;
	}
	if (owner != NULL || !l->has_all_shards)
		return;
	for (const struct owner_seen *o = all; o != NULL; o = o->next)
		if (is_homeless(l, all, o))
			finding_add(l->found, "project_homeless", shard_address(l, o->shard),
			    project_id, "is %s and no shard owns it",
			    project_phase_name(o->project->phase));
}

static int
same_config(const struct project_config *a, const struct project_config *b)
{
	return same_text(a->owner_user_id, b->owner_user_id) &&
	    same_text(a->owner_slug, b->owner_slug) &&
	    same_text(a->project_slug, b->project_slug) && same_text(a->name, b->name) &&
	    same_text(a->repo_url, b->repo_url) &&
	    same_text(a->default_branch, b->default_branch) &&
	    same_text(a->config_path, b->config_path) && a->badge_public == b->badge_public;
}

/* The copy of a project that the index has acknowledged. */
static void
compare_copy(struct look *l, const struct owner_seen *o)
{
	const struct ledger_project_row *p = o->project;
	const struct index_project_row *copy = map_get(l->index_projects, p->project_id);

	if (p->phase != PROJECT_PHASE_LIVE || !p->in_index || p->config == NULL)
		return;
	if (copy == NULL)
		finding_add(l->found, "index_project_missing", "ingress", p->project_id,
		    "is not in the index, which has acknowledged it to shard %d", o->shard);
	else if (copy->rev < p->rev ||
	    (copy->rev == p->rev && !same_config(&copy->config, p->config)))
		finding_add(l->found, "index_project_differs", "ingress", p->project_id,
		    "is another in the index (%lld) than in shard %d (%lld)",
		    (long long)copy->rev, o->shard, (long long)p->rev);
	else if (copy->shard != o->shard)
		finding_add(l->found, "index_project_differs", "ingress", p->project_id,
		    "is in shard %d, and the index says %lld", o->shard,
		    (long long)copy->shard);
}

static void
compare_projects(struct look *l)
{
	const char *id;
	void *value;

	for (size_t at = 0; map_next(l->ledger_projects, &at, &id, &value);) {
		compare_owners(l, id, value);
		for (const struct owner_seen *o = value; o != NULL && l->has_index; o = o->next)
			compare_copy(l, o);
	}
	for (size_t at = 0; l->has_all_shards && map_next(l->index_projects, &at, &id, &value);)
		if (((const struct index_project_row *)value)->confirmed &&
		    map_get(l->ledger_projects, id) == NULL)
			finding_add(l->found, "index_project_unknown", "ingress", id,
			    "is in the index, and no shard knows it");
}

/* ---- runs ---- */

static int
same_end(const struct run_row *a, const struct run_row *b)
{
	return a->has_finished_at == b->has_finished_at &&
	    (!a->has_finished_at || a->finished_at == b->finished_at) &&
	    a->has_exit_code == b->has_exit_code &&
	    (!a->has_exit_code || a->exit_code == b->exit_code) &&
	    a->has_failure_code == b->has_failure_code &&
	    (!a->has_failure_code || a->failure_code == b->failure_code) &&
	    same_text(a->error_message, b->error_message);
}

static int
same_run(const struct run_row *a, const struct run_row *b)
{
	return same_text(a->project_id, b->project_id) && a->trigger_type == b->trigger_type &&
	    same_text(a->triggered_by_user_id, b->triggered_by_user_id) &&
	    same_text(a->branch, b->branch) && same_text(a->commit_sha, b->commit_sha) &&
	    a->status == b->status && a->queued_at == b->queued_at &&
	    a->has_started_at == b->has_started_at &&
	    (!a->has_started_at || a->started_at == b->started_at) && same_end(a, b);
}

/* What the index has acknowledged it has, and it never has more than the ledger. */
static void
compare_run(struct look *l, const struct ledger_seen *seen)
{
	const struct ledger_run_row *run = seen->run;
	const struct run_row *row = &run->row, *copy = map_get(l->index_runs, row->run_id);
	int known = run->index_sync == INDEX_SYNC_CURRENT || run->index_sync == INDEX_SYNC_DONE;

	if (copy == NULL) {
		if (known)
			finding_add(l->found, "index_run_missing", "ingress", row->run_id,
			    "is not in the index, which has acknowledged it (%s, %lld)",
			    run_status_name(row->status), (long long)row->rev);
		return;
	}
	if ((known && copy->rev < row->rev) || copy->rev > row->rev ||
	    (copy->rev == row->rev && !same_run(copy, row)))
		finding_add(l->found, "index_run_differs", "ingress", row->run_id,
		    "is %s (%lld) in the index and %s (%lld) in the ledger",
		    run_status_name(copy->status), (long long)copy->rev,
		    run_status_name(row->status), (long long)row->rev);
}

/* index.mendCopies has ended it: that it is lost has been said then. */
static int
is_known_to_be_lost(const struct run_row *copy)
{
	return copy->has_failure_code &&
	    copy->failure_code == FAILURE_CODE_INTERNAL_UNEXPECTED &&
	    copy->error_message != NULL &&
	    strstr(copy->error_message, "no ledger knows") != NULL;
}

/* A copy without a ledger row is older than what ledgers keep. */
static void
compare_copies(struct look *l)
{
	int64_t now = clock_wall_ms();
	const char *id;
	void *value;

	for (size_t at = 0; map_next(l->index_runs, &at, &id, &value);) {
		const struct run_row *copy = value;

		if (map_get(l->ledger_runs, id) != NULL)
			continue;
		if (!copy->has_finished_at)
			finding_add(l->found, "index_run_unknown", "ingress", id,
			    "is %s in the index, and no ledger knows it",
			    run_status_name(copy->status));
		else if (copy->finished_at > now - KEPT_MS && copy->finished_at <= now &&
		    !is_known_to_be_lost(copy))
			finding_add(l->found, "ledger_run_missing", "ingress", id,
			    "is %s in the index, and no ledger knows it",
			    run_status_name(copy->status));
	}
}

/* ---- processes ---- */

static int
waits_for_slot(const struct look *l, const char *run_id)
{
	for (size_t i = 0; i < l->processes.nqueue; i++)
		if (strcmp(l->processes.queue[i].run_id, run_id) == 0)
			return 1;
	return 0;
}

static void
compare_claim(struct look *l, const struct ledger_seen *seen)
{
	const struct ledger_run_row *run = seen->run;
	const struct run_process *p = map_get(l->processes_by_run, run->row.run_id);
	const char *place = shard_address(l, seen->shard);

	switch (run->status) {
	case LEDGER_STATUS_ACTIVE:
	case LEDGER_STATUS_CANCEL_REQUESTED:
		if (p == NULL && !run->taking_over)
			finding_add(l->found, "active_without_process", place, run->row.run_id,
			    "is %s and has neither a process nor a takeover (spawn %s)",
			    ledger_status_name(run->status),
			    run->spawn_id != NULL ? run->spawn_id : "none");
		break;
	case LEDGER_STATUS_EXECUTABLE:
		if (p == NULL && run->dispatch_status == DISPATCH_STATUS_QUEUED &&
		    !waits_for_slot(l, run->row.run_id))
			finding_add(l->found, "dispatch_lost", place, run->row.run_id,
			    "was given to the supervisor, which does not know it");
		break;
	default: break;
	}
}

static void
compare_process(struct look *l, const struct run_process *p)
{
	const struct ledger_seen *seen = map_get(l->ledger_runs, p->run_id);
	enum ledger_status status;

	if (seen == NULL) {
		if (l->has_all_shards)
			finding_add(l->found, "runner_without_row", "supervisor", p->run_id,
			    "is executed by process %lld, and no ledger knows it",
			    (long long)p->pid);
		return;
	}
	status = seen->run->status;
	if (status >= LEDGER_STATUS_PASSED)
		finding_add(l->found, "runner_of_ended_run", "supervisor", p->run_id,
		    "is %s, and its process %lld is still there", ledger_status_name(status),
		    (long long)p->pid);
	else if (status >= LEDGER_STATUS_ACTIVE && !same_text(seen->run->spawn_id, p->spawn_id))
		finding_add(l->found, "runner_of_other_claim", "supervisor", p->run_id,
		    "is executed by process %lld, which is not the one that claimed it",
		    (long long)p->pid);
}

static void
compare_processes(struct look *l)
{
	void *value;

	for (size_t at = 0; map_next(l->ledger_runs, &at, NULL, &value);)
		compare_claim(l, value);
	for (size_t at = 0; map_next(l->processes_by_run, &at, NULL, &value);)
		compare_process(l, value);
}

void
look_compare(struct look *l)
{
	void *value;

	if (l->has_index && !l->index_complete && !l->rebuilding)
		finding_add(l->found, "index_incomplete", "ingress", "index",
		    "is not complete, and nobody completes it");
	if (l->rebuilding || !l->index_complete)
		l->has_index = 0; /* it is being made */
	compare_projects(l);
	compare_processes(l);
	if (!l->has_index)
		return;
	for (size_t at = 0; map_next(l->ledger_runs, &at, NULL, &value);)
		compare_run(l, value);
	if (l->has_all_shards)
		compare_copies(l);
}
