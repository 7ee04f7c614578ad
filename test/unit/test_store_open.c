#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/starve.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

static int
setup(void **state)
{
	*state = scratch_new();
	return 0;
}

static int
teardown(void **state)
{
	scratch_free(*state);
	return 0;
}

static void
file_bytes(const char *path, struct buf *b)
{
	assert_int_equal(io_read_file(AT_FDCWD, path, SIZE_MAX / 2, b), 0);
}

static void
a_new_store_has_every_pragma_and_all_migrations(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	struct stat st;

	assert_int_equal(store_version(s), 2);
	{
		CLEANUP(stmt_resetp) struct stmt *mode = store_stmt(s, TINY_JOURNAL_MODE);

		assert_int_equal(stmt_step(mode), 1);
		assert_string_equal(stmt_text(mode, 0), "wal");
	}
	assert_int_equal(tiny_number(s, TINY_SYNCHRONOUS), 2);
	assert_int_equal(tiny_number(s, TINY_AUTOCHECKPOINT), 0);
	assert_int_equal(tiny_number(s, TINY_TEMP_STORE), 2);
	assert_int_equal(tiny_number(s, TINY_FOREIGN_KEYS), 1);
	assert_int_equal(tiny_number(s, TINY_TRUSTED_SCHEMA), 0);
	assert_int_equal(tiny_number(s, TINY_CELL_SIZE_CHECK), 1);
	assert_int_equal(tiny_number(s, TINY_MMAP_SIZE), 0);
	assert_in_range(-tiny_number(s, TINY_CACHE_SIZE), 256, 1024);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_string_equal(store_path(s), path);
}

static void
synchronous_follows_the_description_and_changes_between_transactions_only(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_normal_store, *state);

	assert_int_equal(tiny_number(s, TINY_SYNCHRONOUS), 1);
	assert_int_equal(store_set_sync(s, STORE_SYNC_FULL), 0);
	assert_int_equal(tiny_number(s, TINY_SYNCHRONOUS), 2);
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(store_set_sync(s, STORE_SYNC_NORMAL), E_BUSY);
	assert_int_equal(store_commit(s), 0);
	assert_int_equal(tiny_number(s, TINY_SYNCHRONOUS), 2);
}

static void
an_older_store_gets_what_it_lacks_and_keeps_its_rows(void **state)
{
	struct store *s = tiny_open(&tiny_old_store, *state);

	assert_int_equal(store_version(s), 1);
	assert_int_equal(tiny_add(s, 1, "kept"), 0);
	(void)store_close(s);
	s = tiny_open(&tiny_store, *state);
	assert_int_equal(store_version(s), 2);
	assert_true(tiny_has(s, 1));
	assert_int_equal(tiny_number(s, TINY_CHILDREN), 0);
	(void)store_close(s);
}

static void
a_migration_that_fails_leaves_the_version_before_it(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	assert_true(store_open(&tiny_broken_store, path, &s, &why) < 0);
	assert_null(s);
	assert_non_null(strstr(why, "0002_broken"));
	assert_non_null(strstr(why, "already exists"));
	s = tiny_open(&tiny_old_store, *state);
	assert_int_equal(store_version(s), 1);
	(void)store_close(s);
}

