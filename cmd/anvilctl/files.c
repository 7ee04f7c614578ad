#include "cmd/anvilctl/files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define HEAD_BYTES  100 /* of every SQLite file */
#define SHARD_LAST  63

/* ---- names ---- */

int
file_shard(const char *path)
{
	char same[32];
	int n = -1;

	if (sscanf(path, "project-%2d", &n) != 1 || n < 0 || n > SHARD_LAST)
		return -1;
	(void)snprintf(same, sizeof(same), "project-%d.db", n);
	return strcmp(path, same) == 0 ? n : -1;
}

enum file_role
file_role_of(const char *path)
{
	const char *rest;
	char run_id[ID_SIZE];

	if (strcmp(path, "supervisor.db") == 0)
		return FILE_SUPERVISOR;
	if (strcmp(path, "ingress.db") == 0)
		return FILE_INGRESS;
	if (file_shard(path) >= 0)
		return FILE_PROJECT;
	if (strncmp(path, "runs/", 5) != 0 || (rest = strchr(path + 5, '/')) == NULL ||
	    rest - (path + 5) >= ID_SIZE)
		return FILE_ROLE_COUNT;
	(void)snprintf(run_id, sizeof(run_id), "%.*s", (int)(rest - (path + 5)), path + 5);
	if (!id_check(ID_RUN, run_id))
		return FILE_ROLE_COUNT;
	if (strcmp(rest, "/run.db") == 0)
		return FILE_RUN;
	return strcmp(rest, "/log.zst") == 0 ? FILE_LOG : FILE_ROLE_COUNT;
}

const char *
file_role_name(enum file_role role)
{
	static const char *const names[FILE_ROLE_COUNT] = { "supervisor", "ingress", "project",
		"run", "log" };

	return role < FILE_ROLE_COUNT ? names[role] : "";
}

/* ---- facts ---- */

static uint32_t
number_at(const uint8_t *head, size_t at)
{
	return (uint32_t)head[at] << 24 | (uint32_t)head[at + 1] << 16 |
	    (uint32_t)head[at + 2] << 8 | head[at + 3];
}

/* What SQLite says of a file in its first bytes (its file format, 1.3).  More than that is not
 * looked at here: whoever made the copy has checked all of it, and the digest tells that it is
 * what was checked then. */
static int
read_head(const uint8_t head[HEAD_BYTES], int64_t bytes, int64_t *ret_version,
    char why[FILES_WHY_SIZE])
{
	int64_t page = (int64_t)head[16] << 8 | head[17];
	uint32_t mark;

	page = page == 1 ? 65536 : page;
	if (bytes < HEAD_BYTES || memcmp(head, "SQLite format 3", 16) != 0 ||
	    page * number_at(head, 28) != bytes) {
		(void)snprintf(why, FILES_WHY_SIZE, "is no whole store");
		return E_CORRUPT;
	}
	mark = number_at(head, 68);
	if (mark != STORE_COPY_MARK && mark != STORE_RESTORED_MARK) {
		(void)snprintf(why, FILES_WHY_SIZE,
		    "is no copy that anvil made for a backup: it lacks the mark");
		return E_CORRUPT;
	}
	*ret_version = number_at(head, 60);
	return 0;
}

struct reading {
	int from, to;
	struct sha256 sha;
	int64_t bytes;
	uint8_t head[HEAD_BYTES];
};

static int
read_on(struct reading *rd)
{
	CLEANUP_FREE uint8_t *piece = mem_alloc(PIECE_BYTES);
	int r = piece != NULL ? 0 : E_NOMEM;

	sha256_init(&rd->sha);
	while (r == 0) {
		ssize_t got = read(rd->from, piece, PIECE_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? err_from_errno(errno) : 0;
		if (rd->bytes < HEAD_BYTES)
			memcpy(rd->head + rd->bytes, piece,
			    min_size((size_t)got, HEAD_BYTES - (size_t)rd->bytes));
		sha256_add(&rd->sha, piece, (size_t)got);
		rd->bytes += got;
		if (rd->to >= 0)
			r = io_write_all(rd->to, piece, (size_t)got);
	}
	return r;
}

int
file_facts(
    int dirfd, const char *path, int to_fd, struct file_facts *ret, char why[FILES_WHY_SIZE])
{
	CLEANUP(io_closep) int fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct reading rd = { .from = fd, .to = to_fd };
	enum file_role role = file_role_of(path);
	struct file_facts facts = { 0 };
	int r = 0;

	if (fd < 0)
		r = err_from_errno(errno);
	if (r == 0)
		r = read_on(&rd);
	if (r == 0 && to_fd >= 0 && fsync(to_fd) < 0)
		r = err_from_errno(errno);
	if (r < 0) {
		(void)snprintf(why, FILES_WHY_SIZE, "%s",
		    r == E_NOENT     ? "is missing"
			: r == E_SYS ? strerror(errno)
				     : err_text(r));
		return r;
	}
	facts.bytes = rd.bytes;
	sha256_end_hex(&rd.sha, facts.sha256);
	if (role != FILE_LOG)
		r = read_head(rd.head, rd.bytes, &facts.version, why);
	if (r == 0)
		*ret = facts;
	return r;
}

/* ---- trees ---- */

struct walk {
	size_t root; /* length of its path */
	int folders;
	int (*fn)(void *arg, const char *path, int is_file);
	void *arg;
};

static int
see(const struct walk *w, const FTSENT *e)
{
	const char *path = e->fts_path + w->root;

	path += *path == '/';
	switch (e->fts_info) {
	case FTS_D: return 0;
	case FTS_DP: return w->folders && e->fts_level > 0 ? w->fn(w->arg, path, 0) : 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS: errno = e->fts_errno; return err_from_errno(errno);
	default: return w->fn(w->arg, path, e->fts_info == FTS_F);
	}
}

int
files_walk(const char *dir, int folders, int (*fn)(void *arg, const char *path, int is_file),
    void *arg)
{
	CLEANUP_FREE char *root = mem_strdup(dir);
	char *const paths[] = { root, NULL };
	const struct walk w = { strlen(dir), folders, fn, arg };
	const FTSENT *e;
	FTS *fts;
	int r = 0;

	if (root == NULL)
		return E_NOMEM;
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (fts == NULL)
		return err_from_errno(errno);
	while (r == 0 && (errno = 0, e = fts_read(fts)) != NULL)
		r = see(&w, e);
	if (r == 0 && errno != 0)
		r = err_from_errno(errno);
	(void)fts_close(fts);
	return r;
}

static int
remove_one(void *arg, const char *path, int is_file)
{
	const int *dirfd = arg;
	int rc = unlinkat(*dirfd, path, is_file ? 0 : AT_REMOVEDIR);

	if (rc < 0 && errno == ENOTDIR) /* a link, a socket */
		rc = unlinkat(*dirfd, path, 0);
	return rc < 0 ? err_from_errno(errno) : 0;
}

int
files_remove_tree(const char *dir)
{
	CLEANUP(io_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_from_errno(errno);
	r = files_walk(dir, 1, remove_one, &fd);
	return r == 0 && rmdir(dir) < 0 ? err_from_errno(errno) : r;
}

int
files_sync_folder(const char *dir)
{
	CLEANUP(io_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_from_errno(errno) : io_sync_dir(fd);
}
