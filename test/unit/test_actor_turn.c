/*
 * test/unit/test_actor_turn.c -- an actor with a store, and clients on its own loop: group
 * commit, savepoints, lost batches, effects, parked replies, who may call, the way out.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "lib/actor/actor.h"
#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "test/support/turn_rig.h"

/* ---- tests ---- */

static void
several_turns_share_one_commit(void **state)
{
	struct fix *f = *state;

	for (int i = 1; i <= 50; i++)
		turn_rig_send_n(f, "t.put", i);
	turn_rig_wait_answers(f, 50);
	assert_int_equal(f->a->ncommits, 1);
	assert_int_equal(f->a->ncommitted, 50);
	for (int i = 0; i < 50; i++)
		assert_int_equal(f->got.err[i], 0);
	assert_int_equal(turn_rig_count_rows(f), 50);
}

static int
write_nothing(void *arg, struct turn *t)
{
	(void)arg;
	(void)t;
	return 0;
}

static void
a_batch_is_bounded(void **state)
{
	struct fix *f = *state;

	for (int i = 1; i <= 250; i++)
		turn_rig_send_n(f, "t.put", i);
	turn_rig_wait_answers(f, 250);
	for (int i = 251; i <= 500; i++)
		turn_rig_send_n(f, "t.put", i);
	turn_rig_wait_answers(f, 500);
	assert_true(f->a->ncommits >= 2);
	assert_int_equal(f->a->ncommitted, 500);
	f->a->batch_us = 0;
	assert_int_equal(actor_turn(f->a, 1, write_nothing, NULL), 0);
	assert_int_equal(actor_in_batch(f->a), 0);
}

static void
effects_and_replies_leave_after_the_commit_in_order(void **state)
{
	struct fix *f = *state;

	turn_rig_send_n(f, "t.put", 1);
	turn_rig_send_n(f, "t.count", 0);
	turn_rig_send_n(f, "t.put", 2);
	turn_rig_wait_answers(f, 3);
	assert_string_equal(turn_rig_trail(f), "e1 e2 r1 r1 r2 ");
	assert_int_equal(f->a->ncommits, 1);
}

static void
a_failed_turn_is_undone_and_the_others_stay(void **state)
{
	struct fix *f = *state;

	turn_rig_send_n(f, "t.put", 1);
	turn_rig_send_n(f, "t.putAndFail", 2);
	turn_rig_send_n(f, "t.put", 3);
	turn_rig_send_n(f, "t.put", 3); /* the same key: a constraint */
	turn_rig_wait_answers(f, 4);
	assert_int_equal(f->got.err[0], 0);
	assert_int_equal(f->got.err[1], E_ILLEGAL);
	assert_int_equal(f->got.err[2], 0);
	assert_int_equal(f->got.err[3], E_CONSTRAINT);
	assert_string_equal(turn_rig_trail(f), "d2 d3 e1 e3 r1 x r3 x ");
	assert_int_equal(f->a->ncommits, 1);
	assert_int_equal(turn_rig_count_rows(f), 2);
}

static void
a_lost_batch_fails_everybody_in_it_reads_too(void **state)
{
	struct fix *f = *state;

	turn_rig_send_n(f, "t.put", 1);
	turn_rig_send_n(f, "t.count", 0);
	turn_rig_send_n(f, "t.lose", 2);
	turn_rig_send_n(f, "t.put", 3); /* a new batch */
	turn_rig_wait_answers(f, 4);
	assert_int_equal(f->got.err[0], E_STORAGE);
	assert_int_equal(f->got.err[1], E_STORAGE);
	assert_int_equal(f->got.err[2], E_STORAGE);
	assert_int_equal(f->got.err[3], 0);
	assert_int_equal(f->a->nlost, 1);
	assert_int_equal(turn_rig_count_rows(f), 1);
	assert_string_equal(turn_rig_trail(f), "d1 d2 e3 x x x r3 r1 ");
}

