/* Folders of runs, mirrors and sockets, and whose they are. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/err.h"

#define PAGE   5000
#define DAY_MS INT64_C(86400000)

struct files {
	struct look *look;
	struct map *folders; /* run id -> const struct run_folder; owned */
	int64_t keep_ms;
	int sweeping;
};

static void
compare_folder(struct files *f, const struct run_folder *folder)
{
	struct look *l = f->look;
	const struct ledger_seen *ledger = map_get(l->ledger_runs, folder->run_id);
	int known = ledger != NULL || map_get(l->index_runs, folder->run_id) != NULL;

	/* As long as its ledger is not through with it somebody else may come for it. */
	if (folder->live || f->sweeping || !l->has_all_shards ||
	    (ledger != NULL && ledger->run->status < LEDGER_STATUS_PASSED))
		return;
	if (folder->trees)
		finding_add(l->found, "workspace_left", "supervisor", folder->run_id,
		    "has ended, and its ws, tmp or home is still there");
	if (!known && l->has_index && !folder->ended)
		finding_add(l->found, "run_folder_unknown", "supervisor", folder->run_id,
		    "has a folder, and neither ledger nor index knows it");
	if (!folder->ended && (known || !l->has_index))
		finding_add(l->found, "run_folder_unkept", "supervisor", folder->run_id,
		    "has a folder that nobody would remove when its time is over");
}

static void
compare_mirrors(struct files *f, const struct supervisor_list_files_result *page)
{
	struct look *l = f->look;

	if (f->sweeping || !l->has_all_shards || !l->has_index)
		return;
	for (size_t i = 0; i < page->nmirrors; i++)
		if (map_get(l->ledger_projects, page->mirrors[i]) == NULL &&
		    map_get(l->index_projects, page->mirrors[i]) == NULL)
			finding_add(l->found, "mirror_orphan", "supervisor", page->mirrors[i],
			    "has a mirror in cache, and no shard knows it");
}

static void
compare_first(struct files *f, const struct supervisor_list_files_result *page)
{
	struct look *l = f->look;

	compare_mirrors(f, page);
	for (size_t i = 0; i < page->nsockets; i++)
		finding_add(l->found, "socket_orphan", "supervisor", page->sockets[i],
		    "is the socket of no process");
	for (size_t i = 0; i < page->nshards; i++) {
		const char *name = arena_format(
		    l->arena, "project-%lld.db", (long long)page->shards[i]);

		if (name != NULL)
			finding_add(l->found, "shard_unconfigured", "supervisor", name,
			    "is the store of a shard that is not configured");
	}
}

/* What a run that has passed has written is kept for some days. */
static void
compare_missing(struct files *f)
{
	struct look *l = f->look;
	int64_t now = clock_wall_ms();
	void *value;

	for (size_t at = 0; map_next(l->ledger_runs, &at, NULL, &value);) {
		const struct run_row *row = &((const struct ledger_seen *)value)->run->row;
		const struct run_folder *folder = map_get(f->folders, row->run_id);

		if (row->status != RUN_STATUS_PASSED || (folder != NULL && folder->store) ||
		    row->finished_at > now || row->finished_at <= now - f->keep_ms)
			continue;
		finding_add(l->found, "record_missing", "supervisor", row->run_id,
		    "has passed, and its record is not there");
	}
}

static int
read_all(struct files *f)
{
	struct supervisor_list_files_params params = { .limit = PAGE };

	do {
		struct supervisor_list_files_result page = { .nruns = 0 };
		int r = CTL_TRY(
		    f->look->ctl, "supervisor", supervisor_list_files, &params, &page);

		if (r < 0)
			return r;
		if (params.cursor == NULL) {
			f->sweeping = page.sweeping;
			f->keep_ms = page.keep_days * DAY_MS;
			compare_first(f, &page);
		}
		for (size_t i = 0; i < page.nruns; i++) {
			compare_folder(f, &page.runs[i]);
			if (map_set(f->folders, page.runs[i].run_id,
				(void *)(uintptr_t)&page.runs[i]) < 0)
				return E_NOMEM;
		}
		params.cursor = page.next;
	} while (params.cursor != NULL);
	return 0;
}

void
look_files(struct look *l)
{
	struct files f = { .look = l, .folders = map_new() };
	int r = f.folders != NULL ? read_all(&f) : E_NOMEM;

	if (r == 0)
		compare_missing(&f);
	else if (r == E_NOMEM)
		l->found->failed = 1;
	else
		finding_add(l->found, "actor_unreachable", "supervisor", "supervisor",
		    "does not tell of its files: %s", err_text(r));
	(void)map_free(f.folders);
}
