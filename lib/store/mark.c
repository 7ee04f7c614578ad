#include "lib/store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

/* Of the file's head, https://www.sqlite.org/fileformat.html, 1.3. */
#define HEAD_BYTES 100
#define VERSION_AT 60
#define MARK_AT    68
#define MARK_BYTES 4

static const uint8_t magic[16] = "SQLite format 3";

/* What SQLite would play into the file that it lies beside. */
static const char *const logs[] = { "-wal", "-journal" };

static uint32_t
number_at(const uint8_t *head, size_t at)
{
	return (uint32_t)head[at] << 24 | (uint32_t)head[at + 1] << 16 |
	    (uint32_t)head[at + 2] << 8 | head[at + 3];
}

/* ---- the head, before SQLite has read anything ---- */

/* The file as SQLite has it open: a descriptor of our own would, when it is closed, take
 * away the locks of every connection of this process. */
static sqlite3_file *
file_of(sqlite3 *db)
{
	sqlite3_file *f = NULL;
	int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f);

	must(rc == SQLITE_OK && f != NULL && f->pMethods != NULL);
	return f;
}

/* Zeros where the file is shorter. */
static int
read_head(sqlite3 *db, uint8_t head[HEAD_BYTES])
{
	sqlite3_file *f = file_of(db);
	int rc = f->pMethods->xRead(f, head, HEAD_BYTES, 0);

	return rc == SQLITE_IOERR_SHORT_READ ? 0 : store_error_of(NULL, rc);
}

static int
is_fresh(const uint8_t head[HEAD_BYTES])
{
	return memcmp(head, magic, sizeof(magic)) == 0 &&
	    number_at(head, MARK_AT) == STORE_COPY_MARK;
}

int
store_is_fresh(const char *path)
{
	CLEANUP(io_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t head[HEAD_BYTES];

	return fd >= 0 && pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    is_fresh(head);
}

/* ---- looking at it ---- */

/* 1: there is something; or E_NOMEM. */
static int
is_beside(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
		CLEANUP_FREE char *name = mem_format("%s%s", path, logs[i]);

		if (name == NULL)
			return E_NOMEM;
		if (access(name, F_OK) == 0)
			return 1;
	}
	return 0;
}

/* A name by which SQLite takes the file for one that nobody writes and that has no log. */
static char *
name_alone(const char *path)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT;

	(void)buf_add_str(&name, path[0] == '/' ? "file://" : "file:");
	for (const char *p = path; *p != '\0'; p++)
		(void)buf_printf(&name, strchr("%?#", *p) != NULL ? "%%%02x" : "%c", *p);
	(void)buf_add_str(&name, "?immutable=1");
	return name.failed ? NULL : buf_take_cstr(&name);
}

int
store_connect_to_look(const char *path, int flags, sqlite3 **ret)
{
	CLEANUP_FREE char *alone = NULL;
	uint8_t head[HEAD_BYTES];
	int r = store_connect(path, flags, ret);

	if (r == 0)
		r = read_head(*ret, head);
	if (r < 0 || !is_fresh(head))
		return r;
	r = is_beside(path);
	if (r <= 0)
		return r;
	alone = name_alone(path);
	if (alone == NULL)
		return E_NOMEM;
	(void)sqlite3_close(*ret);
	*ret = NULL;
	return store_connect(alone, flags | SQLITE_OPEN_URI, ret);
}

/* ---- taking it over ---- */

static int
say(struct store *s, const char *what, char **ret_why)
{
	*ret_why = mem_format("%s cannot be %s: %s", s->path, what, strerror(errno));
	return errno == ENOSPC ? E_FULL : E_STORAGE;
}

/* No file that is there is ever replaced. */
static int
rename_anew(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (access(to, F_OK) < 0)
		return rename(from, to);
	errno = EEXIST;
	return -1;
}

