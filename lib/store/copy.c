#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

#define STEP_PAGES 256  /* 1 MiB between two looks at whether to go on         */
#define CHECK_OPS  4000 /* virtual machine steps, likewise, while it is checked */

struct copying {
	struct store *from;
	sqlite3 *db; /* of the copy */
	char *part;
	const char *to;
	int dir;
	int fd; /* of `part`, and its lock */
	const struct store_copy_ops *ops;
	void *arg;
	int stopped; /* what ops->go_on answered */
	char **ret_why;
};

static int
explain(struct copying *c, const char *path, int r, const char *more)
{
	if (r < 0 && *c->ret_why == NULL)
		*c->ret_why = mem_format(
		    "%s: %s%s%s", path, err_text(r), more[0] != '\0' ? ": " : "", more);
	return r;
}

static int
may_go_on(struct copying *c)
{
	if (c->stopped == 0 && c->ops->go_on != NULL)
		c->stopped = c->ops->go_on(c->arg);
	return c->stopped;
}

/* ---- the file ---- */

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* What SQLite may have left beside a copy that a crash cut short: a journal would be played
 * back into the new one. */
static void
remove_beside(const struct copying *c)
{
	static const char *const ends[] = { "-journal", "-wal", "-shm" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		char name[NAME_MAX + 1];
		int n = snprintf(name, sizeof(name), "%s%s", name_of(c->part), ends[i]);

		if (n > 0 && (size_t)n < sizeof(name))
			(void)unlinkat(c->dir, name, 0);
	}
}

