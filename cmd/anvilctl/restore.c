#include "cmd/anvilctl/restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define KEPT_FILE_MAX ((size_t)1 << 20)

static int
fail_at(const char *path)
{
	return ctl_fail("%s: %s", path, strerror(errno));
}

/* ---- names ---- */

/* The folder that holds ${path}; the caller frees. */
static char *
above(const char *path)
{
	char *copy = mem_strdup(path);
	char *slash = copy != NULL ? strrchr(copy, '/') : NULL;

	if (slash != NULL)
		slash[slash == copy] = '\0';
	return copy;
}

/* data_dir may be a link to where the disk is: what is swapped is the folder itself. */
static int
find_data(struct restore *rs)
{
	CLEANUP_FREE char *parent = above(rs->config->data_dir);
	struct stat st;

	if (parent == NULL)
		return ctl_fail_nomem();
	if (lstat(rs->config->data_dir, &st) < 0 && errno == ENOENT) {
		if (io_mkdirs(parent, 0755) < 0)
			return fail_at(parent);
		rs->data = mem_strdup(rs->config->data_dir);
		return rs->data != NULL ? 0 : ctl_fail_nomem();
	}
	rs->data = realpath(rs->config->data_dir, NULL);
	if (rs->data == NULL)
		return fail_at(rs->config->data_dir);
	if (stat(rs->data, &st) < 0 || !S_ISDIR(st.st_mode))
		return ctl_fail("%s is no folder", rs->data);
	return 0;
}

static int
is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* ${n} tells folders of one second apart. */
static char *
name_beside(const struct restore *rs, const char *what, const char *when, int n)
{
	return n == 0 ? mem_format("%s.%s-%s", rs->data, what, when)
		      : mem_format("%s.%s-%s.%d", rs->data, what, when, n);
}

/* What a restore that was cut short has left at ${path}. */
static int
tidy_one(const struct restore *rs, const char *path, const char *when)
{
	CLEANUP_FREE char *mark = mem_format("%s/" RESTORE_UNFINISHED, path);
	CLEANUP_FREE char *kept = name_beside(rs, "before-restore", when, 0);

	if (mark == NULL || kept == NULL)
		return ctl_fail_nomem();
	if (is_there(mark))
		return files_remove_tree(path) < 0 ? fail_at(path) : 0;
	if (renameat2(AT_FDCWD, path, AT_FDCWD, kept, RENAME_NOREPLACE) < 0)
		return fail_at(path);
	(void)ctl_fail("the data from before an interrupted restore is in %s", kept);
	return 0;
}

static int
tidy(const struct restore *rs)
{
	CLEANUP_FREE char *parent = above(rs->data);
	CLEANUP_FREE char *mark = mem_format("%s/" RESTORE_UNFINISHED, rs->data);
	CLEANUP_FREE char *start = mem_format("%s.restoring-", strrchr(rs->data, '/') + 1);
	const struct dirent *e;
	DIR *d = NULL;
	int r = 0;

	if (parent == NULL || mark == NULL || start == NULL)
		return ctl_fail_nomem();
	d = opendir(parent);
	if (d == NULL)
		return fail_at(parent);

	/* Of data that is in its place: it must not look like a stage when it is swapped out. */
	if (r == 0 && is_there(mark) && (unlink(mark) < 0 || files_sync_folder(rs->data) < 0))
		r = fail_at(mark);
	while (r == 0 && (e = readdir(d)) != NULL) {
		CLEANUP_FREE char *path = mem_format("%s/%s", parent, e->d_name);

		if (path == NULL)
			r = ctl_fail_nomem();
		else if (strncmp(e->d_name, start, strlen(start)) == 0)
			r = tidy_one(rs, path, e->d_name + strlen(start));
	}
	(void)closedir(d);
	return r;
}

/* Folders are swapped within one file system. */
static int
check_place(const struct restore *rs)
{
	CLEANUP_FREE char *parent = above(rs->data);
	struct stat at, in;

	if (parent == NULL)
		return ctl_fail_nomem();
	if (stat(rs->data, &at) < 0)
		return 0;
	if (stat(parent, &in) == 0 && at.st_dev != in.st_dev)
		return ctl_fail(
		    "%s is a mount point, which cannot be swapped: let data_dir be a "
		    "folder in it",
		    rs->data);
	return access(parent, W_OK) == 0
	    ? 0
	    : ctl_fail("%s: the new data is laid beside the old, and %s cannot be written to; "
		       "restore as root",
		  rs->data, parent);
}

