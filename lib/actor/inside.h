/*
 * lib/actor/inside.h -- the actor's state, shared by the files of this folder.
 */
#ifndef LIB_ACTOR_INSIDE_H
#define LIB_ACTOR_INSIDE_H

#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "lib/actor/full.h"
#include "lib/actor/host.h"
#include "lib/actor/turn.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"

#define ACTOR_CONNS_MAX 512 /* Accepted connections; more are told E_OVERLOADED. */

/* Latencies in classes of a quarter of a power of two: 1 us .. over 1 h. */
#define STATS_CLASSES 128

struct method_entry {
	const struct rpc_method *row;
	int builtin; /* Its context is the actor, not the program's. */
	uint64_t count, errors;
	uint32_t *classes; /* Made by the first call. */
};

/* Something that leaves after the commit. */
struct item {
	enum item_kind { ITEM_NONE, ITEM_EFFECT, ITEM_RESULT, ITEM_ERROR, ITEM_PARKED } kind;
	union {
		struct {
			void (*fn)(void *arg);
			void (*drop)(void *arg);
			void *arg;
		} effect;
		struct {
			struct rpc_request *req;
			struct method_entry *method;
			int err;
			size_t at, n; /* Of the result or the message, in the round's text. */
		} reply;
		struct parked *parked; /* Was parked in this batch: fails with it. */
	} u;
};

struct round {
	struct item *items;
	size_t nitems, cap;
	struct buf text;
};

struct parked {
	uint32_t magic;
#define PARKED_MAGIC 0x2f86d0b3
	struct actor *actor;
	struct rpc_request *req; /* NULL: was told E_STORAGE when its batch was lost. */
	struct method_entry *method;
};

/* An accepted connection. */
struct conn {
	LIST_ENTRY(conn) entry;
	struct actor *actor;
	struct rpc_peer *peer; /* Owned. */
};

/* A connection that we made. */
struct out_link {
	LIST_ENTRY(out_link) entry;
	struct actor *actor;
	struct link *link; /* Owned. */
	struct link_ops ops;
	void *arg;
};

struct backup;
struct outage;
struct worker;

struct actor {
	uint32_t magic;
#define ACTOR_MAGIC 0x6ac70a11
	const struct actor_desc *desc;
	void *ctx; /* Of the program's methods. */
	char *address;
	char *runtime_dir; /* By name: the directory may be made anew. */
	pid_t supervisor_pid;
	int64_t started_ms;
	struct mono_time started;
	/* Held for the whole life. */
	int lock_fd, dirfd;
	char *store_path;
	struct store *store;
	struct batch *batch;
	struct outage *outage; /* Owned.  NULL: the store, if there is one, serves. */
	int damage_told;       /* Damage that was met has been logged and marked.   */
	struct full full;
	/* The loop and who is connected. */
	struct event_base *base;
	struct listener *listener;
	LIST_HEAD(, conn) conns;
	size_t nconns;
	LIST_HEAD(, out_link) links;
	struct map *announced; /* Address to pid, as the supervisor tells. */
	/* Turns. */
	struct map *methods; /* Name to struct method_entry. */
	struct arena *arena;
	struct turn *turn; /* The one that runs now. */
	struct round round;
	int writing; /* A write transaction is open. */
	struct mono_time batch_from;
	int64_t batch_us; /* ACTOR_BATCH_US; tests stretch it. */
	struct event ev_commit;
	uint64_t ncommits, ncommitted, nlost; /* Batches, turns in them, batches lost. */
	struct checkpointer *checkpointer;    /* From the first commit on.              */
	struct worker *worker, *aside;        /* Made by the first job, each. */
	struct backup *backup;                /* The copy that is being made; NULL: none. */
	/* Ending. */
	int draining, owner_done, stopping, status;
	int ended; /* Connections and workers are gone, for good. */
	struct mono_time drain_until;
	struct event ev_drain;
	struct event ev_outage;  /* The next look at a store that is out of service. */
	struct event ev_address; /* The next look at our socket's name. */
	struct event ev_term, ev_int, ev_hup;
};

/* ---- turn.c ---- */

void round_done(struct actor *a);
/* Runs a decoded request in a turn; takes ${req}. */
void turn_serve(struct actor *a, struct rpc_peer *p, struct rpc_request *req,
    struct method_entry *m, const void *params, void *result);
/* Commits what is open.  0 or an error: then everybody has been told. */
int turn_commit(struct actor *a);
void turn_on_commit(evutil_socket_t fd, short what, void *arg);

/* ---- dispatch.c ---- */

int methods_add(struct actor *a, const struct rpc_method *rows, size_t n, int builtin);
void methods_free(struct actor *a);
/* Counts one answered request. */
void method_count(struct method_entry *m, const struct rpc_request *req, int err);
/* Microseconds below which ${percent} of the calls were answered; 0: none yet. */
int64_t method_percentile(const struct method_entry *m, unsigned percent);
void actor_on_request(void *arg, struct rpc_peer *p, struct rpc_request *req);

/* ---- builtin.c ---- */

/* actor.info and the like: what every actor answers. */
int builtin_add(struct actor *a);

/* ---- backup.c ---- */

/* A copy that is being made is given up soon. */
void backup_stop(struct actor *a);

/* ---- drain.c ---- */

void drain_init(struct actor *a);

/* ---- outage.c ---- */

/* Opens the store at a->store_path, which has to take writes unless the disk is full.  0 or as
 * store_open(). */
int outage_open(const struct actor *a, struct store **ret, char **ret_why);
/* Every turn is E_STORAGE from now on, for ${why}, which is taken (NULL: no memory for it).
 * 0 or E_NOMEM. */
int outage_begin(struct actor *a, int err, char *why);
void outage_end(struct actor *a);
/* With a loop, the store is tried again by itself. */
void outage_init(struct actor *a);
/* After a commit that failed: an outcome that is not known ends the process or, for one that
 * outlives its store, the use of it. */
void outage_after_commit(struct actor *a);
/* After a turn.  E_STORAGE: the store has turned out to be damaged, what is open must be given
 * up, and the process ends. */
int outage_look(struct actor *a);

/* ---- address.c ---- */

void address_init(struct actor *a);
/* From now on our socket is bound again soon after its name has gone. */
void address_begin(struct actor *a);

/* ---- signals.c ---- */

void signals_init(struct actor *a);
void signals_done(struct actor *a);
/* As SIGTERM does. */
void actor_ask_to_go(struct actor *a);

/* ---- worker.c ---- */

struct worker *worker_free(struct worker *w);

#endif
