/*
 * The .git of a workspace, written by hand: a dozen small files that borrow every object from
 * the mirror.  libgit2 1.5 makes no shallow clone, and a clone would copy what is there.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/checkout/co.h"

static int
gitdir_path(struct co *co, char out[PATH_MAX], const char *name)
{
	if (snprintf(out, PATH_MAX, "%s/.git/%s", co->req.workspace, name) >= PATH_MAX)
		return co_fail_reason(co, "path too long: %s", co->req.workspace);
	return 0;
}

static int
write_buf(struct co *co, const char *name, struct buf *b)
{
	char path[PATH_MAX];
	int r = gitdir_path(co, path, name);

	if (r == 0 && b->failed)
		r = co_fail_err(co, E_NOMEM, name);
	return r < 0 ? r : co_write_text(co, path, (const char *)b->data, b->len);
}

static int
make_dirs(struct co *co)
{
	static const char *const dirs[] = { "", "info", "objects", "objects/info",
		"objects/pack", "refs", "refs/heads", "refs/tags" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		int r = gitdir_path(co, path, dirs[i]);

		if (r < 0)
			return r;
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return co_fail_errno(co, ".git");
	}
	return 0;
}

void
co_config_quote(struct buf *out, const char *text)
{
	(void)buf_add_byte(out, '"');
	for (; *text != '\0'; text++) {
		if (*text == '\n') {
			(void)buf_add_str(out, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			(void)buf_add_byte(out, '\\');
		(void)buf_add_byte(out, (uint8_t)*text);
	}
	(void)buf_add_byte(out, '"');
}

static int
write_config(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char ref[PATH_MAX];

	(void)buf_add_str(&b,
	    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
	    "\tlogallrefupdates = true\n[remote \"origin\"]\n\turl = ");
	co_config_quote(&b, co->req.url);
	(void)buf_add_str(&b, "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
	if (!co->pinned) {
		if ((size_t)snprintf(ref, sizeof(ref), "refs/heads/%s", co->req.branch) >=
		    sizeof(ref))
			return co_fail_reason(co, "branch name too long");
		(void)buf_add_str(&b, "[branch ");
		co_config_quote(&b, co->req.branch);
		(void)buf_add_str(&b, "]\n\tremote = origin\n\tmerge = ");
		co_config_quote(&b, ref);
		(void)buf_add_byte(&b, '\n');
	}
	return write_buf(co, "config", &b);
}

static void
add_ref(struct buf *b, const git_oid *oid, const char *prefix, const char *name)
{
	char sha[GIT_OID_HEXSZ + 1];

	(void)buf_printf(b, "%s %s%s\n", git_oid_tostr(sha, sizeof(sha), oid), prefix, name);
}

/* The local branch, the remote's branches, and tags: those of the commit, or with the whole
 * history all of them, without which `git describe` had nothing to go by. */
static int
write_refs(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char sha[GIT_OID_HEXSZ + 1];

	(void)buf_add_str(&b, "# pack-refs with: peeled fully-peeled sorted \n");
	if (!co->pinned)
		add_ref(&b, &co->oid, "refs/heads/", co->req.branch);
	for (size_t i = 0; i < co->nrefs; i++)
		if (strncmp(co->refs[i].name, "refs/heads/", 11) == 0)
			add_ref(&b, &co->refs[i].oid, "refs/remotes/origin/",
			    co->refs[i].name + 11);
	for (size_t i = 0; i < co->nrefs; i++) {
		const struct co_ref *ref = &co->refs[i];

		if (strncmp(ref->name, "refs/tags/", 10) != 0 ||
		    (co->depth != 0 && !git_oid_equal(&ref->peeled, &co->oid)))
			continue;
		add_ref(&b, &ref->oid, "", ref->name);
		if (!git_oid_equal(&ref->oid, &ref->peeled))
			(void)buf_printf(
			    &b, "^%s\n", git_oid_tostr(sha, sizeof(sha), &ref->peeled));
	}
	return write_buf(co, "packed-refs", &b);
}

static int
write_head(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (co->pinned)
		(void)buf_printf(&b, "%s\n", co->sha);
	else
		(void)buf_printf(&b, "ref: refs/heads/%s\n", co->req.branch);
	return write_buf(co, "HEAD", &b);
}

static int
write_alternates(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	if (co->req.alternates != NULL)
		(void)buf_printf(&b, "%s\n", co->req.alternates);
	else
		(void)buf_printf(&b, "%s/objects\n", co->req.mirror);
	return write_buf(co, "objects/info/alternates", &b);
}

static int
write_shallow(struct co *co)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int r = co_commit_boundary(co, &b);

	return r < 0 || b.len == 0 ? r : write_buf(co, "shallow", &b);
}

int
co_gitdir_write(struct co *co)
{
	int r = make_dirs(co);

	if (r == 0)
		r = write_config(co);
	if (r == 0)
		r = write_refs(co);
	if (r == 0)
		r = write_alternates(co);
	if (r == 0)
		r = write_shallow(co);
	return r < 0 ? r : write_head(co);
}

int
co_gitdir_check(struct co *co)
{
	git_repository *repo = NULL;
	git_oid oid = { { 0 } };
	int r = git_repository_open_ext(
	    &repo, co->req.workspace, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);

	if (r == 0)
		r = git_reference_name_to_id(&oid, repo, "HEAD");
	if (r < 0)
		r = co_fail_git(co) < 0 ? E_SYS : 0;
	else if (!git_oid_equal(&oid, &co->oid))
		r = co_fail_reason(co, "HEAD differs from the commit");
	git_repository_free(repo);
	return r;
}
