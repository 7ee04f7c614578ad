/* cmd/anvild/recover.c, process.c: what an earlier supervisor has left is adopted, or is certainly
 * gone, or the start fails. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/errand.h"
#include "cmd/anvild/exits.h"
#include "cmd/anvild/runners.h"
#include "cmd/anvild/serves.h"
#include "cmd/anvild/spawn.h"
#include "cmd/anvild/startup.h"
#include "cmd/anvild/supervisor.h"
#include "cmd/anvild/sweep.h"
#include "gen/supervisor_methods.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define RUN   "run_0000000000000000000001"
#define PRJ   "prj_0000000000000000000001"
#define SPAWN "11111111111111111111111111111111"

#define SERVE_SPAWN "dddddddddddddddddddddddddddddddd"
#define ROWS_SIZE   256

struct fix {
	struct supervisor sup;
	struct config config;
	char *dir;
	pid_t pid; /* of the process that an earlier supervisor has forked */
	struct process_birth birth;
};

static const struct actor_desc desc = { .role = ROLE_SUPERVISOR, .store = &supervisor_store };

static void
fork_one(struct fix *f)
{
	f->pid = fork();
	assert_true(f->pid >= 0);
	while (f->pid == 0)
		(void)pause();
	f->birth.pid = f->pid;
	assert_int_equal(io_proc_start_time(f->pid, &f->birth.start_ticks), 0);
}

static void
end_it(const struct fix *f)
{
	(void)kill(f->pid, SIGKILL);
	(void)waitpid(f->pid, NULL, 0);
}

static int
setup(void **state)
{
	struct fix *f = mem_calloc(1, sizeof(*f));
	CLEANUP_FREE char *store = NULL;
	CLEANUP_FREE char *why = NULL;
	struct actor_place place = { .address = "supervisor" };

	assert_non_null(f);
	f->dir = scratch_new();
	store = mem_format("%s/supervisor.db", f->dir);
	place.runtime_dir = f->dir;
	place.store_path = store;
	assert_int_equal(actor_new(&desc, &place, &f->sup.actor, &why), 0);
	actor_set_ctx(f->sup.actor, &f->sup);
	f->config.data_dir = f->dir;
	f->sup.config = &f->config;
	f->sup.stopping = 1; /* nothing new is forked */
	assert_int_equal(io_boot_id(f->sup.boot_id), 0);
	f->sup.runners = runners_new(&f->sup);
	f->sup.exits = exits_new(&f->sup);
	f->sup.sweep = sweep_new(&f->sup);
	f->sup.serves = serves_new(&f->sup);
	f->sup.checks = errand_new(&f->sup, "check");
	f->sup.copies = errand_new(&f->sup, "copy");
	slots_init(&f->sup.slots, 1);
	fork_one(f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	end_it(f);
	runners_free(f->sup.runners);
	serves_free(f->sup.serves);
	errand_free(f->sup.checks);
	errand_free(f->sup.copies);
	exits_free(f->sup.exits);
	sweep_free(f->sup.sweep);
	slots_done(&f->sup.slots);
	actor_free(f->sup.actor);
	scratch_free(f->dir);
	free(f);
	return 0;
}

/* So many descriptors more can be opened, until descriptors_back(). */
static struct rlimit
descriptors_left(int n)
{
	struct rlimit was, few;
	int next = fcntl(0, F_DUPFD, 0);

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit) { (rlim_t)(next + n), was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return was;
}

static void
descriptors_back(struct rlimit was)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* ---- one process ---- */

static void
on_end(void *arg, struct process *p, const struct process_end *end)
{
	int *ended = arg;

	(void)p;
	(void)end;
	if (ended != NULL)
		*ended = 1;
}

static int
adopt(struct fix *f, struct process **ret)
{
	static const struct process_owner owner = { on_end, NULL };
	static const struct process_id id = { .kind = PROCESS_RUNNER, .address = "run/" RUN };

	return process_adopt(&f->sup, &id, &f->birth, &owner, ret);
}

static void
only_who_certainly_is_no_more_is_gone(void **state)
{
	struct fix *f = *state;
	struct process *p = NULL;
	struct rlimit was;
	int r;

	assert_int_equal(adopt(f, &p), 0);
	p = process_free(p);
	/* Neither its descriptor nor, with that, its start time can be had. */
	for (int n = 0; n < 2; n++) {
		was = descriptors_left(n);
		r = adopt(f, &p);
		descriptors_back(was);
		assert_int_equal(r, E_SYS);
	}
	f->birth.start_ticks++; /* somebody else has its pid */
	assert_int_equal(adopt(f, &p), E_NOENT);
	f->birth.start_ticks--;
	(void)kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
	assert_int_equal(adopt(f, &p), E_NOENT);
	assert_null(p);
}

/* ---- the whole start ---- */

static int
insert_turn(void *arg, struct turn *t)
{
	const struct fix *f = arg;
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_ADD);
	const int64_t none = 0;
	int r = stmt_bind(st, "sssssIIiisi", SPAWN, "runner", "run/" RUN, RUN, PRJ, &none,
	    &none, (int64_t)f->pid, (int64_t)f->birth.start_ticks, f->sup.boot_id, (int64_t)1);

	return r < 0 ? r : stmt_run(st);
}

