#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/inside.h"
#include "test/support/record_claim.h"

#define NOW RECORD_NOW
#define CAP ((int64_t)1 << 28)

static char dir[64];
static struct record *rec;
static struct arena *arena;

static int
make_record(void **state)
{
	char *why = NULL;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/anvil-record-XXXXXX");
	arena = arena_new();
	if (mkdtemp(dir) == NULL || arena == NULL)
		return -1;
	return record_open(dir, CAP, &rec, &why);
}

static int
remove_record(void **state)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "log.zst",
		"reserve" };
	char path[96];

	(void)state;
	rec = record_free(rec);
	arena = arena_free(arena);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	return rmdir(dir);
}

static void
every_statement_prepares_and_takes_its_parameters(void **state)
{
	(void)state;
	for (size_t i = 0; i < record_store_desc.nstmts; i++) {
		const struct store_stmt_row *row = &record_store_desc.stmts[i];
		char types[32] = "";

		memset(types, 'n', (size_t)row->nparams);
		if (stmt_bind(store_stmt(rec->store, (unsigned)i), types) != 0)
			fail_msg("%s: %s", row->name, store_error(rec->store));
		types[row->nparams] = 'n';
		assert_int_equal(
		    stmt_bind(store_stmt(rec->store, (unsigned)i), types), E_RANGE);
		stmt_reset(store_stmt(rec->store, (unsigned)i));
	}
}

static void
a_claim_is_read_back_whole_after_a_restart(void **state)
{
	struct record_run r;
	char *why = NULL;

	(void)state;
	assert_int_equal(record_run_get(rec, arena, &r), E_NOENT);
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	rec = record_free(rec);
	assert_true(record_exists(dir));
	assert_int_equal(record_open(dir, CAP, &rec, &why), 0);
	assert_int_equal(record_run_get(rec, arena, &r), 0);
	assert_string_equal(r.run_id, record_claim_of_a_push.run_id);
	assert_string_equal(r.project_id, record_claim_of_a_push.project_id);
	assert_string_equal(r.owner_slug, "ada");
	assert_string_equal(r.project_slug, "engine");
	assert_int_equal(r.trigger_type, TRIGGER_TYPE_WEBHOOK);
	assert_null(r.triggered_by_user_id);
	assert_string_equal(r.branch, "main");
	assert_string_equal(r.commit_sha, record_claim_of_a_push.commit_sha);
	assert_int_equal(r.queued_at_ms, NOW - 1000);
	assert_int_equal(r.status, RUN_STATUS_STARTING);
	assert_int_equal(r.started_at_ms.v, NOW);
	assert_int_equal(r.epoch, 3);
	assert_string_equal(r.spawn_id, record_claim_of_a_push.spawn_id);
	assert_string_equal(r.sandbox, "none");
	assert_false(r.current_step.set || r.finished_at_ms.set || r.exit_code.set ||
	    r.cancel_requested_at_ms.set || r.timeout_seconds.set || r.has_failure_code);
	assert_null(r.error_message);
}

static void
a_directory_without_a_store_has_no_record(void **state)
{
	char none[96];

	(void)state;
	(void)snprintf(none, sizeof(none), "%s/none", dir);
	assert_false(record_exists(none));
}

