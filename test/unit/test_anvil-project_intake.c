/*
 * test/unit/test_anvil-project_intake.c -- how a shard drives the making of rows on, piece by
 * piece, and whom it answers what.  It stands in for turns, timers and the ledger.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-project/intake.h"
#include "cmd/anvil-project/shard.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

#define PRJ     "prj_0000000000000000000001"
#define MOVE    "11111111111111111111111111111111"
#define WAITING 1

/* ---- turns ---- */

struct parked {
	int said; /* WAITING; 0: it is done; or an error. */
};

static struct {
	void (*fn)(void *arg), (*drop)(void *arg);
	void *arg;
} effect;
static struct parked callers[2];
static size_t ncallers;
static int no_room; /* To park anybody. */

int
turn_after_commit(struct turn *t, void (*fn)(void *arg), void *arg, void (*drop)(void *arg))
{
	(void)t;
	assert_null(effect.fn);
	effect.fn = fn;
	effect.drop = drop;
	effect.arg = arg;
	return 0;
}

static void
batch_ends(int is_kept)
{
	void (*then)(void *arg) = is_kept ? effect.fn : effect.drop;

	assert_non_null(then);
	effect.fn = NULL;
	then(effect.arg);
}

int
actor_turn(struct actor *a, int write, int (*fn)(void *arg, struct turn *t), void *arg)
{
	struct turn t = { .actor = a };

	assert_true(write);
	return fn(arg, &t);
}

struct parked *
turn_park(struct turn *t)
{
	(void)t;
	if (no_room)
		return NULL;
	assert_true(ncallers < ARRAY_LEN(callers));
	callers[ncallers].said = WAITING;
	return &callers[ncallers++];
}

void
parked_reply(struct parked *p, const void *result)
{
	assert_int_equal(p->said, WAITING);
	assert_non_null(result);
	p->said = 0;
}

void
parked_error(struct parked *p, int err, const char *message)
{
	(void)message;
	assert_int_equal(p->said, WAITING);
	p->said = err;
}

int
turn_fail(struct turn *t, int err, const char *fmt, ...)
{
	(void)t;
	(void)fmt;
	return err;
}

/* ---- the timer ---- */

static struct {
	void (*fn)(void *arg);
	void *arg;
	int is_set;
} timer;

struct actor_timer *
actor_timer_new(struct actor *a, void (*fn)(void *arg), void *arg)
{
	(void)a;
	timer.fn = fn;
	timer.arg = arg;
	timer.is_set = 0;
	return (struct actor_timer *)(void *)&timer;
}

struct actor_timer *
actor_timer_free(struct actor_timer *t)
{
	(void)t;
	timer.is_set = 0;
	return NULL;
}

int
actor_timer_set(struct actor_timer *t, int64_t ms)
{
	(void)t;
	assert_int_equal(ms, 0);
	timer.is_set = 1;
	return 0;
}

static void
time_comes(void)
{
	assert_true(timer.is_set);
	timer.is_set = 0;
	timer.fn(timer.arg);
}

/* ---- the ledger ---- */

static int nimported, ndiscarded, pieces, result;

int
ledger_import(const struct ledger_at *at, const char *project_id, const char *move_id,
    int64_t nparts, int *ret_left)
{
	(void)at;
	assert_string_equal(project_id, PRJ);
	assert_string_equal(move_id, MOVE);
	assert_int_equal(nparts, 7);
	*ret_left = ++nimported < pieces;
	return result;
}

int
ledger_discard(struct store *s, const char *project_id, const char *move_id, int *ret_left)
{
	(void)s;
	assert_string_equal(project_id, PRJ);
	assert_string_equal(move_id, MOVE);
	*ret_left = ++ndiscarded < pieces;
	return result;
}

void
actor_truncate_log(struct actor *a)
{
	(void)a;
}

/* ---- tests ---- */

static struct shard shard;

