#include "lib/index/projects.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/index/runs.h"
#include "lib/index/stmts.h"

static int
project_read(struct stmt *st, struct arena *a, void *row)
{
	struct index_project *p = row;
	int err = 0;

	*p = (struct index_project) { .id = stmt_text_dup(st, 0, a, &err),
		.owner_user_id = stmt_text_dup(st, 1, a, &err),
		.owner_slug = stmt_text_dup(st, 2, a, &err),
		.slug = stmt_text_dup(st, 3, a, &err),
		.name = stmt_text_dup(st, 4, a, &err),
		.repo_url = stmt_text_dup(st, 5, a, &err),
		.default_branch = stmt_text_dup(st, 6, a, &err),
		.config_path = stmt_text_dup(st, 7, a, &err),
		.shard = stmt_int(st, 8),
		.confirmed = (int)stmt_int(st, 9),
		.rev = stmt_int(st, 10),
		.created_at = stmt_int(st, 11),
		.updated_at = stmt_int(st, 12),
		.badge_public = (int)stmt_int(st, 13),
		.last_run_status = stmt_text_dup(st, 14, a, &err) };
	return err;
}

/* One row of a statement that is bound already. */
static int
project_one(struct stmt *st, int bound, struct arena *a, struct index_project *ret)
{
	int r = stmt_first(st, bound);

	return r < 0 ? r : project_read(st, a, ret);
}

static int
project_rows(
    struct stmt *st, int bound, struct arena *a, struct index_project **ret, size_t *ret_n)
{
	void *rows;
	int r = stmt_rows(st, bound, a, project_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
index_project_add(struct store *s, const struct index_project *p)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_ADD);
	int r = stmt_bind(st, "ssssssssiiiii", p->id, p->owner_user_id, p->owner_slug, p->slug,
	    p->name, p->repo_url, p->default_branch, p->config_path, p->shard,
	    (int64_t)p->confirmed, p->created_at, p->updated_at, (int64_t)p->badge_public);

	r = index_run_stmt(s, st, r, INDEX_ANY);
	return r == E_CONSTRAINT ? E_EXISTS : r;
}

int
index_project_confirm(struct store *s, const char *id, int64_t shard)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_CONFIRM);

	return index_run_stmt(s, st, stmt_bind(st, "si", id, shard), INDEX_ROWS);
}

int
index_project_remove_unconfirmed(struct store *s, const char *id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_TAKE_BACK);

	return index_run_stmt(s, st, stmt_bind(st, "s", id), INDEX_ANY);
}

int
index_project_remove(struct store *s, const char *id)
{
	static const enum index_stmt stmts[] = { IX_PROJECT_REMOVE, IX_REMOVED_NOTE };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(stmts) && r == 0; i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, stmts[i]);

		r = index_run_stmt(s, st, stmt_bind(st, "s", id), INDEX_ANY);
	}
	return r < 0 ? r : index_run_remove_of(s, id);
}

int
index_project_refresh(struct store *s, const struct index_project *p)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_REFRESH);
	int r = stmt_bind(st, "sssssii", p->id, p->name, p->repo_url, p->default_branch,
	    p->config_path, p->updated_at, (int64_t)p->badge_public);

	return index_run_stmt(s, st, r, INDEX_ANY);
}

int
index_project_get(struct store *s, struct arena *a, const char *id, struct index_project *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_GET);

	return project_one(st, stmt_bind(st, "s", id), a, ret);
}

int
index_project_by_slug(struct store *s, struct arena *a, const char *owner_slug,
    const char *slug, struct index_project *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_BY_SLUG);

	return project_one(st, stmt_bind(st, "ss", owner_slug, slug), a, ret);
}

int
index_project_list(struct store *s, struct arena *a, const char *owner_user_id,
    struct index_project **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp)
	struct stmt *st = store_stmt(
	    s, owner_user_id != NULL ? IX_PROJECT_LIST : IX_PROJECT_LIST_ALL);
	int r = owner_user_id != NULL ? stmt_bind(st, "s", owner_user_id) : 0;

	return project_rows(st, r, a, ret, ret_n);
}

int
index_project_unconfirmed(struct store *s, struct arena *a, int64_t before_ms,
    struct index_project **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_UNCONFIRMED);

	return project_rows(st, stmt_bind(st, "i", before_ms), a, ret, ret_n);
}

/* ---- names ---- */

int
index_project_take_name(struct store *s, const struct index_project *p)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_NAME_KEPT);

	return index_run_stmt(
	    s, st, stmt_bind(st, "sss", p->owner_slug, p->slug, p->id), INDEX_ANY);
}

int
index_project_keep_name(
    struct store *s, const struct index_project *p, const char *id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	int r = index_project_take_name(s, p); /* of an earlier try */

	if (r < 0)
		return r;
	st = store_stmt(s, IX_PROJECT_KEEP_NAME);
	r = stmt_bind(st, "ssssssssiiiis", id, p->owner_user_id, p->owner_slug, p->slug,
	    p->name, p->repo_url, p->default_branch, p->config_path, p->shard, now_ms, now_ms,
	    (int64_t)p->badge_public, p->id);
	r = index_run_stmt(s, st, r, INDEX_ANY);
	return r == E_CONSTRAINT ? E_EXISTS : r;
}

int
index_project_upsert(struct store *s, const struct index_project *p)
{
	CLEANUP(stmt_resetp) struct stmt *st = NULL;
	int r = index_project_take_name(s, p);

	if (r < 0)
		return r;
	st = store_stmt(s, IX_PROJECT_UPSERT);
	r = stmt_bind(st, "ssssssssiiiii", p->id, p->owner_user_id, p->owner_slug, p->slug,
	    p->name, p->repo_url, p->default_branch, p->config_path, p->shard, p->rev,
	    p->created_at, p->updated_at, (int64_t)p->badge_public);
	r = index_run_stmt(s, st, r, INDEX_ANY);
	return r == E_CONSTRAINT ? E_EXISTS : r;
}

int
index_project_choose_shard(struct store *s, int64_t nshards, int64_t *ret_shard)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_SHARD_COUNTS);
	CLEANUP_FREE int64_t *counts = mem_calloc((size_t)nshards, sizeof(*counts));
	int64_t best = 0;
	int r;

	if (counts == NULL)
		return E_NOMEM;
	r = stmt_bind(st, "i", nshards);
	while (r == 0 && (r = stmt_step(st)) == 1) {
		counts[stmt_int(st, 0)] = stmt_int(st, 1);
		r = 0;
	}
	if (r < 0)
		return r;
	for (int64_t i = 1; i < nshards; i++)
		if (counts[i] < counts[best])
			best = i;
	*ret_shard = best;
	return 0;
}

int
index_projects_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct index_project **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_CHECK_PROJECTS);
	void *rows;
	int r = stmt_rows(st, stmt_bind(st, "si", after, (int64_t)limit), a, project_read,
	    sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}
