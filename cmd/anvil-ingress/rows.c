#include "cmd/anvil-ingress/rows.h"

#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/err.h"

struct index_run
rows_index_run(const struct run_row *r)
{
	return (struct index_run) { .id = r->run_id,
		.project_id = r->project_id,
		.trigger_type = trigger_type_name(r->trigger_type),
		.triggered_by_user_id = r->triggered_by_user_id,
		.branch = r->branch,
		.commit_sha = r->commit_sha,
		.status = run_status_name(r->status),
		.rev = r->rev,
		.queued_at = r->queued_at,
		.started_at = r->has_started_at ? r->started_at : 0,
		.finished_at = r->has_finished_at ? r->finished_at : 0,
		.has_exit_code = r->has_exit_code,
		.exit_code = r->exit_code,
		.failure_code = r->has_failure_code ? failure_code_name(r->failure_code) : NULL,
		.error_message = r->error_message };
}

struct run_row
rows_run_row(const struct index_run *r)
{
	struct run_row row = { .run_id = r->id,
		.project_id = r->project_id,
		.rev = r->rev,
		.triggered_by_user_id = r->triggered_by_user_id,
		.branch = r->branch,
		.commit_sha = r->commit_sha,
		.queued_at = r->queued_at,
		.has_started_at = r->started_at != 0,
		.started_at = r->started_at,
		.has_finished_at = r->finished_at != 0,
		.finished_at = r->finished_at,
		.has_exit_code = r->has_exit_code,
		.exit_code = r->exit_code,
		.error_message = r->error_message };

	/* The schema holds nothing but these words; a later release's word reads as none. */
	(void)trigger_type_parse(r->trigger_type, &row.trigger_type);
	(void)run_status_parse(r->status, &row.status);
	row.has_failure_code = r->failure_code != NULL &&
	    failure_code_parse(r->failure_code, &row.failure_code) == 0;
	return row;
}

struct http_run_summary
rows_summary(const struct run_row *r)
{
	return (struct http_run_summary) { .id = r->run_id,
		.project_id = r->project_id,
		.triggered_by_user_id = r->triggered_by_user_id,
		.trigger_type = r->trigger_type,
		.branch = r->branch,
		.commit_sha = r->commit_sha,
		.status = r->status,
		.queued_at = r->queued_at,
		.has_started_at = r->has_started_at,
		.started_at = r->started_at,
		.has_finished_at = r->has_finished_at,
		.finished_at = r->finished_at,
		.has_exit_code = r->has_exit_code,
		.exit_code = r->exit_code,
		.has_failure_code = r->has_failure_code,
		.failure_code = r->failure_code };
}

struct http_run_step
rows_step(const struct step_row *s)
{
	return (struct http_run_step) { .id = s->id,
		.run_id = s->run_id,
		.position = s->position,
		.name = s->name,
		.command = s->command,
		.status = s->status,
		.has_started_at = s->has_started_at,
		.started_at = s->started_at,
		.has_finished_at = s->has_finished_at,
		.finished_at = s->finished_at,
		.has_exit_code = s->has_exit_code,
		.exit_code = s->exit_code };
}

struct http_log_event
rows_line(const struct log_row *l)
{
	return (struct http_log_event) { .id = l->id,
		.run_id = l->run_id,
		.seq = l->seq,
		.stream = l->stream,
		.chunk = l->chunk,
		.created_at = l->created_at };
}

struct index_project
rows_index_project(const struct project_config *c, int64_t shard)
{
	return (struct index_project) { .id = c->project_id,
		.owner_user_id = c->owner_user_id,
		.owner_slug = c->owner_slug,
		.slug = c->project_slug,
		.name = c->name,
		.repo_url = c->repo_url,
		.default_branch = c->default_branch,
		.config_path = c->config_path,
		.badge_public = c->badge_public,
		.shard = shard,
		.confirmed = 1,
		.created_at = c->created_at,
		.updated_at = c->updated_at };
}

struct project_config
rows_project_config(const struct index_project *p)
{
	return (struct project_config) { .project_id = p->id,
		.owner_user_id = p->owner_user_id,
		.owner_slug = p->owner_slug,
		.project_slug = p->slug,
		.name = p->name,
		.repo_url = p->repo_url,
		.default_branch = p->default_branch,
		.config_path = p->config_path,
		.badge_public = p->badge_public,
		.created_at = p->created_at,
		.updated_at = p->updated_at };
}

int
rows_copy_run(struct arena *a, const struct run_row *from, struct run_row *ret)
{
	const char *const in[] = { from->run_id, from->project_id, from->triggered_by_user_id,
		from->branch, from->commit_sha, from->error_message };
	const char *out[ARRAY_LEN(in)];

	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		out[i] = in[i] != NULL ? arena_strdup(a, in[i]) : NULL;
		if (in[i] != NULL && out[i] == NULL)
			return E_NOMEM;
	}
	*ret = *from;
	ret->run_id = out[0];
	ret->project_id = out[1];
	ret->triggered_by_user_id = out[2];
	ret->branch = out[3];
	ret->commit_sha = out[4];
	ret->error_message = out[5];
	return 0;
}