static void
values_outside_the_contract_are_refused(void **state)
{
	static const char *const updates[] = {
		"UPDATE run_meta SET status = 'queued'",
		"UPDATE run_meta SET status = 'failed', finished_at = 1, exit_code = 1,"
		" failure_code = 'bad_luck', error_message = ''",
		"UPDATE run_meta SET status = 'failed', finished_at = 1, exit_code = 1,"
		" failure_code = 'dispatch_failed', error_message = ''",
		"UPDATE run_meta SET status = 'failed', finished_at = 1, exit_code = 1,"
		" failure_code = 'runtime_cancelled', error_message = ''",
		"UPDATE run_meta SET status = 'failed', finished_at = 1, exit_code = 1,"
		" failure_code = 'run_timeout'",
		"UPDATE run_meta SET status = 'failed', exit_code = 1,"
		" failure_code = 'run_timeout', error_message = ''",
		"UPDATE run_meta SET status = 'failed', finished_at = 1, exit_code = 1,"
		" failure_code = 'run_timeout', error_message = printf('%4097s', 'x')",
		"UPDATE run_meta SET finished_at = 1",
		"UPDATE run_meta SET exit_code = 0",
		"UPDATE run_meta SET current_step = 0",
		"UPDATE run_meta SET sandbox = 'docker'",
		"UPDATE run_meta SET timeout_seconds = 0",
		"UPDATE run_meta SET status = 'cancel_requested'",
		"INSERT INTO run_steps (position, name, command, status)"
		" VALUES (21, 'a', 'b', 'queued')",
		"INSERT INTO run_logs VALUES (1, 'stdin', NULL, x'41', 1)",
		"INSERT INTO run_logs VALUES (1, 'stdout', NULL, x'', 1)",
		"INSERT INTO run_logs VALUES (1, 'stdout', NULL, zeroblob(16385), 1)",
		"INSERT INTO log_state VALUES (2, 1, 1, 0, 0, 0, 0, 0, 0)",
		"UPDATE log_state SET total_bytes = 1",
		"INSERT INTO log_frames VALUES (0, 1048577, 0, 1)",
	};

	(void)state;
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
		int r = store_exec(rec->store, updates[i]);

		/* A trigger may be quicker than the CHECK. */
		if (r != E_CONSTRAINT && r != E_ILLEGAL)
			fail_msg("%s: %s", updates[i], err_text(r));
	}
}

static void
identity_commit_and_claim_never_change(void **state)
{
	static const char *const updates[] = {
		"UPDATE run_meta SET run_id = 'run_0000000000000000000000'",
		"UPDATE run_meta SET project_id = 'prj_0000000000000000000000'",
		"UPDATE run_meta SET branch = 'other'",
		"UPDATE run_meta SET queued_at = 1",
		"UPDATE run_meta SET commit_sha = NULL",
		"UPDATE run_meta SET commit_sha = 'ffffffffffffffffffffffffffffffffffffffff'",
		"UPDATE run_meta SET epoch = 2",
		"UPDATE run_meta SET started_at = 1",
		"UPDATE run_meta SET spawn_id = '00000000000000000000000000000000'",
		"DELETE FROM run_meta",
		"INSERT INTO run_logs VALUES (2, 'stdout', NULL, x'41', 1)",
		"INSERT INTO run_steps (position, name, command, status)"
		" VALUES (2, 'a', 'b', 'queued')",
		"INSERT INTO run_steps (position, name, command, status, started_at)"
		" VALUES (1, 'a', 'b', 'running', 1)",
	};

	(void)state;
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	for (size_t i = 0; i < ARRAY_LEN(updates); i++)
		if (store_exec(rec->store, updates[i]) != E_ILLEGAL)
			fail_msg("%s went through", updates[i]);
}

static void
the_log_only_grows_and_loses_its_oldest_first(void **state)
{
	static const char *const updates[] = {
		"UPDATE run_logs SET chunk = x'42'",
		"DELETE FROM run_logs WHERE seq = 2",
		"UPDATE log_state SET next_seq = 2",
		"UPDATE log_state SET archived_bytes = -1",
	};

	(void)state;
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	assert_int_equal(record_note(rec, 0, "one", NOW), 0);
	assert_int_equal(record_note(rec, 0, "two", NOW), 0);
	for (size_t i = 0; i < ARRAY_LEN(updates); i++)
		if (store_exec(rec->store, updates[i]) != E_ILLEGAL)
			fail_msg("%s went through", updates[i]);
}

