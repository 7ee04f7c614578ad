/*
 * cmd/anvil-project/shard.h -- the state of one project shard, all of it.
 *
 * Everything that is decided is decided in lib/ledger from rows; what stands here is what rows
 * cannot hold (leases on the monotonic clock, connections, calls in flight) and can be lost.
 */
#ifndef CMD_ANVIL_PROJECT_SHARD_H
#define CMD_ANVIL_PROJECT_SHARD_H

#include <stdint.h>

#include "lib/actor/actor.h"
#include "lib/base/map.h"
#include "lib/ledger/ledger.h"

struct broken;
struct dispatcher;
struct intakes;
struct leases;
struct moves;
struct proc;
struct removals;
struct syncer;
struct takeovers;

#define SHARD_RECHECK_MS 30000
#define SHARD_LATE_MS    2000 /* a loop later than this is charged to nobody's lease */

struct shard {
	struct actor *actor;
	int64_t number;
	/* Peers; the actor's, and may be down. */
	struct link *ingress;
	struct link *supervisor; /* NULL until it was up for the first time.          */
	/* What goes on. */
	struct leases *leases;         /* Owned.  Claimed runs, by run id.                  */
	struct dispatcher *dispatcher; /* Owned.  spawnRun calls in flight.             */
	struct syncer *syncer;         /* Owned.  The index.                                */
	struct takeovers *takeovers;   /* Owned.  Runs whose process is gone.             */
	struct removals *removals;     /* Owned.  Projects on their way out.                */
	struct moves *moves;           /* Owned.  Projects on their way to another shard.   */
	struct intakes *intakes;       /* Owned.  Projects on their way here.               */
	struct broken *broken;         /* Owned.  Rows that are passed over.                */
	/* Time. */
	struct actor_timer *pump;  /* Zero delay: rows have changed, look what is due.  */
	struct actor_timer *timer; /* The one timer: earliest stored deadline.          */
	struct mono_time planned;  /* When it was meant to fire.                        */
	struct mono_time rechecked;
	struct mono_time pruned;
	int prune_soon; /* There is more to prune than one turn may take. */
};

/* NULL: out of memory. */
struct shard *shard_new(struct actor *a, int64_t number);
struct shard *shard_free(struct shard *s);
/* Reads what was going on before this process, then looks what is due. */
int shard_begin(struct shard *s);

/* From a turn: when it is on disk, look what is due.  0 or E_NOMEM. */
int shard_wake_after(struct shard *s, struct turn *t);
/* From a turn that deletes or replaces a token: when it is on disk, the old pages leave the
 * write-ahead log.  0 or E_NOMEM. */
int shard_clean_after(struct shard *s, struct turn *t);
/* Outside of a turn: look soon. */
void shard_wake(struct shard *s);
/* Everything is derived anew from the rows (spec project 15, re-check). */
void shard_recheck(struct shard *s);

/* The connection to the supervisor, borrowed; NULL while it is down. */
struct rpc_peer *shard_supervisor(const struct shard *s);

/* Logs a promotion that a decision brought with it; "" is none. */
void shard_note_promoted(const struct ledger_promoted *p);

void shard_inspect(void *ctx, struct buf *out);

#endif
