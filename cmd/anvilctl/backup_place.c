/* The folder of a backup: made by whoever calls, filled by the actors, gone again when the backup
 * has come to nothing.  One backup at a time: copies of two would be in each other's way. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/anvilctl/backup.h"
#include "cmd/anvilctl/locks.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define LOCK_NAME "backup.lock" /* in the runtime directory */

/* ---- one at a time ---- */

static int
open_lock(int dirfd, const struct stat *owner)
{
	int fd = openat(dirfd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = openat(dirfd, LOCK_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && geteuid() == 0 && fchown(fd, owner->st_uid, owner->st_gid) < 0)
		io_close(&fd);
	/* Another one has made it between the two. */
	return fd < 0 && errno == EEXIST
	    ? openat(dirfd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
	    : fd;
}

static int
wait_for_turn(struct backup *b, const struct stat *owner)
{
	int told = 0, rc;

	b->lock = open_lock(b->ctl->dirfd, owner);
	if (b->lock < 0)
		return ctl_fail("%s/" LOCK_NAME ": %s", b->ctl->runtime_dir, strerror(errno));
	while ((rc = flock(b->lock, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK) {
		int pid = (int)locks_holder(b->lock);

		progress_say(&b->progress,
		    "another backup is being made (process %d); waiting for its end", pid);
		if (!b->progress.on && !told)
			(void)ctl_fail(
			    "another backup is being made (process %d); waiting for its end",
			    pid);
		told = 1;
		(void)poll(NULL, 0, BACKUP_AGAIN_MS);
	}
	progress_end(&b->progress);
	return rc == 0 ? 0
		       : ctl_fail("%s/" LOCK_NAME ": %s", b->ctl->runtime_dir, strerror(errno));
}

/* ---- the folder ---- */

static int
is_something(void *arg, const char *path, int is_file)
{
	(void)arg;
	(void)path;
	(void)is_file;
	return 1;
}

/* As root, it is given to the user of the actors, who have to write there. */
static int
make_folder(const char *path, const struct stat *owner, int *ret_made)
{
	struct stat st;

	*ret_made = mkdir(path, 0700) == 0;
	if (!*ret_made && errno != EEXIST)
		return ctl_fail("%s: %s", path, strerror(errno));
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return ctl_fail("%s is no folder", path);
	if (files_walk(path, 1, is_something, NULL) != 0)
		return ctl_fail("%s is not empty: a backup gets a folder of its own", path);
	if ((geteuid() == 0 && chown(path, owner->st_uid, owner->st_gid) < 0) ||
	    chmod(path, 0700) < 0)
		return ctl_fail("%s: %s", path, strerror(errno));
	return 0;
}

/* Beneath any of these it would spoil what is there, or go away with it. */
static const struct {
	const char *name, *what;
} places[] = { { MANIFEST_NAME, "the backup" }, { "supervisor.db", "the data of anvil" },
	{ "supervisor.sock", "the runtime directory of anvil" } };

static int
lies_apart(const char *dir)
{
	CLEANUP_FREE char *above = mem_strdup(dir);
	char *slash;

	if (above == NULL)
		return ctl_fail_nomem();
	while ((slash = strrchr(above, '/')) != NULL && slash != above) {
		*slash = '\0';
		for (size_t i = 0; i < ARRAY_LEN(places); i++) {
			CLEANUP_FREE char *file = mem_format("%s/%s", above, places[i].name);

			if (file == NULL)
				return ctl_fail_nomem();
			if (access(file, F_OK) == 0)
				return ctl_fail(
				    "%s lies within %s in %s: choose a folder elsewhere", dir,
				    places[i].what, above);
		}
	}
	return 0;
}

/* ---- who takes it away ---- */

/* Waits for the end of the pipe, and takes away what has nothing in it. */
static void
sweep(int from, const char *dir, const char *runs)
{
	char byte;

	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	while (read(from, &byte, 1) < 0 && errno == EINTR)
		;
	/* A backup of no runs is one, with its empty folder. */
	if (chdir(dir) == 0 && access(MANIFEST_NAME, F_OK) == 0)
		_exit(0);
	(void)rmdir(runs);
	_exit(rmdir(dir) < 0 && errno != ENOENT);
}

/* Root becomes the owner of the actors, who may not write where root has made the folder: somebody
 * stays behind who may. */
static int
leave_sweeper(struct backup *b, const char *runs)
{
	int ends[2];

	if (geteuid() != 0 || !b->made)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ctl_fail("%s: %s", b->dir, strerror(errno));
	b->sweeper = fork();
	if (b->sweeper == 0) {
		io_close(&ends[1]);
		io_close(&b->lock);
		sweep(ends[0], b->dir, runs);
	}
	io_close(&ends[0]);
	b->sweeper_fd = ends[1];
	return b->sweeper > 0 ? 0 : ctl_fail("%s: %s", b->dir, strerror(errno));
}

static void
end_sweeper(struct backup *b)
{
	io_close(&b->sweeper_fd);
	if (b->sweeper > 0)
		(void)waitpid(b->sweeper, NULL, 0);
	b->sweeper = 0;
}

/* ---- all of it ---- */

int
backup_enter(struct backup *b, const char *dir)
{
	CLEANUP_FREE char *runs = NULL;
	struct stat owner;
	int r = ctl_find(b->ctl), made;

	if (r == 0 && fstat(b->ctl->dirfd, &owner) < 0)
		r = ctl_fail("%s: %s", b->ctl->runtime_dir, strerror(errno));
	if (r == 0)
		r = wait_for_turn(b, &owner);
	if (r == 0)
		r = make_folder(dir, &owner, &b->made);
	if (r != 0)
		return r;
	b->dir = realpath(dir, NULL);
	runs = b->dir != NULL ? mem_format("%s/runs", b->dir) : NULL;
	if (runs == NULL)
		return ctl_fail("%s: %s", dir, strerror(errno));
	r = leave_sweeper(b, runs);
	if (r == 0)
		r = lies_apart(b->dir);
	if (r == 0)
		r = ctl_open(b->ctl);
	if (r != 0)
		return r;
	b->dirfd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->dirfd < 0)
		return ctl_fail(
		    "%s cannot be reached by the user of anvild: %s", b->dir, strerror(errno));
	/* No longer as root, for the folder that it is made in is another's by now. */
	return make_folder(runs, &owner, &made);
}

/* Copies, whole or half made, and nothing else that somebody may have put there. */
static int
remove_ours(void *arg, const char *path, int is_file)
{
	const struct backup *b = arg;

	if (file_role_of(path) != FILE_ROLE_COUNT || strcmp(path, "runs") == 0 ||
	    strncmp(path, "runs/", 5) == 0 || strstr(path, ".db.part") != NULL ||
	    strncmp(path, MANIFEST_NAME, strlen(MANIFEST_NAME)) == 0)
		(void)unlinkat(b->dirfd, path, is_file ? 0 : AT_REMOVEDIR);
	return 0;
}

void
backup_give_up(struct backup *b)
{
	if (b->dirfd >= 0)
		(void)files_walk(b->dir, 1, remove_ours, b);
	if (b->made)
		(void)rmdir(b->dir);
	end_sweeper(b);
	if (b->made ? access(b->dir, F_OK) == 0
		    : files_walk(b->dir, 1, is_something, NULL) != 0)
		(void)ctl_fail(
		    "%s has no %s and so is no backup: remove it", b->dir, MANIFEST_NAME);
}

void
backup_leave(struct backup *b)
{
	end_sweeper(b);
	io_close(&b->dirfd);
	io_close(&b->lock);
	free(b->dir);
}
