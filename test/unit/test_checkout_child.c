/*
 * The checkout child against real repositories made by git, over file://.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/io.h"
#include "test/support/checkout_run.h"

/* One for all tests, so that what a failed test leaves is no leak of the next one's child. */
static struct checkout_run r;

static int
make_place(void **state)
{
	struct checkout_place *p = calloc(1, sizeof(*p));

	must(p != NULL);
	checkout_place_make(p);
	checkout_sh(p,
	    "printf 'version: 1\\n' > .anvil.yml; mkdir -p 'a b/c'; echo one > 'a b/c/f'; "
	    "echo '#!/bin/sh' > run.sh; chmod +x run.sh; ln -s 'a b/c/f' link; "
	    "printf 'x\\r\\ny\\n' > crlf.txt; "
	    "printf '*.txt text eol=crlf\\n*.sh filter=boom\\n' > .gitattributes; "
	    "echo ü > 'ü.txt'; git add -A; "
	    "git update-index --cacheinfo "
	    "100644,$(git hash-object -w --no-filters crlf.txt),crlf.txt; git commit -qm one; "
	    "echo two >> run.sh; git commit -qm two run.sh; git tag -a v1 -m v1; "
	    "echo three >> run.sh; git commit -qm three run.sh; git tag light; git branch other v1");
	*state = p;
	return 0;
}

static int
remove_place(void **state)
{
	checkout_run_done(&r);
	memset(&r, 0, sizeof(r));
	checkout_place_remove(*state);
	free(*state);
	return 0;
}

static void
expect_done(void)
{
	if (r.failed)
		(void)fprintf(stderr, "failed: %s\n", (char *)r.text.data);
	assert_int_equal(r.failed, 0);
	assert_int_equal(r.committed, 1);
	assert_int_equal(r.configured, 1);
	assert_int_equal(r.done, 1);
	assert_int_equal(r.status, 0);
}

static void
expect_failed(enum checkout_failure failure, const char *text)
{
	assert_int_equal(r.failed, 1);
	assert_int_equal(r.done, 0);
	assert_int_equal(r.failure, failure);
	assert_string_equal((const char *)r.text.data, text);
	assert_int_equal(WEXITSTATUS(r.status), 1);
}

static const char *
in_ws(const struct checkout_place *p, const char *command)
{
	return checkout_sh_line(p, "cd %s; %s", p->workspace, command);
}

static void
expect_clean(const struct checkout_place *p)
{
	assert_string_equal(in_ws(p, "git status --porcelain 2>&1"), "");
	assert_string_equal(
	    in_ws(p, "git fsck --connectivity-only 2>&1 | grep -v ^dangling"), "");
}

static void
head_of_the_branch_is_checked_out_as_committed(void **state)
{
	const struct checkout_place *p = *state;

	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	assert_string_equal(r.sha, checkout_sh_line(p, "git rev-parse main"));
	assert_int_equal(r.config, CHECKOUT_CONFIG_FOUND);
	assert_string_equal((char *)r.text.data, "version: 1\n");
	assert_int_equal(r.nfiles, 7);
	assert_true(r.received > 0);
	expect_clean(p);
	assert_string_equal(in_ws(p, "git rev-parse HEAD"), r.sha);
	assert_string_equal(in_ws(p, "git status -sb"), "## main...origin/main");
	assert_string_equal(in_ws(p, "git remote get-url origin"), p->url);
	assert_string_equal(in_ws(p, "git describe --tags"), "light");
	assert_string_equal(in_ws(p, "git log --format=%s | tr '\\n' ,"), "three,");
	assert_string_equal(
	    in_ws(p, "stat -c %a run.sh crlf.txt . 'a b' | tr '\\n' ,"), "755,644,700,755,");
	assert_string_equal(in_ws(p, "readlink link"), "a b/c/f");
	assert_string_equal(in_ws(p, "od -An -c crlf.txt"), "   x  \\r  \\n   y  \\n");
	assert_string_equal(in_ws(p, "cat 'ü.txt'"), "ü");
	assert_string_equal(in_ws(p, "ls .git/hooks 2>&1 | grep -c sample"), "0");
}

static void
change_made_at_once_is_seen_by_git_status(void **state)
{
	const struct checkout_place *p = *state;

	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	/* Same size, same second. */
	assert_string_equal(
	    in_ws(p, "printf 'one\\n' | tr o O > 'a b/c/f'; git status --porcelain"),
	    " M \"a b/c/f\"");
}