/* A serving process of an earlier boot, whose row goes. */
static int
insert_serve_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_ADD);
	int r = stmt_bind(st, "ssssnnniisi", SERVE_SPAWN, "serve", "run/" RUN, RUN,
	    (int64_t)4711, (int64_t)1, "00000000-0000-0000-0000-000000000000", (int64_t)1);

	(void)arg;
	return r < 0 ? r : stmt_run(st);
}

/* Spawn ids of the rows, in their order, each with a space behind it. */
static int
rows_turn(void *arg, struct turn *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = sup_stmt(t, SUP_PROCESS_LIST);
	char *out = arg;
	int r;

	*out = '\0';
	while ((r = stmt_step(st)) == 1)
		(void)snprintf(
		    out + strlen(out), ROWS_SIZE - strlen(out), "%s ", stmt_text(st, 0));
	return r;
}

static void
expect_rows(struct fix *f, const char *rows)
{
	char got[ROWS_SIZE];

	assert_int_equal(actor_turn(f->sup.actor, 0, rows_turn, got), 0);
	assert_string_equal(got, rows);
}

static void
a_live_run_that_cannot_be_adopted_stops_the_start_and_is_named(void **state)
{
	struct fix *f = *state;
	char why[STARTUP_WHY_SIZE] = "", pid[32];
	struct rlimit was;
	int r;

	assert_int_equal(sup_write(&f->sup, insert_turn, f), 0);
	assert_int_equal(actor_commit_now(f->sup.actor), 0);
	was = descriptors_left(0);
	r = startup_recover(&f->sup, why);
	descriptors_back(was);
	assert_int_equal(r, E_SYS);
	(void)snprintf(pid, sizeof(pid), "process %d,", (int)f->pid);
	assert_non_null(strstr(why, RUN));
	assert_non_null(strstr(why, pid));
	/* Nobody will be told that it has ended. */
	assert_null(exits_find(f->sup.exits, SPAWN));
	assert_int_equal(runners_count(f->sup.runners), 0);

	/* The next start has what it needs. */
	assert_int_equal(startup_recover(&f->sup, why), 0);
	assert_non_null(runners_find(f->sup.runners, RUN));
	assert_int_equal(f->sup.slots.live, 1);
}

static void
a_run_of_before_a_reboot_is_gone_whoever_has_its_pid(void **state)
{
	struct fix *f = *state;
	char why[STARTUP_WHY_SIZE] = "", boot_id[37];
	const struct process_end *end;

	memcpy(boot_id, f->sup.boot_id, sizeof(boot_id));
	f->sup.boot_id[0] = boot_id[0] == '0' ? '1' : '0';
	assert_int_equal(sup_write(&f->sup, insert_turn, f), 0);
	memcpy(f->sup.boot_id, boot_id, sizeof(boot_id));
	assert_int_equal(startup_recover(&f->sup, why), 0);
	end = exits_find(f->sup.exits, SPAWN);
	assert_non_null(end);
	assert_int_equal(end->rebooted, 1);
	assert_null(runners_find(f->sup.runners, RUN));
	assert_int_equal(kill(f->pid, 0), 0);
}

/* What is adopted on a full disk is, and the rows that cannot go are there for the next start. */
static void
a_full_disk_keeps_nobody_from_starting(void **state)
{
	struct fix *f = *state;
	char why[STARTUP_WHY_SIZE] = "";

	assert_int_equal(sup_write(&f->sup, insert_turn, f), 0);
	assert_int_equal(sup_write(&f->sup, insert_serve_turn, NULL), 0);
	assert_int_equal(actor_commit_now(f->sup.actor), 0);
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(startup_recover(&f->sup, why), 0);
	assert_true(store_fault_count() > 0);
	store_fault_arm(STORE_FAULT_NONE, 0);
	assert_string_equal(why, "");
	assert_non_null(runners_find(f->sup.runners, RUN));
}

/* ---- a store that takes no writes ---- */

