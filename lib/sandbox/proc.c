/*
 * Processes that descend from this one, from /proc.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/sandbox/box.h"

#define STAT_BYTES 1024

struct table {
	struct proc_seen *p; /* Owned. */
	size_t n, cap;
};

/* ${proc_fd} is /proc.  0, or E_NOENT: it has ended meanwhile. */
static int
read_stat(int proc_fd, const char *pid, struct proc_seen *ret)
{
	char path[64], text[STAT_BYTES], *name, *close_at;
	CLEANUP(io_closep) int fd = -1;
	unsigned long long ticks;
	ssize_t n;
	int parent, nthreads;

	(void)snprintf(path, sizeof(path), "%.16s/stat", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return E_NOENT;
	text[n] = '\0';
	name = strchr(text, '(');
	/* The name may hold anything, a parenthesis too: its last one counts. */
	close_at = strrchr(text, ')');
	if (name == NULL || close_at == NULL || close_at < name)
		return E_NOENT;
	*close_at = '\0';
	if (sscanf(close_at + 1,
		" %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu",
		&ret->state, &parent, &nthreads, &ticks) != 4)
		return E_NOENT;
	/* Its first thread has ended; the others go on. */
	if (ret->state == 'Z' && nthreads > 1)
		ret->state = 'S';
	ret->pid = (pid_t)strtol(text, NULL, 10);
	ret->parent = parent;
	ret->start_ticks = ticks;
	(void)snprintf(ret->name, sizeof(ret->name), "%.15s", name + 1);
	return 0;
}

int
proc_look(pid_t pid, struct proc_seen *ret)
{
	CLEANUP(io_closep) int proc_fd = io_open_dir(AT_FDCWD, "/proc");
	char name[32];

	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	return proc_fd < 0 ? E_NOENT : read_stat(proc_fd, name, ret);
}

static int
table_add(struct table *t, const struct proc_seen *seen)
{
	if (t->n == t->cap) {
		size_t cap = t->cap == 0 ? 256 : t->cap * 2;
		struct proc_seen *more = mem_realloc(t->p, cap * sizeof(*more));

		if (more == NULL)
			return E_NOMEM;
		t->p = more;
		t->cap = cap;
	}
	t->p[t->n++] = *seen;
	return 0;
}

static int
read_all(struct table *t)
{
	DIR *d = opendir("/proc");
	struct proc_seen seen;
	struct dirent *e;
	int r = d == NULL ? E_SYS : 0;

	while (r == 0 && (e = readdir(d)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]) &&
		    read_stat(dirfd(d), e->d_name, &seen) == 0)
			r = table_add(t, &seen);
	if (d != NULL)
		(void)closedir(d);
	return r;
}

static int
by_parent(const void *a, const void *b)
{
	pid_t x = ((const struct proc_seen *)a)->parent,
	      y = ((const struct proc_seen *)b)->parent;

	return (x > y) - (x < y);
}

/* Index of the first child of ${parent} in a table that is sorted by parent. */
static size_t
first_child(const struct table *t, pid_t parent)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->p[mid].parent < parent)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int
proc_descendants(struct proc_seen **ret_list, size_t *ret_n)
{
	struct table all = { 0 }, found = { 0 };
	pid_t parent = getpid();
	size_t next = 0;
	int r = read_all(&all);

	if (r == 0 && all.n != 0)
		qsort(all.p, all.n, sizeof(*all.p), by_parent);
	while (r == 0) {
		for (size_t i = first_child(&all, parent);
		     i < all.n && all.p[i].parent == parent && r == 0; i++)
			r = table_add(&found, &all.p[i]);
		/* A table that was read while it changed might name a ring. */
		if (next >= found.n || found.n > all.n)
			break;
		parent = found.p[next++].pid;
	}
	free(all.p);
	if (r < 0) {
		free(found.p);
		return r;
	}
	*ret_list = found.p;
	*ret_n = found.n;
	return 0;
}

void
proc_signal(const struct proc_seen *p, int sig)
{
	CLEANUP(io_closep) int fd = io_pidfd_open(p->pid);
	struct proc_seen now;

	if (fd >= 0 && proc_look(p->pid, &now) == 0 && now.start_ticks == p->start_ticks)
		(void)io_pidfd_signal(fd, sig);
}

/* ${task_fd} is the directory of one of our threads. */
static void
kill_children_of(int task_fd)
{
	char text[STAT_BYTES];
	CLEANUP(io_closep) int fd = openat(task_fd, "children", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *next = text, *end;

	if (n <= 0)
		return;
	text[n] = '\0';
	/* The last one may be cut off; it comes with the next look. */
	for (long pid = strtol(next, &end, 10); *end == ' '; pid = strtol(next, &end, 10)) {
		if (pid > 0)
			(void)io_kill_child((pid_t)pid);
		next = end + 1;
	}
}

void
proc_kill_children(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		CLEANUP(io_closep) int fd = -1;

		if (isdigit((unsigned char)e->d_name[0]) &&
		    (fd = io_open_dir(dirfd(d), e->d_name)) >= 0)
			kill_children_of(fd);
	}
	if (d != NULL)
		(void)closedir(d);
}
