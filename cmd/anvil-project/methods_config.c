/* project.* about configuration: create, update, detail, removal (spec project 14). */
#include "cmd/anvil-project/broken.h"
#include "cmd/anvil-project/convert.h"
#include "cmd/anvil-project/custody.h"
#include "cmd/anvil-project/move.h"
#include "cmd/anvil-project/notice.h"
#include "cmd/anvil-project/push.h"
#include "cmd/anvil-project/shard.h"
#include "lib/base/crash.h"
#include "lib/base/log.h"

static struct ledger_sealed
token_of(const struct sealed_value *v)
{
	if (v == NULL)
		return (struct ledger_sealed) { 0 };
	return (struct ledger_sealed) { v->ciphertext, v->nonce, v->key_version };
}

int
project_create(struct shard *s, struct turn *t, const struct project_create_params *p,
    struct project_create_result *ret)
{
	struct ledger_project project = { .project_id = p->project_id,
		.owner_user_id = p->owner_user_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->project_slug,
		.name = p->name,
		.repo_url = p->repo_url,
		.default_branch = p->default_branch,
		.config_path = p->config_path,
		.token = token_of(p->repo_token),
		.created_at = p->created_at,
		.badge_public = p->badge_public };
	enum ledger_created created;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_CREATE, ret))
		return r;
	r = ledger_project_create(t->store, t->arena, &project, &created);
	if (r < 0)
		return r;
	switch (created) {
	case LEDGER_CREATED:
		log_event(
		    LOG_LEVEL_INFO, "project_created", LOG_STR("projectId", p->project_id));
		ret->kind = PROJECT_CREATE_CREATED;
		return shard_wake_after(s, t);
	case LEDGER_EXISTS: ret->kind = PROJECT_CREATE_EXISTS; break;
	case LEDGER_CREATE_CONFLICT: ret->kind = PROJECT_CREATE_CONFLICT; break;
	}
	return 0;
}

/* A webhook that would not fit the repository, which is the new one or the old. */
static int
judge_update(struct turn *t, const struct project_update_params *p,
    struct project_update_webhook_conflict *ret)
{
	const char *url = p->set.repo_url;
	struct custody c;
	int r = custody_read(t, p->project_id, &c);

	if (r < 0)
		return r;
	return custody_misfits(
	    t, &c, url != NULL ? url : c.project.repo_url, &ret->providers, &ret->nproviders);
}

static void
log_update(const char *project_id, const struct project_change *set)
{
	log_event(LOG_LEVEL_INFO, "project_updated", LOG_STR("projectId", project_id),
	    LOG_STR("name", set->name != NULL ? "changed" : NULL),
	    LOG_STR("repoUrl", set->repo_url != NULL ? "changed" : NULL),
	    LOG_STR("defaultBranch", set->default_branch != NULL ? "changed" : NULL),
	    LOG_STR("configPath", set->config_path != NULL ? "changed" : NULL),
	    LOG_STR("repoToken", set->has_repo_token ? "changed" : NULL),
	    LOG_STR("badgePublic", set->has_badge_public ? "changed" : NULL));
}

int
project_update(struct shard *s, struct turn *t, const struct project_update_params *p,
    struct project_update_result *ret)
{
	const struct project_change *set = &p->set;
	struct ledger_change change = { .name = set->name,
		.repo_url = set->repo_url,
		.default_branch = set->default_branch,
		.config_path = set->config_path,
		.set_token = set->has_repo_token,
		.token = token_of(set->repo_token),
		.set_badge_public = set->has_badge_public,
		.badge_public = set->badge_public };
	struct ledger_project project;
	int stale, r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_UPDATE, ret))
		return r;
	r = judge_update(t, p, &ret->u.webhook_conflict);
	if (r == 0 && ret->u.webhook_conflict.nproviders != 0) {
		ret->kind = PROJECT_UPDATE_WEBHOOK_CONFLICT;
		return 0;
	}
	if (r == 0)
		r = ledger_project_update(
		    t->store, t->arena, p->project_id, &change, t->now_ms, &project, &stale);
	if (r == E_NOENT) {
		ret->kind = PROJECT_UPDATE_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	ret->kind = PROJECT_UPDATE_UPDATED;
	convert_project(&project, &ret->u.updated.project);
	log_update(p->project_id, set);
	if (set->has_repo_token)
		r = shard_clean_after(s, t);
	if (r == 0 && stale)
		r = notice_webhook_after(s, t, p->project_id, NULL);
	return r < 0 ? r : shard_wake_after(s, t);
}

static void
owner_is_set(void *arg)
{
	CRASH_POINT("give_recorded");
	shard_wake(arg);
}

