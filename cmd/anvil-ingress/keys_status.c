/* ingress.keysStatus: how many secrets of which projects depend on each version of the key, as
 * the shards have it now (spec webhooks 12). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/reseal.h"
#include "cmd/anvil-ingress/seal.h"
#include "gen/ingress.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

#define LOOK_MS      5000 /* A shard that has not told all by then is silent. */
#define LOOK_PAGE    500
#define PROJECTS_MAX 20
#define ALL_VERSIONS (INT64_C(1) + INT32_MAX)
#define CURSOR_SIZE  129

struct job {
	struct ingress *in;
	struct parked *parked;
	struct arena *arena;
	struct mono_time until;
	struct key_version *versions; /* Ascending, once all is known. */
	size_t nversions, cap;
	size_t nlooks;   /* Shards that have not been heard to the end. */
	int64_t *silent; /* Those that will not be.            */
	size_t nsilent;
	uint64_t moves; /* Of the edge, when it began.         */
	int moving;     /* Projects were between two shards.   */
	int64_t closed; /* Secrets that do not open.           */
	int64_t old;    /* Those that do, under old versions.  */
	int no_memory;
};

/* One shard. */
struct look {
	struct job *job;
	int64_t shard;
	char cursor[CURSOR_SIZE];
};

/* ---- counting ---- */

static struct key_version *
version_of(struct job *j, int64_t version)
{
	struct key_version *v;
	void *rows = j->versions;

	for (size_t i = 0; i < j->nversions; i++)
		if (j->versions[i].version == version)
			return &j->versions[i];
	if (arena_list_grow(j->arena, &rows, j->nversions, &j->cap, sizeof(*v)) < 0)
		return NULL;
	j->versions = rows;
	v = &j->versions[j->nversions++];
	*v = (struct key_version) { .version = version };
	return v;
}

static int
add_project(struct job *j, struct key_version *v, const char *project_id)
{
	const char **list = NULL;

	for (size_t i = 0; i < v->nprojects; i++)
		if (strcmp(v->projects[i], project_id) == 0)
			return 0;
	if (v->nprojects == PROJECTS_MAX)
		return 0;
	/* The list of the contract is of constants: a longer copy takes its place. */
	list = arena_calloc(j->arena, v->nprojects + 1, sizeof(*list));
	if (list == NULL)
		return E_NOMEM;
	if (v->nprojects > 0)
		memcpy(list, v->projects, v->nprojects * sizeof(*list));
	list[v->nprojects] = arena_strdup(j->arena, project_id);
	if (list[v->nprojects] == NULL)
		return E_NOMEM;
	v->projects = list;
	v->nprojects++;
	return 0;
}

static int
count_page(struct job *j, const struct project_list_sealed_page *page)
{
	for (size_t i = 0; i < page->nsecrets; i++) {
		const struct sealed_secret *s = &page->secrets[i];
		struct key_version *v = version_of(j, s->sealed.key_version);
		int r = seal_check(j->in, s);

		if (r == E_NOMEM || v == NULL || add_project(j, v, s->project_id) < 0)
			return E_NOMEM;
		v->secrets++;
		if (r < 0)
			j->closed++;
		else if (v->version < vault_keys_current(j->in->keys))
			j->old++;
	}
	return 0;
}

/* ---- the answer ---- */

static int
by_version(const void *a, const void *b)
{
	const struct key_version *x = a, *y = b;

	return (x->version > y->version) - (x->version < y->version);
}

static void
sum_up(const struct job *j, struct ingress_keys_status_status *ret)
{
	const struct vault_keys *keys = j->in->keys;

	for (size_t i = 0; i < j->nversions; i++)
		j->versions[i].present = keys != NULL &&
		    vault_keys_have(keys, j->versions[i].version);
	ret->has_current = keys != NULL;
	ret->current = keys != NULL ? vault_keys_current(keys) : 0;
	ret->versions = j->versions;
	ret->nversions = j->nversions;
	ret->resealed = reseal_count(j->in->reseal);
	ret->resealing = j->old > 0;
	ret->failed = j->closed;
	ret->silent_shards = j->silent;
	ret->nsilent_shards = j->nsilent;
	ret->has_silent_shards = 1;
	ret->shards_silent = (int64_t)j->nsilent;
	/* A project that changed its shard meanwhile may have been met by none of the two. */
	if (j->moving || j->moves != j->in->moves)
		ret->shards_silent = max_i64(ret->shards_silent, 1);
}

