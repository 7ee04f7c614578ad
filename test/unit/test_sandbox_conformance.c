/*
 * The conformance suite of the sandbox drivers (spec run 9): one table of guarantees, a column
 * for each driver, filled by probes that run within.
 *
 * Around them lies what a host of anvil has: other runs and mirrors, sockets, secrets in files,
 * in the environment and behind open descriptors.  As root it runs as an unprivileged user.
 */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/base.h"
#include "lib/base/io.h"
#include "lib/sandbox/sandbox.h"
#include "test/support/sandbox_box.h"
#include "test/support/unit.h"

#define NOBODY  65534
#define HIGH_FD 700

/* ---- the scene ---------------------------------------------------------------------- */

static void
make_dir(const char *base, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	must(mkdir(path, 0755) == 0);
}

static void
make_socket(const char *base, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", base, name);
	must(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 1) == 0);
	must(close(fd) == 0);
}

static int
dress(struct box *b)
{
	static const char *const dirs[] = { "data", "data/runs", "data/runs/other",
		"data/runs/other/ws", "data/cache", "data/cache/other.git", "run" };
	char path[256];
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		make_dir(b->base, dirs[i]);
	box_make_file(b->base, "data/runs/other/ws/file", "other's\n");
	box_make_file(b->base, "data/cache/other.git/pack", "other's\n");
	box_make_file(b->base, "data/ingress.db", "db\n");
	box_make_file(b->base, "keys.json", "key\n");
	make_socket(b->base, "run/ingress.sock");
	(void)snprintf(path, sizeof(path), "%s/out", b->ws);
	must(symlink("../keys.json", path) == 0);
	(void)snprintf(path, sizeof(path), "%s/keys.json", b->base);
	/* Inheritable, at both ends of the table of descriptors. */
	fd = open(path, O_RDONLY);
	must(fd >= 0 && dup2(fd, HIGH_FD) == HIGH_FD);
	(void)setenv("ANVIL_TEST_SECRET", "in the environment", 1);
	return 0;
}

static int
set_bwrap(void **state)
{
	return box_make_bwrap(state) != 0 || dress(*state) != 0;
}

static int
set_none(void **state)
{
	return box_make_none(state) != 0 || dress(*state) != 0;
}

/* ---- the table ---------------------------------------------------------------------- */

/* ${B}: the directory of it all; ${P}: a process of anvil's. */
struct row {
	const char *what;
	const char *command;
	const char *bwrap; /* What it prints; NULL: not looked at. */
	const char *none;
};

#define READ(file) "cat " file " 2> /dev/null || echo hidden"
#define TOUCH(dir) "touch " dir "/x 2> /dev/null && rm " dir "/x && echo writable || echo no"

