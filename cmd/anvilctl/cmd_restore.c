/* anvilctl restore: puts a backup in the place of the data of an anvil that does not run.  What is
 * there before is kept beside it.  Reads the configuration itself, since nobody is there to ask. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/restore.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define DEFAULT_CONFIG "/etc/anvil/anvil.yml"
#define KEYS_FILE_MAX  ((size_t)1 << 20)

/* ---- where, and whose ---- */

static int
read_config(struct restore *rs)
{
	CLEANUP(buf_done) struct buf problems = BUF_INIT;
	const char *path = rs->ctl->globals[GLOBAL_CONFIG];
	int r;

	if (rs->ctl->globals[GLOBAL_DIR] != NULL)
		return ctl_fail(
		    "restore goes by the configuration: name it with -c FILE, not a "
		    "runtime directory with -d");
	if (path == NULL && access(DEFAULT_CONFIG, F_OK) == 0)
		path = DEFAULT_CONFIG;
	r = config_load(path, &problems, &rs->config);
	return r < 0 ? ctl_fail("%s", problems.len > 0 ? buf_cstr(&problems) : err_text(r)) : 0;
}

static int
find_user(struct restore *rs)
{
	const char *name = rs->config->user;
	const struct passwd *pw;

	rs->uid = geteuid();
	rs->gid = getegid();
	if (geteuid() != 0 && name[0] == '\0')
		return 0;
	if (name[0] == '\0')
		return ctl_fail(
		    "as root the configuration has to say whose the data shall be: set "
		    "`user:`, or restore as the user that starts anvild");
	pw = getpwnam(name);
	if (pw == NULL)
		return ctl_fail("user: there is no account \"%s\" on this host", name);
	if (geteuid() != 0 && geteuid() != pw->pw_uid)
		return ctl_fail(
		    "the data has to be \"%s\"'s: restore as root or as that user", name);
	rs->uid = pw->pw_uid;
	rs->gid = pw->pw_gid;
	return 0;
}

/* ---- that nothing lives ---- */

static int
say_holder(const struct restore *rs, int r, const struct lock_holder *who)
{
	char pid[32] = "a process that cannot be told";
	char last[96] = "end that process";

	if (r == 0)
		return 0;
	if (r != E_LOCKED)
		return ctl_fail("%s: %s", rs->config->data_dir, err_text(r));
	if (who->pid > 0)
		(void)snprintf(pid, sizeof(pid), "process %d", (int)who->pid);
	if (who->pid > 0)
		(void)snprintf(
		    last, sizeof(last), "give it up with `kill -KILL %d`", (int)who->pid);
	if (strncmp(who->what, "runs/", 5) == 0 || strncmp(who->what, "run_", 4) == 0)
		return ctl_fail(
		    "a run goes on: %s holds %s in %s/runs.  Let it end: one whose "
		    "steps are over still waits for anvild to take its result, so "
		    "start anvild, and stop it with --stop-runs.  Or %s: the backup "
		    "knows nothing of what it has done since",
		    pid, who->what, rs->config->data_dir, last);
	return ctl_fail(
	    "anvil runs: %s holds %s.  Stop it first; nothing was changed", pid, who->what);
}

static int
take_locks(struct restore *rs)
{
	struct lock_holder who;
	int r = locks_take(&rs->locks, rs->config->data_dir, rs->config->runtime_dir, &who);

	return say_holder(rs, r, &who);
}

/* From here on nobody may come up: the lock that every supervisor takes first is made where it is
 * missing, and then all is looked at once more. */
static int
close_doors(struct restore *rs)
{
	struct lock_holder who;
	struct stat st;
	int r = 0;

	locks_release(&rs->locks);
	if (lstat(rs->data, &st) == 0)
		r = locks_make(
		    &rs->locks, rs->data, "supervisor.db.lock", rs->uid, rs->gid, &who);
	if (r == 0)
		r = locks_take(&rs->locks, rs->data, rs->config->runtime_dir, &who);
	return say_holder(rs, r, &who);
}

/* ---- keys ---- */

/* Looks for `"VERSION":` and no further: what keys are made of is none of our business. */
static int
has_key(const struct buf *text, int64_t version)
{
	char word[32];
	const char *at;

	(void)snprintf(word, sizeof(word), "\"%lld\"", (long long)version);
	at = text->data != NULL ? strstr((const char *)text->data, word) : NULL;
	if (at == NULL)
		return 0;
	at += strlen(word);
	at += strspn(at, " \t\r\n");
	return *at == ':';
}