static void
finish(struct job *j)
{
	struct ingress_keys_status_result res = { .kind = INGRESS_KEYS_STATUS_STATUS };
	const struct vault_keys *keys = j->in->keys;

	/* Those that are in the file, too. */
	for (size_t i = 0; keys != NULL && i < vault_keys_count(keys); i++)
		if (version_of(j, vault_keys_version(keys, i)) == NULL)
			j->no_memory = 1;
	if (j->nversions > 0)
		qsort(j->versions, j->nversions, sizeof(*j->versions), by_version);
	if (j->no_memory) {
		parked_error(j->parked, E_NOMEM, NULL);
	} else {
		sum_up(j, &res.u.status);
		parked_reply(j->parked, &res);
	}
	(void)arena_free(j->arena);
	free(j);
}

/* ---- asking ---- */

static void
leave(struct look *l, int is_silent)
{
	struct job *j = l->job;

	if (is_silent)
		j->silent[j->nsilent++] = l->shard;
	if (--j->nlooks == 0)
		finish(j);
}

static void ask(struct look *l);

static void
on_page(void *arg, int err, const struct project_list_sealed_result *res)
{
	struct look *l = arg;

	if (err < 0) {
		leave(l, 1);
		return;
	}
	l->job->moving |= res->u.page.moving > 0;
	if (count_page(l->job, &res->u.page) < 0)
		l->job->no_memory = 1;
	if (res->u.page.next == NULL || l->job->no_memory) {
		leave(l, 0);
		return;
	}
	(void)snprintf(l->cursor, sizeof(l->cursor), "%s", res->u.page.next);
	ask(l);
}

static void
ask(struct look *l)
{
	struct project_list_sealed_params p = { .below_version = ALL_VERSIONS,
		.cursor = l->cursor[0] != '\0' ? l->cursor : NULL,
		.limit = LOOK_PAGE };
	struct rpc_call_opts opts = { .deadline_ms = mono_diff_ms(
					  clock_mono(), l->job->until) };
	struct rpc_peer *peer = links_shard(l->job->in, l->shard);

	if (peer == NULL || opts.deadline_ms <= 0 ||
	    project_list_sealed_call(peer, &opts, &p, on_page, l) < 0)
		leave(l, 1);
}

static struct job *
job_new(struct ingress *in)
{
	struct job *j = mem_calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->in = in;
	j->nlooks = in->nshards;
	j->moves = in->moves;
	j->until = mono_add_ms(clock_mono(), LOOK_MS);
	j->arena = arena_new();
	return j->arena != NULL ? j : mem_free(j);
}

int
ingress_keys_status(struct ingress *in, struct turn *t,
    const struct ingress_keys_status_params *params, struct ingress_keys_status_result *ret)
{
	struct job *j = job_new(in);
	struct look *looks = j != NULL ? arena_calloc(j->arena, in->nshards, sizeof(*looks))
				       : NULL;

	(void)params;
	(void)ret;
	if (j != NULL)
		j->silent = arena_calloc(j->arena, in->nshards, sizeof(*j->silent));
	if (looks == NULL || j->silent == NULL || (j->parked = turn_park(t)) == NULL) {
		if (j != NULL)
			(void)arena_free(j->arena);
		mem_free(j);
		return E_NOMEM;
	}
	for (size_t i = 0, n = in->nshards; i < n; i++) {
		looks[i].job = j;
		looks[i].shard = (int64_t)i;
		ask(&looks[i]);
	}
	return TURN_PARKED;
}
