#include "lib/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"
#include "lib/record/inside.h"

#define RESERVE_BYTES (1 << 20)
#define ELLIPSIS      "\xe2\x80\xa6"

extern const struct store_migration schema_run[];
extern const size_t schema_run_count;

static const struct store_stmt_row stmts[] = {
#define STMT(name, nparams, sql) { #name, (nparams), sql },
#include "schema/run.stmt.def"
#undef STMT
};

const struct store_desc record_store_desc = {
	.name = "run",
	.migrations = schema_run,
	.nmigrations = &schema_run_count,
	.stmts = stmts,
	.nstmts = ARRAY_LEN(stmts),
	.sync = STORE_SYNC_FULL,
};

int
record_exists(const char *dir)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_DB, dir);
	struct stat st;

	return path != NULL && stat(path, &st) == 0;
}

int
record_open(const char *dir, int64_t max_log_bytes, struct record **ret, char **ret_why)
{
	CLEANUP(record_freep) struct record *r = NULL;
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_DB, dir);
	int existed, err;

	*ret_why = NULL;
	if (path == NULL || (r = mem_calloc(1, sizeof(*r))) == NULL)
		return E_NOMEM;
	r->magic = RECORD_MAGIC;
	r->max_log_bytes = max_log_bytes;
	r->sync = record_store_desc.sync;
	r->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_from_errno(errno);
	existed = access(path, F_OK) == 0;
	err = store_open(&record_store_desc, path, &r->store, ret_why);
	/* Whoever had it before may have ended since a commit failed. */
	r->in_doubt = existed;
	/* Rows hold no secret, so overwriting those that go would only double the writing. */
	if (err == 0)
		err = store_exec(r->store, "PRAGMA secure_delete=OFF");
	if (err == 0)
		err = store_is_restored(r->store, &r->restored);
	if (err == 0)
		err = record_load_log(r);
	if (err == 0)
		*ret = TAKE_PTR(r);
	return err;
}

const char *
record_set_aside(const struct record *r)
{
	OBJ_CHECK(r, RECORD_MAGIC);
	return store_set_aside(r->store);
}

struct record *
record_free(struct record *r)
{
	if (r == NULL)
		return NULL;
	OBJ_CHECK(r, RECORD_MAGIC);
	r->magic = 0;
	archive_free(r->archive);
	archive_reader_free(r->reader);
	checkpointer_stop(r->checkpointer);
	store_close(r->store);
	io_close(&r->dirfd);
	return mem_free(r);
}

void
record_set_redactor(struct record *r, const struct redactor *redactor)
{
	OBJ_CHECK(r, RECORD_MAGIC);
	r->redactor = redactor;
}

int
record_txn_begin(struct record *r, enum store_sync sync)
{
	int err;

	OBJ_CHECK(r, RECORD_MAGIC);
	err = r->in_doubt ? store_renew_log(r->store) : 0;
	r->in_doubt = err < 0;
	if (err == E_LOCKED)
		err = E_STORAGE; /* Who reads, as a backup does, is through at some time. */
	if (err == 0 && r->log_unknown)
		err = record_load_log(r);
	if (err == 0 && r->sync != sync) {
		err = store_set_sync(r->store, sync);
		if (err == 0)
			r->sync = sync;
	}
	return err < 0 ? err : store_begin(r->store);
}

int
record_txn_end(struct record *r, int err)
{
	if (err == 0) {
		err = store_commit(r->store);
		r->log_unknown = err < 0;
		r->in_doubt |= err == E_STORAGE;
	}
	if (err < 0 && store_in_txn(r->store))
		store_rollback(r->store);
	if (err == 0 && r->checkpointer != NULL)
		checkpointer_poke(r->checkpointer);
	return err;
}

int
record_ran(struct stmt *st, int err)
{
	if (err == 0)
		return stmt_run(st);
	stmt_reset(st);
	return err;
}

int
record_hit(struct record *r, int err)
{
	return err < 0 || store_changes(r->store) > 0 ? err : E_STALE;
}

/* Cuts ${text} to ${max} bytes, the ellipsis among them. */
static int
shorten(struct buf *text, size_t max)
{
	if (text->len <= max)
		return 0;
	text->len = utf8_cut((const char *)text->data, text->len, max - (sizeof(ELLIPSIS) - 1));
	return buf_add_str(text, ELLIPSIS);
}

char *
record_clean_text(const struct record *r, const char *text, size_t max)
{
	CLEANUP(buf_done) struct buf clear = BUF_INIT, out = BUF_INIT;
	struct decoder d = { 0 };
	int err = r->redactor != NULL ? redact_text(r->redactor, text, strlen(text), &clear)
				      : buf_add_str(&clear, text);

	if (err == 0)
		err = decode_feed(&d, clear.data, clear.len, &out);
	if (err == 0)
		err = decode_end(&d, &out);
	if (err == 0)
		err = shorten(&out, max);
	return err == 0 ? buf_take_cstr(&out) : NULL;
}

int
record_reserve_make(const char *dir)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_RESERVE, dir);
	CLEANUP(io_closep) int fd = -1;
	int e;

	if (path == NULL)
		return E_NOMEM;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_from_errno(errno);
	e = posix_fallocate(fd, 0, RESERVE_BYTES);
	if (e == 0)
		return 0;
	(void)unlink(path);
	return err_from_errno(e);
}

int
record_reserve_drop(const char *dir)
{
	CLEANUP_FREE char *path = mem_format("%s/" RECORD_RESERVE, dir);

	if (path == NULL)
		return E_NOMEM;
	return unlink(path) < 0 && errno != ENOENT ? err_from_errno(errno) : 0;
}
