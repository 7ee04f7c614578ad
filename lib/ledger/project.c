#include "lib/ledger/project.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/ledger/inside.h"

/* Columns in the order of LEDGER_CONFIG_COLUMNS. */
static int
project_read(struct stmt *st, struct arena *a, void *row)
{
	struct ledger_project *p = row;
	int err = 0;

	*p = (struct ledger_project) { .project_id = stmt_text_dup(st, 0, a, &err),
		.owner_user_id = stmt_text_dup(st, 1, a, &err),
		.owner_slug = stmt_text_dup(st, 2, a, &err),
		.project_slug = stmt_text_dup(st, 3, a, &err),
		.name = stmt_text_dup(st, 4, a, &err),
		.repo_url = stmt_text_dup(st, 5, a, &err),
		.default_branch = stmt_text_dup(st, 6, a, &err),
		.config_path = stmt_text_dup(st, 7, a, &err),
		.token = { stmt_text_dup(st, 8, a, &err), stmt_text_dup(st, 9, a, &err),
		    stmt_int(st, 10) },
		.created_at = stmt_int(st, 11),
		.updated_at = stmt_int(st, 12),
		.phase = stmt_text_dup(st, 13, a, &err),
		.index_rev = stmt_int(st, 14),
		.badge_public = (int)stmt_int(st, 16) };
	if (err == 0)
		p->index_current = strcmp(stmt_text(st, 15), "current") == 0;
	return err;
}

int
ledger_project_rows(
    struct stmt *st, int bound, struct arena *a, struct ledger_project **ret, size_t *ret_n)
{
	void *rows;
	int r = stmt_rows(st, bound, a, project_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
ledger_project_get(
    struct store *s, struct arena *a, const char *project_id, struct ledger_project *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_GET);
	int r = stmt_first(st, stmt_bind(st, "s", project_id));

	return r < 0 ? r : project_read(st, a, ret);
}

int
ledger_project_list(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_project **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_LIST);

	return ledger_project_rows(
	    st, stmt_bind(st, "si", after, (int64_t)limit), a, ret, ret_n);
}

/* ---- create ---- */

static int
same_text(const char *a, const char *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* The token of a repeat is sealed anew, with another nonce: that it is there is all that can
 * be compared. */
static int
same_project(const struct ledger_project *a, const struct ledger_project *b)
{
	return same_text(a->owner_user_id, b->owner_user_id) &&
	    same_text(a->owner_slug, b->owner_slug) &&
	    same_text(a->project_slug, b->project_slug) && same_text(a->name, b->name) &&
	    same_text(a->repo_url, b->repo_url) &&
	    same_text(a->default_branch, b->default_branch) &&
	    same_text(a->config_path, b->config_path) &&
	    (a->token.ciphertext == NULL) == (b->token.ciphertext == NULL) &&
	    a->badge_public == b->badge_public;
}

static int
project_add(struct store *s, const struct ledger_project *p)
{
	const struct ledger_sealed *t = &p->token;
	int r;

	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_ADD);

		r = ledger_run_stmt(st, stmt_bind(st, "si", p->project_id, p->created_at));
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_ADD);

		r = ledger_run_stmt(st,
		    stmt_bind(st, "ssssssssssIiii", p->project_id, p->owner_user_id,
			p->owner_slug, p->project_slug, p->name, p->repo_url, p->default_branch,
			p->config_path, t->ciphertext, t->nonce,
			t->ciphertext != NULL ? &t->key_version : NULL, p->created_at,
			p->created_at, (int64_t)p->badge_public));
	}
	return r;
}

int
ledger_project_create(
    struct store *s, struct arena *a, const struct ledger_project *p, enum ledger_created *ret)
{
	struct ledger_project have;
	int r = ledger_project_get(s, a, p->project_id, &have);