static int
exists(const struct copying *c)
{
	struct stat st;

	return fstatat(c->dir, name_of(c->to), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens `part` and locks it.  Between the two, another may have finished it: then what is
 * locked is that one's copy under its true name. */
static int
open_part(struct copying *c)
{
	const char *name = name_of(c->part);
	struct stat at, st;
	int fd = openat(c->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_from_errno(errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
	    fstatat(c->dir, name, &at, AT_SYMLINK_NOFOLLOW) < 0 || at.st_ino != st.st_ino) {
		io_close(&fd);
		return E_LOCKED;
	}
	c->fd = fd;
	remove_beside(c);
	if (exists(c))
		return E_EXISTS;
	return ftruncate(fd, 0) < 0 || fchmod(fd, 0600) < 0 ? err_from_errno(errno) : 0;
}

static int
open_place(struct copying *c)
{
	int r = store_open_folder(c->to, &c->dir);

	if (r < 0)
		return r;
	c->part = mem_format("%s.part", c->to);
	if (c->part == NULL)
		return E_NOMEM;
	return exists(c) ? E_EXISTS : open_part(c);
}

/* The new name never takes the place of a file, where the file system can promise that. */
static int
give_name(const struct copying *c)
{
	const char *from = name_of(c->part), *to = name_of(c->to);
	int rc = renameat2(c->dir, from, c->dir, to, RENAME_NOREPLACE), r;

	if (rc < 0 && (errno == EINVAL || errno == ENOSYS)) {
		if (exists(c))
			return E_EXISTS;
		rc = renameat(c->dir, from, c->dir, to);
	}
	if (rc < 0)
		return err_from_errno(errno);
	r = io_sync_dir(c->dir);
	if (r < 0)
		(void)unlinkat(c->dir, to, 0);
	return r;
}

static void
end(struct copying *c, int keep)
{
	(void)store_close(c->from);
	(void)sqlite3_close(c->db);
	if (c->fd >= 0 && !keep) {
		remove_beside(c);
		(void)unlinkat(c->dir, name_of(c->part), 0);
	}
	io_close(&c->fd);
	io_close(&c->dir);
	free(c->part);
}

/* ---- what is in it ---- */

/* One transaction of the reader holds the source still: without it, each commit of the actor
 * would make the copy begin anew.  The pages come as they are, with the order of their rows,
 * which VACUUM INTO would not keep. */
static int
copy_pages(struct copying *c)
{
	sqlite3_backup *b;
	int rc = SQLITE_OK, r = may_go_on(c);

	if (r < 0)
		return r;
	b = sqlite3_backup_init(c->db, "main", c->from->db, "main");
	if (b == NULL)
		return store_error_of(c->db, sqlite3_errcode(c->db));
	while (r == 0 && rc == SQLITE_OK) {
		rc = sqlite3_backup_step(b, STEP_PAGES);
		r = may_go_on(c);
	}
	if (rc != SQLITE_OK && rc != SQLITE_DONE)
		r = store_error_of(NULL, rc);
	rc = sqlite3_backup_finish(b);
	return r < 0 ? r : store_error_of(NULL, rc);
}

static int
begin(struct copying *c, const struct store_desc *d, const char *from, int64_t *ret_version)
{
	/* Writable, since the last one to close a store that nobody else has open has to tidy its
	 * log away; one that could only read would leave two files behind. */
	int r = store_open_second(d, from, SQLITE_OPEN_READWRITE, 0, &c->from);

	if (r == 0)
		r = store_look(c->from, c->ret_why);
	/* The first read takes the snapshot. */
	if (r == 0)
		r = store_do(c->from, WORD_BEGIN);
	if (r == 0)
		r = store_pragma(c->from, "PRAGMA user_version", ret_version);
	if (r == 0 && c->ops->look != NULL)
		r = c->ops->look(c->arg, c->from);
	return explain(c, from, r, c->from != NULL ? store_error(c->from) : "");
}

/* Exclusive: its log needs no shared memory, so there is no third file.  No journal on disk
 * either: what is half made is not used. */
static int
open_copy(struct copying *c)
{
	static const char *const words = "PRAGMA locking_mode=EXCLUSIVE;"
					 "PRAGMA journal_mode=MEMORY;"
					 "PRAGMA synchronous=FULL;"
					 "PRAGMA temp_store=MEMORY;"
					 "PRAGMA cell_size_check=ON;";
	int r = store_connect(c->part, SQLITE_OPEN_READWRITE, &c->db);

	return r < 0 ? r : store_error_of(c->db, sqlite3_exec(c->db, words, NULL, NULL, NULL));
}

/* The copy is in the mode of its source, so the mark is in its log first. */
static int
set_mark(struct copying *c)
{
	char *sql = sqlite3_mprintf("PRAGMA application_id=%d", STORE_COPY_MARK);
	int rc = sql != NULL ? sqlite3_exec(c->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	if (rc == SQLITE_OK)
		rc = sqlite3_wal_checkpoint_v2(
		    c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_free(sql);
	return store_error_of(c->db, rc);
}

static int
on_check(void *arg)
{
	return may_go_on(arg) < 0;
}

static int
check_copy(struct copying *c)
{
	int r;

	sqlite3_progress_handler(c->db, CHECK_OPS, on_check, c);
	r = store_check_all(c->db, c->part, c->ret_why);
	sqlite3_progress_handler(c->db, 0, NULL, NULL);
	return c->stopped < 0 ? c->stopped : r;
}

static int
fill(struct copying *c)
{
	int r = open_copy(c);

	if (r == 0)
		r = copy_pages(c);
	CRASH_POINT("copy_pages_written");
	if (r == 0)
		r = set_mark(c);
	if (r == 0)
		r = check_copy(c);
	if (r < 0)
		return explain(c, c->part, r,
		    c->db != NULL && c->stopped == 0 && sqlite3_errcode(c->db) != SQLITE_OK
			? sqlite3_errmsg(c->db)
			: "");
	/* Closing could write: it has to be done before the last sync. */
	if (sqlite3_close(c->db) != SQLITE_OK)
		return E_STORAGE;
	c->db = NULL;
	remove_beside(c);
	return fsync(c->fd) < 0 ? err_from_errno(errno) : 0;
}

int
store_copy(const struct store_desc *d, const char *from, const char *to,
    const struct store_copy_ops *ops, void *arg, struct store_copied *ret, char **ret_why)
{
	static const struct store_copy_ops none = { .go_on = NULL };
	struct copying c = { .to = to,
		.dir = -1,
		.fd = -1,
		.ops = ops != NULL ? ops : &none,
		.arg = arg,
		.ret_why = ret_why };
	struct store_copied done = { 0 };
	struct stat st = { 0 };
	int r;

	*ret_why = NULL;
	r = open_place(&c);
	if (r == 0)
		r = begin(&c, d, from, &done.version);
	if (r == 0)
		r = fill(&c);
	if (r == 0 && fstat(c.fd, &st) < 0)
		r = err_from_errno(errno);
	CRASH_POINT("copy_synced");
	if (r == 0)
		r = give_name(&c);
	if (r == E_SYS)
		r = E_STORAGE;
	(void)explain(&c, to, r, "");
	end(&c, r == 0);
	done.bytes = (int64_t)st.st_size;
	if (r == 0)
		*ret = done;
	return r;
}
