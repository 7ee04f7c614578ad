#include "lib/ledger/check.h"

#include <string.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/ledger/inside.h"

static const struct store_rule rules[] = {
#define RULE(code, mendable, text, sql) { code, mendable, text, sql },
#include "schema/project.rules.def"
#undef RULE
};

int
ledger_find_problems(struct store *s, int64_t now_ms, struct store_problems *ret)
{
	return store_check_rules(s, rules, ARRAY_LEN(rules), now_ms, ret);
}

static int
find(void *arg, struct store *s, int64_t now_ms, struct store_problems *ret)
{
	(void)arg;
	return ledger_find_problems(s, now_ms, ret);
}

int
ledger_inspect(const char *path, int64_t now_ms, struct store_problems *ret)
{
	return store_inspect(&ledger_store, path, find, NULL, now_ms, ret);
}

int
ledger_check(struct store *s, struct arena *a, const char **ret_broken)
{
	struct store_problems found = { .arena = a };
	int r = ledger_find_problems(s, 0, &found);

	*ret_broken = NULL;
	if (r < 0 || found.n == 0)
		return r;
	*ret_broken = arena_format(a, "%s %s", found.rows[0].subject, found.rows[0].text);
	return *ret_broken != NULL ? 0 : E_NOMEM;
}

/* ---- what is compared with others ---- */

static int
standing_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_standing *p = row;
	int err = 0;

	*p = (struct ledger_standing) { .project_id = stmt_text_dup(st, 0, a, &err),
		.phase = stmt_text_dup(st, 1, a, &err),
		.move_to = stmt_is_null(st, 2) ? -1 : stmt_int(st, 2),
		.index_current = strcmp(stmt_text(st, 3), "current") == 0,
		.index_rev = stmt_int(st, 4) };
	if (stmt_is_null(st, 5))
		return err;
	p->config = (struct ledger_project) { .project_id = p->project_id,
		.owner_user_id = stmt_text_dup(st, 5, a, &err),
		.owner_slug = stmt_text_dup(st, 6, a, &err),
		.project_slug = stmt_text_dup(st, 7, a, &err),
		.name = stmt_text_dup(st, 8, a, &err),
		.repo_url = stmt_text_dup(st, 9, a, &err),
		.default_branch = stmt_text_dup(st, 10, a, &err),
		.config_path = stmt_text_dup(st, 11, a, &err),
		.created_at = stmt_int(st, 12),
		.updated_at = stmt_int(st, 13),
		.badge_public = (int)stmt_int(st, 14) };
	return err;
}

int
ledger_standings(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_standing **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CHECK_PROJECTS);
	void *rows;
	int r = stmt_rows(st, stmt_bind(st, "si", after, (int64_t)limit), a, standing_read,
	    sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
ledger_runs_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CHECK_RUNS);

	return ledger_run_rows(st, stmt_bind(st, "si", after, (int64_t)limit), a, ret, ret_n);
}
