/* lib/actor/builtin.c -- what every actor answers: the handlers of proto/actor.json. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/actor_methods.h"
#include "lib/actor/inside.h"
#include "lib/actor/worker.h"
#include "lib/base/err.h"
#include "lib/base/io.h"
#include "lib/base/log.h"

#define ROLE_ANY (ROLE_SUPERVISOR | ROLE_INGRESS | ROLE_PROJECT | ROLE_RUN | ROLE_CTL)

static int64_t
rss_bytes(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	long long pages = 0;

	if (io_read_file(AT_FDCWD, "/proc/self/statm", 4096, &b) < 0 || buf_cstr(&b) == NULL ||
	    sscanf((const char *)b.data, "%*d %lld", &pages) != 1)
		return 0;
	return pages * sysconf(_SC_PAGESIZE);
}

static int64_t
in_flight(const struct actor *a)
{
	const struct conn *c;
	struct rpc_peer_stats stats;
	int64_t n = 0;

	LIST_FOREACH (c, &a->conns, entry) {
		rpc_peer_stats(c->peer, &stats);
		n += (int64_t)stats.calls_in;
	}
	return n;
}

int
actor_info(struct actor *a, struct turn *t, const struct actor_info_params *params,
    struct actor_info_result *ret)
{
	char doing[256] = "";

	(void)params;
	if (a->outage != NULL)
		(void)snprintf(doing, sizeof(doing), "cannot serve: %s", actor_outage(a));
	else if (a->desc->doing != NULL)
		a->desc->doing(a->ctx, doing, sizeof(doing));
	ret->address = a->address;
	ret->pid = getpid();
	ret->version = base_version();
	ret->protocol = RPC_PROTOCOL;
	ret->started_at = a->started_ms;
	ret->uptime_ms = mono_diff_ms(a->started, clock_mono());
	ret->rss_bytes = rss_bytes();
	if (a->store != NULL) {
		ret->has_store_bytes = ret->has_wal_bytes = 1;
		store_sizes(a->store, &ret->store_bytes, &ret->wal_bytes);
	}
	ret->connections = (int64_t)a->nconns;
	ret->in_flight = in_flight(a) - 1; /* this one aside */
	ret->draining = a->draining;
	ret->doing = arena_strdup(t->arena, doing);
	return ret->doing != NULL ? 0 : E_NOMEM;
}

static int
list_methods(const struct actor *a, struct arena *arena, struct actor_stats_result *ret)
{
	struct method_stats *rows = arena_calloc(arena, map_count(a->methods), sizeof(*rows));
	const char *name;
	void *value;
	size_t n = 0;

	if (rows == NULL)
		return E_NOMEM;
	for (size_t at = 0; map_next(a->methods, &at, &name, &value);) {
		const struct method_entry *m = value;

		if (m->count == 0)
			continue;
		rows[n++] = (struct method_stats) { .name = name,
			.count = (int64_t)m->count,
			.errors = (int64_t)m->errors,
			.p50_us = method_percentile(m, 50),
			.p99_us = method_percentile(m, 99) };
	}
	ret->methods = rows;
	ret->nmethods = n;
	return 0;
}

static void
peer_row(struct peer_stats *row, const struct rpc_peer *p)
{
	struct rpc_peer_stats s;

	rpc_peer_stats(p, &s);
	*row = (struct peer_stats) { .address = rpc_peer_address(p),
		.role = rpc_role_name(rpc_peer_role(p)),
		.pid = rpc_peer_pid(p),
		.calls_in = (int64_t)s.calls_in,
		.calls_out = (int64_t)s.calls_out,
		.queued_bytes = (int64_t)s.queued_bytes,
		.frames_in = (int64_t)s.frames_in,
		.frames_out = (int64_t)s.frames_out };
}

