/* A delivery whose transaction meets a full disk, an I/O error or a kill: its row and its run are
 * both there or neither, and the next try of the same request comes to one run. */
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

#ifndef ANVIL_FAULTS

static void
faults_need_a_build_with_them(void **state)
{
	(void)state;
	skip();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(faults_need_a_build_with_them) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#define TRIES_MAX 400

static struct store *
open_in(const char *dir)
{
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", dir);
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	if (store_open(&ledger_store, path, &s, &why) < 0)
		fail_msg("%s", why);
	return s;
}

/* One committed webhook of project 1; the rig's transaction is over. */
static struct ledger_webhook
begin(struct ledger_rig *rig)
{
	struct ledger_webhook w;

	rig_project(rig, 1);
	w = rig_webhook(rig, 1, "github", 1);
	assert_int_equal(store_commit(rig->s), 0);
	return w;
}

/* The request in a transaction of its own, as a batch of one. */
static int
try(struct ledger_rig *rig, const struct ledger_offer *o, struct ledger_recorded *rec)
{
	struct ledger_at at = rig_at(rig);
	int r = store_begin(rig->s);

	if (r < 0)
		return r;
	r = ledger_record(&at, o, rec);
	if (r == 0)
		r = store_commit(rig->s);
	if (r < 0 && store_in_txn(rig->s))
		store_rollback(rig->s);
	return r;
}

/* With or without the delivery, never half of it. */
static int
is_whole(struct ledger_rig *rig, const struct ledger_offer *o)
{
	const struct ledger_delivery *d = &o->delivery;
	struct ledger_at at = rig_at(rig);
	struct ledger_delivery row;
	struct ledger_run run;
	int r = ledger_delivery_get(&at, d->project_id, d->provider, d->delivery_id, &row);

	assert_true(r == 0 || r == E_NOENT);
	assert_int_equal(ledger_run_get(rig->s, rig->a, d->run_id, &run), r);
	if (r == 0) {
		assert_string_equal(row.run_id, d->run_id);
		assert_string_equal(run.delivery_id, d->delivery_id);
	}
	rig_sound(rig);
	return r == 0;
}

/* What a process that is killed now leaves to the next one. */
static void
whole_after_a_kill(const struct ledger_rig *rig, const struct ledger_offer *o, int n)
{
	CLEANUP_FREE char *to = mem_format("%s/killed-%d", rig->dir, n);
	static const char *const files[] = { "project-0.db", "project-0.db-wal" };
	struct ledger_rig after = *rig;

	assert_int_equal(mkdir(to, 0700), 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP_FREE char *from = mem_format("%s/%s", rig->dir, files[i]);
		CLEANUP_FREE char *copy = mem_format("%s/%s", to, files[i]);

		(void)tiny_copy_file(from, copy);
	}
	after.s = open_in(to);
	(void)is_whole(&after, o);
	(void)store_close(after.s);
}

/* Each write that a first try makes fails in its turn; then the disk is well and ingress tries
 * again, with the same run id. */
static void
every_failed_write_leaves_all_or_nothing(struct ledger_rig *rig, enum store_fault what)
{
	struct ledger_webhook w = begin(rig);
	struct ledger_recorded rec;
	int n, r = 0, failed = 0;

	for (n = 0; n < TRIES_MAX; n++) {
		struct ledger_offer o = rig_push(rig, &w, 1000 + n, 1000 + n);

		store_fault_arm(what, n);
		r = try(rig, &o, &rec);
		if (store_fault_count() == 0) {
			assert_int_equal(r, 0);
			store_fault_arm(STORE_FAULT_NONE, 0);
			break;
		}
		store_fault_arm(STORE_FAULT_NONE, 0);
		failed += r < 0;
		if (r < 0) {
			assert_true(r == E_FULL || r == E_STORAGE);
			whole_after_a_kill(rig, &o, n);
			/* After an I/O error the actor begins anew. */
			(void)store_close(rig->s);
			rig->s = open_in(rig->dir);
		}
		(void)is_whole(rig, &o);
		assert_int_equal(try(rig, &o, &rec), 0);
		assert_int_equal(rec.kind, LEDGER_RECORD_ACCEPTED);
		assert_true(is_whole(rig, &o));
		assert_true(rig_holds(rig,
		    "(SELECT count(*) FROM project_runs WHERE delivery_id = 'delivery-%d') = 1",
		    1000 + n));
		/* Away with it, so that the queue does not fill. */
		rig_cancel(rig, 1000 + n);
	}
	assert_in_range(n, 1, TRIES_MAX - 1);
	assert_true(failed > 0);
	assert_int_equal(store_begin(rig->s), 0);
}

static void
a_full_disk_leaves_a_delivery_with_its_run_or_neither(void **state)
{
	every_failed_write_leaves_all_or_nothing(*state, STORE_FAULT_FULL);
}

static void
an_error_of_the_disk_leaves_a_delivery_with_its_run_or_neither(void **state)
{
	every_failed_write_leaves_all_or_nothing(*state, STORE_FAULT_IO);
}

static void
a_failed_sync_leaves_a_delivery_with_its_run_or_neither(void **state)
{
	every_failed_write_leaves_all_or_nothing(*state, STORE_FAULT_SYNC);
}

/* With the disk full, what needs no room is decided all the same. */
static void
a_duplicate_needs_no_room(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_ping(rig, &w, 1), stale = rig_ping(rig, &w, 2);
	struct ledger_recorded rec;

	stale.version--;
	assert_int_equal(try(rig, &o, &rec), 0);
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(try(rig, &o, &rec), 0);
	assert_int_equal(rec.kind, LEDGER_RECORD_REPLAYED);
	assert_int_equal(try(rig, &stale, &rec), 0);
	assert_int_equal(rec.kind, LEDGER_RECORD_STALE);
	assert_int_equal(store_fault_count(), 0);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_int_equal(store_begin(rig->s), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_disk_leaves_a_delivery_with_its_run_or_neither),
		TEST(an_error_of_the_disk_leaves_a_delivery_with_its_run_or_neither),
		TEST(a_failed_sync_leaves_a_delivery_with_its_run_or_neither),
		TEST(a_duplicate_needs_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
