#include "test/support/index_rig.h"

#include <stdlib.h>

#include "gen/types.h"
#include "lib/base/mem.h"
#include "test/support/scratch.h"
#include "test/support/unit.h"

int
index_rig_setup(void **state)
{
	struct index_rig *g = calloc(1, sizeof(*g));
	CLEANUP_FREE char *path = NULL;
	char *why = NULL;

	assert_non_null(g);
	g->dir = scratch_new();
	path = mem_format("%s/ingress.db", g->dir);
	g->a = arena_new();
	assert_non_null(g->a);
	assert_int_equal(store_open(&index_store, path, &g->s, &why), 0);
	assert_int_equal(store_begin(g->s), 0);
	*state = g;
	return 0;
}

int
index_rig_teardown(void **state)
{
	struct index_rig *g = *state;

	store_rollback(g->s);
	g->s = store_close(g->s);
	g->a = arena_free(g->a);
	scratch_free(g->dir);
	free(g);
	return 0;
}

const char *
index_rig_id(const struct index_rig *g, const char *prefix, int n)
{
	return arena_format(g->a, "%s%022d", prefix, n);
}

const char *
index_rig_hash(const struct index_rig *g, int n)
{
	return arena_format(g->a, "%064d", n);
}

struct index_user
index_rig_user(const struct index_rig *g, int n)
{
	return (struct index_user) { .id = index_rig_id(g, "usr_", n),
		.slug = arena_format(g->a, "user-%d", n),
		.email = arena_format(g->a, "user%d@example.com", n),
		.display_name = arena_format(g->a, "User %d", n),
		.created_at = INDEX_RIG_NOW + n };
}

struct index_project
index_rig_project(const struct index_rig *g, int n, int owner)
{
	return (struct index_project) { .id = index_rig_id(g, "prj_", n),
		.owner_user_id = index_rig_id(g, "usr_", owner),
		.owner_slug = arena_format(g->a, "user-%d", owner),
		.slug = arena_format(g->a, "project-%d", n),
		.name = arena_format(g->a, "Project %d", n),
		.repo_url = "https://example.com/a/b",
		.default_branch = "main",
		.config_path = ".anvil.yml",
		.confirmed = 1,
		.created_at = INDEX_RIG_NOW + n,
		.updated_at = INDEX_RIG_NOW + n };
}

struct index_run
index_rig_run(const struct index_rig *g, int n, int project)
{
	return (struct index_run) { .id = index_rig_id(g, "run_", n),
		.project_id = index_rig_id(g, "prj_", project),
		.trigger_type = "manual",
		.triggered_by_user_id = index_rig_id(g, "usr_", 1),
		.branch = "main",
		.status = "queued",
		.rev = 1,
		.queued_at = INDEX_RIG_NOW + n };
}

void
index_rig_add_user(struct index_rig *g, int n)
{
	struct index_user u = index_rig_user(g, n);
	const char *taken = NULL;

	assert_int_equal(index_user_add(g->s, &u, "hash", &taken), 0);
}

void
index_rig_add_project(struct index_rig *g, int n, int owner)
{
	struct index_project p = index_rig_project(g, n, owner);

	assert_int_equal(index_project_add(g->s, &p), 0);
}
