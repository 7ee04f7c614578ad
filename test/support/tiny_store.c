#include "test/support/tiny_store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/unit.h"

static const char first_sql[] =
    "CREATE TABLE tiny (id INTEGER PRIMARY KEY, text TEXT NOT NULL, blob BLOB, num INTEGER,"
    " CHECK (length(text) <> 3)) STRICT;";
static const char second_sql[] =
    "CREATE TABLE child (id INTEGER PRIMARY KEY,"
    " parent INTEGER NOT NULL REFERENCES tiny (id) ON DELETE CASCADE) STRICT;"
    "CREATE TRIGGER tiny_sealed BEFORE UPDATE OF text ON tiny WHEN OLD.text = 'sealed'"
    " BEGIN SELECT RAISE(ABORT, 'tiny: sealed'); END;";
static const char broken_sql[] = "CREATE TABLE half (id INTEGER); CREATE TABLE half (id);";
static const char third_sql[] = "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;";

static const struct store_migration good[] = { { "0001_first", first_sql },
	{ "0002_second", second_sql }, { "0003_third", third_sql } };
static const struct store_migration broken[] = { { "0001_first", first_sql },
	{ "0002_broken", broken_sql } };
static const size_t one = 1, two = 2, three = 3;

static const struct store_stmt_row stmts[] = {
	[TINY_ADD] = { "ADD", 2, "INSERT INTO tiny (id, text) VALUES (?1, ?2)" },
	[TINY_ADD_ALL] = { "ADD_ALL", 4,
	    "INSERT INTO tiny (id, text, blob, num) VALUES (?1, ?2, ?3, ?4)" },
	[TINY_GET] = { "GET", 1, "SELECT id, text, blob, num FROM tiny WHERE id = ?1" },
	[TINY_COUNT] = { "COUNT", 0, "SELECT count(*) FROM tiny" },
	[TINY_SET] = { "SET", 2, "UPDATE tiny SET text = ?2 WHERE id = ?1" },
	[TINY_ADD_CHILD] = { "ADD_CHILD", 2, "INSERT INTO child (id, parent) VALUES (?1, ?2)" },
	[TINY_REMOVE] = { "REMOVE", 1, "DELETE FROM tiny WHERE id = ?1" },
	[TINY_CHILDREN] = { "CHILDREN", 0, "SELECT count(*) FROM child" },
	[TINY_FILL] = { "FILL", 3,
	    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)"
	    " INSERT INTO tiny (id, text, blob) SELECT ?1 + i, 'filled', randomblob(?3) FROM n" },
	[TINY_SPIN] = { "SPIN", 0,
	    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < 1000000000000) SELECT max(i) FROM n" },
	[TINY_WRONG] = { "WRONG", 0, "SELECT * FROM absent" },
	[TINY_JOURNAL_MODE] = { "JOURNAL_MODE", 0, "PRAGMA journal_mode" },
	[TINY_SYNCHRONOUS] = { "SYNCHRONOUS", 0, "PRAGMA synchronous" },
	[TINY_AUTOCHECKPOINT] = { "AUTOCHECKPOINT", 0, "PRAGMA wal_autocheckpoint" },
	[TINY_TEMP_STORE] = { "TEMP_STORE", 0, "PRAGMA temp_store" },
	[TINY_FOREIGN_KEYS] = { "FOREIGN_KEYS", 0, "PRAGMA foreign_keys" },
	[TINY_TRUSTED_SCHEMA] = { "TRUSTED_SCHEMA", 0, "PRAGMA trusted_schema" },
	[TINY_CELL_SIZE_CHECK] = { "CELL_SIZE_CHECK", 0, "PRAGMA cell_size_check" },
	[TINY_MMAP_SIZE] = { "MMAP_SIZE", 0, "PRAGMA mmap_size" },
	[TINY_CACHE_SIZE] = { "CACHE_SIZE", 0, "PRAGMA cache_size" },
};

#define TINY(ms, n, how)                                                                \
	{                                                                               \
		.name = "tiny", .migrations = (ms), .nmigrations = (n), .stmts = stmts, \
		.nstmts = ARRAY_LEN(stmts), .sync = (how)                               \
	}

const struct store_desc tiny_store = TINY(good, &two, STORE_SYNC_FULL);
const struct store_desc tiny_old_store = TINY(good, &one, STORE_SYNC_FULL);
const struct store_desc tiny_broken_store = TINY(broken, &two, STORE_SYNC_FULL);
const struct store_desc tiny_new_store = TINY(good, &three, STORE_SYNC_FULL);
const struct store_desc tiny_normal_store = TINY(good, &two, STORE_SYNC_NORMAL);

char *
tiny_path(const char *dir, const char *name)
{
	char *path = mem_format("%s/%s", dir, name);

	assert_non_null(path);
	return path;
}

struct store *
tiny_open(const struct store_desc *d, const char *dir)
{
	CLEANUP_FREE char *path = tiny_path(dir, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	assert_int_equal(store_open(d, path, &s, &why), 0);
	assert_null(why);
	return s;
}

int
tiny_add(struct store *s, int64_t id, const char *text)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, TINY_ADD);
	int r = stmt_bind(st, "is", id, text);

	return r < 0 ? r : stmt_run(st);
}

int
tiny_fill(struct store *s, int64_t first_id, int64_t nrows, int64_t bytes)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, TINY_FILL);
	int r = stmt_bind(st, "iii", first_id, nrows, bytes);

	return r < 0 ? r : stmt_run(st);
}

int64_t
tiny_number(struct store *s, unsigned stmt)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, stmt);

	assert_int_equal(stmt_step(st), 1);
	return stmt_int(st, 0);
}

int64_t
tiny_count(struct store *s)
{
	return tiny_number(s, TINY_COUNT);
}

int
tiny_has(struct store *s, int64_t id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, TINY_GET);
	int r;

	assert_int_equal(stmt_bind(st, "i", id), 0);
	r = stmt_step(st);
	assert_true(r >= 0);
	return r;
}

int
tiny_copy_file(const char *from, const char *to)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	CLEANUP(io_closep) int fd = -1;

	if (access(from, F_OK) < 0)
		return 0;
	assert_int_equal(io_read_file(AT_FDCWD, from, SIZE_MAX / 2, &b), 0);
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, b.data, b.len), 0);
	return 1;
}

void
tiny_copy(const char *from_dir, const char *to_dir)
{
	static const char *const names[] = { "tiny.db", "tiny.db-wal" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP_FREE char *from = tiny_path(from_dir, names[i]);
		CLEANUP_FREE char *to = tiny_path(to_dir, names[i]);

		(void)unlink(to);
		(void)tiny_copy_file(from, to);
	}
}

int64_t
tiny_file_size(const char *dir, const char *name)
{
	CLEANUP_FREE char *path = tiny_path(dir, name);
	struct stat st;

	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}
