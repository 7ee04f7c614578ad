/*
 * cmd/anvilctl/locks.h -- whether anything of an installation lives: every process of anvil
 * holds a lock for its whole life.
 */
#ifndef CMD_ANVILCTL_LOCKS_H
#define CMD_ANVILCTL_LOCKS_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/base.h"

#define LOCKS_MAX 80 /* supervisor twice, ingress, shards */

/* Those that were free, held by us now. */
struct locks {
	int fds[LOCKS_MAX];
	size_t n;
};

/* Who is in the way. */
struct lock_holder {
	char what[64]; /* "supervisor.db.lock", "runs/run_…/lock" */
	pid_t pid;     /* 0: not known */
};

/* Takes the locks of ${data_dir} and ${runtime_dir} that exist and are not ours already, and looks
 * at those of all runs.  A folder that is not there has none.  0, E_LOCKED with ${ret}, E_NOMEM, E_SYS. */
int locks_take(
    struct locks *l, const char *data_dir, const char *runtime_dir, struct lock_holder *ret);
/* Makes ${name} in ${dir} when it is missing, and takes it; of ${uid} and ${gid} then. */
int locks_make(struct locks *l, const char *dir, const char *name, uid_t uid, gid_t gid,
    struct lock_holder *ret);
void locks_release(struct locks *l);
/* Who has the flock of the file of ${fd}; 0: not known. */
pid_t locks_holder(int fd);

#endif
