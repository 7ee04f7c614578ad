/*
 * lib/index/projects.h -- the directory of projects: owner, slug, shard, and a copy for lists.
 */
#ifndef LIB_INDEX_PROJECTS_H
#define LIB_INDEX_PROJECTS_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;

struct index_project {
	const char *id, *owner_user_id, *owner_slug, *slug, *name, *repo_url, *default_branch,
	    *config_path;
	int64_t shard;
	int confirmed; /* its shard has it */
	int64_t rev;
	int64_t created_at, updated_at;
	int badge_public;
	const char
	    *last_run_status; /* NULL: no runs; only of index_project_list() and _get() */
};

/* E_EXISTS: the owner has that slug already. */
int index_project_add(struct store *s, const struct index_project *p);
/* Its shard has it.  E_NOENT: the row has gone. */
int index_project_confirm(struct store *s, const char *id, int64_t shard);
/* Takes a slug back that no shard has confirmed; a confirmed row stays. */
int index_project_remove_unconfirmed(struct store *s, const char *id);
/* With its runs. */
int index_project_remove(struct store *s, const char *id);
/* What its shard answered to an update, unless something newer is there; the rev stays. */
int index_project_refresh(struct store *s, const struct index_project *p);
int
index_project_get(struct store *s, struct arena *a, const char *id, struct index_project *ret);
int index_project_by_slug(struct store *s, struct arena *a, const char *owner_slug,
    const char *slug, struct index_project *ret);
/* Confirmed ones, newest change first; ${owner_user_id} NULL: everybody's. */
int index_project_list(struct store *s, struct arena *a, const char *owner_user_id,
    struct index_project **ret, size_t *ret_n);
/* Not confirmed and made before ${before_ms}; at most 100. */
int index_project_unconfirmed(struct store *s, struct arena *a, int64_t before_ms,
    struct index_project **ret, size_t *ret_n);
/* ${p} has the owner that the project is to be given to, and a new name by that: nobody else gets
 * it from now on.  It is kept by an unconfirmed row, ${id}, until the shard tells of the new
 * owner, or that row is removed.  E_EXISTS: another project has the name. */
int index_project_keep_name(
    struct store *s, const struct index_project *p, const char *id, int64_t now_ms);
/* What was kept of the name of ${p} for it goes, so that it can have the name. */
int index_project_take_name(struct store *s, const struct index_project *p);
/* The shard's word (index.upsertProject): a lower rev changes nothing.
 * E_EXISTS: another project has its slug. */
int index_project_upsert(struct store *s, const struct index_project *p);
/* Of shards 0..n-1 the one with the fewest projects, unconfirmed ones counted. */
int index_project_choose_shard(struct store *s, int64_t nshards, int64_t *ret_shard);
/* All, by id, after ${after} ("" = from the first). */
int index_projects_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct index_project **ret, size_t *ret_n);

#endif
