/* A project goes from one ledger to another: whole, once, whatever is repeated. */
#include <string.h>

#include "test/support/move_rig.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

/* ---- whole ---- */

static void
all_that_there_is_arrives_in_parts_of_any_size(void **state)
{
	static const size_t limits[] = { 1 << 20, 3000, 1200, 100 };
	struct move_pair *pair = *state;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		int n = (int)i + 1;
		const char *before;
		struct ledger_move m;

		pair_fill(pair->from, n);
		before = pair_dump(pair->from, n);
		pair_move(pair, n, n, limits[i]);
		assert_true(limits[i] == 1 << 20 ? pair->nparts == 1 : pair->nparts > 1);
		assert_string_equal(pair_dump(pair->to, n), before);
		rig_sound(pair->to);
		/* The old one is a tombstone and nothing else. */
		m = pair_look(pair->from, n);
		assert_int_equal(m.where, LEDGER_MOVED);
		assert_int_equal(m.to, 1);
		assert_int_equal(m.step, LEDGER_STEP_GIVEN);
		assert_true(rig_holds(pair->from,
		    "NOT EXISTS (SELECT 1 FROM project_config) AND NOT EXISTS (SELECT 1"
		    " FROM project_runs) AND NOT EXISTS (SELECT 1 FROM project_run_events)"
		    " AND NOT EXISTS (SELECT 1 FROM project_webhooks) AND NOT EXISTS"
		    " (SELECT 1 FROM project_webhook_deliveries) AND NOT EXISTS"
		    " (SELECT 1 FROM project_webhook_refusals)"));
		assert_true(rig_holds(pair->to, "NOT EXISTS (SELECT 1 FROM import_parts)"));
	}
}

/* Of the longest part of project 1. */
static size_t
export_within(const struct move_pair *pair, size_t limit)
{
	struct ledger_pages pages = { .project_id = rig_prj(pair->from, 1) };
	size_t longest = 0;
	int last = 0;

	while (!last) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		assert_int_equal(
		    ledger_move_part(pair->from->s, &pages, limit, &text, &last), 0);
		longest = text.len > longest ? text.len : longest;
	}
	return longest;
}

static void
no_part_is_too_long_for_the_names_of_tables_without_rows(void **state)
{
	struct move_pair *pair = *state;
	size_t whole;

	rig_project(pair->from, 1);
	pair_freeze(pair, 1, 1);
	whole = export_within(pair, SIZE_MAX);
	for (size_t limit = whole - 20; limit < whole; limit++)
		assert_true(export_within(pair, limit) <= limit);
}

static void
a_project_that_has_arrived_goes_on_as_before(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->to;
	struct ledger_webhook w;
	struct ledger_offer o;
	struct ledger_recorded rec;
	const char *lease;
	struct ledger_held held;

	pair_fill(pair->from, 1);
	assert_true(rig_holds(pair->from, "(SELECT badge_public FROM project_config)"));
	lease = arena_strdup(pair->from->a, rig_row(pair->from, 103).lease_id);
	pair_move(pair, 1, 1, 4096);
	/* The run that is active holds its lease still, and its end promotes the next one. */
	assert_int_equal(
	    ledger_check_lease(rig->s, rig->a, rig_run(rig, 103), lease, &held), 0);
	assert_false(held.lost);
	assert_true(rig_holds(rig, "(SELECT badge_public FROM project_config)"));
	assert_string_equal(rig_settle(rig, 103, LEDGER_FAILED), rig_run(rig, 104));
	/* A delivery that came before the move is known, one that is new is not. */
	w = rig_stored(rig, 1, "github");
	o = rig_push(rig, &w, 101, 199);
	rec = rig_record(rig, &o);
	assert_int_equal(rec.kind, LEDGER_RECORD_REPLAYED);
	assert_string_equal(rec.run_id, rig_run(rig, 105));
	o = rig_ping(rig, &w, 102);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_REPLAYED);
	o = rig_push(rig, &w, 103, 197);
	assert_int_equal(rig_record(rig, &o).kind, LEDGER_RECORD_ACCEPTED);
	assert_int_equal(rig_row(rig, 197).accept_seq, 6);
	rig_sound(rig);
}

