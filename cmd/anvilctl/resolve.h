/*
 * cmd/anvilctl/resolve.h -- from what people type to projects, runs and actors.
 */
#ifndef CMD_ANVILCTL_RESOLVE_H
#define CMD_ANVILCTL_RESOLVE_H

#include "cmd/anvilctl/ctl.h"
#include "lib/base/id.h"

#define RESOLVE_NAME_SIZE 136 /* "owner/project" and its NUL. */

/* Where a project or run lives. */
struct place {
	char project_id[ID_SIZE];
	char run_id[ID_SIZE];         /* "" for a project. */
	char name[RESOLVE_NAME_SIZE]; /* "owner/project"; "" for a run. */
	char shard[RPC_ADDRESS_SIZE]; /* "project/0" */
};

/* "owner/project" or "prj_..."; 0 or a status, explained. */
int resolve_project(struct ctl *ctl, const char *word, struct place *ret);
/* A run's id, or the beginning of one. */
int resolve_run(struct ctl *ctl, const char *word, struct place *ret);
/* An address as it is, or whatever the two above know: a run's own actor, a project's shard. */
int resolve_actor(struct ctl *ctl, const char *word, char ret_address[RPC_ADDRESS_SIZE]);

/*
 * PLACE_CALL(ctl, &where, project_why, PROJECT_WHY, &params, &result) is CTL_CALL to the shard of
 * ${where}, and follows a project that has gone to another shard; one that is on its way is
 * waited for, 5 s at most.
 */
#define PLACE_CALL(ctl, at, method, METHOD, params, result)                                   \
	__extension__({                                                                       \
		struct method##_result *q_ = (result);                                        \
		struct place_way w_ = { .moved = METHOD##_MOVED, .moving = METHOD##_MOVING }; \
		int r_;                                                                       \
		do {                                                                          \
			*q_ = (struct method##_result) { .kind = 0 };                         \
			r_ = CTL_CALL(ctl, (at)->shard, method, params, q_);                  \
		} while (r_ == 0 && place_again(ctl, at, &w_, q_->kind, q_->u.moved.shard));  \
		r_;                                                                           \
	})

/* How far a call has followed its project. */
struct place_way {
	unsigned moved, moving; /* Kinds of the method's result.        */
	int hops;               /* Shards that have sent it on.         */
	int64_t waited_ms;      /* For a project that was between two.  */
};

/* 1: the same call is to be made again, now; ${shard} is of `moved`. */
int place_again(
    struct ctl *ctl, struct place *p, struct place_way *w, unsigned kind, int64_t shard);

/* Address of the actor of ${run_id}; one that has ended is started to answer.
 * 0 or a status, explained. */
int resolve_wake(struct ctl *ctl, const char *run_id, char ret_address[RPC_ADDRESS_SIZE]);

#endif
