/*
 * cmd/anvild/supervisor.h -- the state of the supervisor, all of it.
 *
 * It holds the master keys and the listening sockets.  It parses nothing but the few messages
 * of its own contract, and never reads another actor's store.
 */
#ifndef CMD_ANVILD_SUPERVISOR_H
#define CMD_ANVILD_SUPERVISOR_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/anvild/listen.h"
#include "cmd/anvild/slots.h"
#include "lib/actor/actor.h"
#include "lib/config/config.h"
#include "lib/vault/vault.h"

/* Statements of supervisor.db, by name. */
enum supervisor_stmt {
#define STMT(name, nparams, sql) SUP_##name,
#include "schema/supervisor.stmt.def"
#undef STMT
	SUP_STMT_COUNT
};

#define SUP_SHARDS_MAX 64 /* as the configuration allows */

struct child;
struct errand;
struct exits;
struct keys;
struct removals;
struct runners;
struct serves;
struct signals;
struct stop;
struct sweep;
struct watchdog;

struct supervisor {
	struct actor *actor;
	/* What it was started with. */
	struct config *config;   /* Owned; replaced by SIGHUP.                       */
	const char *config_path; /* NULL: built-in defaults.                         */
	int64_t shards_wanted;   /* By the next start, when that is fewer; 0: not so. */
	struct vault_keys *keys; /* Owned.  Master keys.                             */
	char *libexec;           /* Owned.  Folder of the other programs.            */
	char boot_id[37];
	int lock_fd;     /* Of the runtime directory.                        */
	int lifeline[2]; /* Residents end when [1] closes.                   */
	struct listeners listeners;
	int listening[CONFIG_LISTEN_MAX]; /* By the address in the configuration.    */
	int stop_runs;                    /* --stop-runs, or a second SIGTERM.                */
	/* Who exists. */
	struct child **residents; /* Owned.  Shards in their order, ingress last.     */
	size_t nresidents;
	struct runners *runners; /* Owned.  By run id.                               */
	struct serves *serves;   /* Owned.  By run id.                               */
	struct errand *checks;   /* Owned.  Looking at records of runs.              */
	struct errand *copies;   /* Owned.  Of runs, for a backup.                   */
	struct exits *exits;     /* Owned.  Ends that a shard has still to confirm.  */
	struct slots slots;
	struct signals *signals;   /* Owned.                                         */
	struct keys *handover;     /* Owned.  How ingress gets newer keys.             */
	struct sweep *sweep;       /* Owned.  Disk space and old run folders.          */
	struct removals *removals; /* Owned.  Projects whose files go.               */
	struct watchdog *watchdog; /* Owned.  Tells systemd that the loop turns.     */
	/* Shutting down. */
	struct stop *stop; /* Owned.                                          */
	int stopping;
	int ingress_started; /* It waits for the shards, the first time.        */
	int ready_told;      /* READY=1 has been sent.                           */
	int failed;          /* Stops because it cannot serve: exit status 1.    */
	int storage_failed;  /* supervisor.db could not be written, the last time. */
	int64_t started_ms;
};

/* supervisor.db, for store_open() and store_check(). */
extern const struct store_desc supervisor_store;

/* The statement, ready for stmt_bind(). */
struct stmt *sup_stmt(struct turn *t, enum supervisor_stmt which);

/* A write turn of the supervisor's own.  0 promises nothing yet: what is on disk, and what was
 * lost after all, is said to effects of the turn (turn_after_commit). */
int sup_write(struct supervisor *s, int (*fn)(void *arg, struct turn *t), void *arg);
/* In a write turn: notes, when that is known, whether the store has taken it. */
void sup_watch_write(struct supervisor *s, struct turn *t);
/* When it did not the last time: tries it with a line of the history, which says so. */
void sup_try_store(struct supervisor *s);

/* JSON of descriptor 3 for a child; ${keys} NULL: none.  A descriptor, or -1. */
int sup_start_fd(const struct supervisor *s, const struct vault_keys *keys);
/* Path of a program of libexec; the caller frees; NULL: no memory. */
char *sup_program(const struct supervisor *s, const char *name);

/* Tells every actor that is connected who has which pid (actor.peers). */
void sup_announce(struct supervisor *s);
/* An actor has said why it can never start: says so, stops all, and ends with 1. */
void sup_cannot_start(struct supervisor *s, const char *address, const char *why);
/* Called when a resident came up, or ended: sends READY=1, moves a stop along. */
void sup_resident_changed(struct supervisor *s);

#endif
