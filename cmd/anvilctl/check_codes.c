#include <stdlib.h>
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
	{ "actor_unreachable", TAKEOVER_MS, NULL, 0 },
	{ "store_unusable", 0, NULL, 0 },
	{ "project_owners", TAKEOVER_MS, NULL, 0 },
	{ "project_homeless", TAKEOVER_MS, NULL, 0 },
	{ "index_incomplete", TAKEOVER_MS, "rebuilds the index from the shards", 0 },
	{ "index_project_missing", MOVING_MS, "rebuilds the index from the shards", 0 },
	{ "index_project_differs", MOVING_MS, "rebuilds the index from the shards", 0 },
	{ "index_project_unknown", MOVING_MS, "rebuilds the index from the shards", 0 },
	{ "index_run_missing", MOVING_MS, "rebuilds the index from the shards", 0 },
	{ "index_run_differs", MOVING_MS, "rebuilds the index from the shards", 0 },
	{ "index_run_unknown", MOVING_MS, "ends it as failed", 0 },
	{ "ledger_run_missing", MOVING_MS, NULL, 0 },
	{ "run_twice", MOVING_MS, NULL, 0 },
	{ "active_without_process", TAKEOVER_MS, "has its shard look at its leases again", 0 },
	{ "runner_without_row", MOVING_MS, NULL, 0 },
	{ "runner_of_other_claim", TAKEOVER_MS, NULL, 0 },
	{ "runner_of_ended_run", ENDING_MS, NULL, 0 },
	{ "dispatch_lost", RECHECK_MS, "has its shard ask for a process again", 0 },
	{ "record_end_differs", MOVING_MS, NULL, 0 },
	{ "record_unfinished", MOVING_MS, NULL, 0 },
	{ "record_of_project", MOVING_MS, NULL, 0 },
	{ "record_missing", MOVING_MS, NULL, 0 },
	{ "key_missing", MOVING_MS, NULL, 0 },
	{ "key_other", MOVING_MS, NULL, 0 },
	/* Files that belong to nobody. */
	{ "workspace_left", TAKEOVER_MS, "removes ws, tmp and home of the run", 0 },
	{ "run_folder_unknown", MOVING_MS,
	    "keeps it from now on as long as those of other runs", 0 },
	{ "run_folder_unkept", TAKEOVER_MS,
	    "keeps it from now on as long as those of other runs", 0 },
	{ "mirror_orphan", MOVING_MS, "removes the mirror", 0 },
	{ "socket_orphan", MOVING_MS, "removes the socket", 0 },
	{ "shard_unconfigured", 0, NULL, 1 },
	/* Of one store. */
	{ "process_gone", TAKEOVER_MS, NULL, 0 },
	{ "process_unrecorded", TAKEOVER_MS, NULL, 0 },
	{ "no_head", 0, "promotes the first of the queue", 0 },
	{ "project_next_seq", 0, "goes on behind the highest number given", 0 },
	{ "run_row", 0, "sets the row aside, with all that is in it", 0 },
	{ "session_row", 0, "removes the session", 0 },
	{ "session_orphan", 0, "removes what belongs to no account", 0 },
	{ "index_run_orphan", 0, "removes the copy from the index", 0 },
	{ "index_run_row", 0, "removes the copy from the index and rebuilds it", 0 },
	{ "index_project_row", 0, "removes the copy from the index and rebuilds it", 0 },
};

static const struct check_code other = { "", 0, NULL, 0 };

const struct check_code *
check_code(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (strcmp(codes[i].code, code) == 0)
			return &codes[i];
	return &other;
}

int64_t
check_hold_ms(const struct check_code *c)
{
#ifdef ANVIL_FAULTS
	const char *text = getenv("ANVIL_CHECK_HOLD");

	if (text != NULL)
		return c->hold_ms * strtol(text, NULL, 10) / 100;
#endif
	return c->hold_ms;
}
