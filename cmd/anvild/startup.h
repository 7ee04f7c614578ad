/*
 * cmd/anvild/startup.h -- from a command line to a supervisor that serves (operations 3).
 */
#ifndef CMD_ANVILD_STARTUP_H
#define CMD_ANVILD_STARTUP_H

struct options;
struct supervisor;

#define STARTUP_WHY_SIZE 1024

/* Configuration, user, folders, lock, keys, sockets, store, in that order.  0, or an error
 * with one sentence for the operator in ${why} (several lines for a bad configuration). */
int startup_prepare(struct supervisor *s, const struct options *o, char why[STARTUP_WHY_SIZE]);

/* Ends residents and serving processes of an earlier supervisor, takes its live runners over,
 * reads the ends that were never answered.  Before anything is forked.  0, or an error, of which
 * ${why} says more where there is more to say than what befell supervisor.db. */
int startup_recover(struct supervisor *s, char why[STARTUP_WHY_SIZE]);

/* Binds what could not be bound while an earlier ingress had it.  0 or as listeners_add(). */
int startup_listen(struct supervisor *s, char why[STARTUP_WHY_SIZE]);

/* Forks shards and ingress. */
void startup_residents(struct supervisor *s);

/* Frees whatever of it was made. */
void supervisor_done(struct supervisor *s);

#endif
