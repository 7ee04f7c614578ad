/*
 * The files of a commit, straight from its blobs, and an index that git finds clean.
 *
 * No filter, no line-end conversion, no hook.  Every path is walked from the workspace's
 * descriptor without following a symlink, so that a tree which names `a` as a link and
 * `a/b` as a file cannot write elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

/* Files are this much older than the index: git trusts an entry whose file is older, and
 * need not read it, and a step's change at once is still seen. */
#define AGE_SECONDS 2

struct writer {
	struct co *co;
	int root_fd;              /* Of the workspace.                         */
	int dir_fd;               /* Of the directory below; -1: not open.      */
	char dir[PATH_MAX];       /* Ends in a slash; "": the root.       */
	struct timespec times[2]; /* For every file.                */
};

/* ---- directories -------------------------------------------------------------------- */

static int
dir_open(int at, const char *name)
{
	if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
		return -1;
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Makes ${path}'s directory the current one; ${len} with the slash at its end. */
static int
dir_enter(struct writer *w, const char *path, size_t len)
{
	const char *at = path, *slash;
	int fd;

	if (w->dir_fd >= 0 && strncmp(w->dir, path, len) == 0 && w->dir[len] == '\0')
		return 0;
	if (len >= sizeof(w->dir)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	io_close(&w->dir_fd);
	fd = fcntl(w->root_fd, F_DUPFD_CLOEXEC, 0);
	while (fd >= 0 && at < path + len) {
		char name[NAME_MAX + 1];
		int next;

		slash = strchr(at, '/');
		if ((size_t)(slash - at) >= sizeof(name)) {
			io_close(&fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, at, (size_t)(slash - at));
		name[slash - at] = '\0';
		next = dir_open(fd, name);
		io_close(&fd);
		fd = next;
		at = slash + 1;
	}
	if (fd < 0)
		return -1;
	memcpy(w->dir, path, len);
	w->dir[len] = '\0';
	w->dir_fd = fd;
	return 0;
}

/* ---- entries ------------------------------------------------------------------------ */

static int
write_file(
    struct writer *w, const char *name, uint32_t mode, const void *p, size_t n, struct stat *st)
{
	mode_t perm = (mode & 0100) != 0 ? 0777 : 0666;
	CLEANUP(io_closep)
	int fd = openat(
	    w->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, perm);
	int r;

	if (fd < 0)
		return -1;
	r = io_write_all(fd, p, n);
	if (r < 0) {
		errno = r == E_FULL ? ENOSPC : errno;
		return -1;
	}
	return futimens(fd, w->times) < 0 ? -1 : fstat(fd, st);
}

static int
write_link(struct writer *w, const char *name, const void *p, size_t n, struct stat *st)
{
	CLEANUP_FREE char *target = mem_strndup(p, n);

	if (target == NULL) {
		errno = ENOMEM;
		return -1;
	}
	if (strlen(target) != n) {
		errno = EINVAL;
		return -1;
	}
	if (symlinkat(target, w->dir_fd, name) < 0 ||
	    utimensat(w->dir_fd, name, w->times, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return fstatat(w->dir_fd, name, st, AT_SYMLINK_NOFOLLOW);
}

static int
write_submodule(struct writer *w, const char *name, struct stat *st)
{
	if (mkdirat(w->dir_fd, name, 0777) < 0 && errno != EEXIST)
		return -1;
	return fstatat(w->dir_fd, name, st, AT_SYMLINK_NOFOLLOW);
}

static int
write_blob(struct writer *w, const git_index_entry *e, const char *name, struct stat *st)
{
	git_odb_object *blob = NULL;
	const void *p;
	size_t n;
	int r;

	if (git_odb_read(&blob, w->co->odb, &e->id) < 0)
		return co_fail_git(w->co);
	p = git_odb_object_data(blob);
	n = git_odb_object_size(blob);
	/* A second go, after the mirror was made anew, finds what the first one wrote. */
	if (w->co->anew)
		(void)unlinkat(w->dir_fd, name, 0);
	r = S_ISLNK(e->mode) ? write_link(w, name, p, n, st)
			     : write_file(w, name, e->mode, p, n, st);
	if (r < 0)
		r = co_fail_errno(w->co, e->path);
	git_odb_object_free(blob);
	return r;
}

static void
entry_set_stat(git_index_entry *e, const struct stat *st)
{
	e->ctime.seconds = (int32_t)st->st_ctim.tv_sec;
	e->ctime.nanoseconds = (uint32_t)st->st_ctim.tv_nsec;
	e->mtime.seconds = (int32_t)st->st_mtim.tv_sec;
	e->mtime.nanoseconds = (uint32_t)st->st_mtim.tv_nsec;
	e->dev = (uint32_t)st->st_dev;
	e->ino = (uint32_t)st->st_ino;
	e->uid = st->st_uid;
	e->gid = st->st_gid;
	e->file_size = S_ISDIR(st->st_mode) ? 0 : (uint32_t)st->st_size;
}

static int
write_entry(struct writer *w, const git_index_entry *e)
{
	const char *slash = strrchr(e->path, '/');
	const char *name = slash != NULL ? slash + 1 : e->path;
	struct stat st;
	int r;

	if (dir_enter(w, e->path, (size_t)(name - e->path)) < 0)
		return co_fail_errno(w->co, e->path);
	if ((e->mode & S_IFMT) == GIT_FILEMODE_COMMIT)
		r = write_submodule(w, name, &st) < 0 ? co_fail_errno(w->co, e->path) : 0;
	else
		r = write_blob(w, e, name, &st);
	if (r < 0)
		return r;
	/* In place: adding the entry again would drop the index's cache of trees, by which
	 * `git status` saves reading them.  The entry's key, its path, stays as it is. */
	entry_set_stat((git_index_entry *)(uintptr_t)e, &st);
	w->co->nfiles++;
	co_progress(w->co, "Writing files: %u", w->co->nfiles);
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int
write_entries(struct co *co, git_index *index, int root_fd)
{
	struct writer w = { .co = co, .root_fd = root_fd, .dir_fd = -1 };
	size_t n = git_index_entrycount(index);
	int r = 0;

	co->nfiles = 0;
	w.times[0].tv_sec = w.times[1].tv_sec = time(NULL) - AGE_SECONDS;
	for (size_t i = 0; i < n && r == 0; i++)
		r = write_entry(&w, git_index_get_byindex(index, i));
	io_close(&w.dir_fd);
	return r;
}

static int
index_fill(struct co *co, git_index *index)
{
	git_commit *commit = NULL;
	git_tree *tree = NULL;
	int r = git_commit_lookup(&commit, co->repo, &co->oid);

	if (r == 0)
		r = git_commit_tree(&tree, commit);
	if (r == 0)
		r = git_index_read_tree(index, tree);
	git_tree_free(tree);
	git_commit_free(commit);
	return r < 0 ? co_fail_git(co) : 0;
}

static int
write_with_index(struct co *co, git_index *index, int root_fd)
{
	int r = index_fill(co, index);

	if (r == 0)
		r = write_entries(co, index, root_fd);
	CRASH_POINT("checkout_files_written");
	if (r == 0)
		r = co_gitdir_write(co);
	if (r == 0 && git_index_write(index) < 0)
		r = co_fail_git(co);
	if (r == 0)
		r = co_gitdir_check(co);
	if (r == 0 && git_index_get_bypath(index, ".gitmodules", 0) != NULL)
		co_line(co, "The repository has submodules; they are not fetched.");
	return r;
}

int
co_workspace_write(struct co *co)
{
	CLEANUP(io_closep) int root_fd = -1;
	git_index *index = NULL;
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/.git/index", co->req.workspace) >=
	    (int)sizeof(path))
		return co_fail_reason(co, "path too long: %s", co->req.workspace);
	if (mkdir(co->req.workspace, 0700) < 0 && errno != EEXIST)
		return co_fail_errno(co, "workspace");
	root_fd = open(co->req.workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root_fd < 0)
		return co_fail_errno(co, "workspace");
	if (git_index_open(&index, path) < 0)
		return co_fail_git(co);
	r = write_with_index(co, index, root_fd);
	git_index_free(index);
	return r;
}
