/* Each invariant of a run's record is broken on purpose, and named; sound ones give nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/unit.h"

#define NOW INT64_C(1700000000000)
#define RUN "run_0123456789abcdefghijAB"

struct rig {
	char *dir;
	struct record *r;
	struct arena *a;
};

static const struct record_claim claim = {
	.run_id = RUN,
	.project_id = "prj_0123456789abcdefghijAB",
	.owner_slug = "ada",
	.project_slug = "engine",
	.trigger_type = TRIGGER_TYPE_MANUAL,
	.triggered_by_user_id = "usr_0123456789abcdefghijAB",
	.branch = "main",
	.queued_at_ms = NOW - 1000,
	.epoch = 3,
	.spawn_id = "00112233445566778899aabbccddeeff",
	.sandbox = "bwrap",
};

static void
open_record(struct rig *g)
{
	char *why = NULL;

	if (record_open(g->dir, (int64_t)1 << 28, &g->r, &why) < 0)
		fail_msg("%s", why);
}

static int
setup(void **state)
{
	struct rig *g = mem_calloc(1, sizeof(*g));

	g->dir = scratch_new();
	g->a = arena_new();
	open_record(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *g = *state;

	(void)record_free(g->r);
	(void)arena_free(g->a);
	scratch_free(g->dir);
	free(g);
	return 0;
}

static struct store_problems
look(const struct rig *g, struct record_standing *st)
{
	struct store_problems found = { .arena = g->a };

	assert_int_equal(record_inspect(g->dir, NOW, &found, st), 0);
	return found;
}

static void
is_sound(const struct rig *g)
{
	struct record_standing st;
	struct store_problems found = look(g, &st);

	if (found.n != 0)
		fail_msg(
		    "%s: %s %s", found.rows[0].code, found.rows[0].subject, found.rows[0].text);
}

static void
write_lines(struct rig *g, int n)
{
	char text[4000];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < n; i++) {
		struct record_row rows[8];

		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			rows[k] = (struct record_row) { 0, LOG_STREAM_STDOUT, 1, text,
				sizeof(text), NOW };
		assert_int_equal(record_append(g->r, rows, ARRAY_LEN(rows)), 0);
	}
}

/* Two steps, the second fails, and a log that is longer than what is kept hot. */
static void
fill(struct rig *g, int nlines)
{
	static const struct record_plan_step steps[] = { { "build", "make" },
		{ "test", "make check" }, { "pack", "make dist" } };
	static const struct record_exit ok = { { 1, 0 }, 0 }, bad = { { 1, 2 }, 0 };
	const struct record_outcome failed = { .status = RUN_STATUS_FAILED,
		.exit_code = 2,
		.failure_code = FAILURE_CODE_STEP_FAILED,
		.error_message = "Step \"test\" failed with exit code 2." };
	int64_t next;

	is_sound(g);
	assert_int_equal(record_claim(g->r, &claim, NOW), 0);
	is_sound(g);
	assert_int_equal(record_plan(g->r, steps, ARRAY_LEN(steps), 720), 0);
	is_sound(g);
	assert_int_equal(record_begin(g->r, NOW + 1), 0);
	write_lines(g, nlines);
	is_sound(g);
	assert_int_equal(record_end_step(g->r, 1, 1, ok, NOW + 2, &next), 0);
	assert_int_equal(record_note(g->r, 2, "Step 2/3: test", NOW + 3), 0);
	assert_int_equal(record_flush(g->r), 0);
	is_sound(g);
	assert_int_equal(record_end_step(g->r, 2, 0, bad, NOW + 4, &next), 0);
	assert_int_equal(record_finish_log(g->r), 0);
	is_sound(g);
	assert_int_equal(record_finish(g->r, &failed, NOW + 5), 0);
	is_sound(g);
}