/* An empty one, which looking at the store may have left, is not worth keeping. */
static int
put_aside(struct store *s, const char *log, char **ret_why)
{
	CLEANUP_FREE char *name = mem_format("%s%s", s->path, log);
	int64_t now_ms = clock_wall_ms();
	struct stat st;

	if (name == NULL)
		return E_NOMEM;
	if (lstat(name, &st) < 0)
		return errno == ENOENT ? 0 : say(s, "taken over", ret_why);
	if (S_ISREG(st.st_mode) && st.st_size == 0)
		return unlink(name) < 0 ? say(s, "rid of an empty log", ret_why) : 0;
	for (;; now_ms++) {
		CLEANUP_FREE char *aside = mem_format("%s.stale-%lld", name, (long long)now_ms);

		if (aside == NULL)
			return E_NOMEM;
		if (rename_anew(name, aside) == 0) {
			free(s->set_aside);
			s->set_aside = TAKE_PTR(aside);
			return 0;
		}
		if (errno != EEXIST)
			return say(s, "freed of the log of another store", ret_why);
	}
}

/* Also when nothing was there to be put aside now: who did so may have died before this. */
static int
sync_folder(struct store *s)
{
	CLEANUP(io_closep) int dir = -1;
	int r = store_open_folder(s->path, &dir);

	return r < 0 ? r : io_sync_dir(dir);
}

/* The states differ in one byte, so that none is ever half written. */
static int
set_opened(struct store *s, char **ret_why)
{
	static const uint8_t opened[MARK_BYTES] = "anvR";
	sqlite3_file *f = file_of(s->db);
	int rc = f->pMethods->xWrite(f, opened, MARK_BYTES, MARK_AT);

	if (rc == SQLITE_OK)
		rc = f->pMethods->xSync(f, SQLITE_SYNC_NORMAL);
	if (rc != SQLITE_OK)
		*ret_why = mem_format(
		    "%s is a copy, and cannot be written to be taken into use", s->path);
	return store_error_of(NULL, rc);
}

/* Once a sync has failed, what is read is not what is on disk; so it is made sure of again before
 * there can be a log.  There is none without room for it, or in a file that is only read. */
static int
stay_opened(struct store *s, char **ret_why)
{
	int r = sqlite3_db_readonly(s->db, "main") == 1 ? 0 : set_opened(s, ret_why);

	if (r != E_FULL)
		return r;
	free(*ret_why);
	*ret_why = NULL;
	return 0;
}

static int
put_all_aside(struct store *s, char **ret_why)
{
	/* The index of the log is made anew from any log. */
	CLEANUP_FREE char *index = mem_format("%s-shm", s->path);
	int r = index != NULL ? 0 : E_NOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(logs); i++) {
		r = put_aside(s, logs[i], ret_why);
		CRASH_POINT("copy_log_put_aside");
	}
	if (r < 0)
		return r;
	(void)unlink(index);
	r = sync_folder(s);
	CRASH_POINT("copy_alone");
	return r == E_SYS ? E_STORAGE : r;
}

int
store_take_over(struct store *s, char **ret_why)
{
	uint8_t head[HEAD_BYTES];
	int r = read_head(s->db, head);

	if (r < 0 || memcmp(head, magic, sizeof(magic)) != 0)
		return r;
	if (number_at(head, MARK_AT) == STORE_RESTORED_MARK)
		return stay_opened(s, ret_why);
	if (!is_fresh(head))
		return 0;
	r = store_look_at_version(s, (int64_t)number_at(head, VERSION_AT), ret_why);
	if (r == 0)
		r = put_all_aside(s, ret_why);
	if (r == 0)
		r = set_opened(s, ret_why);
	CRASH_POINT("copy_taken_over");
	return r;
}

const char *
store_set_aside(const struct store *s)
{
	return s->set_aside;
}

/* ---- the mark ---- */

int
store_is_restored(struct store *s, int *ret_restored)
{
	int64_t id = 0;
	int r = store_pragma(s, "PRAGMA application_id", &id);

	if (r == 0)
		*ret_restored = id == STORE_RESTORED_MARK || id == STORE_COPY_MARK;
	return r;
}

int
store_clear_restored(struct store *s)
{
	static const char *const sql = "PRAGMA application_id=0";
	int r;

	if (store_in_txn(s))
		return store_exec(s, sql);
	r = store_set_sync(s, STORE_SYNC_FULL);
	if (r == 0)
		r = store_begin(s);
	if (r == 0)
		r = store_exec(s, sql);
	if (r == 0)
		r = store_commit(s);
	else
		store_rollback(s);
	if (r == 0)
		r = store_set_sync(s, s->desc->sync);
	return r;
}