static int
check_room(const struct restore *rs)
{
	CLEANUP_FREE char *parent = above(rs->data);
	int64_t need = manifest_bytes(rs->manifest);
	char need_text[TEXT_SIZE], have_text[TEXT_SIZE];
	struct statvfs vfs;

	if (parent == NULL || statvfs(parent, &vfs) < 0)
		return 0; /* the copying will tell */
	if ((int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize > need)
		return 0;
	text_bytes(need, need_text);
	text_bytes((int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize, have_text);
	return ctl_fail("%s has %s free and %s are needed: the old data stays beside the new",
	    parent, have_text, need_text);
}

static int
choose_names(struct restore *rs, const char *when)
{
	for (int n = 0;; n++) {
		free(rs->stage);
		free(rs->kept);
		rs->stage = name_beside(rs, "restoring", when, n);
		rs->kept = name_beside(rs, "before-restore", when, n);
		if (rs->stage == NULL || rs->kept == NULL)
			return ctl_fail_nomem();
		if (!is_there(rs->stage) && !is_there(rs->kept))
			return 0;
	}
}

int
restore_plan(struct restore *rs)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;
	char when[32];
	int r;

	(void)gmtime_r(&now, &tm);
	(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	r = find_data(rs);
	if (r == 0)
		r = check_place(rs);
	if (r == 0)
		r = check_room(rs);
	return r == 0 ? choose_names(rs, when) : r;
}

/* ---- filling the stage ---- */

static int
give(const struct restore *rs, int fd)
{
	return geteuid() == 0 && fchown(fd, rs->uid, rs->gid) < 0 ? -1 : 0;
}

static int
make_folder(const struct restore *rs, const char *path)
{
	CLEANUP(io_closep) int fd = -1;

	if (mkdir(path, 0700) < 0)
		return fail_at(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 || give(rs, fd) < 0 ? fail_at(path) : 0;
}

/* The digest is taken of what is written, from the bytes that were read for it. */
static int
stage_file(const struct restore *rs, int stage, const struct manifest_file *f)
{
	CLEANUP(io_closep)
	int to = openat(
	    stage, f->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char why[FILES_WHY_SIZE];
	struct file_facts facts;
	int r;

	if (to < 0 || give(rs, to) < 0)
		return fail_at(f->path);
	r = file_facts(rs->dirfd, f->path, to, &facts, why);
	if (r < 0)
		return ctl_fail("%s/%s %s", rs->dir, f->path, why);
	if (strcmp(facts.sha256, f->facts.sha256) != 0)
		return ctl_fail("%s/%s has changed since it was verified", rs->dir, f->path);
	return 0;
}

/* Both files of a run lie in one. */
static int
stage_run_folder(const struct restore *rs, const char *path)
{
	CLEANUP_FREE char *folder = mem_format("%s/%s", rs->stage, path);

	if (folder == NULL)
		return ctl_fail_nomem();
	*strrchr(folder, '/') = '\0';
	return is_there(folder) ? 0 : make_folder(rs, folder);
}

static int
sync_one(void *arg, const char *path, int is_file)
{
	const struct restore *rs = arg;
	CLEANUP_FREE char *folder = mem_format("%s/%s", rs->stage, path);

	if (is_file)
		return 0;
	return folder != NULL ? files_sync_folder(folder) : E_NOMEM;
}

static int
stage_files(struct restore *rs, int stage)
{
	const struct manifest *m = rs->manifest;
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->nfiles; i++) {
		enum file_role role = file_role_of(m->files[i].path);

		progress_say(&rs->progress, "restoring %zu of %zu files", i, m->nfiles);
		CRASH_POINT("restore_staging");
		if (role == FILE_RUN || role == FILE_LOG)
			r = stage_run_folder(rs, m->files[i].path);
		if (r == 0)
			r = stage_file(rs, stage, &m->files[i]);
	}
	progress_end(&rs->progress);
	return r;
}

/* What anvil needs of the old folder though no backup has it: by default the keys file lies in it,
 * and the configuration may. */
static int
keep_file(const struct restore *rs, const char *path)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	CLEANUP_FREE char *to = NULL;
	CLEANUP_FREE char *true_path = path != NULL ? realpath(path, NULL) : NULL;
	size_t n = strlen(rs->data);
	struct stat st;
	int r;

	if (true_path == NULL || strncmp(true_path, rs->data, n) != 0 || true_path[n] != '/')
		return 0;
	to = mem_format("%s%s", rs->stage, true_path + n);
	if (to == NULL)
		return ctl_fail_nomem();
	r = io_read_file(AT_FDCWD, true_path, KEPT_FILE_MAX, &text);
	if (r == 0 && stat(true_path, &st) < 0)
		r = err_from_errno(errno);
	/* A folder that it lay in was somebody's own. */
	if (r == 0 && strchr(true_path + n + 1, '/') != NULL)
		return ctl_fail(
		    "%s lies in the old data: move it out of %s first", path, rs->data);
	if (r == 0)
		r = io_write_file(AT_FDCWD, to, text.data, text.len, st.st_mode & 0777);
	if (r == 0 && geteuid() == 0 && chown(to, st.st_uid, st.st_gid) < 0)
		r = err_from_errno(errno);
	return r < 0 ? ctl_fail("%s: %s", path, err_text(r)) : 0;
}

static int
fill_stage(struct restore *rs, int stage)
{
	CLEANUP_FREE char *runs = mem_format("%s/runs", rs->stage);
	int r = runs != NULL ? make_folder(rs, runs) : ctl_fail_nomem();

	if (r == 0)
		r = stage_files(rs, stage);
	if (r == 0)
		r = keep_file(rs, rs->config->keys_file);
	if (r == 0)
		r = keep_file(rs, rs->ctl->globals[GLOBAL_CONFIG]);
	if (r == 0 && (files_walk(rs->stage, 1, sync_one, rs) < 0 || fsync(stage) < 0))
		r = fail_at(rs->stage);
	return r;
}

int
restore_stage(struct restore *rs)
{
	CLEANUP(io_closep) int stage = -1, mark = -1;
	struct lock_holder who;
	int r = tidy(rs);

	if (r == 0)
		r = make_folder(rs, rs->stage);
	if (r != 0)
		return r;
	stage = open(rs->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage < 0)
		return fail_at(rs->stage);
	mark = openat(stage, RESTORE_UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (mark < 0 || fsync(stage) < 0)
		return fail_at(rs->stage);
	/* Whoever starts anvild at the moment of the swap waits for us, in the new folder too. */
	if (locks_make(&rs->locks, rs->stage, "supervisor.db.lock", rs->uid, rs->gid, &who) < 0)
		return fail_at(rs->stage);
	r = fill_stage(rs, stage);
	CRASH_POINT("restore_filled");
	if (r != 0)
		(void)files_remove_tree(rs->stage);
	return r;
}

/* ---- the swap ---- */

static int
swap_folders(const struct restore *rs, int is_old)
{
	unsigned flags = is_old ? RENAME_EXCHANGE : RENAME_NOREPLACE;

	if (renameat2(AT_FDCWD, rs->stage, AT_FDCWD, rs->data, flags) == 0)
		return 0;
	switch (errno) {
	case EXDEV:
	case EINVAL:
	case ENOSYS:
		return ctl_fail(
		    "the file system of %s cannot swap two folders in one step; move "
		    "the old one away by hand, then restore again",
		    rs->data);
	default: return fail_at(rs->data);
	}
}

/* After the swap nothing is left but names. */
static int
finish(const struct restore *rs, const char *parent, int was_old)
{
	CLEANUP_FREE char *mark = mem_format("%s/" RESTORE_UNFINISHED, rs->data);

	if (mark == NULL)
		return ctl_fail_nomem();
	if (was_old && renameat2(AT_FDCWD, rs->stage, AT_FDCWD, rs->kept, RENAME_NOREPLACE) < 0)
		return ctl_fail("the old data is in %s: it cannot be renamed (%s)", rs->stage,
		    strerror(errno));
	CRASH_POINT("restore_renamed");
	if (files_sync_folder(parent) < 0)
		return fail_at(parent);
	return unlink(mark) < 0 || files_sync_folder(rs->data) < 0 ? fail_at(mark) : 0;
}

int
restore_swap(struct restore *rs)
{
	CLEANUP_FREE char *parent = above(rs->data);
	int is_old = is_there(rs->data);
	int r = parent != NULL ? swap_folders(rs, is_old) : ctl_fail_nomem();

	if (r != 0) {
		(void)files_remove_tree(rs->stage);
		return r;
	}
	CRASH_POINT("restore_swapped");
	if (files_sync_folder(parent) < 0)
		return fail_at(parent);
	r = finish(rs, parent, is_old);
	if (!is_old)
		rs->kept = mem_free(rs->kept);
	return r;
}
