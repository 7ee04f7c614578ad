/*
 * cmd/anvil-ingress/hook_cache.h -- verification material of webhooks, kept for a moment
 * (webhooks 8).
 *
 * Secrets stay sealed in it.  Absence is not kept.  Nothing rests on it but speed: what is out of
 * date is found out by the shard when a delivery is recorded.
 */
#ifndef CMD_ANVIL_INGRESS_HOOK_CACHE_H
#define CMD_ANVIL_INGRESS_HOOK_CACHE_H

#include <sys/queue.h>

#include "cmd/anvil-ingress/ingress.h"
#include "gen/http.h"
#include "gen/types.h"
#include "lib/base/id.h"

#define HOOK_CACHE_ENTRIES  10000
#define HOOK_CACHE_MS       60000
#define HOOK_CACHE_KEY_SIZE (ID_SIZE + 2) /* project id, space, digit of the provider */

struct hook_load;

/* What a delivery is verified against.  Never changes once it is made. */
struct hook_material {
	size_t refs;
	char project_id[ID_SIZE];
	enum provider provider;
	int64_t shard; /* It is from there. */
	char webhook_id[ID_SIZE];
	int64_t version;
	struct vault_sealed secret; /* Owned. */
	const char *instance_url;   /* NULL: none is configured. */
	const char *repo_url, *default_branch;
	struct mono_time loaded;
	/* Of the cache. */
	TAILQ_ENTRY(hook_material) entry;
	int cached;
};

struct webhook_get_verification_found;

/* A copy of what a shard says, with one reference.  NULL: no memory. */
struct hook_material *hook_material_new(const char *project_id, enum provider provider,
    int64_t shard, const struct webhook_get_verification_found *found);
struct hook_material *hook_material_ref(struct hook_material *m);
struct hook_material *hook_material_unref(struct hook_material *m);
DEFINE_CLEANUP(struct hook_material *, hook_material_unref)

struct hook_cache;

/* NULL: no memory. */
struct hook_cache *hook_cache_new(struct ingress *in);
/* No load is under way any more. */
struct hook_cache *hook_cache_free(struct hook_cache *c);

/* Borrowed; NULL: it is not there, or too old by ${now}. */
struct hook_material *hook_cache_find(
    struct hook_cache *c, const char *project_id, enum provider provider, struct mono_time now);
/* Keeps its own reference; an earlier one of that webhook, and the oldest when it is full, go. */
void hook_cache_put(struct hook_cache *c, struct hook_material *m);
/* What is kept of that webhook, and what is on its way, is out of date. */
void hook_cache_drop(struct hook_cache *c, const char *project_id, enum provider provider);
/* Every webhook of that project. */
void hook_cache_drop_project(struct hook_cache *c, const char *project_id);
/* Everything that came from that shard: its notifications may have got lost. */
void hook_cache_drop_shard(struct hook_cache *c, int64_t shard);
size_t hook_cache_count(const struct hook_cache *c);

enum hook_found {
	HOOK_FOUND,
	HOOK_ABSENT, /* There is none, or it is disabled.  */
	HOOK_UNKNOWN /* No answer of the shard; `why`.     */
};

/* One who waits for material, embedded in what wants it. */
struct hook_wait {
	/* Filled by the owner.  ${m}: of HOOK_FOUND, borrowed until it returns. */
	void (*done)(struct hook_wait *w, enum hook_found v, struct hook_material *m);
	enum http_code why; /* Of HOOK_UNKNOWN. */
	/* Private. */
	LIST_ENTRY(hook_wait) entry;
	struct hook_load *load; /* NULL: it does not wait. */
};

/* Asks the shard, together with others who ask for the same now; `done` runs exactly once, and
 * may run from inside. */
void hook_cache_load(struct hook_cache *c, struct hook_wait *w, const char *project_id,
    enum provider provider, int64_t shard, int64_t deadline_ms, const char *request_id);
/* `done` does not run any more.  Fine when it does not wait. */
void hook_wait_cancel(struct hook_wait *w);

#endif