static void
a_sound_record_gives_nothing_at_any_moment(void **state)
{
	struct rig *g = *state;
	struct record_standing st;

	fill(g, 100);
	assert_int_equal(look(g, &st).n, 0);
	assert_string_equal(st.run_id, RUN);
	assert_string_equal(st.status, "failed");
	assert_string_equal(st.failure_code, "step_failed");
	assert_int_equal(st.exit_code, 2);
	assert_int_equal(st.epoch, 3);
	assert_int_equal(st.finished_at, NOW + 5);
}

static void
a_log_in_a_hurry_is_sound_too(void **state)
{
	struct rig *g = *state;

	record_set_hurry(g->r, 1);
	fill(g, 120);
}

static void
looking_leaves_nothing_behind(void **state)
{
	static const char *const left[] = { "run.db-wal", "run.db-shm" };
	struct rig *g = *state;

	fill(g, 3);
	g->r = record_free(g->r);
	is_sound(g);
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		CLEANUP_FREE char *path = mem_format("%s/%s", g->dir, left[i]);

		assert_int_not_equal(access(path, F_OK), 0);
	}
}

static void
a_directory_without_a_record_has_nothing_wrong(void **state)
{
	struct rig *g = *state;
	CLEANUP_FREE char *path = mem_format("%s/run.db", g->dir);
	struct record_standing st;

	g->r = record_free(g->r);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(look(g, &st).n, 0);
	assert_null(st.run_id);
}

static const struct {
	const char *code, *sql;
} breaches[] = {
	{ "record_row", "UPDATE run_meta SET status = 'lost'" },
	{ "record_row", "UPDATE run_meta SET finished_at = NULL" },
	{ "record_row", "UPDATE run_meta SET current_step = 2" },
	{ "record_row", "UPDATE run_meta SET epoch = 0" },
	{ "record_row", "UPDATE run_meta SET failure_code = NULL" },
	{ "record_row", "UPDATE run_meta SET status = 'passed'" },
	{ "record_steps", "DELETE FROM run_steps WHERE position = 2" },
	{ "record_steps", "UPDATE run_steps SET started_at = NULL WHERE position = 1" },
	{ "record_steps",
	    "UPDATE run_steps SET status = 'passed', started_at = 1, finished_at = 2,"
	    " exit_code = 0 WHERE position = 3" },
	{ "record_steps",
	    "UPDATE run_steps SET status = 'running', exit_code = NULL,"
	    " finished_at = NULL WHERE position = 2" },
	{ "log_state", "DELETE FROM log_state" },
	{ "log_state",
	    "UPDATE log_state SET hot_bytes = hot_bytes + 1, total_bytes = total_bytes + 1" },
	{ "log_state", "UPDATE log_state SET total_bytes = 1" },
	{ "log_seq", "UPDATE log_state SET next_seq = next_seq + 1" },
	{ "log_seq", "DELETE FROM run_logs WHERE seq = (SELECT first_seq + 1 FROM log_state)" },
	{ "log_seq", "UPDATE log_state SET first_seq = first_seq + 1" },
	{ "log_frames", "UPDATE log_state SET archived_bytes = archived_bytes - 1" },
	{ "log_frames",
	    "UPDATE log_frames SET text_size = text_size + 1 WHERE first_byte = 0" },
	{ "log_frames",
	    "DELETE FROM log_frames WHERE first_byte = (SELECT first_byte FROM log_frames"
	    " ORDER BY first_byte LIMIT 1 OFFSET 1)" },
	{ "log_lost", "UPDATE log_state SET archived_seq = 1" },
	{ "integrity", "UPDATE run_meta SET sandbox = 'chroot'" },
	{ "log_archive",
	    "UPDATE log_frames SET file_offset = file_offset + 1 WHERE first_byte ="
	    " (SELECT max(first_byte) FROM log_frames)" },
};

static int
has(const struct store_problems *found, const char *code)
{
	for (size_t i = 0; i < found->n; i++)
		if (strcmp(found->rows[i].code, code) == 0)
			return 1;
	return 0;
}

