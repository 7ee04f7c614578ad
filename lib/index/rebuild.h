/*
 * lib/index/rebuild.h -- filling the index from the shards: how far it is, what is left over
 * (spec project 13, 18).
 *
 * A job reads all shards, perhaps several times (a pass each).  A project carries the number of
 * the pass that met it last, or in which it was made; what is behind at the end is known to no
 * shard.  All of it is durable, so that any process may go on with it.
 */
#ifndef LIB_INDEX_REBUILD_H
#define LIB_INDEX_REBUILD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/index/projects.h"

struct index_job {
	int complete;       /* What is not in the index does not exist. */
	const char *job_id; /* The newest, 32 hex digits; NULL: there was none. */
	const char *reason; /* new_store, restored, empty, asked. */
	int64_t pass;
	int64_t started_at, finished_at; /* 0: not yet */
	int64_t projects, runs;          /* that its newest pass has read */
	int64_t removed;                 /* projects that no shard knows  */
};

int index_job_get(struct store *s, struct arena *a, struct index_job *ret);
/* A new job, with its first pass.  The index is not complete until its end, unless it was
 * before and ${reason} is "asked", or "empty" of runs alone. */
int index_job_begin(struct store *s, const char *job_id, const char *reason, int64_t now_ms);
/* All is read once more: the counts begin anew. */
int index_job_pass(struct store *s);
/* What the pass has read so far, and projects removed since this was last told. */
int index_job_count(struct store *s, int64_t projects, int64_t runs, int64_t removed);
int index_job_end(struct store *s, int64_t now_ms);

/* Forgets all projects and runs; accounts stay. */
int index_empty(struct store *s);
enum index_gap { INDEX_GAP_NONE, INDEX_GAP_RUNS, INDEX_GAP_PROJECTS };
/* *ret: there is no project, or no run. */
int index_is_empty(struct store *s, enum index_gap *ret);

/* What a shard has exported of a project.  ${owned}: it is the shard's, and not on its way to
 * it; then the higher rev wins, and otherwise what is there stays.  One that was removed during
 * this job is passed over.  E_EXISTS: another project has its slug. */
int index_project_exported(struct store *s, const struct index_project *p, int owned);
/* A shard has it, and more it does not say. */
int index_project_met(struct store *s, const char *id);
/* Removes up to ${limit} confirmed projects that this pass has not met, with their runs. */
int index_remove_unseen(struct store *s, struct arena *a, size_t limit, int64_t *ret_n);
/* Projects whose owner is no user here. */
int index_count_ownerless(struct store *s, int64_t *ret);

#endif
