/*
 * test/support/fake_run.h -- the actor of a run that says what a test wants it to say (spec run
 * 14), in the process of the test.
 */
#ifndef TEST_SUPPORT_FAKE_RUN_H
#define TEST_SUPPORT_FAKE_RUN_H

#include <stddef.h>
#include <sys/types.h>

#include "gen/types.h"
#include "lib/base/buf.h"

#define FAKE_RUN_LINES 20000
#define FAKE_RUN_SUBS  64

struct actor;
struct rpc_peer;

struct fake_sub {
	struct rpc_peer *peer; /* NULL: free. */
	int64_t id, from, next, replay_end, acked;
	int told_state, replayed, version;
};

struct fake_run {
	char run_id[32];
	char dir[128]; /* Of the sockets. */
	pid_t ingress;
	struct actor *actor; /* NULL: it is dead. */
	/* Its log and state. */
	struct buf text;
	size_t at[FAKE_RUN_LINES + 2]; /* Where line i begins in `text`. */
	int64_t first, next;
	enum run_status status;
	int64_t step;
	int version, ended;
	/* Who watches. */
	struct fake_sub *subs[FAKE_RUN_SUBS];
	int64_t last_id;
	int nsubscribed; /* Ever. */
};

/* Not alive yet. */
void fake_run_init(struct fake_run *f, const char *run_id, const char *dir, pid_t ingress);
void fake_run_done(struct fake_run *f);
/* Comes to life, or dies with all its connections. */
void fake_run_start(struct fake_run *f);
void fake_run_die(struct fake_run *f);

/* ${n} bytes of chunk that tell the number of the line; n >= 16. */
void fake_run_add(struct fake_run *f, size_t n);
void fake_run_set(struct fake_run *f, enum run_status status);
/* Lines before ${seq} are not hot any more. */
void fake_run_forget(struct fake_run *f, int64_t seq);
size_t fake_run_nsubs(const struct fake_run *f);
/* Serves what is ready, and sends what may be sent. */
void fake_run_step(struct fake_run *f);

#endif
