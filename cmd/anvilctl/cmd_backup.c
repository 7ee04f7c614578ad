/*
 * anvilctl backup: copies of every store, made by the actors while they work, and a manifest.
 *
 * The order makes any set of copies one that a start can use, though each is of another moment:
 *
 *	1. shards	the ledger decides over every run, and so it is the oldest
 *	2. ingress	users are later than the projects that name them; the index in it does not
 *			count, it is filled anew from the shards after a restore
 *	3. runs		a store of a run is later than its ledger.  Where it has ended, the ledger
 *			takes its end over, by takeover or at the claim; where it goes on, it ends as
 *			runner_lost if the ledger has it active, and is begun anew if not.  The other
 *			way about, a run could have ended in the ledger with its log cut short
 *	4. supervisor	it knows the ends of at least all runs that were copied, for their removal;
 *			of its processes a restored one believes nothing
 *
 * A project that is moved between the copies of two shards could be in both or in neither: moves
 * are looked for before and after, and then the shards are copied again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvilctl/backup.h"
#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/keys_text.h"
#include "gen/actor.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define MOVE_TRIES  10
#define MOVE_MS     1000
#define LEDGER_PAGE 500
#define STATUS_MAX  65536

/* ---- one actor ---- */

int
backup_ask(struct backup *b, const char *address, const char *folder, const char **ret_why)
{
	const struct actor_backup_params params = { .folder = folder };
	struct actor_backup_result res = { .kind = 0 };
	int64_t deadline_ms = b->ctl->deadline_ms;
	int r;

	client_forget(b->ctl->client);
	b->ctl->deadline_ms = BACKUP_COPY_MS;
	r = CTL_TRY(b->ctl, address, actor_backup, &params, &res);
	b->ctl->deadline_ms = deadline_ms;
	if (r < 0 || res.kind == ACTOR_BACKUP_OK)
		return r;
	if (res.kind == ACTOR_BACKUP_BUSY)
		return E_BUSY;
	*ret_why = res.u.refused.message;
	return E_EXISTS;
}

int
backup_is_away(const struct backup *b, int err)
{
	return err == E_LINK || err == E_DRAINING || err == E_PEER ||
	    (err == E_NOENT && !b->ctl->reply.reached);
}

static void
store_name(const char *address, char out[64])
{
	(void)snprintf(out, 64, "%.50s.db", address);
	if (strchr(out, '/') != NULL)
		*strchr(out, '/') = '-';
}

static int
copy_actor(struct backup *b, const char *address)
{
	struct mono_time until = mono_add_ms(clock_mono(), BACKUP_AWAY_MS);
	const char *why = NULL;
	char name[64];
	int r;

	store_name(address, name);
	do {
		/* Of a try whose answer was lost. */
		if (unlinkat(b->dirfd, name, 0) < 0 && errno != ENOENT)
			return ctl_fail("%s/%s: %s", b->dir, name, strerror(errno));
		progress_say(&b->progress, "copying the store of %s", address);
		r = backup_ask(b, address, b->dir, &why);
		/* A copy that somebody has given up goes on to its end. */
		if (r == E_BUSY)
			until = mono_add_ms(clock_mono(), BACKUP_AWAY_MS);
		else if (!backup_is_away(b, r))
			break;
		client_pause(b->ctl->client, BACKUP_AGAIN_MS);
	} while (mono_diff_us(clock_mono(), until) > 0);
	progress_end(&b->progress);
	if (r == E_EXISTS)
		return ctl_fail("%s: %s", address, why);
	/* What it has read until now was whole; the copy shows the rest. */
	if (r == E_CORRUPT && b->ctl->reply.message != NULL)
		return ctl_fail("%s cannot be copied: %s; `anvilctl check` looks at all of the "
				"store, and an earlier backup puts it right (anvilctl restore)",
		    address, b->ctl->reply.message);
	return ctl_explain(b->ctl, address, r);
}

/* ---- that all of them can be copied ---- */

/* Somebody has stopped the process, or it is in the hands of a debugger. */
static int
is_stopped(const struct actor_process *a)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%lld/status", (long long)a->pid);
	if (!a->has_pid || io_read_file(AT_FDCWD, path, STATUS_MAX, &text) < 0 ||
	    buf_cstr(&text) == NULL)
		return 0;
	return strstr(buf_cstr(&text), "\nState:\tT") != NULL ||
	    strstr(buf_cstr(&text), "\nState:\tt") != NULL;
}

