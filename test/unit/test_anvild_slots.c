/* cmd/anvild/slots.c: the queue for slots, and what keeps one from being used. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvild/slots.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

static struct slot_request
request(int n, int64_t queued_at)
{
	struct slot_request r = { .shard = n % 3, .attempt = n, .queued_at_ms = queued_at };

	(void)snprintf(r.run_id, sizeof(r.run_id), "run_%022d", n);
	(void)snprintf(r.project_id, sizeof(r.project_id), "prj_%022d", n);
	return r;
}

static int64_t
put(struct slots *s, int n, int64_t queued_at)
{
	struct slot_request r = request(n, queued_at);
	int64_t ahead = -1;

	assert_int_equal(slots_wait(s, &r, &ahead), 0);
	return ahead;
}

static void
expect_next(struct slots *s, int n)
{
	struct slot_request want = request(n, 0);
	struct slot_request *got = slots_take(s, (struct mono_time) { 0 });

	assert_non_null(got);
	assert_string_equal(got->run_id, want.run_id);
	free(got);
}

static void
who_was_queued_first_goes_first(void **state)
{
	struct slots s;

	(void)state;
	slots_init(&s, 1);
	assert_int_equal(put(&s, 1, 30), 0);
	assert_int_equal(put(&s, 2, 10), 0);
	assert_int_equal(put(&s, 3, 20), 1);
	assert_int_equal(put(&s, 4, 20), 2); /* of two alike the one that asked first */
	assert_int_equal(s.nqueued, 4);
	expect_next(&s, 2);
	expect_next(&s, 3);
	expect_next(&s, 4);
	expect_next(&s, 1);
	assert_null(slots_take(&s, (struct mono_time) { 0 }));
	slots_done(&s);
}

static void
a_run_stands_in_the_queue_once_with_what_it_said_last(void **state)
{
	struct slot_request r = request(1, 10), *got;
	struct slots s;
	int64_t ahead;

	(void)state;
	slots_init(&s, 1);
	(void)put(&s, 2, 5);
	(void)put(&s, 1, 10);
	r.attempt = 7;
	assert_int_equal(slots_wait(&s, &r, &ahead), 0);
	assert_int_equal(ahead, 1);
	assert_int_equal(s.nqueued, 2);
	expect_next(&s, 2);
	got = slots_take(&s, (struct mono_time) { 0 });
	assert_int_equal(got->attempt, 7);
	free(got);
	slots_done(&s);
}

static void
a_dropped_run_is_gone_and_only_once(void **state)
{
	struct slots s;

	(void)state;
	slots_init(&s, 1);
	(void)put(&s, 1, 10);
	assert_int_equal(slots_drop(&s, request(2, 0).run_id), 0);
	assert_int_equal(slots_drop(&s, request(1, 0).run_id), 1);
	assert_int_equal(slots_drop(&s, request(1, 0).run_id), 0);
	assert_int_equal(s.nqueued, 0);
	slots_done(&s);
}

static void
each_reason_to_wait_has_its_word_and_the_gravest_is_told(void **state)
{
	static const struct mono_time now = { 0 };
	struct slots s;

	(void)state;
	slots_init(&s, 2);
	s.live = 1;
	assert_int_equal(slots_check(&s, now), SLOT_FREE);
	s.live = 2;
	assert_int_equal(slots_check(&s, now), SLOT_NONE_FREE);
	s.low_disk = 1;
	assert_int_equal(slots_check(&s, now), SLOT_LOW_DISK);
	s.draining = 1;
	assert_int_equal(slots_check(&s, now), SLOT_DRAINING);
	assert_string_equal(slot_wait_name(SLOT_NONE_FREE), "no_slot");
	assert_string_equal(slot_wait_name(SLOT_DRAINING), "draining");
	assert_string_equal(slot_wait_name(SLOT_LOW_DISK), "low_disk");
	assert_string_equal(slot_wait_name(SLOT_UNHEALTHY), "pool_unhealthy");
	assert_string_equal(slot_wait_name(SLOT_STORAGE), "storage");
	slots_done(&s);
}

