/* All that a shard has, page by page; and rows that are broken, which keep no other waiting. */

#include <string.h>

#include "gen/project.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "test/support/ledger_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define LIMIT_MAX   500
#define FRAME_BYTES (16 << 20)

static struct ledger_export
page(const struct ledger_rig *rig, const char *cursor, size_t limit)
{
	struct ledger_export e;

	assert_int_equal(ledger_export(rig->s, rig->a, cursor, limit, &e), 0);
	assert_true(e.nprojects + e.nruns <= limit);
	return e;
}

static void
an_empty_shard_has_an_empty_page(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_export e = page(rig, "", 100);

	assert_int_equal(e.nprojects + e.nruns, 0);
	assert_null(e.next);
}

static void
projects_come_first_then_runs_each_once_whatever_the_limit(void **state)
{
	struct ledger_rig *rig = *state;

	for (int p = 1; p <= 7; p++) {
		rig_project(rig, p);
		rig_accept(rig, p, 2 * p);
		rig_accept(rig, p, 2 * p + 1);
	}
	for (size_t limit = 1; limit <= 30; limit++) {
		const char *cursor = "";
		int np = 0, nr = 0;

		do {
			struct ledger_export e = page(rig, cursor, limit);

			for (size_t i = 0; i < e.nprojects; i++)
				assert_string_equal(
				    e.projects[i].project_id, rig_prj(rig, ++np));
			assert_true(e.nruns == 0 || np == 7);
			for (size_t i = 0; i < e.nruns; i++)
				assert_string_equal(e.runs[i].run_id, rig_run(rig, ++nr + 1));
			cursor = e.next;
		} while (cursor != NULL);
		assert_int_equal(np, 7);
		assert_int_equal(nr, 14);
	}
}

static void
a_cursor_holds_when_rows_come_and_go(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_export e;

	for (int p = 1; p <= 5; p++)
		rig_project(rig, p);
	e = page(rig, "", 2);
	assert_string_equal(e.next, rig_prj(rig, 2));
	/* The project that it names is not there any more. */
	assert_int_equal(ledger_project_delete(rig->s, rig_prj(rig, 2)), 0);
	e = page(rig, e.next, 2);
	assert_string_equal(e.projects[0].project_id, rig_prj(rig, 3));
	rig_accept(rig, 3, 1);
	e = page(rig, e.next, 2);
	assert_int_equal(e.nprojects, 1);
	assert_int_equal(e.nruns, 1);
	e = page(rig, e.next, 2);
	assert_int_equal(e.nprojects + e.nruns, 0);
	assert_null(e.next);
}

static void
what_is_no_cursor_is_refused(void **state)
{
	static const char *const bad[] = { "x", "prj_1", "run_", "usr_0000000000000000000001",
		"prj_0000000000000000000001x" };
	struct ledger_rig *rig = *state;
	struct ledger_export e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ledger_export(rig->s, rig->a, bad[i], 10, &e), E_INVAL);
}

static void
projects_on_their_way_here_are_told_and_those_given_away_are_counted(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_export e;
	int64_t moves;

	rig_project(rig, 2);
	rig_project(rig, 3);
	moves = page(rig, "", 10).moves;
	assert_int_equal(
	    rig_exec(rig,
		"INSERT INTO project_state (project_id, phase, move_id, phase_at, next_seq,"
		" index_sync, index_rev, index_attempt)"
		" VALUES ('%s', 'incoming', '%s', 1, 1, 'current', 1, 0)",
		rig_prj(rig, 1), rig_hex(rig, 1)),
	    0);
	assert_int_equal(
	    rig_exec(rig,
		"INSERT INTO project_config SELECT '%s', owner_user_id, owner_slug, 'arriving',"
		" name, repo_url, default_branch, config_path, NULL, NULL, NULL, created_at,"
		" updated_at, badge_public FROM project_config WHERE project_id = '%s'",
		rig_prj(rig, 1), rig_prj(rig, 3)),
	    0);
	e = page(rig, "", 10);
	assert_int_equal(e.nprojects, 3);
	assert_string_equal(e.projects[0].phase, "incoming");
	assert_int_equal(e.moves, moves);
	for (int step = 0; step < 3; step++)
		assert_int_equal(
		    rig_exec(rig,
			"UPDATE project_state SET phase = '%s', move_id = '%s', move_to = 1,"
			" move_step = %d WHERE project_id = '%s'",
			step < 2 ? "frozen" : "moved", rig_hex(rig, 2), step < 2 ? step : 4,
			rig_prj(rig, 2)),
		    0);
	assert_int_equal(rig_exec(rig, "DELETE FROM project_config WHERE project_id = '%s'",
			     rig_prj(rig, 2)),
	    0);
	e = page(rig, "", 10);
	assert_int_equal(e.nprojects, 2);
	assert_int_not_equal(e.moves, moves);
}

