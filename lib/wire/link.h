/*
 * lib/wire/link.h -- connections between actors: hello, reconnect with back-off, listening.
 *
 * Sockets live in one directory, given as a descriptor, so that a long path does not meet the
 * limit of sun_path.  The address "project/0" has the socket `project-0.sock`, "run/<id>"
 * `<id>.sock`, any other `<address>.sock`.
 */
#ifndef LIB_WIRE_LINK_H
#define LIB_WIRE_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"
#include "lib/wire/rpc.h"

#define LINK_HELLO_MS       5000 /* For the first message of a connection, and its answer. */
#define LINK_BACKOFF_MS     50   /* The first wait; doubles ...                            */
#define LINK_BACKOFF_MAX_MS 1000 /* ... up to this.                                        */
#define LINK_LISTEN_BACKLOG 256

struct event_base;

/* Name of the socket of ${address}.  0 or E_INVAL (empty, too long, odd characters). */
int link_socket_name(const char *address, char out[RPC_ADDRESS_SIZE + 8]);
/* Role that an address has: "project/3" is ROLE_PROJECT; 0: none. */
uint32_t link_address_role(const char *address);

/* ---- the connecting side ---- */

struct link;

struct link_ops {
	/* The hello has been accepted: calls may be sent over ${p}. */
	void (*on_up)(void *arg, struct link *l, struct rpc_peer *p);
	/* Once for every on_up; also once for the first failure to connect after being asked,
	 * so that an owner can tell "not there" from "not yet".  It goes on trying. */
	void (*on_down)(void *arg, struct link *l, int err);
	/* What the other side asks over this connection; NULL: every request is E_METHOD. */
	void (*on_request)(void *arg, struct rpc_peer *p, struct rpc_request *req);
	/* May refuse the other side (pid is of SO_PEERCRED): 0 or E_PEER.  NULL: own uid or
	 * root is enough, which is checked in any case. */
	int (*check)(void *arg, const char *address, pid_t pid);
};

struct link_desc {
	int dirfd;           /* Of the sockets' directory; borrowed.  */
	const char *to;      /* Address of the other side; copied.    */
	enum rpc_role role;  /* Ours.                                 */
	const char *address; /* Ours; copied.                         */
	int once;            /* 1: no reconnect after a failure.      */
};

/* Starts connecting from the loop at once.  NULL: no memory or a bad address. */
struct link *link_new(struct event_base *base, const struct link_desc *desc,
    const struct link_ops *ops, void *arg);
/* Ends the connection for good; no callback of the ops runs any more, calls in flight still get
 * theirs, and link_peer() is NULL in them. */
void link_close(struct link *l);
/* As link_close(), and frees it. */
struct link *link_free(struct link *l);
DEFINE_CLEANUP(struct link *, link_free)

/* The connection while it is up, borrowed; NULL otherwise.  Do not keep it. */
struct rpc_peer *link_peer(const struct link *l);
/* Tries again now instead of at the end of the back-off. */
void link_retry(struct link *l);
/* Why it is down; 0 while it is up or has not been tried. */
int link_error(const struct link *l);
const char *link_to(const struct link *l);

/* ---- the accepting side ---- */

struct listener;

struct hello {
	enum rpc_role role;
	const char *address;
	pid_t pid; /* As it says; equal to that of SO_PEERCRED. */
	int64_t protocol;
};

struct listener_ops {
	/* Decides over a hello whose uid and protocol are good: 0, or E_PEER, E_DENIED...
	 * NULL: everybody of our uid is welcome. */
	int (*check)(void *arg, struct rpc_peer *p, const struct hello *h);
	/* Welcome: role, address and pid of ${p} are set.  The owner takes the reference and
	 * sets its own ops with rpc_peer_set_ops() before returning. */
	void (*on_peer)(void *arg, struct rpc_peer *p);
};

struct listener_desc {
	int dirfd;           /* Of the sockets' directory; borrowed.          */
	const char *address; /* Ours: names the socket, told in hello; copied. */
};

/* Binds (0600) and listens.  An old socket of that name is replaced: the caller holds the
 * lock that says it is stale.  0, E_NOMEM, E_INVAL, E_EXISTS (not a socket), E_SYS. */
int listener_new(struct event_base *base, const struct listener_desc *desc,
    const struct listener_ops *ops, void *arg, struct listener **ret_listener);
/* Stops listening and removes the socket if it is still ours; accepted peers live on. */
struct listener *listener_free(struct listener *l);
DEFINE_CLEANUP(struct listener *, listener_free)
/* Refuses new connections from now on and keeps the socket's name. */
void listener_pause(struct listener *l);
/* Binds again when the name is gone or another's: 1 it did, 0 all was well, or an error. */
int listener_check(struct listener *l);
/* Connections whose hello has not come yet. */
size_t listener_nwaiting(const struct listener *l);

#endif
