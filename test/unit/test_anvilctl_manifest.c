/* What a manifest says of a backup, and what no backup can be. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvilctl/locks.h"
#include "cmd/anvilctl/manifest.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"
#include "lib/store/store.h"
#include "test/support/scratch.h"
#include "test/support/tiny_store.h"
#include "test/support/unit.h"

#define RUN     "run_0123456789abcdefghijAB"
#define DIGEST  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define NO_TIME 1700000000123

struct place {
	char *dir;
	int fd;
};

static int
setup(void **state)
{
	struct place *p = mem_calloc(1, sizeof(*p));

	assert_non_null(p);
	p->dir = scratch_new();
	p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return p->fd < 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;

	io_close(&p->fd);
	scratch_free(p->dir);
	free(p);
	return 0;
}

static void
a_path_tells_what_a_file_is_and_nothing_else_is_in_a_backup(void **state)
{
	static const char *const none[] = { "", "project-64.db", "project-00.db",
		"project-01.db", "project--1.db", "project-1.db.lock", "project-1.dbx",
		"manifest.json", "runs/" RUN "/lock", "runs/" RUN, "runs/" RUN "/ws/run.db",
		"runs/run_x/run.db", "../supervisor.db", "/supervisor.db", "runs/../run.db",
		"runs/" RUN "x/run.db", "project- 1.db", "keys.json" };

	(void)state;
	assert_int_equal(file_role_of("supervisor.db"), FILE_SUPERVISOR);
	assert_int_equal(file_role_of("ingress.db"), FILE_INGRESS);
	assert_int_equal(file_role_of("project-0.db"), FILE_PROJECT);
	assert_int_equal(file_shard("project-63.db"), 63);
	assert_int_equal(file_role_of("runs/" RUN "/run.db"), FILE_RUN);
	assert_int_equal(file_role_of("runs/" RUN "/log.zst"), FILE_LOG);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (file_role_of(none[i]) != FILE_ROLE_COUNT)
			fail_msg("\"%s\" counts as a file of a backup", none[i]);
}

static struct manifest *
sample(void)
{
	struct manifest *m = manifest_new();
	struct file_facts facts = { .bytes = 4096, .sha256 = DIGEST, .version = 3 };

	if (m == NULL)
		return NULL;
	m->created_at_ms = NO_TIME;
	if (manifest_add(m, "project-0.db", &facts) == 0 &&
	    (facts.version = 2, manifest_add(m, "project-1.db", &facts)) == 0 &&
	    (facts.version = 0, manifest_add(m, "runs/" RUN "/log.zst", &facts)) == 0 &&
	    manifest_add_key(m, 1) == 0 && manifest_add_key(m, 7) == 0 &&
	    manifest_add_gap(m, RUN, "it \"is\"\ndamaged") == 0)
		return m;
	return manifest_free(m);
}

static void
what_was_written_is_read_back(void **state)
{
	struct place *p = *state;
	CLEANUP(manifest_freep) struct manifest *m = sample(), *back = NULL;
	char why[FILES_WHY_SIZE];

	assert_int_equal(manifest_write(m, p->fd), 0);
	assert_int_equal(manifest_read(p->fd, &back, why), 0);
	assert_int_equal(back->created_at_ms, NO_TIME);
	assert_string_equal(back->version, base_version());
	assert_int_equal(back->nfiles, 3);
	assert_string_equal(back->files[2].path, "runs/" RUN "/log.zst");
	assert_string_equal(back->files[1].facts.sha256, DIGEST);
	assert_int_equal(back->files[1].facts.version, 2);
	assert_int_equal(manifest_schema(back, FILE_PROJECT), 3);
	assert_int_equal(manifest_schema(back, FILE_RUN), 0);
	assert_int_equal(manifest_count(back, FILE_PROJECT), 2);
	assert_int_equal(manifest_bytes(back), 3 * 4096);
	assert_int_equal(back->nkeys, 2);
	assert_int_equal(back->keys[1], 7);
	assert_int_equal(back->ngaps, 1);
	assert_string_equal(back->gaps[0].message, "it \"is\"\ndamaged");
}

#define HEAD "{\"format\": 1, \"anvil\": \"1\", \"createdAt\": \"2026-01-31T09:05:07.042Z\", "
#define REST "\"keys\": [], \"leftOut\": [], \"files\": ["
#define FILE_ROW(path, role, bytes, sha)                                               \
	HEAD REST "{\"path\": \"" path "\", \"role\": \"" role "\", \"bytes\": " bytes \
		  ", \"schema\": 1, \"sha256\": \"" sha "\"}]}"

static void
what_no_backup_says_is_refused(void **state)
{
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{ "", E_INVAL },
		{ "[]", E_INVAL },
		{ "{}", E_INVAL },
		{ HEAD REST, E_INVAL },
		{ "{\"format\": 2, \"anvil\": \"9.9\"}", E_NEWER },
		{ "{\"format\": \"1\"}", E_INVAL },
		{ HEAD "\"keys\": [], \"files\": []}", E_INVAL },
		{ HEAD "\"keys\": [\"1\"], \"leftOut\": [], \"files\": []}", E_INVAL },
		{ HEAD "\"keys\": [], \"leftOut\": [{}], \"files\": []}", E_INVAL },
		{ HEAD REST "{}]}", E_INVAL },
		{ FILE_ROW("../../etc/passwd", "run", "1", DIGEST), E_INVAL },
		{ FILE_ROW("ingress.db", "supervisor", "1", DIGEST), E_INVAL },
		{ FILE_ROW("ingress.db", "ingress", "-1", DIGEST), E_INVAL },
		{ FILE_ROW("ingress.db", "ingress", "1.5", DIGEST), E_INVAL },
		{ FILE_ROW("ingress.db", "ingress", "1", "00"), E_INVAL },
	};
	struct place *p = *state;
	char why[FILES_WHY_SIZE];
	struct manifest *m = NULL;

	assert_int_equal(manifest_read(p->fd, &m, why), E_NOENT);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int r;

		assert_int_equal(
		    io_write_file(p->fd, MANIFEST_NAME, bad[i].text, strlen(bad[i].text), 0600),
		    0);
		r = manifest_read(p->fd, &m, why);
		if (r != bad[i].err)
			fail_msg("%s: %d (%s)", bad[i].text, r, why);
		assert_null(m);
		assert_true(strlen(why) > 0);
	}
	assert_int_equal(
	    io_write_file(p->fd, MANIFEST_NAME, FILE_ROW("ingress.db", "ingress", "1", DIGEST),
		strlen(FILE_ROW("ingress.db", "ingress", "1", DIGEST)), 0600),
	    0);
	assert_int_equal(manifest_read(p->fd, &m, why), 0);
	m = manifest_free(m);
}

static void
without_memory_there_is_no_manifest(void **state)
{
	struct place *p = *state;
	int done = 0;
	long n;

	for (n = 0; !done; n++) {
		CLEANUP(manifest_freep) struct manifest *m = NULL, *back = NULL;
		char why[FILES_WHY_SIZE];
		int r;

		mem_fault_arm(n);
		m = sample();
		r = m != NULL ? manifest_write(m, p->fd) : E_NOMEM;
		if (r == 0)
			r = manifest_read(p->fd, &back, why);
		done = !mem_fault_hit();
		mem_fault_arm(-1);
		/* jansson has memory of its own. */
		assert_true(done ? r == 0 : r == E_NOMEM || r == 0);
		assert_int_equal(back != NULL, r == 0);
	}
	assert_true(n > 8);
}

