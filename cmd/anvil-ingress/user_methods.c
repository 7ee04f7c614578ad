/* user.*: accounts, for anvilctl. */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/after.h"
#include "cmd/anvil-ingress/ingress.h"
#include "cmd/anvil-ingress/viewer.h"
#include "gen/ingress.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static struct user_row
user_row(const struct index_user *u)
{
	return (struct user_row) { .user_id = u->id,
		.slug = u->slug,
		.email = u->email,
		.display_name = u->display_name,
		.created_at = u->created_at,
		.has_disabled_at = u->disabled_at != 0,
		.disabled_at = u->disabled_at };
}

/* ---- with a password: hashed on a worker, stored in a turn of its own ---- */

struct hashing {
	struct ingress *in;
	struct parked *caller;
	struct arena *arena; /* Owned: copies of what was asked. */
	struct index_user user;
	char *password; /* In the arena, wiped. */
	char hash[VAULT_PASSWORD_SIZE];
	int verdict;
	int (*store)(void *hashing, struct turn *t);
	char request_id[RPC_REQUEST_ID_SIZE];
};

static void
hashing_free(struct hashing *h)
{
	if (h->password != NULL)
		mem_wipe(h->password, strlen(h->password));
	h->arena = arena_free(h->arena);
	free(h);
}

static void
hash(void *arg)
{
	struct hashing *h = arg;

	h->verdict = vault_password_hash(h->password, strlen(h->password), h->hash);
}

static void
on_hashed(void *arg, int err)
{
	struct hashing *h = arg;
	int r = err < 0 ? err : h->verdict;

	if (r == 0)
		r = actor_turn_for(h->in->actor, 1, h->request_id, h->store, h);
	/* The turn takes the caller when it has answered. */
	if (h->caller != NULL)
		parked_error(h->caller, r < 0 ? r : E_INTERNAL, NULL);
	hashing_free(h);
}

static struct hashing *
hashing_new(struct ingress *in, const char *password, int (*store)(void *, struct turn *))
{
	struct hashing *h = mem_calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->in = in;
	h->store = store;
	h->arena = arena_new();
	h->password = h->arena != NULL ? arena_strdup(h->arena, password) : NULL;
	if (h->password != NULL)
		return h;
	hashing_free(h);
	return NULL;
}

/* Parks the caller and starts the work; takes ${h}. */
static int
hashing_start_take(struct hashing *h, struct turn *t)
{
	int r;

	/* The caller's own copy goes with its reply, before the turn has ended. */
	(void)snprintf(h->request_id, sizeof(h->request_id), "%s", t->request_id);
	h->caller = turn_park(t);
	if (h->caller == NULL) {
		hashing_free(h);
		return E_NOMEM;
	}
	r = actor_work(h->in->actor, hash, on_hashed, h);
	if (r < 0) {
		parked_error(h->caller, r, NULL);
		hashing_free(h);
	}
	return TURN_PARKED;
}

/* ---- bootstrap ---- */

static int
bootstrap_turn(void *arg, struct turn *t)
{
	struct hashing *h = arg;
	struct user_bootstrap_result res = { .kind = USER_BOOTSTRAP_CREATED };
	const char *taken = "";
	int r;

	h->user.created_at = t->now_ms;
	r = index_user_add(t->store, &h->user, h->hash, &taken);
	if (r < 0 && r != E_EXISTS)
		return r;
	if (r == E_EXISTS)
		res.kind = strcmp(taken, "email") == 0 ? USER_BOOTSTRAP_EMAIL_TAKEN
						       : USER_BOOTSTRAP_SLUG_TAKEN;
	res.u.created.user = user_row(&h->user);
	parked_reply(TAKE_PTR(h->caller), &res);
	return 0;
}

int
user_bootstrap(struct ingress *in, struct turn *t, const struct user_bootstrap_params *p,
    struct user_bootstrap_result *ret)
{
	struct hashing *h = hashing_new(in, p->password, bootstrap_turn);
	char id[ID_SIZE];

	(void)ret;
	if (h == NULL)
		return E_NOMEM;
	id_make(ID_USER, id);
	h->user = (struct index_user) { .id = arena_strdup(h->arena, id),
		.slug = arena_strdup(h->arena, p->slug),
		.email = arena_strdup(h->arena, p->email),
		.display_name = arena_strdup(h->arena, p->display_name) };
	if (h->user.id == NULL || h->user.slug == NULL || h->user.email == NULL ||
	    h->user.display_name == NULL) {
		hashing_free(h);
		return E_NOMEM;
	}
	return hashing_start_take(h, t);
}

/* ---- a new password ---- */

