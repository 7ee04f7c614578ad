/*
 * cmd/anvil-ingress/reseal.h -- secrets of old versions, sealed anew under the current one (spec
 * webhooks 12).
 *
 * What is to be done is read off the shards, each walked page by page with one call in flight:
 * when its link comes up, when newer keys come, and every RESEAL_EVERY_MS.  So nothing is lost
 * with any process.  A secret that does not open is told once, and tried again with the next
 * walk.  No plaintext outlives the function that opens it.
 */
#ifndef CMD_ANVIL_INGRESS_RESEAL_H
#define CMD_ANVIL_INGRESS_RESEAL_H

#include "cmd/anvil-ingress/ingress.h"

#define RESEAL_EVERY_MS 60000
#define RESEAL_AGAIN_MS 1000  /* after a secret that somebody else changed meanwhile */
#define RESEAL_RETRY_MS 2000  /* after a shard that could not answer                 */
#define RESEAL_PAUSE_MS 20    /* between two pages                                   */
#define RESEAL_PAGE     16    /* secrets                                             */
#define RESEAL_CALL_MS  10000 /* for one answer                                      */
#define RESEAL_TOLD_MAX 1000  /* secrets of a shard that each get a line in the log  */

/* NULL: out of memory.  Works for links that come up from now on. */
struct reseal *reseal_new(struct ingress *in);
/* When no call is in flight any more.  NULL is fine; NULL back. */
struct reseal *reseal_free(struct reseal *r);

/* Walks this shard, or all of them, soon; one that is being walked once more after that.
 * ${r} NULL: nothing. */
void reseal_kick(struct reseal *r, int64_t shard);
void reseal_kick_all(struct reseal *r);

/* Secrets that were sealed anew since this process began. */
int64_t reseal_count(const struct reseal *r);

#endif
