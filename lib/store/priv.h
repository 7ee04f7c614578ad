/*
 * lib/store/priv.h -- a store from the inside (private).
 */
#ifndef LIB_STORE_PRIV_H
#define LIB_STORE_PRIV_H

#include <sqlite3.h>

#include "lib/store/store.h"

struct stmt {
	struct store *store;
	sqlite3_stmt *raw; /* NULL: not prepared yet, or `err` says why not */
	int err;           /* of preparing or binding                       */
};

struct store {
	uint32_t magic;
#define STORE_MAGIC 0x57f0e21b
	const struct store_desc *desc;
	sqlite3 *db;
	char *path;
	struct stmt *stmts; /* desc->nstmts */
	/* Of a reader: when its statement has to end. */
	int64_t limit_ms; /* 0: no limit */
	int64_t until_us; /* monotonic   */
};

/* A result code of SQLite as an error of ours. */
int store_error_of(sqlite3 *db, int rc);
/* Opens the file with the pragmas of every connection. */
int store_connect(const char *path, int flags, sqlite3 **ret);
/* Applies what is missing.  0 or an error; *ret_why for people. */
int store_migrate(struct store *s, char **ret_why);
/* Name of the VFS to open with: NULL, or the one that injects faults. */
const char *store_vfs(void);

#endif