static int
say_silent(struct backup *b, const struct actor_process *a, int err)
{
	static const char *const whole = "cannot be copied, and a backup has all stores or is "
					 "none";

	if (a->outage != NULL)
		return ctl_fail("%s %s: %s", a->address, whole, a->outage);
	if (is_stopped(a))
		return ctl_fail("%s %s: its process %lld is stopped; `kill -CONT %lld` lets it "
				"go on",
		    a->address, whole, (long long)a->pid, (long long)a->pid);
	if (a->state == ACTOR_STATE_FAILING && a->last_exit != NULL)
		return ctl_fail("%s %s: it is failing (%s); `anvilctl history` tells more",
		    a->address, whole, a->last_exit->reason);
	(void)ctl_fail("%s %s:", a->address, whole);
	return ctl_explain(b->ctl, a->address, err);
}

static int
look_at(struct backup *b, const struct actor_process *a)
{
	struct mono_time until = mono_add_ms(clock_mono(), BACKUP_AWAY_MS);
	const struct actor_info_params params = { 0 };
	struct actor_info_result info;
	int64_t deadline_ms = b->ctl->deadline_ms;
	int r;

	if (a->outage != NULL || is_stopped(a))
		return say_silent(b, a, E_STORAGE);
	b->ctl->deadline_ms = BACKUP_LOOK_MS;
	do {
		info = (struct actor_info_result) { 0 };
		r = CTL_TRY(b->ctl, a->address, actor_info, &params, &info);
		if (!backup_is_away(b, r) || a->state == ACTOR_STATE_FAILING)
			break;
		progress_say(&b->progress, "waiting for %s", a->address);
		client_pause(b->ctl->client, BACKUP_AGAIN_MS);
	} while (mono_diff_us(clock_mono(), until) > 0);
	b->ctl->deadline_ms = deadline_ms;
	progress_end(&b->progress);
	return r == 0 ? 0 : say_silent(b, a, r);
}

/* What is known to be out makes nobody wait for the copies of the others. */
static int
look_at_all(struct backup *b)
{
	const struct supervisor_list_params params = { 0 };
	struct supervisor_list_result res = { 0 };
	int r = CTL_CALL(b->ctl, "supervisor", supervisor_list, &params, &res);

	for (size_t i = 0; r == 0 && i < res.nactors; i++) {
		const char *address = res.actors[i].address;
		int is_shard = strncmp(address, "project/", 8) == 0;

		b->nshards += (size_t)is_shard;
		if (is_shard || strcmp(address, "ingress") == 0 ||
		    strcmp(address, "supervisor") == 0)
			r = look_at(b, &res.actors[i]);
	}
	return r == 0 && b->nshards == 0 ? ctl_fail("the supervisor knows of no shard") : r;
}

/* ---- shards ---- */

static void
shard_address(size_t n, char out[RPC_ADDRESS_SIZE])
{
	(void)snprintf(out, RPC_ADDRESS_SIZE, "project/%zu", n);
}

/* Adds what is being moved or has been: it changes with every step of a move.  *ret_next NULL:
 * that was all of this shard. */
static int
add_moves(struct backup *b, size_t shard, char **next, struct buf *out)
{
	const struct project_list_ledger_params params = { .cursor = *next,
		.limit = LEDGER_PAGE };
	struct project_list_ledger_result res = { 0 };
	char address[RPC_ADDRESS_SIZE];
	int r;

	shard_address(shard, address);
	client_forget(b->ctl->client);
	r = CTL_CALL(b->ctl, address, project_list_ledger, &params, &res);
	for (size_t i = 0; r == 0 && i < res.nprojects; i++) {
		const struct ledger_project_row *p = &res.projects[i];

		if (p->phase != PROJECT_PHASE_LIVE && p->phase != PROJECT_PHASE_REMOVING)
			buf_printf(out, "%zu %s %s %lld %lld\n", shard, p->project_id,
			    project_phase_name(p->phase), (long long)p->move_to,
			    (long long)p->rev);
	}
	free(*next);
	*next = NULL;
	if (r == 0 && res.nruns == 0 && res.next != NULL) {
		*next = mem_strdup(res.next);
		if (*next == NULL)
			r = ctl_fail_nomem();
	}
	return r;
}

