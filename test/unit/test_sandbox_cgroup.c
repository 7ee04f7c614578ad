/*
 * Limits of a step by whatever holds them here: cgroup v2, cgroup v1, rlimits.
 *
 * As whoever runs it, the tests look at what that user can have.  As root they make groups,
 * give them to nobody and run once more within, as nobody.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/box.h"
#include "lib/sandbox/cgroup.h"
#include "lib/sandbox/sandbox.h"
#include "test/support/sandbox_box.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

#define NOBODY    65534
#define MEMORY    (96 << 20)
#define PROCESSES 80

/* tail keeps a line of any length. */
#define HOG "head -c 600000000 /dev/zero | tail > /dev/null"

/* ---- where a process is ------------------------------------------------------------- */

static const char v2_only[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char v1_and_v2[] =
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 master:1 - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "39 31 0:36 /docker/x /sys/fs/my\\040cg/pids rw - cgroup cgroup rw,pids\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

struct path_row {
	const char *mounts, *self, *controller, *want;
};

static const struct path_row path_rows[] = {
	{ v2_only, "0::/system.slice/anvil.service\n", NULL,
	    "/sys/fs/cgroup/system.slice/anvil.service" },
	{ v2_only, "0::/a:b/c", NULL, "/sys/fs/cgroup/a:b/c" },
	{ v2_only, "0::/\n", NULL, "/sys/fs/cgroup" },
	{ v2_only, "0::/x\n", "memory", NULL },
	{ v2_only, "0::/../outside\n", NULL, NULL },
	{ v2_only, "", NULL, NULL },
	{ v1_and_v2, "4:memory:/a/b\n0::/v2\n", "memory", "/sys/fs/cgroup/memory/a/b" },
	{ v1_and_v2, "4:memory:/a/b\n0::/v2\n", NULL, "/sys/fs/cgroup/unified/v2" },
	{ v1_and_v2, "3:cpu,cpuacct:/c\n", "cpuacct", "/sys/fs/cgroup/cpu,cpuacct/c" },
	{ v1_and_v2, "3:cpu,cpuacct:/c\n", "cpua", NULL },
	{ v1_and_v2, "8:pids:/docker/x/in\n", "pids", "/sys/fs/my cg/pids/in" },
	{ v1_and_v2, "8:pids:/docker/x\n", "pids", "/sys/fs/my cg/pids" },
	{ v1_and_v2, "8:pids:/docker/xy\n", "pids", NULL },
	{ v1_and_v2, "8:pids:/\n", "pids", NULL },
	{ "", "0::/x\n", NULL, NULL },
	{ "35 31 0:32 / /sys - cgroup2 x\nnonsense\n\n", "0::/x\n", NULL, NULL },
	{ v1_and_v2, "nonsense\n4\n4:\n4:memory\n", "memory", NULL },
};

static void
own_cgroup_is_read_off_the_mounts(void **state)
{
	char out[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(path_rows); i++) {
		const struct path_row *r = &path_rows[i];
		int err = cgroup_path(r->mounts, r->self, r->controller, out, sizeof(out));

		if (r->want == NULL) {
			assert_int_equal(err, E_NOENT);
			continue;
		}
		assert_int_equal(err, 0);
		assert_string_equal(out, r->want);
	}
	assert_int_equal(cgroup_path(v2_only, "0::/long/path\n", NULL, out, 10), E_NOENT);
}

/* ---- what is there ------------------------------------------------------------------ */

/* Where this process is, or "". */
static void
find(const char *controller, char out[PATH_MAX])
{
	CLEANUP(cgroup_place_done) struct cgroup_place place = CGROUP_PLACE_INIT;

	if (cgroup_place_read(&place) < 0 || cgroup_find(&place, controller, out, PATH_MAX) < 0)
		out[0] = '\0';
}

static size_t
count_in(const char *dir, const char *prefix)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	while (d != NULL && (e = readdir(d)) != NULL)
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (d != NULL)
		(void)closedir(d);
	return n;
}