/* Everything that a reader of its own may see has to be committed. */
static void
each_breach_is_named_by_its_code(void **state)
{
	static const char *const triggers[] = { "run_begins_starting", "run_stays",
		"run_terminal_is_final", "run_moves", "run_ends_after_its_steps",
		"run_keeps_its_claim", "run_keeps_its_identity", "step_begins_queued",
		"step_moves", "step_of_ended_run", "step_goes_with_its_claim",
		"log_is_contiguous", "log_never_changes", "log_drops_the_oldest",
		"log_only_grows" };
	struct rig *g = *state;
	CLEANUP_FREE char *db = mem_format("%s/run.db", g->dir);
	CLEANUP_FREE char *kept = mem_format("%s/kept.db", g->dir);
	CLEANUP_FREE char *keep = mem_format("VACUUM INTO '%s'", kept);

	fill(g, 100);
	for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
		CLEANUP_FREE char *sql = mem_format("DROP TRIGGER %s", triggers[i]);

		assert_int_equal(store_exec(g->r->store, sql), 0);
	}
	assert_int_equal(store_exec(g->r->store, keep), 0);
	for (size_t i = 0; i < ARRAY_LEN(breaches); i++) {
		struct record_standing st;
		struct store_problems found;

		g->r = record_free(g->r);
		assert_int_equal(rename(kept, db), 0);
		open_record(g);
		assert_int_equal(store_exec(g->r->store, keep), 0);
		assert_int_equal(
		    store_exec(g->r->store, "PRAGMA ignore_check_constraints = ON"), 0);
		if (store_exec(g->r->store, breaches[i].sql) != 0)
			fail_msg("%s: %s", breaches[i].sql, store_error(g->r->store));
		found = look(g, &st);
		if (!has(&found, breaches[i].code))
			fail_msg("%s was not found by %s", breaches[i].code, breaches[i].sql);
	}
}

static void
a_damaged_archive_is_named(void **state)
{
	struct rig *g = *state;
	CLEANUP_FREE char *path = mem_format("%s/log.zst", g->dir);
	struct record_standing st;
	struct store_problems found;
	int fd;

	fill(g, 20);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "damage", 6, 9), 6);
	close(fd);
	found = look(g, &st);
	assert_true(has(&found, "log_archive"));
	assert_int_equal(truncate(path, 3), 0);
	found = look(g, &st);
	assert_true(has(&found, "log_archive"));
	assert_int_equal(unlink(path), 0);
	found = look(g, &st);
	assert_true(has(&found, "log_archive"));
}

static void
a_file_that_is_no_store_is_one_problem(void **state)
{
	struct rig *g = *state;
	CLEANUP_FREE char *path = mem_format("%s/run.db", g->dir);
	struct record_standing st;
	struct store_problems found;
	int fd;

	g->r = record_free(g->r);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(write(fd, "no store at all ", 16), 16);
	close(fd);
	found = look(g, &st);
	assert_int_not_equal(found.n, 0);
	assert_string_equal(found.rows[0].code, "unreadable");
	assert_null(st.run_id);
}

static int
inspect(void *arg)
{
	const struct rig *g = arg;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct store_problems found = { .arena = a };
	struct record_standing st;

	return a == NULL ? E_NOMEM : record_inspect(g->dir, NOW, &found, &st);
}

static void
looking_survives_every_failed_allocation(void **state)
{
	struct rig *g = *state;

	fill(g, 3);
	assert_true(starve(inspect, g) > 5);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sound_record_gives_nothing_at_any_moment),
		TEST(a_log_in_a_hurry_is_sound_too),
		TEST(looking_leaves_nothing_behind),
		TEST(a_directory_without_a_record_has_nothing_wrong),
		TEST(each_breach_is_named_by_its_code),
		TEST(a_damaged_archive_is_named),
		TEST(a_file_that_is_no_store_is_one_problem),
		TEST(looking_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
