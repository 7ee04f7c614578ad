/*
 * One control group in one hierarchy, and what is left of those whose makers are gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/sandbox/box.h"

#define NAMES_MAX   32 /* Groups of one process in one place.     */
#define LEVELS_MAX  16 /* Groups in groups that a step may make.  */
#define PROCS_BYTES (1 << 20)
#define FILE_BYTES  4096 /* Of a file that is read.                 */

/* ---- making and removing ------------------------------------------------------------ */

static int
open_group(int base_fd, const char *name)
{
	return openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int
make_named(struct cgdir *g)
{
	struct proc_seen self;

	if (proc_look(getpid(), &self) < 0)
		return -1;
	for (unsigned n = 0; n < NAMES_MAX; n++) {
		(void)snprintf(g->name, sizeof(g->name), "anvil-%d-%llu-%u", (int)getpid(),
		    (unsigned long long)self.start_ticks, n);
		if (mkdirat(g->base_fd, g->name, 0755) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

int
cgdir_make(struct cgdir *g, const char *base)
{
	*g = CGDIR_NONE;
	g->base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->base_fd < 0)
		return E_DENIED;
	if (make_named(g) < 0) {
		io_close(&g->base_fd);
		return E_DENIED;
	}
	g->fd = open_group(g->base_fd, g->name);
	g->procs_fd = g->fd < 0 ? -1 : openat(g->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (g->procs_fd >= 0)
		return 0;
	cgdir_remove(g);
	return E_DENIED;
}

/* From its beginning, whoever has read it before.  NULL: it cannot be read. */
static DIR *
open_list(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (d == NULL)
		io_close(&copy);
	return d;
}

/* What a step without a sandbox may have made in its own. */
static void
remove_inner(int fd, int level)
{
	DIR *d = open_list(fd);
	struct dirent *e;

	if (d == NULL)
		return;
	while (level < LEVELS_MAX && (e = readdir(d)) != NULL) {
		CLEANUP(io_closep) int inner = -1;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		inner = open_group(fd, e->d_name);
		if (inner >= 0)
			remove_inner(inner, level + 1);
		(void)unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	(void)closedir(d);
}

void
cgdir_remove(struct cgdir *g)
{
	if (g->base_fd < 0)
		return;
	if (unlinkat(g->base_fd, g->name, AT_REMOVEDIR) < 0 && g->fd >= 0) {
		remove_inner(g->fd, 0);
		(void)unlinkat(g->base_fd, g->name, AT_REMOVEDIR);
	}
	io_close(&g->procs_fd);
	io_close(&g->fd);
	io_close(&g->base_fd);
}

/* ---- files -------------------------------------------------------------------------- */

int
cgdir_has(const struct cgdir *g, const char *file)
{
	return g->fd >= 0 && faccessat(g->fd, file, W_OK, AT_EACCESS) == 0;
}

int
cgdir_write(const struct cgdir *g, const char *file, const char *text)
{
	CLEANUP(io_closep)
	int fd = g->fd < 0 ? -1 : openat(g->fd, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? E_SYS : 0;
}

int
cgdir_write_number(const struct cgdir *g, const char *file, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	return cgdir_write(g, file, text);
}

int
cgdir_read_text(int dirfd, const char *file, char *out, size_t size)
{
	CLEANUP(io_closep) int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[max_i64(n, 0)] = '\0';
	return n < 0 ? E_SYS : 0;
}

int64_t
cgdir_read_number(const struct cgdir *g, const char *file, const char *key)
{
	char text[FILE_BYTES];
	size_t n = strlen(key);

	if (g->fd < 0 || cgdir_read_text(g->fd, file, text, sizeof(text)) < 0)
		return 0;
	for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, n) == 0 && at[n] == ' ')
			return strtoll(at + n, NULL, 10);
	}
	return 0;
}

/* ---- what others have left ---------------------------------------------------------- */

static int
is_in(pid_t pid, const char *name)
{
	char path[64], text[FILE_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return cgdir_read_text(AT_FDCWD, path, text, sizeof(text)) == 0 &&
	    strstr(text, name) != NULL;
}

static void
kill_members(int fd, const char *name)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char *at, *end;

	if (io_read_file(fd, "cgroup.procs", PROCS_BYTES, &b) < 0 || buf_cstr(&b) == NULL)
		return;
	for (at = (char *)b.data;; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);
		CLEANUP(io_closep) int pidfd = end != at && pid > 0 ? io_pidfd_open(pid) : -1;

		if (end == at)
			break;
		/* Asked once its pid cannot become another's any more. */
		if (pidfd >= 0 && is_in(pid, name))
			(void)io_pidfd_signal(pidfd, SIGKILL);
	}
}

/* Where a group cannot be killed as a whole: one by one, in the groups within as well. */
static void
kill_each(int fd, const char *name, int level)
{
	DIR *d = level < LEVELS_MAX ? open_list(fd) : NULL;
	struct dirent *e;

	kill_members(fd, name);
	while (d != NULL && (e = readdir(d)) != NULL) {
		CLEANUP(io_closep) int inner = -1;

		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			inner = open_group(fd, e->d_name);
		if (inner >= 0)
			kill_each(inner, name, level + 1);
	}
	if (d != NULL)
		(void)closedir(d);
}

static int
is_abandoned(const char *name)
{
	unsigned long long made;
	struct proc_seen maker;
	unsigned n;
	int pid, end = 0;

	if (sscanf(name, "anvil-%d-%llu-%u%n", &pid, &made, &n, &end) != 3 ||
	    name[end] != '\0' || pid <= 0)
		return 0;
	if (proc_look(pid, &maker) == 0)
		return maker.start_ticks != made;
	/* That it could not be looked at is no proof. */
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* 1: it is gone. */
static int
end_abandoned(int base_fd, const char *name)
{
	struct cgdir g = CGDIR_NONE;
	struct stat st;

	g.base_fd = fcntl(base_fd, F_DUPFD_CLOEXEC, 0);
	g.fd = open_group(base_fd, name);
	(void)snprintf(g.name, sizeof(g.name), "%.*s", CGDIR_NAME_SIZE - 1, name);
	if (g.base_fd >= 0 && g.fd >= 0 && fstat(g.fd, &st) == 0 && st.st_uid == geteuid()) {
		if (cgdir_write(&g, "cgroup.kill", "1") < 0)
			kill_each(g.fd, g.name, 0);
		cgdir_remove(&g);
	}
	io_close(&g.fd);
	io_close(&g.base_fd);
	return faccessat(base_fd, name, F_OK, 0) < 0;
}

size_t
cgdir_sweep(const char *base)
{
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t left = 0;

	if (d == NULL) {
		io_close(&fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && strlen(e->d_name) < CGDIR_NAME_SIZE &&
		    is_abandoned(e->d_name) && !end_abandoned(dirfd(d), e->d_name))
			left++;
	(void)closedir(d);
	return left;
}