/* Groups that the process ${pid} has made. */
static size_t
count_groups(pid_t pid)
{
	char base[PATH_MAX], prefix[32];
	size_t n = 0;

	(void)snprintf(prefix, sizeof(prefix), "anvil-%d-", (int)pid);
	find("memory", base);
	n += count_in(base, prefix);
	find("pids", base);
	n += count_in(base, prefix);
	find(NULL, base);
	n += count_in(base, prefix);
	if (strrchr(base, '/') != NULL)
		*strrchr(base, '/') = '\0';
	return n + count_in(base, prefix);
}

/* What the driver says of its limits. */
static const char *
description(struct box *b, char text[1024])
{
	const char *limits;

	b->driver->describe(b->sb, text, 1024);
	limits = strstr(text, "Limits: ");
	assert_non_null(limits);
	return limits;
}

static int
memory_is_grouped(struct box *b)
{
	char text[1024];

	return strstr(description(b, text), " bytes (cgroup ") != NULL;
}

static int
processes_are_grouped(struct box *b)
{
	char text[1024];

	return strstr(strstr(description(b, text), "processes"), "(cgroup ") != NULL;
}

static int
is_version(struct box *b, const char *what)
{
	char text[1024];

	return strstr(description(b, text), what) != NULL;
}

static void
reopen(struct box *b, int64_t memory_bytes, int64_t max_processes)
{
	box_close(b);
	b->limits = (struct sandbox_limits) { memory_bytes, max_processes };
	box_open(b);
}

/* ---- memory ------------------------------------------------------------------------- */

static void
step_that_outgrows_its_memory_is_reported_as_that(void **state)
{
	struct box *b = *state;

	reopen(b, MEMORY, 0);
	if (!memory_is_grouped(b))
		skip();
	(void)box_run_shell(b, HOG);
	assert_true(b->result.end == SANDBOX_SIGNALED ||
	    (b->result.end == SANDBOX_EXITED && b->result.code != 0));
	assert_int_equal(b->result.oom, 1);
	/* The next step has all of it again, and no memory of what was. */
	assert_string_equal(box_run_shell(b, "echo fine"), "fine\n");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_equal(b->result.code, 0);
	assert_int_equal(b->result.oom, 0);
}

static void
memory_of_all_processes_counts_together(void **state)
{
	struct box *b = *state;

	reopen(b, MEMORY, 0);
	if (!memory_is_grouped(b))
		skip();
	/* None of them alone would be too much. */
	(void)box_run_shell(b,
	    "mkfifo f; exec 9<> f; for i in 1 2 3 4 5 6 7 8; do "
	    "tail < <(head -c 40000000 /dev/zero; read x <&9) > /dev/null & done; "
	    "wait -n; exit 3");
	assert_int_equal(b->result.oom, 1);
}

static void
all_of_a_step_goes_at_once(void **state)
{
	struct box *b = *state;

	reopen(b, MEMORY, 0);
	if (!is_version(b, "bytes (cgroup v2)"))
		skip();
	(void)box_run_shell(b, "(" HOG ") || echo survived");
	assert_int_equal(b->result.end, SANDBOX_SIGNALED);
	assert_int_equal(b->result.code, SIGKILL);
	assert_int_equal(b->result.oom, 1);
}

static void
without_a_group_each_process_is_bounded(void **state)
{
	struct box *b = *state;

	reopen(b, MEMORY, 0);
	if (memory_is_grouped(b))
		skip();
	(void)box_run_shell(b, HOG);
	assert_int_equal(b->result.end, SANDBOX_EXITED);
	assert_int_not_equal(b->result.code, 0);
	assert_int_equal(b->result.oom, 0);
}

static void
no_limit_is_no_limit(void **state)
{
	struct box *b = *state;
	char text[1024];

	reopen(b, 0, 0);
	assert_string_equal(description(b, text), "Limits: memory none; processes none.\n");
	assert_string_equal(
	    box_run_shell(b, "head -c 150000000 /dev/zero | tail | wc -c"), "150000000\n");
}

/* ---- processes ---------------------------------------------------------------------- */

static void
processes_are_as_many_as_allowed(void **state)
{
	struct box *b = *state;

	reopen(b, 0, PROCESSES);
	if (!processes_are_grouped(b))
		skip();
	/* With the shell itself they are PROCESSES; one more is refused. */
	(void)box_run_shell(b,
	    "exec sh -c 'for i in $(seq 2 80); do sleep 1000 & done; sleep 1000 & echo never'");
	assert_null(strstr(buf_cstr(&b->out), "never"));
	assert_int_equal(b->result.nleft, PROCESSES - 1);
}

