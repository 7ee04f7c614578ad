/*
 * test/unit/test_anvil-run_recorder.c -- jobs of the store's thread: order, retries, patience.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/anvil-run/recorder.h"
#include "lib/actor/actor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 20000

static const size_t no_methods = 0;
static const struct actor_desc desc = { .role = ROLE_RUN, .nmethods = &no_methods };

struct fix {
	char *dir;
	struct actor *a;
	struct recorder *rec;
	char trail[64]; /* Names of jobs in the order of their ends; x for a failed one. */
	int troubles, recoveries, fulls;
};

struct letter {
	struct job job;
	struct fix *f;
	char name;
	int fail[4]; /* What its tries return. */
	int tries;
};

static void
on_trouble(void *arg, int err)
{
	struct fix *f = arg;

	f->troubles += err < 0;
	f->recoveries += err == 0;
}

static void
on_full(void *arg)
{
	struct fix *f = arg;

	f->fulls++;
}

static int
setup(void **state)
{
	static const struct recorder_ops ops = { .on_trouble = on_trouble, .on_full = on_full };
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "run/run_0000000000000000000001" };
	char *why = NULL;

	f->dir = scratch_new();
	place.runtime_dir = f->dir;
	assert_int_equal(actor_new(&desc, &place, &f->a, &why), 0);
	f->rec = recorder_new(f->a, f->dir, 1 << 20, &ops, f);
	assert_non_null(f->rec);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	clock_shift_for_test(0, 0);
	recorder_free(f->rec);
	actor_free(f->a);
	scratch_free(f->dir);
	free(f);
	return 0;
}

static int
letter_work(struct job *j, struct desk *d)
{
	struct letter *l = (struct letter *)j;

	(void)d;
	return l->tries < (int)ARRAY_LEN(l->fail) ? l->fail[l->tries++] : 0;
}

static void
letter_done(struct job *j, int err)
{
	struct letter *l = (struct letter *)j;
	size_t at = strlen(l->f->trail);

	l->f->trail[at] = err == 0 ? l->name : err == E_CANCELED ? '-' : 'x';
	free(l);
}

static void
post_letter(struct fix *f, struct letter letter)
{
	struct letter *l = calloc(1, sizeof(*l));

	*l = letter;
	l->f = f;
	l->job.done = letter_done;
	if (l->job.work == NULL)
		l->job.work = letter_work;
	recorder_post(f->rec, &l->job);
}

static void
post(struct fix *f, enum job_kind kind, char name, int first, int second)
{
	post_letter(f,
	    (struct letter) { .job = { .kind = kind, .bytes = 1000 },
		.name = name,
		.fail = { first, second } });
}

static void
run_until(struct fix *f, size_t ndone)
{
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (strlen(f->trail) < ndone) {
		assert_true(mono_diff_us(clock_mono(), limit) > 0);
		actor_step(f->a);
		(void)poll(NULL, 0, 1);
	}
}

static void
jobs_end_in_the_order_of_their_posting(void **state)
{
	struct fix *f = *state;

	for (int c = 'a'; c <= 'p'; c++)
		post(f, c % 2 ? JOB_LOG : JOB_STATE, (char)c, 0, 0);
	assert_int_equal(recorder_njobs(f->rec), 16);
	run_until(f, 16);
	assert_string_equal(f->trail, "abcdefghijklmnop");
	assert_int_equal(recorder_njobs(f->rec), 0);
}

static void
reads_take_turns_with_writes(void **state)
{
	struct fix *f = *state;

	for (int c = 'a'; c <= 'd'; c++)
		post(f, JOB_LOG, (char)c, 0, 0);
	for (int c = 'A'; c <= 'D'; c++)
		post(f, JOB_READ, (char)c, 0, 0);
	run_until(f, 8);
	assert_string_equal(f->trail, "aAbBcCdD");
}

static void
a_full_disk_is_tried_again_and_reads_go_on_meanwhile(void **state)
{
	struct fix *f = *state;

	post(f, JOB_STATE, 'a', E_FULL, 0);
	post(f, JOB_LOG, 'b', 0, 0);
	run_until(f, 0);
	post(f, JOB_READ, 'R', 0, 0);
	run_until(f, 3);
	assert_string_equal(f->trail, "Rab");
	assert_int_equal(f->troubles, 1);
	assert_int_equal(f->recoveries, 1);
	assert_int_equal(f->fulls, 0);
}

