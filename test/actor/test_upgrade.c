/*
 * test/actor/test_upgrade.c -- a real anvild and shard that find stores of an earlier release, or
 * none, and a run that has gone on meanwhile; the test plays the run.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/supervisor.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/ledger/ledger.h"
#include "test/support/ledger_rig.h"
#include "test/support/super_rig.h"
#include "test/support/unit.h"

#define WAIT_MS 20000
#define LOOK_MS 10

struct test {
	struct super_rig g;
	struct ledger_rig ledger;
	char project[ID_SIZE], run[ID_SIZE], next[ID_SIZE], spawn[ID_HEX32_SIZE];
	int leave; /* the run reads from its other end, and ends with it */
	pid_t pid; /* of the run                                         */
};

static void
copy(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text);
}

/* ---- what the earlier release has left ---- */

static struct store *
old_store(struct test *t, const char *name, const struct store_desc *now, const size_t *count)
{
	CLEANUP_FREE char *path = mem_format("%s/%s", t->g.data, name);
	CLEANUP_FREE char *why = NULL;
	static struct store_desc desc[2];
	struct store_desc *d = &desc[now == &supervisor_store];
	struct store *s = NULL;

	*d = *now;
	d->nmigrations = count;
	if (store_open(d, path, &s, &why) < 0)
		fail_msg("%s", why);
	super_rig_own(&t->g, path);
	assert_int_equal(store_version(s), *count);
	return s;
}

/* A project with a run that has begun and one that waits. */
static void
make_ledger(struct test *t)
{
	static const size_t first = 1;
	struct ledger_rig *rig = &t->ledger;

	*rig =
	    (struct ledger_rig) { .dir = t->g.data, .a = arena_new(), .now = clock_wall_ms() };
	rig->s = old_store(t, "project-0.db", &ledger_store, &first);
	assert_int_equal(store_begin(rig->s), 0);
	rig_lend_columns(rig);
	rig_project(rig, 1);
	rig_accept(rig, 1, 1);
	(void)rig_claim(rig, 1);
	rig_report(rig, 1, LEDGER_PUBLIC_RUNNING, rig->now);
	rig_accept(rig, 1, 2);
	rig_take_columns(rig);
	assert_int_equal(store_commit(rig->s), 0);
	copy(t->project, sizeof(t->project), rig_prj(rig, 1));
	copy(t->run, sizeof(t->run), rig_run(rig, 1));
	copy(t->next, sizeof(t->next), rig_run(rig, 2));
	copy(t->spawn, sizeof(t->spawn), rig_row(rig, 1).spawn_id);
	rig->s = store_close(rig->s);
}

static void
make_supervisor_store(struct test *t)
{
	static const size_t first = 1;
	struct ledger_rig rig = { .s = old_store(
				      t, "supervisor.db", &supervisor_store, &first) };
	uint64_t ticks;
	char boot_id[37];

	assert_int_equal(io_proc_start_time(t->pid, &ticks), 0);
	assert_int_equal(io_boot_id(boot_id), 0);
	assert_int_equal(store_begin(rig.s), 0);
	assert_int_equal(rig_exec(&rig,
			     "INSERT INTO processes VALUES ('%s', 'runner', 'run/%s', '%s', "
			     "'%s', 0, 0, %d, %llu, '%s', 1)",
			     t->spawn, t->run, t->run, t->project, (int)t->pid,
			     (unsigned long long)ticks, boot_id),
	    0);
	assert_int_equal(store_commit(rig.s), 0);
	rig.s = store_close(rig.s);
}

/* It holds the lock of its store, has said who it is, and does not know of any supervisor. */
static void
start_run(struct test *t)
{
	CLEANUP_FREE char *program = mem_format("%s/anvil-run", t->g.bin);
	CLEANUP_FREE char *folder = mem_format("%s/runs/%s", t->g.data, t->run);
	CLEANUP_FREE char *runs = mem_format("%s/runs", t->g.data);
	CLEANUP_FREE char *script = mem_format(
	    "#!/bin/sh\n[ \"$6\" = --spawn ] && exec 9>%s/runs/\"$1\"/lock || exit 75\n"
	    "flock 9 && echo \"$$ $7\" >&9 && echo locked && read -r line\n",
	    t->g.data);
	int in[2], out[2];
	char word[8];

	super_rig_write(&t->g, program, script, 0755);
	assert_int_equal(io_mkdirs(folder, 0700), 0);
	super_rig_own(&t->g, runs);
	super_rig_own(&t->g, folder);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		if (geteuid() == 0 && (setgid(t->g.gid) < 0 || setuid(t->g.uid) < 0))
			_exit(126);
		(void)execl(program, program, t->run, "--project", t->project, "--shard", "0",
		    "--spawn", t->spawn, (char *)NULL);
		_exit(127);
	}
	io_close(&in[0]);
	io_close(&out[1]);
	t->leave = in[1];
	assert_true(read(out[0], word, sizeof(word)) > 0);
	io_close(&out[0]);
}

static int
setup(void **state)
{
	struct test *t = mem_calloc(1, sizeof(*t));

	assert_non_null(t);
	super_rig_init(&t->g);
	t->g.shards = 1;
	super_rig_configure(&t->g, "runs: {max_concurrent: 1, min_free_bytes: 0}\n");
	assert_int_equal(io_mkdirs(t->g.data, 0700), 0);
	super_rig_own(&t->g, t->g.data);
	make_ledger(t);
	start_run(t);
	*state = t;
	return 0;
}

