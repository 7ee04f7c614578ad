#include "lib/index/accounts.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/index/stmts.h"

#define INVITE_KEPT_MS (30 * INT64_C(86400000)) /* past its expiry (spec http-api 14) */

/* ---- users ---- */

static int
user_read(struct stmt *st, struct arena *a, void *row)
{
	struct index_user *u = row;
	int err = 0;

	*u = (struct index_user) { .id = stmt_text_dup(st, 0, a, &err),
		.slug = stmt_text_dup(st, 1, a, &err),
		.email = stmt_text_dup(st, 2, a, &err),
		.display_name = stmt_text_dup(st, 3, a, &err),
		.created_at = stmt_int(st, 4),
		.disabled_at = stmt_int(st, 5) };
	return err;
}

static int
user_get(struct store *s, struct arena *a, enum index_stmt by, const char *key,
    struct index_user *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, by);
	int r = stmt_first(st, stmt_bind(st, "s", key));

	return r < 0 ? r : user_read(st, a, ret);
}

int
index_user_by_id(struct store *s, struct arena *a, const char *id, struct index_user *ret)
{
	return user_get(s, a, IX_USER_BY_ID, id, ret);
}

int
index_user_by_email(struct store *s, struct arena *a, const char *email, struct index_user *ret)
{
	return user_get(s, a, IX_USER_BY_EMAIL, email, ret);
}

int
index_user_find(struct store *s, struct arena *a, const char *text, struct index_user *ret)
{
	if (id_check(ID_USER, text))
		return user_get(s, a, IX_USER_BY_ID, text, ret);
	return user_get(
	    s, a, strchr(text, '@') != NULL ? IX_USER_BY_EMAIL : IX_USER_BY_SLUG, text, ret);
}

int
index_user_list(struct store *s, struct arena *a, struct index_user **ret, size_t *ret_n)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_USER_LIST);
	void *rows;
	int r = stmt_rows(st, 0, a, user_read, sizeof(**ret), &rows, ret_n);

	if (r == 0)
		*ret = rows;
	return r;
}

/* Which of the two unique values somebody has already; the address first. */
static int
user_taken(struct store *s, const struct index_user *u, const char **ret_taken)
{
	static const struct {
		enum index_stmt by;
		const char *word;
	} rows[] = { { IX_USER_BY_EMAIL, "email" }, { IX_USER_BY_SLUG, "slug" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, rows[i].by);
		int r = stmt_bind(st, "s", i == 0 ? u->email : u->slug);

		if (r == 0)
			r = stmt_step(st);
		if (r < 0)
			return r;
		if (r == 1) {
			*ret_taken = rows[i].word;
			return E_EXISTS;
		}
	}
	return 0;
}

int
index_user_add(struct store *s, const struct index_user *u, const char *password_hash,
    const char **ret_taken)
{
	int r = user_taken(s, u, ret_taken);

	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_USER_ADD);

		r = index_run_stmt(s, st,
		    stmt_bind(
			st, "ssssi", u->id, u->slug, u->email, u->display_name, u->created_at),
		    INDEX_ANY);
	}
	if (r == 0) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PASSWORD_SET);

		r = index_run_stmt(s, st,
		    stmt_bind(st, "ssi", u->id, password_hash, u->created_at), INDEX_ANY);
	}
	return r;
}

int
index_user_set_disabled(struct store *s, const char *id, int64_t at)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_USER_SET_DISABLED);

	return index_run_stmt(s, st, stmt_bind(st, "sI", id, at != 0 ? &at : NULL), INDEX_ROWS);
}

int
index_password_get(struct store *s, struct arena *a, const char *user_id, const char **ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PASSWORD_GET);
	int err = 0, r = stmt_bind(st, "s", user_id);

	*ret = NULL;
	if (r == 0)
		r = stmt_step(st);
	if (r <= 0)
		return r;
	*ret = stmt_text_dup(st, 0, a, &err);
	return err;
}

int
index_password_set(struct store *s, const char *user_id, const char *hash, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_PASSWORD_SET);
	int r = index_run_stmt(s, st, stmt_bind(st, "ssi", user_id, hash, now_ms), INDEX_ANY);

	return r < 0 ? r : index_session_remove_of(s, user_id);
}

/* ---- invites ---- */

int
index_invite_add(struct store *s, const struct index_invite *i)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_INVITE_ADD);

	return index_run_stmt(s, st,
	    stmt_bind(
		st, "sssii", i->id, i->token_hash, i->created_by, i->created_at, i->expires_at),
	    INDEX_ANY);
}