static void
nothing_of_an_ended_run_changes(void **state)
{
	static const char *const updates[] = {
		"UPDATE run_meta SET finished_at = 1",
		"UPDATE run_meta SET error_message = 'x'",
		"UPDATE run_steps SET exit_code = 4",
		"DELETE FROM run_steps",
		"INSERT INTO run_logs VALUES (2, 'system', NULL, x'41', 1)",
	};
	const struct record_plan_step one_step = { "a", "b" };
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_RUN_TIMEOUT,
		.error_message = "late" };

	(void)state;
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	assert_int_equal(record_plan(rec, &one_step, 1, 60), 0);
	assert_int_equal(record_begin(rec, NOW), 0);
	assert_int_equal(record_note(rec, 1, "line", NOW), 0);
	assert_int_equal(record_finish(rec, &o, NOW + 1), 0);
	for (size_t i = 0; i < ARRAY_LEN(updates); i++)
		if (store_exec(rec->store, updates[i]) != E_ILLEGAL)
			fail_msg("%s went through", updates[i]);
	assert_int_equal(record_note(rec, 0, "too late", NOW), E_ILLEGAL);
}

static void
a_pinned_prefix_becomes_the_full_commit(void **state)
{
	struct record_claim c = record_claim_of_a_push;
	struct record_run r;

	(void)state;
	c.commit_sha = "0123456";
	assert_int_equal(record_claim(rec, &c, NOW), 0);
	assert_int_equal(
	    record_set_commit(rec, "1123456789012345678901234567890123456789"), E_ILLEGAL);
	assert_int_equal(record_set_commit(rec, record_claim_of_a_push.commit_sha), 0);
	assert_int_equal(record_run_get(rec, arena, &r), 0);
	assert_string_equal(r.commit_sha, record_claim_of_a_push.commit_sha);
}

static void
a_newer_store_is_refused_and_left_alone(void **state)
{
	char *why = NULL;

	(void)state;
	assert_int_equal(store_exec(rec->store, "PRAGMA user_version=99"), 0);
	rec = record_free(rec);
	assert_int_equal(record_open(dir, CAP, &rec, &why), E_NEWER);
	assert_null(rec);
	assert_non_null(strstr(why, "99"));
	free(why);
}

static void
every_text_that_enters_is_redacted(void **state)
{
	CLEANUP(redactor_freep) struct redactor *redactor = NULL;
	const struct record_plan_step step = { "use s3cret-token", "curl -u s3cret-token x" };
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_CHECKOUT_FAILED,
		.error_message = "url s3cret-token \xff" };
	struct record_step *steps;
	struct record_row *rows;
	struct record_run r;
	size_t n;

	(void)state;
	assert_int_equal(redactor_new("s3cret-token", 12, &redactor), 0);
	record_set_redactor(rec, redactor);
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	assert_int_equal(record_plan(rec, &step, 1, 60), 0);
	assert_int_equal(record_note(rec, 0, "see s3cret-token\n", NOW), 0);
	assert_int_equal(record_finish(rec, &o, NOW), 0);
	assert_int_equal(record_steps_get(rec, arena, &steps, &n), 0);
	assert_string_equal(steps[0].name, "use [REDACTED]");
	assert_string_equal(steps[0].command, "curl -u [REDACTED] x");
	assert_int_equal(record_rows_get(rec, arena, 1, 1000, &rows, &n), 0);
	assert_int_equal(rows[0].n, 15);
	assert_memory_equal(rows[0].chunk, "see [REDACTED]\n", 15);
	assert_int_equal(record_run_get(rec, arena, &r), 0);
	assert_string_equal(r.error_message, "url [REDACTED] " UTF8_REPLACEMENT);
}

static void
a_long_message_is_cut_between_characters(void **state)
{
	char text[3 * 3000 + 1];
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_INTERNAL_UNEXPECTED,
		.error_message = text };
	struct record_run r;

	(void)state;
	for (size_t i = 0; i < 3000; i++)
		memcpy(text + 3 * i, "\xe2\x82\xac", 4);
	assert_int_equal(record_claim(rec, &record_claim_of_a_push, NOW), 0);
	assert_int_equal(record_finish(rec, &o, NOW), 0);
	assert_int_equal(record_run_get(rec, arena, &r), 0);
	assert_int_equal(strlen(r.error_message), 4095);
	assert_true(utf8_valid(r.error_message, 4095));
	assert_string_equal(r.error_message + 4092, "\xe2\x80\xa6");
}

