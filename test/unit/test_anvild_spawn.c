/* cmd/anvild/spawn.c: a child runs nothing before its gate opens, and has what was promised. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvild/spawn.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define WAIT_MS 10000

/* A shell that writes into ${dir}/out what ${script} says. */
struct sh {
	char *dir;
	char script[512];
	struct spawn_desc d;
};

static void
sh_init(struct sh *sh, const char *script)
{
	*sh = (struct sh) { .dir = scratch_new() };
	(void)snprintf(sh->script, sizeof(sh->script),
	    "cd %s && { %s ; } >out.tmp && mv out.tmp out", sh->dir, script);
	sh->d = (struct spawn_desc) { .program = "/bin/sh",
		.argv = { "sh", "-c", sh->script },
		.start_fd = spawn_memfd("start", 5),
		.lifeline_fd = -1 };
	assert_true(sh->d.start_fd >= 0);
}

static void
sh_done(struct sh *sh)
{
	int fd = sh->d.start_fd;

	io_close(&fd);
	scratch_free(sh->dir);
}

static void
sh_read(const struct sh *sh, struct buf *out)
{
	CLEANUP_FREE char *path = mem_format("%s/out", sh->dir);

	assert_int_equal(io_read_file(AT_FDCWD, path, 65536, out), 0);
	assert_non_null(buf_cstr(out));
}

static int
reap(struct spawned *s)
{
	struct pollfd p = { .fd = s->pidfd, .events = POLLIN };
	int status;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	io_close(&s->pidfd);
	io_close(&s->gate_fd);
	return status;
}

static void
a_child_runs_when_its_gate_opens_and_not_before(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct spawned s;
	struct pollfd p;
	struct sh sh;
	uint64_t ticks;

	(void)state;
	sh_init(&sh, "cat <&3");
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	assert_int_equal(io_proc_start_time(s.pid, &ticks), 0);
	assert_int_equal(ticks, s.start_ticks);
	/* It is there, and has done nothing: time alone does not open a gate. */
	p = (struct pollfd) { .fd = s.pidfd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 100), 0);
	{
		CLEANUP_FREE char *path = mem_format("%s/out.tmp", sh.dir);

		assert_int_equal(access(path, F_OK), -1);
	}
	spawn_open(&s);
	assert_int_equal(reap(&s), 0);
	sh_read(&sh, &out);
	assert_string_equal((const char *)out.data, "start");
	sh_done(&sh);
}

