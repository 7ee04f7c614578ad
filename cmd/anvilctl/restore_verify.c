/* What a backup has to be before anything is touched for its sake. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/restore.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/store/store.h"

extern const size_t schema_supervisor_count, schema_ingress_count, schema_project_count,
    schema_run_count;

/* ---- versions ---- */

static int
check_versions(const struct restore *rs)
{
	const size_t known[FILE_LOG] = { [FILE_SUPERVISOR] = schema_supervisor_count,
		[FILE_INGRESS] = schema_ingress_count,
		[FILE_PROJECT] = schema_project_count,
		[FILE_RUN] = schema_run_count };

	for (enum file_role role = 0; role < FILE_LOG; role++) {
		int64_t version = manifest_schema(rs->manifest, role);

		if (version > (int64_t)known[role])
			return ctl_fail(
			    "the backup was made by a newer anvil (%s): schema %lld of "
			    "%s, and this one (%s) knows %zu; install that one first",
			    rs->manifest->version, (long long)version, file_role_name(role),
			    base_version(), known[role]);
	}
	return 0;
}

/* Every store that a start expects, and no shard left out in the middle. */
static int
check_whole(const struct restore *rs)
{
	const struct manifest *m = rs->manifest;
	size_t nshards = manifest_count(m, FILE_PROJECT);

	if (manifest_count(m, FILE_SUPERVISOR) != 1 || manifest_count(m, FILE_INGRESS) != 1 ||
	    nshards == 0)
		return ctl_fail(
		    "%s lacks a store: supervisor, ingress and a shard have to be in it",
		    rs->dir);
	for (size_t i = 0; i < m->nfiles; i++)
		if (file_shard(m->files[i].path) >= (int)nshards)
			return ctl_fail(
			    "%s has %s and lacks a shard before it", rs->dir, m->files[i].path);
	return 0;
}

/* ---- files ---- */

struct looking {
	const struct restore *rs;
	struct map *known; /* path -> a manifest_file */
	size_t nextra;
};

static int
look(void *arg, const char *path, int is_file)
{
	struct looking *l = arg;

	if (is_file && (strcmp(path, MANIFEST_NAME) == 0 || map_get(l->known, path) != NULL))
		return 0;
	l->nextra++;
	(void)ctl_fail("%s/%s is not in the manifest", l->rs->dir, path);
	return 0;
}

static int
check_names(const struct restore *rs)
{
	CLEANUP(map_freep) struct map *known = map_new();
	const struct manifest *m = rs->manifest;
	struct looking l = { rs, known, 0 };
	int r = known != NULL ? 0 : E_NOMEM;

	for (size_t i = 0; r == 0 && i < m->nfiles; i++) {
		if (map_get(known, m->files[i].path) != NULL)
			return ctl_fail("%s names %s twice", MANIFEST_NAME, m->files[i].path);
		r = map_set(known, m->files[i].path, &m->files[i]);
	}
	if (r == 0)
		r = files_walk(rs->dir, 0, look, &l);
	if (r < 0)
		return ctl_fail("%s: %s", rs->dir, err_text(r));
	return l.nextra > 0 ? CTL_REFUSED : 0;
}

static int
check_file(const struct restore *rs, const struct manifest_file *f)
{
	char why[FILES_WHY_SIZE];
	struct file_facts now;
	int r = file_facts(rs->dirfd, f->path, -1, &now, why);

	if (r < 0)
		return ctl_fail("%s/%s %s", rs->dir, f->path, why);
	if (now.bytes != f->facts.bytes)
		return ctl_fail("%s/%s has %lld bytes where the manifest says %lld", rs->dir,
		    f->path, (long long)now.bytes, (long long)f->facts.bytes);
	if (strcmp(now.sha256, f->facts.sha256) != 0)
		return ctl_fail(
		    "%s/%s is damaged: its digest is not the manifest's", rs->dir, f->path);
	if (now.version != f->facts.version)
		return ctl_fail("%s/%s has schema %lld where the manifest says %lld", rs->dir,
		    f->path, (long long)now.version, (long long)f->facts.version);
	return 0;
}

int
restore_verify(struct restore *rs)
{
	char why[FILES_WHY_SIZE];
	int r = manifest_read(rs->dirfd, &rs->manifest, why), bad = 0;

	if (r == E_NOENT)
		return ctl_fail("%s has no %s: it is no backup, or one that was not finished",
		    rs->dir, MANIFEST_NAME);
	if (r < 0)
		return ctl_fail("%s/%s: %s", rs->dir, MANIFEST_NAME, why);
	r = check_versions(rs);
	if (r == 0)
		r = check_whole(rs);
	if (r == 0)
		r = check_names(rs);
	for (size_t i = 0; r == 0 && i < rs->manifest->nfiles; i++) {
		progress_say(
		    &rs->progress, "verifying %zu of %zu files", i, rs->manifest->nfiles);
		bad |= check_file(rs, &rs->manifest->files[i]);
	}
	progress_end(&rs->progress);
	return r != 0 ? r : bad;
}