static void
fork_bomb_ends_with_its_step(void **state)
{
	struct box *b = *state;

	/* Where the whole user is counted, others of his may be many. */
	reopen(b, 0, processes_are_grouped(b) ? PROCESSES : 400);
	for (int i = 0; i < 2; i++) {
		(void)box_run_shell(
		    b, "bomb() { bomb | bomb & }; bomb 2> err & until [ -s err ]; do :; done");
		assert_string_equal(box_run_shell(b, ": > err; echo next"), "next\n");
	}
}

/* ---- groups come and go ------------------------------------------------------------- */

static void
groups_go_with_the_sandbox(void **state)
{
	struct box *b = *state;

	reopen(b, MEMORY, PROCESSES);
	if (count_groups(getpid()) == 0)
		skip();
	(void)box_run_shell(b, "sleep 1000 & true");
	box_close(b);
	assert_int_equal(count_groups(getpid()), 0);
	box_open(b);
	assert_int_equal(box_spawn_shell(b, "sleep 1000"), 0);
	box_close(b);
	(void)box_drain(b);
	assert_int_equal(count_groups(getpid()), 0);
	for (int i = 0; i < 3; i++) { /* Side by side. */
		struct sandbox *other;

		box_open(b);
		assert_int_equal(
		    b->driver->open(&b->paths, &b->limits, &other, &b->problem), 0);
		assert_int_equal(b->driver->close(other, NULL, 0), 0);
		box_close(b);
	}
	assert_int_equal(count_groups(getpid()), 0);
}

static void
groups_within_the_group_go_too(void **state)
{
	struct box *b = *state;
	char base[PATH_MAX];

	find(NULL, base);
	if (box_is_bwrap(b) || access(base, W_OK) < 0 || count_groups(getpid()) == 0)
		skip();
	(void)box_run_shell(b,
	    "g=$(sed -n 's/^0:://p' /proc/self/cgroup); [ -n \"$g\" ] || exit 1; "
	    "g=$(find /sys/fs/cgroup -type d -path \"*$g\" | tail -n 1); mkdir -p $g/in/ner && "
	    "{ sleep 1000 & echo $! > $g/in/ner/cgroup.procs; }; echo ok");
	assert_string_equal(buf_cstr(&b->out), "ok\n");
	assert_int_equal(b->result.nleft, 1);
	box_close(b);
	assert_int_equal(count_groups(getpid()), 0);
}

/* A run with a step, killed; its step's output is in b->out_fd. */
static pid_t
leave_a_killed_run(struct box *b)
{
	int pipe_fds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		const char *const argv[] = { "sh", "-c",
			"setsid sleep 1001 & echo ready; exec sleep 1000", NULL };
		const struct sandbox_step step = { argv, box_env, ".", pipe_fds[1],
			pipe_fds[1] };

		(void)close(pipe_fds[0]);
		(void)prctl(PR_SET_DUMPABLE, 0);
		if (b->driver->open(&b->paths, &b->limits, &b->sb, &b->problem) < 0 ||
		    b->driver->spawn(b->sb, &step, &b->process, &b->problem) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(pipe_fds[1]);
	b->out_fd = pipe_fds[0];
	box_await_text(b, "ready");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return pid;
}

static void
reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void
sweep_all(void)
{
	while (sandbox_sweep() != 0)
		reap_all();
}

static void
what_a_killed_run_left_is_swept(void **state)
{
	struct box *b = *state;
	pid_t pid;

	if (count_groups(getpid()) == 0)
		skip();
	box_close(b);
	pid = leave_a_killed_run(b);
	assert_true(count_groups(pid) > 0);
	sweep_all();
	assert_int_equal(count_groups(pid), 0);
	/* With the group its processes have gone: the pipe ends. */
	(void)box_drain(b);
	reap_all();
}

static void
next_run_sweeps_as_well(void **state)
{
	struct box *b = *state;
	pid_t pid;

	if (count_groups(getpid()) == 0)
		skip();
	box_close(b);
	pid = leave_a_killed_run(b);
	while (count_groups(pid) != 0) {
		box_open(b);
		box_close(b);
	}
	(void)box_drain(b);
}

static void
groups_of_the_living_are_left_alone(void **state)
{
	struct box *b = *state;
	size_t before = count_groups(getpid());
	int status;
	pid_t pid;

	if (before == 0)
		skip();
	assert_int_equal(box_spawn_shell(b, "echo ready; read line"), 0);
	box_await_text(b, "ready");
	pid = fork();
	if (pid == 0)
		_exit(sandbox_sweep() != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_groups(getpid()), before);
	box_await(b);
	assert_int_equal(b->result.end, SANDBOX_EXITED);
}

/* Who is in the groups of a killed run goes into groups within those. */
static void
move_within(pid_t pid)
{
	static const char *const of[] = { "memory", "pids", NULL };

	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		char base[PATH_MAX], command[3 * PATH_MAX];

		find(of[i], base);
		(void)snprintf(command, sizeof(command),
		    "for g in '%s'/anvil-%d-*; do mkdir -p \"$g/in/ner\" && "
		    "for p in $(cat \"$g/cgroup.procs\"); do "
		    "echo $p >\"$g/in/ner/cgroup.procs\" || exit 1; done; done 2>/dev/null",
		    base, (int)pid);
		if (base[0] != '\0' && system(command) != 0)
			continue; /* it is not ours to do */
	}
}

