#include "lib/record/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/record/inside.h"

#define PIECE_BYTES ((size_t)256 << 10) /* of the archive between two looks */

static int
explain(int r, const char *dir, const char *what, char **ret_why)
{
	if (r < 0 && *ret_why == NULL)
		*ret_why = mem_format("%s/%s: %s", dir, what, err_text(r));
	return r;
}

/* ---- run.db ---- */

struct copying {
	store_go_on_fn *go_on;
	void *arg;
	int64_t log_end;
};

static int
on_go_on(void *arg)
{
	const struct copying *c = arg;

	return c->go_on != NULL ? c->go_on(c->arg) : 0;
}

/* Where the frames end that the copied rows name. */
static int
on_look(void *arg, struct store *from)
{
	struct copying *c = arg;
	struct stmt *st = store_stmt(from, STMT_FRAME_LAST);
	int r = stmt_step(st);

	c->log_end = r > 0 ? stmt_int(st, 2) + stmt_int(st, 3) : 0;
	(void)stmt_reset(st);
	return r < 0 ? r : 0;
}

int
record_copy_store(const char *dir, const char *folder, store_go_on_fn *go_on, void *arg,
    struct record_copied *ret, int64_t *ret_log_end, char **ret_why)
{
	static const struct store_copy_ops ops = { on_go_on, on_look };
	CLEANUP_FREE char *from = mem_format("%s/" RECORD_DB, dir);
	CLEANUP_FREE char *to = mem_format("%s/" RECORD_DB, folder);
	struct copying c = { go_on, arg, 0 };
	struct store_copied done;
	int r;

	*ret_why = NULL;
	if (from == NULL || to == NULL)
		return E_NOMEM;
	if (access(from, F_OK) < 0 && errno == ENOENT)
		return explain(E_NOENT, dir, RECORD_DB, ret_why);
	r = store_copy(&record_store_desc, from, to, &ops, &c, &done, ret_why);
	if (r < 0)
		return r;
	*ret = (struct record_copied) { .version = done.version, .db_bytes = done.bytes };
	*ret_log_end = c.log_end;
	return 0;
}

/* ---- log.zst ---- */

/* Power loss may have left the file shorter than the rows say: what is there is copied. */
static int
copy_bytes(int from, int to, int64_t n, const struct copying *c, int64_t *ret_done)
{
	CLEANUP_FREE char *piece = mem_alloc(PIECE_BYTES);
	int r = piece != NULL ? 0 : E_NOMEM;

	*ret_done = 0;
	while (r == 0 && *ret_done < n) {
		ssize_t got = read(
		    from, piece, (size_t)min_i64(n - *ret_done, (int64_t)PIECE_BYTES));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? E_STORAGE : 0;
		r = io_write_all(to, piece, (size_t)got);
		*ret_done += got;
		if (r == 0 && c->go_on != NULL)
			r = c->go_on(c->arg);
	}
	return r;
}

static int
copy_archive(const char *from_path, int folder, const struct copying *c, int64_t *ret_done)
{
	CLEANUP(io_closep) int from = open(from_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(io_closep) int to = -1;
	int r;

	if (from < 0)
		return err_from_errno(errno);
	to = openat(
	    folder, RECORD_ARCHIVE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return err_from_errno(errno);
	r = copy_bytes(from, to, c->log_end, c, ret_done);
	CRASH_POINT("copy_log_written");
	if (r == 0 && fsync(to) < 0)
		r = err_from_errno(errno);
	if (r == 0)
		r = io_sync_dir(folder);
	if (r < 0)
		(void)unlinkat(folder, RECORD_ARCHIVE, 0);
	return r == E_SYS ? E_STORAGE : r;
}

int
record_copy_log(const char *dir, const char *folder, int64_t log_end, store_go_on_fn *go_on,
    void *arg, struct record_copied *ret, char **ret_why)
{
	CLEANUP_FREE char *from = mem_format("%s/" RECORD_ARCHIVE, dir);
	CLEANUP(io_closep) int at = -1;
	const struct copying c = { go_on, arg, log_end };
	int r;

	*ret_why = NULL;
	if (log_end == 0)
		return 0;
	if (from == NULL)
		return E_NOMEM;
	/* Who has lost the log alone keeps the rest; a record that was removed has no store either. */
	if (access(from, F_OK) < 0 && errno == ENOENT && record_exists(dir))
		return 0;
	at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = at < 0 ? err_from_errno(errno) : copy_archive(from, at, &c, &ret->log_bytes);
	return explain(r, dir, RECORD_ARCHIVE, ret_why);
}

int
record_copy(const char *dir, const char *folder, store_go_on_fn *go_on, void *arg,
    struct record_copied *ret, char **ret_why)
{
	struct record_copied done;
	int64_t log_end = 0;
	int r = record_copy_store(dir, folder, go_on, arg, &done, &log_end, ret_why);

	if (r == 0)
		r = record_copy_log(dir, folder, log_end, go_on, arg, &done, ret_why);
	if (r == 0)
		*ret = done;
	return r;
}

/* ---- after a restore ---- */

static int
was_cut_short(const char *path, int *ret, char **ret_aside)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP_FREE char *why = NULL;
	struct stmt *st;
	int restored = 0, r = store_open(&record_store_desc, path, &s, &why);

	if (r == 0)
		r = store_is_restored(s, &restored);
	*ret = 0;
	if (r < 0 || !restored)
		return r;
	if (store_set_aside(s) != NULL)
		*ret_aside = mem_strdup(store_set_aside(s));
	st = store_stmt(s, STMT_META_GET);
	r = stmt_step(st);
	if (r >= 0)
		*ret = r == 0 || !record_is_terminal(record_status_of(stmt_text(st, 9)));
	(void)stmt_reset(st);
	return r < 0 ? r : 0;
}

int
record_forget_restored(const char *dir, int *ret, char **ret_aside)
{
	/* The store last: while it is there, the others may be missing and this comes again. */
	static const char *const names[] = { RECORD_ARCHIVE, RECORD_DB "-wal", RECORD_DB "-shm",
		RECORD_DB };
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_DB, dir);
	CLEANUP(io_closep) int at = -1;
	int cut = 0, r;

	*ret = 0;
	*ret_aside = NULL;
	if (path == NULL)
		return E_NOMEM;
	if (access(path, F_OK) < 0)
		return 0;
	r = was_cut_short(path, &cut, ret_aside);
	if (r < 0 || !cut)
		return r;
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CRASH_POINT("run_forgetting_restored");
		if (unlinkat(at, names[i], 0) < 0 && errno != ENOENT)
			return err_from_errno(errno);
	}
	*ret = 1;
	return io_sync_dir(at);
}
