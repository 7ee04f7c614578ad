#include "cmd/anvil-ingress/reseal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/seal.h"
#include "gen/project.h"
#include "lib/base/crash.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#define CURSOR_SIZE 129 /* Of the contract, and a NUL. */

/* A secret that did not open and has been told of. */
struct told {
	unsigned walk; /* The newest that met it. */
	int64_t key_version;
};

/* One shard. */
struct walk {
	struct reseal *owner;
	int64_t shard;
	struct actor_timer *timer; /* Of the next walk, or of the next page. */
	int active;                /* Between begin() and its end.           */
	int in_flight;             /* The shard owes an answer.              */
	int again;                 /* Asked for meanwhile.                   */
	/* Of the walk. */
	unsigned number;
	int64_t version; /* That is sealed under.                  */
	struct arena *page;
	struct sealed_secret *rows;
	size_t nrows, at;
	char cursor[CURSOR_SIZE]; /* Of the next page; "": the first.       */
	int has_more;
	int64_t nresealed, nchanged;
	/* Of all walks. */
	struct map *told; /* By table and row: struct told.         */
};

struct reseal {
	struct ingress *in;
	int64_t resealed;
	struct walk walks[SHARDS_MAX]; /* By number of the shard. */
};

/* ---- the beginning and the end of a walk ---- */

static void step(struct walk *w);

static void
begin(struct walk *w)
{
	const struct ingress *in = w->owner->in;

	w->again = 0;
	if (in->keys == NULL || links_shard(in, w->shard) == NULL)
		return; /* Newer keys, or its link, begin it. */
	w->active = 1;
	w->number++;
	w->version = vault_keys_current(in->keys);
	w->nrows = w->at = 0;
	w->cursor[0] = '\0';
	w->has_more = 1;
	w->nresealed = w->nchanged = 0;
	step(w);
}

static void
leave(struct walk *w, int64_t next_ms)
{
	if (w->nresealed > 0)
		log_event(LOG_LEVEL_INFO, "keys_resealed", LOG_INT("version", w->version),
		    LOG_INT("shard", w->shard), LOG_INT("count", w->nresealed));
	w->active = 0;
	arena_reset(w->page);
	(void)actor_timer_set(w->timer, w->again ? 0 : next_ms);
}

/* Rows that this walk has not met open again, or are gone. */
static void
forget_mended(struct walk *w)
{
	const char *key;
	void *value;

	for (size_t at = 0; map_next(w->told, &at, &key, &value);) {
		struct told *t = value;

		if (t->walk != w->number)
			mem_free(map_remove(w->told, key));
	}
}

static void
end(struct walk *w)
{
	forget_mended(w);
	leave(w, w->nchanged > 0 ? RESEAL_AGAIN_MS : RESEAL_EVERY_MS);
}

/* The shard, or this process, is not able now; its rows say later where to go on. */
static void
interrupt(struct walk *w, int err)
{
	int soon = err_retryable(err);

	log_event(soon ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "reseal_interrupted",
	    LOG_INT("shard", w->shard), LOG_STR("errorCode", err_symbol(err)));
	leave(w, soon ? RESEAL_RETRY_MS : RESEAL_EVERY_MS);
}

/* ---- one secret ---- */

static void
tell(struct walk *w, const struct sealed_secret *row, int err)
{
	CLEANUP_FREE char *key = mem_format("%s/%s", row->table, row->row_id);
	struct told *t = key != NULL ? map_get(w->told, key) : NULL;

	if (t == NULL) {
		if (key == NULL || map_count(w->told) >= RESEAL_TOLD_MAX ||
		    (t = mem_calloc(1, sizeof(*t))) == NULL)
			return;
		if (map_set(w->told, key, t) < 0) {
			mem_free(t);
			return;
		}
	}
	if (t->key_version != row->sealed.key_version)
		log_event(LOG_LEVEL_ERROR, "secret_not_opened", LOG_STR("table", row->table),
		    LOG_STR("rowId", row->row_id), LOG_STR("projectId", row->project_id),
		    LOG_INT("keyVersion", row->sealed.key_version),
		    LOG_STR("errorCode", err_symbol(err)));
	t->key_version = row->sealed.key_version;
	t->walk = w->number;
}

static void
on_replaced(void *arg, int err, const struct project_replace_sealed_result *res)
{
	struct walk *w = arg;

	w->in_flight = 0;
	CRASH_POINT("reseal_replaced");
	if (err_retryable(err) || err == E_CORRUPT) {
		interrupt(w, err);
		return;
	}
	if (err < 0) {
		/* The others are not to wait for this one. */
		tell(w, &w->rows[w->at], err);
	} else if (res->kind == PROJECT_REPLACE_SEALED_REPLACED) {
		w->nresealed++;
		w->owner->resealed++;
	} else {
		w->nchanged++;
	}
	w->at++;
	step(w);
}

/* 1: the shard is asked to take it.  0: it does not open.  An error: nothing can be done now. */
static int
reseal_row(struct walk *w, const struct sealed_secret *row)
{
	CLEANUP(vault_sealed_done) struct vault_sealed new = { .ciphertext = NULL };
	struct ingress *in = w->owner->in;
	struct project_replace_sealed_params p = { .table = row->table,
		.row_id = row->row_id,
		.column = row->column,
		.expect_ciphertext = row->sealed.ciphertext };
	struct rpc_call_opts opts = { .deadline_ms = RESEAL_CALL_MS };
	struct rpc_peer *peer = links_shard(in, w->shard);
	int r = peer != NULL ? seal_anew(in, row, &new) : E_LINK;

	if (r == E_NOMEM || r == E_LINK)
		return r;
	if (r < 0) {
		tell(w, row, r);
		return 0;
	}
	p.sealed = (struct sealed_value) { new.ciphertext, new.nonce, new.key_version };
	r = project_replace_sealed_call(peer, &opts, &p, on_replaced, w);
	return r < 0 ? r : 1;
}

