/*
 * cmd/anvil-project/push.h -- what a shard tells a run over its own connection.
 */
#ifndef CMD_ANVIL_PROJECT_PUSH_H
#define CMD_ANVIL_PROJECT_PUSH_H

struct ledger_run;
struct shard;
struct turn;

/* run.cancel to the process of ${run}, once the turn is on disk.  A push that is lost costs a
 * heartbeat at most, whose answer says the same.  0 or E_NOMEM. */
int push_cancel_after(struct shard *s, struct turn *t, const struct ledger_run *run);

#endif
