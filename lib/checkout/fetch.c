/*
 * Bringing the mirror up to date: connect, compare the advertised refs, download what is new.
 *
 * The refs are compared before anything else, so that an unchanged remote costs one listing.
 * The credential leaves this file only through libgit2's callback, for the very origin of
 * the project's URL.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/checkout/co.h"

#define PEELED_SUFFIX "^{}"

/* ---- credential --------------------------------------------------------------------- */

static int
host_is(const char *host, const char *domain)
{
	size_t n = strlen(host), m = strlen(domain);

	return strcmp(host, domain) == 0 ||
	    (n > m && host[n - m - 1] == '.' && strcmp(host + n - m, domain) == 0);
}

static int
make_credential(const struct co *co, git_credential **out)
{
	const char *token = co->req.token, *colon = strchr(token, ':');
	char user[256];

	if (host_is(co->origin.host, "github.com"))
		return git_credential_userpass_plaintext_new(out, "x-access-token", token);
	if (colon == NULL || host_is(co->origin.host, "gitlab.com"))
		return git_credential_userpass_plaintext_new(out, "oauth2", token);
	if (snprintf(user, sizeof(user), "%.*s", (int)(colon - token), token) >=
	    (int)sizeof(user))
		return GIT_EUSER;
	return git_credential_userpass_plaintext_new(out, user, colon + 1);
}

static int
on_credential(
    git_credential **out, const char *url, const char *user, unsigned int types, void *arg)
{
	struct co *co = arg;
	struct co_origin asker;

	(void)user;
	if (co->asked++ != 0 || co->req.token == NULL) {
		co->refused = 1;
		return GIT_EUSER;
	}
	if ((types & GIT_CREDENTIAL_USERPASS_PLAINTEXT) == 0 ||
	    co_origin_parse(url, &asker) < 0 || !co_origin_equal(&asker, &co->origin)) {
		(void)git_error_set_str(GIT_ERROR_HTTP,
		    "another server, or an unknown kind of login, asks for the credential");
		return GIT_EUSER;
	}
	return make_credential(co, out);
}

/* ---- progress ----------------------------------------------------------------------- */

static int
on_transfer(const git_indexer_progress *p, void *arg)
{
	struct co *co = arg;

	if (p->received_objects < p->total_objects)
		co_progress(co, "Receiving objects: %u of %u, %.1f MiB", p->received_objects,
		    p->total_objects, (double)p->received_bytes / 1048576.0);
	else if (p->indexed_deltas < p->total_deltas)
		co_progress(
		    co, "Resolving deltas: %u of %u", p->indexed_deltas, p->total_deltas);
	return 0;
}

/* ---- the remote --------------------------------------------------------------------- */

