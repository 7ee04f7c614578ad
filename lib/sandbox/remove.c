/*
 * Removing what steps have left, whose names, depth and permissions are theirs to choose.
 *
 * Down to LEVELS_MAX the walk holds a descriptor for each level; directories below are moved
 * up to the top, under new names, and have their own turn.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/sandbox/box.h"

#define LEVELS_MAX 24

struct remover {
	int top_fd;     /* Of the tree's root.                 */
	unsigned tag;   /* Of the next name there.             */
	unsigned moved; /* Directories moved up to it so far.  */
	int err;        /* First failure; 0: none yet.         */
};

static void
note(struct remover *rm)
{
	if (rm->err == 0 && errno != ENOENT)
		rm->err = err_from_errno(errno);
}

/* A directory for reading and writing, whatever its mode was. */
static int
open_writable(int at, const char *name)
{
	CLEANUP(io_closep)
	int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	/* By way of /proc: chmod(2) by name could be led elsewhere by a symlink. */
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if ((st.st_mode & 0700) != 0700 && chmod(self, 0700) < 0)
		return -1;
	return openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
move_up(struct remover *rm, int at, const char *name)
{
	/* A directory is moved only by who may write to it. */
	CLEANUP(io_closep) int fd = open_writable(at, name);
	char up[32];
	int r;

	if (fd < 0) {
		note(rm);
		return;
	}
	do {
		(void)snprintf(up, sizeof(up), ".anvil-%u", rm->tag++);
		r = renameat(at, name, rm->top_fd, up);
	} while (r < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
	if (r == 0)
		rm->moved++;
	else
		note(rm);
}

static void remove_contents(struct remover *rm, int fd, int level);

static void
descend(struct remover *rm, int at, const char *name, int level)
{
	CLEANUP(io_closep) int fd = open_writable(at, name);

	if (fd < 0)
		note(rm);
	else
		remove_contents(rm, fd, level + 1);
}

static void
remove_one(struct remover *rm, int at, const char *name, int level)
{
	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno != EISDIR && errno != EPERM) {
		note(rm);
		return;
	}
	if (unlinkat(at, name, AT_REMOVEDIR) == 0)
		return;
	if (level >= LEVELS_MAX) {
		move_up(rm, at, name);
		return;
	}
	descend(rm, at, name, level);
	if (unlinkat(at, name, AT_REMOVEDIR) < 0)
		note(rm);
}

static void
remove_contents(struct remover *rm, int fd, int level)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (d == NULL) {
		note(rm);
		io_close(&copy);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_one(rm, fd, e->d_name, level);
	(void)closedir(d);
}

int
sandbox_remove_tree(int dirfd, const char *name)
{
	struct remover rm = { .top_fd = -1 };
	unsigned moved;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	rm.top_fd = open_writable(dirfd, name);
	if (rm.top_fd < 0)
		return err_from_errno(errno);
	do { /* Again for what was moved up meanwhile; it shrinks by LEVELS_MAX a round. */
		moved = rm.moved;
		(void)lseek(rm.top_fd, 0, SEEK_SET);
		rm.err = 0;
		remove_contents(&rm, rm.top_fd, 1);
	} while (rm.moved != moved);
	io_close(&rm.top_fd);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		note(&rm);
	return rm.err;
}
