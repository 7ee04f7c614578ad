/*
 * The interface of the sandbox drivers: what each call does, with either driver.  What a step
 * sees is the matter of test_sandbox_conformance.c, what bounds it of test_sandbox_cgroup.c.
 *
 * As root it runs as an unprivileged user, in a child; root itself is only refused.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/sandbox.h"
#include "test/support/sandbox_box.h"

#define NOBODY   65534
#define HEADLESS "headless"

static void
status_and_signal_are_told_apart(void **state)
{
	struct box *b = *state;

	(void)box_run_shell(b, "true");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 0);
	(void)box_run_shell(b, "exit 77");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 77);
	(void)box_run_shell(b, "kill -SEGV $$");
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGSEGV);
	(void)box_run_shell(b, "sh -c 'kill -9 $$'; true");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 137);
	assert_int_equal(b->result.nleft, 0);
}

static void
workspace_persists_and_processes_do_not(void **state)
{
	struct box *b = *state;

	(void)box_run_shell(b, "echo kept > file; sleep 1000 & cd /; export Y=1");
	assert_string_equal(
	    box_run_shell(b, "cat file; echo ${Y-unset}; jobs"), "kept\nunset\n");
}

static void
leftovers_are_killed_and_named(void **state)
{
	struct box *b = *state;

	/* A job, one in its own session, and a daemon whose parent has ended.  Each has the
	 * pipe, so reading to its end is the proof. */
	(void)box_run_shell(b,
	    "sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & wait' &); "
	    "while [ $(grep -l sleep /proc/[0-9]*/comm 2> /dev/null | wc -l) -lt 3 ]; do :; done");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 0);
	assert_int_equal(b->result.nleft, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_true(strcmp(b->result.left[i].name, "sleep") == 0 ||
		    strcmp(b->result.left[i].name, "sh") == 0);
		assert_true(b->result.left[i].pid > 1);
	}
}

static void
many_leftovers_are_counted_and_ten_named(void **state)
{
	struct box *b = *state;

	(void)box_run_shell(
	    b, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 1000 & done");
	assert_int_equal(b->result.nleft, 15);
	assert_true(b->result.left[SANDBOX_LEFT_MAX - 1].pid > 1);
}

static void
processes_that_breed_are_all_killed(void **state)
{
	struct box *b = *state;

	(void)box_run_shell(b,
	    "cat > breed <<'E'\ntrap '' TERM INT HUP\nwhile :; do sleep 0.01 & sleep 0.01; done\nE\n"
	    "for i in 1 2 3; do setsid sh breed & done; sleep 0.05");
	assert_true(b->result.nleft >= 3);
}

/* Each lives just long enough to begin the next one, for some seconds. */
static void
processes_that_move_on_are_met(void **state)
{
	struct box *b = *state;

	(void)box_run_shell(b,
	    "echo '[ $1 = 5000 ] || sh hop $(($1 + 1)) &' > hop\n"
	    "for i in 1 2 3; do setsid sh hop 0 & done; sleep 0.05");
	assert_int_equal(b->result.code, 0);
	assert_true(b->result.nleft >= 3);
}

static void *
outlive_the_first(void *arg)
{
	(void)pause();
	return arg;
}

/* A step of its own: leaves a process behind whose first thread has ended. */
static int
leave_headless(void)
{
	char path[32], text[256] = "";
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(5); /* Should nobody kill it. */
		must(pthread_create(&thread, NULL, outlive_the_first, NULL) == 0);
		pthread_exit(NULL);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (strstr(text, ") Z ") == NULL) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		must(n > 0 && close(fd) == 0);
		text[n] = '\0';
	}
	return 0;
}

static void
process_without_its_first_thread_is_no_dead_one(void **state)
{
	struct box *b = *state;
	char self[512] = "";
	const char *const argv[] = { self, HEADLESS, NULL };

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	b->limits.memory_bytes = 0; /* A sanitizer asks for much. */
	box_close(b);
	box_open(b);
	(void)box_run_argv(b, argv, ".");
	assert_int_equal(b->result.code, 0);
	assert_int_equal(b->result.nleft, 1);
}

