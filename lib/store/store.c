#include "lib/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/log.h"
#include "lib/store/priv.h"

#define BUSY_MS        5000 /* another connection of ours: the checkpointer          */
#define CACHE_KIB      512  /* per connection; idle actors have to stay small        */
#define READER_OPS     4000 /* virtual machine steps between looks at the clock      */
#define LOOKASIDE_SIZE 512
#define LOOKASIDE_N    40

int
store_error_of(sqlite3 *db, int rc)
{
	int ext = db != NULL ? sqlite3_extended_errcode(db) : rc;

	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE: return 0;
	case SQLITE_NOMEM: return E_NOMEM;
	case SQLITE_FULL: return E_FULL;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return E_CORRUPT;
	case SQLITE_INTERRUPT: return E_DEADLINE;
	case SQLITE_CONSTRAINT:
		return ext == SQLITE_CONSTRAINT_TRIGGER ? E_ILLEGAL : E_CONSTRAINT;
	default: return E_STORAGE;
	}
}

int
store_error_in(struct store *s, int rc)
{
	int r = store_error_of(s->db, rc);

	s->damaged |= r == E_CORRUPT;
	return r;
}

/* ---- opening ---- */

/* What every connection needs; in one place, since a forgotten one breaks a promise. */
static const char pragmas[] = "PRAGMA journal_mode=WAL;"
			      "PRAGMA wal_autocheckpoint=0;"
			      "PRAGMA temp_store=MEMORY;"
			      "PRAGMA foreign_keys=ON;"
			      "PRAGMA trusted_schema=OFF;"
			      "PRAGMA cell_size_check=ON;"
			      "PRAGMA mmap_size=0;";

/* Nobody asks how much memory SQLite has, and counting it takes a lock at each allocation. */
static void
count_no_memory(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* Who is in the way is the checkpointer, and soon done: SQLite's own waits grow to 100 ms, and
 * cost a store that is written to without a pause a tenth of its time. */
static int
wait_a_little(void *arg, int tries)
{
	static const struct timespec ms = { 0, 1000000 };

	(void)arg;
	return tries < BUSY_MS && nanosleep(&ms, NULL) == 0;
}

int
store_connect(const char *path, int flags, sqlite3 **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc = pthread_once(&once, count_no_memory);

	must(rc == 0);
	rc = sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOMUTEX, store_vfs());
	if (rc != SQLITE_OK)
		return store_error_of(*ret, rc);
	(void)sqlite3_extended_result_codes(*ret, 1);
	(void)sqlite3_busy_handler(*ret, wait_a_little, NULL);
	(void)sqlite3_db_config(
	    *ret, SQLITE_DBCONFIG_LOOKASIDE, NULL, LOOKASIDE_SIZE, LOOKASIDE_N);
	(void)sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return 0;
}

int
store_set_up(sqlite3 *db)
{
	char *cache = sqlite3_mprintf("PRAGMA cache_size=-%d", CACHE_KIB);
	int rc = cache != NULL ? sqlite3_exec(db, pragmas, NULL, NULL, NULL) : SQLITE_NOMEM;

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, cache, NULL, NULL, NULL);
	sqlite3_free(cache);
	return store_error_of(db, rc);
}

int
store_open_folder(const char *path, int *ret_fd)
{
	CLEANUP_FREE char *folder = mem_strdup(path);
	char *slash = folder != NULL ? strrchr(folder, '/') : NULL;
	int fd;

	if (folder == NULL)
		return E_NOMEM;
	if (slash != NULL)
		slash[slash == folder] = '\0';
	fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_from_errno(errno);
	*ret_fd = fd;
	return 0;
}

/* The file is made here, so that its mode and its entry in the folder are certain before
 * SQLite sees it. */
static int
make_file(const struct store_desc *d, const char *path)
{
	CLEANUP(io_closep) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CLEANUP(io_closep) int dir = -1;
	int r;

	if (fd < 0)
		return errno == EEXIST ? 0 : err_from_errno(errno);
	r = store_open_folder(path, &dir);
	CRASH_POINT_OF(d->name, "file_made");
	return r < 0 ? r : io_sync_dir(dir);
}

