/*
 * lib/store/stmt.h -- one prepared statement.
 */
#ifndef LIB_STORE_STMT_H
#define LIB_STORE_STMT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"

struct arena;
struct stmt;

/* Binds parameters 1.. by ${types}: 'i' int64_t, 'I' const int64_t * (NULL: null), 's' text
 * or NULL, 'b' pointer and size_t, 'n' nothing (null).  Texts and blobs are copied.
 * 0, or the error that preparing it met, E_NOMEM, E_RANGE (more than it has). */
int stmt_bind(struct stmt *st, const char *types, ...);

/* 1: a row; 0: no (more) rows; E_CONSTRAINT, E_ILLEGAL (a trigger refused), E_FULL,
 * E_NOMEM, E_CORRUPT, E_DEADLINE, E_STORAGE. */
int stmt_step(struct stmt *st);
/* Steps to the end and resets: for statements whose rows nobody wants.  0 or an error. */
int stmt_run(struct stmt *st);
/* Ends it and forgets the parameters; NULL back, for CLEANUP. */
struct stmt *stmt_reset(struct stmt *st);
DEFINE_CLEANUP(struct stmt *, stmt_reset)

/* The first row of a statement that stmt_bind() answered with ${bound}.  0: it is there to be
 * read; E_NOENT: there is none; or the error of either. */
int stmt_first(struct stmt *st, int bound);
/* Fills ${row}, zeroed, from the columns; 0 or an error, which ends the reading. */
typedef int stmt_read_fn(struct stmt *st, struct arena *a, void *row);
/* All its rows, as an array of ${row_size} each in ${a}.  0, *ret_rows NULL when there is
 * none; or an error. */
int stmt_rows(struct stmt *st, int bound, struct arena *a, stmt_read_fn *read, size_t row_size,
    void **ret_rows, size_t *ret_n);

/* Columns count from 0; valid until the next step or reset.  Null: 0, NULL, NULL. */
int64_t stmt_int(struct stmt *st, int col);
const char *stmt_text(struct stmt *st, int col);
/* A copy in ${a}.  NULL: the column is null, or (then *err is E_NOMEM) out of memory. */
const char *stmt_text_dup(struct stmt *st, int col, struct arena *a, int *err);
const void *stmt_blob(struct stmt *st, int col, size_t *ret_n);
int stmt_is_null(struct stmt *st, int col);

#endif