static void
unchanged_remote_costs_no_download(void **state)
{
	const struct checkout_place *p = *state;

	for (int i = 0; i < 2; i++) {
		checkout_run_init(&r, p);
		checkout_run_go(&r, p);
		expect_done();
		assert_int_equal(r.received != 0, i == 0);
	}
	assert_string_equal(
	    checkout_sh_line(p, "ls %s/objects/pack/*.pack | wc -l", p->mirror), "1");
	checkout_sh(p, "echo four >> run.sh; git commit -qm four run.sh; git branch -qD other");
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	assert_true(r.received > 0);
	assert_string_equal(in_ws(p, "git log --format=%s"), "four");
	assert_string_equal(in_ws(p, "git branch -r | tr -d '\\n'"), "  origin/main");
	expect_clean(p);
}

static void
depth_cuts_the_history_and_zero_does_not(void **state)
{
	static const struct {
		uint32_t depth;
		const char *commits, *shallow, *described;
	} rows[] = {
		{ 1, "1", "true", "light" },
		{ 2, "2", "true", "light" },
		{ 3, "3", "false", "light" },
		{ UINT32_MAX / 2, "3", "false", "light" },
		{ 0, "3", "false", "v1-1-g" },
	};
	const struct checkout_place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		checkout_run_init(&r, p);
		r.depth = rows[i].depth;
		checkout_run_go(&r, p);
		expect_done();
		assert_string_equal(in_ws(p, "git rev-list --count HEAD"), rows[i].commits);
		assert_string_equal(
		    in_ws(p, "git rev-parse --is-shallow-repository"), rows[i].shallow);
		if (rows[i].depth == 0)
			assert_memory_equal(in_ws(p, "git describe"), rows[i].described,
			    strlen(rows[i].described));
		expect_clean(p);
	}
}

static void
depth_counts_the_shortest_way_through_a_merge(void **state)
{
	const struct checkout_place *p = *state;

	checkout_sh(p,
	    "git checkout -q -b side v1; for i in 1 2 3; do echo $i > s$i; git add s$i; "
	    "git commit -qm side$i; done; git checkout -q main; git merge -q -m merge side; "
	    "git clone -q --depth 3 file://$PWD ../reference");
	checkout_run_init(&r, p);
	r.depth = 3;
	checkout_run_go(&r, p);
	expect_done();
	assert_string_equal(in_ws(p, "git rev-list HEAD | sort | sha1sum"),
	    checkout_sh_line(p, "git -C ../reference rev-list HEAD | sort | sha1sum"));
	expect_clean(p);
}

static void
pinned_commit_is_detached(void **state)
{
	const struct checkout_place *p = *state;
	char sha[64], upper[64], part[16];
	const char *const pins[] = { sha, upper, part };

	(void)snprintf(sha, sizeof(sha), "%s", checkout_sh_line(p, "git rev-parse v1^{}"));
	(void)snprintf(upper, sizeof(upper), "%s", sha);
	for (char *c = upper; *c != '\0'; c++)
		*c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
	(void)snprintf(part, sizeof(part), "%.10s", sha);
	for (size_t i = 0; i < ARRAY_LEN(pins); i++) {
		checkout_run_init(&r, p);
		r.req.commit = pins[i];
		checkout_run_go(&r, p);
		expect_done();
		assert_string_equal(r.sha, sha);
		assert_string_equal(in_ws(p, "git rev-parse HEAD"), sha);
		assert_string_equal(
		    in_ws(p, "git symbolic-ref -q HEAD || echo detached"), "detached");
		assert_string_equal(in_ws(p, "git describe"), "v1");
		expect_clean(p);
	}
}

static void
commit_that_left_every_branch_is_fetched_itself(void **state)
{
	const struct checkout_place *p = *state;
	char sha[64];

	(void)snprintf(sha, sizeof(sha), "%s",
	    checkout_sh_line(p,
		"echo gone > gone; git add gone; git commit -qm gone; git rev-parse HEAD; "
		"git reset -q --hard HEAD^"));
	checkout_run_init(&r, p);
	r.req.commit = sha;
	checkout_run_go(&r, p);
	expect_done();
	assert_string_equal(in_ws(p, "cat gone"), "gone");
	expect_clean(p);
}

