/* A store that an earlier release has written is brought up to date in place, with all that is
 * in it; and an earlier release leaves a store of this one alone. */
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

/* Made before there were webhooks, with a project that has a head and one that waits. */
static struct ledger_rig
old_store(const char *dir, size_t nmigrations)
{
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", dir);
	CLEANUP_FREE char *why = NULL;
	static struct store_desc desc;
	static size_t count;
	struct ledger_rig rig = {
		.dir = (char *)(uintptr_t)dir, .a = arena_new(), .now = RIG_START_MS
	};

	count = nmigrations;
	desc = ledger_store;
	desc.nmigrations = &count;
	if (store_open(&desc, path, &rig.s, &why) < 0)
		fail_msg("%s", why);
	assert_int_equal(store_begin(rig.s), 0);
	rig_lend_columns(&rig);
	rig_project(&rig, 1);
	rig_accept(&rig, 1, 1);
	(void)rig_claim(&rig, 1);
	rig_accept(&rig, 1, 2);
	rig_take_columns(&rig);
	assert_int_equal(store_commit(rig.s), 0);
	assert_int_equal(store_version(rig.s), nmigrations);
	return rig;
}

static int
setup(void **state)
{
	*state = scratch_new();
	return 0;
}

static int
teardown(void **state)
{
	scratch_free(*state);
	return 0;
}

static void
an_old_store_gets_its_tables_and_keeps_its_rows(void **state)
{
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", (const char *)*state);
	CLEANUP_FREE char *why = NULL;
	struct ledger_rig rig = old_store(*state, 1);
	struct ledger_change change = { .set_badge_public = 1, .badge_public = 1 };
	struct ledger_run head = rig_row(&rig, 1), next = rig_row(&rig, 2);
	struct ledger_project p;
	struct ledger_webhook w;
	struct ledger_offer o;
	int stale;

	rig.s = store_close(rig.s);
	assert_int_equal(store_open(&ledger_store, path, &rig.s, &why), 0);
	assert_int_equal(store_version(rig.s), *ledger_store.nmigrations);
	rig_unchanged(&rig, &head);
	rig_unchanged(&rig, &next);
	rig_sound(&rig);
	/* And is whole: a webhook and a delivery find their place behind what waits. */
	assert_int_equal(store_begin(rig.s), 0);
	w = rig_webhook(&rig, 1, "github", 1);
	o = rig_push(&rig, &w, 1, 3);
	assert_int_equal(rig_record(&rig, &o).run.position, 3);
	/* A badge is shown to nobody who did not ask for it. */
	assert_int_equal(ledger_project_get(rig.s, rig.a, rig_prj(&rig, 1), &p), 0);
	assert_int_equal(p.badge_public, 0);
	assert_int_equal(
	    ledger_project_update(rig.s, rig.a, p.project_id, &change, rig.now, &p, &stale), 0);
	assert_int_equal(p.badge_public, 1);
	rig_sound(&rig);
	assert_int_equal(store_commit(rig.s), 0);
	rig.s = store_close(rig.s);
	assert_int_equal(store_check(&ledger_store, path, &why), 0);
	/* Opened again, nothing is applied twice. */
	assert_int_equal(store_open(&ledger_store, path, &rig.s, &why), 0);
	assert_true(rig_has_deliveries(&rig, 1));
	rig.s = store_close(rig.s);
	(void)arena_free(rig.a);
}

static void
an_earlier_release_leaves_a_newer_store_alone(void **state)
{
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", (const char *)*state);
	CLEANUP_FREE char *why = NULL;
	struct ledger_rig rig = old_store(*state, *ledger_store.nmigrations);
	struct store_desc desc = ledger_store;
	const size_t before = *ledger_store.nmigrations - 1;

	rig.s = store_close(rig.s);
	desc.nmigrations = &before;
	assert_int_equal(store_open(&desc, path, &rig.s, &why), E_NEWER);
	assert_non_null(strstr(why, "newer anvil"));
	(void)arena_free(rig.a);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_old_store_gets_its_tables_and_keeps_its_rows),
		TEST(an_earlier_release_leaves_a_newer_store_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
