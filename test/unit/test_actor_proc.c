/*
 * test/unit/test_actor_proc.c -- a child of a supervisor, as a real process: its start object,
 * its lifeline, ready, SIGTERM, the command line.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
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

struct fix {
	char dir[64];
	struct actor *super; /* The supervisor: this process. */
	pid_t child;
	int lifeline; /* Its write end. */
	int nready;
	char ready_address[64];
	uint32_t ready_role;
};

/* ---- the supervisor ---- */

struct ready_params {
	char address[64];
};

static int
ready_decode(struct codec *c, const json_t *params, void *ret)
{
	struct ready_params *p = ret;
	const char *address = json_string_value(json_object_get(params, "address"));

	(void)c;
	if (address == NULL)
		return E_PARAMS;
	(void)snprintf(p->address, sizeof(p->address), "%s", address);
	return 0;
}

static int
ready_run(void *ctx, struct turn *t, const void *params, void *ret)
{
	const struct ready_params *p = params;
	struct fix *f = ctx;

	(void)ret;
	f->nready++;
	f->ready_role = t->from_role;
	(void)snprintf(f->ready_address, sizeof(f->ready_address), "%s", p->address);
	return 0;
}

static int
ready_encode(struct buf *out, const void *result)
{
	(void)result;
	return buf_add_str(out, "{\"kind\":\"ok\"}");
}

static const struct rpc_method super_methods[] = {
	{ .name = "supervisor.ready",
	    .from = ROLE_PROJECT,
	    .turn = RPC_TURN_WRITE,
	    .params_size = sizeof(struct ready_params),
	    .result_size = 1,
	    .decode = ready_decode,
	    .run = ready_run,
	    .encode = ready_encode },
};
static const size_t super_nmethods = 1;
static const struct actor_desc super_desc = {
	.role = ROLE_SUPERVISOR, .methods = super_methods, .nmethods = &super_nmethods
};

/* ---- the child ---- */

struct child {
	struct actor *a;
	int hups;
	struct actor_timer *timer;
};

static void
child_on_hup(void *ctx)
{
	struct child *c = ctx;

	c->hups++;
}

static void
child_inspect(void *ctx, struct buf *out)
{
	struct child *c = ctx;

	buf_printf(out, "{\"hups\":%d}", c->hups);
}

static void
child_on_end(void *ctx)
{
	struct child *c = ctx;

	c->timer = actor_timer_free(c->timer);
}

static void
never(void *arg)
{
	(void)arg;
}

static const struct proc_option options[] = {
	{ "SHARD", NULL, "number of the shard", 1 },
	{ "--listen-fds", "N", "listening sockets from descriptor 5 on", 0 },
	{ "--slow", NULL, "a switch", 0 },
};
static const struct proc_role role = { "anvil-test", "a child for tests", options,
	ARRAY_LEN(options), 0 };
static const struct actor_desc child_desc = { .role = ROLE_PROJECT,
	.nmethods = &super_nmethods,
	.on_hup = child_on_hup,
	.inspect = child_inspect,
	.on_end = child_on_end };

static int
child_main(int argc, char *argv[])
{
	struct proc *p = proc_start(&role, argc, argv);
	const char *dir = json_string_value(json_object_get(proc_config(p), "dir"));
	char address[32];
	struct actor_place place = { .address = address, .runtime_dir = dir };
	struct child c = { .hups = 0 };

	(void)snprintf(address, sizeof(address), "project/%s", proc_option(p, "SHARD"));
	if (proc_option_int(p, "--listen-fds", 0, 64, -1) != 3 || dir == NULL ||
	    proc_option(p, "--slow") != NULL || proc_keys(p) == NULL ||
	    strcmp(proc_boot_id(p), "boot") != 0 || proc_wants_check(p))
		proc_die(p, "the start object or the options are not what was given");
	c.a = proc_actor(p, &child_desc, &place, dir);
	proc_forget_start(p);
	c.timer = actor_timer_new(c.a, never, &c);
	(void)actor_timer_set(c.timer, 60000);
	return proc_run(p, &c);
}

/* ---- the fixture ---- */

/* Forks and becomes what an exec would make of it: descriptors 0..4 and nothing else. */
static pid_t
spawn(struct fix *f, int argc, char *argv[])
{
	CLEANUP(buf_done) struct buf start = BUF_INIT;
	int fds[2], life[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	buf_printf(&start,
	    "{\"config\":{\"dir\":\"%s\"},\"keys\":{\"1\":\"secret\"},\"supervisorPid\":%d,"
	    "\"bootId\":\"boot\"}",
	    f->dir, (int)getpid());
	assert_int_equal(io_write_all(fds[1], start.data, start.len), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int start_fd = fcntl(fds[0], F_DUPFD, 100),
		    life_fd = fcntl(life[0], F_DUPFD, 100);
		int null = open("/dev/null", O_RDWR);

		(void)dup2(null, 0);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)dup2(start_fd, PROC_FD_START);
		(void)dup2(life_fd, PROC_FD_LIFELINE);
		for (int fd = PROC_FD_FIRST; fd < 200; fd++)
			(void)close(fd);
		_exit(child_main(argc, argv));
	}
	close(fds[0]);
	close(fds[1]);
	close(life[0]);
	f->lifeline = life[1];
	return pid;
}

