#include "lib/index/runs.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/index/stmts.h"

static int
is_terminal(const char *status)
{
	return strcmp(status, "passed") == 0 || strcmp(status, "failed") == 0 ||
	    strcmp(status, "canceled") == 0;
}

static const int64_t *
time_or_null(const int64_t *at)
{
	return *at != 0 ? at : NULL;
}

static int
run_read(struct stmt *st, struct arena *a, struct index_run *r)
{
	int err = 0;

	*r = (struct index_run) { .id = stmt_text_dup(st, 0, a, &err),
		.project_id = stmt_text_dup(st, 1, a, &err),
		.rev = stmt_int(st, 2),
		.trigger_type = stmt_text_dup(st, 3, a, &err),
		.triggered_by_user_id = stmt_text_dup(st, 4, a, &err),
		.branch = stmt_text_dup(st, 5, a, &err),
		.commit_sha = stmt_text_dup(st, 6, a, &err),
		.status = stmt_text_dup(st, 7, a, &err),
		.queued_at = stmt_int(st, 8),
		.started_at = stmt_int(st, 9),
		.finished_at = stmt_int(st, 10),
		.has_exit_code = !stmt_is_null(st, 11),
		.exit_code = stmt_int(st, 11),
		.failure_code = stmt_text_dup(st, 12, a, &err),
		.error_message = stmt_text_dup(st, 13, a, &err) };
	return err;
}

int
index_run_add_if_absent(struct store *s, const struct index_run *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_ADD);
	int bound = stmt_bind(st, "ssisssssiIIIss", r->id, r->project_id, r->rev,
	    r->trigger_type, r->triggered_by_user_id, r->branch, r->commit_sha, r->status,
	    r->queued_at, time_or_null(&r->started_at), time_or_null(&r->finished_at),
	    r->has_exit_code ? &r->exit_code : NULL, r->failure_code, r->error_message);

	return index_run_stmt(s, st, bound, INDEX_ANY);
}

static int
update_commit(struct store *s, const struct index_run *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_COMMIT);

	return index_run_stmt(s, st, stmt_bind(st, "ss", r->id, r->commit_sha), INDEX_ANY);
}

static int
update_all(struct store *s, const struct index_run *r)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_UPDATE);
	int bound = stmt_bind(st, "sissIIIss", r->id, r->rev, r->commit_sha, r->status,
	    time_or_null(&r->started_at), time_or_null(&r->finished_at),
	    r->has_exit_code ? &r->exit_code : NULL, r->failure_code, r->error_message);

	return index_run_stmt(s, st, bound, INDEX_ANY);
}

static int
project_exists(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PROJECT_EXISTS);
	int r = stmt_bind(st, "s", project_id);

	return r < 0 ? r : stmt_step(st);
}

int
index_run_upsert(struct store *s, const struct index_run *r)
{
	int64_t rev;
	int terminal, rc;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_STATE);

		rc = stmt_bind(st, "s", r->id);
		if (rc == 0)
			rc = stmt_step(st);
		if (rc < 0)
			return rc;
		rev = rc == 1 ? stmt_int(st, 0) : 0;
		terminal = rc == 1 && is_terminal(stmt_text(st, 1));
	}
	if (rc == 0) {
		rc = project_exists(s, r->project_id);
		if (rc == 0)
			return E_NOENT;
		return rc < 0 ? rc : index_run_add_if_absent(s, r);
	}
	if (terminal && !is_terminal(r->status))
		return update_commit(s, r);
	return r->rev >= rev ? update_all(s, r) : 0;
}

int
index_run_get(struct store *s, struct arena *a, const char *id, struct index_run *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_GET);
	int r = stmt_first(st, stmt_bind(st, "s", id));

	return r < 0 ? r : run_read(st, a, ret);
}

int
index_run_find(
    struct store *s, struct arena *a, const char *prefix, const char *ret[2], size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_FIND);
	/* Digits and letters of an id all sort before '~'. */
	const char *end = arena_format(a, "%s~", prefix);
	size_t n = 0;
	int err = 0, r;

	if (end == NULL)
		return E_NOMEM;
	r = stmt_bind(st, "ss", prefix, end);
	while (r == 0 && (r = stmt_step(st)) == 1) {
		ret[n++] = stmt_text_dup(st, 0, a, &err);
		r = err;
	}
	*ret_n = n;
	return r;
}

int
index_run_list(struct store *s, struct arena *a, const struct index_run_page *page,
    struct index_run **ret, size_t *ret_n, int *ret_more)
{
	int first = page->before_id == NULL;
	CLEANUP(stmt_resetp)
	struct stmt *st = store_stmt(s, first ? IX_RUN_PAGE_FIRST : IX_RUN_PAGE_NEXT);
	struct index_run *rows = arena_calloc(a, page->limit, sizeof(*rows));
	int64_t limit = (int64_t)page->limit + 1; /* one more tells whether there are others */
	size_t n = 0;
	int r;

	if (rows == NULL)
		return E_NOMEM;
	*ret_more = 0;
	r = first ? stmt_bind(st, "si", page->project_id, limit)
		  : stmt_bind(st, "siis", page->project_id, limit, page->before_queued_at,
			page->before_id);
	while (r == 0 && (r = stmt_step(st)) == 1) {
		if (n == page->limit) {
			*ret_more = 1;
			r = 0;
			break;
		}
		r = run_read(st, a, &rows[n++]);
	}
	if (r < 0)
		return r;
	*ret = rows;
	*ret_n = n;
	return 0;
}

int
index_run_newest_status(struct store *s, struct arena *a, const char *project_id,
    const char *branch, const char **ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_NEWEST);
	int err = 0, r = stmt_first(st, stmt_bind(st, "ss", project_id, branch));

	if (r < 0)
		return r;
	*ret = stmt_text_dup(st, 0, a, &err);
	return err;
}

int
index_run_remove_of(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_RUN_REMOVE_OF);

	return index_run_stmt(s, st, stmt_bind(st, "s", project_id), INDEX_ANY);
}

static int
row_read(struct stmt *st, struct arena *a, void *row)
{
	return run_read(st, a, row);
}

int
index_runs_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct index_run **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_CHECK_RUNS);
	void *rows;
	int r = stmt_rows(st, stmt_bind(st, "si", after, (int64_t)limit), a, row_read,
	    sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}
