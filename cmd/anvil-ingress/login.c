/* POST /api/public/auth/login (http-api 4). */
#include <stdio.h>
#include <string.h>

#include "cmd/anvil-ingress/answer.h"
#include "cmd/anvil-ingress/auth.h"
#include "cmd/anvil-ingress/limiter.h"
#include "cmd/anvil-ingress/routes.h"
#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Owned by the job until it is done. */
struct login {
	struct exchange *x;
	char *password; /* Owned, wiped.                     */
	char *stored;   /* Owned.  NULL: nobody of that name */
	char user_id[ID_SIZE];
	int verdict; /* 1: it is the password */
};

static struct login *
login_free(struct login *l)
{
	if (l->password != NULL)
		mem_wipe(l->password, strlen(l->password));
	free(l->password);
	free(l->stored);
	return mem_free(l);
}

static void
refuse(struct exchange *x)
{
	log_event(LOG_LEVEL_INFO, "auth_login_failed",
	    LOG_STR("clientAddress", http_req_client(x->req)));
	answer_error(x, HTTP_CODE_INVALID_CREDENTIALS);
}

/* ---- the password is right ---- */

static int
session_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	struct login *l = x->work;
	const char *now_stored;
	int r = index_user_by_id(t->store, x->arena, l->user_id, &x->user);

	/* While the hash was checked, the account may have been closed or changed. */
	if (r == 0)
		r = index_password_get(t->store, t->arena, l->user_id, &now_stored);
	if (r < 0)
		return r;
	if (x->user.disabled_at != 0 || now_stored == NULL ||
	    strcmp(now_stored, l->stored) != 0)
		return E_NOENT;
	return auth_begin_session(x, t, &x->user, 200);
}

static void
on_checked(void *arg, int err)
{
	struct login *l = arg;
	struct exchange *x = l->x;
	int r = err < 0 ? err : l->verdict;

	OBJ_CHECK(x, EXCHANGE_MAGIC);
	log_set_request(http_req_id(x->req));
	if (r == 1 && l->stored != NULL && l->user_id[0] != '\0') {
		x->work = l;
		r = exchange_turn(x, 1, session_turn);
		x->work = NULL;
		if (r == 0)
			log_event(LOG_LEVEL_INFO, "auth_login_succeeded",
			    LOG_STR("userId", l->user_id));
	} else if (r >= 0) {
		r = E_NOENT;
	}
	if (r == E_NOENT)
		refuse(x);
	else if (r < 0)
		exchange_fail(x, r == E_CANCELED ? E_OVERLOADED : r);
	log_set_request("");
	(void)login_free(l);
}

static void
check(void *arg)
{
	struct login *l = arg;

	l->verdict = vault_password_verify(l->stored, l->password, strlen(l->password));
}

/* ---- who is it? ---- */

static int
find_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const struct http_login_body *b = x->work;

	return index_user_by_email(t->store, x->arena, b->email, &x->user);
}

static int
hash_turn(void *arg, struct turn *t)
{
	struct exchange *x = arg;
	const char *stored;
	int r = index_password_get(t->store, x->arena, x->user.id, &stored);

	x->work = NULL;
	if (r == 0 && stored != NULL)
		x->work = arena_strdup(x->arena, stored);
	return r;
}

/* Nobody, a closed account and one without a password cost the same check. */
static void
check_password(struct exchange *x, const struct http_login_body *b, const char *stored)
{
	struct login *l = mem_calloc(1, sizeof(*l));
	int r = E_NOMEM;

	if (l != NULL) {
		l->x = x;
		l->password = mem_strdup(b->password);
		l->stored = stored != NULL ? mem_strdup(stored) : NULL;
		if (x->user.id != NULL && x->user.disabled_at == 0)
			(void)snprintf(l->user_id, sizeof(l->user_id), "%s", x->user.id);
		if (l->password != NULL && (stored == NULL || l->stored != NULL))
			r = actor_work(x->in->actor, check, on_checked, l);
	}
	if (r < 0) {
		if (l != NULL)
			(void)login_free(l);
		exchange_fail(x, r);
	}
}

static void
on_body(struct exchange *x)
{
	struct http_login_body b = { .email = NULL };
	const char *stored = NULL;
	int r;

	if (exchange_shapes(x, &http_login_body_codec, &b) < 0 ||
	    exchange_rules(x, &http_login_body_codec, &b) < 0)
		return;
	r = limiter_try(x->in->limit_login, b.email, clock_mono());
	if (r == 0) {
		answer_error(x, HTTP_CODE_RATE_LIMITED);
		return;
	}
	x->work = &b;
	if (r == 1)
		r = exchange_turn(x, 0, find_turn);
	x->work = NULL;
	if (r == 0) {
		r = exchange_turn(x, 0, hash_turn);
		stored = x->work;
		x->work = NULL;
	}
	if (r < 0 && r != E_NOENT)
		exchange_fail(x, r);
	else
		check_password(x, &b, stored);
}

void
route_login(struct exchange *x)
{
	exchange_read_body(x, on_body);
}
