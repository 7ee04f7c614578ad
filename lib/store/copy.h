/*
 * lib/store/copy.h -- copies of a store in use.
 */
#ifndef LIB_STORE_COPY_H
#define LIB_STORE_COPY_H

#include <stdint.h>

struct store;
struct store_desc;

/* Asked between two steps of a copy, some milliseconds apart: 0 to go on, or the error that
 * the copy ends with. */
typedef int store_go_on_fn(void *arg);

/* Each may be NULL. */
struct store_copy_ops {
	store_go_on_fn *go_on;
	/* Reads the source as of the moment that the copy is of.  0 or an error. */
	int (*look)(void *arg, struct store *from);
};

struct store_copied {
	int64_t bytes;
	int64_t version; /* of its schema */
};

/* Makes ${to} (0600, one file, synced with its folder) a copy of the store ${from} as it is at
 * one moment, with the mark of a copy (mark.h), after PRAGMA integrity_check and
 * foreign_key_check of the copy.  ${from} may be in use, also by writers, whom this never holds
 * up; a log that was not written back is copied with it.  The caller owns the store or has been
 * told to by its owner.  For any thread; ${ops} may be NULL.
 *
 * ${to} is whole and on disk, or it is not there.  A copy in the making is `${to}.part`; one
 * that was left by a crash is taken over.  0, or E_EXISTS (${to} is there), E_LOCKED (another
 * copy to it is being made), E_NOENT (no such folder), E_NEWER, E_CORRUPT, E_FULL, E_NOMEM,
 * E_STORAGE, or what ${ops} answered; then *ret_why says what and where, freed by the
 * caller (NULL: no memory). */
int store_copy(const struct store_desc *d, const char *from, const char *to,
    const struct store_copy_ops *ops, void *arg, struct store_copied *ret, char **ret_why);

#endif
