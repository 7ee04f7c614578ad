/*
 * lib/index/accounts.h -- users, passwords, invites, sessions, log tickets.
 *
 * Hashes of sessions, invite tokens and tickets are made by the caller (64 hexadecimal digits).
 */
#ifndef LIB_INDEX_ACCOUNTS_H
#define LIB_INDEX_ACCOUNTS_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;

struct index_user {
	const char *id, *slug, *email, *display_name;
	int64_t created_at;
	int64_t disabled_at; /* 0: not disabled */
};

/* E_EXISTS: *ret_taken is "email" or "slug", the address first. */
int index_user_add(struct store *s, const struct index_user *u, const char *password_hash,
    const char **ret_taken);
int index_user_by_id(struct store *s, struct arena *a, const char *id, struct index_user *ret);
int index_user_by_email(
    struct store *s, struct arena *a, const char *email, struct index_user *ret);
/* By id, address or slug, whichever it is. */
int index_user_find(struct store *s, struct arena *a, const char *text, struct index_user *ret);
/* All, oldest first. */
int index_user_list(struct store *s, struct arena *a, struct index_user **ret, size_t *ret_n);
/* ${at} 0: enables. */
int index_user_set_disabled(struct store *s, const char *id, int64_t at);
/* *ret NULL: none is set. */
int index_password_get(struct store *s, struct arena *a, const char *user_id, const char **ret);
/* Also ends the user's sessions. */
int index_password_set(struct store *s, const char *user_id, const char *hash, int64_t now_ms);

struct index_invite {
	const char *id, *token_hash, *created_by; /* a user's id, or "operator" */
	int64_t created_at, expires_at;
	int64_t accepted_at; /* 0: it has not been */
};

int index_invite_add(struct store *s, const struct index_invite *i);
int index_invite_by_hash(
    struct store *s, struct arena *a, const char *token_hash, struct index_invite *ret);
/* E_EXISTS: accepted already. */
int index_invite_accept(
    struct store *s, const char *invite_id, const char *user_id, int64_t now_ms);

struct index_session {
	const char *user_id;
	int64_t issued_at, expires_at, version;
};

int index_session_add(
    struct store *s, const char *hash, const char *user_id, int64_t now_ms, int64_t expires_at);
/* E_NOENT also when it has expired; the row is then deleted (in a write turn). */
int index_session_get(struct store *s, struct arena *a, const char *hash, int64_t now_ms,
    struct index_session *ret);
/* Moves the expiry and counts the version up. */
int index_session_refresh(struct store *s, const char *hash, int64_t expires_at);
int index_session_remove(struct store *s, const char *hash);
int index_session_remove_of(struct store *s, const char *user_id);

struct index_ticket {
	const char *run_id, *user_id;
	int64_t expires_at;
};

int index_ticket_add(struct store *s, const char *hash, const struct index_ticket *t);
/* Reads and deletes it, whether it has expired or not. */
int
index_ticket_take(struct store *s, struct arena *a, const char *hash, struct index_ticket *ret);

/* Expired sessions and tickets, and invites long past their expiry; hourly. */
int index_accounts_sweep(struct store *s, int64_t now_ms);

#endif
