/*
 * test/support/turn_rig.h -- an actor with a store, and a client on its own loop.
 *
 * Methods t.put, t.putAndFail, t.lose, t.count, t.park, t.parkRead, t.forRuns, t.tick; what
 * happens is written down in `trail`: eN an effect, dN a dropped one, rN a reply, x an error.
 */
#ifndef TEST_SUPPORT_TURN_RIG_H
#define TEST_SUPPORT_TURN_RIG_H

#include "lib/actor/actor.h"
#include "lib/actor/inside.h"

#define ANSWERS_MAX 600

/* Of every method. */
struct result {
	int64_t n;
};

struct test_program {
	struct actor *actor;
	struct parked *parked[8];
	size_t nparked;
	struct buf trail; /* What happened, in order. */
	int commits_seen; /* Commits at the time of the first effect. */
	int hold_drain;
};

struct answers {
	struct test_program *prog;
	size_t n;
	int err[ANSWERS_MAX];
	long long value[ANSWERS_MAX];
	char message[100];
	char text[4000]; /* Of the last result. */
};

struct fix {
	char dir[64];
	int dirfd;
	struct test_program prog;
	struct actor *a;
	struct link *link;
	int up;
	struct answers got;
};

/* What the actor of the rig is. */
extern const struct actor_desc turn_rig_desc;

/* Fixture of cmocka: *state is a struct fix, its link is up. */
int turn_rig_setup(void **state);
int turn_rig_teardown(void **state);

/* Inside a turn. */
int turn_rig_put_row(struct turn *t, int64_t n);
int turn_rig_add_effect(struct test_program *prog, struct turn *t, int64_t n);

/* From the client; answers are kept in their order. */
void turn_rig_send_n(struct fix *f, const char *method, int n);
void turn_rig_on_answer(void *arg, const struct rpc_answer *a);
void turn_rig_wait_answers(struct fix *f, size_t n);
long long turn_rig_count_rows(struct fix *f);
const char *turn_rig_trail(struct fix *f);

#endif
