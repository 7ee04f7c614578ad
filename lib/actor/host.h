/*
 * lib/actor/host.h -- an actor: its loop, its store, its socket, its peers.
 *
 * The supervisor and the tests make one directly; the other programs get theirs from
 * proc_actor().  Everything here belongs to the loop's thread.
 */
#ifndef LIB_ACTOR_HOST_H
#define LIB_ACTOR_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/store/store.h"
#include "lib/wire/wire.h"

#define ACTOR_DRAIN_MS      5000 /* Replies owed get so long when the actor drains. */
#define ACTOR_EXIT_RESTART  70   /* Exit status: the store failed, start me again.  */
#define ACTOR_EXIT_UNUSABLE 78   /* Exit status: no start can use this store.       */

struct actor;
struct actor_backup;
struct actor_check;
struct event_base;
struct rule_ctx;
struct turn;

/* What a kind of actor is.  Constant for the process, borrowed. */
struct actor_desc {
	enum rpc_role role;
	/* Own methods; those of actor.json and rpc.discover are added by themselves. */
	const struct rpc_method *methods;
	const size_t *nmethods;
	/* OpenRPC document for rpc.discover, JSON text; NULL: not served. */
	const char *(*document)(void);
	/* NULL: it has no store. */
	const struct store_desc *store;
	size_t nworkers; /* Threads of actor_work(), started when needed; 0: one. */
	/* Callbacks, each may be NULL; ${ctx} is of actor_set_ctx(). */
	/* Adds one JSON object to ${out}: the state that `anvilctl inspect` shows. */
	void (*inspect)(void *ctx, struct buf *out);
	/* What it is doing, in a few words, for `anvilctl ps`; leaves ${out} empty when idle. */
	void (*doing)(void *ctx, char *out, size_t size);
	/* Asked to go (SIGTERM, end of the lifeline).  NULL: actor_drain(). */
	void (*on_term)(void *ctx);
	/* Draining has begun: finish what is yours, then actor_drained().  NULL: nothing is. */
	void (*on_drain)(void *ctx);
	void (*on_hup)(void *ctx);
	/* proc_run(): the loop has ended, all calls have had their callbacks: free ${ctx}. */
	void (*on_end)(void *ctx);
	/* Decides over a hello instead of the announced pids (the supervisor does). */
	int (*check)(void *ctx, struct rpc_peer *p, const struct hello *h);
	/* A connection has said hello, or has gone. */
	void (*on_peer_up)(void *ctx, struct rpc_peer *p);
	void (*on_peer_down)(void *ctx, struct rpc_peer *p);
	/* The link to the supervisor is up, for the first time or again. */
	void (*on_supervisor_up)(void *ctx, struct link *l);
	/* How the fields of params are judged (repositories.* of the configuration); NULL: as
	 * by default. */
	const struct rule_ctx *(*rules)(void *ctx);
	/* A run tells the supervisor that it serves; every other role does in any case. */
	int says_ready;
	/* How actor.backup copies what it keeps; NULL: its store, under its own name. */
	const struct actor_backup *backup;
	/* How actor.check looks at its store; NULL: by what SQLite says alone. */
	const struct actor_check *checks;
	/* Its store is the only place where what it knows is kept: one that has been in use and is
	 * not there is damage, and no new one is made. */
	int store_is_truth;
	/* Its store is not what others rest on: when a commit's outcome is unknown, or the store
	 * cannot be opened any more, it goes on, every turn that needs the store is E_STORAGE,
	 * and the store is opened anew as soon as that can be done; on_store_back is told. */
	int outlives_store;
	void (*on_store_back)(void *ctx);
	/* Asked in place of the handler of a turn that needs the store while there is none
	 * (t->store is NULL): a result after all, or an error; NULL: E_STORAGE. */
	int (*without_store)(void *ctx, struct turn *t, const void *params, void *result);
};

/* Where one actor of that kind lives.  Copied or duplicated where it is kept. */
struct actor_place {
	const char *address;     /* "project/0"                                           */
	const char *runtime_dir; /* Sockets; must exist.                                  */
	const char *lock_path;   /* NULL: none; taken before store and socket are opened. */
	const char *store_path;  /* NULL with a desc without a store.                     */
	pid_t supervisor_pid;    /* 0: not known (a run that outlived it).                */
	int stays;               /* A store that cannot be used (E_CORRUPT, E_STORAGE,
				  * E_FULL) keeps it from serving and not from living. */
};