static void
a_full_disk_at_the_commit_fails_the_batch_and_nothing_else(void **state)
{
	struct fix *f = *state;

	turn_rig_send_n(f, "t.put", 1);
	turn_rig_wait_answers(f, 1);
	store_fault_arm(STORE_FAULT_FULL, 0);
	turn_rig_send_n(f, "t.put", 2);
	turn_rig_send_n(f, "t.count", 0);
	turn_rig_wait_answers(f, 3);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(f->got.err[1], E_STORAGE);
	assert_int_equal(f->got.err[2], E_STORAGE);
	assert_int_equal(f->a->stopping, 0);
	turn_rig_send_n(f, "t.put", 2);
	turn_rig_wait_answers(f, 4);
	assert_int_equal(f->got.err[3], 0);
	assert_int_equal(turn_rig_count_rows(f), 2);
}

static void
an_io_error_at_the_commit_ends_the_actor_for_a_restart(void **state)
{
	struct fix *f = *state;

	log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
	turn_rig_send_n(f, "t.put", 1);
	turn_rig_wait_answers(f, 1);
	store_fault_arm(STORE_FAULT_IO, 0);
	turn_rig_send_n(f, "t.put", 2);
	while (f->got.n < 2)
		actor_step(f->a);
	assert_int_equal(f->got.err[1], E_STORAGE);
	turn_rig_send_n(f, "t.put", 3);
	turn_rig_send_n(f, "t.count", 3);
	while (f->got.n < 4)
		actor_step(f->a);
	assert_int_equal(f->got.err[2], E_STORAGE);
	assert_int_equal(f->got.err[3], E_STORAGE);
	assert_int_equal(actor_run(f->a), ACTOR_EXIT_RESTART);
}

static int
put_internal(void *arg, struct turn *t)
{
	struct test_program *prog = arg;
	int r = turn_rig_add_effect(prog, t, 77);

	assert_ptr_equal(t->peer, NULL);
	assert_string_equal(t->request_id, "of-a-timer");
	return r < 0 ? r : turn_rig_put_row(t, 77);
}

static void
an_internal_turn_joins_the_batch(void **state)
{
	struct fix *f = *state;

	assert_int_equal(actor_turn_for(f->a, 1, "of-a-timer", put_internal, &f->prog), 0);
	assert_int_equal(actor_in_batch(f->a), 1);
	assert_string_equal(turn_rig_trail(f), "");
	assert_int_equal(
	    actor_turn_for(f->a, 1, "of-a-timer", put_internal, &f->prog), E_CONSTRAINT);
	assert_string_equal(turn_rig_trail(f), "d77 ");
	assert_int_equal(actor_commit_now(f->a), 0);
	assert_string_equal(turn_rig_trail(f), "d77 e77 ");
	assert_int_equal(f->a->ncommits, 1);
}

static void
effect_that_starts_a_turn(void *arg)
{
	struct test_program *prog = arg;

	buf_add_str(&prog->trail, "again ");
	assert_int_equal(actor_turn_for(prog->actor, 1, "of-a-timer", put_internal, prog), 0);
}

static int
turn_with_such_an_effect(void *arg, struct turn *t)
{
	return turn_after_commit(t, effect_that_starts_a_turn, arg, NULL);
}

static void
an_effect_may_start_the_next_turn(void **state)
{
	struct fix *f = *state;

	assert_int_equal(actor_turn(f->a, 1, turn_with_such_an_effect, &f->prog), 0);
	while (f->a->ncommits < 2)
		actor_step(f->a);
	assert_string_equal(turn_rig_trail(f), "again e77 ");
}