static void
groups_within_those_of_a_killed_run_go_too(void **state)
{
	struct box *b = *state;
	pid_t pid;

	if (count_groups(getpid()) == 0)
		skip();
	box_close(b);
	pid = leave_a_killed_run(b);
	move_within(pid);
	sweep_all();
	assert_int_equal(count_groups(pid), 0);
	(void)box_drain(b);
	reap_all();
}

/* ---- on any file system ------------------------------------------------------------- */

/* A folder beneath ${dir}. */
static void PRINTF_LIKE(2, 3) make(const char *dir, const char *fmt, ...)
{
	char name[PATH_MAX];
	CLEANUP_FREE char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	path = mem_format("%s/%s", dir, name);
	assert_int_equal(io_mkdirs(path, 0755), 0);
}

/* A group tells of its maker by its name, and by that alone. */
static void
groups_of_makers_that_are_gone_are_swept_and_no_others(void **state)
{
	char *dir = scratch_new();
	CLEANUP_FREE char *kill_file = NULL;
	CLEANUP(buf_done) struct buf killed = BUF_INIT;
	struct proc_seen self;
	int status;
	pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, &status, 0), gone);
	assert_int_equal(proc_look(getpid(), &self), 0);
	make(dir, "anvil-%d-%llu-0", (int)getpid(), (unsigned long long)self.start_ticks);
	make(dir, "anvil-%d-%llu-0x", (int)gone, (unsigned long long)self.start_ticks);
	make(dir, "anvil-0-1-0");
	make(dir, "other");
	assert_int_equal(cgdir_sweep(dir), 0);
	assert_int_equal(count_in(dir, "anvil-"), 3);
	/* The pid of one is another's by now. */
	make(dir, "anvil-%d-%llu-1/in/ner", (int)getpid(),
	    (unsigned long long)self.start_ticks + 1);
	make(dir, "anvil-%d-1-0/in/ner", (int)gone);
	make(dir, "anvil-%d-1-1", (int)gone);
	assert_int_equal(cgdir_sweep(dir), 0);
	assert_int_equal(count_in(dir, "anvil-"), 3);
	assert_int_equal(count_in(dir, "other"), 1);
	/* Whom the kernel has still to end counts as left, and was told to end. */
	make(dir, "anvil-%d-1-2", (int)gone);
	kill_file = mem_format("%s/anvil-%d-1-2/cgroup.kill", dir, (int)gone);
	assert_int_equal(io_write_file(AT_FDCWD, kill_file, "", 0, 0600), 0);
	assert_int_equal(cgdir_sweep(dir), 1);
	assert_int_equal(io_read_file(AT_FDCWD, kill_file, 16, &killed), 0);
	assert_string_equal(buf_cstr(&killed), "1");
	scratch_free(dir);
}