static struct store *
store_alloc(const struct store_desc *d, const char *path)
{
	struct store *s = mem_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->magic = STORE_MAGIC;
	s->desc = d;
	s->path = mem_strdup(path);
	s->stmts = mem_calloc(d->nstmts, sizeof(*s->stmts));
	if (s->path == NULL || s->stmts == NULL)
		return store_close(s);
	for (size_t i = 0; i < d->nstmts; i++)
		s->stmts[i].store = s;
	return s;
}

/* Told in the writer's thread, which is the only one that asks the number. */
static int
on_commit(void *arg, sqlite3 *db, const char *name, int nframes)
{
	struct store *s = arg;

	(void)db;
	(void)name;
	s->wal_bytes = (int64_t)nframes * STORE_FRAME_BYTES;
	return SQLITE_OK;
}

/* It happens once, and a store that could not be opened tells of it in no other way. */
static int
tell_set_aside(const struct store *s, int r, char **ret_why)
{
	char *more = s->set_aside != NULL && *ret_why != NULL
	    ? mem_format("%s; the log beside it was another store's and is now %s", *ret_why,
		  s->set_aside)
	    : NULL;

	if (more != NULL) {
		free(*ret_why);
		*ret_why = more;
	}
	return r;
}

int
store_open(
    const struct store_desc *d, const char *path, struct store **ret_store, char **ret_why)
{
	CLEANUP(store_closep) struct store *s = store_alloc(d, path);
	int r;

	*ret_why = NULL;
	if (s == NULL)
		return E_NOMEM;
	r = make_file(d, path);
	if (r == E_SYS || r == E_NOENT)
		r = E_STORAGE;
	if (r == 0)
		r = store_mend_log_mode(path);
	if (r == 0)
		r = store_connect(path, SQLITE_OPEN_READWRITE, &s->db);
	if (r == 0)
		r = store_take_over(s, ret_why);
	if (r == 0)
		r = store_look(s, ret_why);
	if (r == 0)
		r = store_set_up(s->db);
	if (r == 0)
		r = store_migrate(s, ret_why);
	if (r == 0)
		r = store_set_sync(s, d->sync);
	if (r < 0) {
		const char *more = store_error(s);

		s->damaged |= r == E_CORRUPT;
		if (*ret_why == NULL)
			*ret_why = mem_format(
			    "%s: %s%s%s", path, err_text(r), *more != '\0' ? ": " : "", more);
		return tell_set_aside(s, r, ret_why);
	}
	/* Takes the place of the automatic checkpoint, which is off. */
	(void)sqlite3_wal_hook(s->db, on_commit, s);
	*ret_store = TAKE_PTR(s);
	return 0;
}

int
store_open_checker(const struct store_desc *d, const char *path, struct store **ret)
{
	CLEANUP(store_closep) struct store *s = store_alloc(d, path);
	int r = s != NULL ? store_connect_to_look(path, SQLITE_OPEN_READWRITE, &s->db)
			  : E_NOMEM;

	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}

static int
reader_is_late(void *arg)
{
	const struct store *s = arg;

	return clock_mono().us > s->until_us;
}

int
store_open_second(const struct store_desc *d, const char *path, int flags, int64_t limit_ms,
    struct store **ret_store)
{
	CLEANUP(store_closep) struct store *s = store_alloc(d, path);
	int r;

	if (s == NULL)
		return E_NOMEM;
	r = store_connect_to_look(path, flags, &s->db);
	if (r == 0)
		r = store_set_up(s->db);
	if (r < 0)
		return r;
	s->limit_ms = limit_ms;
	s->until_us = INT64_MAX;
	sqlite3_progress_handler(s->db, READER_OPS, reader_is_late, s);
	*ret_store = TAKE_PTR(s);
	return 0;
}

int
store_open_reader(
    const struct store_desc *d, const char *path, int64_t limit_ms, struct store **ret_store)
{
	return store_open_second(d, path, SQLITE_OPEN_READONLY, limit_ms, ret_store);
}

