/* POST /api/public/auth/invite/accept (http-api 4) and POST /api/private/invites (5). */
#include <math.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/limiter.h"
#include "cmd/anvil-ingress/routes.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define HOUR_MS 3600000

/* ---- making one ---- */

static int
make_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const struct http_create_invite_body *b = x->work;
	int64_t until = t->now_ms + llround(b->expires_in_hours * HOUR_MS);
	char id[ID_SIZE], token[VAULT_TOKEN_SIZE], hash[VAULT_SHA256_HEX_SIZE];
	struct index_invite i = { .id = id,
		.token_hash = hash,
		.created_by = x->user.id,
		.created_at = t->now_ms,
		.expires_at = until };
	struct http_invite answer = {
		.invite_id = id, .token = token, .expires_at = until, .created_at = t->now_ms
	};
	int r;

	id_make(ID_INVITE, id);
	vault_token_make(token);
	vault_token_hash(token, hash);
	r = index_invite_add(t->store, &i);
	if (r == 0)
		r = answer_prepare(x, &http_invite_codec, &answer);
	mem_wipe(token, sizeof(token));
	return r < 0 ? r : exchange_answer_after(x, t, 201);
}

static void
on_make_body(struct exchange *x)
{
	struct http_create_invite_body b = { 0 };

	if (exchange_shapes(x, &http_create_invite_body_codec, &b) < 0 ||
	    exchange_rules(x, &http_create_invite_body_codec, &b) < 0)
		return;
	x->work = &b;
	exchange_do(x, 1, make_turn);
	x->work = NULL;
}

void
route_create_invite(struct exchange *x)
{
	exchange_read_body(x, on_make_body);
}

/* ---- accepting one ---- */

/* Owned by the job until it is done. */
struct acceptance {
	struct exchange *x;
	const struct http_accept_invite_body *body; /* In the exchange's arena. */
	char *password;                             /* Owned, wiped.            */
	char token_hash[VAULT_SHA256_HEX_SIZE];
	char password_hash[VAULT_PASSWORD_SIZE];
	int verdict;
	enum http_code refused;
};

static struct acceptance *
acceptance_free(struct acceptance *a)
{
	if (a->password != NULL)
		mem_wipe(a->password, strlen(a->password));
	free(a->password);
	return mem_free(a);
}

/* E_EXISTS with `refused` set when the invite is not to be had. */
static int
look_at_invite(struct acceptance *a, struct turn *t, struct index_invite *i)
{
	int r = index_invite_by_hash(t->store, t->arena, a->token_hash, i);

	if (r == E_NOENT)
		a->refused = HTTP_CODE_INVITE_NOT_FOUND;
	else if (r < 0)
		return r;
	else if (i->accepted_at != 0)
		a->refused = HTTP_CODE_INVITE_ALREADY_USED;
	else if (t->now_ms >= i->expires_at)
		a->refused = HTTP_CODE_INVITE_EXPIRED;
	else
		return 0;
	return E_EXISTS;
}

static int
look_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct index_invite i;

	return look_at_invite(x->work, t, &i);
}

static int
claim_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct acceptance *a = x->work;
	char id[ID_SIZE];
	struct index_user u = { .slug = a->body->slug,
		.email = a->body->email,
		.display_name = a->body->display_name,
		.created_at = t->now_ms };
	const char *taken = "";
	struct index_invite i;
	int r = look_at_invite(a, t, &i);

	if (r < 0)
		return r;
	id_make(ID_USER, id);
	u.id = id;
	r = index_user_add(t->store, &u, a->password_hash, &taken);
	if (r == E_EXISTS)
		a->refused = strcmp(taken, "email") == 0 ? HTTP_CODE_EMAIL_TAKEN
							 : HTTP_CODE_SLUG_TAKEN;
	if (r == 0)
		r = index_invite_accept(t->store, i.id, id, t->now_ms);
	if (r < 0)
		return r;
	log_event(LOG_LEVEL_INFO, "invite_accepted", LOG_STR("inviteId", i.id),
	    LOG_STR("userId", id));
	return auth_begin_session(x, t, &u, 201);
}

static void
on_hashed(void *arg, int err)
{
	struct acceptance *a = arg;
	struct exchange *x = a->x;
	int r = err < 0 ? err : a->verdict;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	log_set_request(http_req_id(x->req));
	x->work = a;
	if (r == 0)
		r = exchange_turn(x, 1, claim_turn);
	x->work = NULL;
	if (r == E_EXISTS)
		answer_error(x, a->refused);
	else if (r < 0)
		exchange_fail(x, r == E_CANCELED ? E_OVERLOADED : r);
	log_set_request("");
	(void)acceptance_free(a);
}

static void
hash(void *arg)
{
	struct acceptance *a = arg;

	a->verdict = vault_password_hash(a->password, strlen(a->password), a->password_hash);
}

static void
judge(struct exchange *x, struct acceptance *a, const struct http_accept_invite_body *b)
{
	int r;

	x->work = a;
	r = exchange_turn(x, 0, look_turn);
	x->work = NULL;
	if (r == 0) {
		a->password = mem_strdup(b->password);
		r = a->password != NULL ? actor_work(x->in->actor, hash, on_hashed, a)
					: E_NOMEM;
	}
	if (r == 0)
		return; /* a is the job's now */
	if (r == E_EXISTS)
		answer_error(x, a->refused);
	else
		exchange_fail(x, r);
	(void)acceptance_free(a);
}

static void
on_accept_body(struct exchange *x)
{
	struct http_accept_invite_body *b = arena_alloc(x->arena, sizeof(*b));
	struct acceptance *a;
	char token_hash[VAULT_SHA256_HEX_SIZE];
	int r;

	if (b == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	if (exchange_shapes(x, &http_accept_invite_body_codec, b) < 0)
		return;
	vault_sha256_hex(b->token, strlen(b->token), token_hash);
	r = limiter_try(x->in->limit_accept, token_hash, clock_mono());
	if (r == 0) {
		answer_error(x, HTTP_CODE_RATE_LIMITED);
		return;
	}
	if (exchange_rules(x, &http_accept_invite_body_codec, b) < 0)
		return;
	a = r == 1 ? mem_calloc(1, sizeof(*a)) : NULL;
	if (a == NULL) {
		exchange_fail(x, E_NOMEM);
		return;
	}
	a->x = x;
	a->body = b;
	memcpy(a->token_hash, token_hash, sizeof(a->token_hash));
	judge(x, a, b);
}

void
route_accept_invite(struct exchange *x)
{
	exchange_read_body(x, on_accept_body);
}
