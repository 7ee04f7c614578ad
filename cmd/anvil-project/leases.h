/*
 * cmd/anvil-project/leases.h -- leases of claimed runs, in memory on the monotonic clock, and
 * the connection over which each run can be told something (spec project 7).
 */
#ifndef CMD_ANVIL_PROJECT_LEASES_H
#define CMD_ANVIL_PROJECT_LEASES_H

#include <stddef.h>

#include "lib/base/clock.h"
#include "lib/base/id.h"

struct ledger_run;
struct leases;
struct rpc_peer;
struct shard;

struct lease {
	uint32_t magic;
#define LEASE_MAGIC 0x5a1c77e3
	struct shard *shard;
	char run_id[ID_SIZE];
	char project_id[ID_SIZE];
	char lease_id[ID_HEX32_SIZE];
	char spawn_id[ID_HEX32_SIZE];
	struct mono_time until;
	struct rpc_peer *channel; /* Borrowed; NULL while the run is not connected.     */
	int asking;               /* runStatus or killRun is in flight.                 */
};

struct leases *leases_new(struct shard *s);
struct leases *leases_free(struct leases *l);

/* A claim, one heard from over ${channel}, or one found at the start (${channel} NULL): 30 s
 * from now.  ${run} is the row with its lease.  0 or E_NOMEM. */
int leases_grant(struct leases *l, const struct ledger_run *run, struct rpc_peer *channel);
/* Nothing when the run has another lease by now. */
void leases_drop(struct leases *l, const char *run_id, const char *lease_id);
/* All of a project that lives elsewhere now. */
void leases_drop_project(struct leases *l, const char *project_id);
/* 1: the supervisor has been asked about a run of the project, and owes an answer. */
int leases_busy(const struct leases *l, const char *project_id);
struct lease *leases_find(const struct leases *l, const char *run_id);
size_t leases_count(const struct leases *l);

/* The connection has ended: its runs have 250 ms to return, then the supervisor is asked. */
void leases_channel_gone(struct leases *l, const struct rpc_peer *channel);
/* Asks the supervisor about every one of them. */
void leases_ask_all(struct leases *l);
/* Nobody was listening for a while: everybody gets 30 s. */
void leases_excuse_all(struct leases *l);
/* Fences those that have run out. */
void leases_expire(struct leases *l, struct mono_time now);
/* When the first one runs out; 0 when there is none. */
int leases_next(const struct leases *l, struct mono_time *ret);

#endif
