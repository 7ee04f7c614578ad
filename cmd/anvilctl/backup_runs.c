/* The runs of a backup: what nobody has open is copied by a process of the supervisor, the others
 * copy themselves; who changes from one to the other meanwhile is asked for again, until every
 * run that was there at the beginning is copied or gone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/anvilctl/backup.h"
#include "gen/supervisor.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/mem.h"

#define POLL_MS     50
#define PATIENCE_MS 60000 /* Nothing has changed for so long: somebody holds on to a run. */

/* What is left after a round. */
struct rest {
	struct arena *arena;
	const char **ids;
	size_t n, cap;
	int more; /* not all of them are named */
};

static int
rest_add(struct rest *rest, const char *run_id)
{
	void *rows = rest->ids;
	char *copy = arena_strdup(rest->arena, run_id);
	int r = copy != NULL
	    ? arena_list_grow(rest->arena, &rows, rest->n, &rest->cap, sizeof(*rest->ids))
	    : E_NOMEM;

	if (r < 0)
		return r;
	rest->ids = rows;
	rest->ids[rest->n++] = copy;
	return 0;
}

/* ---- one that lives ---- */

static int
make_part(const struct backup *b, const char *run_id, char **ret_part)
{
	CLEANUP_FREE char *part = mem_format("%s/runs/%s.part", b->dir, run_id);
	struct stat st;
	int r = 0;

	if (part == NULL)
		return E_NOMEM;
	if (lstat(part, &st) == 0)
		r = files_remove_tree(part);
	if (r == 0 && mkdir(part, 0700) < 0)
		r = err_from_errno(errno);
	if (r == 0)
		*ret_part = TAKE_PTR(part);
	return r;
}

/* 0: it is copied.  1: it is to be asked for again.  Else an error, explained. */
static int
copy_live(struct backup *b, const char *run_id)
{
	CLEANUP_FREE char *to = mem_format("%s/runs/%s", b->dir, run_id);
	CLEANUP_FREE char *part = NULL;
	char address[RPC_ADDRESS_SIZE];
	const char *why = NULL;
	int r = to != NULL ? make_part(b, run_id, &part) : E_NOMEM;

	if (r < 0)
		return ctl_fail("%s/runs/%s: %s", b->dir, run_id, err_text(r)), r;
	(void)snprintf(address, sizeof(address), "run/%s", run_id);
	r = backup_ask(b, address, part, &why);
	CRASH_POINT("backup_run_copied");
	if (r == 0 && rename(part, to) < 0)
		r = err_from_errno(errno);
	if (r == 0)
		return 0;
	(void)files_remove_tree(part);
	/* Not there any more, or not yet: its store is made after its claim. */
	if (backup_is_away(b, r) || r == E_NOENT || r == E_BUSY)
		return 1;
	if (r == E_EXISTS)
		(void)ctl_fail("%s: %s", address, why);
	else
		(void)ctl_explain(b->ctl, address, r);
	return r;
}

/* ---- rounds ---- */

static int
wait_for_copier(struct backup *b, struct supervisor_copy_status_result *ret)
{
	const struct supervisor_copy_status_params params = { 0 };

	for (;;) {
		const struct supervisor_copy_status_status *s = &ret->u.status;
		int r;

		client_forget(b->ctl->client);
		*ret = (struct supervisor_copy_status_result) { .kind = 0 };
		r = CTL_CALL(b->ctl, "supervisor", supervisor_copy_status, &params, ret);
		if (r != 0)
			return r;
		if (ret->kind == SUPERVISOR_COPY_STATUS_NONE)
			return ctl_fail("the supervisor was restarted while runs were copied; "
					"begin anew, with another folder");
		if (!s->running)
			return 0;
		progress_say(&b->progress, "copying runs: %lld of %lld",
		    (long long)s->copied + (long long)s->gone, (long long)s->total);
		client_pause(b->ctl->client, POLL_MS);
	}
}

