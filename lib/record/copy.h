/*
 * lib/record/copy.h -- a copy of a run's record, made while it may be written.
 */
#ifndef LIB_RECORD_COPY_H
#define LIB_RECORD_COPY_H

#include <stdint.h>

#include "lib/store/store.h"

struct record_copied {
	int64_t version; /* of run.db's schema */
	int64_t db_bytes;
	int64_t log_bytes; /* 0: no archive yet, and no file of it */
};

/* Puts run.db, by store_copy(), and log.zst into ${folder}, which has neither.  The archive
 * follows the store: it has every frame that the copied rows name, as far as it was
 * there, and is on disk.  For any thread; the caller owns the record, or makes the copy for its
 * owner.  As store_copy(). */
int record_copy(const char *dir, const char *folder, store_go_on_fn *go_on, void *arg,
    struct record_copied *ret, char **ret_why);
/* The two halves, for one who may let go of the record's lock in between: the archive of a
 * record that nobody writes changes no more, and it may go, which is E_NOENT. */
int record_copy_store(const char *dir, const char *folder, store_go_on_fn *go_on, void *arg,
    struct record_copied *ret, int64_t *ret_log_end, char **ret_why);
int record_copy_log(const char *dir, const char *folder, int64_t log_end, store_go_on_fn *go_on,
    void *arg, struct record_copied *ret, char **ret_why);

/* Before a claim: a record that came from a backup and has not ended was begun by a claim that
 * the ledger of that backup knows nothing of.  It is removed, and the run begins anew.  *ret is
 * 1 when that was so; *ret_aside as store_set_aside() says, freed by the caller.  0, E_CORRUPT,
 * E_NEWER, E_NOMEM, E_STORAGE, E_SYS. */
int record_forget_restored(const char *dir, int *ret, char **ret_aside);

#endif