static int
list_peers(const struct actor *a, struct arena *arena, struct actor_stats_result *ret)
{
	const struct out_link *o;
	const struct conn *c;
	struct peer_stats *rows;
	size_t n = a->nconns;

	LIST_FOREACH (o, &a->links, entry)
		n++;
	rows = arena_calloc(arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	n = 0;
	LIST_FOREACH (c, &a->conns, entry)
		peer_row(&rows[n++], c->peer);
	LIST_FOREACH (o, &a->links, entry)
		if (link_peer(o->link) != NULL)
			peer_row(&rows[n++], link_peer(o->link));
	ret->peers = rows;
	ret->npeers = n;
	return 0;
}

int
actor_stats(struct actor *a, struct turn *t, const struct actor_stats_params *params,
    struct actor_stats_result *ret)
{
	int r = list_methods(a, t->arena, ret);

	(void)params;
	if (r == 0)
		r = list_peers(a, t->arena, ret);
	ret->commits = (int64_t)a->ncommits;
	ret->turns = (int64_t)a->ncommitted;
	ret->batches_lost = (int64_t)a->nlost;
	ret->work_waiting = (int64_t)actor_nwork(a);
	return r;
}

int
actor_inspect(struct actor *a, struct turn *t, const struct actor_inspect_params *params,
    struct actor_inspect_result *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	(void)params;
	if (a->desc->inspect != NULL)
		a->desc->inspect(a->ctx, &text);
	else
		buf_add_str(&text, "{}");
	if (buf_cstr(&text) == NULL)
		return E_NOMEM;
	ret->state_text = arena_strdup(t->arena, (const char *)text.data);
	return ret->state_text != NULL ? 0 : E_NOMEM;
}

int
actor_set_log_level(struct actor *a, struct turn *t,
    const struct actor_set_log_level_params *params, struct actor_set_log_level_result *ret)
{
	enum log_level level;
	int r = log_level_parse(log_level_word_name(params->level), &level);

	(void)a;
	(void)t;
	if (r < 0)
		return r;
	log_set_level(level);
	ret->kind = ACTOR_SET_LOG_LEVEL_OK;
	return 0;
}

int
actor_peers(struct actor *a, struct turn *t, const struct actor_peers_params *params)
{
	struct map *fresh = map_new();

	(void)t;
	if (fresh == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < params->npeers; i++) {
		if (map_set(fresh, params->peers[i].address,
			(void *)(intptr_t)params->peers[i].pid) < 0) {
			(void)map_free(fresh);
			return E_NOMEM;
		}
	}
	(void)map_free(a->announced);
	a->announced = fresh;
	/* Who was refused as unknown a moment ago may be known now. */
	for (const struct out_link *o = LIST_FIRST(&a->links); o != NULL;
	     o = LIST_NEXT(o, entry))
		if (link_error(o->link) == E_PEER)
			link_retry(o->link);
	return 0;
}

/* ---- rpc.discover ---- */

struct discover_result {
	struct buf text; /* Freed by the encoder. */
};

static int
discover_decode(struct codec *c, const json_t *params, void *ret)
{
	(void)c;
	(void)ret;
	return json_object_size(params) == 0 ? 0 : E_PARAMS;
}

static int
discover_run(void *ctx, struct turn *t, const void *params, void *ret)
{
	struct discover_result *result = ret;
	const struct actor *a = ctx;

	(void)t;
	(void)params;
	/* A program's document has the methods of every actor as well. */
	return buf_add_str(
	    &result->text, a->desc->document != NULL ? a->desc->document() : actor_document());
}

static int
discover_encode(struct buf *out, const void *ret)
{
	struct buf text = ((const struct discover_result *)ret)->text;

	(void)buf_add(out, text.data, text.len);
	out->failed |= text.failed;
	buf_done(&text);
	return out->failed ? E_NOMEM : 0;
}

static const struct rpc_method discover_method[] = {
	{ .name = "rpc.discover",
	    .from = ROLE_ANY,
	    .turn = RPC_TURN_NONE,
	    .params_size = 1,
	    .result_size = sizeof(struct discover_result),
	    .decode = discover_decode,
	    .run = discover_run,
	    .encode = discover_encode },
};

int
builtin_add(struct actor *a)
{
	int r = methods_add(a, actor_methods, actor_methods_count, 1);

	return r < 0 ? r : methods_add(a, discover_method, ARRAY_LEN(discover_method), 1);
}