/* Lock, store, loop, socket, in that order.  0; E_LOCKED, E_NEWER, E_CORRUPT, E_FULL,
 * E_STORAGE, E_SYS, E_NOMEM; ${ret_why} then is a text for people, freed by the caller. */
int actor_new(const struct actor_desc *desc, const struct actor_place *place,
    struct actor **ret_actor, char **ret_why);
struct actor *actor_free(struct actor *a);
DEFINE_CLEANUP(struct actor *, actor_free)

/* What handlers of the desc's methods get as their context. */
void actor_set_ctx(struct actor *a, void *ctx);
/* Runs until drained or stopped, then closes every connection (calls in flight get their
 * callbacks, on_peer_down is not called) and ends the workers; the exit status.  0: drained.
 * Timers and watches are to be freed before actor_free(). */
int actor_run(struct actor *a);
/* From now on SIGTERM and SIGINT ask it to go (on_term), and SIGHUP calls on_hup; proc_run()
 * does it by itself.  0 or E_NOMEM. */
int actor_signals(struct actor *a);
/* Serves what is ready and what follows from it, without waiting (tests, start-up). */
void actor_step(struct actor *a);
/* No new turns (E_DRAINING), no new connections; ends when no reply is owed and the owner
 * is through, at the latest after ACTOR_DRAIN_MS. */
void actor_drain(struct actor *a);
void actor_drained(struct actor *a);
int actor_is_draining(const struct actor *a);
/* Leaves the loop after this round with that exit status; the open batch commits first. */
void actor_stop(struct actor *a, int status);

/* Why its store cannot be used, while that is so; NULL: it serves.  Then every turn is
 * E_STORAGE.  The store is tried every few seconds (a damaged one when its files are others),
 * and the process ends with ACTOR_EXIT_RESTART when it can be used again. */
const char *actor_outage(const struct actor *a);
#define ACTOR_OUTAGE_MAX 900
/* That and what helps, in less than ACTOR_OUTAGE_MAX bytes; the caller frees.  NULL: it serves,
 * or there is no memory. */
char *actor_outage_text(const struct actor *a);

/* While what is written finds no room on the disk: the store, that, and what helps; the caller
 * frees.  NULL: there is room, or no memory.  It serves, and is tried by itself. */
char *actor_full_text(const struct actor *a);

struct event_base *actor_loop(const struct actor *a); /* For lib/http only. */
int actor_runtime_dirfd(const struct actor *a);
/* Commits what is open now, such as before a step that cannot be undone.  0 or E_STORAGE. */
int actor_commit_now(struct actor *a);
/* After an effect that deleted secrets: old pages leave the write-ahead log soon. */
void actor_truncate_log(struct actor *a);
/* 1 while replies wait for a commit. */
int actor_in_batch(const struct actor *a);

/* A connection to another actor.  Its requests go to this actor's methods with the role of
 * ${to}.  The actor frees it at its end, or actor_unlink() earlier.  NULL: no memory. */
struct link *actor_link(struct actor *a, const char *to, const struct link_ops *ops, void *arg);
/* NULL is fine; NULL back.  Calls in flight still get their callbacks. */
struct link *actor_unlink(struct actor *a, struct link *l);
/* An accepted connection by the address it gave in hello, the newest; NULL: none. */
struct rpc_peer *actor_peer(const struct actor *a, const char *address);
/* for (size_t at = 0; (p = actor_peer_next(a, &at)) != NULL;)  -- accepted connections. */
struct rpc_peer *actor_peer_next(const struct actor *a, size_t *at);
/* The supervisor's word on who is who: replaces the pid of ${address} (0: forget it). */
int actor_announce(struct actor *a, const char *address, pid_t pid);
/* 0 when a hello of that role, address and pid may come in, else E_PEER or E_DENIED. */
int actor_check_hello(const struct actor *a, const struct hello *h);

#endif
