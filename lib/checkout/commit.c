/*
 * From what the run asks for to one commit, and what that commit says: config and history.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

/* ---- resolving ---------------------------------------------------------------------- */

static int
unreachable(struct co *co)
{
	return co_fail(co, CHECKOUT_COMMIT_UNREACHABLE,
	    "commit %s is no longer reachable (history was rewritten)", co->req.commit);
}

/* 1: ${oid} is a commit of the mirror; 0: it is not there, or something else. */
static int
is_commit(struct co *co, const git_oid *oid)
{
	git_object_t type;
	size_t size;
	int r = git_odb_read_header(&size, &type, co->odb, oid);

	if (r == GIT_ENOTFOUND)
		return 0;
	return r < 0 ? co_fail_git(co) : type == GIT_OBJECT_COMMIT;
}

static int
settle(struct co *co, const git_oid *oid)
{
	git_oid_cpy(&co->oid, oid);
	git_oid_tostr(co->sha, sizeof(co->sha), oid);
	co->resolved = 1;
	return 0;
}

static int
resolve_whole(struct co *co, const git_oid *oid)
{
	int r = is_commit(co, oid);

	if (r == 0 && !git_odb_exists(co->odb, oid)) {
		r = co_fetch_oid(co, oid);
		if (r == 0)
			r = is_commit(co, oid);
	}
	if (r < 0)
		return r;
	return r == 0 ? unreachable(co) : settle(co, oid);
}

struct prefix_search {
	struct co *co;
	const char *prefix;
	size_t len;
	git_oid found;
	int nfound; /* Different commits; counting ends at two. */
};

static int
on_object(const git_oid *oid, void *arg)
{
	struct prefix_search *s = arg;
	char sha[GIT_OID_HEXSZ + 1];

	git_oid_tostr(sha, sizeof(sha), oid);
	if (memcmp(sha, s->prefix, s->len) != 0 || is_commit(s->co, oid) != 1)
		return 0;
	if (s->nfound != 0 && git_oid_equal(&s->found, oid))
		return 0; /* It is in two packs. */
	git_oid_cpy(&s->found, oid);
	return ++s->nfound > 1;
}

static int
resolve_prefix(struct co *co, const char *hex, size_t len)
{
	struct prefix_search s = { .co = co, .prefix = hex, .len = len };
	git_oid part, full;
	int r = git_oid_fromstrn(&part, hex, len);

	if (r == 0)
		r = git_odb_exists_prefix(&full, co->odb, &part, len);
	if (r == 0) {
		r = is_commit(co, &full);
		if (r < 0)
			return r;
		return r == 0 ? unreachable(co) : settle(co, &full);
	}
	/* Several objects: trees and blobs among them do not count. */
	if (r == GIT_EAMBIGUOUS && git_odb_foreach(co->odb, on_object, &s) < 0)
		return co_fail_git(co);
	return s.nfound == 1 ? settle(co, &s.found) : unreachable(co);
}

static int
resolve_pinned(struct co *co)
{
	char hex[GIT_OID_HEXSZ + 1];
	size_t len = strlen(co->req.commit);
	git_oid oid;

	if (len < GIT_OID_MINPREFIXLEN || len > GIT_OID_HEXSZ)
		return unreachable(
		    co); /* SHA-256 repositories are not served by libgit2 1.5. */
	for (size_t i = 0; i <= len; i++)
		hex[i] = (char)tolower((unsigned char)co->req.commit[i]);
	if (strspn(hex, "0123456789abcdef") != len)
		return unreachable(co);
	if (len < GIT_OID_HEXSZ)
		return resolve_prefix(co, hex, len);
	return git_oid_fromstr(&oid, hex) < 0 ? co_fail_git(co) : resolve_whole(co, &oid);
}

int
co_commit_resolve(struct co *co)
{
	const struct co_ref *head;
	int r;

	if (co->resolved) { /* The mirror was made anew: the same commit, or none. */
		git_oid oid = co->oid;

		if (co->req.commit == NULL)
			co->req.commit = co->sha;
		return resolve_whole(co, &oid);
	}
	if (co->req.commit != NULL)
		return resolve_pinned(co);
	head = co_refs_find(co, "refs/heads/", co->req.branch);
	if (head == NULL)
		return co_fail_reason(co, "branch \"%s\" does not exist", co->req.branch);
	r = is_commit(co, &head->oid);
	if (r < 0)
		return r;
	if (r == 0) {
		(void)co_fail_reason(
		    co, "the head of branch \"%s\" is missing in the mirror", co->req.branch);
		return E_CORRUPT;
	}
	return settle(co, &head->oid);
}

