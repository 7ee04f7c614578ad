/* An actor whose store cannot be used: it lives, says so, and comes back. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "test/support/turn_rig.h"
#include "test/support/unit.h"

#define ROWS 2000

static int
setup(void **state)
{
	log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
	return turn_rig_setup(state);
}

static int
teardown(void **state)
{
	store_fault_arm(STORE_FAULT_NONE, 0);
	return turn_rig_teardown(state);
}

static void
name_of(const struct fix *f, const char *name, char out[96])
{
	(void)snprintf(out, 96, "%s/%s", f->dir, name);
}

/* Another actor beside that of the rig. */
struct other {
	char store[96], lock[96];
	struct actor_place place;
	struct actor_desc desc;
	struct actor *a;
};

static void
other_init(struct other *o, const struct fix *f)
{
	memset(o, 0, sizeof(*o));
	name_of(f, "other.db", o->store);
	name_of(f, "other.db.lock", o->lock);
	o->place = (struct actor_place) { .address = "project/7",
		.runtime_dir = f->dir,
		.lock_path = o->lock,
		.store_path = o->store,
		.stays = 1 };
	o->desc = turn_rig_desc;
	o->desc.store_is_truth = 1;
}

static int
other_open(struct other *o)
{
	CLEANUP_FREE char *why = NULL;

	return actor_new(&o->desc, &o->place, &o->a, &why);
}

static int
fill_turn(void *arg, struct turn *t)
{
	int r = 0;

	for (int64_t *n = arg; r == 0 && *n < ROWS; ++*n)
		r = turn_rig_put_row(t, *n);
	return r;
}

static void
other_fill_and_close(struct other *o)
{
	int64_t n = 0;

	assert_int_equal(other_open(o), 0);
	assert_null(actor_outage(o->a));
	assert_int_equal(actor_turn(o->a, 1, fill_turn, &n), 0);
	assert_int_equal(actor_commit_now(o->a), 0);
	o->a = actor_free(o->a);
}

static int
read_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(t->store, 1);
	int r = stmt_step(st);

	if (r > 0)
		*(int64_t *)arg = stmt_int(st, 0);
	return r < 0 ? r : 0;
}

static void
damage(const char *path, off_t from)
{
	CLEANUP(io_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	uint8_t noise[256];
	struct stat st;

	memset(noise, 0x5a, sizeof(noise));
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = from; at < st.st_size; at += 4096)
		assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
}

/* Runs its loop until it ends by itself. */
static void
other_comes_back(struct other *o)
{
	assert_int_equal(actor_run(o->a), ACTOR_EXIT_RESTART);
	o->a = actor_free(o->a);
	assert_int_equal(other_open(o), 0);
	assert_null(actor_outage(o->a));
	o->a = actor_free(o->a);
}

static void
is_out(struct other *o)
{
	int64_t n = 0;

	assert_int_equal(other_open(o), 0);
	assert_non_null(actor_outage(o->a));
	assert_int_equal(actor_turn(o->a, 0, read_turn, &n), E_STORAGE);
	assert_int_equal(actor_turn(o->a, 1, fill_turn, &n), E_STORAGE);
	assert_int_equal(actor_commit_now(o->a), E_STORAGE);
}

