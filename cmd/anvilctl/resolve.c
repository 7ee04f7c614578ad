#include "cmd/anvilctl/resolve.h"

#include <stdio.h>
#include <string.h>

#include "gen/ingress.h"
#include "gen/supervisor.h"
#include "lib/base/ascii.h"
#include "lib/base/err.h"

#define HOPS_MAX        4
#define MOVING_MS       5000
#define MOVING_PAUSE_MS 100

static void
set_shard(struct place *p, int64_t shard)
{
	(void)snprintf(p->shard, sizeof(p->shard), "project/%d", (int)shard);
}

int
place_again(struct ctl *ctl, struct place *p, struct place_way *w, unsigned kind, int64_t shard)
{
	if (kind == w->moved) {
		set_shard(p, shard);
		return ++w->hops <= HOPS_MAX;
	}
	if (kind != w->moving || w->waited_ms >= MOVING_MS)
		return 0;
	client_pause(ctl->client, MOVING_PAUSE_MS);
	w->waited_ms += MOVING_PAUSE_MS;
	return 1;
}

static int
say_ambiguous(const char *word, const struct ingress_resolve_ambiguous *found)
{
	(void)ctl_fail("\"%s\" is the beginning of several runs; give more of it:", word);
	for (size_t i = 0; i < found->nrun_ids; i++)
		(void)fprintf(stderr, "  %s\n", found->run_ids[i]);
	return CTL_REFUSED;
}

/* 0 with ${ret} when it is there, whatever it is. */
static int
resolve(struct ctl *ctl, const char *word, struct place *ret)
{
	struct ingress_resolve_params params = { .name = word };
	struct ingress_resolve_result found = { .kind = 0 };
	int r = ctl_open(ctl);

	*ret = (struct place) { .name = "" };
	if (r == 0)
		r = CTL_CALL(ctl, "ingress", ingress_resolve, &params, &found);
	if (r != 0)
		return r;
	switch (found.kind) {
	case INGRESS_RESOLVE_PROJECT:
		(void)snprintf(ret->project_id, ID_SIZE, "%s", found.u.project.project_id);
		(void)snprintf(ret->name, sizeof(ret->name), "%s/%s",
		    found.u.project.owner_slug, found.u.project.project_slug);
		set_shard(ret, found.u.project.shard);
		return 0;
	case INGRESS_RESOLVE_RUN:
		(void)snprintf(ret->project_id, ID_SIZE, "%s", found.u.run.project_id);
		(void)snprintf(ret->run_id, ID_SIZE, "%s", found.u.run.run_id);
		set_shard(ret, found.u.run.shard);
		return 0;
	case INGRESS_RESOLVE_AMBIGUOUS: return say_ambiguous(word, &found.u.ambiguous);
	default: return 0;
	}
}

int
resolve_project(struct ctl *ctl, const char *word, struct place *ret)
{
	int r = resolve(ctl, word, ret);

	if (r != 0)
		return r;
	if (ret->run_id[0] != '\0')
		return ctl_fail("\"%s\" is a run; a project is wanted here", word);
	if (ret->project_id[0] == '\0')
		return ctl_fail(
		    "there is no project \"%s\"; `anvilctl project list` shows them", word);
	return 0;
}

int
resolve_run(struct ctl *ctl, const char *word, struct place *ret)
{
	int r = resolve(ctl, word, ret);

	if (r != 0)
		return r;
	if (ret->run_id[0] == '\0' && ret->project_id[0] != '\0')
		return ctl_fail("\"%s\" is a project; a run is wanted here: `anvilctl project "
				"show %s` lists its runs",
		    word, word);
	if (ret->run_id[0] == '\0')
		return ctl_fail("there is no run \"%s\"; give its id, or 8 characters of its "
				"beginning at least",
		    word);
	return 0;
}

/* 1 for "supervisor", "ingress", "project/<n>", "run/<id>". */
static int
is_address(const char *word)
{
	if (strcmp(word, "supervisor") == 0 || strcmp(word, "ingress") == 0)
		return 1;
	if (strncmp(word, "run/", 4) == 0)
		return id_check(ID_RUN, word + 4);
	return strncmp(word, "project/", 8) == 0 && ascii_is_digit(word[8]) &&
	    strspn(word + 8, "0123456789") == strlen(word + 8) && strlen(word) < 11;
}

int
resolve_actor(struct ctl *ctl, const char *word, char ret_address[RPC_ADDRESS_SIZE])
{
	struct place found;
	int r = ctl_open(ctl);

	if (r != 0)
		return r;
	if (strncmp(word, "run/", 4) == 0 && is_address(word))
		return resolve_wake(ctl, word + 4, ret_address);
	if (is_address(word)) {
		(void)snprintf(ret_address, RPC_ADDRESS_SIZE, "%s", word);
		return 0;
	}
	r = resolve(ctl, word, &found);
	if (r == 0 && found.run_id[0] != '\0')
		return resolve_wake(ctl, found.run_id, ret_address);
	if (r == 0 && found.shard[0] == '\0')
		return ctl_fail(
		    "\"%s\" is no actor, project or run; `anvilctl ps` lists the actors", word);
	if (r == 0)
		(void)snprintf(ret_address, RPC_ADDRESS_SIZE, "%s", found.shard);
	return r;
}

int
resolve_wake(struct ctl *ctl, const char *run_id, char ret_address[RPC_ADDRESS_SIZE])
{
	struct supervisor_serve_run_params params = { .run_id = run_id };
	struct supervisor_serve_run_result woken = { .kind = 0 };
	int r = ctl_open(ctl);

	(void)snprintf(ret_address, RPC_ADDRESS_SIZE, "run/%s", run_id);
	if (r != 0 || client_connect(ctl->client, ret_address) == 0)
		return r;
	r = CTL_CALL(ctl, "supervisor", supervisor_serve_run, &params, &woken);
	if (r != 0)
		return r;
	switch (woken.kind) {
	case SUPERVISOR_SERVE_RUN_ABSENT:
		return ctl_fail("%s has no store: it has not begun, or it is older than "
				"runs.keep_days",
		    run_id);
	case SUPERVISOR_SERVE_RUN_BUSY:
		return ctl_fail("all places for runs that have ended are taken; try again");
	default: break;
	}
	ctl->reply = (struct client_reply) { .reached = 0 };
	return ctl_explain(ctl, ret_address, client_connect(ctl->client, ret_address));
}
