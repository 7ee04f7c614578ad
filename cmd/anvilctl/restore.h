/*
 * cmd/anvilctl/restore.h -- a backup put in the place of what is there: staged beside it, then
 * swapped by one step, so that at every moment either the old data or the new is there, whole.
 */
#ifndef CMD_ANVILCTL_RESTORE_H
#define CMD_ANVILCTL_RESTORE_H

#include <sys/types.h>

#include "cmd/anvilctl/ctl.h"
#include "cmd/anvilctl/locks.h"
#include "cmd/anvilctl/manifest.h"
#include "cmd/anvilctl/progress.h"
#include "lib/config/config.h"

/* In a folder that is on its way to become data_dir, and for a moment after.  Beside data_dir, with
 * it: a stage, nobody's data; without it: the old data, which a crash kept from its new name. */
#define RESTORE_UNFINISHED "restore.unfinished"

struct restore {
	struct ctl *ctl;
	const char *dir; /* of the backup */
	int dirfd;
	struct config *config;     /* Owned. */
	struct manifest *manifest; /* Owned. */
	struct progress progress;
	uid_t uid; /* whose the data shall be */
	gid_t gid;
	struct locks locks;
	char *data;  /* Owned.  data_dir, links resolved.         */
	char *stage; /* Owned.  Beside it.                         */
	char *kept;  /* Owned.  Where the old data goes; NULL in the end: there was none. */
};

/* Functions below: 0 or a status, explained. */

/* Everything that the backup says of itself, without changing anything. */
int restore_verify(struct restore *rs);
/* Names the folders, when there is room for them. */
int restore_plan(struct restore *rs);
/* Under the locks: tidies up what an earlier restore has left, fills the stage, swaps it in. */
int restore_stage(struct restore *rs);
int restore_swap(struct restore *rs);

#endif
