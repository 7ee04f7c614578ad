/*
 * test/unit/test_actor_worker.c -- jobs on threads, their ends on the loop; also the timers and
 * watches of the loop, and the crash note.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "lib/actor/actor.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define JOBS 40

static const size_t no_methods = 0;
static const struct actor_desc one_thread = { .role = ROLE_RUN, .nmethods = &no_methods };
static const struct actor_desc four_threads = {
	.role = ROLE_RUN, .nmethods = &no_methods, .nworkers = 4
};

struct fix {
	char dir[64];
	struct actor *a;
	pthread_t loop;
	_Atomic int gate; /* Jobs that wait for it go on when it is 1. */
	_Atomic int nrunning;
	int order[JOBS];
	int ndone, ncanceled;
	int fired;
};

struct job {
	struct fix *f;
	int n;
	int wait;
	int worked;
};

static int
setup_with(void **state, const struct actor_desc *desc)
{
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "run/run_0000000000000000000001" };
	char *why = NULL;

	assert_non_null(f);
	log_set_level(LOG_LEVEL_ERROR);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/anvil-work-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	place.runtime_dir = f->dir;
	f->loop = pthread_self();
	assert_int_equal(actor_new(desc, &place, &f->a, &why), 0);
	*state = f;
	return 0;
}

static int
setup(void **state)
{
	return setup_with(state, &one_thread);
}

static int
setup_four(void **state)
{
	return setup_with(state, &four_threads);
}

static int
teardown(void **state)
{
	struct fix *f = *state;
	char command[200];

	f->a = actor_free(f->a);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void
work(void *arg)
{
	struct job *j = arg;

	j->worked = !pthread_equal(pthread_self(), j->f->loop);
	atomic_fetch_add(&j->f->nrunning, 1);
	while (j->wait && !atomic_load(&j->f->gate))
		(void)sched_yield();
}

static void
done(void *arg, int err)
{
	struct job *j = arg;
	struct fix *f = j->f;

	assert_true(pthread_equal(pthread_self(), f->loop));
	if (err == 0) {
		assert_int_equal(j->worked, 1);
		f->order[f->ndone++] = j->n;
	} else {
		assert_int_equal(err, E_CANCELED);
		f->ncanceled++;
	}
	free(j);
}

static int
start(struct fix *f, int n, int wait)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	assert_non_null(j);
	*j = (struct job) { .f = f, .n = n, .wait = wait };
	r = actor_work(f->a, work, done, j);
	if (r < 0)
		free(j);
	return r;
}

static void
wait_done(struct fix *f, int n)
{
	while (f->ndone < n)
		(void)event_base_loop(actor_loop(f->a), EVLOOP_ONCE);
}

static void
jobs_run_on_a_thread_in_order_and_end_on_the_loop(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < JOBS; i++)
		assert_int_equal(start(f, i, 0), 0);
	assert_int_equal(f->ndone, 0);
	wait_done(f, JOBS);
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(f->order[i], i);
	assert_int_equal(actor_nwork(f->a), 0);
}

static void
several_threads_work_at_once(void **state)
{
	struct fix *f = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(start(f, i, 1), 0);
	while (atomic_load(&f->nrunning) < 4)
		(void)sched_yield();
	atomic_store(&f->gate, 1);
	wait_done(f, 4);
}

static void
the_queue_is_bounded(void **state)
{
	struct fix *f = *state;
	int n = 0;

	assert_int_equal(start(f, 0, 1), 0);
	while (atomic_load(&f->nrunning) < 1)
		(void)sched_yield();
	while (start(f, ++n, 1) == 0)
		assert_true(n <= WORKER_QUEUE_MAX);
	assert_int_equal(n, WORKER_QUEUE_MAX + 1);
	assert_int_equal(actor_nwork(f->a), WORKER_QUEUE_MAX + 1);
	/* The end of the actor: the one that runs is waited for, the others are canceled. */
	atomic_store(&f->gate, 1);
	f->a = actor_free(f->a);
	assert_true(f->ndone >= 1);
	assert_int_equal(f->ndone + f->ncanceled, WORKER_QUEUE_MAX + 1);
}

static void
a_worker_survives_every_failed_allocation(void **state)
{
	long n;

	for (n = 0;; n++) {
		struct fix *f;
		int r, hit;

		assert_int_equal(setup(state), 0);
		f = *state;
		mem_fault_arm(n);
		r = start(f, 1, 0);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		if (r == 0)
			wait_done(f, 1);
		teardown(state);
		if (!hit)
			break;
	}
	assert_int_equal(n, 2);
}

