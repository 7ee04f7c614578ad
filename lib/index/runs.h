/*
 * lib/index/runs.h -- the list of runs, as far as their shards have told (spec project 13).
 */
#ifndef LIB_INDEX_RUNS_H
#define LIB_INDEX_RUNS_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;

struct index_run {
	const char *id, *project_id, *trigger_type, *triggered_by_user_id, *branch, *commit_sha,
	    *status;
	int64_t rev;
	int64_t queued_at;
	int64_t started_at, finished_at; /* 0: null */
	int has_exit_code;
	int64_t exit_code;
	const char *failure_code, *error_message;
};

/* The shard's word.  A terminal row takes nothing but a commit it lacks; else the higher rev
 * wins, and a known commit is never forgotten.  E_NOENT: no such project here. */
int index_run_upsert(struct store *s, const struct index_run *r);
/* From the reply to an accept: nothing when the row exists. */
int index_run_add_if_absent(struct store *s, const struct index_run *r);
int index_run_get(struct store *s, struct arena *a, const char *id, struct index_run *ret);
/* Ids that begin with ${prefix}, two at most: more than one is ambiguous. */
int index_run_find(
    struct store *s, struct arena *a, const char *prefix, const char *ret[2], size_t *ret_n);

/* A page, newest first by (queued_at, id).  ${before_id} NULL: from the top.  ${limit} rows at
 * most are returned; *ret_more: there are others behind them. */
struct index_run_page {
	const char *project_id;
	int64_t before_queued_at;
	const char *before_id;
	size_t limit;
};
int index_run_list(struct store *s, struct arena *a, const struct index_run_page *page,
    struct index_run **ret, size_t *ret_n, int *ret_more);
/* The status of the newest by (queued_at, id) of a branch.  E_NOENT: it had none. */
int index_run_newest_status(struct store *s, struct arena *a, const char *project_id,
    const char *branch, const char **ret);
int index_run_remove_of(struct store *s, const char *project_id);
/* All, by id, after ${after} ("" = from the first). */
int index_runs_after(struct store *s, struct arena *a, const char *after, size_t limit,
    struct index_run **ret, size_t *ret_n);

#endif