static void
pin_without_its_commit_is_unreachable(void **state)
{
	const struct checkout_place *p = *state;
	char tree[64], text[160];
	const char *const pins[] = { "0123456789012345678901234567890123456789", "0123456",
		"abc", "no hexadecimal", tree,
		"0123456789012345678901234567890123456789012345678901234567890123" };

	(void)snprintf(
	    tree, sizeof(tree), "%s", checkout_sh_line(p, "git rev-parse main^{tree}"));
	for (size_t i = 0; i < ARRAY_LEN(pins); i++) {
		checkout_run_init(&r, p);
		r.req.commit = pins[i];
		checkout_run_go(&r, p);
		(void)snprintf(text, sizeof(text),
		    "commit %s is no longer reachable (history was rewritten)", pins[i]);
		expect_failed(CHECKOUT_COMMIT_UNREACHABLE, text);
		assert_int_equal(r.committed, 0);
	}
}

static void
prefix_counts_commits_alone(void **state)
{
	const struct checkout_place *p = *state;
	char pair[160], part[8];

	/* Among 300 commits and 3000 blobs some begin with the same four digits; a commit and a
	 * blob that share them with no other commit are put on a branch. */
	(void)snprintf(pair, sizeof(pair), "%s",
	    checkout_sh_line(p,
		"awk 'BEGIN { for (i = 1; i <= 3000; i++) printf \"blob\\ndata <<E\\n%%d\\nE\\n\", i; "
		"for (i = 1; i <= 300; i++) printf \"commit refs/heads/many\\n"
		"committer n <n@example.com> %%d +0000\\ndata 1\\nx\\n\", i }' | "
		"git fast-import --quiet; "
		"git cat-file --batch-all-objects --batch-check='%%(objectname) %%(objecttype)' | "
		"awk '{ p = substr($1, 1, 4) } $2 == \"commit\" { n[p]++; c[p] = $1 } "
		"$2 == \"blob\" { b[p] = $1 } "
		"END { for (p in c) if (n[p] == 1 && p in b) { print c[p], b[p]; exit } }'"));
	assert_int_equal(strlen(pair), 81);
	(void)snprintf(part, sizeof(part), "%.4s", pair);
	checkout_sh(p,
	    "git read-tree many; git update-index --add --cacheinfo 100644,%s,x; "
	    "git update-ref refs/heads/many $(git commit-tree -m x -p many $(git write-tree))",
	    pair + 41);
	checkout_run_init(&r, p);
	r.req.commit = part;
	checkout_run_go(&r, p);
	expect_done();
	assert_memory_equal(r.sha, pair, 40);
}

static void
missing_branch_and_repository_are_said(void **state)
{
	const struct checkout_place *p = *state;

	checkout_run_init(&r, p);
	r.req.branch = "no/such";
	checkout_run_go(&r, p);
	expect_failed(
	    CHECKOUT_CHECKOUT_FAILED, "Checkout failed: branch \"no/such\" does not exist");
	checkout_run_init(&r, p);
	r.req.url = "file:///nonexistent/anvil";
	checkout_run_go(&r, p);
	assert_int_equal(r.failure, CHECKOUT_CHECKOUT_FAILED);
	assert_int_equal(r.failed, 1);
}

static void
url_that_the_configuration_forbids_is_not_fetched(void **state)
{
	static const struct {
		const char *url, *text;
	} rows[] = {
		{ "file:///tmp", "Checkout failed: file:// needs repositories.allow_local" },
		{ "http://example.com/a",
		    "Checkout failed: http:// needs repositories.allow_http" },
		{ "https://127.0.0.1/a",
		    "Checkout failed: host 127.0.0.1 needs repositories.allow_private_hosts" },
		{ "https://[::1]:8/a",
		    "Checkout failed: host ::1 needs repositories.allow_private_hosts" },
		{ "https://x.localhost/a",
		    "Checkout failed: host x.localhost needs repositories.allow_private_hosts" },
		{ "ssh://example.com/a",
		    "Checkout failed: the repository URL is not one that can be fetched" },
		{ "https://u:p@example.com/a",
		    "Checkout failed: the repository URL is not one that can be fetched" },
	};
	const struct checkout_place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		checkout_run_init(&r, p);
		r.req.allow_local = 0;
		r.req.url = rows[i].url;
		checkout_run_go(&r, p);
		expect_failed(CHECKOUT_CHECKOUT_FAILED, rows[i].text);
	}
}

