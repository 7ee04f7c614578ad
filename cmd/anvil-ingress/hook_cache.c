#include "cmd/anvil-ingress/hook_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "gen/project.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct hook_cache {
	struct ingress *in;
	struct map *entries;                          /* By key.                 */
	TAILQ_HEAD(hook_order, hook_material) oldest; /* The oldest comes first. */
	struct map *loads; /* By key, those that newcomers may join.             */
	size_t nloads;     /* All that are under way.                            */
};

/* One question to a shard. */
struct hook_load {
	struct hook_cache *cache;
	char key[HOOK_CACHE_KEY_SIZE];
	char project_id[ID_SIZE];
	enum provider provider;
	char request_id[RPC_REQUEST_ID_SIZE];
	struct mono_time until;
	int outdated; /* The answer may be older than a change: nobody keeps it. */
	struct shard_call call;
	LIST_HEAD(, hook_wait) waits;
};

static void
make_key(char key[HOOK_CACHE_KEY_SIZE], const char *project_id, enum provider provider)
{
	(void)snprintf(key, HOOK_CACHE_KEY_SIZE, "%.*s %c", ID_SIZE - 1, project_id,
	    (char)('0' + (int)provider));
}

/* ---- material ---- */

struct hook_material *
hook_material_new(const char *project_id, enum provider provider, int64_t shard,
    const struct webhook_get_verification_found *f)
{
	const char *instance = f->config != NULL ? f->config->instance_url : NULL;
	size_t nrepo = strlen(f->repo_url) + 1, nbranch = strlen(f->default_branch) + 1,
	       ninstance = instance != NULL ? strlen(instance) + 1 : 0;
	struct hook_material *m = mem_calloc(1, sizeof(*m) + nrepo + nbranch + ninstance);
	char *texts;

	if (m == NULL)
		return NULL;
	texts = (char *)(m + 1);
	m->refs = 1;
	m->provider = provider;
	m->shard = shard;
	m->version = f->version;
	(void)snprintf(m->project_id, sizeof(m->project_id), "%s", project_id);
	(void)snprintf(m->webhook_id, sizeof(m->webhook_id), "%s", f->webhook_id);
	m->repo_url = memcpy(texts, f->repo_url, nrepo);
	m->default_branch = memcpy(texts + nrepo, f->default_branch, nbranch);
	if (instance != NULL)
		m->instance_url = memcpy(texts + nrepo + nbranch, instance, ninstance);
	(void)snprintf(m->secret.nonce, sizeof(m->secret.nonce), "%s", f->sealed_secret.nonce);
	m->secret.key_version = f->sealed_secret.key_version;
	m->secret.ciphertext = mem_strdup(f->sealed_secret.ciphertext);
	m->loaded = clock_mono();
	return m->secret.ciphertext != NULL ? m : hook_material_unref(m);
}

struct hook_material *
hook_material_ref(struct hook_material *m)
{
	m->refs++;
	return m;
}

struct hook_material *
hook_material_unref(struct hook_material *m)
{
	if (m == NULL || --m->refs > 0)
		return NULL;
	must(!m->cached);
	vault_sealed_done(&m->secret);
	free(m);
	return NULL;
}

/* ---- what is kept ---- */

struct hook_cache *
hook_cache_new(struct ingress *in)
{
	struct hook_cache *c = mem_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->in = in;
	TAILQ_INIT(&c->oldest);
	c->entries = map_new();
	c->loads = map_new();
	return c->entries != NULL && c->loads != NULL ? c : hook_cache_free(c);
}

static void
drop(struct hook_cache *c, struct hook_material *m)
{
	char key[HOOK_CACHE_KEY_SIZE];

	make_key(key, m->project_id, m->provider);
	(void)map_remove(c->entries, key);
	TAILQ_REMOVE(&c->oldest, m, entry);
	m->cached = 0;
	(void)hook_material_unref(m);
}

