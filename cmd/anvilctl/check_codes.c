#include <string.h>

#include "cmd/anvilctl/check.h"
#include "lib/base/base.h"

/* A restart, a takeover with all its tries, a re-check of a shard: so long may what they are
 * about look broken. */
#define MOVING_MS   3000
#define TAKEOVER_MS 15000
#define RECHECK_MS  45000
#define ENDING_MS   60000

static const struct check_code codes[] = {
	/* Between the stores. */
	{ "actor_unreachable", TAKEOVER_MS, NULL },
	{ "project_owners", TAKEOVER_MS, NULL },
	{ "project_homeless", TAKEOVER_MS, NULL },
	{ "index_incomplete", TAKEOVER_MS, "rebuilds the index from the shards" },
	{ "index_project_missing", MOVING_MS, "rebuilds the index from the shards" },
	{ "index_project_differs", MOVING_MS, "rebuilds the index from the shards" },
	{ "index_project_unknown", MOVING_MS, "rebuilds the index from the shards" },
	{ "index_run_missing", MOVING_MS, "rebuilds the index from the shards" },
	{ "index_run_differs", MOVING_MS, "rebuilds the index from the shards" },
	{ "index_run_unknown", MOVING_MS, "forgets the copy in the index" },
	{ "ledger_run_missing", MOVING_MS, NULL },
	{ "run_twice", MOVING_MS, NULL },
	{ "active_without_process", TAKEOVER_MS, "has its shard look at its leases again" },
	{ "runner_without_row", MOVING_MS, NULL },
	{ "runner_of_other_claim", TAKEOVER_MS, NULL },
	{ "runner_of_ended_run", ENDING_MS, NULL },
	{ "dispatch_lost", RECHECK_MS, "has its shard ask for a process again" },
	/* Of one store. */
	{ "no_head", 0, "promotes the first of the queue" },
	{ "project_next_seq", 0, "goes on behind the highest number given" },
	{ "run_row", 0, "sets the row aside, with all that is in it" },
	{ "session_row", 0, "removes the session" },
	{ "session_orphan", 0, "removes what belongs to no account" },
	{ "index_run_orphan", 0, "removes the copy from the index" },
	{ "index_run_row", 0, "removes the copy from the index and rebuilds it" },
	{ "index_project_row", 0, "removes the copy from the index and rebuilds it" },
};

static const struct check_code other = { "", 0, NULL };

const struct check_code *
check_code(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (strcmp(codes[i].code, code) == 0)
			return &codes[i];
	return &other;
}
