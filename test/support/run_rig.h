/*
 * test/support/run_rig.h -- a real anvil-run against a shard that a test plays.
 *
 * The rig is the supervisor as well, as far as a run needs one.  The shard answers as the test
 * has set it up and writes down what it was told.  bwrap refuses root, so a rig made by root
 * becomes nobody first, for good.
 */
#ifndef TEST_SUPPORT_RUN_RIG_H
#define TEST_SUPPORT_RUN_RIG_H

#include <sys/types.h>

#include "gen/project.h"
#include "gen/run.h"
#include "lib/actor/actor.h"
#include "lib/base/id.h"
#include "lib/record/record.h"

#define RUN_RIG_BEATS 64

/* RIG_CONFIG(RIG_STEP("name", "command") ...): an .anvil.yml; both are plain YAML. */
#define RIG_STEP(name, command) "    - name: " name "\n      run: " command "\n"
#define RIG_CONFIG(steps)       "version: 1\nrun:\n  steps:\n" steps
/* Part of a command: waits until run_rig_let_go(). */
#define RIG_WAITS "while [ ! -e $HOME/go ]; do sleep 0.02; done"

struct run_rig {
	char *dir; /* Owned; data/, run/ and repo/ are beneath it. */
	char data[128], runtime[128], repo[128], url[144];
	struct actor *shard, *super, *ctl;
	char run_id[ID_SIZE], project_id[ID_SIZE], user_id[ID_SIZE];
	char spawn_id[ID_HEX32_SIZE], lease_id[ID_HEX32_SIZE];

	/* Set before run_rig_start(); more of anvil.yml as JSON members, "" or `,"runs":{…}`. */
	const char *sandbox;
	int64_t max_timeout_s, max_log_bytes;
	char branch[64];
	char commit[72]; /* "": not pinned. */
	char config_path[64];
	const struct sealed_value *token;
	const char *keys; /* JSON; NULL: none. */
	int64_t epoch;
	int64_t heartbeat_ms;

	/* What the shard does. */
	int fail_claims; /* So many more claims are answered with an error ... */
	int claim_error; /* ... this one; 0: E_STORAGE.                        */
	int stale;       /* Claims are. */
	int lost;        /* Every call but the claim is. */
	int fail_finals; /* So many more settlements are. */
	int conflict;    /* Settlements do. */
	int commit_conflict;
	int cancel_after;   /* Heartbeats after so many tell of a cancel; 0: none do. */
	int64_t cancel_at;  /* Told by claims and heartbeats; 0: none. */
	int refuse_release; /* 1: cancel_requested. */

	/* What it was told. */
	int nready;
	int nclaims, nbeats, ncommits, nreleases, nfinals;
	enum run_status beats[RUN_RIG_BEATS];
	char sha[72];
	struct project_finalize_run_params end; /* Its texts are copies. */
	char message[8192];
	enum release_reason release_reason;
	struct rpc_peer *channel; /* Of the newest claim or heartbeat. */

	/* Of run_rig_conclude(). */
	struct run_conclude_terminal concluded; /* Without its text. */
	int answered, want_conclude;
	struct run_get_detail_detail *detail; /* Of run_rig_ask(). */
	struct buf *detail_text;
	char *sealed_text; /* Owned: what `sealed` lends from. */
	char sealed_nonce[40];
	struct sealed_value sealed;
	char *keys_text; /* Owned. */
	int mirror_fd;   /* Holds the mirror's lock; -1: free. */

	/* The process. */
	pid_t pid;
	int pidfd;
	int status;    /* As of waitpid(2), once it has ended. */
	char log[160]; /* File with what it wrote on standard error. */
};

/* Whether steps can run in bwrap here. */
int run_rig_has_bwrap(void);

/* Fixture of cmocka: *state is a rig. */
int run_rig_setup(void **state);
int run_rig_teardown(void **state);

/* Commits ${config} as .anvil.yml of the branch main; NULL: removes it. */
void run_rig_commit(struct run_rig *g, const char *config);
/* sh -e -c in the repository; must work. */
void run_rig_sh(const struct run_rig *g, const char *command);

void run_rig_start(struct run_rig *g);
void run_rig_serve(struct run_rig *g);
/* Serves until ${until}(g) is true, or fails after 20 s. */
void run_rig_until(struct run_rig *g, int (*until)(struct run_rig *g));
/* Until it has ended; its exit status, 256 + n for signal n. */
int run_rig_wait(struct run_rig *g);
/* run_rig_start() and run_rig_wait(); shows the process's log and fails when it ends with
 * another status. */
void run_rig_expect(struct run_rig *g, int status);

/* The checkout of the run waits while it is held. */
void run_rig_hold_mirror(struct run_rig *g);
void run_rig_free_mirror(struct run_rig *g);
/* A step that has got to RIG_WAITS goes on; the run has a home by then. */
void run_rig_let_go(const struct run_rig *g);
/* The shard goes, with every connection, and comes back. */
void run_rig_restart_shard(struct run_rig *g);
/* Seals ${token} for the project as version 1 and gives the run the keys of ${given}, made of
 * the same master key under that number. */
void run_rig_seal(struct run_rig *g, const char *token, int given);
/* run.getDetail and run.readLog to the process of run_rig_serve(); what is in the answers is
 * copied to ${ret_text}. */
void run_rig_ask(struct run_rig *g, struct run_get_detail_detail *ret, struct buf *ret_text);
/* run.conclude with runner_lost to the process of run_rig_serve(). */
void run_rig_conclude(struct run_rig *g);

/* The record that it left; the caller frees. */
struct record *run_rig_record(struct run_rig *g);
/* The whole log as text, with NULs as they are; the caller frees the buffer. */
void run_rig_text(struct run_rig *g, struct buf *out);
/* 1 when the log has that text. */
int run_rig_said(struct run_rig *g, const char *text);
/* Text of the process's own log; the caller frees. */
char *run_rig_events(const struct run_rig *g);

#endif