static int
reset_turn(void *arg, struct turn *t)
{
	struct hashing *h = arg;
	struct user_reset_password_result res = { .kind = USER_RESET_PASSWORD_OK };
	struct index_user u;
	int r = index_password_set(t->store, h->user.id, h->hash, t->now_ms);

	if (r == 0)
		r = index_user_by_id(t->store, t->arena, h->user.id, &u);
	if (r < 0)
		return r;
	res.u.ok.user = user_row(&u);
	log_event(LOG_LEVEL_INFO, "user_password_reset", LOG_STR("userId", u.id));
	parked_reply(TAKE_PTR(h->caller), &res);
	return 0;
}

int
user_reset_password(struct ingress *in, struct turn *t,
    const struct user_reset_password_params *p, struct user_reset_password_result *ret)
{
	struct index_user u;
	struct hashing *h;
	int r = index_user_find(t->store, t->arena, p->user, &u);

	if (r == E_NOENT) {
		ret->kind = USER_RESET_PASSWORD_NOT_FOUND;
		return 0;
	}
	if (r < 0)
		return r;
	h = hashing_new(in, p->password, reset_turn);
	if (h == NULL)
		return E_NOMEM;
	h->user.id = arena_strdup(h->arena, u.id);
	if (h->user.id == NULL) {
		hashing_free(h);
		return E_NOMEM;
	}
	return hashing_start_take(h, t);
}

/* ---- without ---- */

int
user_invite(struct ingress *in, struct turn *t, const struct user_invite_params *p,
    struct user_invite_result *ret)
{
	char id[ID_SIZE], token[VAULT_TOKEN_SIZE], token_hash[VAULT_SHA256_HEX_SIZE];
	struct index_invite i = { .id = id,
		.token_hash = token_hash,
		.created_by = "operator",
		.created_at = t->now_ms,
		.expires_at = t->now_ms + p->expires_in_hours * 3600000 };
	int r;

	(void)in;
	id_make(ID_INVITE, id);
	vault_token_make(token);
	vault_token_hash(token, token_hash);
	r = index_invite_add(t->store, &i);
	if (r < 0)
		return r;
	ret->kind = USER_INVITE_INVITED;
	ret->u.invited = (struct user_invite_invited) { .invite_id = arena_strdup(t->arena, id),
		.token = arena_strdup(t->arena, token),
		.expires_at = i.expires_at };
	mem_wipe(token, sizeof(token));
	return ret->u.invited.invite_id != NULL && ret->u.invited.token != NULL ? 0 : E_NOMEM;
}

int
user_list(struct ingress *in, struct turn *t, const struct user_list_params *p,
    struct user_list_result *ret)
{
	struct index_user *users;
	struct user_row *rows;
	size_t n;
	int r = index_user_list(t->store, t->arena, &users, &n);

	(void)in;
	(void)p;
	if (r < 0)
		return r;
	rows = arena_calloc(t->arena, n, sizeof(*rows));
	if (rows == NULL)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++)
		rows[i] = user_row(&users[i]);
	ret->kind = USER_LIST_USERS;
	ret->u.users.users = rows;
	ret->u.users.nusers = n;
	return 0;
}

/* ${at} 0: enables.  E_NOENT: there is no such user. */
static int
set_disabled(struct turn *t, const char *name, int64_t at, struct user_row *ret)
{
	struct index_user u;
	int r = index_user_find(t->store, t->arena, name, &u);

	if (r == 0 && (u.disabled_at != 0) != (at != 0)) {
		r = index_user_set_disabled(t->store, u.id, at);
		u.disabled_at = at;
		log_event(LOG_LEVEL_INFO, at != 0 ? "user_disabled" : "user_enabled",
		    LOG_STR("userId", u.id));
	}
	if (r == 0)
		*ret = user_row(&u);
	return r;
}

int
user_disable(struct ingress *in, struct turn *t, const struct user_disable_params *p,
    struct user_disable_result *ret)
{
	int r = set_disabled(t, p->user, t->now_ms, &ret->u.ok.user);

	/* Who watches a run is sent away. */
	if (r == 0)
		r = after_commit(in, t, viewers_expel, ret->u.ok.user.user_id);
	ret->kind = r == E_NOENT ? USER_DISABLE_NOT_FOUND : USER_DISABLE_OK;
	return r == E_NOENT ? 0 : r;
}

int
user_enable(struct ingress *in, struct turn *t, const struct user_enable_params *p,
    struct user_enable_result *ret)
{
	int r = set_disabled(t, p->user, 0, &ret->u.ok.user);

	(void)in;
	ret->kind = r == E_NOENT ? USER_ENABLE_NOT_FOUND : USER_ENABLE_OK;
	return r == E_NOENT ? 0 : r;
}