static void
damage_that_is_met_ends_the_process_and_the_next_one_knows(void **state)
{
	struct other o;
	CLEANUP(buf_done) struct buf kept = BUF_INIT;
	char mark[128], *text;
	int64_t n = 0;

	other_init(&o, *state);
	other_fill_and_close(&o);
	assert_int_equal(io_read_file(AT_FDCWD, o.store, 1 << 20, &kept), 0);
	damage(o.store, 8192);

	/* It opens: nobody has read that page yet. */
	assert_int_equal(other_open(&o), 0);
	assert_null(actor_outage(o.a));
	assert_int_equal(actor_turn(o.a, 0, read_turn, &n), E_STORAGE);
	assert_int_equal(actor_run(o.a), ACTOR_EXIT_RESTART);
	o.a = actor_free(o.a);
	(void)snprintf(mark, sizeof(mark), "%s.damaged", o.store);
	assert_int_equal(access(mark, F_OK), 0);

	/* The next one looks first, and waits for other files. */
	is_out(&o);
	assert_non_null(strstr(actor_outage(o.a), o.store));
	text = actor_outage_text(o.a);
	assert_non_null(text);
	assert_non_null(strstr(text, o.store));
	assert_non_null(strstr(text, "anvilctl restore"));
	free(text);
	assert_int_equal(io_write_file(AT_FDCWD, o.store, kept.data, kept.len, 0600), 0);
	other_comes_back(&o);
	assert_int_equal(access(mark, F_OK), -1);
}

static void
a_batch_that_comes_upon_damage_is_given_up_as_a_whole(void **state)
{
	struct other o;
	int64_t n = ROWS - 10, count = 0;

	other_init(&o, *state);
	other_fill_and_close(&o);
	damage(o.store, 8192);
	assert_int_equal(other_open(&o), 0);
	/* One page is read for one row, another for all. */
	(void)actor_turn(o.a, 1, fill_turn, &n);
	assert_int_equal(actor_turn(o.a, 0, read_turn, &count), E_STORAGE);
	assert_int_equal(actor_in_batch(o.a), 0);
	assert_int_equal(actor_run(o.a), ACTOR_EXIT_RESTART);
	o.a = actor_free(o.a);
}

static void
a_store_that_has_been_in_use_and_is_empty_or_gone_is_damaged(void **state)
{
	struct other o;

	other_init(&o, *state);
	other_fill_and_close(&o);
	assert_int_equal(truncate(o.store, 0), 0);
	is_out(&o);
	o.a = actor_free(o.a);
	assert_int_equal(unlink(o.store), 0);
	is_out(&o);
	assert_non_null(strstr(actor_outage(o.a), "gone"));
	o.a = actor_free(o.a);
	/* Whoever has another place for the truth begins anew. */
	o.desc.store_is_truth = 0;
	assert_int_equal(other_open(&o), 0);
	assert_null(actor_outage(o.a));
	o.a = actor_free(o.a);
	/* As does whoever means to. */
	o.desc.store_is_truth = 1;
	assert_int_equal(unlink(o.store) | unlink(o.lock), 0);
	other_fill_and_close(&o);
}

#ifdef ANVIL_FAULTS
static void
a_disk_that_cannot_write_is_waited_for(void **state)
{
	struct other o;

	other_init(&o, *state);
	other_fill_and_close(&o);
	store_fault_arm(STORE_FAULT_IO, 0);
	is_out(&o);
	store_fault_arm(STORE_FAULT_NONE, 0);
	other_comes_back(&o);
}

static void
a_full_disk_is_no_outage(void **state)
{
	struct other o;
	int64_t n = 0;

	other_init(&o, *state);
	other_fill_and_close(&o);
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(other_open(&o), 0);
	assert_null(actor_outage(o.a));
	assert_int_equal(actor_turn(o.a, 0, read_turn, &n), 0);
	assert_int_equal(n, ROWS);
	o.a = actor_free(o.a);
}

static int
put_turn(void *arg, struct turn *t)
{
	(void)arg;
	return turn_rig_put_row(t, ROWS);
}