/* As a kill left it: with rows that are in the log alone. */
static void
a_store_of_a_newer_version_is_refused_and_left_as_it_is(void **state)
{
	CLEANUP_FREE char *to = tiny_path(*state, "copy");
	CLEANUP_FREE char *db = tiny_path(*state, "copy/tiny.db");
	CLEANUP_FREE char *wal = tiny_path(*state, "copy/tiny.db-wal");
	CLEANUP_FREE char *why = NULL;
	CLEANUP(buf_done) struct buf db_before = BUF_INIT, wal_before = BUF_INIT;
	CLEANUP(buf_done) struct buf db_after = BUF_INIT, wal_after = BUF_INIT;
	struct store *s = tiny_open(&tiny_store, *state), *refused = NULL;

	assert_int_equal(tiny_add(s, 7, "in the log"), 0);
	assert_int_equal(mkdir(to, 0700), 0);
	tiny_copy(*state, to);
	(void)store_close(s);
	file_bytes(db, &db_before);
	file_bytes(wal, &wal_before);
	assert_true(wal_before.len > 0);

	assert_int_equal(store_open(&tiny_old_store, db, &refused, &why), E_NEWER);
	assert_null(refused);
	assert_non_null(strstr(why, "schema 2"));
	assert_non_null(strstr(why, "knows 1"));
	assert_non_null(strstr(why, db));

	file_bytes(db, &db_after);
	file_bytes(wal, &wal_after);
	assert_int_equal(db_before.len, db_after.len);
	assert_memory_equal(db_before.data, db_after.data, db_before.len);
	assert_int_equal(wal_before.len, wal_after.len);
	assert_memory_equal(wal_before.data, wal_after.data, wal_before.len);
	s = tiny_open(&tiny_store, to);
	assert_true(tiny_has(s, 7));
	(void)store_close(s);
}

static void
what_is_no_store_is_damaged(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	char text[8192];
	struct store *s = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	memset(text, 'x', sizeof(text));
	assert_int_equal(io_write_all(fd, text, sizeof(text)), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(store_open(&tiny_store, path, &s, &why), E_CORRUPT);
	assert_non_null(strstr(why, path));
	assert_non_null(strstr(why, "not a database"));
}

static void
a_missing_folder_is_told_with_the_path(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "absent/tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store *s = NULL;

	assert_int_equal(store_open(&tiny_store, path, &s, &why), E_STORAGE);
	assert_non_null(strstr(why, path));
}

static void
an_empty_file_becomes_a_store(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct store *s;

	assert_int_equal(close(fd), 0);
	s = tiny_open(&tiny_store, *state);
	assert_int_equal(tiny_count(s), 0);
	(void)store_close(s);
}

static void
a_log_that_is_read_only_does_not_keep_the_store_so(void **state)
{
	static const char *const names[] = { "tiny.db-wal", "tiny.db-shm" };
	struct store *s;

	(void)store_close(tiny_open(&tiny_store, *state));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP_FREE char *path = tiny_path(*state, names[i]);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);

		assert_int_equal(close(fd), 0);
	}
	s = tiny_open(&tiny_store, *state);
	assert_int_equal(tiny_add(s, 1, "kept"), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP_FREE char *path = tiny_path(*state, names[i]);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	(void)store_close(s);
}

/* ---- check ---- */

static void
a_check_makes_no_file_and_finds_nothing_wrong_with_none(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;

	assert_int_equal(store_check(&tiny_store, path, &why), 0);
	assert_null(why);
	assert_int_equal(tiny_file_size(*state, "tiny.db"), -1);
}

static void
a_check_passes_a_sound_store_and_does_not_migrate_it(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store *s = tiny_open(&tiny_old_store, *state);

	assert_int_equal(tiny_fill(s, 1, 100, 100), 0);
	(void)store_close(s);
	assert_int_equal(store_check(&tiny_store, path, &why), 0);
	assert_null(why);
	s = tiny_open(&tiny_old_store, *state);
	assert_int_equal(store_version(s), 1);
	(void)store_close(s);
}

static void
a_check_says_what_is_damaged(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;
	struct store *s = tiny_open(&tiny_store, *state);
	char junk[512];
	int fd;

	assert_int_equal(tiny_fill(s, 1, 200, 1000), 0);
	(void)store_close(s);
	memset(junk, 0xa5, sizeof(junk));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (int page = 8; page < 12; page++)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), (off_t)page * 4096), 512);
	assert_int_equal(close(fd), 0);
	assert_int_equal(store_check(&tiny_store, path, &why), E_CORRUPT);
	assert_non_null(strstr(why, path));
}