int
index_invite_by_hash(
    struct store *s, struct arena *a, const char *token_hash, struct index_invite *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_INVITE_BY_HASH);
	int err = 0, r = stmt_bind(st, "s", token_hash);

	if (r == 0)
		r = stmt_step(st);
	if (r <= 0)
		return r == 0 ? E_NOENT : r;
	*ret = (struct index_invite) { .id = stmt_text_dup(st, 0, a, &err),
		.token_hash = stmt_text_dup(st, 1, a, &err),
		.created_by = stmt_text_dup(st, 2, a, &err),
		.created_at = stmt_int(st, 3),
		.expires_at = stmt_int(st, 4),
		.accepted_at = stmt_int(st, 5) };
	return err;
}

int
index_invite_accept(struct store *s, const char *invite_id, const char *user_id, int64_t now_ms)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_INVITE_ACCEPT);
	int r = index_run_stmt(
	    s, st, stmt_bind(st, "ssi", invite_id, user_id, now_ms), INDEX_ROWS);

	return r == E_NOENT ? E_EXISTS : r;
}

/* ---- sessions ---- */

int
index_session_add(
    struct store *s, const char *hash, const char *user_id, int64_t now_ms, int64_t expires_at)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_SESSION_ADD);

	return index_run_stmt(
	    s, st, stmt_bind(st, "ssii", hash, user_id, now_ms, expires_at), INDEX_ANY);
}

int
index_session_get(struct store *s, struct arena *a, const char *hash, int64_t now_ms,
    struct index_session *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_SESSION_GET);
	int err = 0, r = stmt_bind(st, "s", hash);

	if (r == 0)
		r = stmt_step(st);
	if (r <= 0)
		return r == 0 ? E_NOENT : r;
	*ret = (struct index_session) { .user_id = stmt_text_dup(st, 0, a, &err),
		.issued_at = stmt_int(st, 1),
		.expires_at = stmt_int(st, 2),
		.version = stmt_int(st, 3) };
	if (err == 0 && ret->expires_at <= now_ms) {
		stmt_reset(st);
		if (store_in_txn(s))
			(void)index_session_remove(s, hash); /* the sweep does it otherwise */
		return E_NOENT;
	}
	return err;
}

int
index_session_refresh(struct store *s, const char *hash, int64_t expires_at)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_SESSION_REFRESH);

	return index_run_stmt(s, st, stmt_bind(st, "si", hash, expires_at), INDEX_ROWS);
}

int
index_session_remove(struct store *s, const char *hash)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_SESSION_REMOVE);

	return index_run_stmt(s, st, stmt_bind(st, "s", hash), INDEX_ANY);
}

int
index_session_remove_of(struct store *s, const char *user_id)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_SESSION_REMOVE_OF);

	return index_run_stmt(s, st, stmt_bind(st, "s", user_id), INDEX_ANY);
}

/* ---- log tickets ---- */

int
index_ticket_add(struct store *s, const char *hash, const struct index_ticket *t)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_TICKET_ADD);

	return index_run_stmt(s, st,
	    stmt_bind(st, "sssi", hash, t->run_id, t->user_id, t->expires_at), INDEX_ANY);
}

static int
ticket_remove(struct store *s, const char *hash)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_TICKET_REMOVE);

	return index_run_stmt(s, st, stmt_bind(st, "s", hash), INDEX_ROWS);
}

int
index_ticket_take(struct store *s, struct arena *a, const char *hash, struct index_ticket *ret)
{
	CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, IX_TICKET_GET);
	int err = 0, r = stmt_first(st, stmt_bind(st, "s", hash));

	if (r < 0)
		return r;
	*ret = (struct index_ticket) { .run_id = stmt_text_dup(st, 0, a, &err),
		.user_id = stmt_text_dup(st, 1, a, &err),
		.expires_at = stmt_int(st, 2) };
	stmt_reset(st);
	return err < 0 ? err : ticket_remove(s, hash);
}

/* ---- upkeep ---- */

int
index_accounts_sweep(struct store *s, int64_t now_ms)
{
	static const enum index_stmt stmts[] = { IX_SESSION_SWEEP, IX_TICKET_SWEEP,
		IX_INVITE_SWEEP };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(stmts) && r == 0; i++) {
		CLEANUP(stmt_resetp) struct stmt *st = store_stmt(s, stmts[i]);
		int64_t before = stmts[i] == IX_INVITE_SWEEP ? now_ms - INVITE_KEPT_MS : now_ms;

		r = index_run_stmt(s, st, stmt_bind(st, "i", before), INDEX_ANY);
	}
	return r;
}