static void
a_full_disk_is_told_until_there_is_room(void **state)
{
	CLEANUP_FREE char *text = NULL;
	struct other o;
	int64_t n = 0;

	other_init(&o, *state);
	other_fill_and_close(&o);
	assert_int_equal(other_open(&o), 0);
	assert_null(actor_full_text(o.a));
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(actor_turn(o.a, 1, put_turn, NULL), 0);
	assert_int_equal(actor_commit_now(o.a), E_STORAGE);
	assert_null(actor_outage(o.a));
	text = actor_full_text(o.a);
	assert_non_null(strstr(text, o.store));
	assert_non_null(strstr(text, "no space left"));
	assert_int_equal(actor_turn(o.a, 0, read_turn, &n), 0);
	assert_int_equal(n, ROWS);
	store_fault_arm(STORE_FAULT_NONE, 0);
	for (;;) {
		CLEANUP_FREE char *still = actor_full_text(o.a);

		if (still == NULL)
			break;
		assert_true(event_base_loop(actor_loop(o.a), EVLOOP_ONCE) >= 0);
	}
	assert_int_equal(actor_turn(o.a, 1, put_turn, NULL), 0);
	assert_int_equal(actor_commit_now(o.a), 0);
	o.a = actor_free(o.a);
}

/* What its commits would rest on may not be on disk, whatever the kernel says of it. */
static void
who_comes_after_a_failed_commit_rests_on_no_log_of_before(void **state)
{
	struct other o;
	char log[96];
	struct stat st;
	int64_t n = 0;

	other_init(&o, *state);
	name_of(*state, "other.db-wal", log);
	other_fill_and_close(&o);
	assert_int_equal(other_open(&o), 0);
	assert_int_equal(actor_turn(o.a, 1, put_turn, NULL), 0);
	store_fault_arm(STORE_FAULT_SYNC, 0);
	assert_int_equal(actor_commit_now(o.a), E_STORAGE);
	/* Nor can it be written back at its end. */
	o.a = actor_free(o.a);
	assert_int_equal(stat(log, &st), 0);
	assert_true(st.st_size > 0);
	is_out(&o);
	o.a = actor_free(o.a);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(other_open(&o), 0);
	assert_null(actor_outage(o.a));
	/* Nothing is in it but what showed that it can be written. */
	assert_int_equal(stat(log, &st), 0);
	assert_true(st.st_size < 8192);
	assert_int_equal(actor_turn(o.a, 0, read_turn, &n), 0);
	assert_true(n >= ROWS);
	o.a = actor_free(o.a);
}

static int backs;

static void
on_store_back(void *ctx)
{
	(void)ctx;
	backs++;
}

/* The supervisor: others rest on it, and not on its store. */
static void
who_outlives_its_store_opens_it_anew(void **state)
{
	struct other o;
	int64_t n = 0;

	other_init(&o, *state);
	other_fill_and_close(&o);
	o.desc.outlives_store = 1;
	o.desc.on_store_back = on_store_back;
	assert_int_equal(other_open(&o), 0);
	store_fault_arm(STORE_FAULT_SYNC, 0);
	assert_int_equal(actor_turn(o.a, 1, put_turn, NULL), 0);
	assert_int_equal(actor_commit_now(o.a), E_STORAGE);
	assert_non_null(actor_outage(o.a));
	assert_int_equal(actor_turn(o.a, 1, put_turn, NULL), E_STORAGE);
	store_fault_arm(STORE_FAULT_NONE, 0);
	backs = 0;
	while (backs == 0)
		assert_true(event_base_loop(actor_loop(o.a), EVLOOP_ONCE) >= 0);
	assert_null(actor_outage(o.a));
	assert_int_equal(actor_turn(o.a, 0, read_turn, &n), 0);
	assert_true(n >= ROWS);
	o.a = actor_free(o.a);
}
#endif

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(damage_that_is_met_ends_the_process_and_the_next_one_knows),
		TEST(a_batch_that_comes_upon_damage_is_given_up_as_a_whole),
		TEST(a_store_that_has_been_in_use_and_is_empty_or_gone_is_damaged),
#ifdef ANVIL_FAULTS
		TEST(a_disk_that_cannot_write_is_waited_for),
		TEST(a_full_disk_is_no_outage),
		TEST(a_full_disk_is_told_until_there_is_room),
		TEST(who_comes_after_a_failed_commit_rests_on_no_log_of_before),
		TEST(who_outlives_its_store_opens_it_anew),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
