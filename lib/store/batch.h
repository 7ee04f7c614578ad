/*
 * lib/store/batch.h -- group commit: many turns, one transaction, one fsync (design 3).
 */
#ifndef LIB_STORE_BATCH_H
#define LIB_STORE_BATCH_H

#include <stddef.h>

#include "lib/base/base.h"

struct batch;
struct store;

struct batch *batch_new(struct store *s);
struct batch *batch_free(struct batch *b);
DEFINE_CLEANUP(struct batch *, batch_free)

/* A turn that may write: begins the transaction if none is open, then a savepoint.
 * 0, or an error: the turn must not run.  E_STORAGE while the batch is lost. */
int batch_turn_begin(struct batch *b);
/* Ends it: its writes stay or are undone.  0, or E_STORAGE: SQLite has rolled the whole
 * transaction back, the batch is lost, and so is everything in it. */
int batch_turn_end(struct batch *b, int keep);

/* 1 while a transaction is open (or lost and not yet answered for). */
int batch_is_open(const struct batch *b);
int batch_is_lost(const struct batch *b);
size_t batch_nturns(const struct batch *b);

/* Commits.  0: durable.  E_FULL, E_NOMEM: undone, and the store can go on.  E_STORAGE: lost;
 * whether it may come true after recovery is told by batch_must_restart(). */
int batch_commit(struct batch *b);
/* 1 after an I/O error at a commit: no more writes; the process derives itself anew. */
int batch_must_restart(const struct batch *b);

#endif
