/*
 * The project's mirror: a bare repository that only the holder of its lock touches.
 *
 * It is a cache.  Nothing in it is synced to disk; what a crash leaves behind is noticed as
 * an error of the object database, and then the mirror is made anew.  Its refs live in one
 * packed-refs file that is replaced whole, so that an unchanged remote is one comparison.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

#define REFS_HEADER "# pack-refs with: peeled fully-peeled sorted \n"
#define REFS_MAX    (256 * 1024 * 1024)
#define REMOVE_FDS  16
#define OLD_INFIX   ".old-"

/* ---- lock --------------------------------------------------------------------------- */

static int
make_parent(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof(dir))
		return E_INVAL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	return io_mkdirs(dir, 0700);
}

int
co_mirror_lock(struct co *co)
{
	int r = make_parent(co->req.lock);

	if (r < 0)
		return co_fail_err(co, r, "mirror directory");
	co->lock_fd = open(co->req.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (co->lock_fd < 0)
		return co_fail_errno(co, "mirror lock");
	if (flock(co->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	co_line(co, "Waiting for another checkout of this project.");
	while (flock(co->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return co_fail_errno(co, "mirror lock");
	return 0;
}

/* ---- making and removing ------------------------------------------------------------ */

int
co_write_text(struct co *co, const char *path, const char *text, size_t n)
{
	CLEANUP(io_closep) int fd = -1;
	char tmp[PATH_MAX];
	int r;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.new", path) >= sizeof(tmp))
		return co_fail_reason(co, "path too long: %s", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return co_fail_errno(co, path);
	r = io_write_all(fd, text, n);
	if (r < 0)
		return co_fail_err(co, r, path);
	CRASH_POINT("checkout_text_written");
	return rename(tmp, path) < 0 ? co_fail_errno(co, path) : 0;
}

static int
mirror_path(struct co *co, char out[PATH_MAX], const char *name)
{
	if (snprintf(out, PATH_MAX, "%s/%s", co->req.mirror, name) >= PATH_MAX)
		return co_fail_reason(co, "path too long: %s", co->req.mirror);
	return 0;
}

/* The whole config file: it is compared as text to see whose mirror this is.  NULL: no
 * memory. */
static char *
config_text(const struct co *co)
{
	struct buf b = BUF_INIT;

	(void)buf_add_str(&b,
	    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	    "[gc]\n\tauto = 0\n[remote \"origin\"]\n\turl = ");
	co_config_quote(&b, co->req.url);
	(void)buf_add_str(
	    &b, "\n\tfetch = +refs/heads/*:refs/heads/*\n\tfetch = +refs/tags/*:refs/tags/*\n");
	if (b.failed)
		buf_done(&b);
	return buf_take_cstr(&b);
}

static int
remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static int
remove_tree(const char *path)
{
	return nftw(path, remove_entry, REMOVE_FDS, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT
	    ? -1
	    : 0;
}

/* Mirrors that were renamed away by a child that did not live to remove them. */
static void
sweep_old(const struct co *co)
{
	char dir[PATH_MAX], prefix[NAME_MAX + 1], path[PATH_MAX + NAME_MAX + 2];
	const char *slash = strrchr(co->req.mirror, '/');
	struct dirent *e;
	DIR *d;

	if (slash == NULL || (size_t)(slash - co->req.mirror) >= sizeof(dir))
		return;
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - co->req.mirror), co->req.mirror);
	(void)snprintf(prefix, sizeof(prefix), "%.200s" OLD_INFIX, slash + 1);
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		(void)remove_tree(path);
	}
	if (d != NULL)
		(void)closedir(d);
}

int
co_mirror_discard(struct co *co)
{
	char away[PATH_MAX], tag[ID_HEX32_SIZE];

	co_mirror_close(co);
	id_hex32(tag);
	if (snprintf(away, sizeof(away), "%s" OLD_INFIX "%.8s", co->req.mirror, tag) >=
	    PATH_MAX)
		return co_fail_reason(co, "path too long: %s", co->req.mirror);
	if (rename(co->req.mirror, away) < 0 && errno != ENOENT)
		return co_fail_errno(co, "mirror");
	CRASH_POINT("checkout_mirror_away");
	sweep_old(co);
	return 0;
}

static int
mirror_make(struct co *co)
{
	static const char *const dirs[] = { "", "objects", "objects/info", "objects/pack",
		"refs" };
	CLEANUP_FREE char *config = config_text(co);
	char path[PATH_MAX];
	int r = 0;

	if (config == NULL)
		return co_fail_err(co, E_NOMEM, "mirror");
	for (size_t i = 0; i < ARRAY_LEN(dirs) && r == 0; i++) {
		r = mirror_path(co, path, dirs[i]);
		if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
			r = co_fail_errno(co, "mirror");
	}
	if (r == 0)
		r = mirror_path(co, path, "HEAD");
	if (r == 0)
		r = co_write_text(co, path, "ref: refs/heads/main\n", 21);
	if (r == 0)
		r = mirror_path(co, path, "config");
	CRASH_POINT("checkout_mirror_half");
	if (r == 0) /* Last: a mirror is whole when its config is there. */
		r = co_write_text(co, path, config, strlen(config));
	co->fresh = r == 0;
	return r;
}

/* ---- opening ------------------------------------------------------------------------ */

static int
has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

/* What a killed fetch left: temporary packs, and packs whose index never came. */
static int
is_leftover(int dirfd, const char *name)
{
	char index[NAME_MAX + 8];

	if (name[0] == '.' || strcmp(name, "multi-pack-index") == 0)
		return 0;
	if (strncmp(name, "pack-", 5) != 0 || has_suffix(name, ".lock"))
		return 1;
	if (!has_suffix(name, ".pack"))
		return 0;
	(void)snprintf(index, sizeof(index), "%.*s.idx", (int)strlen(name) - 5, name);
	return faccessat(dirfd, index, F_OK, 0) < 0;
}

static void
sweep_packs(struct co *co)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	if (mirror_path(co, path, "objects/pack") < 0 || (d = opendir(path)) == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (is_leftover(dirfd(d), e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)closedir(d);
}

/* 1: the mirror is there and of this URL; 0: it has to be made; negative: failed. */
static int
mirror_usable(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	CLEANUP_FREE char *config = config_text(co);
	char path[PATH_MAX];
	int r = mirror_path(co, path, "config");

	if (config == NULL)
		return co_fail_err(co, E_NOMEM, "mirror");
	if (r < 0)
		return r;
	r = io_read_file(AT_FDCWD, path, CHECKOUT_FRAME_MAX, &b);
	if (r == E_NOENT)
		return access(co->req.mirror, F_OK) < 0 ? 0 : co_mirror_discard(co);
	if (r < 0)
		return co_fail_err(co, r, "mirror");
	if (b.len == strlen(config) && memcmp(b.data, config, b.len) == 0)
		return 1;
	co_line(co, "The mirror is of another repository URL; fetching everything.");
	return co_mirror_discard(co);
}

int
co_mirror_open(struct co *co)
{
	int r;

	sweep_old(co);
	r = mirror_usable(co);
	co->fresh = 0;
	if (r < 0)
		return r;
	if (r == 0 && (r = mirror_make(co)) < 0)
		return r;
	sweep_packs(co);
	if (git_repository_open_bare(&co->repo, co->req.mirror) < 0 ||
	    git_repository_odb(&co->odb, co->repo) < 0)
		return co_fail_git(co);
	return 0;
}

void
co_mirror_close(struct co *co)
{
	git_odb_free(co->odb);
	git_repository_free(co->repo);
	co->odb = NULL;
	co->repo = NULL;
}

/* ---- refs --------------------------------------------------------------------------- */

void
co_refs_clear(struct co *co)
{
	for (size_t i = 0; i < co->nrefs; i++)
		free(co->refs[i].name);
	co->refs = mem_free(co->refs);
	co->nrefs = 0;
	co->refs_cap = 0;
}

const struct co_ref *
co_refs_find(const struct co *co, const char *prefix, const char *name)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < co->nrefs; i++)
		if (strncmp(co->refs[i].name, prefix, n) == 0 &&
		    strcmp(co->refs[i].name + n, name) == 0)
			return &co->refs[i];
	return NULL;
}

static int
refs_text(const struct co *co, struct buf *out)
{
	char sha[GIT_OID_HEXSZ + 1];

	(void)buf_add_str(out, REFS_HEADER);
	for (size_t i = 0; i < co->nrefs; i++) {
		const struct co_ref *ref = &co->refs[i];

		(void)buf_printf(
		    out, "%s %s\n", git_oid_tostr(sha, sizeof(sha), &ref->oid), ref->name);
		if (!git_oid_equal(&ref->oid, &ref->peeled))
			(void)buf_printf(
			    out, "^%s\n", git_oid_tostr(sha, sizeof(sha), &ref->peeled));
	}
	return out->failed ? E_NOMEM : 0;
}

int
co_mirror_refs_same(struct co *co)
{
	CLEANUP(buf_done) struct buf wanted = BUF_INIT, have = BUF_INIT;
	char path[PATH_MAX];

	return mirror_path(co, path, "packed-refs") == 0 && refs_text(co, &wanted) == 0 &&
	    io_read_file(AT_FDCWD, path, REFS_MAX, &have) == 0 && have.len == wanted.len &&
	    memcmp(have.data, wanted.data, have.len) == 0;
}

int
co_mirror_refs_write(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char path[PATH_MAX];
	int r = mirror_path(co, path, "packed-refs");

	if (r == 0 && refs_text(co, &b) < 0)
		r = co_fail_err(co, E_NOMEM, "refs");
	return r < 0 ? r : co_write_text(co, path, (const char *)b.data, b.len);
}
