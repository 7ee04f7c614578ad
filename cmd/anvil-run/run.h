/*
 * cmd/anvil-run/run.h -- one run as the files of this program see it.
 *
 *	claim.c    rows 1 to 5 of spec run 4: lease, token, store, sandbox
 *	life.c     rows 6 to 11: checkout, config, workspace; the control points
 *	steps.c    row 12: steps
 *	stop.c     TERM, grace, KILL
 *	finish.c   row 13: finalisation, settlement, exit
 *	methods.c  what others may ask
 *	subscribe.c, fetch.c  what is told to those who watch
 *
 * Everything here belongs to the loop.  What the store knows is changed by journal.c alone.
 */
#ifndef CMD_ANVIL_RUN_RUN_H
#define CMD_ANVIL_RUN_RUN_H

#include <stdint.h>

#include "cmd/anvil-run/git.h"
#include "cmd/anvil-run/lease.h"
#include "cmd/anvil-run/output.h"
#include "cmd/anvil-run/place.h"
#include "cmd/anvil-run/recorder.h"
#include "cmd/anvil-run/subscribe.h"
#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/config/config.h"
#include "lib/pipeline/pipeline.h"
#include "lib/sandbox/sandbox.h"

#define RUN_SHA_SIZE CHECKOUT_SHA_SIZE

/* Exit statuses (spec run 1). */
#define EXIT_SETTLED     0
#define EXIT_LOST        3
#define EXIT_NOT_SETTLED 4
#define EXIT_INTERNAL    70
#define EXIT_NOT_CLAIMED 75

/* Where the run stands; only ever goes forward. */
enum life {
	LIFE_CLAIM,     /* row 1: no lease yet                                       */
	LIFE_STORE,     /* rows 2 to 5; the checkout may have begun                  */
	LIFE_CHECKOUT,  /* row 6: until the commit is known                          */
	LIFE_COMMIT,    /* row 7: until the shard has it                             */
	LIFE_CONFIG,    /* row 8                                                     */
	LIFE_WORKSPACE, /* row 9                                                     */
	LIFE_BEGIN,     /* rows 10 and 11: the last moment for a release is before it */
	LIFE_STEPS,     /* row 12                                                    */
	LIFE_RELEASE,   /* nothing of the run goes on; the shard takes it back       */
	LIFE_FINISH,    /* row 13, until the store is terminal                       */
	LIFE_SETTLE,    /* the outcome is fixed; until the shard has it              */
	LIFE_OVER
};

/* Why a run fails; the first one counts. */
struct failure {
	int set;
	enum failure_code code;
	int64_t exit_code;
	char *message; /* Owned. */
};

/* How the run stands in its terminal store. */
struct ending {
	enum run_status status;
	struct record_int started_at_ms, finished_at_ms, exit_code;
	int has_failure_code;
	enum failure_code failure_code;
	char *error_message; /* Owned; NULL: none. */
};

/* TERM, grace, KILL of a step. */
struct stop {
	struct actor_timer *timer;
	int termed, killed;
	struct mono_time kill_at; /* While only termed. */
};

struct run_actor {
	uint32_t magic;
#define RUN_MAGIC 0x6e2d49b1
	int serving; /* The form --serve: nothing but recorder and idle timer. */
	struct proc *proc;
	struct actor *actor;
	struct config *config;   /* Owned. */
	struct arena *arena;     /* Owned: what lives as long as the run. */
	const char *config_file; /* Where the configuration was read; NULL: nowhere. */
	struct place place;
	const char *run_id, *project_id, *spawn_id;
	struct actor_timer *idle;

	/* Parts; owned, each NULL until it is needed. */
	struct recorder *recorder;
	struct subscribers *subscribers;
	struct output *output;
	struct lease *lease;
	struct git *git;
	const struct sandbox_driver *driver;
	struct sandbox *sandbox;
	struct redactor *redactor; /* Until the store's thread has it. */
	struct buf token;          /* Until the checkout child has it. */
	int64_t token_version;

	/* What the claim brought; texts in `arena`. */
	struct record_claim claim;
	const char *repo_url, *config_path;

	/* What the store says, as far as it has been told. */
	int64_t started_at_ms;
	enum run_status status;

	enum life life;
	struct actor_timer *deadline;
	struct mono_time checkout_at;
	int64_t timeout_s;
	const struct pipeline *pipeline; /* In `arena`.           */
	char sha[RUN_SHA_SIZE];          /* "": not known yet.     */
	int token_error;                 /* Why no token opened; 0: it did, or there is none. */
	int commit_stored;
	int begun; /* The store says `running`. */

	/* Steps. */
	size_t step;                     /* 1-based; 0: none yet. */
	struct sandbox_process *process; /* The sandbox's; NULL: none runs. */
	struct actor_watch *process_watch;
	struct actor_timer *process_timer;
	int step_ended; /* What it left is being killed. */
	struct mono_time step_at;
	struct sandbox_result result; /* Of the newest step. */
	struct record_exit last_exit; /* Of a step that the store calls running. */
	struct stop stop;
	int draining;   /* Its output is being read to the end. */
	int unkillable; /* Processes have outlived KILL. */

	/* Control. */
	struct sandbox_problem problem; /* Why there is no sandbox. */
	int64_t cancel_at_ms;           /* 0: no cancel was requested. */
	int cancel_told;                /* The store has been told, and the processes. */
	int store_begun;                /* The store has been asked to say `starting`. */
	int releasing;
	int keyless; /* Released for want of a key. */
	int lost;
	char lost_reason[48];

	/* The end. */
	struct failure failure;
	struct actor_timer *teardown;
	struct mono_time teardown_until;
	size_t nsurvivors; /* Processes that outlived KILL. */
	struct ending ending;
	int torn_down, unproven;
	int log_finished, last_answered, last_asked;
	int ending_posted; /* The outcome is on its way to the store: nothing else counts. */
	int release_asked;
	int exit_status;
};

#endif