static const struct row rows[] = {
	/* files */
	{ "another run's workspace", READ("$B/data/runs/other/ws/file"), "hidden\n",
	    "other's\n" },
	{ "another project's mirror", READ("$B/data/cache/other.git/pack"), "hidden\n",
	    "other's\n" },
	{ "a store", READ("$B/data/ingress.db"), "hidden\n", "db\n" },
	{ "keys", READ("$B/keys.json"), "hidden\n", "key\n" },
	{ "by a symlink out of the workspace", READ("out"), "hidden\n", "key\n" },
	{ "by the directory above", READ("../keys.json"), "hidden\n", "key\n" },
	{ "a socket", "[ -S $B/run/ingress.sock ] && echo there || echo hidden", "hidden\n",
	    "there\n" },
	{ "the run's own directory", "ls -d $B 2> /dev/null || echo hidden", "hidden\n", NULL },
	{ "a hidden file", "cat /etc/passwd 2> /dev/null | wc -c", "0\n", NULL },
	{ "a hidden directory", "ls /usr/share/doc | wc -l", "0\n", NULL },
	{ "anvil's configuration", "ls /etc/anvil 2> /dev/null | wc -l", "0\n", NULL },
	{ "nothing else at the root", "echo /[s-v]* /m* /w*",
	    "/sbin /tmp /usr /mirror /workspace\n", NULL },
	{ "places of the host",
	    "ls -d /run/anvil /run/user /run/dbus /var /root /srv /sys /boot /media 2> /dev/null; true",
	    "", NULL },
	{ "read-only system",
	    "for d in / /usr /etc /usr/bin /dev/pts /home /mirror /opt; do "
	    "touch $d/x 2> /dev/null && echo $d; done; true",
	    "", "" },
	{ "not to be made writable",
	    "mount -o remount,rw /usr 2> /dev/null || mount -o remount,rw,bind /usr 2> /dev/null || "
	    "echo no",
	    "no\n", "no\n" },
	{ "workspace", "pwd; " TOUCH("."), "/workspace\nwritable\n", NULL },
	{ "objects", READ("/mirror/objects/pack") "; " TOUCH("/mirror/objects"), "objectsno\n",
	    NULL },
	{ "objects and their modes",
	    "chmod 0777 /mirror/objects 2> /dev/null || echo no; rm -f /mirror/objects/pack "
	    "2> /dev/null || echo no",
	    "no\nno\n", NULL },
	{ "null device", "echo x > /dev/null && echo ok", "ok\n", "ok\n" },
	{ "no device of the host",
	    "find /dev -type b | wc -l; ls /dev/mem /dev/kmsg 2> /dev/null; "
	    "true",
	    "0\n", NULL },

	/* private /tmp and HOME */
	{ "home", "echo h > /home/anvil/f && cat /home/anvil/f", "h\n", NULL },
	{ "tmp is its own", "ls -A /tmp | wc -l; " TOUCH("/tmp"), "0\nwritable\n", NULL },
	{ "shared memory is its own", "ls -A /dev/shm | wc -l; " TOUCH("/dev/shm"),
	    "0\nwritable\n", NULL },

	/* processes */
	{ "PID namespace", "[ $$ -lt 10 ] && echo own || echo host", "own\n", "host\n" },
	{ "a process of anvil's", "[ -d /proc/$P ] && echo seen || echo hidden", "hidden\n",
	    "seen\n" },
	{ "signals to it", "kill -0 $P 2> /dev/null && echo reached || echo no", "no\n",
	    "reached\n" },
	{ "init is closed",
	    "cat /proc/1/environ 2> /dev/null || echo closed; ls /proc/1/fd 2> /dev/null | wc -l",
	    "closed\n0\n", NULL },
	{ "init cannot be stopped",
	    "kill -STOP 1 2> /dev/null; kill -KILL 1 2> /dev/null; echo on", "on\n", NULL },
	{ "an environment of anvil's",
	    "cat /proc/[0-9]*/environ 2> /dev/null | grep -c ANVIL_TEST_SECRET; true", "0\n",
	    NULL },
	{ "its own environment", "env | grep -c ANVIL; true", "0\n", "0\n" },

	/* privileges */
	{ "no new privileges", "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n",
	    "NoNewPrivs:\t1\n" },
	{ "no capability",
	    "grep -hE 'Cap(Prm|Eff|Amb)' /proc/self/status | tr -d 'CapPrmEfAb:\\t\\n0'", "",
	    "" },
	{ "nor one to be had",
	    "grep -hE 'Cap(Inh|Bnd)' /proc/self/status | "
	    "tr -d 'CapInhBd:\\t\\n0'",
	    "", NULL },
	{ "own session and group, no terminal",
	    "set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo $7; "
	    "(: < /dev/tty) 2> /dev/null || echo none",
	    "0\nnone\n", "0\nnone\n" },
	{ "no setting of the kernel",
	    "(echo x > /proc/sys/kernel/hostname) 2> /dev/null || echo no; "
	    "(echo x > /proc/sysrq-trigger) 2> /dev/null || echo no",
	    "no\nno\n", "no\nno\n" },
	{ "host name", "uname -n", "anvil\n", NULL },

	/* state (spec run 8) */
	{ "pipefail", "false | true; echo no", "", "" },
	{ "stdin is empty", "cat; echo end", "end\n", "end\n" },
	{ "umask", "umask", "0022\n", "0022\n" },
	{ "signals", "grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'",
	    "SigBlk:0000000000000000SigIgn:0000000000000000",
	    "SigBlk:0000000000000000SigIgn:0000000000000000" },
	{ "no core", "ulimit -c; ulimit -Hc", "0\n0\n", "0\n0\n" },
	{ "oom score", "cat /proc/self/oom_score_adj", "500\n", "500\n" },
};

static const char *
probe(struct box *b, const char *command)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "B=%s P=%d\n%s", b->base, (int)getpid(), command);
	return box_run_shell(b, text);
}

static void
every_row_of_the_table_holds(void **state)
{
	struct box *b = *state;
	sigset_t blocked;

	/* What a step must not inherit. */
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &blocked, NULL);
	(void)signal(SIGUSR2, SIG_IGN);
	(void)umask(077);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *want = box_is_bwrap(b) ? rows[i].bwrap : rows[i].none;
		const char *got;

		if (want == NULL)
			continue;
		got = probe(b, rows[i].command);
		if (strcmp(got, want) != 0)
			(void)fprintf(stderr, "%s, %s\n", b->driver->name, rows[i].what);
		assert_string_equal(got, want);
	}
}

