/*
 * lib/store/store.h -- SQLite as anvil uses it (design 3).
 *
 * The only folder that knows SQLite: opening with the pragmas that the promises rest on,
 * migrations, named statements, group commit, the checkpointer's thread, long reads.
 * A store and everything made of it belong to one thread.
 */
#ifndef LIB_STORE_STORE_H
#define LIB_STORE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/store/batch.h"
#include "lib/store/check.h"
#include "lib/store/copy.h"
#include "lib/store/log.h"
#include "lib/store/mark.h"
#include "lib/store/stmt.h"

/* One step of a schema; made from schema/<store>/NNNN_name.sql, in order. */
struct store_migration {
	const char *name;
	const char *sql;
};

/* A named statement; the row's index is its id. */
struct store_stmt_row {
	const char *name;
	int nparams;
	const char *sql;
};

/* FULL where a promise rests on the commit; NORMAL may lose the last ones at power loss. */
enum store_sync { STORE_SYNC_NORMAL, STORE_SYNC_FULL };

struct store_desc {
	const char *name;
	const struct store_migration *migrations;
	const size_t *nmigrations;
	const struct store_stmt_row *stmts;
	size_t nstmts;
	enum store_sync sync;
};

struct store;

/* Opens or makes ${path} (0600, its folder synced), brings its schema up to date; a log that is
 * not its own is put aside (mark.h).  0, or E_NEWER (written by a later version: left untouched),
 * E_CORRUPT, E_FULL, E_NOMEM, E_STORAGE; then *ret_why says what and where, freed by the caller (NULL: no memory).
 * One open store of a file at a time: its owner holds the lock that belongs to it. */
int store_open(
    const struct store_desc *d, const char *path, struct store **ret_store, char **ret_why);
struct store *store_close(struct store *s);
DEFINE_CLEANUP(struct store *, store_close)

/* A second connection for long reads: read-only, and a statement that runs longer than
 * ${limit_ms} (0: no limit) ends with E_DEADLINE.  The file exists and is up to date.
 * store_begin() on it opens a snapshot. */
int store_open_reader(
    const struct store_desc *d, const char *path, int64_t limit_ms, struct store **ret_store);

/* Changes only between transactions; inside one it is E_BUSY. */
int store_set_sync(struct store *s, enum store_sync sync);

/* BEGIN IMMEDIATE, COMMIT, ROLLBACK.  A commit that fails has been rolled back, or its
 * outcome is unknown (E_STORAGE). */
int store_begin(struct store *s);
int store_commit(struct store *s);
void store_rollback(struct store *s);
int store_in_txn(const struct store *s);
/* After a commit that failed with E_STORAGE, for who goes on with the store, in this process or
 * the next: the kernel takes for written what it could not write of the log, and what is committed
 * later rests on that.  All that is committed goes into the file, and the log begins anew.  0, or
 * not yet: E_LOCKED (another connection reads), E_FULL, E_STORAGE. */
int store_renew_log(struct store *s);
/* Runs statements that have no parameters and no result. */
int store_exec(struct store *s, const char *sql);
/* Writes what changes nothing, as durably as any commit.  0: the store can be written now. */
int store_probe(struct store *s);
/* Rows that the last INSERT, UPDATE or DELETE changed. */
int64_t store_changes(const struct store *s);

/* The statement ready to be bound: reset, no parameters.  Never NULL: one that could not be
 * prepared hands its error to stmt_bind() and stmt_step(). */
struct stmt *store_stmt(struct store *s, unsigned id);

/* 1 once SQLite has come upon damage in it.  Closing writes nothing into it then. */
int store_is_damaged(const struct store *s);
/* Text of the newest error, for logs; "" when there is none. */
const char *store_error(const struct store *s);
const char *store_path(const struct store *s);
/* Number of migrations applied. */
int64_t store_version(const struct store *s);
/* Bytes of the file and of its write-ahead log, as they are on disk. */
void store_sizes(const struct store *s, int64_t *ret_db_bytes, int64_t *ret_wal_bytes);

/* PRAGMA integrity_check and foreign_key_check, changing nothing; a file that is not there
 * has nothing wrong.  0, or E_CORRUPT, E_NEWER or another error, which *ret_why explains. */
int store_check(const struct store_desc *d, const char *path, char **ret_why);

/* ---- checkpoints, on a thread with its own connection ---- */

struct checkpointer;

#define STORE_WAL_PASSIVE_BYTES  (4 << 20)  /* of new log: it is written back          */
#define STORE_WAL_TRUNCATE_BYTES (64 << 20) /* of log: it is cut to nothing as well    */

/* ${idle_ms}: the log is also written back after so long without a poke.  The thread never
 * waits for the writer, and holds it up for the rest of a log that is written back already. */
int checkpointer_start(struct store *s, int64_t idle_ms, struct checkpointer **ret);
/* Waits for a checkpoint that runs. */
struct checkpointer *checkpointer_stop(struct checkpointer *c);
/* After a commit, in the thread of the store; cheap. */
void checkpointer_poke(struct checkpointer *c);
/* After secrets were deleted: their old pages leave the log as soon as may be. */
void checkpointer_truncate(struct checkpointer *c);
/* Waits until nothing is left to do, for tests and for an orderly end.  With truncation
 * ordered, the log is empty then, unless a reader holds on to it. */
void checkpointer_settle(struct checkpointer *c);

/* ---- faults, in builds with ANVIL_FAULTS ---- */

enum store_fault { STORE_FAULT_NONE, STORE_FAULT_FULL, STORE_FAULT_IO, STORE_FAULT_SYNC };

/* The ${n}-th write or sync from now (0: the next) and all after it fail until
 * store_fault_arm(NONE, 0).  With STORE_FAULT_SYNC writes neither count nor fail: all is there,
 * and only the promise is not.  The environment variable ANVIL_FAULT_FSYNC_US, read at the
 * first open, makes every sync take so long.  Without ANVIL_FAULTS: nothing.  Faults of
 * processes that run are ordered by a file (lib/base/fault.h). */
void store_fault_arm(enum store_fault what, long n);
/* Writes and syncs that failed by order. */
long store_fault_count(void);

#endif
