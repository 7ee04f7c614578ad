#include "test/bench/single.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/ledger/ledger.h"
#include "lib/store/store.h"
#include "test/bench/report.h"

enum { ADD_PROJECT, ADD_RUN };
static const struct store_stmt_row rows[] = {
	{ "ADD_PROJECT", 2,
	    "INSERT INTO project_state (project_id, phase, phase_at, next_seq, index_sync,"
	    " index_rev, index_attempt) VALUES (?1, 'live', ?2, 1, 'needs_update', 1, 0)" },
	{ "ADD_RUN", 4,
	    "INSERT INTO project_runs (run_id, project_id, accept_seq, position, status,"
	    " public_status, dispatch_status, dispatch_attempts, trigger_type,"
	    " triggered_by_user_id, branch, repo_url, config_path, queued_at, lease_epoch,"
	    " index_sync, index_rev, index_since, index_attempt) VALUES (?1, ?2, ?3, ?3,"
	    " 'pending', 'queued', 'blocked', 0, 'manual', 'usr_0000000000000000000001', 'main',"
	    " 'https://git.example.org/bench/repo', '.anvil.yml', ?4, 0, 'needs_create', 1, ?4,"
	    " 0)" },
};

void
single_open(struct single *f, const char *dir)
{
	static struct store_desc desc; /* The store goes on using it. */
	char path[128], *why = NULL;
	struct stmt *st;

	/* The schema of the shards, and statements of our own. */
	desc = ledger_store;
	desc.stmts = rows;
	desc.nstmts = ARRAY_LEN(rows);
	(void)snprintf(path, sizeof(path), "%s/floor.db", dir);
	if (store_open(&desc, path, &f->store, &why) < 0)
		bench_die("%s", why != NULL ? why : path);
	id_make(ID_PROJECT, f->project);
	st = store_stmt(f->store, ADD_PROJECT);
	if (stmt_bind(st, "si", f->project, clock_wall_ms()) < 0 || stmt_run(st) < 0)
		bench_die("floor: %s", store_error(f->store));
}

void
single_close(struct single *f)
{
	f->store = store_close(f->store);
}

double
single_round(struct single *f, int64_t n)
{
	double begin = bench_now_us();

	for (int64_t i = 0; i < n; i++) {
		struct stmt *st = store_stmt(f->store, ADD_RUN);
		char run[ID_SIZE];

		id_make(ID_RUN, run);
		if (store_begin(f->store) < 0 ||
		    stmt_bind(st, "ssii", run, f->project, ++f->seq, clock_wall_ms()) < 0 ||
		    stmt_run(st) < 0 || store_commit(f->store) < 0)
			bench_die("floor: %s", store_error(f->store));
	}
	return (double)n / ((bench_now_us() - begin) / 1e6);
}
