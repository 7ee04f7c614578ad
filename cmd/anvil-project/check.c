#include "cmd/anvil-project/check.h"

#include <string.h>

#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/shard.h"
#include "cmd/anvil-project/takeover.h"
#include "lib/base/log.h"

/* ---- mending ---- */

static void
recheck(void *arg)
{
	shard_recheck(arg);
}

static int
mend(void *ctx, struct turn *t, struct store_problem *p)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_promoted promoted;
	struct shard *s = ctx;
	int r = ledger_mend(&at, p->code, p->subject, &p->mended, &promoted);

	if (r < 0)
		return r;
	if (promoted.run_id[0] != '\0')
		log_event(LOG_LEVEL_ERROR, "promotion_repaired", LOG_STR("problem", p->subject),
		    LOG_STR("runId", promoted.run_id));
	return p->mended ? turn_after_commit(t, recheck, s, NULL) : 0;
}

const struct actor_check shard_checks = { .look = ledger_inspect, .mend = mend };

/* ---- project.listLedger ---- */

/* A cursor is the id that a page ended with, of a project or a run; "run_" begins the runs. */
#define RUNS_BEGIN "run_"

static int
project_of(const struct ledger_standing *p, struct arena *a, struct ledger_project_row *ret)
{
	struct project_config *config = NULL;

	if (p->config.project_id != NULL) {
		config = arena_alloc(a, sizeof(*config));
		if (config == NULL)
			return E_NOMEM;
		convert_project(&p->config, config);
	}
	*ret = (struct ledger_project_row) { .project_id = p->project_id,
		.has_move_to = p->move_to >= 0,
		.move_to = p->move_to,
		.in_index = p->index_current,
		.rev = p->index_rev,
		.config = config };
	return project_phase_parse(p->phase, &ret->phase);
}

static int
list_projects(
    struct turn *t, const char *after, size_t limit, struct project_list_ledger_result *ret)
{
	struct ledger_project_row *rows = arena_calloc(t->arena, limit, sizeof(*rows));
	struct ledger_standing *found;
	size_t n;
	int r = rows != NULL ? ledger_standings(t->store, t->arena, after, limit, &found, &n)
			     : E_NOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = project_of(&found[i], t->arena, &rows[ret->nprojects]);
		if (r == E_NOMEM)
			return r;
		ret->nprojects += r == 0; /* one that cannot be read is told by actor.check */
	}
	ret->projects = rows;
	ret->next = n == limit ? found[n - 1].project_id : RUNS_BEGIN;
	return 0;
}

static int
run_of(const struct shard *s, const struct ledger_run *run, struct ledger_run_row *ret)
{
	int r = convert_run(run, &ret->row);

	if (r == 0)
		r = ledger_status_parse(ledger_state_name(run->state), &ret->status);
	if (r == 0)
		r = dispatch_status_parse(
		    ledger_dispatch_name(run->dispatch), &ret->dispatch_status);
	if (r == 0)
		r = index_sync_parse(ledger_sync_name(run->sync), &ret->index_sync);
	ret->lease_epoch = run->lease_epoch;
	ret->has_claimed_at = run->claimed_at != 0;
	ret->claimed_at = run->claimed_at;
	ret->spawn_id = run->spawn_id;
	ret->taking_over = takeovers_has(s->takeovers, run->run_id);
	return r;
}

static int
list_runs(const struct shard *s, struct turn *t, const char *after, size_t limit,
    struct project_list_ledger_result *ret)
{
	struct ledger_run_row *rows = arena_calloc(t->arena, limit, sizeof(*rows));
	struct ledger_run *found;
	size_t n;
	int r = rows != NULL ? ledger_runs_after(t->store, t->arena, after, limit, &found, &n)
			     : E_NOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		ret->nruns += run_of(s, &found[i], &rows[ret->nruns]) == 0;
	ret->runs = rows;
	ret->next = n == limit ? found[n - 1].run_id : NULL;
	return 0;
}

int
project_list_ledger(struct shard *s, struct turn *t, const struct project_list_ledger_params *p,
    struct project_list_ledger_result *ret)
{
	const char *cursor = p->cursor != NULL ? p->cursor : "";

	return strncmp(cursor, RUNS_BEGIN, strlen(RUNS_BEGIN)) == 0
	    ? list_runs(s, t, cursor, (size_t)p->limit, ret)
	    : list_projects(t, cursor, (size_t)p->limit, ret);
}

int
project_was_removed(struct shard *s, struct turn *t, const struct project_was_removed_params *p,
    struct project_was_removed_result *ret)
{
	int r = ledger_project_was_removed(t->store, p->project_id);

	(void)s;
	ret->removed = r == 1;
	return r < 0 ? r : 0;
}