static int
begin(void **state)
{
	log_set_level(LOG_LEVEL_ERROR);
	effect.fn = NULL;
	ncallers = 0;
	no_room = nimported = ndiscarded = result = 0;
	pieces = 1;
	*state = intakes_new(&shard);
	return *state == NULL;
}

static int
end(void **state)
{
	*state = intakes_free(*state);
	return 0;
}

static int
import(struct intakes *m)
{
	struct turn t = { .actor = NULL };

	return intakes_import(m, &t, PRJ, MOVE, 7);
}

static int
discard(struct intakes *m)
{
	struct turn t = { .actor = NULL };

	return intakes_discard(m, &t, PRJ, MOVE);
}

static void
rows_are_made_piece_by_piece_and_everybody_hears_of_the_end(void **state)
{
	pieces = 3;
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	for (int i = 1; i <= pieces; i++) {
		assert_int_equal(callers[0].said, WAITING);
		time_comes();
		assert_int_equal(nimported, i);
		if (i == 1)
			assert_int_equal(import(*state), TURN_PARKED);
		batch_ends(1);
	}
	assert_int_equal(callers[0].said, 0);
	assert_int_equal(callers[1].said, 0);
	assert_false(timer.is_set);
}

/* Its last part is lost with it: that says nothing against the project. */
static void
a_question_that_does_not_reach_the_disk_may_be_asked_again(void **state)
{
	result = E_INVAL;
	assert_int_equal(import(*state), TURN_PARKED);
	assert_false(timer.is_set);
	batch_ends(0);
	assert_int_equal(callers[0].said, E_STORAGE);
	assert_int_equal(nimported, 0);
	result = 0;
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	time_comes();
	batch_ends(1);
	assert_int_equal(callers[1].said, 0);
}

static void
nothing_is_begun_for_who_cannot_wait(void **state)
{
	no_room = 1;
	assert_int_equal(import(*state), E_NOMEM);
	batch_ends(0); /* as that of a handler that fails */
	assert_false(timer.is_set);
	no_room = 0;
	assert_int_equal(discard(*state), TURN_PARKED);
	batch_ends(1);
	time_comes();
	batch_ends(1);
	assert_int_equal(callers[0].said, 0);
	assert_int_equal(nimported, 0);
	assert_int_equal(ndiscarded, 1);
}

static void
a_move_that_is_given_up_meanwhile_is_discarded(void **state)
{
	pieces = 2;
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	time_comes();
	assert_int_equal(discard(*state), TURN_PARKED);
	assert_int_equal(callers[0].said, E_PARAMS);
	assert_int_equal(import(*state), E_PARAMS);
	batch_ends(1);
	time_comes();
	batch_ends(1);
	assert_int_equal(callers[1].said, WAITING);
	time_comes();
	batch_ends(1);
	assert_int_equal(callers[1].said, 0);
	assert_int_equal(nimported, 1);
	assert_int_equal(ndiscarded, 2);
}

static void
rows_that_no_project_can_have_are_refused_and_a_lost_piece_is_not(void **state)
{
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	time_comes();
	batch_ends(0);
	assert_int_equal(callers[0].said, E_STORAGE);
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	result = E_CONSTRAINT;
	time_comes();
	assert_int_equal(callers[1].said, E_PARAMS);
	assert_null(effect.fn);
}

static void
who_goes_in_the_midst_of_it_tells_those_who_wait(void **state)
{
	assert_int_equal(import(*state), TURN_PARKED);
	batch_ends(1);
	time_comes();
	*state = intakes_free(*state);
	assert_int_equal(callers[0].said, E_DRAINING);
	batch_ends(1);
	assert_false(timer.is_set);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_are_made_piece_by_piece_and_everybody_hears_of_the_end),
		TEST(a_question_that_does_not_reach_the_disk_may_be_asked_again),
		TEST(nothing_is_begun_for_who_cannot_wait),
		TEST(a_move_that_is_given_up_meanwhile_is_discarded),
		TEST(rows_that_no_project_can_have_are_refused_and_a_lost_piece_is_not),
		TEST(who_goes_in_the_midst_of_it_tells_those_who_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
