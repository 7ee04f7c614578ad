/*
 * test/unit/test_anvil-run_fetch.c -- what subscribers get next, read from the store.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-run/fetch.h"
#include "cmd/anvil-run/recorder.h"
#include "gen/ingress.h"
#include "lib/actor/actor.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define PATIENCE_MS 20000
#define RUN         "run_0000000000000000000001"
#define NOW         1700000000000

static const size_t no_methods = 0;
static const struct actor_desc desc = { .role = ROLE_RUN, .nmethods = &no_methods };
static const struct record_claim claim = { .run_id = RUN,
	.project_id = "prj_0000000000000000000001",
	.owner_slug = "o",
	.project_slug = "p",
	.trigger_type = TRIGGER_TYPE_WEBHOOK,
	.branch = "main",
	.queued_at_ms = NOW,
	.epoch = 1,
	.spawn_id = "0123456789abcdef0123456789abcdef",
	.sandbox = "none" };

struct fix {
	char *dir;
	struct actor *a;
	struct recorder *rec;
	struct arena *arena;
	/* Of the newest fetch. */
	int done, err;
	int absent, terminal;
	struct record_log log;
	char *state;
	/* Its messages from `from` on, one after the other. */
	int64_t from;
	size_t nmessages;
	struct run_events_params messages[32];
	size_t bytes[32];
	int64_t next[32];
	json_t *trees[32];
};

/* ---- the store ---- */

/* Opens it; then ${n} chunks of ${size} bytes of ${c}. */
struct writing {
	struct job job;
	struct fix *f;
	size_t n, size;
	char c;
	int stop;
};

static int
append(struct desk *d, const struct writing *w, const char *text)
{
	struct record_row rows[32];
	int err = 0;

	for (size_t at = 0; err == 0 && at < w->n; at += ARRAY_LEN(rows)) {
		size_t n = min_size(w->n - at, ARRAY_LEN(rows));

		for (size_t i = 0; i < n; i++)
			rows[i] = (struct record_row) { 0, LOG_STREAM_STDOUT, 0, text, w->size,
				NOW };
		err = record_append(d->record, rows, n);
	}
	return err;
}

static int
writing_work(struct job *j, struct desk *d)
{
	static const struct record_outcome failed = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_SANDBOX_FAILED,
		.error_message = "no" };
	struct writing *w = (struct writing *)j;
	CLEANUP_FREE char *text = malloc(w->size + 1);
	int err = d->record == NULL ? desk_open(d) : 0;

	memset(text, w->c, w->size);
	if (err == 0)
		err = record_claim(d->record, &claim, NOW);
	if (err == 0)
		err = append(d, w, text);
	return err == 0 && w->stop ? record_finish(d->record, &failed, NOW) : err;
}

static void
writing_done(struct job *j, int err)
{
	struct writing *w = (struct writing *)j;

	w->f->err = err;
	w->f->done = 1;
}

static void
wait_for_it(struct fix *f)
{
	struct mono_time limit = mono_add_ms(clock_mono(), PATIENCE_MS);

	while (!f->done) {
		assert_true(mono_diff_us(clock_mono(), limit) > 0);
		actor_step(f->a);
		(void)poll(NULL, 0, 1);
	}
}

static void
store(struct fix *f, size_t n, size_t size, char c, int stop)
{
	struct writing w = {
		.job = { .kind = JOB_STATE, .work = writing_work, .done = writing_done },
		.f = f,
		.n = n,
		.size = size,
		.c = c,
		.stop = stop
	};

	f->done = 0;
	recorder_post(f->rec, &w.job);
	wait_for_it(f);
	assert_int_equal(f->err, 0);
}

/* ---- fetching ---- */

static void
forget(struct fix *f)
{
	for (size_t i = 0; i < f->nmessages; i++)
		json_decref(f->trees[i]);
	f->nmessages = 0;
	free(f->state);
	f->state = NULL;
	arena_reset(f->arena);
}

/* As the sender ends a message, and the other side reads it. */
static void
read_message(struct fix *f, struct fetch_batch *b)
{
	size_t i = f->nmessages++;
	struct codec codec;

	assert_true(i < ARRAY_LEN(f->messages));
	assert_int_equal(buf_add_str(&b->text, "7}"), 0);
	assert_int_equal(json_text_parse((const char *)b->text.data, b->text.len, RPC_DEPTH_MAX,
			     &f->trees[i]),
	    0);
	codec_init(&codec, f->arena, NULL);
	assert_int_equal(run_events_params_decode(&codec, f->trees[i], &f->messages[i]), 0);
	assert_int_equal(f->messages[i].subscription, 7);
	f->bytes[i] = b->bytes;
	f->next[i] = b->next;
	assert_true(b->text.len >= b->bytes && b->text.len < b->bytes + 1024);
}

