/*
 * cmd/anvild/runners.h -- the processes that execute runs, one for each at most.
 */
#ifndef CMD_ANVILD_RUNNERS_H
#define CMD_ANVILD_RUNNERS_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvild/process.h"
#include "cmd/anvild/slots.h"

struct parked;
struct runners;
struct supervisor;
struct turn;

#define RUNNER_STUCK_MS 300000

enum spawn_verdict { SPAWN_SPAWNED, SPAWN_LIVE, SPAWN_QUEUED, SPAWN_FAILED };

struct spawn_answer {
	enum spawn_verdict verdict;
	char spawn_id[ID_HEX32_SIZE]; /* spawned, live      */
	enum slot_wait why;           /* queued             */
	int64_t ahead;                /* queued             */
	const char *error;            /* failed; static     */
};

struct runners *runners_new(struct supervisor *s);
struct runners *runners_free(struct runners *r);

/* supervisor.spawnRun: forks when there is a slot, else queues.  0 or E_NOMEM. */
int runners_spawn(struct runners *r, struct turn *t, const struct slot_request *req,
    struct spawn_answer *ret);

/* Forks from the queue while there are slots; after anything that may have freed one. */
void runners_pump(struct runners *r);

/* The same from the loop, soon: for whoever is inside a turn. */
void runners_wake(struct runners *r);
/* A runner that an earlier supervisor forked.  0, or E_NOENT: it has ended. */
int runners_adopt(
    struct runners *r, const struct process_id *id, const struct process_birth *birth);

/* The live runner of a run; NULL: there is none. */
const struct process *runners_find(const struct runners *r, const char *run_id);
/* The same for one that may be in no row any more: whoever holds the lock of the run's store is
 * adopted.  *ret NULL: the run has no runner.  0, E_NOMEM, E_SYS; E_BUSY: somebody else holds
 * the lock, for a moment; E_LOCKED: its runner does, and has been abandoned. */
int runners_look(struct runners *r, const char *run_id, const struct process **ret);
size_t runners_count(const struct runners *r);
/* for (size_t at = 0; (p = runners_next(r, &at)) != NULL;) */
const struct process *runners_next(const struct runners *r, size_t *at);

/* SIGKILL; ${waiter} is answered `gone` when the process has been reaped.  0, or E_NOENT: no
 * such process (the caller answers), or E_NOMEM. */
int runners_kill(
    struct runners *r, const char *run_id, const char *spawn_id, struct parked *waiter);
/* Gives a runner up that cannot be killed: from the loop, soon, its end is told as `abandoned`
 * and its slot is free.  The process itself is forgotten. */
void runners_abandon(struct runners *r, const char *run_id);
/* Runners that have not died of SIGKILL for RUNNER_STUCK_MS: each has ${fn} called. */
void runners_stuck(
    const struct runners *r, void (*fn)(void *arg, const struct process *p), void *arg);
/* SIGKILL to each: they end as lost. */
void runners_kill_all(struct runners *r);

#endif
