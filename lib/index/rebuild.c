#include "lib/index/rebuild.h"

#include "lib/base/err.h"
#include "lib/index/runs.h"
#include "lib/index/stmts.h"

/* ---- the job ---- */

int
index_job_get(struct store *s, struct arena *a, struct index_job *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_STATE_GET);
	int err = 0, r = stmt_first(st, 0);

	if (r < 0)
		return r;
	*ret = (struct index_job) { .complete = (int)stmt_int(st, 0),
		.pass = stmt_int(st, 1),
		.job_id = stmt_text_dup(st, 2, a, &err),
		.reason = stmt_text_dup(st, 3, a, &err),
		.started_at = stmt_int(st, 4),
		.finished_at = stmt_int(st, 5),
		.projects = stmt_int(st, 6),
		.runs = stmt_int(st, 7),
		.removed = stmt_int(st, 8) };
	return err;
}

/* A statement without parameters that changes rows. */
static int
plain(struct store *s, enum index_stmt which)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, which);

	return index_run_stmt(s, st, 0, INDEX_ANY);
}

int
index_job_begin(struct store *s, const char *job_id, const char *reason, int64_t now_ms)
{
	int r = plain(s, IX_REMOVED_FORGET);

	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_STATE_BEGIN);

		r = index_run_stmt(
		    s, st, stmt_bind(st, "ssi", job_id, reason, now_ms), INDEX_ROWS);
	}
	return r;
}

int
index_job_pass(struct store *s)
{
	int r = plain(s, IX_STATE_PASS);

	return r < 0 ? r : index_job_count(s, 0, 0, 0);
}

int
index_job_count(struct store *s, int64_t projects, int64_t runs, int64_t removed)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_STATE_COUNT);

	return index_run_stmt(s, st, stmt_bind(st, "iii", projects, runs, removed), INDEX_ROWS);
}

int
index_job_end(struct store *s, int64_t now_ms)
{
	int r = plain(s, IX_REMOVED_FORGET);

	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_STATE_END);

		r = index_run_stmt(s, st, stmt_bind(st, "i", now_ms), INDEX_ROWS);
	}
	return r;
}

/* ---- rows ---- */

int
index_empty(struct store *s)
{
	int r = plain(s, IX_RUN_EMPTY);

	return r < 0 ? r : plain(s, IX_PROJECT_EMPTY);
}

static int
one_number(struct store *s, enum index_stmt which, int64_t *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, which);
	int r = stmt_first(st, 0);

	if (r == 0)
		*ret = stmt_int(st, 0);
	return r;
}

int
index_is_empty(struct store *s, enum index_gap *ret)
{
	int64_t gap = INDEX_GAP_NONE;
	int r = one_number(s, IX_INDEX_EMPTY, &gap);

	*ret = (enum index_gap)gap;
	return r;
}

int
index_count_ownerless(struct store *s, int64_t *ret)
{
	return one_number(s, IX_PROJECT_OWNERLESS, ret);
}

int
index_project_met(struct store *s, const char *id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_SEEN);

	return index_run_stmt(s, st, stmt_bind(st, "s", id), INDEX_ANY);
}

int
index_project_exported(struct store *s, const struct index_project *p, int owned)
{
	int r = index_project_met(s, p->id);

	if (r == 0 && owned)
		r = index_project_take_name(s, p);
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_EXPORTED);

		r = index_run_stmt(s, st,
		    stmt_bind(st, "ssssssssiiiiii", p->id, p->owner_user_id, p->owner_slug,
			p->slug, p->name, p->repo_url, p->default_branch, p->config_path,
			p->shard, p->rev, p->created_at, p->updated_at, (int64_t)owned,
			(int64_t)p->badge_public),
		    INDEX_ANY);
	}
	return r == E_CONSTRAINT ? E_EXISTS : r;
}

static int
id_read(struct stmt *st, struct arena *a, void *row)
{
	const char **id = row;
	int err = 0;

	*id = stmt_text_dup(st, 0, a, &err);
	return err;
}

/* Not noted as removed: should a shard tell of it after all, it is taken. */
static int
forget(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_REMOVE);
	int r = index_run_stmt(s, st, stmt_bind(st, "s", project_id), INDEX_ANY);

	return r < 0 ? r : index_run_remove_of(s, project_id);
}

int
index_remove_unseen(struct store *s, struct arena *a, size_t limit, int64_t *ret_n)
{
	const char **ids;
	void *rows = NULL;
	size_t n = 0;
	int r;

	*ret_n = 0;
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_UNSEEN);

		r = stmt_rows(st, stmt_bind(st, "i", (int64_t)limit), a, id_read, sizeof(*ids),
		    &rows, &n);
	}
	ids = rows;
	for (size_t i = 0; i < n && r == 0; i++)
		r = forget(s, ids[i]);
	if (r == 0)
		*ret_n = (int64_t)n;
	return r;
}
