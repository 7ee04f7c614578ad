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

/* Statements of every store, which are made for each turn. */
enum store_word {
	WORD_BEGIN,
	WORD_BEGIN_IMMEDIATE,
	WORD_COMMIT,
	WORD_SAVEPOINT,
	WORD_RELEASE,
	WORD_COUNT
};

struct store {
	uint32_t magic;
#define STORE_MAGIC 0x57f0e21b
	const struct store_desc *desc;
	sqlite3 *db;
	char *path;
	struct stmt *stmts;              /* desc->nstmts */
	sqlite3_stmt *words[WORD_COUNT]; /* NULL: not prepared yet. */
	int64_t wal_bytes; /* of the log that are in use, as of the last commit here */
	int damaged;       /* SQLite has come upon what it cannot have written       */
	char *set_aside;   /* Owned; NULL: nothing.  As store_set_aside() tells it.         */
	/* Of a reader: when its statement has to end. */
	int64_t limit_ms; /* 0: no limit */
	int64_t until_us; /* monotonic   */
};

/* A page of the size that every store is made with, and its head in the log. */
#define STORE_FRAME_BYTES (4096 + 24)

/* A result code of SQLite as an error of ours. */
int store_error_of(sqlite3 *db, int rc);
/* The same for what the store's own connection has said; notes damage. */
int store_error_in(struct store *s, int rc);
/* 0 or an error. */
int store_do(struct store *s, enum store_word word);
/* Opens the file, unchanged.  *ret is the caller's to close on failure too. */
int store_connect(const char *path, int flags, sqlite3 **ret);
/* The same for who only looks: of a copy that has not been opened yet the file alone is read,
 * whatever lies beside it. */
int store_connect_to_look(const char *path, int flags, sqlite3 **ret);
/* The folder that ${path} is in.  0 or an error. */
int store_open_folder(const char *path, int *ret_fd);
/* A handle of the file as it is: neither pragmas nor migrations.  0 or an error. */
int store_open_checker(const struct store_desc *d, const char *path, struct store **ret);
/* Gives it the pragmas of every connection. */
int store_set_up(sqlite3 *db);
/* As store_open_reader(), with ${flags} of SQLite. */
int store_open_second(const struct store_desc *d, const char *path, int flags, int64_t limit_ms,
    struct store **ret_store);
/* 1: the file at ${path}, which this process does not have open, is a copy that has not been
 * opened yet, so that no log is its own; 0: it is not, or cannot be read. */
int store_is_fresh(const char *path);
/* Between store_connect() and the first statement of the owner: a copy that has not been opened
 * yet becomes a store in use.  0, E_NEWER (it is untouched), E_FULL, E_NOMEM, E_STORAGE. */
int store_take_over(struct store *s, char **ret_why);
/* E_NEWER and *ret_why when the schema is one that this program does not know. */
int store_look(struct store *s, char **ret_why);
/* The same for schema number ${version}. */
int store_look_at_version(struct store *s, int64_t version, char **ret_why);
/* The integer that a pragma answers with. */
int store_pragma(struct store *s, const char *sql, int64_t *ret);
/* PRAGMA integrity_check and foreign_key_check: 0, or E_CORRUPT and *ret_why, or an error. */
int store_check_all(sqlite3 *db, const char *path, char **ret_why);
/* Applies what is missing.  0 or an error; *ret_why for people. */
int store_migrate(struct store *s, char **ret_why);
/* Name of the VFS to open with: NULL, or the one that injects faults. */
const char *store_vfs(void);

#endif
