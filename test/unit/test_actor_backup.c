/* test/unit/test_actor_backup.c -- an actor that copies its store beside its loop. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/actor/actor.h"
#include "lib/actor/inside.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/turn_rig.h"
#include "test/support/unit.h"

#define ROWS 50

static void
ask(struct fix *f, const char *folder)
{
	CLEANUP(buf_done) struct buf params = BUF_INIT;

	buf_printf(&params, "{\"folder\":\"%s\"}", folder);
	assert_int_equal(rpc_send(link_peer(f->link), "actor.backup", &params, NULL,
			     turn_rig_on_answer, &f->got),
	    0);
}

static void
fill(struct fix *f)
{
	for (int i = 1; i <= ROWS; i++)
		turn_rig_send_n(f, "t.put", i);
	turn_rig_wait_answers(f, ROWS);
}

static char *
store_in(const char *folder)
{
	char *path = mem_format("%s/t.db", folder);

	assert_non_null(path);
	return path;
}

static int64_t
rows_in(const char *path)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP_FREE char *why = NULL;
	struct stmt *count;
	int restored = 0;
	int64_t n;

	assert_int_equal(store_open(turn_rig_desc.store, path, &s, &why), 0);
	assert_int_equal(store_is_restored(s, &restored), 0);
	assert_int_equal(restored, 1);
	count = store_stmt(s, 1);
	assert_int_equal(stmt_step(count), 1);
	n = stmt_int(count, 0);
	(void)stmt_reset(count);
	return n;
}

static void
a_copy_is_made_while_turns_go_on(void **state)
{
	struct fix *f = *state;
	char *folder = scratch_new();
	CLEANUP_FREE char *copy = store_in(folder);
	struct stat st;

	fill(f);
	ask(f, folder);
	for (int i = 1; i <= ROWS; i++)
		turn_rig_send_n(f, "t.put", ROWS + i);
	turn_rig_wait_answers(f, 2 * ROWS + 1);
	for (int i = 0; i <= 2 * ROWS; i++)
		assert_int_equal(f->got.err[i], 0);
	assert_null(f->a->backup);
	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	scratch_free(folder);
}

static void
the_answer_names_files_sizes_and_schema(void **state)
{
	struct fix *f = *state;
	char *folder = scratch_new();
	CLEANUP_FREE char *copy = store_in(folder);
	char want[200];
	struct stat st;

	fill(f);
	ask(f, folder);
	turn_rig_wait_answers(f, ROWS + 1);
	assert_int_equal(stat(copy, &st), 0);
	(void)snprintf(want, sizeof(want),
	    "{\"kind\":\"ok\",\"files\":[{\"name\":\"t.db\",\"bytes\":%lld}],"
	    "\"schemaVersion\":1}",
	    (long long)st.st_size);
	assert_string_equal(f->got.text, want);
	scratch_free(folder);
}

static void
refused(struct fix *f, const char *folder, const char *part)
{
	size_t at = f->got.n;

	ask(f, folder);
	turn_rig_wait_answers(f, at + 1);
	assert_int_equal(f->got.err[at], 0);
	assert_non_null(strstr(f->got.text, "\"kind\":\"refused\""));
	if (strstr(f->got.text, part) == NULL)
		fail_msg("%s does not say: %s", f->got.text, part);
}

static void
only_a_folder_of_ours_that_nobody_else_enters_will_do(void **state)
{
	struct fix *f = *state;
	char *folder = scratch_new();
	CLEANUP_FREE char *link_path = mem_format("%s/link", folder);
	CLEANUP_FREE char *file = mem_format("%s/file", folder);

	refused(f, "relative", "absolute");
	refused(f, "/nonexistent/folder", "is not a folder");
	assert_int_equal(symlink(folder, link_path), 0);
	refused(f, link_path, "is not a folder");
	assert_int_equal(io_write_file(AT_FDCWD, file, "", 0, 0600), 0);
	refused(f, file, "is not a folder");
	assert_int_equal(chmod(folder, 0750), 0);
	refused(f, folder, "0700");
	if (geteuid() == 0) {
		assert_int_equal(chmod(folder, 0700), 0);
		assert_int_equal(chown(folder, 65534, 65534), 0);
		refused(f, folder, "another user");
	}
	scratch_free(folder);
}

static void
a_store_that_is_there_already_is_not_written_over(void **state)
{
	struct fix *f = *state;
	char *folder = scratch_new();
	CLEANUP_FREE char *copy = store_in(folder);
	struct stat st;

	assert_int_equal(io_write_file(AT_FDCWD, copy, "mine", 4, 0600), 0);
	ask(f, folder);
	turn_rig_wait_answers(f, 1);
	assert_int_equal(f->got.err[0], E_EXISTS);
	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_size, 4);
	scratch_free(folder);
}

static void
a_second_copy_has_to_wait_for_the_first(void **state)
{
	struct fix *f = *state;
	char *one = scratch_new(), *two = scratch_new();
	CLEANUP_FREE char *first = store_in(one), *second = store_in(two);

	fill(f);
	ask(f, one);
	while (f->a->backup == NULL && f->got.n == ROWS)
		actor_step(f->a);
	ask(f, two);
	turn_rig_wait_answers(f, ROWS + 2);
	assert_int_equal(rows_in(first), ROWS);
	/* Unless the first was done before it came. */
	if (access(second, F_OK) == 0)
		assert_int_equal(rows_in(second), ROWS);
	assert_null(f->a->backup);
	scratch_free(one);
	scratch_free(two);
}

static void
an_actor_that_goes_gives_its_copy_up(void **state)
{
	struct fix *f = *state;
	char *folder = scratch_new();
	CLEANUP_FREE char *part = mem_format("%s/t.db.part", folder);

	fill(f);
	ask(f, folder);
	while (f->a->backup == NULL && f->got.n == ROWS)
		actor_step(f->a);
	actor_drain(f->a);
	assert_int_equal(actor_run(f->a), 0);
	/* It was done just before, or it was given up: whoever asked has been told. */
	assert_int_equal(f->got.n, ROWS + 1);
	assert_true(f->got.err[ROWS] == 0 || f->got.err[ROWS] == E_DRAINING ||
	    f->got.err[ROWS] == E_LINK);
	assert_int_equal(access(part, F_OK), -1);
	scratch_free(folder);
}

int
main(void)
{
#define OF_AN_ACTOR(t) cmocka_unit_test_setup_teardown(t, turn_rig_setup, turn_rig_teardown)
	const struct CMUnitTest tests[] = {
		OF_AN_ACTOR(a_copy_is_made_while_turns_go_on),
		OF_AN_ACTOR(the_answer_names_files_sizes_and_schema),
		OF_AN_ACTOR(only_a_folder_of_ours_that_nobody_else_enters_will_do),
		OF_AN_ACTOR(a_store_that_is_there_already_is_not_written_over),
		OF_AN_ACTOR(a_second_copy_has_to_wait_for_the_first),
		OF_AN_ACTOR(an_actor_that_goes_gives_its_copy_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
