/*
 * cmd/anvil-ingress/rebuild.h -- fills the index from the shards (spec project 13, 18).
 *
 * A job begins by itself when the store is new, restored or has no rows, or when somebody asks
 * for it, and goes on after a restart.  It reads every shard page by page, one call at a time;
 * a shard that is away keeps the job from ending and nothing else.  It ends when all that was
 * read belongs together: no project went from one shard to another meanwhile, which its shard
 * tells by another number of moves; else all is read once more.  Then projects that no shard
 * knows are removed.
 */
#ifndef CMD_ANVIL_INGRESS_REBUILD_H
#define CMD_ANVIL_INGRESS_REBUILD_H

#include <sys/queue.h>

#include "cmd/anvil-ingress/ingress.h"

#define REBUILD_PAGE     100   /* rows, of one turn                           */
#define REBUILD_PAUSE_MS 2     /* between two pages                           */
#define REBUILD_RETRY_MS 1000  /* after a shard or a store that was not able  */
#define REBUILD_AGAIN_MS 500   /* before all is read once more                */
#define REBUILD_CALL_MS  10000 /* for one answer                              */
#define REBUILD_WAIT_MS  5000  /* of a request that needs the whole index     */

/* Reads off the store what there is to do; the first links begin it.  NULL: out of memory, or
 * the store cannot be read. */
struct rebuild *rebuild_new(struct ingress *in);
/* When no call is in flight any more.  NULL is fine; NULL back. */
struct rebuild *rebuild_free(struct rebuild *r);

/* Something can go on: the link of a shard is up, or there are more shards. */
void rebuild_kick(struct rebuild *r);
/* A job was begun in a turn that is on disk now. */
void rebuild_start(struct rebuild *r, const char *job_id);

/* 1: a project that is not in the index may exist all the same. */
int rebuild_may_lack(const struct rebuild *r);

/* Somebody who needs the whole index. */
struct rebuild_wait {
	/* Once, from the loop and outside of a turn.  0; E_DEADLINE: it took too long, or this
	 * process ends. */
	void (*done)(struct rebuild_wait *w, int err);
	/* Private. */
	LIST_ENTRY(rebuild_wait) entry;
	struct mono_time until;
};
/* Only while rebuild_may_lack(). */
void rebuild_wait(struct rebuild *r, struct rebuild_wait *w);

/* How far it is, for those who ask. */
struct rebuild_view {
	int running;
	size_t nread;                /* shards that were read to the end in this pass */
	int64_t waiting[SHARDS_MAX]; /* shards that it waits for, by number           */
	size_t nwaiting;
};
void rebuild_look(const struct rebuild *r, struct rebuild_view *ret);

#endif