struct hook_cache *
hook_cache_free(struct hook_cache *c)
{
	if (c == NULL)
		return NULL;
	must(c->nloads == 0);
	while (!TAILQ_EMPTY(&c->oldest))
		drop(c, TAILQ_FIRST(&c->oldest));
	c->entries = map_free(c->entries);
	c->loads = map_free(c->loads);
	free(c);
	return NULL;
}

static int
is_old(const struct hook_material *m, struct mono_time now)
{
	return mono_diff_ms(m->loaded, now) >= HOOK_CACHE_MS;
}

struct hook_material *
hook_cache_find(
    struct hook_cache *c, const char *project_id, enum provider provider, struct mono_time now)
{
	char key[HOOK_CACHE_KEY_SIZE];
	struct hook_material *m;

	make_key(key, project_id, provider);
	m = map_get(c->entries, key);
	if (m != NULL && is_old(m, now)) {
		drop(c, m);
		return NULL;
	}
	return m;
}

void
hook_cache_put(struct hook_cache *c, struct hook_material *m)
{
	char key[HOOK_CACHE_KEY_SIZE];
	struct hook_material *old;

	make_key(key, m->project_id, m->provider);
	old = map_get(c->entries, key);
	if (old != NULL)
		drop(c, old);
	/* All live equally long, so that those in front are the first to be over. */
	while (!TAILQ_EMPTY(&c->oldest) &&
	    (map_count(c->entries) >= HOOK_CACHE_ENTRIES ||
		is_old(TAILQ_FIRST(&c->oldest), m->loaded)))
		drop(c, TAILQ_FIRST(&c->oldest));
	if (map_set(c->entries, key, m) < 0)
		return;
	m->cached = 1;
	(void)hook_material_ref(m);
	TAILQ_INSERT_TAIL(&c->oldest, m, entry);
}

void
hook_cache_drop(struct hook_cache *c, const char *project_id, enum provider provider)
{
	char key[HOOK_CACHE_KEY_SIZE];
	struct hook_material *m;
	struct hook_load *l;

	make_key(key, project_id, provider);
	m = map_get(c->entries, key);
	if (m != NULL)
		drop(c, m);
	l = map_remove(c->loads, key);
	if (l != NULL)
		l->outdated = 1;
}

void
hook_cache_drop_project(struct hook_cache *c, const char *project_id)
{
	for (int i = 0; i < PROVIDER_COUNT; i++)
		hook_cache_drop(c, project_id, (enum provider)i);
}

void
hook_cache_drop_shard(struct hook_cache *c, int64_t shard)
{
	struct hook_material *m, *next;

	for (m = TAILQ_FIRST(&c->oldest); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->shard == shard)
			drop(c, m);
	}
}

size_t
hook_cache_count(const struct hook_cache *c)
{
	return map_count(c->entries);
}

/* ---- asking ---- */

static struct hook_load *
load_of(struct shard_call *call)
{
	return CONTAINER_OF(call, struct hook_load, call);
}

/* Tells all who wait; they may ask anew at once. */
static void
finish(struct hook_load *l, enum hook_found v, struct hook_material *m, enum http_code why)
{
	struct hook_cache *c = l->cache;
	struct hook_wait *w;

	if (!l->outdated)
		(void)map_remove(c->loads, l->key);
	if (m != NULL && !l->outdated)
		hook_cache_put(c, m);
	while ((w = LIST_FIRST(&l->waits)) != NULL) {
		hook_wait_cancel(w);
		w->why = why;
		w->done(w, v, m);
	}
	c->nloads--;
	free(l);
}

static void
on_found(struct hook_load *l, const struct webhook_get_verification_found *found)
{
	CLEANUP(hook_material_unrefp)
	struct hook_material *m = hook_material_new(
	    l->project_id, l->provider, l->call.shard, found);

	if (m == NULL)
		finish(l, HOOK_UNKNOWN, NULL, HTTP_CODE_OVERLOADED);
	else
		finish(l, HOOK_FOUND, m, HTTP_CODE_INTERNAL_ERROR);
}