	if (r == 0) {
		*ret = same_project(&have, p) ? LEDGER_EXISTS : LEDGER_CREATE_CONFLICT;
		return 0;
	}
	if (r != E_NOENT)
		return r;
	*ret = LEDGER_CREATED;
	return project_add(s, p);
}

/* ---- update ---- */

static int
touch(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_TOUCH);

	return ledger_run_stmt(st, stmt_bind(st, "s", project_id));
}

/* Takes ${to} unless it is NULL; 1 when that changes anything. */
static int
replace(const char **text, const char *to)
{
	int differs = to != NULL && strcmp(*text, to) != 0;

	if (to != NULL)
		*text = to;
	return differs;
}

int
ledger_project_update(struct store *s, struct arena *a, const char *project_id,
    const struct ledger_change *c, int64_t now_ms, struct ledger_project *ret, int *ret_stale)
{
	struct ledger_project p;
	int stale, r = ledger_project_get(s, a, project_id, &p);

	if (r < 0)
		return r;
	(void)replace(&p.name, c->name);
	stale = replace(&p.repo_url, c->repo_url);
	stale |= replace(&p.default_branch, c->default_branch);
	stale |= replace(&p.config_path, c->config_path);
	if (c->set_token)
		p.token = c->token;
	if (c->set_badge_public)
		p.badge_public = c->badge_public;
	p.updated_at = max_i64(now_ms, p.updated_at + 1);
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_SAVE);
		const struct ledger_sealed *t = &p.token;

		r = ledger_run_stmt(st,
		    stmt_bind(st, "sssssssIii", p.project_id, p.name, p.repo_url,
			p.default_branch, p.config_path, t->ciphertext, t->nonce,
			t->ciphertext != NULL ? &t->key_version : NULL, p.updated_at,
			(int64_t)p.badge_public));
	}
	if (r == 0)
		r = touch(s, project_id);
	if (r == 0 && stale)
		r = ledger_webhooks_touch(s, project_id, now_ms);
	if (r < 0)
		return r;
	p.index_rev++;
	p.index_current = 0;
	*ret = p;
	*ret_stale = stale;
	return 0;
}

int
ledger_project_set_owner(struct store *s, struct arena *a, const char *project_id,
    const char *user_id, const char *slug, int64_t now_ms, struct ledger_project *ret)
{
	struct ledger_project p;
	int differs, r = ledger_project_get(s, a, project_id, &p);

	if (r < 0)
		return r;
	differs = replace(&p.owner_user_id, user_id);
	differs |= replace(&p.owner_slug, slug);
	if (differs) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_CONFIG_OWNER);

		p.updated_at = max_i64(now_ms, p.updated_at + 1);
		p.index_rev++;
		p.index_current = 0;
		r = ledger_run_stmt(
		    st, stmt_bind(st, "sssi", project_id, user_id, slug, p.updated_at));
		if (r == 0)
			r = touch(s, project_id);
	}
	if (r == 0)
		*ret = p;
	return r;
}

/* ---- removal ---- */

int
ledger_project_begin_removal(struct store *s, const char *project_id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_PHASE);
	int r = ledger_run_stmt(st, stmt_bind(st, "ssi", project_id, "removing", now_ms));

	return r == 0 && store_changes(s) == 0 ? E_NOENT : r;
}

static int
id_read(struct stmt *st, struct arena *a, void *row)
{
	const char **id = row;
	int err = 0;

	*id = stmt_text_dup(st, 0, a, &err);
	return err;
}

int
ledger_project_removing(struct store *s, struct arena *a, const char ***ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_REMOVING);
	void *rows;
	int r = stmt_rows(st, 0, a, id_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

int
ledger_project_delete(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_STATE_REMOVE);

	return ledger_run_stmt(st, stmt_bind(st, "s", project_id));
}

int
ledger_project_was_removed(struct store *s, const char *project_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, LG_WAS_REMOVED);
	int r = stmt_bind(st, "s", project_id);

	return r < 0 ? r : stmt_step(st);
}