static int
list_moves(struct backup *b, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->nshards; i++) {
		char *next = NULL;

		do
			r = add_moves(b, i, &next, out);
		while (r == 0 && next != NULL);
		free(next);
	}
	return r == 0 && (buf_cstr(out) == NULL) ? ctl_fail_nomem() : r;
}

static int
copy_all_shards(struct backup *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->nshards; i++) {
		char address[RPC_ADDRESS_SIZE];

		shard_address(i, address);
		r = copy_actor(b, address);
	}
	return r;
}

static int
copy_shards(struct backup *b)
{
	for (int i = 0; i < MOVE_TRIES; i++) {
		CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
		int r = list_moves(b, &before);

		if (r == 0)
			r = copy_all_shards(b);
		if (r == 0)
			r = list_moves(b, &after);
		if (r != 0 || strcmp(buf_cstr(&before), buf_cstr(&after)) == 0)
			return r;
		client_pause(b->ctl->client, MOVE_MS);
	}
	return ctl_fail("projects are being moved between shards all the time; try again when "
			"that is over");
}

/* ---- keys ---- */

static int
add_keys(struct manifest *m, const struct ingress_keys_status_status *s)
{
	for (size_t i = 0; i < s->nversions; i++) {
		const struct key_version *v = &s->versions[i];
		size_t k = 0;

		while (k < m->nkeys && m->keys[k] != v->version)
			k++;
		if (v->secrets > 0 && k == m->nkeys && manifest_add_key(m, v->version) < 0)
			return ctl_fail_nomem();
	}
	return 0;
}

static int
say_unknown_keys(const struct ingress_keys_status_status *s)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	keys_silent(s, &text);
	return buf_cstr(&text) != NULL
	    ? ctl_fail("it is not known which keys all secrets need: %s", buf_cstr(&text))
	    : ctl_fail_nomem();
}

/* Before the shards are copied and after: secrets may be sealed anew meanwhile.  A shard may be
 * restarted now, or a project between two of them. */
static int
note_keys(struct backup *b)
{
	struct mono_time until = mono_add_ms(clock_mono(), BACKUP_AWAY_MS);
	const struct ingress_keys_status_params params = { 0 };

	for (;;) {
		struct ingress_keys_status_result res = { .kind = 0 };
		int r;

		client_forget(b->ctl->client);
		r = CTL_CALL(b->ctl, "ingress", ingress_keys_status, &params, &res);
		if (r == 0)
			r = add_keys(b->manifest, &res.u.status);
		if (r != 0 || res.u.status.shards_silent == 0)
			return r;
		if (mono_diff_us(clock_mono(), until) <= 0)
			return say_unknown_keys(&res.u.status);
		client_pause(b->ctl->client, BACKUP_AGAIN_MS);
	}
}

/* ---- the manifest ---- */

static int
add_file(void *arg, const char *path, int is_file)
{
	struct backup *b = arg;
	char why[FILES_WHY_SIZE];
	struct file_facts facts;
	int r;

	if (!is_file || file_role_of(path) == FILE_ROLE_COUNT)
		return ctl_fail("%s/%s is no file of a backup", b->dir, path);
	progress_say(&b->progress, "reading %zu files", b->manifest->nfiles);
	r = file_facts(b->dirfd, path, -1, &facts, why);
	if (r < 0)
		return ctl_fail("%s/%s %s", b->dir, path, why);
	return manifest_add(b->manifest, path, &facts) < 0 ? ctl_fail_nomem() : 0;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(
	    ((const struct manifest_file *)a)->path, ((const struct manifest_file *)b)->path);
}

static int
finish(struct backup *b)
{
	CLEANUP_FREE char *runs = mem_format("%s/runs", b->dir);
	CLEANUP_FREE char *above = mem_format("%s/..", b->dir);
	int r;

	if (runs == NULL || above == NULL)
		return ctl_fail_nomem();
	CRASH_POINT("backup_all_copied");
	r = files_walk(b->dir, 0, add_file, b);
	if (r != 0)
		return r < 0 ? ctl_fail("%s: %s", b->dir, err_text(r)) : r;
	progress_end(&b->progress);
	qsort(b->manifest->files, b->manifest->nfiles, sizeof(*b->manifest->files), by_path);
	r = files_sync_folder(runs);
	if (r == 0)
		r = io_sync_dir(b->dirfd);
	if (r == 0)
		r = manifest_write(b->manifest, b->dirfd);
	CRASH_POINT("backup_manifest_written");
	/* Where the folder itself is named may be another's. */
	(void)files_sync_folder(above);
	return r < 0 ? ctl_fail("%s: %s", b->dir, err_text(r)) : 0;
}