static void
mirror_of_another_url_is_replaced(void **state)
{
	const struct checkout_place *p = *state;
	char url[128];

	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	checkout_sh(
	    p, "git clone -q . ../moved; cd ../moved; echo m > m; git add m; git commit -qm m");
	(void)snprintf(url, sizeof(url), "file://%s/moved", p->base);
	checkout_run_init(&r, p);
	r.req.url = url;
	checkout_run_go(&r, p);
	expect_done();
	assert_non_null(strstr((char *)r.lines.data, "another repository URL"));
	assert_string_equal(in_ws(p, "git log --format=%s"), "m");
	assert_string_equal(
	    checkout_sh_line(p, "ls %s/cache | tr '\\n' ,", p->base), "p.git,p.lock,");
}

/* Each breaks the mirror so that the fetch does not notice, or does. */
static void
damaged_mirror_is_made_anew_once(void **state)
{
	static const char *const breaks[] = {
		"rm -f objects/pack/*", /* everything is gone      */
		"chmod u+w objects/pack/*; for f in objects/pack/*.pack; do : > $f; done",
		"rm HEAD",
		"rm -r objects",
		"printf junk > packed-refs; rm objects/pack/*.idx",
		/* Bytes in the middle: the refs are fine, blobs and trees are not. */
		("chmod u+w objects/pack/*; for f in objects/pack/*.pack; do n=$(stat -c %s $f); "
		 "head -c $((n - 60)) /dev/zero | dd of=$f bs=1 seek=30 conv=notrunc status=none; done"),
	};
	const struct checkout_place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(breaks); i++) {
		checkout_run_init(&r, p);
		checkout_run_go(&r, p);
		expect_done();
		checkout_sh(p, "cd %s; %s", p->mirror, breaks[i]);
		checkout_run_init(&r, p);
		checkout_run_go(&r, p);
		expect_done();
		assert_string_equal(in_ws(p, "cat run.sh | wc -l"), "3");
		expect_clean(p);
	}
}

static void
damage_found_while_writing_files_is_healed_too(void **state)
{
	const struct checkout_place *p = *state;

	checkout_sh(p, "head -c 300000 /dev/urandom > big; git add big; git commit -qm big");
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	/* Only the large blob, which no step before the workspace reads. */
	checkout_sh(p,
	    "cd %s; chmod u+w objects/pack/*; f=$(ls objects/pack/*.pack); "
	    "at=$(git verify-pack -v $f | awk '$3 == 300000 {print $5}'); "
	    "printf ZZZZZZZZ | dd of=$f bs=1 seek=$((at + 1000)) conv=notrunc status=none",
	    p->mirror);
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	assert_non_null(strstr((char *)r.lines.data, "damaged"));
	assert_string_equal(in_ws(p, "cmp big ../src/big && echo same"), "same");
	expect_clean(p);
}

static void
leftovers_of_a_killed_fetch_are_removed(void **state)
{
	const struct checkout_place *p = *state;

	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	checkout_sh(p,
	    "cd %s/objects/pack; echo x > pack_git2_a1B2c3; echo x > tmp_pack_X; "
	    "echo x > pack-0123.pack; mkdir %s.old-1234",
	    p->mirror, p->mirror);
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	assert_string_equal(checkout_sh_line(p, "ls %s/objects/pack | wc -l", p->mirror), "2");
}

static void
config_is_told_by_its_kind(void **state)
{
	static const struct {
		const char *path;
		enum checkout_config kind;
		uint64_t size;
	} rows[] = {
		{ "full.yml", CHECKOUT_CONFIG_FOUND, 65536 },
		{ "over.yml", CHECKOUT_CONFIG_TOO_BIG, 65537 },
		{ "dir/deep.yml", CHECKOUT_CONFIG_FOUND, 2 },
		{ "empty.yml", CHECKOUT_CONFIG_FOUND, 0 },
		{ "none.yml", CHECKOUT_CONFIG_NOT_FOUND, 0 },
		{ "dir/none.yml", CHECKOUT_CONFIG_NOT_FOUND, 0 },
		{ "full.yml/x", CHECKOUT_CONFIG_NOT_FOUND, 0 },
		{ "dirlink/deep.yml", CHECKOUT_CONFIG_NOT_FOUND, 0 },
		{ "dir", CHECKOUT_CONFIG_NOT_REGULAR, 0 },
		{ "link.yml", CHECKOUT_CONFIG_NOT_REGULAR, 0 },
	};
	const struct checkout_place *p = *state;

	checkout_sh(p,
	    "mkdir dir; echo d > dir/deep.yml; ln -s full.yml link.yml; ln -s dir dirlink; "
	    ": > empty.yml; head -c 65536 /dev/zero | tr '\\0' x > full.yml; "
	    "head -c 65537 /dev/zero | tr '\\0' y > over.yml; git add -A; git commit -qm configs");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		checkout_run_init(&r, p);
		r.req.config = rows[i].path;
		r.leave_after = CHECKOUT_CONFIG;
		checkout_run_go(&r, p);
		assert_int_equal(r.configured, 1);
		assert_int_equal(r.config, rows[i].kind);
		assert_int_equal(r.size, rows[i].size);
		assert_int_equal(
		    r.text.len, rows[i].kind == CHECKOUT_CONFIG_FOUND ? rows[i].size : 0);
	}
}