/* ---- config ------------------------------------------------------------------------- */

static int
send_blob(struct co *co, const git_oid *oid)
{
	git_odb_object *blob = NULL;
	git_object_t type;
	size_t size;
	int r;

	if (git_odb_read_header(&size, &type, co->odb, oid) < 0)
		return co_fail_git(co);
	if (size > CHECKOUT_CONFIG_MAX)
		return co_send_config(co, CHECKOUT_CONFIG_TOO_BIG, size, "", 0);
	if (git_odb_read(&blob, co->odb, oid) < 0)
		return co_fail_git(co);
	r = co_send_config(co, CHECKOUT_CONFIG_FOUND, size, git_odb_object_data(blob),
	    git_odb_object_size(blob));
	git_odb_object_free(blob);
	return r;
}

int
co_config_send(struct co *co)
{
	git_commit *commit = NULL;
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	git_filemode_t mode;
	int r = git_commit_lookup(&commit, co->repo, &co->oid);

	if (r == 0)
		r = git_commit_tree(&tree, commit);
	git_commit_free(commit);
	if (r < 0)
		return co_fail_git(co);
	r = git_tree_entry_bypath(&entry, tree, co->req.config);
	git_tree_free(tree);
	if (r == GIT_ENOTFOUND)
		return co_send_config(co, CHECKOUT_CONFIG_NOT_FOUND, 0, "", 0);
	if (r < 0)
		return co_fail_git(co);
	mode = git_tree_entry_filemode(entry);
	if (mode == GIT_FILEMODE_BLOB || mode == GIT_FILEMODE_BLOB_EXECUTABLE)
		r = send_blob(co, git_tree_entry_id(entry));
	else
		r = co_send_config(co, CHECKOUT_CONFIG_NOT_REGULAR, 0, "", 0);
	git_tree_entry_free(entry);
	return r;
}

/* ---- history ------------------------------------------------------------------------ */

/* One level of the breadth-first walk, whose commits have the same distance from HEAD. */
struct level {
	git_oid *oids; /* Owned. */
	size_t n, cap;
};

static int
level_add(struct level *l, const git_oid *oid)
{
	if (l->n == l->cap) {
		size_t cap = l->cap == 0 ? 16 : l->cap * 2;
		git_oid *more = mem_realloc(l->oids, cap * sizeof(*more));

		if (more == NULL)
			return E_NOMEM;
		l->oids = more;
		l->cap = cap;
	}
	git_oid_cpy(&l->oids[l->n++], oid);
	return 0;
}

/* Adds the parents of ${oid} that were not seen before.  At the last level, ${cut} is the
 * file of boundary commits and gets it instead. */
static int
visit(struct co *co, const git_oid *oid, struct map *seen, struct level *next, struct buf *cut)
{
	git_commit *commit = NULL;
	char sha[GIT_OID_HEXSZ + 1];
	int r = git_commit_lookup(&commit, co->repo, oid);
	unsigned int n;

	if (r < 0)
		return co_fail_git(co);
	n = git_commit_parentcount(commit);
	if (cut != NULL && n != 0) {
		r = buf_printf(cut, "%s\n", git_oid_tostr(sha, sizeof(sha), oid));
		n = 0;
	}
	for (unsigned int i = 0; i < n && r == 0; i++) {
		const git_oid *parent = git_commit_parent_id(commit, i);

		git_oid_tostr(sha, sizeof(sha), parent);
		if (map_get(seen, sha) != NULL)
			continue;
		r = map_set(seen, sha, co);
		if (r == 0)
			r = level_add(next, parent);
	}
	git_commit_free(commit);
	return r < 0 ? co_fail_err(co, E_NOMEM, "history") : 0;
}

int
co_commit_boundary(struct co *co, struct buf *out)
{
	CLEANUP(map_freep) struct map *seen = map_new();
	struct level now = { 0 }, next = { 0 };
	int r;

	if (co->depth == 0)
		return 0;
	r = seen == NULL || map_set(seen, co->sha, co) < 0 || level_add(&now, &co->oid) < 0
	    ? co_fail_err(co, E_NOMEM, "history")
	    : 0;
	for (uint32_t at = 1; at <= co->depth && now.n != 0 && r == 0; at++) {
		struct level done = now;

		for (size_t i = 0; i < now.n && r == 0; i++)
			r = visit(co, &now.oids[i], seen, &next, at == co->depth ? out : NULL);
		now = next;
		next = done;
		next.n = 0;
	}
	free(now.oids);
	free(next.oids);
	return r;
}