static void
a_project_may_come_back_in_place_of_its_tombstone(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *swap;
	const char *before;

	pair_fill(pair->from, 1);
	before = pair_dump(pair->from, 1);
	for (int i = 1; i <= 4; i++) {
		pair_move(pair, 1, i, 3000);
		swap = pair->from;
		pair->from = pair->to;
		pair->to = swap;
	}
	assert_string_equal(pair_dump(pair->from, 1), before);
	assert_int_equal(pair_look(pair->to, 1).where, LEDGER_MOVED);
}

/* Project 1 gets ${n} runs that have failed.  The first is copied by hand: the ledger would take
 * its time.  ${message} is SQL for what number i has failed of. */
static void
fill(struct ledger_rig *rig, int n, const char *message)
{
	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	(void)rig_settle(rig, 1, LEDGER_FAILED);
	assert_int_equal(
	    rig_exec(rig,
		"DROP TRIGGER project_runs_begin;"
		"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" INSERT INTO project_runs SELECT printf('run_%%022d', i), project_id, i, position,"
		" status, public_status, dispatch_status, dispatch_attempts, dispatch_retry_at,"
		" last_error, trigger_type, triggered_by_user_id, provider, delivery_id, branch,"
		" repo_url, config_path, commit_sha, queued_at, claimed_at, started_at, finished_at,"
		" exit_code, failure_code, %s, spawn_id, lease_epoch, lease_id, lease_expires_at,"
		" cancel_requested_at, cancel_by, index_sync, index_rev, index_since, index_attempt,"
		" index_retry_at, done_at FROM project_runs, n WHERE accept_seq = 1;"
		"UPDATE project_state SET next_seq = 20000",
		n, message),
	    0);
}

static void
thousands_of_runs_and_long_texts_arrive(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->from;
	const char *before;

	fill(rig, 10001,
	    "iif(i % 500, 'short', replace(printf('%.*c', 1365, 'x'), 'x', '\"' || char(233)))");
	before = pair_dump(rig, 1);
	pair_move(pair, 1, 1, LEDGER_PART_BYTES);
	assert_true(pair->nparts > 3);
	assert_true(rig_holds(pair->to,
	    "(SELECT count(*) FROM project_runs) = 10001 AND (SELECT count(*) FROM project_runs"
	    " WHERE length(CAST(error_message AS BLOB)) = 4095) = 20"));
	assert_string_equal(pair_dump(pair->to, 1), before);
}

/* Whoever adds a column has to think of projects that move. */
static void
every_column_goes_along(void **state)
{
	static const struct {
		const char *table;
		int ncolumns;
	} tables[] = { { "project_state", 11 }, { "project_config", 14 },
		{ "project_runs", 37 }, { "project_run_events", 5 }, { "project_webhooks", 10 },
		{ "project_webhook_deliveries", 16 }, { "project_webhook_refusals", 10 } };
	struct move_pair *pair = *state;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (!rig_holds(pair->from,
			"(SELECT count(*) FROM pragma_table_info('%s')) = %d", tables[i].table,
			tables[i].ncolumns))
			fail_msg("%s has other columns than move.c reads", tables[i].table);
}

/* ---- between the steps ---- */

