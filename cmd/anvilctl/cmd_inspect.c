/* anvilctl inspect ACTOR: what an actor says of itself, as a tree. */
#include <stdio.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/resolve.h"
#include "cmd/anvilctl/show.h"
#include "gen/actor.h"

/* The three answers under one roof. */
static int
gather(struct ctl *ctl, const char *address, json_t **ret)
{
	CLEANUP(json_unrefp) json_t *all = json_object();
	struct actor_info_params info_params = { 0 };
	struct actor_info_result info = { .pid = 0 };
	struct actor_stats_params stats_params = { 0 };
	struct actor_stats_result stats = { .commits = 0 };
	struct actor_inspect_params state_params = { 0 };
	struct actor_inspect_result state = { .state = NULL };
	int bad, r = CTL_CALL(ctl, address, actor_info, &info_params, &info);

	bad = json_object_set(all, "info", (json_t *)(uintptr_t)ctl->reply.result);
	if (r == 0)
		r = CTL_CALL(ctl, address, actor_inspect, &state_params, &state);
	bad |= json_object_set(
	    all, "state", json_object_get((json_t *)(uintptr_t)ctl->reply.result, "state"));
	if (r == 0)
		r = CTL_CALL(ctl, address, actor_stats, &stats_params, &stats);
	bad |= json_object_set(all, "stats", (json_t *)(uintptr_t)ctl->reply.result);
	if (r == 0 && bad != 0)
		r = ctl_fail_nomem();
	if (r == 0)
		*ret = TAKE_PTR(all);
	return r;
}

static int
inspect_run(struct ctl *ctl, const struct args *args)
{
	CLEANUP(json_unrefp) json_t *all = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char address[RPC_ADDRESS_SIZE];
	int r = resolve_actor(ctl, args->words[0], address);

	if (r == 0)
		r = gather(ctl, address, &all);
	if (r != 0)
		return r;
	if (ctl->json)
		return ctl_print_json(ctl, all);
	if (show_tree(all, 0, &text) < 0)
		return ctl_fail_nomem();
	(void)fwrite(text.data, 1, text.len, stdout);
	return CTL_OK;
}

const struct command command_inspect = {
	.name = "inspect",
	.words = "ACTOR",
	.summary = "shows an actor: process, state, methods, connections",
	.more = "Times of the methods are per call, since the actor started.",
	.min_words = 1,
	.max_words = 1,
	.run = inspect_run,
};