/* Bytes of one row of a run with the longest texts, each character of which is escaped. */
static size_t
longest_row(void)
{
	char branch[245], message[4097];
	struct run_row row = { .run_id = "run_0000000000000000000001",
		.project_id = "prj_0000000000000000000001",
		.rev = INT64_MAX,
		.triggered_by_user_id = "usr_0000000000000000000001",
		.branch = branch,
		.commit_sha =
		    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		.status = RUN_STATUS_FAILED,
		.queued_at = INT64_MAX,
		.has_started_at = 1,
		.started_at = INT64_MAX,
		.has_finished_at = 1,
		.finished_at = INT64_MAX,
		.has_exit_code = 1,
		.exit_code = INT64_MIN,
		.has_failure_code = 1,
		.failure_code = FAILURE_CODE_CANCEL_CLEANUP_FAILED,
		.error_message = message };
	struct project_export_index_result res = { .kind = PROJECT_EXPORT_INDEX_PAGE };
	CLEANUP(buf_done) struct buf one = BUF_INIT;

	memset(branch, 1, sizeof(branch) - 1);
	memset(message, 1, sizeof(message) - 1);
	branch[sizeof(branch) - 1] = message[sizeof(message) - 1] = '\0';
	res.u.page.runs = &row;
	res.u.page.nruns = 1;
	assert_int_equal(codec_encode(&one, &project_export_index_result_codec, &res), 0);
	return one.len;
}

static void
a_full_page_of_the_longest_rows_fits_into_a_frame(void **state)
{
	(void)state;
	assert_true(longest_row() * LIMIT_MAX < FRAME_BYTES);
}

/* ---- broken rows ---- */

/* A word that no release knows, past the schema. */
static void
break_row(const struct ledger_rig *rig, int n)
{
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = 1"), 0);
	assert_int_equal(rig_exec(rig,
			     "UPDATE project_runs SET public_status = 'lurking'"
			     " WHERE run_id = '%s'",
			     rig_run(rig, n)),
	    0);
	assert_int_equal(rig_exec(rig, "PRAGMA ignore_check_constraints = 0"), 0);
}

static void
a_broken_row_is_marked_and_the_others_are_read(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs, one;
	struct ledger_export e;
	size_t n;

	for (int i = 1; i <= 3; i++) {
		rig_project(rig, i);
		rig_accept(rig, i, i);
	}
	break_row(rig, 2);
	e = page(rig, "", 10);
	assert_int_equal(e.nruns, 3);
	assert_true(e.runs[1].broken);
	assert_string_equal(e.runs[1].run_id, rig_run(rig, 2));
	assert_string_equal(e.runs[1].project_id, rig_prj(rig, 2));
	assert_false(e.runs[2].broken);
	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, &runs, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(ledger_dispatch_due(rig->s, rig->a, rig->now, 10, &runs, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(ledger_queue_list(rig->s, rig->a, rig_prj(rig, 2), &runs, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, 2), &one), E_CORRUPT);
	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, 3), &one), 0);
}

static void
a_hundred_broken_rows_do_not_stand_before_the_others(void **state)
{
	struct ledger_rig *rig = *state;
	struct ledger_run *runs;
	size_t n;

	for (int i = 1; i <= LEDGER_SYNC_ROWS + 1; i++) {
		rig_project(rig, i);
		rig_accept(rig, i, i);
		if (i <= LEDGER_SYNC_ROWS)
			break_row(rig, i);
		rig->now++;
	}
	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, &runs, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(runs[i].broken);
		assert_int_equal(ledger_sync_defer(rig->s, runs[i].run_id, rig->now), 0);
	}
	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, &runs, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(runs[0].run_id, rig_run(rig, LEDGER_SYNC_ROWS + 1));
	rig->now += 300000;
	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, &runs, &n), 0);
	assert_int_equal(n, LEDGER_SYNC_ROWS);
}

static int
hungry(void *arg)
{
	const struct ledger_rig *rig = arg;
	struct arena *a = arena_new();
	struct ledger_export e;
	int r = a == NULL ? E_NOMEM : ledger_export(rig->s, a, "", 100, &e);

	(void)arena_free(a);
	return r;
}

static void
a_page_survives_every_failed_allocation(void **state)
{
	struct ledger_rig *rig = *state;

	for (int i = 1; i <= 40; i++) {
		rig_project(rig, i);
		rig_accept(rig, i, i);
	}
	break_row(rig, 20);
	assert_true(starve(hungry, rig) >= 5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_shard_has_an_empty_page),
		TEST(projects_come_first_then_runs_each_once_whatever_the_limit),
		TEST(a_cursor_holds_when_rows_come_and_go),
		TEST(what_is_no_cursor_is_refused),
		TEST(projects_on_their_way_here_are_told_and_those_given_away_are_counted),
		TEST(a_full_page_of_the_longest_rows_fits_into_a_frame),
		TEST(a_broken_row_is_marked_and_the_others_are_read),
		TEST(a_hundred_broken_rows_do_not_stand_before_the_others),
		TEST(a_page_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