static void
child_whose_parent_leaves_writes_nothing(void **state)
{
	static const int after[] = { CHECKOUT_COMMIT, CHECKOUT_CONFIG };
	const struct checkout_place *p = *state;

	for (size_t i = 0; i < ARRAY_LEN(after); i++) {
		checkout_run_init(&r, p);
		r.leave_after = after[i];
		checkout_run_go(&r, p);
		assert_int_equal(WEXITSTATUS(r.status), 1);
		assert_int_equal(r.configured, i);
		assert_int_equal(access(p->workspace, F_OK), -1);
	}
}

static void
hostile_tree_writes_nowhere_else(void **state)
{
	const struct checkout_place *p = *state;

	/* `a` is a link to a directory outside, and a directory with a file in it. */
	checkout_sh(p,
	    "mkdir ../outside; "
	    "link=$(printf '%%s' %s/outside | git hash-object -w --stdin); "
	    "blob=$(echo bad | git hash-object -w --stdin); "
	    "sub=$(printf '100644 blob %%s\\tf\\n' $blob | git mktree); "
	    "hex() { printf \"$(echo $1 | sed 's/../\\\\x&/g')\"; }; "
	    "bash -c 'hex() { printf \"$(echo $1 | sed s/../\\\\\\\\x\\&/g)\"; }; "
	    "{ printf \"120000 a\\0\"; hex '$link'; printf \"40000 a\\0\"; hex '$sub'; }' > ../tree; "
	    "tree=$(git hash-object -t tree --literally -w --stdin < ../tree); "
	    "git update-ref refs/heads/evil $(git commit-tree -m evil $tree)",
	    p->base);
	checkout_run_init(&r, p);
	r.req.branch = "evil";
	checkout_run_go(&r, p);
	assert_int_equal(r.done, 0);
	assert_int_equal(r.failure, CHECKOUT_CHECKOUT_FAILED);
	assert_string_equal(checkout_sh_line(p, "ls ../outside | wc -l"), "0");
}

static void
tree_that_names_dot_git_is_refused(void **state)
{
	const struct checkout_place *p = *state;

	checkout_sh(p,
	    "blob=$(echo bad | git hash-object -w --stdin); "
	    "sub=$(printf '100644 blob %%s\\tconfig\\n' $blob | git mktree); "
	    "bash -c '{ printf \"40000 .git\\0\"; printf \"$(echo '$sub' | sed s/../\\\\\\\\x\\&/g)\"; "
	    "}' > ../tree; tree=$(git hash-object -t tree --literally -w --stdin < ../tree); "
	    "git update-ref refs/heads/evil $(git commit-tree -m evil $tree)");
	checkout_run_init(&r, p);
	r.req.branch = "evil";
	r.ends_at_once = 1; /* libgit2 leaks what it had read of such a tree. */
	checkout_run_go(&r, p);
	assert_int_equal(r.failed, 1);
	assert_int_equal(r.failure, CHECKOUT_CHECKOUT_FAILED);
}

static void
submodules_are_named_and_left_empty(void **state)
{
	const struct checkout_place *p = *state;

	checkout_sh(p,
	    "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; "
	    "printf '[submodule \"s\"]\\n\\tpath = sub\\n\\turl = ../x\\n' > .gitmodules; "
	    "git add .gitmodules; git commit -qm sub");
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	assert_non_null(strstr((char *)r.lines.data, "submodules"));
	assert_string_equal(in_ws(p, "ls sub | wc -l"), "0");
	assert_string_equal(in_ws(p, "git status --porcelain"), "");
}

