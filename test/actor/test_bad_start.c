/* Real anvild: what is wrong before it serves is said in one sentence, and nothing is touched. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvild/supervisor.h"
#include "lib/base/arena.h"
#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/ledger/ledger.h"
#include "lib/store/store.h"
#include "test/support/super_rig.h"
#include "test/support/unit.h"

#define WAIT_MS 20000

static int
setup(void **state)
{
	struct super_rig *g = mem_calloc(1, sizeof(*g));

	assert_non_null(g);
	super_rig_init(g);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	super_rig_done(*state);
	free(*state);
	return 0;
}

static void
expect_said(const struct super_rig *g, const char *text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (super_rig_said(g, text))
		return;
	(void)io_read_file(AT_FDCWD, g->log, 1 << 20, &b);
	fail_msg("\"%s\" is not in: %.*s", text, (int)b.len, (const char *)b.data);
}

/* Starts, must end by itself with 1 and that sentence. */
static void
expect_refusal(struct super_rig *g, const char *text)
{
	super_rig_start(g);
	assert_int_equal(super_rig_wait(g, WAIT_MS), 1);
	expect_said(g, text);
}

static void
a_second_supervisor_ends_with_the_pid_of_the_first(void **state)
{
	struct super_rig *g = *state;
	char text[192];

	super_rig_start(g);
	super_rig_wait_ready(g);
	assert_int_equal(super_rig_run_another(g), 1);
	(void)snprintf(text, sizeof(text), "another supervisor (pid %d) uses %.48s",
	    (int)g->pid, g->runtime);
	expect_said(g, text);
	/* The first has not noticed. */
	json_decref(super_ask(g, "supervisor", "supervisor.list", "{}"));
}

static void
a_port_in_use_is_named(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(io_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	char text[192];

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(g->listen, sizeof(g->listen), "127.0.0.1:%d", ntohs(at.sin_port));
	super_rig_configure(g, "");
	(void)snprintf(
	    text, sizeof(text), "cannot listen on %.64s: the address is in use", g->listen);
	expect_refusal(g, text);
}

static void
mistakes_of_the_configuration_are_shown_with_their_place(void **state)
{
	struct super_rig *g = *state;

	super_rig_configure(g, "runs:\n  max_concurrent: many\nshard: 4\n");
	super_rig_start(g);
	assert_int_equal(super_rig_wait(g, WAIT_MS), 1);
	expect_said(g, "anvil.yml:");
	expect_said(g, ":19: runs.max_concurrent: ");
	expect_said(g, ":1: shard: ");
	assert_int_equal(access(g->data, F_OK), -1);
}

static void
keys_that_others_may_read_are_refused(void **state)
{
	struct super_rig *g = *state;

	super_rig_start(g);
	super_rig_wait_ready(g);
	super_rig_stop(g);
	assert_int_equal(chmod(g->keys, 0644), 0);
	expect_refusal(g, "0600");
	expect_said(g, g->keys);
}

static void
keys_that_are_none_are_refused_and_kept(void **state)
{
	struct super_rig *g = *state;
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	super_rig_write(g, g->keys, "{\"1\": \"short\"}\n", 0600);
	expect_refusal(g, g->keys);
	assert_int_equal(io_read_file(AT_FDCWD, g->keys, 1024, &b), 0);
	assert_memory_equal(b.data, "{\"1\": \"short\"}\n", b.len);
}

static void
a_data_folder_that_others_may_enter_is_refused(void **state)
{
	struct super_rig *g = *state;

	assert_int_equal(mkdir(g->data, 0755), 0);
	assert_int_equal(chmod(g->data, 0755), 0);
	super_rig_own(g, g->data);
	expect_refusal(g, "others must not enter it: chmod 0700");
}

static void
somebody_elses_data_folder_is_refused(void **state)
{
	struct super_rig *g = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(g->data, 0700), 0);
	expect_refusal(g, "belongs to uid 0");
}

static void
root_without_a_user_is_refused(void **state)
{
	struct super_rig *g = *state;

	if (geteuid() != 0)
		skip();
	super_rig_write(g, g->config, "version: 1\n", 0644);
	expect_refusal(g, "started as root without `user:`");
}

/* ---- stores ---- */

/* As after an upgrade that was taken back: one migration more than this release knows. */
static void
make_newer(struct super_rig *g, const struct store_desc *d, const char *name)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP_FREE char *path = mem_format("%s/%s", g->data, name);
	size_t n = *d->nmigrations + 1;
	struct store_migration *all = mem_calloc(n, sizeof(*all));
	struct store_desc newer = *d;
	char *why = NULL;

	assert_non_null(all);
	memcpy(all, d->migrations, (n - 1) * sizeof(*all));
	all[n - 1] = (struct store_migration) { "9999_later", "CREATE TABLE later (a) ;" };
	newer.migrations = all;
	newer.nmigrations = &n;
	assert_int_equal(io_mkdirs(g->data, 0700), 0);
	super_rig_own(g, g->data);
	assert_int_equal(store_open(&newer, path, &s, &why), 0);
	s = store_close(s);
	super_rig_own(g, path);
	free(all);
}