struct store *
store_close(struct store *s)
{
	if (s == NULL)
		return NULL;
	for (size_t i = 0; s->stmts != NULL && i < s->desc->nstmts; i++)
		(void)sqlite3_finalize(s->stmts[i].raw);
	free(s->stmts);
	for (size_t i = 0; i < WORD_COUNT; i++)
		(void)sqlite3_finalize(s->words[i]);
	/* Nothing is written into damage, neither what the log has: it may be needed as it is. */
	if (s->damaged)
		(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	(void)sqlite3_close(s->db);
	free(s->path);
	free(s->set_aside);
	s->magic = 0;
	free(s);
	return NULL;
}

/* ---- transactions ---- */

int
store_exec(struct store *s, const char *sql)
{
	OBJ_CHECK(s, STORE_MAGIC);
	return store_error_in(s, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
}

int
store_set_sync(struct store *s, enum store_sync sync)
{
	if (store_in_txn(s))
		return E_BUSY;
	return store_exec(s,
	    sync == STORE_SYNC_FULL ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

int
store_do(struct store *s, enum store_word word)
{
	static const char *const words[WORD_COUNT] = { "BEGIN", "BEGIN IMMEDIATE", "COMMIT",
		"SAVEPOINT turn", "RELEASE turn" };
	sqlite3_stmt **st = &s->words[word];
	int rc = SQLITE_OK;

	OBJ_CHECK(s, STORE_MAGIC);
	if (*st == NULL)
		rc = sqlite3_prepare_v3(
		    s->db, words[word], -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_step(*st);
		rc = sqlite3_reset(*st);
	}
	return store_error_in(s, rc);
}

int
store_begin(struct store *s)
{
	int readonly = sqlite3_db_readonly(s->db, "main") == 1;

	return store_do(s, readonly ? WORD_BEGIN : WORD_BEGIN_IMMEDIATE);
}

int
store_commit(struct store *s)
{
	int r;

	CRASH_POINT_OF(s->desc->name, "before_commit");
	r = store_do(s, WORD_COMMIT);
	CRASH_POINT_OF(s->desc->name, "after_commit");
	/* A COMMIT that could not be done may leave the transaction open. */
	if (r < 0)
		store_rollback(s);
	return r;
}

void
store_rollback(struct store *s)
{
	if (store_in_txn(s))
		(void)store_exec(s, "ROLLBACK");
}

int
store_in_txn(const struct store *s)
{
	return sqlite3_get_autocommit(s->db) == 0;
}

int
store_renew_log(struct store *s)
{
	int rc;

	OBJ_CHECK(s, STORE_MAGIC);
	rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	return (rc & 0xff) == SQLITE_BUSY ? E_LOCKED : store_error_in(s, rc);
}

int
store_probe(struct store *s)
{
	char bump[48];
	int r = store_begin(s);

	/* SQLite writes it though it is the same. */
	(void)snprintf(bump, sizeof(bump), "PRAGMA user_version=%lld",
	    r == 0 ? (long long)store_version(s) : 0);
	if (r == 0)
		r = store_exec(s, bump);
	if (r == 0)
		return store_commit(s);
	store_rollback(s);
	return r;
}

/* ---- what is known of it ---- */

int
store_is_damaged(const struct store *s)
{
	return s->damaged;
}

int64_t
store_changes(const struct store *s)
{
	return sqlite3_changes64(s->db);
}

const char *
store_error(const struct store *s)
{
	return s->db != NULL && sqlite3_errcode(s->db) != SQLITE_OK ? sqlite3_errmsg(s->db)
								    : "";
}

const char *
store_path(const struct store *s)
{
	return s->path;
}

void
store_sizes(const struct store *s, int64_t *ret_db_bytes, int64_t *ret_wal_bytes)
{
	CLEANUP_FREE char *wal = mem_format("%s-wal", s->path);
	struct stat st;

	*ret_db_bytes = stat(s->path, &st) == 0 ? (int64_t)st.st_size : 0;
	*ret_wal_bytes = wal != NULL && stat(wal, &st) == 0 ? (int64_t)st.st_size : 0;
}