static void
a_child_whose_gate_is_never_opened_ends_without_having_run(void **state)
{
	CLEANUP_FREE char *path = NULL;
	struct spawned s;
	struct sh sh;

	(void)state;
	sh_init(&sh, "echo ran");
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_abandon(&s);
	assert_int_equal(s.pid, -1);
	path = mem_format("%s/out", sh.dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped already */
	sh_done(&sh);
}

static void
a_child_at_its_gate_ends_with_its_parent(void **state)
{
	struct pollfd p;
	struct sh sh;
	int pipe_fds[2];
	pid_t parent, child;

	(void)state;
	sh_init(&sh, "echo ran");
	assert_int_equal(pipe(pipe_fds), 0);
	parent = fork();
	if (parent == 0) {
		struct spawned s;

		if (spawn_fork(&sh.d, &s) == 0)
			(void)io_write_all(pipe_fds[1], &s.pid, sizeof(s.pid));
		(void)raise(SIGKILL);
	}
	assert_int_equal(read(pipe_fds[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	p = (struct pollfd) { .fd = io_pidfd_open(child), .events = POLLIN };
	if (p.fd >= 0)
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	io_close(&p.fd);
	io_close(&pipe_fds[0]);
	io_close(&pipe_fds[1]);
	{
		CLEANUP_FREE char *path = mem_format("%s/out", sh.dir);

		assert_int_equal(access(path, F_OK), -1);
	}
	sh_done(&sh);
}

/* Not in one pipe: the shell would hold its ends while `ls` looks. */
#define LIST_FDS                                                                              \
	"ls /proc/$$/fd >/tmp/anvil-fds.$$; sort -n /tmp/anvil-fds.$$ | sed '/^[0-9]$/!d' | " \
	"tr -d '\\n'; rm /tmp/anvil-fds.$$"

/* Numbers from 10 on are the shell's own. */
static void
expect_fds(const char *listed, const char *want)
{
	if (strcmp(listed, want) != 0)
		fail_msg("descriptors are \"%s\" instead of \"%s\"", listed, want);
}

static void
a_child_has_the_descriptors_meant_for_it_and_no_other(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int life[2], listening[2], noise[64];
	struct spawned s;
	struct sh sh;

	(void)state;
	/* What must not get through, with and without close-on-exec. */
	for (size_t i = 0; i < ARRAY_LEN(noise); i++)
		noise[i] = open("/dev/null", i % 2 ? O_RDONLY : O_RDONLY | O_CLOEXEC);
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	assert_int_equal(pipe2(listening, O_CLOEXEC), 0);
	sh_init(&sh,
	    "readlink /proc/$$/fd/0 /proc/$$/fd/3 /proc/$$/fd/4 /proc/$$/fd/5"
	    " /proc/$$/fd/6 | sed 's/:.*//;s/ .*//'; " LIST_FDS);
	sh.d.lifeline_fd = life[0];
	sh.d.more_fds[0] = listening[0];
	sh.d.more_fds[1] = listening[1];
	sh.d.nmore_fds = 2;
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_open(&s);
	assert_int_equal(reap(&s), 0);
	sh_read(&sh, &out);
	expect_fds((const char *)out.data, "/dev/null\n/memfd\npipe\npipe\npipe\n0123456");
	for (size_t i = 0; i < ARRAY_LEN(noise); i++)
		io_close(&noise[i]);
	for (int i = 0; i < 2; i++) {
		io_close(&life[i]);
		io_close(&listening[i]);
	}
	sh_done(&sh);
}

static void
a_child_without_a_lifeline_has_no_fourth_descriptor(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct spawned s;
	struct sh sh;

	(void)state;
	sh_init(&sh, LIST_FDS);
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_open(&s);
	assert_int_equal(reap(&s), 0);
	sh_read(&sh, &out);
	expect_fds((const char *)out.data, "0123");
	sh_done(&sh);
}

static void
descriptors_that_are_where_others_belong_are_not_lost(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int ends[2], start;
	struct spawned s;
	struct sh sh;
	pid_t pid;

	(void)state;
	sh_init(&sh, "cat <&3; cat <&5; cat <&6");
	pid = fork();
	if (pid == 0) {
		/* Every number is another's: 3 is a socket's, 5 and 6 change places. */
		start = fcntl(sh.d.start_fd, F_DUPFD, 50);
		if (pipe(ends) < 0 || write(ends[1], "six", 3) != 3 || close(ends[1]) < 0)
			_exit(1);
		ends[0] = fcntl(ends[0], F_DUPFD, 60);
		ends[1] = spawn_memfd("five", 4);
		ends[1] = fcntl(ends[1], F_DUPFD, 60);
		if (dup2(ends[0], 5) < 0 || dup2(ends[1], 6) < 0 || dup2(start, 4) < 0)
			_exit(1);
		(void)dup2(open("/dev/zero", O_RDONLY), 3);
		sh.d.start_fd = 4;
		sh.d.more_fds[0] = 6;
		sh.d.more_fds[1] = 5;
		sh.d.nmore_fds = 2;
		if (spawn_fork(&sh.d, &s) < 0)
			_exit(1);
		spawn_open(&s);
		_exit(waitpid(s.pid, NULL, 0) == s.pid ? 0 : 1);
	}
	{
		int status;

		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	sh_read(&sh, &out);
	assert_string_equal((const char *)out.data, "startfivesix");
	sh_done(&sh);
}

static void
a_child_has_signals_as_they_are_by_default_and_a_session_of_its_own(void **state)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	sigset_t set, old;
	char want[128];
	struct spawned s;
	struct sh sh;

	(void)state;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	(void)sigaction(SIGPIPE, &ignore, &before);
	sh_init(&sh,
	    /* Signals 32 and 33 are the C library's own: nobody can set them back. */
	    "grep -E '^Sig(Blk|Ign)' /proc/self/status | sed 's/0000000180000000/"
	    "0000000000000000/' | tr -d '\\n\\t'; "
	    "cut -d' ' -f6 /proc/$$/stat | tr -d '\\n'");
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_open(&s);
	(void)snprintf(
	    want, sizeof(want), "SigBlk:0000000000000000SigIgn:0000000000000000%d", (int)s.pid);
	assert_int_equal(reap(&s), 0);
	sh_read(&sh, &out);
	assert_string_equal((const char *)out.data, want);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)sigaction(SIGPIPE, &before, NULL);
	sh_done(&sh);
}

static void
a_program_that_is_not_there_ends_with_127(void **state)
{
	struct spawned s;
	struct sh sh;
	int status;

	(void)state;
	sh_init(&sh, "true");
	sh.d.program = "/nowhere/to/be/found";
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_open(&s);
	status = reap(&s);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 127);
	sh_done(&sh);
}

static void
two_children_at_their_gates_do_not_hold_each_other(void **state)
{
	struct spawned a, b;
	struct sh sh;

	(void)state;
	sh_init(&sh, "true");
	assert_int_equal(spawn_fork(&sh.d, &a), 0);
	assert_int_equal(spawn_fork(&sh.d, &b), 0);
	spawn_abandon(&a); /* would hang if b had a's gate */
	spawn_abandon(&b);
	sh_done(&sh);
}

static void
no_descriptor_is_left_behind(void **state)
{
	int before = scratch_open_fds();
	struct spawned s;
	struct sh sh;

	(void)state;
	sh_init(&sh, "true");
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_abandon(&s);
	assert_int_equal(spawn_fork(&sh.d, &s), 0);
	spawn_open(&s);
	(void)reap(&s);
	sh_done(&sh);
	assert_int_equal(scratch_open_fds(), before);
}

static void
a_start_text_cannot_be_changed_any_more(void **state)
{
	int fd = spawn_memfd("secret", 6);
	char got[8];

	(void)state;
	assert_int_equal(read(fd, got, sizeof(got)), 6);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 100), -1);
	io_close(&fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_runs_when_its_gate_opens_and_not_before),
		cmocka_unit_test(a_child_whose_gate_is_never_opened_ends_without_having_run),
		cmocka_unit_test(a_child_at_its_gate_ends_with_its_parent),
		cmocka_unit_test(a_child_has_the_descriptors_meant_for_it_and_no_other),
		cmocka_unit_test(a_child_without_a_lifeline_has_no_fourth_descriptor),
		cmocka_unit_test(descriptors_that_are_where_others_belong_are_not_lost),
		cmocka_unit_test(
		    a_child_has_signals_as_they_are_by_default_and_a_session_of_its_own),
		cmocka_unit_test(a_program_that_is_not_there_ends_with_127),
		cmocka_unit_test(two_children_at_their_gates_do_not_hold_each_other),
		cmocka_unit_test(no_descriptor_is_left_behind),
		cmocka_unit_test(a_start_text_cannot_be_changed_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
