/* anvilctl check --fix: each finding is mended by its owner, who looks again before. */
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

#define LIST_MAX       500 /* of one call; another --fix goes on */
#define REBUILD_MS     120000
#define SWEEP_TRIES    50
#define SWEEP_AGAIN_MS 100
#define REBUILD_ASK_MS 100

/* Subjects of the findings of a code. */
struct subjects {
	const char *rows[LIST_MAX];
	size_t n;
};

static void
collect(const struct findings *f, const char *code, struct subjects *ret)
{
	const struct finding *x;

	for (size_t at = 0; ret->n < LIST_MAX && (x = findings_next(f, &at)) != NULL;)
		if (strcmp(x->code, code) == 0)
			ret->rows[ret->n++] = x->subject;
}

/* ---- what actors mend of their own ---- */

/* Asks every actor of which there is something that it can mend, once. */
static int
mend_own(struct ctl *ctl, const struct findings *f)
{
	CLEANUP(map_freep) struct map *asked = map_new();
	struct actor_check_params params = { .fix = 1 };
	const struct finding *x;

	if (asked == NULL)
		return ctl_fail_nomem();
	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;) {
		struct actor_check_result said = { .nproblems = 0 };
		int r;

		if (!x->own || !x->mendable || map_get(asked, x->place) != NULL)
			continue;
		if (map_set(asked, x->place, asked) < 0)
			return ctl_fail_nomem();
		ctl->deadline_ms = CHECK_DEADLINE_MS;
		r = CTL_CALL(ctl, x->place, actor_check, &params, &said);
		ctl->deadline_ms = CTL_DEADLINE_MS;
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- files, leases, dispatch ---- */

static int
mend_files(struct ctl *ctl, const struct findings *f)
{
	struct subjects trees = { .n = 0 }, ended = { .n = 0 }, mirrors = { .n = 0 },
			sockets = { .n = 0 };
	struct supervisor_sweep_result result = { .kind = 0 };
	struct supervisor_sweep_params params;
	int r;

	collect(f, "workspace_left", &trees);
	collect(f, "run_folder_unknown", &ended);
	collect(f, "run_folder_unkept", &ended);
	collect(f, "mirror_orphan", &mirrors);
	collect(f, "socket_orphan", &sockets);
	if (trees.n + ended.n + mirrors.n + sockets.n == 0)
		return 0;
	params = (struct supervisor_sweep_params) { .trees = trees.rows,
		.ntrees = trees.n,
		.ended = ended.rows,
		.nended = ended.n,
		.mirrors = mirrors.rows,
		.nmirrors = mirrors.n,
		.sockets = sockets.rows,
		.nsockets = sockets.n };
	r = CTL_CALL(ctl, "supervisor", supervisor_sweep, &params, &result);
	params = (struct supervisor_sweep_params) { .trees = trees.rows, .ntrees = trees.n };
	for (int i = 0; i < SWEEP_TRIES && r == 0 && result.u.ok.waiting > 0; i++) {
		client_pause(ctl->client, SWEEP_AGAIN_MS);
		r = CTL_CALL(ctl, "supervisor", supervisor_sweep, &params, &result);
	}
	return r;
}

/* A re-check asks for processes again, and about every lease. */
static int
mend_claims(struct ctl *ctl, const struct findings *f)
{
	struct project_kick_params params = { .project_id = NULL };
	const struct finding *x;

	for (size_t at = 0; (x = findings_next(f, &at)) != NULL;) {
		struct project_kick_result result = { .kind = 0 };
		int r = 0;

		if (strcmp(x->code, "active_without_process") == 0 ||
		    strcmp(x->code, "dispatch_lost") == 0)
			r = CTL_CALL(ctl, x->place, project_kick, &params, &result);
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- the index ---- */

static int
is_rebuilding(struct ctl *ctl, int *ret)
{
	struct index_list_params params = { .cursor = NULL, .limit = 1 };
	struct index_list_result page = { .nruns = 0 };
	int r = CTL_CALL(ctl, "ingress", index_list, &params, &page);

	*ret = page.rebuilding;
	return r;
}

static int
wait_for_rebuild(struct ctl *ctl)
{
	struct mono_time end = mono_add_ms(clock_mono(), REBUILD_MS);
	int running = 1, r = is_rebuilding(ctl, &running);

	while (r == 0 && running && clock_mono().us < end.us) {
		client_pause(ctl->client, REBUILD_ASK_MS);
		r = is_rebuilding(ctl, &running);
	}
	return r;
}

/* One that runs may have passed already what is in doubt now. */
static int
rebuild(struct ctl *ctl)
{
	struct index_rebuild_params params = { 0 };
	struct index_rebuild_result result = { .kind = INDEX_REBUILD_RUNNING };
	int r = 0;

	while (r == 0 && result.kind == INDEX_REBUILD_RUNNING) {
		r = wait_for_rebuild(ctl);
		if (r == 0)
			r = CTL_CALL(ctl, "ingress", index_rebuild, &params, &result);
	}
	return r != 0 ? r : wait_for_rebuild(ctl);
}

static int
mend_index(struct ctl *ctl, const struct findings *f)
{
	struct subjects runs = { .n = 0 }, projects = { .n = 0 }, lost = { .n = 0 };
	struct index_mend_copies_result result = { .kind = 0 };
	struct index_mend_copies_params params;
	int r;

	if (!findings_have(f, "index_"))
		return 0;
	collect(f, "index_run_differs", &runs);
	collect(f, "index_project_differs", &projects);
	collect(f, "index_run_unknown", &lost);
	params = (struct index_mend_copies_params) { .forget_runs = runs.rows,
		.nforget_runs = runs.n,
		.doubt_projects = projects.rows,
		.ndoubt_projects = projects.n,
		.end_runs = lost.rows,
		.nend_runs = lost.n };
	r = CTL_CALL(ctl, "ingress", index_mend_copies, &params, &result);
	return r != 0 ? r : rebuild(ctl);
}

int
check_mend(struct ctl *ctl, const struct findings *f)
{
	int r = mend_own(ctl, f);

	if (r == 0)
		r = mend_claims(ctl, f);
	if (r == 0)
		r = mend_files(ctl, f);
	return r != 0 ? r : mend_index(ctl, f);
}