static void
on_answer(void *arg, int err, const struct webhook_get_verification_result *res)
{
	struct hook_load *l = arg;

	if (err < 0) {
		shard_call_error(&l->call, err);
		return;
	}
	switch (res->kind) {
	case WEBHOOK_GET_VERIFICATION_MOVED:
		shard_call_moved(&l->call, res->u.moved.shard);
		return;
	case WEBHOOK_GET_VERIFICATION_MOVING:
		shard_call_moving(&l->call, res->u.moving.retry_ms);
		return;
	default: break;
	}
	shard_call_done(&l->call);
	if (res->kind == WEBHOOK_GET_VERIFICATION_FOUND)
		on_found(l, &res->u.found);
	else
		finish(l, HOOK_ABSENT, NULL, HTTP_CODE_WEBHOOK_NOT_FOUND);
}

static int
send(struct shard_call *call, struct rpc_peer *peer, const struct rpc_call_opts *opts)
{
	struct hook_load *l = load_of(call);
	struct webhook_get_verification_params p = { .project_id = l->project_id,
		.provider = l->provider };

	return webhook_get_verification_call(peer, opts, &p, on_answer, l);
}

static void
failed(struct shard_call *call, enum http_code why, int sent)
{
	(void)sent;
	finish(load_of(call), HOOK_UNKNOWN, NULL, why);
}

static void
give_up(struct hook_wait *w, enum http_code why)
{
	w->why = why;
	w->done(w, HOOK_UNKNOWN, NULL);
}

static void
wait_for(struct hook_load *l, struct hook_wait *w)
{
	w->load = l;
	LIST_INSERT_HEAD(&l->waits, w, entry);
}

/* Newcomers may join it.  NULL: no memory. */
static struct hook_load *
load_new(struct hook_cache *c, const char *key, const char *project_id, enum provider provider,
    const char *request_id)
{
	struct hook_load *l = mem_calloc(1, sizeof(*l));

	if (l == NULL || map_set(c->loads, key, l) < 0)
		return mem_free(l);
	c->nloads++;
	l->cache = c;
	l->provider = provider;
	(void)snprintf(l->key, sizeof(l->key), "%s", key);
	(void)snprintf(l->project_id, sizeof(l->project_id), "%s", project_id);
	(void)snprintf(l->request_id, sizeof(l->request_id), "%s", request_id);
	LIST_INIT(&l->waits);
	return l;
}

void
hook_cache_load(struct hook_cache *c, struct hook_wait *w, const char *project_id,
    enum provider provider, int64_t shard, int64_t deadline_ms, const char *request_id)
{
	struct mono_time until = mono_add_ms(clock_mono(), deadline_ms);
	char key[HOOK_CACHE_KEY_SIZE];
	struct hook_load *l;

	must(w->load == NULL);
	make_key(key, project_id, provider);
	l = map_get(c->loads, key);
	if (l != NULL && l->until.us > until.us) {
		/* It may take longer than this one can wait. */
		give_up(w, HTTP_CODE_SHARD_UNAVAILABLE);
		return;
	}
	if (l != NULL) {
		wait_for(l, w);
		return;
	}
	l = load_new(c, key, project_id, provider, request_id);
	if (l == NULL) {
		give_up(w, HTTP_CODE_OVERLOADED);
		return;
	}
	l->until = until;
	wait_for(l, w);
	l->call = (struct shard_call) { .in = c->in,
		.shard = shard,
		.deadline_ms = deadline_ms,
		.repeats = 1,
		.request_id = l->request_id,
		.send = send,
		.failed = failed };
	shard_call_start(&l->call);
}

void
hook_wait_cancel(struct hook_wait *w)
{
	if (w->load == NULL)
		return;
	LIST_REMOVE(w, entry);
	w->load = NULL;
}
