/*
 * cmd/anvil-run/lease.h -- the run's word with its shard: claim, heartbeats, and the three
 * calls that are repeated until they are answered (spec run 5, project 6, 7, 9).
 *
 * The link to the shard lives here, and follows a project that has moved.
 */
#ifndef CMD_ANVIL_RUN_LEASE_H
#define CMD_ANVIL_RUN_LEASE_H

#include <stdint.h>

#include "gen/project.h"
#include "lib/base/base.h"

#define LEASE_CLAIM_TRIES  5     /* The last failure in a row ends the process, unless ...  */
#define LEASE_DOUBT_MS     30000 /* ... an earlier one may have come true: as a lease lasts. */
#define LEASE_ANSWER_MS    5000  /* For each call.                                    */
#define LEASE_LAST_MS      1000  /* For the heartbeat before the end.                 */
#define LEASE_AGAIN_MS     100   /* After an unanswered call; doubles ...             */
#define LEASE_AGAIN_MAX_MS 5000  /* ... up to this.                                  */

struct actor;
struct lease;

enum lease_verdict {
	LEASE_RECORDED,        /* recordCommit                                    */
	LEASE_COMMIT_CONFLICT, /* recordCommit                                    */
	LEASE_RELEASED,        /* releaseRun, also when a repeat found it so      */
	LEASE_REFUSED_CANCEL,  /* releaseRun: a cancel was requested              */
	LEASE_REFUSED_STARTED, /* releaseRun                                      */
	LEASE_SETTLED,         /* finalizeRun                                     */
	LEASE_CONFLICT,        /* finalizeRun                                     */
	LEASE_LOST             /* any of them                                     */
};

/* Each runs from the loop.  Texts are valid until it returns. */
struct lease_ops {
	void (*on_claimed)(void *arg, const struct project_claim_run_claimed *c);
	void (*on_stale)(void *arg, const char *reason);
	void (*on_unclaimed)(void *arg); /* The last try has failed. */
	/* Of any answer that names it; may come again. */
	void (*on_cancel)(void *arg, int64_t requested_at_ms);
	/* A heartbeat was told so. */
	void (*on_lost)(void *arg, const char *reason);
};

/* Texts of ${who} are borrowed. */
struct lease_who {
	const char *project_id, *run_id, *spawn_id;
	int64_t shard;
};

/* NULL: no memory. */
struct lease *
lease_new(struct actor *a, const struct lease_who *who, const struct lease_ops *ops, void *arg);
struct lease *lease_free(struct lease *l);
DEFINE_CLEANUP(struct lease *, lease_free)

/* Connects and claims. */
void lease_claim(struct lease *l);
/* "" before the claim. */
const char *lease_id(const struct lease *l);

/* From now on the status goes out, at once and every heartbeatMs.  ${started_at} 0: none. */
void lease_report(struct lease *l, enum run_status status, int64_t started_at_ms);
/* One more heartbeat; ${fn}(arg) runs when it is answered or after LEASE_LAST_MS. */
void lease_report_last(struct lease *l, void (*fn)(void *arg), void *arg);
/* No more heartbeats. */
void lease_be_silent(struct lease *l);

/* One of these at a time; repeated until it is answered, then ${fn} runs, once.  A new one
 * takes the place of the one before, whose answer nobody hears any more. */
typedef void lease_answer_fn(void *arg, enum lease_verdict v, const char *reason);
void lease_record_commit(struct lease *l, const char *sha, lease_answer_fn *fn, void *arg);
void lease_release(struct lease *l, enum release_reason reason, lease_answer_fn *fn, void *arg);
/* ${end}'s ids are filled in here; its texts live until ${fn} runs. */
void lease_finalize(struct lease *l, const struct project_finalize_run_params *end,
    lease_answer_fn *fn, void *arg);
/* Forgets the one that is under way. */
void lease_forget(struct lease *l);

#endif
