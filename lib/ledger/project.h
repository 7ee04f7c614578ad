/*
 * lib/ledger/project.h -- configuration and phase of a project (spec project 14).
 */
#ifndef LIB_LEDGER_PROJECT_H
#define LIB_LEDGER_PROJECT_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct store;

/* A secret as it is sealed; all three or none (ciphertext NULL). */
struct ledger_sealed {
	const char *ciphertext, *nonce;
	int64_t key_version;
};

struct ledger_project {
	const char *project_id, *owner_user_id, *owner_slug, *project_slug, *name, *repo_url,
	    *default_branch, *config_path;
	struct ledger_sealed token;
	int64_t created_at, updated_at;
	int badge_public; /* everybody may see how its newest run went */
	/* Of its state. */
	const char *phase; /* live, frozen, incoming, moved, removing */
	int64_t index_rev;
	int index_current; /* the index has this configuration */
};

enum ledger_created { LEDGER_CREATED, LEDGER_EXISTS, LEDGER_CREATE_CONFLICT };

int ledger_project_create(
    struct store *s, struct arena *a, const struct ledger_project *p, enum ledger_created *ret);

/* E_NOENT: the shard does not know it. */
int ledger_project_get(
    struct store *s, struct arena *a, const char *project_id, struct ledger_project *ret);
/* By id, after ${after} ("" = from the first). */
int ledger_project_list(struct store *s, struct arena *a, const char *after, size_t limit,
    struct ledger_project **ret, size_t *ret_n);

/* NULL members stay, others unless they are set.  ${set_token} with an empty token clears it. */
struct ledger_change {
	const char *name, *repo_url, *default_branch, *config_path;
	int set_token;
	struct ledger_sealed token;
	int set_badge_public, badge_public;
};

/* updated_at grows by 1 ms at least; *ret is the project afterwards.  With another URL, branch
 * or path the versions of its webhooks move: *ret_stale.  E_NOENT. */
int ledger_project_update(struct store *s, struct arena *a, const char *project_id,
    const struct ledger_change *c, int64_t now_ms, struct ledger_project *ret, int *ret_stale);

/* It belongs to somebody else from now on; updated_at grows, unless it is theirs already.  *ret is
 * the project afterwards.  E_NOENT. */
int ledger_project_set_owner(struct store *s, struct arena *a, const char *project_id,
    const char *user_id, const char *slug, int64_t now_ms, struct ledger_project *ret);

/* Phase `removing`: nothing is accepted any more.  E_NOENT. */
int ledger_project_begin_removal(struct store *s, const char *project_id, int64_t now_ms);
/* Ids of projects that are being removed. */
int ledger_project_removing(struct store *s, struct arena *a, const char ***ret, size_t *ret_n);
/* Deletes all rows; every run is terminal by now.  That it was here and was removed stays known. */
int ledger_project_delete(struct store *s, const char *project_id);
/* 1 when it was removed here. */
int ledger_project_was_removed(struct store *s, const char *project_id);

#endif
