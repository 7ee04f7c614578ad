/* One look: ledgers first, the index after them, so that it can only be newer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

#define PAGE 500

/* ---- the ledgers ---- */

static int
add_project(struct look *l, const struct ledger_project_row *p, int shard)
{
	struct owner_seen *o = arena_alloc(l->arena, sizeof(*o));

	if (o == NULL)
		return E_NOMEM;
	*o = (struct owner_seen) { p, shard, map_get(l->ledger_projects, p->project_id) };
	return map_set(l->ledger_projects, p->project_id, o);
}

static int
add_run(struct look *l, const struct ledger_run_row *run, int shard)
{
	const struct ledger_seen *before = map_get(l->ledger_runs, run->row.run_id);
	struct ledger_seen *seen = arena_alloc(l->arena, sizeof(*seen));

	if (seen == NULL)
		return E_NOMEM;
	*seen = (struct ledger_seen) { run, shard,
		before != NULL && before->shard != shard ? before->shard : -1 };
	return map_set(l->ledger_runs, run->row.run_id, seen);
}

/* A cursor that does not grow is none: a damaged id would lead round in a circle. */
static const char *
next_cursor(const char *cursor, const char *next)
{
	return next != NULL && (cursor == NULL || strcmp(next, cursor) > 0) ? next : NULL;
}

static int
read_ledger(struct look *l, const char *address, int shard)
{
	struct project_list_ledger_params params = { .cursor = NULL, .limit = PAGE };

	do {
		struct project_list_ledger_result page = { .nruns = 0 };
		int r = CTL_TRY(l->ctl, address, project_list_ledger, &params, &page);

		for (size_t i = 0; r == 0 && i < page.nprojects; i++)
			r = add_project(l, &page.projects[i], shard);
		for (size_t i = 0; r == 0 && i < page.nruns; i++)
			r = add_run(l, &page.runs[i], shard);
		if (r < 0)
			return r;
		params.cursor = next_cursor(params.cursor, page.next);
	} while (params.cursor != NULL);
	return 0;
}

/* Both shards have a project, and its runs, while it goes from one to the other. */
static const struct owner_seen *
find_incoming(const struct look *l, const char *project_id)
{
	const struct owner_seen *o = map_get(l->ledger_projects, project_id);

	while (o != NULL && o->project->phase != PROJECT_PHASE_INCOMING)
		o = o->next;
	return o;
}

static void
add_twice(struct look *l, const struct ledger_seen *seen)
{
	const char *project_id = seen->run->row.project_id;
	const struct owner_seen *to = find_incoming(l, project_id);

	if (to == NULL)
		finding_add(l->found, "run_twice", "project", seen->run->row.run_id,
		    "is in the ledgers of shards %d and %d", seen->also, seen->shard);
	else
		/* Of all its runs the same, and so one finding. */
		finding_add(l->found, "run_twice", "project", project_id,
		    "has its runs in shards %d and %d, for its move to shard %d is under way; "
		    "that ends, or is taken back, by itself as soon as both shards can write "
		    "(`anvilctl health` names what keeps them from it)",
		    seen->also, seen->shard, to->shard);
}

static void
compare_ledgers(struct look *l)
{
	void *value;

	for (size_t at = 0; map_next(l->ledger_runs, &at, NULL, &value);)
		if (((const struct ledger_seen *)value)->also >= 0)
			add_twice(l, value);
}

/* ---- the index ---- */

static int
read_index(struct look *l)
{
	struct index_list_params params = { .cursor = NULL, .limit = PAGE };

	do {
		struct index_list_result page = { .nruns = 0 };
		int r = CTL_TRY(l->ctl, "ingress", index_list, &params, &page);

		for (size_t i = 0; r == 0 && i < page.nprojects; i++)
			r = map_set(l->index_projects, page.projects[i].config.project_id,
			    (void *)(uintptr_t)&page.projects[i]);
		for (size_t i = 0; r == 0 && i < page.nruns; i++)
			r = map_set(l->index_runs, page.runs[i].run_id,
			    (void *)(uintptr_t)&page.runs[i]);
		if (r < 0)
			return r;
		l->index_complete = page.complete;
		l->rebuilding |= page.rebuilding;
		params.cursor = next_cursor(params.cursor, page.next);
	} while (params.cursor != NULL);
	return 0;
}

/* ---- all of it ---- */

static int
read_processes(struct look *l)
{
	struct supervisor_list_runs_params params = { 0 };
	int r = CTL_TRY(l->ctl, "supervisor", supervisor_list_runs, &params, &l->processes);

	for (size_t i = 0; r == 0 && i < l->processes.nruns; i++) {
		const struct run_process *p = &l->processes.runs[i];

		if (p->mode == RUN_MODE_EXECUTE)
			r = map_set(l->processes_by_run, p->run_id, (void *)(uintptr_t)p);
	}
	return r;
}

/* Who has no store to look into says so at once, and its supervisor knows why. */
int
look_failed(struct look *l, const struct actor_process *a, int err)
{
	if (a->outage != NULL && l->ctl->reply.reached)
		finding_add(
		    l->found, "store_unusable", a->address, a->address, "%s", a->outage);
	else
		finding_add(l->found, "actor_unreachable", a->address, a->address,
		    "cannot be looked at: %s; `anvilctl health` names the cause and the remedy",
		    err_text(err));
	return map_set(l->mute, a->address, l);
}

/* One resident: what it has to tell.  Only the lack of memory is an error. */
static int
read_resident(struct look *l, const struct actor_process *a)
{
	const char *address = a->address;
	int r = 0;

	if (strncmp(address, "project/", 8) == 0) {
		r = read_ledger(l, address, (int)strtol(address + 8, NULL, 10));
		l->nshards += r == 0;
		l->has_all_shards &= r == 0;
	} else if (strcmp(address, "ingress") == 0) {
		r = read_index(l);
		l->has_index = r == 0;
	}
	return r < 0 && r != E_NOMEM ? look_failed(l, a, r) : r;
}

static int
make_maps(struct look *l)
{
	l->arena = arena_new();
	l->ledger_runs = map_new();
	l->ledger_projects = map_new();
	l->index_runs = map_new();
	l->index_projects = map_new();
	l->processes_by_run = map_new();
	l->mute = map_new();
	return l->arena != NULL && l->ledger_runs != NULL && l->ledger_projects != NULL &&
		l->index_runs != NULL && l->index_projects != NULL &&
		l->processes_by_run != NULL && l->mute != NULL
	    ? 0
	    : E_NOMEM;
}

int
look_gather(struct look *l)
{
	struct supervisor_list_params params = { 0 };
	int r = make_maps(l);

	if (r < 0)
		return ctl_fail_nomem();
	r = CTL_CALL(l->ctl, "supervisor", supervisor_list, &params, &l->actors);
	if (r != 0)
		return r;
	l->has_all_shards = 1;
	/* Shards come before ingress. */
	for (size_t i = 0; r == 0 && i < l->actors.nactors; i++)
		r = read_resident(l, &l->actors.actors[i]);
	compare_ledgers(l);
	if (r == 0)
		r = read_processes(l);
	if (r < 0)
		return r == E_NOMEM ? ctl_fail_nomem() : ctl_explain(l->ctl, "supervisor", r);
	return 0;
}

void
look_done(struct look *l)
{
	(void)map_free(l->ledger_runs);
	(void)map_free(l->ledger_projects);
	(void)map_free(l->index_runs);
	(void)map_free(l->index_projects);
	(void)map_free(l->processes_by_run);
	(void)map_free(l->mute);
	(void)arena_free(l->arena);
}