static size_t
dead_children(void)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

static void
orphans_are_reaped_while_their_step_runs(void **state)
{
	struct box *b = *state;

	assert_int_equal(box_spawn_shell(b, "(true &); (true &); echo made; sleep 1000"), 0);
	box_await_text(b, "made");
	while (!dead_children())
		;
	while (dead_children())
		b->driver->tend(b->sb);
	assert_int_equal(b->driver->signal(b->sb, SIGKILL), 0);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGKILL);
}

static void
term_reaches_every_process_and_kill_cannot_be_outlived(void **state)
{
	struct box *b = *state;

	assert_int_equal(box_spawn_shell(b, "echo ready; sleep 1000 & setsid sleep 1001"), 0);
	box_await_text(b, "ready");
	assert_int_equal(b->driver->signal(b->sb, SIGTERM), 0);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGTERM);
	(void)box_drain(b);

	assert_int_equal(
	    box_spawn_shell(
		b, "trap 'echo heard' TERM; echo ready; while :; do sleep 0.01 || true; done"),
	    0);
	box_await_text(b, "ready");
	assert_int_equal(b->driver->signal(b->sb, SIGTERM), 0);
	box_await_text(b, "heard");
	assert_int_equal(b->driver->signal(b->sb, SIGKILL), 0);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGKILL);
	(void)box_drain(b);
}

static void
stopped_process_hears_term(void **state)
{
	struct box *b = *state;

	assert_int_equal(box_spawn_shell(b, "(echo ready; kill -STOP $BASHPID) ; true"), 0);
	box_await_text(b, "ready");
	assert_int_equal(b->driver->signal(b->sb, SIGTERM), 0);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	(void)box_drain(b);
}

static void
no_kind_of_leftover_stays(void **state)
{
	struct box *b = *state;

	/* One that is stopped, one that hears nothing, one whose parents have gone, each in a
	 * session of its own; the step waits until they are what they are to be. */
	(void)box_run_shell(b,
	    "setsid sh -c 'kill -STOP $$; echo woke' & stopped=$!\n"
	    "setsid sh -c 'trap \"\" HUP INT TERM; echo > deaf; while :; do read x < fifo; done' &\n"
	    "mkfifo fifo\n"
	    "(setsid sh -c '(echo > orphan; exec sleep 1003) &' &)\n"
	    "until [ -e deaf ] && [ -e orphan ] && grep -q 'State:.T' /proc/$stopped/status; "
	    "do :; done");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 0);
	assert_true(b->result.nleft >= 3);
	assert_null(strstr(buf_cstr(&b->out), "woke"));
}

/* ---- signals while a step is started ------------------------------------------------ */

/* The fork handler and the signal handler have no other way to be told. */
static struct {
	int armed;
	int forked[2], handled[2];
} shield;

static void
on_forked(void)
{
	if (!shield.armed)
		return;
	(void)!write(shield.forked[1], "f", 1);
	(void)raise(SIGURG);
}

static void
on_urg(int sig)
{
	(void)sig;
	(void)!write(shield.handled[1], "h", 1);
}