static void
a_parked_reply_comes_later(void **state)
{
	struct fix *f = *state;
	struct result r = { .n = 5 };

	turn_rig_send_n(f, "t.park", 1);
	turn_rig_send_n(f, "t.parkRead", 0);
	while (f->prog.nparked < 2)
		actor_step(f->a);
	actor_step(f->a);
	assert_int_equal(f->got.n, 0);
	assert_int_equal(f->a->ncommits, 1);
	assert_int_equal(parked_is_wanted(f->prog.parked[0]), 1);
	parked_reply(f->prog.parked[0], &r);
	parked_error(f->prog.parked[1], E_BUSY, "come again");
	f->prog.nparked = 0;
	turn_rig_wait_answers(f, 2);
	assert_int_equal(f->got.value[0], 5);
	assert_int_equal(f->got.err[1], E_BUSY);
	assert_string_equal(f->got.message, "come again");
	assert_int_equal(turn_rig_count_rows(f), 1);
}

static int
answer_parked(void *arg, struct turn *t)
{
	struct test_program *prog = arg;
	struct result r = { .n = 6 };

	(void)t;
	parked_reply(prog->parked[--prog->nparked], &r);
	return 0;
}

static int
answer_parked_and_fail(void *arg, struct turn *t)
{
	(void)answer_parked(arg, t);
	return E_ILLEGAL;
}

static int
answer_parked_and_lose(void *arg, struct turn *t)
{
	store_rollback(t->store);
	return answer_parked(arg, t);
}

static void
a_parked_reply_inside_a_turn_shares_its_fate(void **state)
{
	static const struct {
		int (*fn)(void *arg, struct turn *t);
		int ret, err;
	} rows[] = { { answer_parked, 0, 0 }, { answer_parked_and_fail, E_ILLEGAL, E_ILLEGAL },
		{ answer_parked_and_lose, E_STORAGE, E_STORAGE } };
	struct fix *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		turn_rig_send_n(f, "t.park", (int)i + 1);
		while (f->prog.nparked < 1 || actor_in_batch(f->a))
			actor_step(f->a);
		assert_int_equal(actor_turn(f->a, 1, rows[i].fn, &f->prog), rows[i].ret);
		assert_int_equal(f->prog.nparked, 0);
		turn_rig_wait_answers(f, i + 1);
		assert_int_equal(f->got.err[i], rows[i].err);
	}
	assert_int_equal(f->got.value[0], 6);
}

static void
a_lost_batch_answers_what_was_parked_in_it_and_leaves_the_handle(void **state)
{
	struct fix *f = *state;
	struct result r = { .n = 1 };

	turn_rig_send_n(f, "t.park", 1);
	turn_rig_send_n(f, "t.lose", 2);
	turn_rig_wait_answers(f, 2);
	assert_int_equal(f->got.err[0], E_STORAGE);
	assert_int_equal(f->prog.nparked, 1);
	assert_int_equal(parked_is_wanted(f->prog.parked[0]), 0);
	parked_reply(f->prog.parked[0], &r);
	f->prog.nparked = 0;
	assert_int_equal(turn_rig_count_rows(f), 0);
	assert_int_equal(f->got.n, 3);
}

static void
a_parked_caller_that_has_gone_is_not_wanted(void **state)
{
	struct fix *f = *state;
	struct result r = { .n = 1 };

	turn_rig_send_n(f, "t.parkRead", 0);
	while (f->prog.nparked < 1)
		actor_step(f->a);
	rpc_peer_close(link_peer(f->link), E_LINK);
	while (f->a->nconns > 0)
		actor_step(f->a);
	assert_int_equal(parked_is_wanted(f->prog.parked[0]), 0);
	parked_reply(f->prog.parked[0], &r);
	f->prog.nparked = 0;
}

static void
who_may_not_call_or_asks_nonsense_is_told(void **state)
{
	struct fix *f = *state;
	CLEANUP(buf_done) struct buf none = BUF_INIT;

	buf_add_str(&none, "{}");
	turn_rig_send_n(f, "t.forRuns", 0);
	turn_rig_send_n(f, "t.nothing", 0);
	turn_rig_send_n(f, "t.tick", 0);
	assert_int_equal(
	    rpc_send(link_peer(f->link), "t.put", &none, NULL, turn_rig_on_answer, &f->got), 0);
	turn_rig_wait_answers(f, 4);
	assert_int_equal(f->got.err[0], E_DENIED);
	assert_int_equal(f->got.err[1], E_METHOD);
	assert_int_equal(f->got.err[2], E_REQUEST);
	assert_int_equal(f->got.err[3], E_PARAMS);
	assert_int_equal(f->a->ncommits, 0);
}

