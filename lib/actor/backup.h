/*
 * lib/actor/backup.h -- actor.backup: a live actor copies what it keeps.
 *
 * A thread copies, by a connection of its own: the loop goes on meanwhile, writes too.  A copy
 * in the making is given up when the actor is to go, or when its caller's time is over.
 */
#ifndef LIB_ACTOR_BACKUP_H
#define LIB_ACTOR_BACKUP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/store/store.h"

#define ACTOR_COPIES_MAX 2

/* What keeps an actor from putting copies into ${folder}, such as "belongs to another user": it
 * has to be the absolute path of a folder of ours that nobody else may enter.  NULL: nothing. */
const char *actor_backup_refusal(const char *folder);

struct actor_copied {
	int64_t version; /* of the store's schema */
	size_t nfiles;
	struct {
		const char *name; /* constant */
		int64_t bytes;
	} files[ACTOR_COPIES_MAX];
};

/* How an actor copies whose files are not just the store of its desc. */
struct actor_backup {
	/* What copy() is given, such as a folder; it lives until the actor's loop has ended. */
	const char *(*place)(void *ctx);
	/* On a worker: puts copies into ${folder}, and asks ${go_on} as store_copy() does.  0 or an
	 * error of that, E_NOENT when there is nothing to copy. */
	int (*copy)(const char *place, const char *folder, store_go_on_fn *go_on, void *arg,
	    struct actor_copied *ret, char **ret_why);
};

#endif
