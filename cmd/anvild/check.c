#include "cmd/anvild/check.h"

#include <string.h>

#include "cmd/anvild/child.h"
#include "cmd/anvild/process.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/supervisor.h"
#include "lib/base/map.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/supervisor.rules.def"
#undef RULE
};

static int
find_problems(void *arg, struct store *s, int64_t now_ms, struct store_problems *ret)
{
	(void)arg;
	return store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);
}

int
supervisor_look(const char *path, int64_t now_ms, struct store_problems *ret)
{
	return store_inspect(&supervisor_store, path, find_problems, NULL, now_ms, ret);
}

/* ---- rows and processes ---- */

/* Of runs; the others have no more than an address in common with their rows. */
static int
is_live(const struct supervisor *s, const char *spawn_id)
{
	const struct process *p;

	for (size_t at = 0; (p = runners_next(s->runners, &at)) != NULL;)
		if (strcmp(process_id(p)->spawn_id, spawn_id) == 0)
			return 1;
	for (size_t at = 0; (p = serves_next(s->serves, &at)) != NULL;)
		if (strcmp(process_id(p)->spawn_id, spawn_id) == 0)
			return 1;
	return 0;
}

/* One row; those of processes that are no runner go in a turn after their end. */
static int
compare_row(const struct supervisor *s, struct stmt *st, struct store_problems *ret)
{
	const char *spawn_id = stmt_text(st, 0), *kind = stmt_text(st, 1);

	if (spawn_id == NULL || kind == NULL || strcmp(kind, "runner") != 0 ||
	    is_live(s, spawn_id))
		return 0;
	return store_problem_say(ret, "process_gone", stmt_text(st, 2), 0,
	    "has the row of a runner (spawn %s) that is not among the living", spawn_id);
}

static int
compare_live(const struct process *p, const struct map *rows, struct store_problems *ret)
{
	if (process_id(p)->found || map_get(rows, process_id(p)->spawn_id) != NULL)
		return 0;
	return store_problem_say(ret, "process_unrecorded", process_id(p)->address, 0,
	    "runs as process %d and has no row", (int)process_pid(p));
}

static int
compare(void *ctx, struct turn *t, struct store_problems *ret)
{
	const struct supervisor *s = ctx;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_LIST);
	CLEANUP(map_freep) struct map *rows = map_new();
	const struct process *p;
	int r = rows != NULL ? 0 : E_NOMEM;

	while (r == 0 && (r = stmt_step(st)) == 1) {
		r = compare_row(s, st, ret);
		if (r == 0 && stmt_text(st, 0) != NULL)
			r = map_set(rows, stmt_text(st, 0), rows);
	}
	/* A store that takes no writes has not heard of the newest. */
	for (size_t at = 0;
	     r == 0 && !s->storage_failed && (p = runners_next(s->runners, &at)) != NULL;)
		r = compare_live(p, rows, ret);
	return r;
}

const struct actor_check supervisor_checks = { .look = supervisor_look, .compare = compare };