/* ---- timers and watches ---- */

struct timed {
	struct fix *f;
	struct actor_timer *timer;
	struct actor_watch *watch;
};

static void
fire_and_free(void *arg)
{
	struct timed *t = arg;

	t->f->fired++;
	t->timer = actor_timer_free(t->timer);
}

static void
a_timer_fires_once_and_may_free_itself(void **state)
{
	struct fix *f = *state;
	struct timed t = { .f = f };

	t.timer = actor_timer_new(f->a, fire_and_free, &t);
	assert_int_equal(actor_timer_is_set(t.timer), 0);
	assert_int_equal(actor_timer_set(t.timer, 60000), 0);
	assert_int_equal(actor_timer_is_set(t.timer), 1);
	actor_timer_stop(t.timer);
	assert_int_equal(actor_timer_is_set(t.timer), 0);
	assert_int_equal(actor_timer_set(t.timer, -5), 0);
	while (f->fired == 0)
		(void)event_base_loop(actor_loop(f->a), EVLOOP_ONCE);
	assert_null(t.timer);
}

static void
on_ready(void *arg, int fd, enum watch_what what)
{
	struct timed *t = arg;
	char c;

	assert_int_equal(what, WATCH_READ);
	assert_int_equal(read(fd, &c, 1), 1);
	t->f->fired++;
	if (c == 'x')
		t->watch = actor_watch_free(t->watch);
}

static void
a_watch_calls_while_there_is_something(void **state)
{
	struct fix *f = *state;
	struct timed t = { .f = f };
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	t.watch = actor_watch_new(f->a, fds[0], WATCH_READ, on_ready, &t);
	assert_non_null(t.watch);
	assert_int_equal(write(fds[1], "abx", 3), 3);
	actor_watch_pause(t.watch);
	actor_step(f->a);
	assert_int_equal(f->fired, 0);
	assert_int_equal(actor_watch_resume(t.watch), 0);
	while (f->fired < 3)
		(void)event_base_loop(actor_loop(f->a), EVLOOP_ONCE);
	assert_null(t.watch);
	close(fds[0]);
	close(fds[1]);
}

/* ---- the crash note ---- */

static void
read_note(struct fix *f, struct buf *out)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/crash/project-0.txt", f->dir);
	assert_int_equal(io_read_file(AT_FDCWD, path, 65536, out), 0);
	assert_non_null(buf_cstr(out));
}

static void
dies_with_last_words(struct fix *f, void (*die)(void), const char *words)
{
	CLEANUP(buf_done) struct buf note = BUF_INIT;
	char dir[100];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)dup2(null, STDERR_FILENO);
		(void)snprintf(dir, sizeof(dir), "%s/crash", f->dir);
		if (crash_catch(dir, "project/0") < 0)
			_exit(1);
		for (int i = 0; i < CRASH_TURNS + 3; i++)
			crash_note_turn(i < 3 ? "too.old" : "t.put", "req-7", E_BUSY, 42);
		crash_note_now("t.crash");
		die();
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	read_note(f, &note);
	assert_non_null(strstr((const char *)note.data, words));
	assert_non_null(strstr((const char *)note.data, "now: t.crash\n"));
	assert_non_null(strstr((const char *)note.data, "\nt.put req-7 -1007 42\n"));
	assert_null(strstr((const char *)note.data, "too.old"));
}

static void
break_promise(void)
{
	must(1 == 2);
}

static void
crash_leaves_last_words(void **state)
{
	dies_with_last_words(*state, abort, "signal 6 (ABRT)");
	dies_with_last_words(*state, break_promise, "broken promise: 1 == 2");
}

static void
the_last_turns_are_json(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(json_unrefp) json_t *j = NULL;

	(void)state;
	crash_note_turn("t.\"put\"", "r", 0, 7);
	assert_int_equal(crash_turns_json(&out), 0);
	assert_int_equal(json_text_parse((const char *)out.data, out.len, 8, &j), 0);
	assert_int_equal(json_array_size(j), 1);
	assert_string_equal(
	    json_string_value(json_object_get(json_array_get(j, 0), "method")), "t.\"put\"");
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(jobs_run_on_a_thread_in_order_and_end_on_the_loop),
		cmocka_unit_test_setup_teardown(
		    several_threads_work_at_once, setup_four, teardown),
		T(the_queue_is_bounded),
		cmocka_unit_test(a_worker_survives_every_failed_allocation),
		T(a_timer_fires_once_and_may_free_itself),
		T(a_watch_calls_while_there_is_something),
		T(crash_leaves_last_words),
		T(the_last_turns_are_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