static void
after_the_patience_the_reserve_goes_and_logs_have_one_try(void **state)
{
	struct fix *f = *state;

	assert_int_equal(record_reserve_make(f->dir), 0);
	post(f, JOB_LOG, 'a', E_FULL, E_FULL);
	post(f, JOB_STATE, 'b', 0, 0);
	while (f->troubles == 0)
		actor_step(f->a);
	clock_shift_for_test(0, RECORDER_PATIENCE_MS + 1);
	run_until(f, 2);
	assert_string_equal(f->trail, "ab");
	assert_int_equal(f->fulls, 1);
	post(f, JOB_LOG, 'c', E_FULL, 0);
	run_until(f, 3);
	assert_string_equal(f->trail, "abx");
}

static int
begin_work(struct job *j, struct desk *d)
{
	d->free_bytes = 100000;
	return letter_work(j, d);
}

/* ${bytes} in its home, the disk full for as long as ${after_ms}. */
static void
fill_and_wait(struct fix *f, size_t bytes, int64_t after_ms)
{
	CLEANUP_FREE char *text = mem_calloc(1, bytes);
	CLEANUP_FREE char *home = mem_format("%s/home", f->dir);
	CLEANUP_FREE char *file = mem_format("%s/file", home);

	assert_int_equal(mkdir(home, 0700), 0);
	assert_int_equal(io_write_file(AT_FDCWD, file, text, bytes, 0600), 0);
	post_letter(f,
	    (struct letter) { .job = { .kind = JOB_STATE, .work = begin_work }, .name = 'a' });
	run_until(f, 1);
	post_letter(f,
	    (struct letter) {
		.job = { .kind = JOB_LOG }, .name = 'b', .fail = { E_FULL, E_FULL, E_FULL } });
	while (f->troubles == 0)
		actor_step(f->a);
	clock_shift_for_test(0, after_ms);
	run_until(f, 2);
	assert_string_equal(f->trail, "ab");
}

static void
who_has_filled_the_disk_gives_way_first(void **state)
{
	struct fix *f = *state;

	fill_and_wait(f, 60000, RECORDER_HEAVY_MS);
	assert_int_equal(f->fulls, 1);
}

static void
who_has_not_waits_for_room(void **state)
{
	struct fix *f = *state;

	fill_and_wait(f, 10000, RECORDER_HEAVY_MS);
	assert_int_equal(f->fulls, 0);
	assert_int_equal(f->recoveries, 1);
}

static void
other_errors_are_told_at_once(void **state)
{
	struct fix *f = *state;

	post(f, JOB_STATE, 'a', E_STALE, 0);
	post(f, JOB_READ, 'b', E_FULL, 0);
	run_until(f, 2);
	assert_string_equal(f->trail, "xx");
	assert_int_equal(f->troubles, 0);
}

static void
jobs_that_did_not_run_are_told_at_the_end(void **state)
{
	struct fix *f = *state;

	post(f, JOB_STATE, 'a', E_FULL, E_FULL);
	post(f, JOB_STATE, 'b', 0, 0);
	while (f->troubles == 0)
		actor_step(f->a);
	f->rec = recorder_free(f->rec);
	assert_string_equal(f->trail, "--");
}

static void
room_is_counted_in_bytes(void **state)
{
	struct fix *f = *state;
	assert_true(recorder_has_room(f->rec));
	post_letter(f,
	    (struct letter) {
		.job = { .kind = JOB_LOG, .bytes = RECORDER_MAX_BYTES }, .name = 'a' });
	assert_false(recorder_has_room(f->rec));
	run_until(f, 1);
	assert_true(recorder_has_room(f->rec));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    jobs_end_in_the_order_of_their_posting, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_take_turns_with_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_full_disk_is_tried_again_and_reads_go_on_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    after_the_patience_the_reserve_goes_and_logs_have_one_try, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    who_has_filled_the_disk_gives_way_first, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_not_waits_for_room, setup, teardown),
		cmocka_unit_test_setup_teardown(other_errors_are_told_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    jobs_that_did_not_run_are_told_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(room_is_counted_in_bytes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
