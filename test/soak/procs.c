#include "test/soak/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"

#define NAP_US 10000

const char *const role_names[NPROCS] = { "supervisor", "ingress", "shard", "run", "serve",
	"checkout", "step", "gate", "errand", "anvilctl" };

/* Its one thread. */
static pthread_t reaper;

/* ---- what there is ---- */

/* Parent and state; -1: it is gone, or a zombie. */
static int
read_stat(pid_t pid, pid_t *ret_parent)
{
	char path[32], text[512];
	const char *behind;
	char state;
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	behind = strrchr(text, ')');
	if (behind == NULL || sscanf(behind + 1, " %c %d", &state, ret_parent) != 2)
		return -1;
	return state == 'Z' || state == 'X' ? -1 : 0;
}

/* The first three arguments; how many there are. */
static int
read_args(pid_t pid, char args[3][128])
{
	char path[40], text[1024];
	size_t n, at = 0;
	FILE *f;
	int k = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	for (; at < n && k < 3; at += strlen(text + at) + 1)
		(void)snprintf(args[k++], 128, "%s", text + at);
	return k;
}

static void
judge(const struct soak *s, struct proc *p)
{
	char args[3][128] = { "", "", "" };
	const char *name;

	(void)read_args(p->pid, args);
	name = strrchr(args[0], '/');
	name = name != NULL ? name + 1 : args[0];
	p->role = PROC_STEP;
	if (strcmp(name, "anvild") == 0)
		p->role = p->pid == atomic_load(&s->pid) ? PROC_SUPERVISOR : PROC_GATE;
	else if (strcmp(name, "anvil-ingress") == 0)
		p->role = PROC_INGRESS;
	else if (strcmp(name, "anvil-project") == 0)
		p->role = PROC_SHARD;
	else if (strcmp(name, "anvil-checkout") == 0)
		p->role = PROC_CHECKOUT;
	else if (strcmp(name, "anvilctl") == 0 || strcmp(name, "timeout") == 0)
		p->role = PROC_CTL;
	else if (strcmp(name, "anvil-run") == 0 && strcmp(args[1], "--serve") == 0)
		p->role = PROC_SERVE;
	else if (strcmp(name, "anvil-run") == 0)
		p->role = args[1][0] == '-' ? PROC_ERRAND : PROC_RUN;
	if (p->role == PROC_RUN || p->role == PROC_SERVE)
		(void)snprintf(
		    p->run, sizeof(p->run), "%.26s", p->role == PROC_RUN ? args[1] : args[2]);
}

static const struct proc *
by_pid(const struct proc *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			return &all[i];
	return NULL;
}

/* A fork of a run that is not yet another program is no second run. */
static void
relate(struct proc *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct proc *up = by_pid(all, n, all[i].parent);

		while (up != NULL && up->role != PROC_RUN && up->role != PROC_SERVE)
			up = by_pid(all, n, up->parent);
		if (up == NULL)
			continue;
		if (all[i].role == PROC_RUN)
			all[i].role = PROC_STEP;
		memcpy(all[i].run, up->run, sizeof(all[i].run));
	}
}

static int
is_below(const struct proc *all, size_t n, const struct proc *p, pid_t top)
{
	for (int depth = 0; p != NULL && depth < 32; depth++) {
		if (p->parent == top)
			return 1;
		p = by_pid(all, n, p->parent);
	}
	return 0;
}

size_t
procs_list(const struct soak *s, struct proc out[PROCS_MAX])
{
	static __thread struct proc all[4096];
	DIR *d = opendir("/proc");
	const struct dirent *e;
	size_t n = 0, k = 0;

	while (d != NULL && (e = readdir(d)) != NULL && n < ARRAY_LEN(all)) {
		all[n] = (struct proc) { .pid = (pid_t)atoi(e->d_name) };
		if (all[n].pid > 0 && read_stat(all[n].pid, &all[n].parent) == 0)
			n++;
	}
	if (d != NULL)
		(void)closedir(d);
	for (size_t i = 0; i < n && k < PROCS_MAX; i++)
		if (is_below(all, n, &all[i], getpid()))
			out[k++] = all[i];
	for (size_t i = 0; i < k; i++)
		judge(s, &out[i]);
	relate(out, k);
	return k;
}

/* ---- operators ---- */

static int
open_log(const struct soak *s, const char *name)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	must(fd >= 0);
	return fd;
}

void
procs_operate(const struct soak *s, const char *line)
{
	int fd = open_log(s, "operator.log");
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		(void)dup2(fd, 2);
		(void)dup2(fd, 1);
		(void)execl("/bin/sh", "anvilctl", "-c", line, (char *)NULL);
		_exit(127);
	}
	io_close(&fd);
}

/* ---- anvild, as its service manager ---- */

static void
start_anvild(struct soak *s)
{
	char path[256], faults[256], steps[256];
	int fd = open_log(s, "anvild.log");
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/anvild", s->programs);
	(void)snprintf(faults, sizeof(faults), "%s/faults", s->dir);
	(void)snprintf(steps, sizeof(steps), "%s/clock", s->dir);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		(void)setenv("ANVIL_FAULT_FILE", faults, 1);
		(void)setenv("ANVIL_CLOCK_FILE", steps, 1);
		(void)dup2(fd, 2);
		(void)dup2(fd, 1);
		(void)execl(path, path, "-c", s->conf, (char *)NULL);
		_exit(127);
	}
	io_close(&fd);
	atomic_store(&s->pid, pid);
}

static void
note_end(struct soak *s, int status)
{
	atomic_store(&s->pid, 0);
	BOOK_COUNT(&s->book, restarts);
	/* One that has hardly begun has no handler for what asks it to stop yet. */
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM)
		book_loss(&s->book, "anvild ended by signal %d", WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		book_say("anvild exited with %d", WEXITSTATUS(status));
}

static void *
reap(void *arg)
{
	struct soak *s = arg;
	int status;
	pid_t pid;

	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == atomic_load(&s->pid))
				note_end(s, status);
		if (atomic_load(&s->pid) == 0 && atomic_load(&s->keeping))
			start_anvild(s);
		if (pid < 0 && errno == ECHILD && !atomic_load(&s->keeping))
			return NULL;
		(void)usleep(NAP_US);
	}
}

void
procs_begin(struct soak *s)
{
	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	atomic_store(&s->keeping, 1);
	must(pthread_create(&reaper, NULL, reap, s) == 0);
}

void
procs_end(struct soak *s)
{
	must(!atomic_load(&s->keeping));
	must(pthread_join(reaper, NULL) == 0);
}
