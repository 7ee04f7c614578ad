#include "cmd/anvil-ingress/auth.h"

#include <string.h>
#include <strings.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/routes.h"
#include "lib/base/ascii.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

int
auth_bearer(const char *header, char out[AUTH_BEARER_MAX])
{
	static const char scheme[] = "Bearer";
	const char *p = header + sizeof(scheme) - 1;
	size_t n;

	if (strncasecmp(header, scheme, sizeof(scheme) - 1) != 0 || !ascii_is_space(*p))
		return E_NOENT;
	while (ascii_is_space(*p))
		p++;
	n = strlen(p);
	while (n > 0 && ascii_is_space(p[n - 1]))
		n--;
	if (n == 0)
		return E_NOENT;
	if (n >= AUTH_BEARER_MAX)
		return E_RANGE;
	memcpy(out, p, n);
	out[n] = '\0';
	return 0;
}

/* ---- who asks ---- */

struct auth {
	char hash[VAULT_SHA256_HEX_SIZE];
	struct index_session session;
	int64_t now_ms;
};

static int
find_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct auth *a = x->work;
	int r;

	a->now_ms = t->now_ms;
	r = index_session_get(t->store, x->arena, a->hash, t->now_ms, &a->session);
	if (r < 0)
		return r;
	return index_user_by_id(t->store, x->arena, a->session.user_id, &x->user);
}

/* Whether these reach the disk decides nothing, so nobody waits for them. */
static int
expired_turn(void *arg, struct turn *t)
{
	const struct auth *a = arg;
	struct index_session s;

	(void)index_session_get(t->store, t->arena, a->hash, t->now_ms, &s);
	return 0;
}

struct refresh {
	const char *hash;
	int64_t until_ms;
};

static int
refresh_turn(void *arg, struct turn *t)
{
	const struct refresh *f = arg;

	return index_session_refresh(t->store, f->hash, f->until_ms);
}

static void
refresh_if_due(struct exchange *x, const struct auth *a)
{
	const struct config *c = x->in->config;
	struct refresh f = { a->hash, a->now_ms + c->sessions_ttl_seconds * 1000 };

	if (a->session.expires_at - a->now_ms < c->sessions_refresh_below_seconds * 1000)
		(void)actor_turn_for(x->in->actor, 1, http_req_id(x->req), refresh_turn, &f);
}

static int
refuse(struct exchange *x, enum http_code code)
{
	answer_error(x, code);
	return E_DENIED;
}

int
auth_check(struct exchange *x)
{
	const char *header = http_req_header_once(x->req, "Authorization");
	char id[AUTH_BEARER_MAX];
	struct auth a;
	int r = header != NULL ? auth_bearer(header, id) : E_NOENT;

	if (r == E_NOENT)
		return refuse(x, HTTP_CODE_MISSING_AUTHORIZATION);
	if (r < 0 || !vault_token_check(id))
		return refuse(x, HTTP_CODE_INVALID_SESSION);
	vault_token_hash(id, a.hash);
	mem_wipe(id, sizeof(id));
	x->work = &a;
	r = exchange_turn(x, 0, find_turn);
	x->work = NULL;
	if (r == E_NOENT) {
		(void)actor_turn_for(x->in->actor, 1, http_req_id(x->req), expired_turn, &a);
		return refuse(x, HTTP_CODE_INVALID_SESSION);
	}
	if (r < 0) {
		exchange_fail(x, r);
		return r;
	}
	if (x->user.disabled_at != 0)
		return refuse(x, HTTP_CODE_USER_DISABLED);
	refresh_if_due(x, &a);
	return 0;
}

/* ---- a ticket instead of a session ---- */

/* In the exchange's arena. */
struct ticket_use {
	const char *run_id;
	void (*next)(struct exchange *x);
	char hash[VAULT_SHA256_HEX_SIZE];
	int verdict; /* 0 or E_NOENT */
};

static void
ticket_used(void *arg)
{
	struct exchange *x = arg;
	struct ticket_use *u = x->work;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	x->work = NULL;
	if (u->verdict < 0)
		answer_error(x, HTTP_CODE_INVALID_LOG_TICKET);
	else if (x->user.disabled_at != 0)
		answer_error(x, HTTP_CODE_USER_DISABLED);
	else
		u->next(x);
}

static void
ticket_lost(void *arg)
{
	struct exchange *x = arg;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	x->work = NULL;
	exchange_fail(x, E_STORAGE);
}

/* One that is good for nothing is used up all the same, so that is no error of the turn. */
static int
ticket_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct ticket_use *u = x->work;
	struct index_ticket ticket;
	int r = index_ticket_take(t->store, x->arena, u->hash, &ticket);

	if (r < 0 && r != E_NOENT)
		return r;
	u->verdict = r;
	if (r == 0 && (ticket.expires_at <= t->now_ms || strcmp(ticket.run_id, u->run_id) != 0))
		u->verdict = E_NOENT;
	if (u->verdict == 0) {
		r = index_user_by_id(t->store, x->arena, ticket.user_id, &x->user);
		if (r < 0 && r != E_NOENT)
			return r;
		u->verdict = r;
	}
	return turn_after_commit(t, ticket_used, x, ticket_lost);
}

void
auth_use_ticket(struct exchange *x, const char *ticket, const char *run_id,
    void (*next)(struct exchange *x))
{
	struct ticket_use *u;
	int r;

	if (ticket == NULL || !vault_token_check(ticket)) {
		answer_error(x, HTTP_CODE_INVALID_LOG_TICKET);
		return;
	}
	u = arena_alloc(x->arena, sizeof(*u));
	if (u == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	u->run_id = run_id;
	u->next = next;
	vault_token_hash(ticket, u->hash);
	x->work = u;
	r = exchange_turn(x, 1, ticket_turn);
	/* After an error of the turn its effect has told, or never will. */
	if (r < 0 && x->work == u) {
		x->work = NULL;
		exchange_fail(x, r);
	}
}

/* ---- a new session ---- */

int
auth_begin_session(struct exchange *x, struct turn *t, const struct index_user *u, int status)
{
	int64_t until = t->now_ms + x->in->config->sessions_ttl_seconds * 1000;
	char id[VAULT_TOKEN_SIZE], hash[VAULT_SHA256_HEX_SIZE];
	struct http_session s = { .session_id = id,
		.expires_at = until,
		.user = answer_user(u),
		.invite_ttl_seconds = INVITE_TTL_SECONDS };
	int r;

	vault_token_make(id);
	vault_token_hash(id, hash);
	r = index_session_add(t->store, hash, u->id, t->now_ms, until);
	if (r == 0)
		r = answer_prepare(x, &http_session_codec, &s);
	mem_wipe(id, sizeof(id));
	return r < 0 ? r : exchange_answer_after(x, t, status);
}

/* ---- logout ---- */

static int
logout_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	int r = index_session_remove(t->store, x->work);

	return r < 0 ? r : exchange_answer_after(x, t, 204);
}

void
route_logout(struct exchange *x)
{
	const char *header = http_req_header_once(x->req, "Authorization");
	char id[AUTH_BEARER_MAX], hash[VAULT_SHA256_HEX_SIZE];

	if (header == NULL || auth_bearer(header, id) < 0 || !vault_token_check(id)) {
		answer_empty(x, 204);
		return;
	}
	vault_token_hash(id, hash);
	x->work = hash;
	exchange_do(x, 1, logout_turn);
	x->work = NULL;
}