static void
the_reserve_takes_its_room_and_gives_it_back(void **state)
{
	char path[96];
	struct stat st;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/reserve", dir);
	assert_int_equal(record_reserve_make(dir), 0);
	assert_int_equal(record_reserve_make(dir), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
	assert_int_equal(record_reserve_drop(dir), 0);
	assert_int_equal(record_reserve_drop(dir), 0);
	assert_int_equal(stat(path, &st), -1);
}

/* A whole small run, up to the first failure. */
static int
small_run(struct record **r)
{
	const struct record_plan_step step = { "a", "b" };
	const struct record_outcome o = { .status = RUN_STATUS_FAILED,
		.exit_code = 1,
		.failure_code = FAILURE_CODE_STEP_FAILED,
		.error_message = "m" };
	struct record_row row = { 0, LOG_STREAM_STDOUT, 1, "out\n", 4, NOW };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct record_text text;
	char *why = NULL;
	int err = record_open(dir, CAP, r, &why);

	free(why);
	if (err == 0)
		err = record_claim(*r, &record_claim_of_a_push, NOW);
	if (err == 0)
		err = record_plan(*r, &step, 1, 60);
	if (err == 0)
		err = record_begin(*r, NOW);
	if (err == 0)
		err = record_append(*r, &row, 1);
	if (err == 0)
		err = record_note(*r, 0, "note", NOW);
	if (err == 0)
		err = record_finish_log(*r);
	if (err == 0)
		err = record_finish(*r, &o, NOW);
	if (err == 0)
		err = record_text_get(*r, 0, 100, &out, &text);
	if (err == 0)
		assert_string_equal(buf_cstr(&out), "out\nnote\n");
	return err;
}

/* An append whose text the archive could not take is no failure: the archive gets it from
 * the rows, and the log reads back whole all the same. */
static void
every_failed_allocation_is_told_or_made_good(void **state)
{
	int told = 0, made_good = 0, hit = 1;

	assert_int_equal(remove_record(state), 0);
	for (long n = 0; hit; n++) {
		struct record *r = NULL;
		int err;

		assert_int_equal(make_record(state), 0);
		rec = record_free(rec);
		mem_fault_arm(n);
		err = small_run(&r);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		record_free(r);
		assert_true(err == 0 || (hit && err == E_NOMEM));
		told += err == E_NOMEM;
		made_good += hit && err == 0;
		assert_int_equal(remove_record(state), 0);
	}
	assert_true(told > 20);
	assert_in_range(made_good, 1, 4);
	assert_int_equal(make_record(state), 0);
}

#define WITH_RECORD(t) cmocka_unit_test_setup_teardown(t, make_record, remove_record)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RECORD(every_statement_prepares_and_takes_its_parameters),
		WITH_RECORD(a_claim_is_read_back_whole_after_a_restart),
		WITH_RECORD(a_directory_without_a_store_has_no_record),
		WITH_RECORD(values_outside_the_contract_are_refused),
		WITH_RECORD(identity_commit_and_claim_never_change),
		WITH_RECORD(the_log_only_grows_and_loses_its_oldest_first),
		WITH_RECORD(nothing_of_an_ended_run_changes),
		WITH_RECORD(a_pinned_prefix_becomes_the_full_commit),
		WITH_RECORD(a_newer_store_is_refused_and_left_alone),
		WITH_RECORD(every_text_that_enters_is_redacted),
		WITH_RECORD(a_long_message_is_cut_between_characters),
		WITH_RECORD(the_reserve_takes_its_room_and_gives_it_back),
		WITH_RECORD(every_failed_allocation_is_told_or_made_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
