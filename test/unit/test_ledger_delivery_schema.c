/* What was decided about a delivery stays, whoever writes the code. */
#include <string.h>

#include "test/support/unit.h"
#include "test/support/webhook_rig.h"

/* A project with a webhook of github. */
static struct ledger_webhook
begin(struct ledger_rig *rig)
{
	rig_project(rig, 1);
	return rig_webhook(rig, 1, "github", 1);
}

/* Fills the queue of the project with manual runs 101, 102... */
static void
fill(struct ledger_rig *rig, int project)
{
	for (int n = 101; n < 101 + LEDGER_QUEUE_MAX; n++)
		rig_accept(rig, project, n);
}

static int
set(const struct ledger_rig *rig, const char *columns)
{
	return rig_exec(rig,
	    "UPDATE project_webhook_deliveries SET %s WHERE delivery_id = 'delivery-1'",
	    columns);
}

static void
a_decided_row_never_changes(void **state)
{
	static const char *const changes[] = { "project_id = 'prj_0000000000000000000002'",
		"provider = 'gitlab'", "delivery_id = 'x'", "event_kind = 'other'",
		"event_name = 'x'", "outcome = 'queue_full', run_id = NULL",
		"outcome = 'ignored_event', run_id = NULL", "reason = 'x'",
		"repository_url = 'https://x'", "ref = NULL", "branch = 'x'",
		"commit_sha = '0123456'", "before_sha = NULL", "body_sha256 = zeroblob(32)",
		"body_bytes = 1", "run_id = 'run_0000000000000000000002'",
		"received_at = received_at + 1", "received_at = received_at" };
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);

	rig_project(rig, 2);
	(void)rig_record(rig, &o);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		if (set(rig, changes[i]) != E_ILLEGAL)
			fail_msg("%s: %s", changes[i], store_error(rig->s));
	/* The same for one that started no run. */
	assert_int_equal(rig_exec(rig, "DELETE FROM project_webhook_deliveries"), 0);
	o = rig_ping(rig, &w, 1);
	(void)rig_record(rig, &o);
	assert_int_equal(set(rig,
			     "outcome = 'accepted', event_kind = 'push', branch = 'main',"
			     " commit_sha = '0123456', run_id = 'run_0000000000000000000001'"),
	    E_ILLEGAL);
	assert_int_equal(set(rig, "reason = 'x'"), E_ILLEGAL);
	assert_int_equal(set(rig, "received_at = 1"), E_ILLEGAL);
}

static void
a_row_of_a_full_queue_changes_as_it_is_tried_again_alone(void **state)
{
	static const char *const illegal[] = { "project_id = 'prj_0000000000000000000002'",
		"provider = 'gitlab'", "delivery_id = 'x'", "outcome = 'ignored_event'",
		"outcome = 'ignored_ping'", "outcome = 'ignored_branch'", "reason = 'x'",
		"body_sha256 = zeroblob(32)", "body_bytes = 1" };
	static const char *const checked[] = { "outcome = 'accepted'",
		"run_id = 'run_0000000000000000000002'", "branch = NULL", "commit_sha = NULL",
		"event_kind = 'ping'", "event_name = ''", "repository_url = ''", "ref = ''",
		"branch = printf('%.*c', 256, 'x')", "commit_sha = '012345'",
		"commit_sha = 'ABCDEF0'", "before_sha = 'x'", "received_at = NULL",
		"outcome = 'accepted', reason = '', run_id = 'run_0000000000000000000002'",
		"outcome = 'accepted', run_id = 'run_2'" };
	static const char *const legal[] = {
		"event_name = 'x', repository_url = 'https://x', ref = NULL, branch = 'y',"
		" commit_sha = '0123456', before_sha = NULL, received_at = received_at + 1",
		"outcome = 'accepted', reason = 'run created',"
		" run_id = 'run_0000000000000000000002', received_at = received_at + 1"
	};
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_offer o = rig_push(rig, &w, 1, 1);

	rig_project(rig, 2);
	fill(rig, 1);
	(void)rig_record(rig, &o);
	for (size_t i = 0; i < ARRAY_LEN(illegal); i++)
		if (set(rig, illegal[i]) != E_ILLEGAL)
			fail_msg("%s: %s", illegal[i], store_error(rig->s));
	for (size_t i = 0; i < ARRAY_LEN(checked); i++)
		if (set(rig, checked[i]) != E_CONSTRAINT)
			fail_msg("%s: %s", checked[i], store_error(rig->s));
	for (size_t i = 0; i < ARRAY_LEN(legal); i++)
		if (set(rig, legal[i]) != 0)
			fail_msg("%s: %s", legal[i], store_error(rig->s));
	assert_int_equal(set(rig, "outcome = 'queue_full', run_id = NULL"), E_ILLEGAL);
}

static void
words_and_shapes_of_a_row_are_checked(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_webhook w = begin(rig);
	struct ledger_at at = rig_at(rig);
	struct ledger_recorded rec;
	struct ledger_offer o;
	char long_id[258];

#define REFUSED(member, value)                                                \
	do {                                                                  \
		o = rig_ping(rig, &w, 1);                                     \
		o.delivery.member = value;                                    \
		assert_int_equal(ledger_record(&at, &o, &rec), E_CONSTRAINT); \
	} while (0)
	memset(long_id, 'x', 257);
	long_id[257] = '\0';
	REFUSED(delivery_id, long_id);
	REFUSED(delivery_id, "");
	REFUSED(delivery_id, "a\tb");
	REFUSED(delivery_id, "caf\xc3\xa9");
	REFUSED(event_kind, "pull");
	REFUSED(event_name, "");
	REFUSED(outcome, "ignored");
	REFUSED(reason, "");
	REFUSED(reason, arena_format(rig->a, "%0301d", 1));
	REFUSED(repository_url, "");
	REFUSED(before_sha, "0000");
	REFUSED(body_bytes, -1);
#undef REFUSED
	long_id[256] = '\0';
	o = rig_ping(rig, &w, 1);
	o.delivery.delivery_id = long_id;
	assert_int_equal(ledger_record(&at, &o, &rec), 0);
	o.delivery.delivery_id = " !~";
	assert_int_equal(ledger_record(&at, &o, &rec), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_decided_row_never_changes),
		TEST(a_row_of_a_full_queue_changes_as_it_is_tried_again_alone),
		TEST(words_and_shapes_of_a_row_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
