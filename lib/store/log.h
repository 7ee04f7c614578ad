/*
 * lib/store/log.h -- a write-ahead log as it lies on disk.
 *
 * SQLite ends the log at the first frame that does not fit, as it must for one that was being
 * written when the power went.  When that frame was damaged later, commits that were
 * acknowledged lie behind it and are passed over in silence; here it is said.
 */
#ifndef LIB_STORE_LOG_H
#define LIB_STORE_LOG_H

/*
 * Looks at the log of the store at ${path} before it is opened.  For stores of which every commit
 * is synced before the next one is begun (STORE_SYNC_FULL).  0: whole, torn at its end, not
 * there, or another store's (mark.h); E_CORRUPT: commits cannot be read, *ret_why says where;
 * E_NOMEM, E_STORAGE.
 */
int store_look_at_log(const char *path, char **ret_why);

/*
 * Lets the owner write the log of the store at ${path} and its index: who opened the store while
 * it was read-only, if to look at it only, has left them so.  0 or E_NOMEM.
 */
int store_mend_log_mode(const char *path);

#endif