static void
a_notification_runs_in_a_turn_too(void **state)
{
	struct fix *f = *state;
	CLEANUP(buf_done) struct buf params = BUF_INIT;

	buf_add_str(&params, "{\"n\":3}");
	assert_int_equal(rpc_notify(link_peer(f->link), "t.tick", &params, NULL), 0);
	while (f->a->ncommits < 1)
		actor_step(f->a);
	assert_string_equal(turn_rig_trail(f), "e3 ");
}

static void
ask(struct fix *f, const char *method, const char *params)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	size_t at = f->got.n;

	buf_add_str(&text, params);
	assert_int_equal(
	    rpc_send(link_peer(f->link), method, &text, NULL, turn_rig_on_answer, &f->got), 0);
	turn_rig_wait_answers(f, at + 1);
	assert_int_equal(f->got.err[at], 0);
}

static void
every_actor_tells_how_it_is(void **state)
{
	struct fix *f = *state;
	char pid[50];

	(void)snprintf(pid, sizeof(pid), "\"pid\":%d,", (int)getpid());
	turn_rig_send_n(f, "t.put", 1);
	turn_rig_wait_answers(f, 1);
	ask(f, "actor.info", "{}");
	assert_non_null(strstr(f->got.text, "\"address\":\"project/0\""));
	assert_non_null(strstr(f->got.text, pid));
	assert_non_null(strstr(f->got.text, "\"connections\":1"));
	assert_null(strstr(f->got.text, "\"storeBytes\":null"));
	ask(f, "actor.stats", "{}");
	assert_non_null(strstr(f->got.text, "\"name\":\"t.put\",\"count\":1,\"errors\":0"));
	assert_non_null(strstr(f->got.text, "\"commits\":1"));
	assert_non_null(strstr(f->got.text, "\"role\":\"ctl\""));
	ask(f, "actor.inspect", "{}");
	assert_string_equal(f->got.text, "{\"state\":{\"mood\":\"fine\"}}");
	ask(f, "rpc.discover", "{}");
	assert_non_null(strstr(f->got.text, "{\"openrpc\":"));
	ask(f, "actor.setLogLevel", "{\"level\":\"warn\"}");
	assert_int_equal(log_get_level(), LOG_LEVEL_WARN);
}

static void
percentiles_come_from_the_classes(void **state)
{
	struct rpc_request req = { .came = clock_mono() };
	struct method_entry m = { .count = 0 };

	(void)state;
	assert_int_equal(method_percentile(&m, 50), 0);
	for (int i = 0; i < 99; i++) {
		req.came = (struct mono_time) { clock_mono().us - 1000 };
		method_count(&m, &req, 0);
	}
	req.came = (struct mono_time) { clock_mono().us - 10000000 };
	method_count(&m, &req, E_BUSY);
	assert_int_equal(m.count, 100);
	assert_int_equal(m.errors, 1);
	assert_in_range(method_percentile(&m, 50), 1000, 1000000);
	assert_in_range(method_percentile(&m, 100), 10000000, 12600000);
	free(m.classes);
}

static void
a_draining_actor_answers_what_it_owes_and_ends(void **state)
{
	struct fix *f = *state;
	struct result r = { .n = 9 };

	f->prog.hold_drain = 1;
	turn_rig_send_n(f, "t.parkRead", 0);
	while (f->prog.nparked < 1)
		actor_step(f->a);
	actor_drain(f->a);
	assert_int_equal(actor_is_draining(f->a), 1);
	turn_rig_send_n(f, "t.put", 1);
	turn_rig_wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_DRAINING);
	ask(f, "actor.info", "{}");
	assert_non_null(strstr(f->got.text, "\"draining\":true"));
	parked_reply(f->prog.parked[0], &r);
	f->prog.nparked = 0;
	actor_drained(f->a);
	assert_int_equal(actor_run(f->a), 0);
	assert_int_equal(f->got.n, 3);
	assert_int_equal(f->got.value[2], 9);
}

