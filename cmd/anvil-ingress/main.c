/* cmd/anvil-ingress/main.c -- the HTTP edge: authentication, routing, accounts, and the index of
 * projects and runs.  Opens ingress.db and nothing else. */
#include <stdio.h>

#include "cmd/anvil-ingress/check.h"
#include "cmd/anvil-ingress/exchange.h"
#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/hook_refusal.h"
#include "cmd/anvil-ingress/hub.h"
#include "cmd/anvil-ingress/ingress.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "gen/ingress_methods.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

static const struct proc_option options[] = {
	{ "--listen-fds", "N", "listening sockets, from descriptor 5 on", 0 },
	{ "--keys-socket", NULL, "newer keys come over the descriptor after those", 0 },
};
static const struct proc_role role = { "anvil-ingress", "the HTTP edge of anvil", options,
	ARRAY_LEN(options), 0 };

static void
inspect(void *ctx, struct buf *out)
{
	const struct ingress *in = ctx;
	struct http_counters n;
	struct rebuild_view view;

	http_server_counters(in->http, &n);
	rebuild_look(in->rebuild, &view);
	buf_printf(out,
	    "{\"connections\":%zu,\"requests\":%llu,\"inFlight\":%zu,\"malformed\":%llu,"
	    "\"timeouts\":%llu,\"cut\":%llu,\"exchanges\":%zu,\"shards\":%zu,\"keys\":%zu,"
	    "\"webhooksCached\":%zu,\"webhookBodyBytes\":%zu,\"webhookRefusals\":%zu,"
	    "\"runsWatched\":%zu,\"viewers\":%zu,\"indexMayLack\":%s,\"indexRebuild\":%s}",
	    n.open, (unsigned long long)n.requests, n.in_flight,
	    (unsigned long long)n.malformed, (unsigned long long)n.timeouts,
	    (unsigned long long)n.cut, in->nexchanges, in->nshards,
	    in->keys != NULL ? vault_keys_count(in->keys) : 0, hook_cache_count(in->hook_cache),
	    in->hook_kept_bytes, hook_refusals_count(in->hook_refusals), map_count(in->hubs),
	    hub_count_viewers(in), rebuild_may_lack(in->rebuild) ? "true" : "false",
	    view.running ? "true" : "false");
}

static void
doing(void *ctx, char *out, size_t size)
{
	const struct ingress *in = ctx;

	struct rebuild_view view;

	rebuild_look(in->rebuild, &view);
	if (view.running)
		(void)snprintf(out, size, "filling the index, %zu of %zu shards read",
		    view.nread, in->nshards);
	else if (in->nexchanges > 0)
		(void)snprintf(out, size, "serving %zu requests", in->nexchanges);
}

static void
on_stopped(void *arg, struct http_server *s)
{
	const struct ingress *in = arg;

	(void)s;
	hook_refusals_flush(in->hook_refusals);
	actor_drained(in->actor);
}

/* No new connections; requests that are here get their answers. */
static void
on_drain(void *ctx)
{
	struct ingress *in = ctx;
	struct exchange *x, *next;

	http_server_stop(in->http, on_stopped, in);
	for (x = LIST_FIRST(&in->exchanges); x != NULL; x = next) {
		next = LIST_NEXT(x, entry);
		if (x->stop != NULL && !x->answered)
			x->stop(x);
	}
}

static void
on_end(void *ctx)
{
	(void)ingress_free(ctx);
}

static const struct rule_ctx *
rules(void *ctx)
{
	return &((const struct ingress *)ctx)->rules;
}

static const struct actor_desc desc = { .role = ROLE_INGRESS,
	.methods = ingress_methods,
	.nmethods = &ingress_methods_count,
	.document = ingress_document,
	.store = &index_store,
	.nworkers = 1,
	.inspect = inspect,
	.rules = rules,
	.doing = doing,
	.checks = &ingress_checks,
	.on_drain = on_drain,
	.on_end = on_end };

static struct config *
read_config(struct proc *p)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct config *c = NULL;
	enum log_level level;

	if (json_text_dump(&text, proc_config(p)) < 0 ||
	    config_from_json((const char *)text.data, text.len, &c) < 0)
		proc_die(p, "bad configuration");
	if (log_level_parse(c->log_level, &level) == 0)
		log_set_level(level);
	return c;
}

static int
check(const struct actor_place *place)
{
	const struct actor_store_check what = { .program = "anvil-ingress",
		.store = place->address,
		.path = place->store_path,
		.lock_path = place->lock_path,
		.more = "",
		.look = index_inspect };

	return actor_check_store(&what);
}

int
main(int argc, char *argv[])
{
	struct proc *p = proc_start(&role, argc, argv);
	struct config *c = read_config(p);
	CLEANUP_FREE char *store = mem_format("%s/ingress.db", c->data_dir);
	CLEANUP_FREE char *lock = mem_format("%s/ingress.db.lock", c->data_dir);
	struct actor_place place = { .address = "ingress",
		.runtime_dir = c->runtime_dir,
		.lock_path = lock,
		.store_path = store };
	size_t nlisten = (size_t)proc_option_int(p, "--listen-fds", 0, 64, 0);
	int keys_fd = proc_option(p, "--keys-socket") != NULL ? PROC_FD_FIRST + (int)nlisten
							      : -1;
	struct ingress *in;

	if (store == NULL || lock == NULL)
		proc_die(p, "out of memory");
	if (proc_wants_check(p)) {
		(void)config_free(c);
		(void)proc_free(p);
		return check(&place);
	}
	in = ingress_new(p, c, nlisten, keys_fd);
	if (in == NULL)
		proc_die(p, "out of memory");
	proc_forget_start(p);
	ingress_set_actor(in, proc_actor(p, &desc, &place, in->config->data_dir));
	if (ingress_begin(in) < 0)
		proc_die(p, "cannot listen, or out of memory");
	return proc_run(p, in);
}
