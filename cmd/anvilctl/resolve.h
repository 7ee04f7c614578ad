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

/* Address of the actor of ${run_id}; one that has ended is started to answer.
 * 0 or a status, explained. */
int resolve_wake(struct ctl *ctl, const char *run_id, char ret_address[RPC_ADDRESS_SIZE]);

#endif