static int
setup(void **state)
{
	char *argv[] = { (char[]) { "anvil-test" }, (char[]) { "--listen-fds" },
		(char[]) { "3" }, (char[]) { "2" }, NULL };
	struct fix *f = calloc(1, sizeof(*f));
	struct actor_place place = { .address = "supervisor" };
	char *why = NULL;

	assert_non_null(f);
	log_set_level(LOG_LEVEL_ERROR);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/anvil-proc-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	place.runtime_dir = f->dir;
	f->child = spawn(f, 4, argv);
	assert_int_equal(actor_new(&super_desc, &place, &f->super, &why), 0);
	actor_set_ctx(f->super, f);
	*state = f;
	return 0;
}

/* The child's exit status, as waitpid() tells it. */
static int
reap(struct fix *f)
{
	int status;

	while (waitpid(f->child, &status, WNOHANG) == 0)
		(void)event_base_loop(actor_loop(f->super), EVLOOP_NONBLOCK);
	f->child = 0;
	return status;
}

static int
teardown(void **state)
{
	struct fix *f = *state;
	char command[200];

	if (f->child > 0) {
		(void)kill(f->child, SIGKILL);
		(void)reap(f);
	}
	io_close(&f->lifeline);
	f->super = actor_free(f->super);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* An unknown child is refused; once it is announced it comes in and is ready. */
static void
wait_ready(struct fix *f)
{
	assert_int_equal(actor_announce(f->super, "project/2", f->child), 0);
	while (f->nready == 0)
		(void)event_base_loop(actor_loop(f->super), EVLOOP_ONCE);
}

struct waiting {
	int done, err;
	int hups;
};

static void
on_inspected(void *arg, const struct rpc_answer *a)
{
	struct waiting *w = arg;

	w->done = 1;
	w->err = a->err;
}

static void
a_child_starts_says_ready_and_ends_at_sigterm(void **state)
{
	struct fix *f = *state;
	struct waiting w = { 0 };

	wait_ready(f);
	assert_string_equal(f->ready_address, "project/2");
	assert_int_equal(f->ready_role, ROLE_PROJECT);
	/* The supervisor calls over the connection that the child has made. */
	assert_int_equal(rpc_send(actor_peer(f->super, "project/2"), "actor.info", NULL, NULL,
			     on_inspected, &w),
	    0);
	while (!w.done)
		(void)event_base_loop(actor_loop(f->super), EVLOOP_ONCE);
	assert_int_equal(w.err, 0);
	assert_int_equal(kill(f->child, SIGHUP), 0);
	assert_int_equal(kill(f->child, SIGTERM), 0);
	assert_int_equal(reap(f), 0);
}

static void
a_child_ends_when_its_lifeline_does(void **state)
{
	struct fix *f = *state;

	wait_ready(f);
	io_close(&f->lifeline);
	assert_int_equal(reap(f), 0);
}

static void
a_child_comes_back_to_a_supervisor_that_hung_up(void **state)
{
	struct fix *f = *state;

	wait_ready(f);
	rpc_peer_close(actor_peer(f->super, "project/2"), E_LINK);
	while (f->nready < 2)
		(void)event_base_loop(actor_loop(f->super), EVLOOP_ONCE);
}

/* ---- the command line ---- */

static int
exit_status_of(const char *a, const char *b, const char *c)
{
	char words[3][32];
	char *argv[] = { (char[]) { "anvil-test" }, words[0], words[1], words[2], NULL };
	const char *given[] = { a, b, c };
	int argc = 1, status;
	pid_t pid;

	for (size_t i = 0; i < 3 && given[i] != NULL; i++, argc++)
		(void)snprintf(words[i], sizeof(words[i]), "%s", given[i]);
	argv[argc] = NULL;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)close(PROC_FD_START);
		(void)proc_start(&role, argc, argv);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
mistakes_on_the_command_line_end_with_64(void **state)
{
	(void)state;
	assert_int_equal(exit_status_of("--help", NULL, NULL), 0);
	assert_int_equal(exit_status_of("--version", NULL, NULL), 0);
	assert_int_equal(exit_status_of(NULL, NULL, NULL), 64);
	assert_int_equal(exit_status_of("--what", "1", NULL), 64);
	assert_int_equal(exit_status_of("1", "2", NULL), 64);
	assert_int_equal(exit_status_of("1", "--listen-fds", NULL), 64);
	/* All is well but for the start object. */
	assert_int_equal(exit_status_of("1", NULL, NULL), 64);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(a_child_starts_says_ready_and_ends_at_sigterm),
		T(a_child_ends_when_its_lifeline_does),
		T(a_child_comes_back_to_a_supervisor_that_hung_up),
		cmocka_unit_test(mistakes_on_the_command_line_end_with_64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