static void
nothing_leaves_the_queue_while_no_slot_is_free(void **state)
{
	struct slots s;

	(void)state;
	slots_init(&s, 1);
	s.live = 1;
	(void)put(&s, 1, 1);
	assert_null(slots_take(&s, (struct mono_time) { 0 }));
	s.live = 0;
	expect_next(&s, 1);
	slots_done(&s);
}

/* Milliseconds after ${from} until which nothing is tried. */
static int64_t
wait_after(const struct slots *s, struct mono_time from)
{
	assert_int_equal(slots_check(s, from), SLOT_UNHEALTHY);
	assert_int_equal(
	    slots_check(s, (struct mono_time) { s->next_try.us - 1 }), SLOT_UNHEALTHY);
	assert_int_equal(slots_check(s, s->next_try), SLOT_FREE);
	return mono_diff_ms(from, s->next_try);
}

static void
five_failures_make_the_pool_unhealthy_and_tries_grow_rare(void **state)
{
	static const int64_t waits[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
	struct mono_time now = { 1000000 };
	struct slots s;

	(void)state;
	slots_init(&s, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(slots_note_failure(&s, now), 0);
		assert_int_equal(slots_check(&s, now), SLOT_FREE);
	}
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		/* It is news once. */
		assert_int_equal(slots_note_failure(&s, now), i == 0);
		assert_true(slots_unhealthy(&s));
		assert_int_equal(wait_after(&s, now), waits[i]);
	}
	slots_note_success(&s);
	assert_false(slots_unhealthy(&s));
	assert_int_equal(slots_check(&s, now), SLOT_FREE);
	/* A success between failures begins the count anew. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(slots_note_failure(&s, now), 0);
	slots_note_success(&s);
	assert_int_equal(slots_note_failure(&s, now), 0);
	slots_done(&s);
}

static void
an_unhealthy_pool_tries_one_at_a_time(void **state)
{
	struct mono_time now = { 0 };
	struct slots s;

	(void)state;
	slots_init(&s, 4);
	assert_int_equal(slots_begin_trial(&s), 0); /* a healthy one tries nothing */
	for (int i = 0; i < SLOTS_UNHEALTHY_AFTER; i++)
		(void)slots_note_failure(&s, now);
	now = s.next_try;
	assert_int_equal(slots_check(&s, now), SLOT_FREE);
	assert_int_equal(slots_begin_trial(&s), 1);
	assert_int_equal(slots_begin_trial(&s), 0);
	assert_int_equal(slots_check(&s, now), SLOT_UNHEALTHY);
	slots_trial_over(&s);
	assert_int_equal(slots_check(&s, now), SLOT_FREE);
	slots_done(&s);
}

static void
without_memory_the_queue_stays_as_it_is(void **state)
{
	struct slot_request r = request(2, 1);
	struct slots s;
	int64_t ahead = 42;

	(void)state;
	slots_init(&s, 1);
	(void)put(&s, 1, 5);
	mem_fault_arm(0);
	assert_int_equal(slots_wait(&s, &r, &ahead), E_NOMEM);
	assert_true(mem_fault_hit());
	mem_fault_arm(-1);
	assert_int_equal(ahead, 42);
	assert_int_equal(s.nqueued, 1);
	expect_next(&s, 1);
	slots_done(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_queued_first_goes_first),
		cmocka_unit_test(a_run_stands_in_the_queue_once_with_what_it_said_last),
		cmocka_unit_test(a_dropped_run_is_gone_and_only_once),
		cmocka_unit_test(each_reason_to_wait_has_its_word_and_the_gravest_is_told),
		cmocka_unit_test(nothing_leaves_the_queue_while_no_slot_is_free),
		cmocka_unit_test(five_failures_make_the_pool_unhealthy_and_tries_grow_rare),
		cmocka_unit_test(an_unhealthy_pool_tries_one_at_a_time),
		cmocka_unit_test(without_memory_the_queue_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