int
project_set_owner(struct shard *s, struct turn *t, const struct project_set_owner_params *p,
    struct project_set_owner_result *ret)
{
	struct ledger_project project;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_SET_OWNER, ret))
		return r;
	r = ledger_project_set_owner(t->store, t->arena, p->project_id, p->owner_user_id,
	    p->owner_slug, t->now_ms, &project);
	if (r == E_NOENT) {
		ret->kind = PROJECT_SET_OWNER_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	ret->kind = PROJECT_SET_OWNER_OWNED;
	ret->u.owned.rev = project.index_rev;
	convert_project(&project, &ret->u.owned.project);
	log_event(LOG_LEVEL_INFO, "project_given", LOG_STR("projectId", p->project_id),
	    LOG_STR("userId", p->owner_user_id));
	return turn_after_commit(t, owner_is_set, s, NULL);
}

/* All that waits: the executable run and the pending ones. */
static int
fill_pending(const struct shard *s, struct turn *t, const char *project_id,
    struct project_get_detail_detail *d)
{
	struct ledger_run *runs;
	struct pending_run *rows;
	size_t n;
	int r = ledger_queue_list(t->store, t->arena, project_id, &runs, &n);

	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct ledger_run *run = &runs[i];

		if (convert_fits_run(run))
			rows[d->npending_runs++] = (struct pending_run) { run->run_id,
				run->branch, run->queued_at, run->position };
		else
			broken_tell(s->broken, run->run_id, project_id);
	}
	d->pending_runs = rows;
	return 0;
}

static int
fill_active(const struct shard *s, struct turn *t, const char *project_id,
    struct project_get_detail_detail *d)
{
	struct ledger_run head;
	struct run_row *row;
	int r = ledger_run_head(t->store, t->arena, project_id, &head);

	row = arena_alloc(t->arena, sizeof(*row));
	if (row == NULL)
		return E_NOMEM;
	if (r == 0)
		r = convert_run(&head, row);
	if (r == E_CORRUPT)
		broken_tell(s->broken, project_id, project_id);
	if (r == 0 && ledger_is_claimed(head.state))
		d->active_run = row;
	return r == E_NOENT || r == E_CORRUPT ? 0 : r;
}

int
project_get_detail(struct shard *s, struct turn *t, const struct project_get_detail_params *p,
    struct project_get_detail_result *ret)
{
	struct ledger_project project;
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_READS, PROJECT_GET_DETAIL, ret))
		return r;
	r = ledger_project_get(t->store, t->arena, p->project_id, &project);
	if (r == E_NOENT) {
		ret->kind = PROJECT_GET_DETAIL_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	ret->kind = PROJECT_GET_DETAIL_DETAIL;
	convert_project(&project, &ret->u.detail.project);
	r = fill_active(s, t, p->project_id, &ret->u.detail);
	return r < 0 ? r : fill_pending(s, t, p->project_id, &ret->u.detail);
}

/* Whatever waits is canceled, what runs is asked to end; the rest follows when it has. */
static int
cancel_all(struct shard *s, struct turn *t, const char *project_id)
{
	const struct ledger_at at = { t->store, t->arena, t->now_ms };
	struct ledger_promoted promoted;
	struct ledger_run *runs, run;
	size_t n;
	int push, r = ledger_queue_list(t->store, t->arena, project_id, &runs, &n);

	/* From the end, so that nothing is promoted only to be canceled. */
	for (size_t i = n; r == 0 && i > 0; i--)
		r = ledger_cancel_run(
		    &at, runs[i - 1].run_id, "operator", &run, &push, &promoted);
	if (r < 0)
		return r;
	r = ledger_run_head(t->store, t->arena, project_id, &run);
	if (r < 0)
		return r == E_NOENT ? 0 : r;
	r = ledger_cancel_run(&at, run.run_id, "operator", &run, &push, &promoted);
	return r < 0 || !push ? r : push_cancel_after(s, t, &run);
}

int
project_remove(struct shard *s, struct turn *t, const struct project_remove_params *p,
    struct project_remove_result *ret)
{
	int r;

	if (MOVE_ANSWERED(&r, t, p->project_id, MOVE_CHANGES, PROJECT_REMOVE, ret))
		return r;
	r = ledger_project_begin_removal(t->store, p->project_id, t->now_ms);
	ret->kind = PROJECT_REMOVE_REMOVING;
	if (r == E_NOENT) {
		ret->kind = PROJECT_REMOVE_NOT_FOUND;
		return 0;
	}
	if (r == 0)
		r = cancel_all(s, t, p->project_id);
	if (r == 0)
		r = notice_webhook_after(s, t, p->project_id, NULL);
	return r < 0 ? r : shard_wake_after(s, t);
}
