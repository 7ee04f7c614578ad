#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"

#define ZERO_KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define GOOD     "{\"current\":1,\"keys\":{\"1\":\"" ZERO_KEY "\"}}"

static char dir[64], path[96];

static int
make_dir(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/anvil-keys-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/keys.json", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir); /* Fails when a temporary file was left. */
}

static void
put(const char *text, mode_t mode)
{
	assert_int_equal(io_write_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void
a_made_file_is_private_and_loads_again(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *a = NULL, *b = NULL;
	char why[VAULT_WHY_SIZE];
	struct stat st;

	(void)state;
	assert_int_equal(vault_keys_create(path, &a, why), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vault_keys_load(path, geteuid(), &b, why), 0);
	assert_int_equal(vault_keys_current(b), 1);
	assert_memory_equal(a->keys, b->keys, sizeof(a->keys));
}

static void
a_file_that_exists_is_never_made_anew(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char why[VAULT_WHY_SIZE];

	(void)state;
	put("garbage", 0600);
	assert_int_equal(vault_keys_create(path, &k, why), E_EXISTS);
	assert_null(k);
	assert_int_equal(io_read_file(AT_FDCWD, path, 100, &text), 0);
	assert_int_equal(text.len, 7);
}

static void
a_rotated_set_replaces_the_file(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *a = NULL, *b = NULL;
	char why[VAULT_WHY_SIZE];
	struct stat st;

	(void)state;
	assert_int_equal(vault_keys_create(path, &a, why), 0);
	assert_int_equal(vault_keys_rotate(a), 0);
	assert_int_equal(vault_keys_save(a, path, why), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vault_keys_load(path, geteuid(), &b, why), 0);
	assert_int_equal(vault_keys_current(b), 2);
	assert_int_equal(vault_keys_count(b), 2);
}

/* What a crash left behind is not in the way, a link stays one, and the owner keeps the file. */
static void
a_file_is_replaced_where_it_is_and_stays_its_owners(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL, *again = NULL;
	char why[VAULT_WHY_SIZE], left[128], link[128];
	struct stat st;

	(void)state;
	assert_int_equal(vault_keys_create(path, &k, why), 0);
	(void)snprintf(left, sizeof(left), "%s.new", path);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(
	    io_write_file(AT_FDCWD, left, "half of {", strlen("half of {"), 0600), 0);
	assert_int_equal(symlink("keys.json", link), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(vault_keys_rotate(k), 0);
	assert_int_equal(vault_keys_save(k, link, why), 0);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid() == 0 ? 12345 : geteuid());
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vault_keys_load(path, st.st_uid, &again, why), 0);
	assert_int_equal(vault_keys_current(again), 2);
}

/* In place; what is shorter leaves nothing of the longer one. */
static void
a_file_is_written_over_where_no_other_can_be_made(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL, *again = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char why[VAULT_WHY_SIZE] = "";
	struct stat before, st;

	(void)state;
	for (int pass = 0; pass < 2; pass++) {
		/* As somebody's editor may leave it, and as we do. */
		put(pass == 0
			? "{\n\n\n\n\"current\":1,\n\"keys\":{\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
			  "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
			  "\"1\":\"" ZERO_KEY "\"\n}\n}"
			: GOOD,
		    0600);
		assert_int_equal(stat(path, &before), 0);
		assert_int_equal(vault_keys_load(path, geteuid(), &k, why), 0);
		if (pass == 1)
			assert_int_equal(vault_keys_rotate(k), 0);
		assert_int_equal(vault_keys_overwrite(k, path, why), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_ino, before.st_ino);
		assert_true(
		    pass == 0 ? st.st_size < before.st_size : st.st_size > before.st_size);
		assert_int_equal(vault_keys_load(path, geteuid(), &again, why), 0);
		assert_int_equal(vault_keys_current(again), pass + 1);
		k = vault_keys_free(k);
		again = vault_keys_free(again);
	}
	assert_int_equal(io_read_file(AT_FDCWD, path, 1000, &text), 0);
	assert_int_equal(text.data[text.len - 2], '}');
	assert_int_equal(vault_keys_load(path, geteuid(), &k, why), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(vault_keys_overwrite(k, path, why), E_DENIED);
	assert_non_null(strstr(why, path));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(vault_keys_overwrite(k, path, why), E_DENIED);
	assert_int_equal(rmdir(path), 0);
}

static void
a_folder_that_takes_no_file_leaves_the_old_one_and_is_named(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL, *again = NULL;
	char why[VAULT_WHY_SIZE] = "", deep[160];

	(void)state;
	assert_int_equal(vault_keys_create(path, &k, why), 0);
	(void)snprintf(deep, sizeof(deep), "%s/none/keys.json", dir);
	assert_true(vault_keys_save(k, deep, why) < 0);
	assert_non_null(strstr(why, deep));
	if (geteuid() == 0)
		skip(); /* Nothing is closed to root. */
	assert_int_equal(chmod(dir, 0500), 0);
	assert_int_equal(vault_keys_rotate(k), 0);
	assert_int_equal(vault_keys_save(k, path, why), E_DENIED);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_non_null(strstr(why, path));
	assert_int_equal(vault_keys_load(path, geteuid(), &again, why), 0);
	assert_int_equal(vault_keys_current(again), 1);
}

static void
expect_refusal(int err, const char *says)
{
	struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE] = "";

	assert_int_equal(vault_keys_load(path, geteuid(), &k, why), err);
	assert_null(k);
	assert_non_null(strstr(why, path));
	if (strstr(why, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", why, says);
}

static void
a_file_that_does_not_serve_is_refused_by_name(void **state)
{
	(void)state;
	expect_refusal(E_NOENT, "No such file");
	put(GOOD, 0640);
	expect_refusal(E_DENIED, "has mode 0640, expected 0600");
	put(GOOD, 0604);
	expect_refusal(E_DENIED, "has mode 0604");
	put("no", 0600);
	expect_refusal(E_PARSE, "not JSON at byte 1");
	put("{\"current\":3,\"keys\":{\"1\":\"" ZERO_KEY "\"}}", 0600);
	expect_refusal(E_INVAL, "current: version 3 is not among the keys");
	put("{\"current\":1,\"keys\":{\"1\":\"AAAA\"}}", 0600);
	expect_refusal(E_INVAL, "expected 43");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_refusal(E_DENIED, "not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refusal(E_DENIED, "not a regular file");
}

static void
a_file_of_somebody_else_is_refused(void **state)
{
	struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE] = "";

	(void)state;
	put(GOOD, 0600);
	if (geteuid() != 0)
		skip(); /* Only root can give a file away. */
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	expect_refusal(E_DENIED, "belongs to uid 12345, expected uid 0");
	assert_int_equal(vault_keys_load(path, 12345, &k, why), 0);
	vault_keys_free(k);
}

static void
a_file_over_the_limit_is_refused(void **state)
{
	CLEANUP_FREE char *big = mem_alloc(VAULT_KEYS_TEXT_MAX + 2);

	(void)state;
	memset(big, ' ', VAULT_KEYS_TEXT_MAX + 1);
	big[VAULT_KEYS_TEXT_MAX + 1] = '\0';
	put(big, 0600);
	expect_refusal(E_TOO_BIG, "too large");
}

static void
a_folder_that_is_missing_is_named(void **state)
{
	struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE] = "", deep[160];

	(void)state;
	(void)snprintf(deep, sizeof(deep), "%s/none/keys.json", dir);
	assert_int_equal(vault_keys_create(deep, &k, why), E_NOENT);
	assert_non_null(strstr(why, deep));
}

static void
keys_pass_through_a_sealed_descriptor(void **state)
{
	CLEANUP(vault_keys_freep) struct vault_keys *a = vault_keys_new(), *b = NULL;
	CLEANUP(io_closep) int fd = -1;
	char why[VAULT_WHY_SIZE];

	(void)state;
	assert_int_equal(vault_keys_rotate(a), 0);
	assert_int_equal(vault_keys_to_memfd(a, &fd), 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(vault_keys_read_fd(fd, &b, why), 0);
	assert_memory_equal(a->keys, b->keys, sizeof(a->keys));
}

static void
every_failed_allocation_is_told_and_leaves_nothing(void **state)
{
	long n;

	(void)state;
	for (n = 0;; n++) {
		struct vault_keys *k = NULL, *again = NULL;
		char why[VAULT_WHY_SIZE];
		int r, hit, fd = -1;

		mem_fault_arm(n);
		r = vault_keys_create(path, &k, why);
		if (r == 0)
			r = vault_keys_save(k, path, why);
		if (r == 0)
			r = vault_keys_overwrite(k, path, why);
		if (r == 0)
			r = vault_keys_to_memfd(k, &fd);
		if (r == 0)
			r = vault_keys_load(path, geteuid(), &again, why);
		hit = mem_fault_hit();
		mem_fault_arm(-1);
		assert_int_equal(r, hit ? E_NOMEM : 0);
		vault_keys_free(k);
		vault_keys_free(again);
		io_close(&fd);
		(void)unlink(path);
		if (!hit)
			break;
	}
	assert_int_equal(n, 7);
}

#define WITH_DIR(t) cmocka_unit_test_setup_teardown(t, make_dir, remove_dir)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(a_made_file_is_private_and_loads_again),
		WITH_DIR(a_file_that_exists_is_never_made_anew),
		WITH_DIR(a_rotated_set_replaces_the_file),
		WITH_DIR(a_file_is_replaced_where_it_is_and_stays_its_owners),
		WITH_DIR(a_file_is_written_over_where_no_other_can_be_made),
		WITH_DIR(a_folder_that_takes_no_file_leaves_the_old_one_and_is_named),
		WITH_DIR(a_file_that_does_not_serve_is_refused_by_name),
		WITH_DIR(a_file_of_somebody_else_is_refused),
		WITH_DIR(a_file_over_the_limit_is_refused),
		WITH_DIR(a_folder_that_is_missing_is_named),
		WITH_DIR(keys_pass_through_a_sealed_descriptor),
		WITH_DIR(every_failed_allocation_is_told_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
