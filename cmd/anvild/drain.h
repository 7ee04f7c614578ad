/*
 * cmd/anvild/drain.h -- no new runs are started, until the operator says otherwise.
 *
 * It is a row: whoever drains a host to upgrade or to stop it finds it drained afterwards.
 */
#ifndef CMD_ANVILD_DRAIN_H
#define CMD_ANVILD_DRAIN_H

struct supervisor;
struct turn;

/* As part of a write turn; takes effect when it is on disk.  0 or an error of the store. */
int drain_set(struct supervisor *s, struct turn *t, int draining);
/* At the start: what an earlier supervisor was told. */
void drain_recall(struct supervisor *s);

#endif