static void
what_is_frozen_stays_as_it_is(void **state)
{
	static const char *const changes[] = {
		"UPDATE project_runs SET public_status = 'running' WHERE status = 'active'",
		"UPDATE project_runs SET index_since = 1 WHERE status = 'active'",
		"DELETE FROM project_runs WHERE status = 'passed'",
		"UPDATE project_config SET name = 'other'",
		"UPDATE project_webhooks SET enabled = 0",
		"DELETE FROM project_webhooks",
		"DELETE FROM project_webhook_deliveries",
		"UPDATE project_state SET phase = 'removing'",
		"UPDATE project_state SET move_step = 0",
		"UPDATE project_state SET move_to = 3",
		"UPDATE project_state SET phase = 'moved', move_step = 3",
	};
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->from;
	const struct ledger_at at = rig_at(rig);
	const struct ledger_accept q = { .project_id = rig_prj(rig, 1),
		.run_id = rig_run(rig, 190),
		.user_id = rig_usr(rig, 1) };
	struct ledger_sealed_row to = { .table = "project_config",
		.row_id = rig_prj(rig, 1),
		.column = "repo_token",
		.sealed = { "bmV3", "bg", 9 } };
	enum ledger_accepted kind;
	struct ledger_run run, *runs;
	const char *before, *project;
	int64_t n;
	size_t nruns;
	int done;

	pair_fill(rig, 1);
	pair_freeze(pair, 1, 1);
	before = pair_dump(rig, 1);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		if (store_exec(rig->s, changes[i]) != E_ILLEGAL)
			fail_msg("%s", changes[i]);
	assert_int_equal(ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &run), E_NOENT);
	assert_int_equal(ledger_sync_applied(rig->s, rig->a, rig_run(rig, 102),
			     rig_row(rig, 102).index_rev, rig->now, &done),
	    0);
	assert_false(done);
	assert_int_equal(ledger_sealed_replace(rig->s, rig->a, &to, "c2VhbGVk", &project), 0);
	assert_null(project);
	assert_int_equal(ledger_sync_due(rig->s, rig->a, rig->now, &runs, &nruns), 0);
	assert_int_equal(nruns, 0);
	assert_int_equal(ledger_dispatch_due(rig->s, rig->a, rig->now, 10, &runs, &nruns), 0);
	assert_int_equal(nruns, 0);
	assert_int_equal(ledger_prune(rig->s, INT64_MAX, &n), 0);
	assert_int_equal(ledger_prune_deliveries(rig->s, INT64_MAX, &n), 0);
	assert_int_equal(ledger_clamp_deadlines(rig->s, 0), 0);
	assert_int_equal(
	    ledger_dispatched(rig->s, rig->a, LEDGER_DISPATCH_STARTED, "", 10, &runs, &nruns),
	    0);
	assert_int_equal(nruns, 1); /* its lease is still to be renewed */
	assert_string_equal(pair_dump(rig, 1), before);
	(void)at;
}

static void
what_was_in_flight_may_come_back_until_it_is_frozen(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->from;
	struct ledger_move m;
	int done;

	pair_fill(rig, 1);
	assert_int_equal(
	    ledger_freeze(rig->s, rig_prj(rig, 1), pair_move_id(pair, 1), 1, rig->now), 0);
	m = pair_look(rig, 1);
	assert_int_equal(m.where, LEDGER_FROZEN);
	assert_int_equal(m.step, LEDGER_STEP_FREEZING);
	assert_true(ledger_may_change(&m));
	assert_int_equal(ledger_sync_applied(rig->s, rig->a, rig_run(rig, 102),
			     rig_row(rig, 102).index_rev, rig->now, &done),
	    0);
	assert_true(done);
	/* It cannot be given away before. */
	assert_int_equal(pair_give(pair, 1, 1), E_NOENT);
	assert_int_equal(ledger_freeze_done(rig->s, rig_prj(rig, 1), pair_move_id(pair, 1)), 0);
	m = pair_look(rig, 1);
	assert_false(ledger_may_change(&m));
}