static int
start_copier(struct backup *b, const struct rest *rest)
{
	CLEANUP_FREE char *folder = mem_format("%s/runs", b->dir);
	struct supervisor_copy_runs_params params = { .folder = folder };
	struct supervisor_copy_runs_result res = { .kind = 0 };
	int r;

	if (folder == NULL)
		return ctl_fail_nomem();
	if (!rest->more) {
		params.run_ids = rest->ids;
		params.nrun_ids = rest->n;
	}
	do {
		client_forget(b->ctl->client);
		r = CTL_CALL(b->ctl, "supervisor", supervisor_copy_runs, &params, &res);
		if (r != 0 || res.kind != SUPERVISOR_COPY_RUNS_BUSY)
			break;
		/* Of a backup that was killed; its process goes on. */
		progress_say(&b->progress, "waiting for the end of an earlier copying");
		client_pause(b->ctl->client, BACKUP_AGAIN_MS);
	} while (1);
	if (r == 0 && res.kind == SUPERVISOR_COPY_RUNS_REFUSED)
		r = ctl_fail("supervisor: %s", res.u.refused.message);
	return r;
}

/* Takes what is left out of the answer, which the next call overwrites. */
static int
note_result(struct backup *b, const struct supervisor_copy_status_status *s, struct rest *rest)
{
	int r = 0;

	/* Only names that are told can be asked for, and those that are left out would be again. */
	if (s->left_out > 0 && s->nlive == 0)
		return ctl_fail("%lld runs cannot be read, more than a backup can name; see "
				"`anvilctl check`",
		    (long long)s->nbad + (long long)s->left_out);
	if (rest->more)
		b->manifest->ngaps = 0; /* All were looked at, and are told once more. */
	rest->n = 0;
	rest->more = s->left_out > 0;
	for (size_t i = 0; r == 0 && i < s->nlive; i++)
		r = rest_add(rest, s->live[i]);
	for (size_t i = 0; r == 0 && i < s->nbad; i++)
		r = manifest_add_gap(b->manifest, s->bad[i].run_id, s->bad[i].message);
	return r < 0 ? ctl_fail_nomem() : 0;
}

/* One look at all that is left; 0 or a status. */
static int
one_round(struct backup *b, struct rest *rest)
{
	struct supervisor_copy_status_result res;
	size_t left = 0;
	int r = start_copier(b, rest);

	if (r == 0)
		r = wait_for_copier(b, &res);
	if (r != 0)
		return r;
	if (res.u.status.failed != NULL)
		return ctl_fail("runs: %s", res.u.status.failed);
	r = note_result(b, &res.u.status, rest);
	if (r != 0)
		return r;
	for (size_t i = 0; i < rest->n; i++) {
		int got = copy_live(b, rest->ids[i]);

		if (got < 0)
			return CTL_REFUSED;
		if (got == 1)
			rest->ids[left++] = rest->ids[i];
	}
	rest->n = left;
	return 0;
}

static int
give_up(struct backup *b, const struct rest *rest)
{
	for (size_t i = 0; i < rest->n; i++)
		if (manifest_add_gap(b->manifest, rest->ids[i],
			"held by a process that does not answer") < 0)
			return ctl_fail_nomem();
	return 0;
}

int
backup_runs(struct backup *b)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new();
	struct rest rest = { .arena = arena, .more = 1 };
	struct mono_time last = clock_mono();
	size_t before = 0;
	int r = arena != NULL ? 0 : ctl_fail_nomem();

	while (r == 0) {
		r = one_round(b, &rest);
		if (r != 0 || (rest.n == 0 && !rest.more))
			break;
		if (rest.more || rest.n != before)
			last = clock_mono();
		before = rest.n;
		if (mono_diff_ms(last, clock_mono()) > PATIENCE_MS)
			return give_up(b, &rest);
		client_pause(b->ctl->client, BACKUP_AGAIN_MS);
	}
	return r;
}