/* ---- one page ---- */

static int
copy_page(struct walk *w, const struct project_list_sealed_page *page)
{
	struct sealed_secret *rows;

	arena_reset(w->page);
	w->at = w->nrows = 0;
	rows = arena_calloc(w->page, page->nsecrets, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < page->nsecrets; i++) {
		const struct sealed_secret *from = &page->secrets[i];

		rows[i] = (struct sealed_secret) { .project_id = arena_strdup(
						       w->page, from->project_id),
			.table = arena_strdup(w->page, from->table),
			.row_id = arena_strdup(w->page, from->row_id),
			.column = arena_strdup(w->page, from->column),
			.sealed = { arena_strdup(w->page, from->sealed.ciphertext),
			    arena_strdup(w->page, from->sealed.nonce),
			    from->sealed.key_version } };
		if (rows[i].project_id == NULL || rows[i].table == NULL ||
		    rows[i].row_id == NULL || rows[i].column == NULL ||
		    rows[i].sealed.ciphertext == NULL || rows[i].sealed.nonce == NULL)
			return E_NOMEM;
	}
	w->rows = rows;
	w->nrows = page->nsecrets;
	w->has_more = page->next != NULL;
	/* What is on its way cannot be replaced, or is not met at all. */
	w->nchanged += page->moving;
	(void)snprintf(w->cursor, sizeof(w->cursor), "%s", w->has_more ? page->next : "");
	return 0;
}

static void
on_listed(void *arg, int err, const struct project_list_sealed_result *res)
{
	struct walk *w = arg;

	w->in_flight = 0;
	CRASH_POINT("reseal_listed");
	if (err == 0)
		err = copy_page(w, &res->u.page);
	if (err < 0)
		interrupt(w, err);
	else
		step(w);
}

static void
ask_page(struct walk *w)
{
	struct project_list_sealed_params p = { .below_version = w->version,
		.cursor = w->cursor[0] != '\0' ? w->cursor : NULL,
		.limit = RESEAL_PAGE };
	struct rpc_call_opts opts = { .deadline_ms = RESEAL_CALL_MS };
	struct rpc_peer *peer = links_shard(w->owner->in, w->shard);
	int r = peer != NULL ? project_list_sealed_call(peer, &opts, &p, on_listed, w) : E_LINK;

	if (r < 0)
		interrupt(w, r);
	else
		w->in_flight = 1;
}

/* ---- step by step ---- */

static void
step(struct walk *w)
{
	const struct vault_keys *keys = w->owner->in->keys;
	int r = 0;

	/* What this walk has passed may have been sealed under its version by then. */
	if (w->version != vault_keys_current(keys))
		w->again = 1;
	while (r == 0 && w->at < w->nrows) {
		r = reseal_row(w, &w->rows[w->at]);
		w->at += r == 0;
	}
	if (r < 0)
		interrupt(w, r);
	else if (r == 1)
		w->in_flight = 1;
	else if (!w->has_more)
		end(w);
	else if (w->cursor[0] == '\0')
		ask_page(w);
	else
		(void)actor_timer_set(w->timer, RESEAL_PAUSE_MS);
}

static void
on_timer(void *arg)
{
	struct walk *w = arg;

	must(!w->in_flight);
	if (w->active)
		ask_page(w);
	else
		begin(w);
}

void
reseal_kick(struct reseal *r, int64_t shard)
{
	struct walk *w;

	if (r == NULL || shard < 0 || shard >= SHARDS_MAX)
		return;
	w = &r->walks[shard];
	if (w->active)
		w->again = 1;
	else
		(void)actor_timer_set(w->timer, 0);
}

void
reseal_kick_all(struct reseal *r)
{
	for (size_t i = 0; r != NULL && i < r->in->nshards; i++)
		reseal_kick(r, (int64_t)i);
}

int64_t
reseal_count(const struct reseal *r)
{
	return r->resealed;
}

/* ---- the whole ---- */

struct reseal *
reseal_new(struct ingress *in)
{
	struct reseal *r = mem_calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->in = in;
	for (size_t i = 0; i < ARRAY_LEN(r->walks); i++) {
		struct walk *w = &r->walks[i];

		w->owner = r;
		w->shard = (int64_t)i;
		w->timer = actor_timer_new(in->actor, on_timer, w);
		w->page = arena_new();
		w->told = map_new();
		if (w->timer == NULL || w->page == NULL || w->told == NULL)
			return reseal_free(r);
	}
	return r;
}

static void
walk_done(struct walk *w)
{
	void *value;

	must(!w->in_flight);
	w->timer = actor_timer_free(w->timer);
	w->page = arena_free(w->page);
	for (size_t at = 0; w->told != NULL && map_next(w->told, &at, NULL, &value);)
		mem_free(value);
	w->told = map_free(w->told);
}

struct reseal *
reseal_free(struct reseal *r)
{
	if (r == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(r->walks); i++)
		walk_done(&r->walks[i]);
	free(r);
	return NULL;
}