static void
a_copy_serves_nobody_and_is_left_alone(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->to;
	struct ledger_run *runs;
	struct ledger_project *projects;
	const char *before, **ids;
	int64_t n, at;
	size_t nrows;

	pair_fill(pair->from, 1);
	before = pair_dump(pair->from, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, LEDGER_PART_BYTES);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	assert_int_equal(pair_look(rig, 1).where, LEDGER_INCOMING);
	for (int which = LEDGER_DISPATCH_QUEUED; which <= LEDGER_DISPATCH_STARTED; which++) {
		assert_int_equal(ledger_dispatched(rig->s, rig->a, (enum ledger_dispatch)which,
				     "", 10, &runs, &nrows),
		    0);
		assert_int_equal(nrows, 0);
	}
	assert_int_equal(ledger_sync_due(rig->s, rig->a, INT64_MAX, &runs, &nrows), 0);
	assert_int_equal(nrows, 0);
	assert_int_equal(
	    ledger_project_sync_due(rig->s, rig->a, INT64_MAX, 10, &projects, &nrows), 0);
	assert_int_equal(nrows, 0);
	assert_int_equal(ledger_headless(rig->s, rig->a, 10, &ids, &nrows), 0);
	assert_int_equal(nrows, 0);
	assert_int_equal(ledger_next_deadline(rig->s, &at), 0);
	assert_int_equal(at, INT64_MAX);
	assert_int_equal(ledger_prune(rig->s, INT64_MAX, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ledger_prune_deliveries(rig->s, INT64_MAX, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ledger_moving_count(rig->s, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(pair_dump(rig, 1), before);
	assert_int_equal(
	    store_exec(rig->s, "UPDATE project_runs SET index_since = 1"), E_ILLEGAL);
}

/* ---- a piece at a time ---- */

static int
left_of(const struct move_pair *pair, int move, int *ret_left)
{
	return ledger_import_look(
	    pair->to->s, rig_prj(pair->to, 1), pair_move_id(pair, move), ret_left);
}

static int
import_once(const struct move_pair *pair, int move, int *ret_left)
{
	const struct ledger_at at = rig_at(pair->to);

	return ledger_import(
	    &at, rig_prj(pair->to, 1), pair_move_id(pair, move), pair->nparts, ret_left);
}

static void
each_part_becomes_rows_by_itself_and_none_is_served_before_the_last(void **state)
{
	struct move_pair *pair = *state;
	const char *before;
	struct ledger_move m;
	int64_t pieces = 0;
	int left = 1, seen;

	pair_fill(pair->from, 1);
	before = pair_dump(pair->from, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, 600);
	assert_true(pair->nparts > 3);
	pair_send(pair, 1, 1);
	assert_int_equal(left_of(pair, 1, &seen), E_NOENT);
	while (left) {
		assert_int_equal(import_once(pair, 1, &left), 0);
		assert_true(rig_holds(pair->to, "(SELECT count(*) FROM import_parts) = %d",
		    (int)(pair->nparts - ++pieces)));
		assert_int_equal(left_of(pair, 1, &seen), 0);
		assert_int_equal(seen, left);
		assert_int_equal(pair_look(pair->to, 1).where, LEDGER_INCOMING);
		if (left)
			assert_int_equal(pair_activate(pair, 1, 1, &m), E_BUSY);
		rig_sound(pair->to);
	}
	assert_int_equal(pieces, pair->nparts);
	assert_string_equal(pair_dump(pair->to, 1), before);
	assert_int_equal(pair_activate(pair, 1, 1, &m), 0);
	assert_int_equal(m.where, LEDGER_HERE);
}

static void
a_copy_that_is_half_made_may_be_replaced_or_dropped(void **state)
{
	struct move_pair *pair = *state;
	const char *before;
	int left;

	pair_fill(pair->from, 1);
	before = pair_dump(pair->from, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, 600);
	pair_send(pair, 1, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(import_once(pair, 1, &left), 0);
	assert_true(left);
	/* Another move has it, and the first one is over. */
	pair_send(pair, 1, 2);
	assert_int_equal(pair_import(pair, 1, 2), 0);
	assert_int_equal(left_of(pair, 1, &left), E_NOENT);
	assert_int_equal(left_of(pair, 2, &left), 0);
	assert_false(left);
	assert_string_equal(pair_dump(pair->to, 1), before);
	pair_discard(pair, 1, 1);
	assert_string_equal(pair_dump(pair->to, 1), before);
	/* Once it is being dropped it is not whole any more. */
	assert_int_equal(
	    ledger_discard(pair->to->s, rig_prj(pair->to, 1), pair_move_id(pair, 2), &left), 0);
	assert_int_equal(left_of(pair, 2, &left), E_NOENT);
	assert_true(rig_holds(pair->to,
	    "NOT EXISTS (SELECT 1 FROM project_runs) AND NOT EXISTS (SELECT 1 FROM import_parts)"
	    " AND NOT EXISTS (SELECT 1 FROM project_state)"));
}

static void
no_piece_of_a_big_project_is_more_than_its_share(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->from;
	struct ledger_run *runs;
	int left, pieces = 0;
	size_t n;

	fill(rig, 250, "error_message");
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, LEDGER_PART_AIM);
	assert_true(pair->nparts > 1);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	/* What is given away is in no list from then on, and goes in turns of its own. */
	assert_int_equal(pair_give(pair, 1, 1), 0);
	assert_true(rig_holds(rig, "(SELECT count(*) FROM project_runs) = 250"));
	assert_int_equal(ledger_runs_after(rig->s, rig->a, "", 500, &runs, &n), 0);
	assert_int_equal(n, 0);
	do {
		assert_int_equal(
		    ledger_empty_some(rig->s, rig_prj(rig, 1), LEDGER_EMPTY_ROWS, &left), 0);
		pieces++;
	} while (left);
	assert_int_equal(pieces, 3);
	assert_true(rig_holds(rig, "NOT EXISTS (SELECT 1 FROM project_runs)"));
	for (pieces = 0, left = 1; left; pieces++)
		assert_int_equal(ledger_discard(pair->to->s, rig_prj(pair->to, 1),
				     pair_move_id(pair, 1), &left),
		    0);
	assert_int_equal(pieces, 3);
	assert_int_equal(pair_look(pair->to, 1).where, LEDGER_UNKNOWN);
}

/* ---- repeats ---- */

static void
every_step_may_be_repeated(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_move m, *rows;
	const char *before;
	size_t n;

	pair_fill(pair->from, 1);
	before = pair_dump(pair->from, 1);
	pair_freeze(pair, 1, 1);
	assert_int_equal(ledger_freeze(pair->from->s, rig_prj(pair->from, 1),
			     pair_move_id(pair, 2), 1, pair->from->now),
	    E_NOENT);
	assert_int_equal(
	    ledger_freeze_done(pair->from->s, rig_prj(pair->from, 1), pair_move_id(pair, 1)),
	    0);
	/* Half of it, then all of it in parts of another size. */
	pair_export(pair, 1, 600);
	for (int64_t i = 0; i < pair->nparts / 2; i++)
		assert_int_equal(pair_store_part(pair, 1, 1, i + 1, pair->parts[i]), 0);
	pair_export(pair, 1, 1500);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_store_part(pair, 1, 1, 2, pair->parts[1]), 0);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	assert_string_equal(pair_dump(pair->to, 1), before);
	assert_int_equal(ledger_moves(pair->from->s, pair->from->a, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].step, LEDGER_STEP_FROZEN);
	assert_int_equal(pair_give(pair, 1, 1), 0);
	assert_int_equal(pair_give(pair, 1, 1), E_NOENT); /* the rows say where to go on */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pair_activate(pair, 1, 1, &m), 0);
		assert_int_equal(m.where, LEDGER_HERE);
	}
	assert_int_equal(ledger_given(pair->from->s, rig_prj(pair->from, 1),
			     pair_move_id(pair, 1), LEDGER_STEP_ACTIVE),
	    0);
	assert_int_equal(ledger_moves(pair->from->s, pair->from->a, &rows, &n), 0);
	assert_int_equal(n, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ledger_given(pair->from->s, rig_prj(pair->from, 1),
				     pair_move_id(pair, 1), LEDGER_STEP_DONE),
		    0);
	assert_int_equal(ledger_moves(pair->from->s, pair->from->a, &rows, &n), 0);
	assert_int_equal(n, 0);
	/* What comes late finds it served, and does it no harm. */
	assert_int_equal(pair_import(pair, 1, 1), E_EXISTS);
	pair_discard(pair, 1, 1);
	assert_string_equal(pair_dump(pair->to, 1), before);
}

static void
a_move_that_is_given_up_leaves_everything_as_it_was(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_rig *rig = pair->from;
	struct ledger_move m, *rows;
	const char *before;
	size_t n;

	pair_fill(rig, 1);
	before = pair_dump(rig, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, LEDGER_PART_BYTES);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	m = pair_look(rig, 1);
	assert_int_equal(ledger_thaw(rig->s, &m, rig->now), 0);
	assert_int_equal(ledger_thaw(rig->s, &m, rig->now), E_NOENT);
	assert_int_equal(pair_look(rig, 1).where, LEDGER_HERE);
	assert_string_equal(pair_dump(rig, 1), before);
	rig_sound(rig);
	/* It is too late for that move. */
	assert_int_equal(pair_give(pair, 1, 1), E_NOENT);
	assert_int_equal(ledger_discards(rig->s, rig->a, &rows, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].move_id, pair_move_id(pair, 1));
	assert_int_equal(rows[0].to, 1);
	for (int i = 0; i < 2; i++) {
		pair_discard(pair, 1, 1);
		assert_int_equal(pair_look(pair->to, 1).where, LEDGER_UNKNOWN);
		assert_true(rig_holds(pair->to,
		    "NOT EXISTS (SELECT 1 FROM project_runs) AND NOT EXISTS"
		    " (SELECT 1 FROM project_webhook_refusals)"));
		assert_int_equal(ledger_discarded(rig->s, pair_move_id(pair, 1)), 0);
	}
	assert_int_equal(ledger_discards(rig->s, rig->a, &rows, &n), 0);
	assert_int_equal(n, 0);
	pair_move(pair, 1, 2, 4096);
	assert_string_equal(pair_dump(pair->to, 1), before);
}

static void
a_later_import_replaces_a_copy_that_was_left(void **state)
{
	struct move_pair *pair = *state;
	struct ledger_move m;
	const char *before;

	pair_fill(pair->from, 1);
	pair_freeze(pair, 1, 1);
	pair_export(pair, 1, LEDGER_PART_BYTES);
	pair_send(pair, 1, 1);
	assert_int_equal(pair_import(pair, 1, 1), 0);
	m = pair_look(pair->from, 1);
	assert_int_equal(ledger_thaw(pair->from->s, &m, pair->from->now), 0);
	(void)rig_settle(pair->from, 103, LEDGER_PASSED);
	before = pair_dump(pair->from, 1);
	pair_move(pair, 1, 2, 4096);
	assert_string_equal(pair_dump(pair->to, 1), before);
	/* The discard of the first comes after that. */
	pair_discard(pair, 1, 1);
	assert_string_equal(pair_dump(pair->to, 1), before);
}

/* ---- without memory ---- */

static int
starved_export(void *arg)
{
	struct move_pair *pair = arg;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct ledger_pages pages = { .project_id = "prj_0000000000000000000001" };
	int last;

	return ledger_move_part(pair->from->s, &pages, LEDGER_PART_BYTES, &text, &last);
}

static int
starved_import(void *arg)
{
	struct move_pair *pair = arg;
	const struct ledger_part p = { .project_id = "prj_0000000000000000000001",
		.move_id = "0123456789abcdef0123456789abcdef",
		.part = 1,
		.rows = pair->parts[0] };
	const struct ledger_at at = rig_at(pair->to);
	int left, r = ledger_part_add(pair->to->s, &p);

	return r < 0 ? r : ledger_import(&at, p.project_id, p.move_id, 1, &left);
}

static void
each_survives_every_failed_allocation(void **state)
{
	struct move_pair *pair = *state;

	pair_fill(pair->from, 1);
	assert_string_equal(rig_prj(pair->from, 1), "prj_0000000000000000000001");
	pair_freeze(pair, 1, 1);
	assert_true(starve(starved_export, pair) > 0);
	pair_export(pair, 1, LEDGER_PART_BYTES);
	assert_true(starve(starved_import, pair) > 0);
	assert_int_equal(pair_look(pair->to, 1).where, LEDGER_INCOMING);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(all_that_there_is_arrives_in_parts_of_any_size),
		TEST(no_part_is_too_long_for_the_names_of_tables_without_rows),
		TEST(a_project_that_has_arrived_goes_on_as_before),
		TEST(a_project_may_come_back_in_place_of_its_tombstone),
		TEST(thousands_of_runs_and_long_texts_arrive),
		TEST(every_column_goes_along),
		TEST(what_is_frozen_stays_as_it_is),
		TEST(what_was_in_flight_may_come_back_until_it_is_frozen),
		TEST(a_copy_serves_nobody_and_is_left_alone),
		TEST(each_part_becomes_rows_by_itself_and_none_is_served_before_the_last),
		TEST(a_copy_that_is_half_made_may_be_replaced_or_dropped),
		TEST(no_piece_of_a_big_project_is_more_than_its_share),
		TEST(every_step_may_be_repeated),
		TEST(a_move_that_is_given_up_leaves_everything_as_it_was),
		TEST(a_later_import_replaces_a_copy_that_was_left),
		TEST(each_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
