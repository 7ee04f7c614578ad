#include "cmd/anvil-ingress/ingress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/anvil-ingress/accepted.h"
#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/exchange.h"
#include "cmd/anvil-ingress/health.h"
#include "cmd/anvil-ingress/hook_cache.h"
#include "cmd/anvil-ingress/hook_refusal.h"
#include "cmd/anvil-ingress/hub.h"
#include "cmd/anvil-ingress/keys.h"
#include "cmd/anvil-ingress/limiter.h"
#include "cmd/anvil-ingress/links.h"
#include "cmd/anvil-ingress/rebuild.h"
#include "cmd/anvil-ingress/reseal.h"
#include "cmd/anvil-ingress/routes.h"
#include "cmd/anvil-ingress/runlink.h"
#include "cmd/anvil-ingress/settle.h"
#include "cmd/anvil-ingress/ui.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

#define FDS_KEPT 256 /* descriptors that are not for clients */

/* Host and port of `http[s]://host[:port][/path]`. */
static void
read_public_url(struct ingress *in, const char *url)
{
	const char *host = strstr(url, "://");

	host = host != NULL ? host + 3 : url;
	in->public_is_https = strncmp(url, "https://", 8) == 0;
	(void)snprintf(
	    in->public_host, sizeof(in->public_host), "%.*s", (int)strcspn(host, "/"), host);
}

struct ingress *
ingress_new(struct proc *p, struct config *config, size_t nlisten, int keys_fd)
{
	struct ingress *in = mem_calloc(1, sizeof(*in));

	if (in == NULL) {
		(void)config_free(config);
		return NULL;
	}
	in->magic = INGRESS_MAGIC;
	in->proc = p;
	in->config = config;
	in->nlisten = nlisten;
	in->keys_fd = keys_fd;
	LIST_INIT(&in->exchanges);
	LIST_INIT(&in->calls);
	in->rules = (struct rule_ctx) { .allow_http = config->repositories_allow_http,
		.allow_private_hosts = config->repositories_allow_private_hosts,
		.allow_local = config->repositories_allow_local };
	read_public_url(in, config->public_url);
	in->limit_login = limiter_new(config->limits_login_per_minute, LIMITER_KEYS_MAX);
	in->limit_accept = limiter_new(
	    config->limits_invite_accept_per_minute, LIMITER_KEYS_MAX);
	in->limit_address = limiter_new(
	    config->limits_public_per_minute_per_address, LIMITER_KEYS_MAX);
	in->runlinks = map_new();
	in->hubs = map_new();
	in->hook_cache = hook_cache_new(in);
	in->document = ui_document(config->public_url, base_version());
	if (in->limit_login == NULL || in->limit_accept == NULL || in->limit_address == NULL ||
	    in->runlinks == NULL || in->hubs == NULL || in->hook_cache == NULL ||
	    in->document == NULL || keys_read_start(in) < 0)
		return ingress_free(in);
	return in;
}

void
ingress_set_actor(struct ingress *in, struct actor *a)
{
	in->actor = a;
}

/* Each client is a descriptor; some are for stores, links and whatever a library opens. */
static size_t
room_for_clients(size_t wanted)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return wanted;
	if (now.rlim_cur < wanted + FDS_KEPT) {
		now.rlim_cur = min_size(now.rlim_max, wanted + FDS_KEPT);
		(void)setrlimit(RLIMIT_NOFILE, &now);
	}
	if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < wanted + FDS_KEPT)
		return now.rlim_cur > 2 * FDS_KEPT ? now.rlim_cur - FDS_KEPT : FDS_KEPT;
	return wanted;
}

static int
listen_all(struct ingress *in)
{
	struct http_limits limits = http_limits_default();
	struct http_hooks hooks = { .on_request = routes_on_request,
		.on_headers = answer_on_headers,
		.on_refusal = answer_on_refusal,
		.on_end = answer_on_end,
		.arg = in };
	int r = 0;

	limits.max_conns = room_for_clients(limits.max_conns);
	limits.drop_bytes = (size_t)in->config->http_max_json_bytes;
	in->http = http_server_new(actor_loop(in->actor), &limits, &hooks);
	if (in->http == NULL)
		return E_NOMEM;
	for (size_t i = 0; r == 0 && i < in->config->trusted_proxies.n; i++)
		r = http_server_trust(in->http, in->config->trusted_proxies.at[i]);
	for (size_t i = 0; r == 0 && i < in->nlisten; i++)
		r = http_server_listen(in->http, PROC_FD_FIRST + (int)i);
	return r;
}

int
ingress_begin(struct ingress *in)
{
	int r = links_open(in, (size_t)in->config->shards);

	if (r == 0)
		r = settle_begin(in);
	if (r == 0) {
		in->health = health_new(in);
		in->accepted = accepted_new(in);
		in->hook_refusals = hook_refusals_new(in);
		in->reseal = reseal_new(in);
		in->rebuild = rebuild_new(in);
		in->key_socket = keys_listen(in);
		r = in->health != NULL && in->accepted != NULL && in->hook_refusals != NULL &&
			in->reseal != NULL && in->rebuild != NULL && in->key_socket != NULL
		    ? listen_all(in)
		    : E_NOMEM;
	}
	return r;
}

/* Requests that still wait for something are given up. */
static void
drop_exchanges(struct ingress *in)
{
	while (!LIST_EMPTY(&in->exchanges)) {
		struct exchange *x = LIST_FIRST(&in->exchanges);
		struct http_req *req = x->req;
		int answered = x->answered;

		(void)exchange_free(x);
		/* An answered one has gone with its server. */
		if (!answered)
			http_req_abandon(req);
	}
}

struct ingress *
ingress_free(struct ingress *in)
{
	if (in == NULL)
		return NULL;
	OBJ_CHECK(in, INGRESS_MAGIC);
	in->settle_timer = actor_timer_free(in->settle_timer);
	in->sweep_timer = actor_timer_free(in->sweep_timer);
	in->health = health_free(in->health);
	in->key_socket = keys_unlisten(in->key_socket);
	in->reseal = reseal_free(in->reseal);
	in->rebuild = rebuild_free(in->rebuild);
	in->document = http_blob_unref(in->document);
	links_fail_all(in);
	if (in->runlinks != NULL)
		runlink_free_all(in);
	if (in->hubs != NULL)
		hub_free_all(in);
	in->http = http_server_free(in->http);
	drop_exchanges(in);
	in->accepted = accepted_free(in->accepted);
	in->hook_refusals = hook_refusals_free(in->hook_refusals);
	in->hook_cache = hook_cache_free(in->hook_cache);
	in->runlinks = map_free(in->runlinks);
	in->hubs = map_free(in->hubs);
	in->limit_login = limiter_free(in->limit_login);
	in->limit_accept = limiter_free(in->limit_accept);
	in->limit_address = limiter_free(in->limit_address);
	in->keys = vault_keys_free(in->keys);
	in->config = config_free(in->config);
	in->magic = 0;
	free(in);
	return NULL;
}
