#include "test/support/ledger_rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

int
rig_setup(void **state)
{
	struct ledger_rig *rig = mem_calloc(1, sizeof(*rig));
	CLEANUP_FREE char *path = NULL;
	CLEANUP_FREE char *why = NULL;

	rig->dir = scratch_new();
	rig->a = arena_new();
	rig->now = RIG_START_MS;
	path = mem_format("%s/project-0.db", rig->dir);
	if (store_open(&ledger_store, path, &rig->s, &why) < 0)
		fail_msg("%s", why);
	assert_int_equal(store_begin(rig->s), 0);
	*state = rig;
	return 0;
}

int
rig_teardown(void **state)
{
	struct ledger_rig *rig = *state;

	mem_fault_arm(-1);
	store_rollback(rig->s);
	(void)store_close(rig->s);
	(void)arena_free(rig->a);
	scratch_free(rig->dir);
	free(rig);
	return 0;
}

struct ledger_at
rig_at(const struct ledger_rig *rig)
{
	return (struct ledger_at) { .store = rig->s, .arena = rig->a, .now_ms = rig->now };
}

static const char *
numbered(const struct ledger_rig *rig, const char *prefix, int n)
{
	char *id = arena_format(rig->a, "%s%022d", prefix, n);

	assert_non_null(id);
	return id;
}

const char *
rig_prj(const struct ledger_rig *rig, int n)
{
	return numbered(rig, "prj_", n);
}

const char *
rig_run(const struct ledger_rig *rig, int n)
{
	return numbered(rig, "run_", n);
}

const char *
rig_usr(const struct ledger_rig *rig, int n)
{
	return numbered(rig, "usr_", n);
}

const char *
rig_hex(const struct ledger_rig *rig, int n)
{
	char *hex = arena_format(rig->a, "%032x", (unsigned)n);

	assert_non_null(hex);
	return hex;
}

int
rig_exec(const struct ledger_rig *rig, const char *fmt, ...)
{
	char sql[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, (int)sizeof(sql) - 1);
	return store_exec(rig->s, sql);
}

#define BADGE_VERSION 5

void
rig_lend_columns(const struct ledger_rig *rig)
{
	if (store_version(rig->s) < BADGE_VERSION)
		assert_int_equal(rig_exec(rig,
				     "ALTER TABLE project_config ADD COLUMN"
				     " badge_public INTEGER NOT NULL DEFAULT 0"),
		    0);
}

void
rig_take_columns(const struct ledger_rig *rig)
{
	if (store_version(rig->s) < BADGE_VERSION)
		assert_int_equal(
		    rig_exec(rig, "ALTER TABLE project_config DROP COLUMN badge_public"), 0);
}

void
rig_project(struct ledger_rig *rig, int n)
{
	struct ledger_project p = { .project_id = rig_prj(rig, n),
		.owner_user_id = rig_usr(rig, 1),
		.owner_slug = "acme",
		.project_slug = arena_format(rig->a, "app-%d", n),
		.name = "An app",
		.repo_url = "https://git.example/acme/app.git",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.token = { "c2VhbGVk", "bm9uY2U", n },
		.created_at = rig->now };
	enum ledger_created kind;

	assert_int_equal(ledger_project_create(rig->s, rig->a, &p, &kind), 0);
	assert_int_equal(kind, LEDGER_CREATED);
}

void
rig_accept(struct ledger_rig *rig, int project, int n)
{
	struct ledger_accept q = { .project_id = rig_prj(rig, project),
		.run_id = rig_run(rig, n),
		.user_id = rig_usr(rig, 1) };
	enum ledger_accepted kind;
	struct ledger_run run;

	assert_int_equal(ledger_accept_run(rig->s, rig->a, &q, rig->now, &kind, &run), 0);
	assert_int_equal(kind, LEDGER_ACCEPTED);
}

struct ledger_run
rig_row(const struct ledger_rig *rig, int n)
{
	struct ledger_run run;

	assert_int_equal(ledger_run_get(rig->s, rig->a, rig_run(rig, n), &run), 0);
	return run;
}

const char *
rig_claim(struct ledger_rig *rig, int n)
{
	struct ledger_claim c;

	assert_int_equal(
	    ledger_claim_run(rig->s, rig->a, rig_run(rig, n), rig_hex(rig, n), rig->now, &c),
	    0);
	assert_true(c.claimed);
	return c.run.lease_id;
}

void
rig_report(struct ledger_rig *rig, int n, enum ledger_public status, int64_t started_at)
{
	struct ledger_run run = rig_row(rig, n);
	struct ledger_at at = rig_at(rig);
	struct ledger_held held;

	assert_int_equal(
	    ledger_heartbeat(&at, run.run_id, run.lease_id, status, started_at, &held), 0);
	assert_false(held.lost);
}

