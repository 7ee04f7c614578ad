/* anvilctl project move PROJECT SHARD: gives a project to another shard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvilctl/commands.h"
#include "cmd/anvilctl/progress.h"
#include "cmd/anvilctl/resolve.h"
#include "gen/actor.h"
#include "gen/project.h"
#include "gen/supervisor.h"
#include "lib/base/err.h"

#define SHARD_LAST  63
#define ASK_MS      1000   /* It is asked again and again how far it is. */
#define PATIENCE_MS 600000 /* For the whole of it.                       */
#define OUTAGE_MS   20000  /* For a shard that is started again.         */
#define PAUSE_MS    200

struct mover {
	struct ctl *ctl;
	struct place where;
	struct project_move_params params;
	struct mono_time begun, heard;
	struct progress progress;
};

/* "1", or "project/1". */
static int
read_shard(const char *word, int64_t *ret)
{
	long n;

	if (strncmp(word, "project/", 8) == 0)
		word += 8;
	if (args_number(word, 0, SHARD_LAST, &n) < 0) {
		(void)ctl_fail("\"%s\" is no shard: a number from 0 to %d", word, SHARD_LAST);
		return CTL_USAGE;
	}
	*ret = n;
	return 0;
}

/* A shard that there is not, or that cannot serve, could be waited for in vain, and the project
 * would stand still as long. */
static int
check_shard(struct ctl *ctl, int64_t shard)
{
	struct supervisor_list_params params = { 0 };
	struct supervisor_list_result list = { .nactors = 0 };
	char address[RPC_ADDRESS_SIZE];
	int nshards = 0, r = CTL_CALL(ctl, "supervisor", supervisor_list, &params, &list);

	if (r != 0)
		return r;
	(void)snprintf(address, sizeof(address), "project/%d", (int)shard);
	for (size_t i = 0; i < list.nactors; i++) {
		if (strcmp(list.actors[i].address, address) == 0 &&
		    list.actors[i].state == ACTOR_STATE_FAILING)
			return ctl_fail("%s is failing and cannot take a project now: see "
					"`anvilctl health`",
			    address);
		if (strcmp(list.actors[i].address, address) == 0)
			return 0;
		nshards += strncmp(list.actors[i].address, "project/", 8) == 0;
	}
	return ctl_fail(
	    "there is no shard %d, the last one is %d; set `shards: %d` in anvil.yml(5) "
	    "and send anvild a SIGHUP to add what is missing",
	    (int)shard, nshards - 1, (int)shard + 1);
}

/* What the shard that gives it away is at. */
static void
tell_progress(struct mover *m)
{
	struct actor_inspect_params params = { 0 };
	struct actor_inspect_result res = { .state = NULL };
	const json_t *move;
	size_t i;

	if (!m->progress.on ||
	    CTL_TRY(m->ctl, m->where.shard, actor_inspect, &params, &res) < 0)
		return;
	json_array_foreach (json_object_get(res.state, "moves"), i, move) {
		const char *id = json_string_value(json_object_get(move, "projectId"));
		const char *stage = json_string_value(json_object_get(move, "stage"));
		json_int_t part = json_integer_value(json_object_get(move, "part"));

		if (id == NULL || stage == NULL || strcmp(id, m->where.project_id) != 0)
			continue;
		if (part > 0)
			progress_say(
			    &m->progress, "%s: %s, part %d", m->where.name, stage, (int)part);
		else
			progress_say(&m->progress, "%s: %s", m->where.name, stage);
	}
}

/* Whether to ask again after an error: the move goes on without us, and asking does no harm. */
static int
may_go_on(struct mover *m, int err)
{
	struct mono_time now = clock_mono();

	if (err == E_DEADLINE)
		m->heard = now;
	if (!err_retryable(err) && err != E_NOENT)
		return 0;
	return mono_diff_ms(m->begun, now) < PATIENCE_MS &&
	    mono_diff_ms(m->heard, now) < OUTAGE_MS;
}

static int
say_moved(const struct mover *m, const char *how)
{
	int64_t to = m->params.to_shard;

	if (m->ctl->json) {
		CLEANUP(json_unrefp)
		json_t *j = json_pack("{s:s, s:s, s:I, s:b}", "projectId", m->where.project_id,
		    "name", m->where.name, "shard", (json_int_t)to, "moved",
		    strcmp(how, "already") != 0);

		return j != NULL ? ctl_print_json(m->ctl, j) : ctl_fail_nomem();
	}
	(void)printf("%s is in shard %d %s\n", m->where.name, (int)to, how);
	return CTL_OK;
}

/* -1: it is to be asked again. */
static int
judge(struct mover *m, const struct project_move_result *res)
{
	switch (res->kind) {
	case PROJECT_MOVE_SAME: return say_moved(m, "already");
	case PROJECT_MOVE_MOVED:
		if (res->u.moved.shard == m->params.to_shard)
			return say_moved(m, "now");
		(void)snprintf(m->where.shard, sizeof(m->where.shard), "project/%d",
		    (int)res->u.moved.shard);
		return -1;
	case PROJECT_MOVE_MOVING: client_pause(m->ctl->client, PAUSE_MS); return -1;
	case PROJECT_MOVE_ABORTED:
		return ctl_fail("%s stays where it is, in %s: %s", m->where.name,
		    m->where.shard, res->u.aborted.reason);
	case PROJECT_MOVE_NOT_FOUND: break;
	}
	return ctl_fail("%s does not have %s now; try again", m->where.shard, m->where.name);
}

static int
ask_until_done(struct mover *m)
{
	int r;

	m->begun = m->heard = clock_mono();
	m->ctl->deadline_ms = ASK_MS;
	for (;;) {
		struct project_move_result res = { .kind = 0 };

		r = CTL_TRY(m->ctl, m->where.shard, project_move, &m->params, &res);
		if (r == 0) {
			m->heard = clock_mono();
			progress_end(&m->progress);
			r = judge(m, &res);
			if (r >= 0)
				return r;
			continue;
		}
		if (!may_go_on(m, r))
			break;
		if (r == E_DEADLINE)
			tell_progress(m);
		else
			client_pause(m->ctl->client, PAUSE_MS);
		client_forget(m->ctl->client);
	}
	progress_end(&m->progress);
	if (r == E_DEADLINE)
		return ctl_fail("%s is still on its way; that goes on: `anvilctl inspect %s`",
		    m->where.name, m->where.shard);
	return ctl_explain(m->ctl, m->where.shard, r);
}

static int
move_run(struct ctl *ctl, const struct args *args)
{
	struct mover m = { .ctl = ctl };
	int r = read_shard(args->words[1], &m.params.to_shard);

	if (r == 0)
		r = resolve_project(ctl, args->words[0], &m.where);
	if (r == 0)
		r = check_shard(ctl, m.params.to_shard);
	if (r != 0)
		return r;
	m.params.project_id = m.where.project_id;
	progress_init(&m.progress, ctl->json);
	return ask_until_done(&m);
}

const struct command command_project_move = {
	.name = "project move",
	.words = "PROJECT SHARD",
	.summary = "gives a project to another shard, with its queue and its active run",
	.more =
	    "SHARD is a number, from 0.  Nothing of the project is lost: a run that is active\n"
	    "goes on, and who asks meanwhile waits a moment.  What was begun goes on when\n"
	    "anvilctl is stopped, and to give the same order again does no harm.",
	.min_words = 2,
	.max_words = 2,
	.run = move_run,
};