static int
teardown(void **state)
{
	struct test *t = *state;

	io_close(&t->leave);
	(void)waitpid(t->pid, NULL, 0);
	super_rig_done(&t->g);
	arena_free(t->ledger.a);
	free(t);
	return 0;
}

/* ---- what the new one makes of it ---- */

static int
has_status(const struct test *t, const char *run, const char *status)
{
	char params[160];
	json_t *res;
	const char *word;
	int same;

	(void)snprintf(
	    params, sizeof(params), "{\"projectId\":\"%s\",\"runId\":\"%s\"}", t->project, run);
	res = super_ask(&t->g, "project-0", "project.why", params);
	word = json_string_value(json_object_get(json_object_get(res, "ledger"), "status"));
	same = word != NULL && strcmp(word, status) == 0;
	json_decref(res);
	return same;
}

static void
wait_status(const struct test *t, const char *run, const char *status)
{
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);

	while (!has_status(t, run, status)) {
		assert_true(clock_mono().us < end.us);
		(void)poll(NULL, 0, LOOK_MS);
	}
}

static void
wait_known(const struct test *t)
{
	struct mono_time end = mono_add_ms(clock_mono(), WAIT_MS);
	pid_t pid = 0;

	while (pid != t->pid) {
		json_t *list = super_ask(&t->g, "supervisor", "supervisor.listRuns", "{}");
		const json_t *row = json_array_get(json_object_get(list, "runs"), 0);

		pid = (pid_t)json_integer_value(json_object_get(row, "pid"));
		json_decref(list);
		assert_true(clock_mono().us < end.us);
		(void)poll(NULL, 0, LOOK_MS);
	}
	assert_true(has_status(t, t->run, "active"));
	assert_true(has_status(t, t->next, "pending"));
}

/* An earlier release would leave the store alone now. */
static void
is_newer(const struct test *t, const char *name, const struct store_desc *now)
{
	static const size_t first = 1;
	CLEANUP_FREE char *path = mem_format("%s/%s", t->g.data, name);
	CLEANUP_FREE char *why = NULL;
	struct store_desc desc = *now;
	struct store *s = NULL;

	desc.nmigrations = &first;
	assert_int_equal(store_open(&desc, path, &s, &why), E_NEWER);
}

static void
old_stores_are_brought_up_to_date_while_a_run_goes_on(void **state)
{
	struct test *t = *state;

	make_supervisor_store(t);
	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
	wait_known(t);
	assert_true(super_rig_said(&t->g, "\"runner_adopted\""));
	super_rig_stop(&t->g);
	assert_int_equal(waitpid(t->pid, NULL, WNOHANG), 0);
	is_newer(t, "project-0.db", &ledger_store);
	is_newer(t, "supervisor.db", &supervisor_store);

	/* Its end is seen, though nobody here is its parent. */
	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
	wait_known(t);
	assert_int_equal(kill(t->pid, SIGKILL), 0);
	wait_status(t, t->run, "failed");
	wait_status(t, t->next, "executable");
	assert_true(super_rig_said(&t->g, "ended while not watched"));
}

static void
a_run_that_is_in_no_row_is_found_by_its_lock_and_fenced_before_the_next(void **state)
{
	struct test *t = *state;
	char params[160];
	json_t *res;

	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
	wait_known(t);
	assert_true(super_rig_said(&t->g, "\"runner_found\""));
	/* Nothing serves it, neither is it concluded, while it lives. */
	(void)snprintf(params, sizeof(params), "{\"runId\":\"%s\"}", t->run);
	res = super_ask(&t->g, "supervisor", "supervisor.serveRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "live");
	assert_string_equal(json_string_value(json_object_get(res, "spawnId")), t->spawn);
	json_decref(res);
	/* Silent for too long, it is killed by the pid and the spawn id of the lock. */
	(void)snprintf(
	    params, sizeof(params), "{\"runId\":\"%s\",\"spawnId\":\"%s\"}", t->run, t->spawn);
	assert_int_equal(kill(t->pid, SIGSTOP), 0);
	res = super_ask(&t->g, "supervisor", "supervisor.killRun", params);
	assert_string_equal(json_string_value(json_object_get(res, "kind")), "gone");
	json_decref(res);
	wait_status(t, t->run, "failed");
	wait_status(t, t->next, "executable");
}

/* The pid of the note belongs to somebody else by now, who holds no lock of ours. */
static void
a_note_of_somebody_who_is_gone_names_nobody(void **state)
{
	struct test *t = *state;
	CLEANUP_FREE char *lock = mem_format("%s/runs/%s/lock", t->g.data, t->run);
	CLEANUP(io_closep) int held = -1;
	char note[64];

	assert_int_equal(kill(t->pid, SIGKILL), 0);
	assert_true(super_rig_gone(t->pid, WAIT_MS));
	assert_int_equal(io_lock_file(AT_FDCWD, lock, &held), 0);
	(void)snprintf(note, sizeof(note), "%d %s\n", (int)getpid(), t->spawn);
	assert_int_equal(pwrite(held, note, strlen(note), 0), (ssize_t)strlen(note));
	super_rig_start(&t->g);
	super_rig_wait_ready(&t->g);
	wait_status(t, t->run, "failed");
	wait_status(t, t->next, "executable");
	assert_false(super_rig_said(&t->g, "\"runner_found\""));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(old_stores_are_brought_up_to_date_while_a_run_goes_on),
		TEST(a_run_that_is_in_no_row_is_found_by_its_lock_and_fenced_before_the_next),
		TEST(a_note_of_somebody_who_is_gone_names_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