/* ---- files ---- */

static void
a_copy_is_known_by_its_head_and_its_digest(void **state)
{
	static const char digest_of_abc[] =
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct place *p = *state;
	CLEANUP_FREE char *from = tiny_path(p->dir, "tiny.db");
	CLEANUP_FREE char *to = tiny_path(p->dir, "ingress.db");
	CLEANUP_FREE char *runs = tiny_path(p->dir, "runs");
	CLEANUP_FREE char *run = tiny_path(p->dir, "runs/" RUN);
	CLEANUP_FREE char *why_copy = NULL;
	CLEANUP(store_closep) struct store *s = tiny_open(&tiny_store, p->dir);
	char why[FILES_WHY_SIZE];
	struct store_copied done;
	struct file_facts facts;

	assert_int_equal(store_copy(&tiny_store, from, to, NULL, NULL, &done, &why_copy), 0);
	assert_int_equal(file_facts(p->fd, "ingress.db", -1, &facts, why), 0);
	assert_int_equal(facts.bytes, done.bytes);
	assert_int_equal(facts.version, done.version);
	/* The store itself is none. */
	s = store_close(s);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(file_facts(p->fd, "ingress.db", -1, &facts, why), E_CORRUPT);
	assert_non_null(strstr(why, "mark"));
	assert_int_equal(truncate(to, 5000), 0);
	assert_int_equal(file_facts(p->fd, "ingress.db", -1, &facts, why), E_CORRUPT);
	assert_int_equal(truncate(to, 0), 0);
	assert_int_equal(file_facts(p->fd, "ingress.db", -1, &facts, why), E_CORRUPT);
	assert_int_equal(file_facts(p->fd, "supervisor.db", -1, &facts, why), E_NOENT);
	assert_string_equal(why, "is missing");
	/* A log is any bytes. */
	assert_int_equal(mkdir(runs, 0700) | mkdir(run, 0700), 0);
	assert_int_equal(io_write_file(p->fd, "runs/" RUN "/log.zst", "abc", 3, 0600), 0);
	assert_int_equal(file_facts(p->fd, "runs/" RUN "/log.zst", -1, &facts, why), 0);
	assert_int_equal(facts.bytes, 3);
	assert_string_equal(facts.sha256, digest_of_abc);
}