/* ---- telling ---- */

static int
print_result(const struct backup *b)
{
	const struct manifest *m = b->manifest;
	char bytes[TEXT_SIZE];

	for (size_t i = 0; i < m->ngaps; i++)
		(void)ctl_fail("%s is not in it: %s", m->gaps[i].run_id, m->gaps[i].message);
	if (b->ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "path", b->dir, "files",
		    (json_int_t)m->nfiles, "bytes", (json_int_t)manifest_bytes(m), "shards",
		    (json_int_t)b->nshards, "runs", (json_int_t)manifest_count(m, FILE_RUN),
		    "leftOut", (json_int_t)m->ngaps);

		return j != NULL ? ctl_print_json(b->ctl, j) : ctl_fail_nomem();
	}
	text_bytes(manifest_bytes(m), bytes);
	(void)printf("%zu shards, ingress, supervisor and %zu runs, %s, are in %s\n",
	    b->nshards, manifest_count(m, FILE_RUN), bytes, b->dir);
	if (m->nkeys > 0) {
		(void)printf("Its secrets need version%s", m->nkeys > 1 ? "s" : "");
		for (size_t i = 0; i < m->nkeys; i++)
			(void)printf("%s %lld", i > 0 ? "," : "", (long long)m->keys[i]);
		(void)printf(" of the key.  ");
	}
	(void)printf(
	    "Keep the keys file and the configuration elsewhere:\nneither is in it.\n");
	return CTL_OK;
}

static int
make(struct backup *b, const char *dir)
{
	int r = backup_enter(b, dir);

	if (r == 0)
		r = look_at_all(b);
	if (r == 0)
		r = note_keys(b);
	if (r == 0)
		r = copy_shards(b);
	CRASH_POINT("backup_shards_copied");
	if (r == 0)
		r = copy_actor(b, "ingress");
	if (r == 0)
		r = backup_runs(b);
	CRASH_POINT("backup_runs_copied");
	if (r == 0)
		r = copy_actor(b, "supervisor");
	if (r == 0)
		r = note_keys(b);
	if (r == 0)
		r = finish(b);
	progress_end(&b->progress);
	if (r != 0 && b->dir != NULL)
		backup_give_up(b);
	return r;
}

static int
backup_run(struct ctl *ctl, const struct args *args)
{
	struct backup b = { .ctl = ctl,
		.dirfd = -1,
		.lock = -1,
		.sweeper_fd = -1,
		.manifest = manifest_new() };
	int r;

	if (b.manifest == NULL)
		return ctl_fail_nomem();
	progress_init(&b.progress, ctl->json);
	(void)umask(0077);
	r = make(&b, args->words[0]);
	if (r == 0)
		r = print_result(&b);
	backup_leave(&b);
	(void)manifest_free(b.manifest);
	return r;
}

const struct command command_backup = {
	.name = "backup",
	.words = "DIR",
	.summary = "copies every store, while all goes on, into a new folder",
	.more =
	    "DIR is made, or is there and empty.  It has what `anvilctl restore` needs: the stores\n"
	    "of supervisor, ingress and shards, those of the runs with their logs, and last\n"
	    "manifest.json with the digest of every file; without that it is no backup.\n"
	    "\n"
	    "Two things are not in it.  The keys file (keys_file), so that whoever finds the\n"
	    "backup finds no secret: keep a copy of it in another place, and a new one after each\n"
	    "`anvilctl keys rotate`.  And the configuration.  Mirrors of repositories are left out\n"
	    "too; they are fetched again.\n"
	    "\n"
	    "A backup has every store or is none: when one is damaged, or its actor stopped, it\n"
	    "is refused with the cause and the remedy, and what was copied goes again.  One is\n"
	    "made at a time; a second one waits.",
	.min_words = 1,
	.max_words = 1,
	.run = backup_run,
};