static void
empty_repository_has_no_branch(void **state)
{
	const struct checkout_place *p = *state;
	char url[128];

	checkout_sh(p, "git init -q -b main ../empty");
	(void)snprintf(url, sizeof(url), "file://%s/empty", p->base);
	checkout_run_init(&r, p);
	r.req.url = url;
	checkout_run_go(&r, p);
	expect_failed(
	    CHECKOUT_CHECKOUT_FAILED, "Checkout failed: branch \"main\" does not exist");
}

static void
held_lock_is_waited_for(void **state)
{
	const struct checkout_place *p = *state;
	char line[64];
	int fd, gate[2];
	pid_t pid;

	/* A child holds the lock until the first word of the waiting one is out. */
	checkout_sh(p, "mkdir %s/cache; : > %s", p->base, p->lock);
	fd = open(p->lock, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(pipe(gate), 0);
	pid = fork();
	if (pid == 0) {
		/* Lives until the kernel shows that somebody waits for this inode's lock. */
		struct stat st;
		char want[32];

		(void)fstat(fd, &st);
		(void)snprintf(want, sizeof(want), ":%lu ", (unsigned long)st.st_ino);
		for (;;) {
			struct buf b = BUF_INIT;
			const char *at;
			int waits = 0;

			if (io_read_file(AT_FDCWD, "/proc/locks", 1 << 20, &b) < 0)
				_exit(1);
			for (at = buf_cstr(&b); at != NULL && (at = strstr(at, "->")) != NULL;
			     at++)
				waits |= strstr(at, want) != NULL;
			buf_done(&b);
			if (waits)
				_exit(0);
		}
	}
	(void)close(fd);
	(void)close(gate[0]);
	(void)close(gate[1]);
	checkout_run_init(&r, p);
	checkout_run_go(&r, p);
	expect_done();
	(void)snprintf(line, sizeof(line), "%.40s", (char *)r.lines.data);
	assert_string_equal(line, "Waiting for another checkout of this pro");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
odd_names_survive(void **state)
{
	const struct checkout_place *p = *state;

	checkout_sh(p,
	    "git checkout -q -b 'fix/\"q\"#1'; printf x > 'new\nline'; printf y > '-dash'; "
	    "git add -A; git commit -qm odd");
	checkout_run_init(&r, p);
	r.req.branch = "fix/\"q\"#1";
	checkout_run_go(&r, p);
	expect_done();
	assert_string_equal(
	    in_ws(p, "git rev-parse --abbrev-ref HEAD@{upstream}"), "origin/fix/\"q\"#1");
	expect_clean(p);
}

static void
workspace_that_cannot_be_written_is_said(void **state)
{
	const struct checkout_place *p = *state;

	checkout_run_init(&r, p);
	r.req.workspace = "/proc/anvil-ws";
	checkout_run_go(&r, p);
	assert_int_equal(r.failed, 1);
	assert_int_equal(r.failure, CHECKOUT_CHECKOUT_FAILED);
	assert_non_null(strstr((char *)r.text.data, "Checkout failed: workspace: "));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_place, remove_place)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(head_of_the_branch_is_checked_out_as_committed),
		TEST(change_made_at_once_is_seen_by_git_status),
		TEST(unchanged_remote_costs_no_download),
		TEST(depth_cuts_the_history_and_zero_does_not),
		TEST(depth_counts_the_shortest_way_through_a_merge),
		TEST(pinned_commit_is_detached),
		TEST(commit_that_left_every_branch_is_fetched_itself),
		TEST(pin_without_its_commit_is_unreachable),
		TEST(prefix_counts_commits_alone),
		TEST(missing_branch_and_repository_are_said),
		TEST(url_that_the_configuration_forbids_is_not_fetched),
		TEST(mirror_of_another_url_is_replaced),
		TEST(damaged_mirror_is_made_anew_once),
		TEST(damage_found_while_writing_files_is_healed_too),
		TEST(leftovers_of_a_killed_fetch_are_removed),
		TEST(config_is_told_by_its_kind),
		TEST(child_whose_parent_leaves_writes_nothing),
		TEST(hostile_tree_writes_nowhere_else),
		TEST(tree_that_names_dot_git_is_refused),
		TEST(submodules_are_named_and_left_empty),
		TEST(empty_repository_has_no_branch),
		TEST(held_lock_is_waited_for),
		TEST(odd_names_survive),
		TEST(workspace_that_cannot_be_written_is_said),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
