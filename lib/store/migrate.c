#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/store/priv.h"

int
store_pragma(struct store *s, const char *sql, int64_t *ret)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	int r;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(st, 0);
	r = rc == SQLITE_ROW ? 0 : store_error_of(s->db, rc);
	(void)sqlite3_finalize(st);
	return r;
}

int64_t
store_version(const struct store *s)
{
	int64_t version = 0;
	struct store *unconst = (struct store *)(uintptr_t)s; /* SQLite's handle is not const */

	(void)store_pragma(unconst, "PRAGMA user_version", &version);
	return version;
}

static int
apply(struct store *s, const struct store_migration *m, size_t number, char **ret_why)
{
	char *bump = sqlite3_mprintf("PRAGMA user_version=%d", (int)number);
	int r = bump != NULL ? store_begin(s) : E_NOMEM;

	if (r == 0)
		r = store_exec(s, m->sql);
	if (r == 0)
		r = store_exec(s, bump);
	if (r == 0)
		r = store_commit(s);
	if (r < 0) {
		/* Before the rollback, which has no error. */
		*ret_why = mem_format("%s: migration %s: %s", s->path, m->name,
		    store_error(s)[0] != '\0' ? store_error(s) : err_text(r));
		store_rollback(s);
	}
	sqlite3_free(bump);
	return r;
}

int
store_look_at_version(struct store *s, int64_t version, char **ret_why)
{
	size_t have = *s->desc->nmigrations;

	if (version >= 0 && (size_t)version <= have)
		return 0;
	*ret_why = mem_format("%s has schema %lld and this program (%s) knows %zu: it was "
			      "written by a newer anvil; install that one again, nothing was "
			      "changed",
	    s->path, (long long)version, base_version(), have);
	/* Its log too is left to the one that wrote it. */
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return E_NEWER;
}

int
store_look(struct store *s, char **ret_why)
{
	int64_t version = 0;
	int r = store_pragma(s, "PRAGMA user_version", &version);

	return r < 0 ? r : store_look_at_version(s, version, ret_why);
}

int
store_migrate(struct store *s, char **ret_why)
{
	size_t have = *s->desc->nmigrations;
	int64_t version = 0;
	int r = store_pragma(s, "PRAGMA user_version", &version);

	/* The schema has to be whole on disk before anything is promised on top of it. */
	if (r == 0 && (size_t)version < have)
		r = store_set_sync(s, STORE_SYNC_FULL);
	for (size_t i = (size_t)version; i < have && r == 0; i++)
		r = apply(s, &s->desc->migrations[i], i + 1, ret_why);
	return r;
}

static int
check_with(sqlite3 *db, const char *path, const char *sql, char **ret_why)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL), r = 0;

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(st, 0);

		rc = SQLITE_OK;
		if (text != NULL && strcmp(text, "ok") == 0)
			continue;
		r = E_CORRUPT;
		free(*ret_why);
		*ret_why = mem_format("%s: %s", path, text != NULL ? text : "damaged");
	}
	if (rc != SQLITE_DONE && r == 0)
		r = store_error_of(db, rc);
	(void)sqlite3_finalize(st);
	return r;
}

int
store_check_all(sqlite3 *db, const char *path, char **ret_why)
{
	int r = check_with(db, path, "PRAGMA integrity_check", ret_why);

	return r < 0 ? r : check_with(db, path, "PRAGMA foreign_key_check", ret_why);
}

int
store_check(const struct store_desc *d, const char *path, char **ret_why)
{
	CLEANUP(store_closep) struct store *s = NULL;
	int r;

	*ret_why = NULL;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = store_open_reader(d, path, 0, &s);
	if (r == 0)
		r = store_look(s, ret_why);
	if (r == 0)
		r = store_check_all(s->db, path, ret_why);
	if (r < 0 && *ret_why == NULL)
		*ret_why = mem_format("%s: %s", path, err_text(r));
	return r;
}