static int
remote_connect(struct co *co, git_remote **ret)
{
	git_remote_connect_options opts;
	git_remote_create_options create;

	(void)git_remote_connect_options_init(&opts, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
	(void)git_remote_create_options_init(&create, GIT_REMOTE_CREATE_OPTIONS_VERSION);
	create.repository = co->repo;
	create.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF;
	opts.callbacks.credentials = on_credential;
	opts.callbacks.transfer_progress = on_transfer;
	opts.callbacks.payload = co;
	opts.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	co->asked = 0;
	if (git_remote_create_with_opts(ret, co->req.url, &create) < 0 ||
	    git_remote_connect_ext(*ret, GIT_DIRECTION_FETCH, &opts) < 0)
		return co_fail_git(co);
	return 0;
}

static int
remote_download(struct co *co, git_remote *remote, char **specs, size_t nspecs)
{
	git_fetch_options opts;
	git_strarray list = { specs, nspecs };

	(void)git_fetch_options_init(&opts, GIT_FETCH_OPTIONS_VERSION);
	opts.callbacks.credentials = on_credential;
	opts.callbacks.transfer_progress = on_transfer;
	opts.callbacks.payload = co;
	opts.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	opts.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
	opts.update_fetchhead = 0;
	if (git_remote_download(remote, &list, &opts) < 0)
		return co_fail_git(co);
	co->received_bytes += git_remote_stats(remote)->received_bytes;
	return 0;
}

/* ---- refs --------------------------------------------------------------------------- */

static int
refs_add(struct co *co, const char *name, const git_oid *oid)
{
	struct co_ref *ref;

	if (co->nrefs == co->refs_cap) {
		size_t cap = co->refs_cap == 0 ? 64 : co->refs_cap * 2;
		struct co_ref *more = mem_realloc(co->refs, cap * sizeof(*more));

		if (more == NULL)
			return co_fail_err(co, E_NOMEM, "refs");
		co->refs = more;
		co->refs_cap = cap;
	}
	ref = &co->refs[co->nrefs];
	ref->name = mem_strdup(name);
	if (ref->name == NULL)
		return co_fail_err(co, E_NOMEM, "refs");
	git_oid_cpy(&ref->oid, oid);
	git_oid_cpy(&ref->peeled, oid);
	co->nrefs++;
	return 0;
}

static int
ref_compare(const void *a, const void *b)
{
	return strcmp(((const struct co_ref *)a)->name, ((const struct co_ref *)b)->name);
}

/* "refs/tags/v1^{}" stands behind the tag that it peels. */
static int
is_peeled_of(const struct co_ref *ref, const char *name)
{
	size_t n = strlen(ref->name);

	return strncmp(name, ref->name, n) == 0 && strcmp(name + n, PEELED_SUFFIX) == 0;
}

static int
refs_list(struct co *co, git_remote *remote)
{
	const git_remote_head **heads;
	size_t n;
	int valid, r;

	co_refs_clear(co);
	if (git_remote_ls(&heads, &n, remote) < 0)
		return co_fail_git(co);
	for (size_t i = 0; i < n; i++) {
		const char *name = heads[i]->name;

		if (strncmp(name, "refs/heads/", 11) != 0 &&
		    strncmp(name, "refs/tags/", 10) != 0)
			continue;
		if (co->nrefs != 0 && is_peeled_of(&co->refs[co->nrefs - 1], name)) {
			git_oid_cpy(&co->refs[co->nrefs - 1].peeled, &heads[i]->oid);
			continue;
		}
		/* A name that git would not make has no place in a file of names. */
		if (git_reference_name_is_valid(&valid, name) < 0 || !valid)
			continue;
		r = refs_add(co, name, &heads[i]->oid);
		if (r < 0)
			return r;
	}
	if (co->nrefs != 0)
		qsort(co->refs, co->nrefs, sizeof(*co->refs), ref_compare);
	return 0;
}

static void
remote_drop(git_remote **remote)
{
	if (*remote != NULL) {
		(void)git_remote_disconnect(*remote);
		git_remote_free(*remote);
	}
}

int
co_fetch(struct co *co)
{
	CLEANUP(remote_drop) git_remote *remote = NULL;
	char heads[] = "+refs/heads/*:refs/heads/*", tags[] = "+refs/tags/*:refs/tags/*";
	char *specs[] = { heads, tags };
	int r = remote_connect(co, &remote);

	if (r == 0)
		r = refs_list(co, remote);
	if (r < 0 || co_mirror_refs_same(co))
		return r;
	r = remote_download(co, remote, specs, ARRAY_LEN(specs));
	CRASH_POINT("checkout_downloaded");
	return r < 0 ? r : co_mirror_refs_write(co);
}

/* ---- one object --------------------------------------------------------------------- */

/* libgit2's transport for local paths brings what refs lead to and nothing else. */
static int
fetch_oid_local(struct co *co, const git_oid *oid)
{
	git_repository *source = NULL;
	git_packbuilder *pack = NULL;
	git_revwalk *walk = NULL;
	char dir[PATH_MAX];
	int r = -1;

	(void)snprintf(dir, sizeof(dir), "%s/objects/pack", co->req.mirror);
	if (git_repository_open(&source, co->req.url + strlen("file://")) == 0 &&
	    git_revwalk_new(&walk, source) == 0 && git_revwalk_push(walk, oid) == 0 &&
	    git_packbuilder_new(&pack, source) == 0 &&
	    git_packbuilder_insert_walk(pack, walk) == 0)
		r = git_packbuilder_write(pack, dir, 0, NULL, NULL);
	git_packbuilder_free(pack);
	git_revwalk_free(walk);
	git_repository_free(source);
	return r;
}

int
co_fetch_oid(struct co *co, const git_oid *oid)
{
	CLEANUP(remote_drop) git_remote *remote = NULL;
	char sha[GIT_OID_HEXSZ + 1], spec[GIT_OID_HEXSZ + 64];
	char *specs[] = { spec };
	int r;

	if (strcmp(co->origin.scheme, "file") == 0) {
		(void)fetch_oid_local(co, oid);
		return git_odb_refresh(co->odb) < 0 ? co_fail_git(co) : 0;
	}
	git_oid_tostr(sha, sizeof(sha), oid);
	(void)snprintf(spec, sizeof(spec), "%s:refs/anvil/%s", sha, sha);
	r = remote_connect(co, &remote);
	if (r < 0)
		return r;
	/* "not our ref", and servers that give no single objects: the object stays away. */
	r = remote_download(co, remote, specs, 1);
	if (r < 0 &&
	    (co->failure == CHECKOUT_DISK_FULL || co->failure == CHECKOUT_INTERNAL ||
		co->refused))
		return r;
	return git_odb_refresh(co->odb) < 0 ? co_fail_git(co) : 0;
}