void
rig_cancel(struct ledger_rig *rig, int n)
{
	struct ledger_at at = rig_at(rig);
	struct ledger_promoted promoted;
	struct ledger_run run;
	int push;

	assert_int_equal(
	    ledger_cancel_run(&at, rig_run(rig, n), "operator", &run, &push, &promoted), 0);
}

struct ledger_end
rig_end(const struct ledger_rig *rig, enum ledger_state state)
{
	struct ledger_end e = {
		.state = state, .started_at = rig->now - 1000, .finished_at = rig->now
	};

	if (state == LEDGER_PASSED) {
		e.has_exit_code = 1;
	} else if (state == LEDGER_FAILED) {
		e.has_exit_code = 1;
		e.exit_code = 7;
		e.failure_code = "step_failed";
		e.error_message = "Step \"test\" failed with exit code 7.";
	} else {
		e.failure_code = "runtime_cancelled";
	}
	return e;
}

const char *
rig_settle(struct ledger_rig *rig, int n, enum ledger_state state)
{
	struct ledger_run run = rig_row(rig, n);
	struct ledger_end e = rig_end(rig, state);
	struct ledger_settlement settled;
	char *promoted;

	assert_int_equal(ledger_finalize_run(
			     rig->s, rig->a, run.run_id, run.lease_id, &e, rig->now, &settled),
	    0);
	assert_int_equal(settled.kind, LEDGER_SETTLED);
	assert_false(settled.again);
	promoted = arena_strdup(rig->a, settled.promoted.run_id);
	assert_non_null(promoted);
	return promoted;
}

void
rig_take_over(struct ledger_rig *rig, int n, enum ledger_state state)
{
	struct ledger_run run = rig_row(rig, n);
	struct ledger_end e = rig_end(rig, state);
	struct ledger_at at = rig_at(rig);
	struct ledger_promoted promoted;
	int done;

	assert_int_equal(
	    ledger_take_over(&at, run.run_id, run.lease_id, &e, "test", &done, &promoted), 0);
	assert_true(done);
}

void
rig_release(struct ledger_rig *rig, int n)
{
	struct ledger_run run = rig_row(rig, n);
	struct ledger_at at = rig_at(rig);
	enum ledger_released kind;
	enum ledger_lost lost;

	assert_int_equal(
	    ledger_release_run(&at, run.run_id, run.lease_id, "shutdown", &kind, &lost), 0);
	assert_int_equal(kind, LEDGER_RELEASED);
}

/* ---- looking ---- */

static void
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

void
rig_unchanged(const struct ledger_rig *rig, const struct ledger_run *b)
{
	struct ledger_run r;

	assert_int_equal(ledger_run_get(rig->s, rig->a, b->run_id, &r), 0);
	assert_int_equal(r.position, b->position);
	assert_int_equal(r.state, b->state);
	assert_int_equal(r.public_state, b->public_state);
	assert_int_equal(r.dispatch, b->dispatch);
	assert_int_equal(r.dispatch_attempts, b->dispatch_attempts);
	assert_int_equal(r.dispatch_retry_at, b->dispatch_retry_at);
	same_text(r.last_error, b->last_error);
	same_text(r.branch, b->branch);
	same_text(r.commit_sha, b->commit_sha);
	assert_int_equal(r.claimed_at, b->claimed_at);
	assert_int_equal(r.started_at, b->started_at);
	assert_int_equal(r.finished_at, b->finished_at);
	assert_int_equal(r.has_exit_code, b->has_exit_code);
	assert_int_equal(r.exit_code, b->exit_code);
	same_text(r.failure_code, b->failure_code);
	same_text(r.error_message, b->error_message);
	same_text(r.spawn_id, b->spawn_id);
	assert_int_equal(r.lease_epoch, b->lease_epoch);
	same_text(r.lease_id, b->lease_id);
	assert_int_equal(r.lease_expires_at, b->lease_expires_at);
	assert_int_equal(r.cancel_requested_at, b->cancel_requested_at);
	same_text(r.cancel_by, b->cancel_by);
	assert_int_equal(r.sync, b->sync);
	assert_int_equal(r.index_rev, b->index_rev);
	assert_int_equal(r.index_since, b->index_since);
	assert_int_equal(r.index_attempt, b->index_attempt);
	assert_int_equal(r.index_retry_at, b->index_retry_at);
	assert_int_equal(r.done_at, b->done_at);
}

const char *
rig_last_event(const struct ledger_rig *rig, int n)
{
	struct ledger_event *events;
	size_t nevents;

	assert_int_equal(ledger_events(rig->s, rig->a, rig_run(rig, n), &events, &nevents), 0);
	assert_true(nevents > 0);
	return events[nevents - 1].event;
}

void
rig_sound(const struct ledger_rig *rig)
{
	const char *broken = "";

	assert_int_equal(ledger_check(rig->s, rig->a, &broken), 0);
	assert_null(broken);
}
