/*
 * lib/wire/client.h -- calls that are waited for, for programs that have nothing else to do.
 *
 * One client talks to any number of actors of one runtime directory, in the role ctl; it
 * connects when it is needed and again after a connection was lost.  Actors never use this:
 * their loops wait for nobody.
 */
#ifndef LIB_WIRE_CLIENT_H
#define LIB_WIRE_CLIENT_H

#include <stdint.h>

#include <jansson.h>

#include "lib/base/base.h"
#include "lib/base/buf.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stub.h"

struct client;

/* ${dirfd} is the sockets' directory; borrowed.  NULL: no memory. */
struct client *client_new(int dirfd);
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client *, client_free)

/* Connects and says hello, unless that is done.  0; E_NOENT (no socket of that name), E_LINK
 * (nobody listens, or it went away), E_DENIED (the other side is of another user), E_DEADLINE,
 * E_PROTOCOL, E_INVAL (no address), E_NOMEM. */
int client_connect(struct client *c, const char *address);

/* How a call ended.  All of it is borrowed until client_forget(). */
struct client_reply {
	int err;              /* 0, or as in struct rpc_answer.                      */
	int reached;          /* 1: the connection was there; 0: err is client_connect()'s. */
	const char *message;  /* For people; NULL: none.                             */
	const json_t *data;   /* Of an error; NULL: none.                            */
	const json_t *result; /* NULL when err != 0.                                 */
};

/* Calls ${method} and waits for the answer; ${params} as for rpc_send().  Connects first when
 * that is needed.  ret->err, which is returned as well. */
int client_call(struct client *c, const char *address, const char *method,
    const struct buf *params, int64_t deadline_ms, struct client_reply *ret);
/* The same by a row of a contract table, of which a generated header has the types:
 * ${ret_result} is a zeroed struct of the result; its texts live until client_forget(). */
int client_call_as(struct client *c, const char *address, const struct rpc_contract *m,
    const void *params, int64_t deadline_ms, struct client_reply *ret, void *ret_result);

/* What an actor sends unasked.  All of it is borrowed until the callback returns. */
typedef void
client_event_fn(void *arg, const char *address, const char *method, const json_t *params);
/* ${fn} runs for each notification, while the client waits for something; it may send some
 * itself, and does not call or wait.  NULL: they are passed over, as at first. */
void client_on_event(struct client *c, client_event_fn *fn, void *arg);
/* Sends a notification to an actor that is connected.  0; E_LINK: it is not; or an error of
 * rpc_notify(). */
int client_notify_as(
    struct client *c, const char *address, const struct rpc_contract *m, const void *params);
/* Waits until something has come from ${address}, for as long as it takes.  0; E_LINK: the
 * connection is not there (any more). */
int client_wait(struct client *c, const char *address);

/* Everything that replies have lent is gone. */
void client_forget(struct client *c);
/* Lets ${ms} pass; connections are looked after meanwhile. */
void client_pause(struct client *c, int64_t ms);

#endif
