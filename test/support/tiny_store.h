/*
 * test/support/tiny_store.h -- a small schema in two migrations, to try stores with.
 */
#ifndef TEST_SUPPORT_TINY_STORE_H
#define TEST_SUPPORT_TINY_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/store/store.h"

enum tiny_stmt {
	TINY_ADD,       /* id, text                                  */
	TINY_ADD_ALL,   /* id, text, blob, integer                   */
	TINY_GET,       /* id -> id, text, blob, integer             */
	TINY_COUNT,     /* -> rows                                   */
	TINY_SET,       /* id, text: refused for the text "sealed"   */
	TINY_ADD_CHILD, /* id, parent                                */
	TINY_REMOVE,    /* id                                        */
	TINY_CHILDREN,  /* -> rows                                   */
	TINY_FILL,      /* first id, number of rows, bytes in each   */
	TINY_SPIN,      /* counts to a very large number             */
	TINY_WRONG,     /* does not prepare                          */
	TINY_PRAGMA,    /* the first pragma; the others follow       */
	TINY_JOURNAL_MODE = TINY_PRAGMA,
	TINY_SYNCHRONOUS,
	TINY_AUTOCHECKPOINT,
	TINY_TEMP_STORE,
	TINY_FOREIGN_KEYS,
	TINY_TRUSTED_SCHEMA,
	TINY_CELL_SIZE_CHECK,
	TINY_MMAP_SIZE,
	TINY_CACHE_SIZE,
};

/* Both migrations; only the first; the first and one that fails; one more than both. */
extern const struct store_desc tiny_store, tiny_old_store, tiny_broken_store, tiny_new_store;
/* As tiny_store with STORE_SYNC_NORMAL. */
extern const struct store_desc tiny_normal_store;

/* Opens ${dir}/tiny.db; a failure ends the test. */
struct store *tiny_open(const struct store_desc *d, const char *dir);
/* ${dir}/${name}; the caller frees. */
char *tiny_path(const char *dir, const char *name);

/* 0 or the error. */
int tiny_add(struct store *s, int64_t id, const char *text);
int tiny_fill(struct store *s, int64_t first_id, int64_t nrows, int64_t bytes);
/* Rows; a failure ends the test. */
int64_t tiny_count(struct store *s);
/* The one integer that ${stmt} selects. */
int64_t tiny_number(struct store *s, unsigned stmt);
/* 1 when there is a row ${id}. */
int tiny_has(struct store *s, int64_t id);

/* Copies a file; a missing one is left out (then 0). */
int tiny_copy_file(const char *from, const char *to);
/* As tiny_store is on disk at this moment, what a kill would leave: into ${to_dir}. */
void tiny_copy(const char *from_dir, const char *to_dir);
int64_t tiny_file_size(const char *dir, const char *name);

#endif