static int
count(void *arg, const char *path, int is_file)
{
	char *seen = arg;

	(void)snprintf(
	    seen + strlen(seen), 200 - strlen(seen), "%s%s;", path, is_file ? "" : "/");
	return 0;
}

static void
a_tree_is_walked_without_following_links_and_removed_whole(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *top = tiny_path(p->dir, "top");
	CLEANUP_FREE char *inner = tiny_path(p->dir, "top/inner");
	CLEANUP_FREE char *link_path = tiny_path(p->dir, "top/inner/link");
	CLEANUP_FREE char *outside = tiny_path(p->dir, "outside");
	char seen[200] = "";

	assert_int_equal(mkdir(top, 0700) | mkdir(inner, 0700) | mkdir(outside, 0700), 0);
	assert_int_equal(io_write_file(p->fd, "outside/file", "", 0, 0600), 0);
	assert_int_equal(symlink(outside, link_path), 0);
	assert_int_equal(files_walk(top, 1, count, seen), 0);
	assert_string_equal(seen, "inner/link/;inner/;");
	assert_int_equal(files_remove_tree(top), 0);
	assert_int_equal(access(top, F_OK), -1);
	assert_int_equal(faccessat(p->fd, "outside/file", F_OK, 0), 0);
}

/* ---- locks ---- */

static void
whoever_lives_is_named(void **state)
{
	struct place *p = *state;
	CLEANUP_FREE char *run = tiny_path(p->dir, "runs/" RUN);
	CLEANUP_FREE char *nowhere = tiny_path(p->dir, "nowhere");
	CLEANUP(io_closep) int held = -1;
	struct locks l = { .n = 0 };
	struct lock_holder who;

	assert_int_equal(locks_take(&l, nowhere, nowhere, &who), 0);
	assert_int_equal(locks_take(&l, p->dir, nowhere, &who), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(io_mkdirs(run, 0700), 0);
	assert_int_equal(io_lock_file(p->fd, "runs/" RUN "/lock", &held), 0);
	assert_int_equal(locks_take(&l, p->dir, nowhere, &who), E_LOCKED);
	assert_string_equal(who.what, RUN "/lock");
	assert_int_equal(who.pid, getpid());
	io_close(&held);
	assert_int_equal(io_lock_file(p->fd, "project-3.db.lock", &held), 0);
	assert_int_equal(locks_take(&l, p->dir, nowhere, &who), E_LOCKED);
	assert_string_equal(who.what, "project-3.db.lock");
	io_close(&held);
	/* Held by us, they keep others out and not ourselves. */
	assert_int_equal(locks_take(&l, p->dir, nowhere, &who), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(
	    locks_make(&l, p->dir, "supervisor.db.lock", geteuid(), getegid(), &who), 0);
	assert_int_equal(locks_take(&l, p->dir, nowhere, &who), 0);
	assert_int_equal(io_lock_file(p->fd, "supervisor.db.lock", &held), E_LOCKED);
	locks_release(&l);
	assert_int_equal(io_lock_file(p->fd, "supervisor.db.lock", &held), 0);
}

int
main(void)
{
#define IN_A_PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_tells_what_a_file_is_and_nothing_else_is_in_a_backup),
		IN_A_PLACE(what_was_written_is_read_back),
		IN_A_PLACE(what_no_backup_says_is_refused),
		IN_A_PLACE(without_memory_there_is_no_manifest),
		IN_A_PLACE(a_copy_is_known_by_its_head_and_its_digest),
		IN_A_PLACE(a_tree_is_walked_without_following_links_and_removed_whole),
		IN_A_PLACE(whoever_lives_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