/* ---- running ------------------------------------------------------------------------ */

#define BOTH(fn)                                                  \
	{ "bwrap: " #fn, fn, box_make_bwrap, box_remove, NULL },  \
	{                                                         \
		"none: " #fn, fn, box_make_none, box_remove, NULL \
	}

static int
run_all(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(step_that_outgrows_its_memory_is_reported_as_that),
		BOTH(memory_of_all_processes_counts_together),
		BOTH(all_of_a_step_goes_at_once),
		BOTH(without_a_group_each_process_is_bounded),
		BOTH(no_limit_is_no_limit),
		BOTH(processes_are_as_many_as_allowed),
		BOTH(fork_bomb_ends_with_its_step),
		BOTH(groups_go_with_the_sandbox),
		BOTH(groups_within_the_group_go_too),
		BOTH(what_a_killed_run_left_is_swept),
		BOTH(groups_within_those_of_a_killed_run_go_too),
		BOTH(next_run_sweeps_as_well),
		BOTH(groups_of_the_living_are_left_alone),
	};

	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A group of root's that is given away; "" when it cannot be made. */
struct gift {
	char own[PATH_MAX]; /* Where the tests run.            */
	char top[PATH_MAX]; /* Above it, "" if that is no gift. */
};

static void
give(const char *dir)
{
	static const char *const files[] = { "", "/cgroup.procs", "/cgroup.subtree_control" };
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", dir, files[i]);
		(void)!chown(path, NOBODY, NOBODY);
	}
}

static int
put(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX + 32];
	CLEANUP(io_closep) int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

/* Beneath our own, so that what bounds this test goes on to do so; a group with controllers
 * must be beneath one that has no processes, and that is the root alone. */
static void
make_gift(const char *controller, struct gift *g)
{
	g->top[0] = '\0';
	find(controller, g->own);
	if (g->own[0] == '\0')
		return;
	(void)snprintf(g->own + strlen(g->own), PATH_MAX - strlen(g->own), "/anvil-test-%d",
	    (int)getpid());
	if (mkdir(g->own, 0755) < 0) {
		g->own[0] = '\0';
		return;
	}
	give(g->own);
	if (controller != NULL || !put(g->own, "cgroup.subtree_control", "+memory +pids"))
		return;
	memcpy(g->top, g->own, sizeof(g->top));
	(void)strcat(g->own, "/own");
	must(mkdir(g->own, 0755) == 0);
	give(g->own);
}

static void
take_back(const struct gift *g)
{
	if (g->own[0] != '\0')
		must(rmdir(g->own) == 0);
	if (g->top[0] != '\0')
		must(rmdir(g->top) == 0);
}

/* In a child, because nothing takes root back, and because `none` counts every descendant. */
static int
run_in_child(const struct gift *gifts, size_t n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (size_t i = 0; i < n; i++)
			if (gifts[i].own[0] != '\0')
				must(put(gifts[i].own, "cgroup.procs", "0"));
		if (geteuid() == 0)
			must(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 &&
			    setuid(NOBODY) == 0);
		/* The leak check reads the process's own memory maps. */
		must(prctl(PR_SET_DUMPABLE, 1) == 0);
		exit(run_all() != 0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status != 0;
}

static int
run_with_gifts(void)
{
	static const char *const controllers[] = { NULL, "memory", "pids" };
	struct gift gifts[ARRAY_LEN(controllers)];
	int failed;

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		make_gift(controllers[i], &gifts[i]);
	failed = run_in_child(gifts, ARRAY_LEN(gifts));
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		take_back(&gifts[i]);
	return failed;
}

int
main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_cgroup_is_read_off_the_mounts),
		cmocka_unit_test(groups_of_makers_that_are_gone_are_swept_and_no_others),
	};
	int failed;

	if (argc > 1 && strcmp(argv[1], SANDBOX_INIT_NAME) == 0)
		_exit(sandbox_init_main(argc, argv));
	failed = cmocka_run_group_tests(tests, NULL, NULL) != 0 || run_in_child(NULL, 0) != 0;
	return geteuid() == 0 ? run_with_gifts() != 0 || failed : failed;
}