struct start {
	struct fix *f;
	struct process *process;
	int ended;
};

/* A runner that has nothing to do. */
static int
start_turn(void *arg, struct turn *t)
{
	struct start *start = arg;
	CLEANUP(io_closep) int fd = spawn_memfd("{}", 2);
	const struct process_owner owner = { on_end, &start->ended };
	const struct process_id id = { .kind = PROCESS_RUNNER,
		.spawn_id = SPAWN,
		.address = "run/" RUN,
		.run_id = RUN,
		.project_id = PRJ };
	const struct spawn_desc d = {
		.program = "/bin/true", .argv = { "true" }, .start_fd = fd, .lifeline_fd = -1
	};

	return process_start(&start->f->sup, t, &id, &d, &owner, &start->process);
}

/* Else the next supervisor would take the socket of the runner away. */
static void
a_row_that_a_server_left_goes_when_its_run_is_executed(void **state)
{
	struct fix *f = *state;
	struct start start = { .f = f };

	assert_int_equal(sup_write(&f->sup, insert_serve_turn, NULL), 0);
	assert_int_equal(actor_commit_now(f->sup.actor), 0);
	expect_rows(f, SERVE_SPAWN " ");
	assert_int_equal(sup_write(&f->sup, start_turn, &start), 0);
	assert_int_equal(actor_commit_now(f->sup.actor), 0);
	expect_rows(f, SPAWN " ");
	while (!start.ended)
		actor_step(f->sup.actor);
}

static void
a_write_counts_as_taken_when_it_is_on_disk(void **state)
{
	struct fix *f = *state;
	struct start start = { .f = f };

	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(sup_write(&f->sup, insert_turn, f), 0);
	assert_int_equal(f->sup.storage_failed, 0);
	assert_true(actor_commit_now(f->sup.actor) < 0);
	assert_int_equal(f->sup.storage_failed, 1);
	sup_try_store(&f->sup);
	assert_true(actor_commit_now(f->sup.actor) < 0);
	assert_int_equal(f->sup.storage_failed, 1);
	store_fault_arm(STORE_FAULT_NONE, 0);
	sup_try_store(&f->sup);
	assert_int_equal(f->sup.storage_failed, 1);
	assert_int_equal(actor_commit_now(f->sup.actor), 0);
	assert_int_equal(f->sup.storage_failed, 0);

	/* A turn of somebody else's message, in which a process is recorded. */
	store_fault_arm(STORE_FAULT_FULL, 0);
	assert_int_equal(actor_turn(f->sup.actor, 1, start_turn, &start), 0);
	(void)actor_commit_now(
	    f->sup.actor); /* unless the fork took so long that it was tried */
	assert_int_equal(f->sup.storage_failed, 1);
	store_fault_arm(STORE_FAULT_NONE, 0);
	while (!start.ended)
		actor_step(f->sup.actor);
	expect_rows(f, "");
}

/* ---- no memory ---- */

static int
has_rows(struct fix *f)
{
	char got[ROWS_SIZE];

	assert_int_equal(actor_turn(f->sup.actor, 0, rows_turn, got), 0);
	return got[0] != '\0';
}

static void
no_end_is_forgotten_for_want_of_memory(void **state)
{
	struct fix *f = *state;
	char why[STARTUP_WHY_SIZE] = "";
	int hit = 1, nhits = 0;

	f->sup.stopping = 0;
	for (long n = 0; hit; n++) {
		assert_int_equal(sup_write(&f->sup, insert_turn, f), 0);
		assert_int_equal(startup_recover(&f->sup, why), 0);
		assert_int_equal(runners_count(f->sup.runners), 1);
		end_it(f);
		mem_fault_arm(n);
		while (runners_count(f->sup.runners) != 0)
			actor_step(f->sup.actor);
		(void)actor_commit_now(f->sup.actor);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		nhits += hit;
		assert_non_null(exits_find(f->sup.exits, SPAWN));
		while (has_rows(f))
			actor_step(f->sup.actor);
		exits_free(f->sup.exits);
		f->sup.exits = exits_new(&f->sup);
		fork_one(f);
	}
	assert_true(nhits > 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(only_who_certainly_is_no_more_is_gone),
		TEST(a_live_run_that_cannot_be_adopted_stops_the_start_and_is_named),
		TEST(a_run_of_before_a_reboot_is_gone_whoever_has_its_pid),
		TEST(a_full_disk_keeps_nobody_from_starting),
		TEST(a_row_that_a_server_left_goes_when_its_run_is_executed),
		TEST(a_write_counts_as_taken_when_it_is_on_disk),
		TEST(no_end_is_forgotten_for_want_of_memory),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
