/*
 * cmd/anvil-ingress/ingress.h -- the state of the HTTP edge, all of it.
 *
 * It owns ingress.db and the connections of clients.  It holds the master keys, to seal what
 * clients bring, and never opens another actor's store.
 */
#ifndef CMD_ANVIL_INGRESS_INGRESS_H
#define CMD_ANVIL_INGRESS_INGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/actor/actor.h"
#include "lib/base/rules.h"
#include "lib/config/config.h"
#include "lib/http/http.h"
#include "lib/index/index.h"
#include "lib/vault/vault.h"

#define SHARDS_MAX         64 /* as the configuration allows */
#define INVITE_TTL_SECONDS 604800
#define CALL_ACCEPT_MS     8000 /* Time for another actor to answer (http-api 1.2). */
#define CALL_DETAIL_MS     2000
#define CALL_OTHER_MS      5000
#define MOVING_MS          5000 /* A project that is being moved is waited for so long. */
#define SETTLE_EVERY_MS    30000
#define SETTLE_OLDER_MS    60000
#define SWEEP_EVERY_MS     3600000
#define HEALTH_EVERY_MS    1000
#define STORAGE_TROUBLE_MS 10000 /* A lost commit is told by /healthz for so long. */

struct accepted;
struct exchange;
struct health;
struct hook_cache;
struct hook_refusals;
struct http_blob;
struct key_socket;
struct limiter;
struct rebuild;
struct reseal;
struct runlink;
struct shard_call;

struct ingress {
	uint32_t magic;
#define INGRESS_MAGIC 0x16e5a4b2
	struct proc *proc;
	struct actor *actor;
	/* What it was started with. */
	struct config *config;   /* Owned.                                          */
	struct vault_keys *keys; /* Owned.  NULL: there is no usable key.           */
	struct rule_ctx rules;
	char public_host[300]; /* Host and port of public_url.                    */
	int public_is_https;
	size_t nlisten;
	/* Newer keys. */
	int keys_fd;                   /* -1: none, or it is the socket's.                */
	struct key_socket *key_socket; /* Owned.                                          */
	struct reseal *reseal;         /* Owned.  Puts secrets under the current version. */
	/* Clients. */
	struct http_server *http;
	struct http_blob *document; /* Owned.  Of the web interface. */
	LIST_HEAD(, exchange) exchanges;
	size_t nexchanges;
	struct limiter *limit_login;   /* By e-mail address.      */
	struct limiter *limit_accept;  /* By hash of the token.   */
	struct limiter *limit_address; /* By address of a client. */
	/* Other actors. */
	struct link *shards[SHARDS_MAX]; /* By number; the actor's. */
	size_t nshards;                  /* Only grows. */
	LIST_HEAD(, shard_call) calls;
	struct map *runlinks; /* By run id: struct runlink. */
	struct map *hubs;     /* By run id: struct hub.     */
	struct health *health;
	struct accepted *accepted; /* Rows on their way into the index. */
	struct rebuild *rebuild;   /* Owned.  Fills the index anew.     */
	/* Deliveries of forges. */
	struct hook_cache *hook_cache;       /* What they are verified against.            */
	struct hook_refusals *hook_refusals; /* Refused ones, for the eyes of owners.      */
	size_t hook_kept_bytes;              /* Bodies that are kept, all together.        */
	size_t nhook_notes;                  /* Refused ones whose webhook is looked up.   */
	/* Chores. */
	struct actor_timer *settle_timer, *sweep_timer;
	int settling;                  /* Settlements on their way. */
	uint64_t moves;                /* Projects that have gone to another shard. */
	struct mono_time storage_lost; /* Newest lost commit; 0: none yet. */
};

/* Everything that a running ingress needs around its actor.  Of its descriptors, ${nlisten} are
 * listening sockets, and ${keys_fd}, when not below 0, is the one for newer keys.
 * NULL: out of memory. */
struct ingress *ingress_new(struct proc *p, struct config *config, size_t nlisten, int keys_fd);
void ingress_set_actor(struct ingress *in, struct actor *a);
struct ingress *ingress_free(struct ingress *in);
/* Listens, links to the shards, starts the chores.  0, E_NOMEM, E_SYS, E_INVAL. */
int ingress_begin(struct ingress *in);

#endif