static void
on_fetched(void *arg, struct fetch *job, int err)
{
	struct fix *f = arg;
	struct fetch_batch *b;
	struct buf state = fetch_take_state(job);

	f->err = err;
	f->done = 1;
	f->absent = fetch_result(job)->absent;
	f->terminal = fetch_result(job)->terminal;
	f->log = fetch_result(job)->log;
	f->state = state.len != 0 ? buf_take_cstr(&state) : NULL;
	for (int64_t at = f->from; err == 0 && (b = fetch_find(job, at)) != NULL; at = b->next)
		read_message(f, b);
}

static void
fetch_with(struct fix *f, struct fetch *job)
{
	f->done = 0;
	fetch_post(job, f->rec);
	wait_for_it(f);
}

static void
fetch(struct fix *f, int64_t from, size_t budget, int64_t cut_at)
{
	struct fetch *job = fetch_new(RUN, on_fetched, f);

	forget(f);
	f->from = from;
	fetch_add(job, from, budget);
	fetch_cut_at(job, cut_at);
	fetch_with(f, job);
	assert_int_equal(f->err, 0);
}

/* ---- tests ---- */

static void
without_a_store_the_run_is_queued(void **state)
{
	struct fix *f = *state;
	struct fetch *job = fetch_new(RUN, on_fetched, f);

	fetch_want_state(job);
	fetch_add(job, 1, FETCH_BYTES);
	fetch_with(f, job);
	assert_int_equal(f->err, 0);
	assert_true(f->absent);
	assert_false(f->terminal);
	assert_int_equal(f->log.first_seq, 1);
	assert_int_equal(f->log.next_seq, 1);
	assert_string_equal(f->state,
	    "{\"items\":[{\"type\":\"state\",\"run\":{\"status\":\"queued\",\"currentStep\":null,"
	    "\"startedAt\":null,\"finishedAt\":null,\"exitCode\":null,\"errorMessage\":null,"
	    "\"failureCode\":null},\"steps\":[]}],\"subscription\":");
}

static void
the_state_comes_only_when_it_is_wanted(void **state)
{
	struct fix *f = *state;
	struct fetch *job;

	store(f, 1, 1, 'x', 0);
	fetch(f, 1, FETCH_BYTES, 0);
	assert_null(f->state);
	forget(f);
	job = fetch_new(RUN, on_fetched, f);
	fetch_want_state(job);
	fetch_with(f, job);
	assert_non_null(strstr(f->state, "\"status\":\"starting\""));
	assert_false(f->terminal);
	forget(f);
	store(f, 0, 1, 'x', 1);
	job = fetch_new(RUN, on_fetched, f);
	fetch_want_state(job);
	fetch_with(f, job);
	assert_non_null(strstr(f->state, "\"status\":\"failed\""));
	assert_true(f->terminal);
}

static void
lines_come_from_where_one_stands(void **state)
{
	struct fix *f = *state;
	const struct run_item *item;

	store(f, 5, 10, 'a', 0);
	fetch(f, 3, FETCH_BYTES, 0);
	assert_int_equal(f->nmessages, 1);
	assert_int_equal(f->messages[0].nitems, 3);
	assert_int_equal(f->next[0], 6);
	item = &f->messages[0].items[0];
	assert_int_equal(item->type, RUN_ITEM_TYPE_LOG);
	assert_int_equal(item->event->seq, 3);
	assert_string_equal(item->event->id, RUN ":log:3");
	assert_int_equal(item->event->chunk.n, 10);
	assert_int_equal(item->event->created_at, NOW);
	fetch(f, 6, FETCH_BYTES, 0);
	assert_int_equal(f->nmessages, 0);
	fetch(f, 1000, FETCH_BYTES, 0);
	assert_int_equal(f->nmessages, 0);
}

static void
a_message_has_64_kib_of_items(void **state)
{
	struct fix *f = *state;
	int64_t at = 1;

	store(f, 40, 16384, 'a', 0);
	fetch(f, 1, FETCH_BYTES, 0);
	assert_int_equal(f->nmessages, 14);
	for (size_t i = 0; i < f->nmessages; i++) {
		assert_true(f->bytes[i] <= FETCH_BATCH_BYTES);
		for (size_t k = 0; k < f->messages[i].nitems; k++)
			assert_int_equal(f->messages[i].items[k].event->seq, at++);
		assert_int_equal(f->next[i], at);
	}
	assert_int_equal(at, 41);
}

static void
a_line_that_is_larger_than_that_comes_alone(void **state)
{
	struct fix *f = *state;

	/* A control character is six bytes of JSON. */
	store(f, 2, 16384, '\1', 0);
	fetch(f, 1, FETCH_BYTES, 0);
	assert_int_equal(f->nmessages, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f->messages[i].nitems, 1);
		assert_true(f->bytes[i] > 6 * 16384 && f->bytes[i] < FETCH_ITEM_BYTES);
	}
}