static void
signal_between_fork_and_exec_runs_no_handler(void **state)
{
	struct box *b = *state;
	struct sigaction act = { .sa_handler = on_urg }, was;
	sigset_t before, after;
	char byte;

	assert_int_equal(pipe2(shield.forked, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(shield.handled, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(sigaction(SIGURG, &act, &was), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
	shield.armed = 1;
	assert_int_equal(box_spawn_shell(b, "echo fine"), 0);
	shield.armed = 0;
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
	box_await(b);
	assert_string_equal(box_drain(b), "fine\n");
	assert_int_equal(read(shield.forked[0], &byte, 1), 1);
	assert_int_equal(read(shield.handled[0], &byte, 1), -1);
	assert_int_equal(sigaction(SIGURG, &was, NULL), 0);
	for (int i = 0; i < 2; i++) {
		(void)close(shield.forked[i]);
		(void)close(shield.handled[i]);
	}
}

static void
directory_must_be_beneath_the_workspace(void **state)
{
	struct box *b = *state;
	const char *const argv[] = { "sh", "-c", "basename $(pwd -P)", NULL };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/sub", b->ws);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/inner", b->ws);
	assert_int_equal(symlink("sub", path), 0);
	(void)snprintf(path, sizeof(path), "%s/outer", b->ws);
	assert_int_equal(symlink("..", path), 0);
	(void)snprintf(path, sizeof(path), "%s/away", b->ws);
	assert_int_equal(symlink("/tmp", path), 0);
	box_make_file(b->ws, "file", "");
	assert_string_equal(box_run_argv(b, argv, "sub"), "sub\n");
	assert_string_equal(box_run_argv(b, argv, "./inner"), "sub\n");
	assert_string_equal(box_run_argv(b, argv, "sub/../inner"), "sub\n");
	assert_int_equal(box_spawn(b, argv, "outer"), E_NOENT);
	assert_int_equal(box_spawn(b, argv, "away"), E_NOENT);
	assert_int_equal(box_spawn(b, argv, ".."), E_NOENT);
	assert_int_equal(box_spawn(b, argv, "gone"), E_NOENT);
	assert_int_equal(box_spawn(b, argv, "file"), E_NOENT);
	assert_string_equal(box_run_argv(b, argv, "sub"), "sub\n");
}

static void
missing_program_is_a_broken_step(void **state)
{
	struct box *b = *state;
	const char *const argv[] = { "no-such-program", NULL };

	(void)box_run_argv(b, argv, ".");
	assert_int_equal(b->result.end, SANDBOX_BROKEN);
	assert_string_equal(b->result.problem.reason,
	    "the step's shell did not start: No such file or directory");
}

static void
oversized_order_is_refused_and_the_next_one_runs(void **state)
{
	struct box *b = *state;
	char *huge = mem_alloc(100000);
	const char *const argv[] = { "echo", huge, NULL };
	const char *const small[] = { "echo", "x", NULL };

	assert_non_null(huge);
	memset(huge, 'x', 99999);
	huge[99999] = '\0';
	assert_int_equal(box_spawn(b, argv, "."), E_SANDBOX);
	assert_string_equal(box_run_argv(b, small, "."), "x\n");
	(void)mem_free(huge);
}

static void
prepared_surroundings_serve_the_next_step(void **state)
{
	struct box *b = *state;

	for (int i = 0; i < 3; i++) {
		b->driver->prepare(b->sb);
		b->driver->prepare(b->sb);
		/* Made after the preparation, seen all the same. */
		box_make_file(b->ws, "late", "late\n");
		assert_string_equal(box_run_shell(b, "cat late; rm late"), "late\n");
		assert_int_equal(b->result.end, SANDBOX_EXITED);
	}
	b->driver->prepare(b->sb);
	box_close(b);
}

static void
close_ends_a_running_step(void **state)
{
	struct box *b = *state;

	assert_int_equal(
	    box_spawn_shell(
		b, "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 1; done"),
	    0);
	box_await_text(b, "ready");
	box_close(b);
	(void)box_drain(b);
}

static void
close_right_after_spawn_ends_the_step(void **state)
{
	struct box *b = *state;

	for (int i = 0; i < 20; i++) {
		if (b->sb == NULL)
			box_open(b);
		assert_int_equal(box_spawn_shell(b, "while :; do sleep 1; done"), 0);
		box_close(b);
		(void)box_drain(b);
	}
}

/* At any point of its start, so that one of these hits each. */
static void
bwrap_killed_while_it_starts_leaves_nothing(void **state)
{
	struct box *b = *state;

	for (int i = 0; i < 60; i++) {
		struct pollfd none = { .fd = -1, .events = 0 };
		struct timespec wait = { 0, i * 50000 };

		assert_int_equal(box_spawn_shell(b, "sleep 1000"), 0);
		(void)ppoll(&none, 1, &wait, NULL);
		assert_int_equal(io_pidfd_signal(sandbox_process_fd(b->process), SIGKILL), 0);
		box_await(b);
		(void)box_drain(b);
	}
}

static void
step_dies_with_its_run(void **state)
{
	struct box *b = *state;
	int pipe_fds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		const char *const argv[] = { "sh", "-c", "echo ready; exec sleep 1000", NULL };
		const struct sandbox_step step = { argv, box_env, ".", pipe_fds[1],
			pipe_fds[1] };

		(void)close(pipe_fds[0]);
		(void)prctl(PR_SET_DUMPABLE, 0);
		if (b->driver->spawn(b->sb, &step, &b->process, &b->problem) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(pipe_fds[1]);
	b->out_fd = pipe_fds[0];
	box_await_text(b, "ready");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)box_drain(b);
}

static void
bwrap_killed_from_outside_takes_the_step_along(void **state)
{
	struct box *b = *state;

	assert_int_equal(box_spawn_shell(b, "echo ready; sleep 1000"), 0);
	box_await_text(b, "ready");
	assert_int_equal(io_pidfd_signal(sandbox_process_fd(b->process), SIGKILL), 0);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGKILL);
	(void)box_drain(b);
}

static void
bwrap_that_fails_says_why(void **state)
{
	struct box *b = *state;

	box_close(b);
	b->paths.objects = "/nonexistent/objects";
	box_open(b);
	(void)box_run_shell(b, "true");
	assert_int_equal(b->result.end, SANDBOX_BROKEN);
	assert_non_null(strstr(b->result.problem.reason, "/nonexistent/objects"));
}

static void
bwrap_shows_nothing_of_the_host(void **state)
{
	struct box *b = *state;
	char command[256];

	(void)snprintf(command, sizeof(command),
	    "ls -d %s /proc/%d /run/anvil /var /root /srv 2> /dev/null; kill -0 %d 2> /dev/null && "
	    "echo sees; true",
	    b->base, getpid(), getpid());
	assert_string_equal(box_run_shell(b, command), "");
}

static void
missing_init_is_said_at_open(void **state)
{
	struct box *b = *state;

	box_close(b);
	b->paths.init_path = "/nonexistent/anvil-init";
	assert_int_equal(
	    b->driver->open(&b->paths, &b->limits, &b->sb, &b->problem), E_SANDBOX);
	b->sb = NULL;
	assert_non_null(strstr(b->problem.reason, "/nonexistent/anvil-init"));
}

static void
every_failed_allocation_is_survived(void **state)
{
	struct box *b = *state;
	const char *const argv[] = { "echo", "x", NULL };
	long n;

	box_close(b);
	for (n = 0;; n++) {
		int r, hit;

		mem_fault_arm(n);
		r = b->driver->open(&b->paths, &b->limits, &b->sb, &b->problem);
		if (r == 0)
			r = box_spawn(b, argv, ".");
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		if (r == 0) {
			box_await(b);
			assert_string_equal(box_drain(b), "x\n");
		}
		if (b->sb != NULL)
			box_close(b);
		if (!hit)
			break;
		assert_int_equal(r, E_NOMEM);
	}
	assert_true(n > 0);
}

/* By whom depends on the host. */
static void
description_names_driver_and_limits(void **state)
{
	struct box *b = *state;
	char text[1024];

	b->driver->describe(b->sb, text, sizeof(text));
	assert_non_null(
	    strstr(text, box_is_bwrap(b) ? "Sandbox: bwrap. " : "Sandbox: none. Steps run"));
	assert_non_null(strstr(text, "\nLimits: memory 1073741824 bytes "));
	assert_true(strstr(text, "; processes 2345 (RLIMIT_NPROC).\n") != NULL ||
	    strstr(text, "; processes 2345 (cgroup v") != NULL);
}

static void
probe_finds_the_driver_usable(void **state)
{
	struct box *b = *state;
	struct sandbox_problem problem = { 0 };

	assert_int_equal(b->driver->probe(&problem), 0);
}

static void
drivers_are_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(sandbox_driver_find("bwrap"), &sandbox_driver_bwrap);
	assert_ptr_equal(sandbox_driver_find("none"), &sandbox_driver_none);
	assert_null(sandbox_driver_find("podman"));
	assert_null(sandbox_driver_find(""));
}

static void
root_is_refused_with_the_remedy(void **state)
{
	struct sandbox_problem problem = { 0 };
	struct sandbox_paths paths = { 0 };
	struct sandbox_limits limits = { 0, 0 };
	struct sandbox *sb;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(sandbox_driver_bwrap.probe(&problem), E_SANDBOX);
	assert_non_null(strstr(problem.reason, "root"));
	assert_non_null(strstr(problem.remedy, "user:"));
	assert_int_equal(sandbox_driver_bwrap.open(&paths, &limits, &sb, &problem), E_SANDBOX);
}

/* ---- running ------------------------------------------------------------------------ */

#define BWRAP(fn)                                                   \
	{                                                           \
		"bwrap: " #fn, fn, box_make_bwrap, box_remove, NULL \
	}
#define NONE(fn)                                                  \
	{                                                         \
		"none: " #fn, fn, box_make_none, box_remove, NULL \
	}
#define BOTH(fn) BWRAP(fn), NONE(fn)

static int
run_unprivileged(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(status_and_signal_are_told_apart),
		BOTH(workspace_persists_and_processes_do_not),
		BOTH(leftovers_are_killed_and_named),
		BOTH(many_leftovers_are_counted_and_ten_named),
		BOTH(processes_that_breed_are_all_killed),
		NONE(processes_that_move_on_are_met),
		NONE(process_without_its_first_thread_is_no_dead_one),
		NONE(orphans_are_reaped_while_their_step_runs),
		BOTH(term_reaches_every_process_and_kill_cannot_be_outlived),
		BOTH(stopped_process_hears_term),
		BOTH(no_kind_of_leftover_stays),
		BOTH(signal_between_fork_and_exec_runs_no_handler),
		BOTH(directory_must_be_beneath_the_workspace),
		BOTH(missing_program_is_a_broken_step),
		BOTH(oversized_order_is_refused_and_the_next_one_runs),
		BOTH(prepared_surroundings_serve_the_next_step),
		BOTH(close_ends_a_running_step),
		BOTH(close_right_after_spawn_ends_the_step),
		BOTH(step_dies_with_its_run),
		BWRAP(bwrap_killed_from_outside_takes_the_step_along),
		BWRAP(bwrap_killed_while_it_starts_leaves_nothing),
		BWRAP(bwrap_that_fails_says_why),
		BWRAP(bwrap_shows_nothing_of_the_host),
		BOTH(missing_init_is_said_at_open),
		BOTH(every_failed_allocation_is_survived),
		BOTH(description_names_driver_and_limits),
		BOTH(probe_finds_the_driver_usable),
	};

	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	must(pthread_atfork(NULL, NULL, on_forked) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In a child, because nothing takes root back, and because `none` counts every descendant. */
static int
run_in_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (geteuid() == 0)
			must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 &&
			    setuid(NOBODY) == 0);
		/* The leak check reads the process's own memory maps. */
		must(prctl(PR_SET_DUMPABLE, 1) == 0);
		exit(run_unprivileged() != 0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status != 0;
}

int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drivers_are_found_by_name),
		cmocka_unit_test(root_is_refused_with_the_remedy),
	};

	if (argc > 1 && strcmp(argv[1], SANDBOX_INIT_NAME) == 0)
		_exit(sandbox_init_main(argc, argv));
	if (argc > 1 && strcmp(argv[1], HEADLESS) == 0)
		_exit(leave_headless());
	return cmocka_run_group_tests(tests, NULL, NULL) != 0 || run_in_child() != 0;
}