static void
two_of_one_lock_do_not_start(void **state)
{
	struct fix *f = *state;
	struct actor_place place = { .address = "project/0", .runtime_dir = f->dir };
	char path[100], lock[100], *why = NULL;
	struct actor *other = NULL;

	(void)snprintf(path, sizeof(path), "%s/t.db", f->dir);
	(void)snprintf(lock, sizeof(lock), "%s/t.lock", f->dir);
	place.store_path = path;
	place.lock_path = lock;
	assert_int_equal(actor_new(&turn_rig_desc, &place, &other, &why), E_LOCKED);
	assert_null(other);
	assert_non_null(strstr(why, "t.lock"));
	free(why);
	assert_int_equal(turn_rig_count_rows(f), 0); /* the first one's socket is untouched */
}

static void
hellos_are_checked_against_what_was_announced(void **state)
{
	struct fix *f = *state;
	struct hello h = { .role = ROLE_INGRESS, .address = "ingress", .pid = 1234 };

	assert_int_equal(actor_check_hello(f->a, &h), E_PEER);
	assert_int_equal(actor_announce(f->a, "ingress", 1234), 0);
	assert_int_equal(actor_check_hello(f->a, &h), 0);
	h.pid = 1235;
	assert_int_equal(actor_check_hello(f->a, &h), E_PEER);
	assert_int_equal(actor_announce(f->a, "ingress", 0), 0);
	assert_int_equal(actor_check_hello(f->a, &h), E_PEER);
	h = (struct hello) { .role = ROLE_RUN, .address = "run/x", .pid = 5 };
	assert_int_equal(actor_check_hello(f->a, &h), 0);
}

static void
every_failed_allocation_still_answers_each_caller(void **state)
{
	long n;

	for (n = 0;; n++) {
		struct fix *f;
		int hit;

		assert_int_equal(turn_rig_setup(state), 0);
		f = *state;
		for (int i = 1; i <= 3; i++)
			turn_rig_send_n(f, "t.put", i);
		turn_rig_send_n(f, "t.parkRead", 0);
		turn_rig_send_n(f, "t.count", 0);
		mem_fault_arm(n);
		/* An allocation of the connection itself may fail: then it closes. */
		while (f->got.n < 4)
			(void)event_base_loop(actor_loop(f->a), EVLOOP_ONCE);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		turn_rig_teardown(state);
		if (!hit)
			break;
	}
	assert_true(n > 10);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, turn_rig_setup, turn_rig_teardown)
	static const struct CMUnitTest tests[] = {
		T(several_turns_share_one_commit),
		T(a_batch_is_bounded),
		T(effects_and_replies_leave_after_the_commit_in_order),
		T(a_failed_turn_is_undone_and_the_others_stay),
		T(a_lost_batch_fails_everybody_in_it_reads_too),
		T(a_full_disk_at_the_commit_fails_the_batch_and_nothing_else),
		T(an_io_error_at_the_commit_ends_the_actor_for_a_restart),
		T(an_internal_turn_joins_the_batch),
		T(an_effect_may_start_the_next_turn),
		T(a_parked_reply_comes_later),
		T(a_parked_reply_inside_a_turn_shares_its_fate),
		T(a_lost_batch_answers_what_was_parked_in_it_and_leaves_the_handle),
		T(a_parked_caller_that_has_gone_is_not_wanted),
		T(who_may_not_call_or_asks_nonsense_is_told),
		T(a_notification_runs_in_a_turn_too),
		T(every_actor_tells_how_it_is),
		cmocka_unit_test(percentiles_come_from_the_classes),
		T(a_draining_actor_answers_what_it_owes_and_ends),
		T(two_of_one_lock_do_not_start),
		T(hellos_are_checked_against_what_was_announced),
		cmocka_unit_test(every_failed_allocation_still_answers_each_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
