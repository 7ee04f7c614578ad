/*
 * lib/ledger/dispatch.h -- from executable to a process (spec project 12).
 */
#ifndef LIB_LEDGER_DISPATCH_H
#define LIB_LEDGER_DISPATCH_H

#include <stddef.h>

#include "lib/ledger/queue.h"
#include "lib/ledger/run.h"

#define LEDGER_DISPATCH_TRIES 6

/* Runs for which supervisor.spawnRun is due, oldest first. */
int ledger_dispatch_due(struct store *s, struct arena *a, int64_t now_ms, size_t limit,
    struct ledger_run **ret, size_t *ret_n);

/* The supervisor has it: spawned, live or queued.  ${live_spawn_id}: of `live`, else NULL.
 * Changes nothing unless the run still waits for this. */
int ledger_dispatch_queued(struct store *s, struct arena *a, const char *run_id,
    const char *live_spawn_id, const char *how, int64_t now_ms);

struct ledger_failure {
	int counted;     /* a failure of this run was counted             */
	int dispatch;    /* it is due now, without a failure               */
	int64_t attempt; /* failures so far                                */
	int failed;      /* that was the last: the run has ended           */
	struct ledger_promoted promoted;
};
/* supervisor.spawnRun answered `failed`. */
int ledger_dispatch_failed(struct store *s, struct arena *a, const char *run_id,
    const char *error, int64_t now_ms, struct ledger_failure *ret);

/* project.runnerExited of a run that nobody has claimed with that spawn id: a failure of the
 * attempt, a released run that can go on, or nothing.  ${how}: text for people. */
struct ledger_exit {
	const char *run_id, *spawn_id;
	int64_t attempt;
	int rebooted;
	const char *how;
};
int ledger_runner_exited(struct store *s, struct arena *a, const struct ledger_exit *e,
    int64_t now_ms, struct ledger_failure *ret);

/* Executable runs that the supervisor was given (`queued`) or claimed ones (`started`), by
 * ascending id after ${after}: what a re-check goes through. */
int ledger_dispatched(struct store *s, struct arena *a, enum ledger_dispatch which,
    const char *after, size_t limit, struct ledger_run **ret, size_t *ret_n);

#endif