static void
warn_of_keys(const struct restore *rs)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT;
	const char *path = rs->config->keys_file;
	int r = io_read_file(AT_FDCWD, path, KEYS_FILE_MAX, &text);

	if (r < 0 || buf_cstr(&text) == NULL)
		buf_wipe(&text);
	for (size_t i = 0; i < rs->manifest->nkeys; i++)
		if (!has_key(&text, rs->manifest->keys[i]))
			(void)ctl_fail(
			    "warning: secrets need version %lld of the key, which %s "
			    "%s: put the keys file of the time of the backup there "
			    "before you start anvild",
			    (long long)rs->manifest->keys[i], path,
			    r == E_NOENT ? "(it does not exist) lacks" : "lacks");
}

static void
warn_of_shards(const struct restore *rs)
{
	size_t n = manifest_count(rs->manifest, FILE_PROJECT);

	if ((int64_t)n > rs->config->shards)
		(void)ctl_fail("warning: the backup has %zu shards and the configuration %lld: "
			       "anvild starts only if the others hold no project",
		    n, (long long)rs->config->shards);
}

/* ---- telling ---- */

static int
print_result(const struct restore *rs)
{
	char at[TEXT_SIZE];

	warn_of_keys(rs);
	warn_of_shards(rs);
	for (size_t i = 0; i < rs->manifest->ngaps; i++)
		(void)ctl_fail("warning: %s is not in the backup: %s",
		    rs->manifest->gaps[i].run_id, rs->manifest->gaps[i].message);
	if (rs->ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack("{s:s,s:s?,s:I,s:I,s:I}", "dataDir", rs->data, "kept",
		    rs->kept, "createdAt", (json_int_t)rs->manifest->created_at_ms, "files",
		    (json_int_t)rs->manifest->nfiles, "runs",
		    (json_int_t)manifest_count(rs->manifest, FILE_RUN));

		return j != NULL ? ctl_print_json(rs->ctl, j) : ctl_fail_nomem();
	}
	text_time(rs->manifest->created_at_ms, at);
	(void)printf("%s is as it was at %s (UTC), with %zu runs\n", rs->data, at,
	    manifest_count(rs->manifest, FILE_RUN));
	if (rs->kept != NULL)
		(void)printf("what was there before is in %s\n", rs->kept);
	(void)printf(
	    "start anvild: it takes over what was under way and fills the index anew\n");
	return CTL_OK;
}

static int
restore_all(struct restore *rs)
{
	int r = read_config(rs);

	if (r == 0)
		r = find_user(rs);
	if (r == 0)
		r = take_locks(rs);
	if (r != 0)
		return r;
	rs->dirfd = open(rs->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rs->dirfd < 0)
		return ctl_fail("%s: %s", rs->dir, strerror(errno));
	r = restore_verify(rs);
	if (r == 0)
		r = restore_plan(rs);
	if (r == 0)
		r = close_doors(rs);
	if (r == 0)
		r = restore_stage(rs);
	if (r == 0)
		r = restore_swap(rs);
	return r == 0 ? print_result(rs) : r;
}

static int
restore_run(struct ctl *ctl, const struct args *args)
{
	struct restore rs = { .ctl = ctl, .dir = args->words[0], .dirfd = -1 };
	int r;

	progress_init(&rs.progress, ctl->json);
	(void)umask(0077);
	r = restore_all(&rs);
	progress_end(&rs.progress);
	locks_release(&rs.locks);
	io_close(&rs.dirfd);
	free(rs.data);
	free(rs.stage);
	free(rs.kept);
	(void)manifest_free(rs.manifest);
	(void)config_free(rs.config);
	return r;
}

const struct command command_restore = {
	.name = "restore",
	.words = "DIR",
	.summary = "puts a backup in the place of the data of an anvil that does not run",
	.more =
	    "Refused while anvild or a run lives.  Before anything is touched, every file is held\n"
	    "against the manifest, and its version against this anvil.  The new data is laid beside\n"
	    "data_dir and swapped in by one step; the old data is kept there as\n"
	    "data_dir.before-restore-TIME, for you to remove.\n"
	    "\n"
	    "The keys file and the configuration stay as they are: put back those of the time of\n"
	    "the backup where they were lost.  After the start runs that the backup has under way\n"
	    "end as runner_lost, unless their store says better; what was queued runs.",
	.min_words = 1,
	.max_words = 1,
	.run = restore_run,
};
