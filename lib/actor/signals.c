/* lib/actor/signals.c -- signals that ask an actor to go, or to read its configuration. */
#include <signal.h>

#include "lib/actor/inside.h"
#include "lib/base/base.h"
#include "lib/base/err.h"

void
actor_ask_to_go(struct actor *a)
{
	if (a->desc->on_term != NULL)
		a->desc->on_term(a->ctx);
	else
		actor_drain(a);
}

static void
actor_on_term(evutil_socket_t sig, short what, void *arg)
{
	struct actor *a = arg;

	(void)sig;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	actor_ask_to_go(a);
}

static void
actor_on_hup(evutil_socket_t sig, short what, void *arg)
{
	struct actor *a = arg;

	(void)sig;
	(void)what;
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (a->desc->on_hup != NULL)
		a->desc->on_hup(a->ctx);
}

int
actor_signals(struct actor *a)
{
	OBJ_CHECK(a, ACTOR_MAGIC);
	if (evsignal_add(&a->ev_term, NULL) < 0 || evsignal_add(&a->ev_int, NULL) < 0 ||
	    evsignal_add(&a->ev_hup, NULL) < 0)
		return E_NOMEM;
	return 0;
}

void
signals_init(struct actor *a)
{
	evsignal_assign(&a->ev_term, a->base, SIGTERM, actor_on_term, a);
	evsignal_assign(&a->ev_int, a->base, SIGINT, actor_on_term, a);
	evsignal_assign(&a->ev_hup, a->base, SIGHUP, actor_on_hup, a);
}

void
signals_done(struct actor *a)
{
	(void)evsignal_del(&a->ev_term);
	(void)evsignal_del(&a->ev_int);
	(void)evsignal_del(&a->ev_hup);
}
