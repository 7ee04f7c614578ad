/* The file of keys, with each call of the kernel failing in turn: no key is ever lost. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/vault/keys.h"
#include "test/support/io_fault.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

struct rig {
	char *dir, *path;
	struct vault_keys *keys; /* as they are to be in the file */
};

static int
setup(void **state)
{
	struct rig *rig = mem_calloc(1, sizeof(*rig));
	char why[VAULT_WHY_SIZE];

	rig->dir = scratch_new();
	rig->path = mem_format("%s/keys.json", rig->dir);
	*state = rig;
	return vault_keys_create(rig->path, &rig->keys, why);
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	io_fault_arm(-1, 0);
	(void)vault_keys_free(rig->keys);
	scratch_free(rig->dir);
	free(rig->path);
	free(rig);
	return 0;
}

static int
load(void *arg)
{
	const struct rig *rig = arg;
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE] = "";
	int r = vault_keys_load(rig->path, geteuid(), &k, why);

	if (r < 0)
		assert_non_null(strstr(why, rig->path));
	return r;
}

static void
loading_says_what_cannot_be_read(void **state)
{
	int fds = scratch_open_fds();

	assert_true(io_starve(load, *state, 0, NULL) >= 3);
	assert_int_equal(scratch_open_fds(), fds);
}

static int
create(void *arg)
{
	const struct rig *rig = arg;
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE];

	return vault_keys_create(rig->path, &k, why);
}

/* There is no file, or one that loads. */
static void
is_none_or_whole(void *arg, int r)
{
	struct rig *rig = arg;

	if (r == 0 || access(rig->path, F_OK) == 0)
		assert_int_equal(load(rig), 0);
	(void)unlink(rig->path);
}

static void
a_file_is_made_whole_or_not_at_all(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(unlink(rig->path), 0);
	assert_true(io_starve(create, rig, 0, is_none_or_whole) >= 4);
}

static int
save(void *arg)
{
	const struct rig *rig = arg;
	char why[VAULT_WHY_SIZE];

	return vault_keys_save(rig->keys, rig->path, why);
}

/* The older key is in it whatever happened: secrets are sealed with it. */
static void
has_the_old_key(void *arg, int r)
{
	struct rig *rig = arg;
	CLEANUP(vault_keys_freep) struct vault_keys *k = NULL;
	char why[VAULT_WHY_SIZE];

	assert_int_equal(vault_keys_load(rig->path, geteuid(), &k, why), 0);
	assert_true(vault_keys_have(k, 1));
	if (r == 0)
		assert_true(vault_keys_cover(k, rig->keys));
}

static void
saving_leaves_the_old_keys_or_the_new_ones(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(vault_keys_rotate(rig->keys), 0);
	assert_true(io_starve(save, rig, 0, has_the_old_key) >= 4);
}

static int
hand_over(void *arg)
{
	const struct rig *rig = arg;
	int fd = -1, r = vault_keys_to_memfd(rig->keys, &fd);

	if (r == 0)
		(void)close(fd);
	return r;
}

static void
handing_over_fails_cleanly(void **state)
{
	int fds = scratch_open_fds();

	assert_true(io_starve(hand_over, *state, 0, NULL) >= 1);
	assert_int_equal(scratch_open_fds(), fds);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(loading_says_what_cannot_be_read),
		TEST(a_file_is_made_whole_or_not_at_all),
		TEST(saving_leaves_the_old_keys_or_the_new_ones),
		TEST(handing_over_fails_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
