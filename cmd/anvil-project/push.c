#include "cmd/anvil-project/push.h"

#include <stdio.h>

#include "cmd/anvil-project/leases.h"
#include "cmd/anvil-project/shard.h"
#include "gen/run.h"
#include "lib/base/crash.h"
#include "lib/base/mem.h"

struct push {
	struct shard *shard;
	char run_id[ID_SIZE];
	char lease_id[ID_HEX32_SIZE];
	int64_t requested_at;
};

static void
on_pushed(void *arg, int err, const struct run_cancel_result *res)
{
	(void)arg;
	(void)err;
	(void)res;
}

static void
push(void *arg)
{
	CLEANUP_FREE struct push *u = arg;
	const struct lease *le = leases_find(u->shard->leases, u->run_id);
	struct run_cancel_params params = { .lease_id = u->lease_id,
		.requested_at = u->requested_at };

	CRASH_POINT("cancel_pushing");
	if (le != NULL && le->channel != NULL)
		(void)run_cancel_call(le->channel, NULL, &params, on_pushed, NULL);
}

int
push_cancel_after(struct shard *s, struct turn *t, const struct ledger_run *run)
{
	struct push *u = mem_calloc(1, sizeof(*u));
	int r;

	if (u == NULL)
		return E_NOMEM;
	u->shard = s;
	u->requested_at = run->cancel_requested_at;
	(void)snprintf(u->run_id, sizeof(u->run_id), "%s", run->run_id);
	(void)snprintf(u->lease_id, sizeof(u->lease_id), "%s", run->lease_id);
	r = turn_after_commit(t, push, u, free);
	if (r < 0)
		free(u);
	return r;
}
