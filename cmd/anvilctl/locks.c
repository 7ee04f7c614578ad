#include "cmd/anvilctl/locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define LOCKS_FILE_MAX ((size_t)4 << 20)

/* ---- who ---- */

/* "7: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF" */
static pid_t
holder_of_line(const char *line, const struct stat *st)
{
	unsigned major_nr = 0, minor_nr = 0;
	unsigned long long inode = 0;
	int pid = 0;

	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_nr, &minor_nr,
		&inode) != 4 ||
	    inode != st->st_ino || major_nr != major(st->st_dev) ||
	    minor_nr != minor(st->st_dev))
		return 0;
	return pid;
}

pid_t
locks_holder(int fd)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct stat st;
	char *at, *line;
	pid_t pid = 0;

	if (fstat(fd, &st) < 0 ||
	    io_read_file(AT_FDCWD, "/proc/locks", LOCKS_FILE_MAX, &text) < 0 ||
	    buf_cstr(&text) == NULL)
		return 0;
	at = (char *)text.data;
	while (pid == 0 && (line = strsep(&at, "\n")) != NULL)
		pid = holder_of_line(line, &st);
	return pid;
}

/* ---- one lock ---- */

static int
try_lock(int fd, const char *what, struct lock_holder *ret)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_from_errno(errno);
	(void)snprintf(ret->what, sizeof(ret->what), "%s", what);
	ret->pid = locks_holder(fd);
	return E_LOCKED;
}

static void
keep(struct locks *l, int *fd)
{
	must(l->n < LOCKS_MAX);
	l->fds[l->n++] = *fd;
	*fd = -1;
}

/* A second descriptor of the same file would stand in our own way. */
static int
is_held(const struct locks *l, int fd)
{
	struct stat st, held;

	if (fstat(fd, &st) < 0)
		return 0;
	for (size_t i = 0; i < l->n; i++)
		if (fstat(l->fds[i], &held) == 0 && held.st_ino == st.st_ino &&
		    held.st_dev == st.st_dev)
			return 1;
	return 0;
}

static int
take(struct locks *l, int dirfd, const char *name, struct lock_holder *ret)
{
	CLEANUP(io_closep) int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	if (is_held(l, fd))
		return 0;
	r = try_lock(fd, name, ret);
	if (r == 0)
		keep(l, &fd);
	return r;
}

int
locks_make(struct locks *l, const char *dir, const char *name, uid_t uid, gid_t gid,
    struct lock_holder *ret)
{
	CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
	CLEANUP(io_closep) int fd = -1;
	int r;

	if (path == NULL)
		return E_NOMEM;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || (geteuid() == 0 && fchown(fd, uid, gid) < 0))
		return err_from_errno(errno);
	r = try_lock(fd, name, ret);
	if (r == 0)
		keep(l, &fd);
	return r;
}

/* ---- all of them ---- */

static int
take_stores(struct locks *l, int dirfd, struct lock_holder *ret)
{
	int r = take(l, dirfd, "supervisor.db.lock", ret);

	if (r == 0)
		r = take(l, dirfd, "ingress.db.lock", ret);
	for (int i = 0; r == 0 && i < 64; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "project-%d.db.lock", i);
		r = take(l, dirfd, name, ret);
	}
	return r;
}

static int
look_at_run(int runs, const char *run_id, struct lock_holder *ret)
{
	char path[64];
	int fd, r;

	if (!id_check(ID_RUN, run_id))
		return 0;
	(void)snprintf(path, sizeof(path), "%.40s/lock", run_id);
	fd = openat(runs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_from_errno(errno);
	r = try_lock(fd, path, ret);
	io_close(&fd);
	return r;
}

/* Nobody starts one while we hold the supervisor's: a look at each is enough. */
static int
look_at_runs(int dirfd, struct lock_holder *ret)
{
	int runs = openat(dirfd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = runs >= 0 ? fdopendir(runs) : NULL;
	const struct dirent *e;
	int r = 0;

	if (d == NULL) {
		r = errno == ENOENT ? 0 : err_from_errno(errno);
		io_close(&runs);
		return r;
	}
	while (r == 0 && (e = readdir(d)) != NULL)
		r = look_at_run(runs, e->d_name, ret);
	(void)closedir(d);
	return r;
}

int
locks_take(
    struct locks *l, const char *data_dir, const char *runtime_dir, struct lock_holder *ret)
{
	CLEANUP(io_closep) int run = io_open_dir(AT_FDCWD, runtime_dir);
	CLEANUP(io_closep) int data = -1;
	int r = 0;

	*ret = (struct lock_holder) { .pid = 0 };
	if (run < 0 && errno != ENOENT)
		return err_from_errno(errno);
	if (run >= 0)
		r = take(l, run, "anvild.lock", ret);
	if (r < 0)
		return r;
	data = io_open_dir(AT_FDCWD, data_dir);
	if (data < 0)
		return errno == ENOENT ? 0 : err_from_errno(errno);
	r = take_stores(l, data, ret);
	return r < 0 ? r : look_at_runs(data, ret);
}

void
locks_release(struct locks *l)
{
	while (l->n > 0)
		io_close(&l->fds[--l->n]);
}