static void
the_budget_is_kept(void **state)
{
	struct fix *f = *state;
	size_t sum = 0;

	store(f, 64, 16384, '"', 0);
	for (size_t budget = FETCH_ITEM_BYTES; budget <= FETCH_BYTES; budget += 100000) {
		fetch(f, 1, budget, 0);
		sum = 0;
		for (size_t i = 0; i < f->nmessages; i++)
			sum += f->bytes[i];
		assert_true(sum <= budget);
		assert_true(sum + (33 << 10) > budget);
	}
	/* One line is always allowed. */
	fetch(f, 1, 1, 0);
	assert_int_equal(f->nmessages, 1);
	assert_int_equal(f->messages[0].nitems, 1);
}

static void
nothing_goes_across_a_cut(void **state)
{
	struct fix *f = *state;

	store(f, 9, 10, 'a', 0);
	fetch(f, 2, FETCH_BYTES, 7);
	assert_int_equal(f->nmessages, 2);
	assert_int_equal(f->next[0], 7);
	assert_int_equal(f->messages[1].items[0].event->seq, 7);
	fetch(f, 7, FETCH_BYTES, 7);
	assert_int_equal(f->nmessages, 1);
	fetch(f, 2, FETCH_BYTES, 2);
	assert_int_equal(f->nmessages, 1);
}

static void
lines_that_are_gone_are_a_gap(void **state)
{
	struct fix *f = *state;
	const struct run_item *gap;

	store(f, 300, 16384, 'a', 0);
	fetch(f, 1, FETCH_BYTES, 0);
	assert_true(f->log.first_seq > 1);
	gap = &f->messages[0].items[0];
	assert_int_equal(gap->type, RUN_ITEM_TYPE_GAP);
	assert_int_equal(gap->from_seq, 1);
	assert_int_equal(gap->to_seq, f->log.first_seq - 1);
	assert_int_equal(f->messages[0].items[1].event->seq, f->log.first_seq);
	fetch(f, f->log.first_seq, FETCH_BYTES, 0);
	assert_int_equal(f->messages[0].items[0].type, RUN_ITEM_TYPE_LOG);
}

static void
points_share_what_there_is(void **state)
{
	struct fix *f = *state;
	struct fetch *job = fetch_new(RUN, on_fetched, f);
	size_t sum = 0;

	store(f, 64, 16384, 'a', 0);
	forget(f);
	for (int64_t from = 1; from <= FETCH_POINTS; from++)
		fetch_add(job, from, FETCH_BYTES);
	f->from = FETCH_POINTS;
	fetch_with(f, job);
	for (size_t i = 0; i < f->nmessages; i++)
		sum += f->bytes[i];
	assert_true(sum > 0 && sum <= FETCH_BYTES / FETCH_POINTS);
	/* There was no place for more. */
	job = fetch_new(RUN, on_fetched, f);
	forget(f);
	for (int64_t from = 1; from <= FETCH_POINTS; from++)
		fetch_add(job, from, FETCH_BYTES);
	fetch_add(job, 50, FETCH_BYTES);
	f->from = 50;
	fetch_with(f, job);
	assert_int_equal(f->nmessages, 0);
}

static void
every_failed_allocation_is_told(void **state)
{
	struct fix *f = *state;
	long n;

	store(f, 20, 16384, '\1', 0);
	for (n = 0;; n++) {
		struct fetch *job;
		int hit;

		forget(f);
		f->from = INT64_MAX; /* Reading them would allocate as well. */
		mem_fault_arm(n);
		job = fetch_new(RUN, on_fetched, f);
		if (job != NULL) {
			fetch_want_state(job);
			fetch_add(job, 1, FETCH_BYTES);
			fetch_with(f, job);
		}
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		if (!hit)
			break;
		if (job != NULL && f->err < 0)
			assert_int_equal(f->err, E_NOMEM);
	}
	assert_true(n > 20);
	assert_int_equal(f->err, 0);
}

/* ---- life ---- */

static int
setup(void **state)
{
	static const struct recorder_ops ops = { .on_trouble = NULL };
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "run/" RUN };
	char *why = NULL;

	f->dir = scratch_new();
	place.runtime_dir = f->dir;
	assert_int_equal(actor_new(&desc, &place, &f->a, &why), 0);
	f->rec = recorder_new(f->a, f->dir, 64 << 20, &ops, f);
	f->arena = arena_new();
	assert_non_null(f->rec);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	forget(f);
	arena_free(f->arena);
	recorder_free(f->rec);
	actor_free(f->a);
	scratch_free(f->dir);
	free(f);
	return 0;
}

int
main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(without_a_store_the_run_is_queued),
		T(the_state_comes_only_when_it_is_wanted),
		T(lines_come_from_where_one_stands),
		T(a_message_has_64_kib_of_items),
		T(a_line_that_is_larger_than_that_comes_alone),
		T(the_budget_is_kept),
		T(nothing_goes_across_a_cut),
		T(lines_that_are_gone_are_a_gap),
		T(points_share_what_there_is),
		T(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