/* ---- what no row can say ------------------------------------------------------------ */

static void
environment_is_exactly_what_was_given(void **state)
{
	const char *const argv[] = { "env", NULL };

	assert_string_equal(
	    box_run_argv(*state, argv, "."), "PATH=/usr/bin:/bin\nHOME=/nowhere\nX=a b\n");
}

static void
step_has_three_descriptors(void **state)
{
	const char *const argv[] = { "ls", "/proc/self/fd", NULL };

	/* The fourth is that of the directory which ls reads. */
	assert_string_equal(box_run_argv(*state, argv, "."), "0\n1\n2\n3\n");
	assert_true(fcntl(HIGH_FD, F_GETFD) >= 0);
}

/* Those that the step is in against ours. */
static void
namespaces_are_its_own_or_the_hosts(void **state)
{
	static const char *const names[] = { "user", "mnt", "pid", "ipc", "uts", "net" };
	struct box *b = *state;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[32], ours[64], command[64];
		ssize_t n;
		int same;

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		n = readlink(path, ours, sizeof(ours) - 1);
		assert_true(n > 0);
		ours[n] = '\0';
		(void)snprintf(command, sizeof(command), "readlink -n %s", path);
		same = strcmp(box_run_shell(b, command), ours) == 0;
		assert_int_equal(same, !box_is_bwrap(b) || strcmp(names[i], "net") == 0);
	}
}

static void
limits_are_those_that_were_asked_for(void **state)
{
	struct box *b = *state;
	char text[1024];
	const char *got;

	b->driver->describe(b->sb, text, sizeof(text));
	got = box_run_shell(b, "ulimit -u; ulimit -d");
	if (strstr(text, "RLIMIT_NPROC") != NULL)
		assert_int_equal(strncmp(got, "2345\n", 5), 0);
	if (strstr(text, "RLIMIT_DATA") != NULL)
		assert_non_null(strstr(got, "\n1048576\n"));
}

/* A step may do to its files what it likes; the next one is none the worse for it. */
static void
step_cannot_harm_the_next(void **state)
{
	struct box *b = *state;

	if (!box_is_bwrap(b))
		skip();
	(void)box_run_shell(b,
	    "rm -rf /workspace/* /tmp/* /home/anvil/* /mirror/objects /etc /usr 2> /dev/null; "
	    "chmod 0 /home/anvil /tmp; ulimit -n 4; kill -KILL -1");
	assert_string_equal(
	    box_run_shell(b, "pwd; cat /mirror/objects/pack"), "/workspace\nobjects");
	assert_int_equal(b->result.end, SANDBOX_EXITED);
}

/* Two runs of one host, at the same time. */
static void
runs_do_not_see_each_other(void **state)
{
	struct box *b = *state, *other;
	void *second = NULL;

	if (!box_is_bwrap(b))
		skip();
	assert_int_equal(box_make_bwrap(&second), 0);
	other = second;
	assert_int_equal(
	    box_spawn_shell(
		other, "echo mine > /tmp/f; echo mine > /workspace/f; echo ready; sleep 1000"),
	    0);
	box_await_text(other, "ready");
	assert_string_equal(
	    box_run_shell(b,
		"cat /tmp/f /workspace/f 2> /dev/null; grep -l sleep /proc/[0-9]*/comm; true"),
	    "");
	box_close(other);
	assert_int_equal(box_remove(&second), 0);
}

/* ---- running ------------------------------------------------------------------------ */

#define BOTH(fn)                                             \
	{ "bwrap: " #fn, fn, set_bwrap, box_remove, NULL },  \
	{                                                    \
		"none: " #fn, fn, set_none, box_remove, NULL \
	}

static int
run_unprivileged(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_row_of_the_table_holds),
		BOTH(environment_is_exactly_what_was_given),
		BOTH(step_has_three_descriptors),
		BOTH(namespaces_are_its_own_or_the_hosts),
		BOTH(limits_are_those_that_were_asked_for),
		BOTH(step_cannot_harm_the_next),
		BOTH(runs_do_not_see_each_other),
	};

	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In a child, because nothing takes root back, and because `none` counts every descendant. */
int
main(int argc, char *argv[])
{
	int status;
	pid_t pid;

	if (argc > 1 && strcmp(argv[1], SANDBOX_INIT_NAME) == 0)
		_exit(sandbox_init_main(argc, argv));
	pid = fork();
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
