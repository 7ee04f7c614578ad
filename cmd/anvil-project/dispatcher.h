/*
 * cmd/anvil-project/dispatcher.h -- executable runs on their way to the supervisor (spec
 * project 12).
 *
 * A process that is there at three re-checks, for a minute, and does not claim its run is
 * killed: its end counts as a failed start, like that of one that dies before its claim.
 */
#ifndef CMD_ANVIL_PROJECT_DISPATCHER_H
#define CMD_ANVIL_PROJECT_DISPATCHER_H

#include <stddef.h>

struct dispatcher;
struct shard;
struct turn;

#define DISPATCH_IN_FLIGHT 64 /* supervisor.spawnRun calls at a time */

struct dispatcher *dispatcher_new(struct shard *s);
struct dispatcher *dispatcher_free(struct dispatcher *d);
size_t dispatcher_in_flight(const struct dispatcher *d);
/* 1: the supervisor owes an answer about a run of that project. */
int dispatcher_busy(const struct dispatcher *d, const char *project_id);

/* In a read turn outside of any batch, so that what it reads is on disk: sends what is due. */
int dispatcher_pump(struct dispatcher *d, struct turn *t);
/* The next looks also ask again for all runs that the supervisor was given and that nobody has
 * claimed: its queue may have been lost. */
void dispatcher_ask_again(struct dispatcher *d);
/* A process of that run has ended: if the run waited for that, it waits no longer. */
void dispatcher_release(struct dispatcher *d, const char *run_id);

#endif