static void
a_check_refuses_a_newer_store(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");
	CLEANUP_FREE char *why = NULL;

	(void)store_close(tiny_open(&tiny_new_store, *state));
	assert_int_equal(store_check(&tiny_store, path, &why), E_NEWER);
	assert_non_null(strstr(why, "schema 3"));
}

/* ---- the reader ---- */

static struct store *
reader_of(const char *dir, int64_t limit_ms)
{
	CLEANUP_FREE char *path = tiny_path(dir, "tiny.db");
	struct store *s = NULL;

	assert_int_equal(store_open_reader(&tiny_store, path, limit_ms, &s), 0);
	return s;
}

static void
a_reader_sees_one_moment_and_cannot_write(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	CLEANUP(store_closep) struct store *reader = reader_of(*state, 1000);

	assert_int_equal(tiny_add(s, 1, "before"), 0);
	assert_int_equal(store_begin(reader), 0);
	assert_int_equal(tiny_count(reader), 1);
	assert_int_equal(tiny_add(s, 2, "after"), 0);
	assert_int_equal(tiny_count(reader), 1);
	assert_int_equal(tiny_add(reader, 3, "never"), E_STORAGE);
	assert_int_equal(store_commit(reader), 0);
	assert_int_equal(tiny_count(reader), 2);
}

static void
a_reader_that_takes_too_long_is_stopped_and_can_be_used_again(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	CLEANUP(store_closep) struct store *reader = reader_of(*state, 5);

	assert_int_equal(tiny_add(s, 1, "a row"), 0);
	{
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(reader, TINY_SPIN);

		assert_int_equal(stmt_step(st), E_DEADLINE);
	}
	assert_int_equal(tiny_count(reader), 1);
}

static void
sizes_are_those_on_disk(void **state)
{
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, *state);
	int64_t db, wal;

	assert_int_equal(tiny_fill(s, 1, 10, 4096), 0);
	store_sizes(s, &db, &wal);
	assert_int_equal(db, tiny_file_size(*state, "tiny.db"));
	assert_int_equal(wal, tiny_file_size(*state, "tiny.db-wal"));
	assert_true(wal > 10 * 4096);
}

/* ---- without memory ---- */

static int
open_and_close(void *arg)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP_FREE char *why = NULL;

	return store_open(&tiny_store, arg, &s, &why);
}

static void
opening_survives_every_failed_allocation(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");

	assert_true(starve(open_and_close, path) >= 3);
}

static int
reader_open_and_close(void *arg)
{
	CLEANUP(store_closep) struct store *s = NULL;

	return store_open_reader(&tiny_store, arg, 10, &s);
}

static void
opening_a_reader_survives_every_failed_allocation(void **state)
{
	CLEANUP_FREE char *path = tiny_path(*state, "tiny.db");

	(void)store_close(tiny_open(&tiny_store, *state));
	assert_true(starve(reader_open_and_close, path) >= 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_store_has_every_pragma_and_all_migrations),
		TEST(synchronous_follows_the_description_and_changes_between_transactions_only),
		TEST(an_older_store_gets_what_it_lacks_and_keeps_its_rows),
		TEST(a_migration_that_fails_leaves_the_version_before_it),
		TEST(a_store_of_a_newer_version_is_refused_and_left_as_it_is),
		TEST(what_is_no_store_is_damaged),
		TEST(a_missing_folder_is_told_with_the_path),
		TEST(an_empty_file_becomes_a_store),
		TEST(a_log_that_is_read_only_does_not_keep_the_store_so),
		TEST(a_check_makes_no_file_and_finds_nothing_wrong_with_none),
		TEST(a_check_passes_a_sound_store_and_does_not_migrate_it),
		TEST(a_check_says_what_is_damaged),
		TEST(a_check_refuses_a_newer_store),
		TEST(a_reader_sees_one_moment_and_cannot_write),
		TEST(a_reader_that_takes_too_long_is_stopped_and_can_be_used_again),
		TEST(sizes_are_those_on_disk),
		TEST(opening_survives_every_failed_allocation),
		TEST(opening_a_reader_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