static void
read_store(const struct super_rig *g, const char *name, struct buf *out)
{
	CLEANUP_FREE char *path = mem_format("%s/%s", g->data, name);

	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 24, out), 0);
}

static void
expect_untouched(struct super_rig *g, const struct store_desc *d, const char *name)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT;
	CLEANUP(buf_done) struct buf after = BUF_INIT;

	make_newer(g, d, name);
	read_store(g, name, &before);
	expect_refusal(g, "it was written by a newer anvil");
	expect_said(g, name);
	read_store(g, name, &after);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.data, after.data, before.len);
}

static void
a_shards_store_of_a_newer_version_stops_the_start(void **state)
{
	struct super_rig *g = *state;

	expect_untouched(g, &ledger_store, "project-1.db");
	expect_said(g, "\"not_started\"");
	assert_false(super_rig_said(g, "\"ready\""));
}

static void
the_supervisors_store_of_a_newer_version_stops_the_start(void **state)
{
	expect_untouched(*state, &supervisor_store, "supervisor.db");
}

static void
a_damaged_store_takes_out_its_shard_alone(void **state)
{
	struct super_rig *g = *state;
	CLEANUP_FREE char *path = mem_format("%s/project-0.db", g->data);

	assert_int_equal(io_mkdirs(g->data, 0700), 0);
	super_rig_own(g, g->data);
	super_rig_write(
	    g, path, "this is not a database, whatever its name says, not at all\n", 0600);
	super_rig_start(g);
	super_rig_wait_ready(g);
	expect_said(g, "\"store_damaged\"");
	expect_said(g, "project-0.db");
	assert_false(super_rig_said(g, "\"not_started\""));
}

static void
make_project(struct super_rig *g, const char *name)
{
	CLEANUP(store_closep) struct store *s = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP_FREE char *path = mem_format("%s/%s", g->data, name);
	struct ledger_project p = { .project_id = "prj_0000000000000000000001",
		.owner_user_id = "usr_0000000000000000000001",
		.owner_slug = "demo",
		.project_slug = "hello",
		.name = "Hello",
		.repo_url = "https://example.test/hello.git",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.created_at = 1 };
	enum ledger_created created;
	char *why = NULL;

	assert_int_equal(io_mkdirs(g->data, 0700), 0);
	super_rig_own(g, g->data);
	assert_int_equal(store_open(&ledger_store, path, &s, &why), 0);
	assert_int_equal(store_begin(s), 0);
	assert_int_equal(ledger_project_create(s, a, &p, &created), 0);
	assert_int_equal(store_commit(s), 0);
	s = store_close(s);
	super_rig_own(g, path);
}

static void
fewer_shards_than_hold_projects_are_refused_with_the_list(void **state)
{
	struct super_rig *g = *state;

	make_project(g, "project-2.db");
	expect_refusal(g, "shards: 3 or more are needed, for shard 2 holds 1 projects");
	expect_said(g, " demo/hello");
	g->shards = 3;
	super_rig_configure(g, "");
	super_rig_start(g);
	super_rig_wait_ready(g);
}

static void
an_empty_shard_may_be_left_out(void **state)
{
	struct super_rig *g = *state;

	super_rig_start(g);
	super_rig_wait_ready(g);
	super_rig_stop(g);
	g->shards = 1;
	super_rig_configure(g, "");
	super_rig_start(g);
	super_rig_wait_ready(g);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_second_supervisor_ends_with_the_pid_of_the_first),
		TEST(a_port_in_use_is_named),
		TEST(mistakes_of_the_configuration_are_shown_with_their_place),
		TEST(keys_that_others_may_read_are_refused),
		TEST(keys_that_are_none_are_refused_and_kept),
		TEST(a_data_folder_that_others_may_enter_is_refused),
		TEST(somebody_elses_data_folder_is_refused),
		TEST(root_without_a_user_is_refused),
		TEST(a_shards_store_of_a_newer_version_stops_the_start),
		TEST(the_supervisors_store_of_a_newer_version_stops_the_start),
		TEST(a_damaged_store_takes_out_its_shard_alone),
		TEST(fewer_shards_than_hold_projects_are_refused_with_the_list),
		TEST(an_empty_shard_may_be_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
